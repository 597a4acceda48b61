//! What the policy of a caller decides, and when.

use ec2sim::{Fate, InstanceState, Options, Policy, Truth, Truths};

use super::kit::{Holds, Kit, SUBNET, ZONE, both_ways, check, equal, options};

/// A key of the default world.
const KEY: &str = "arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000001";

/// A kit whose caller has these statements, on all resources: a Sid that is the action, and the condition.
fn kit(truths: Truths, statements: &[(&str, &str)]) -> Kit {
    let statement = |(action, condition): &(&str, &str)| {
        let sid = action.replace([':', '*'], "");
        format!(
            r#"{{"Sid": "{sid}", "Effect": "Allow", "Action": "{action}", "Resource": "*",
                "Condition": {condition}}}"#
        )
    };
    let statements: Vec<String> = statements.iter().map(statement).collect();
    let document = format!(r#"{{"Version": "2012-10-17", "Statement": [{}]}}"#, statements.join(", "));
    let policies = [("tester".to_owned(), Policy::read(&document).unwrap())].into();
    Kit::with(Options { policies, ..options(truths) })
}

/// Source: IAM User Guide, "How AWS enforcement code logic evaluates requests to allow or deny access"; EC2
/// API reference, "Error codes", `UnauthorizedOperation`.
#[test]
fn a_caller_with_a_policy_does_what_it_allows_and_nothing_else() {
    both_ways(Truth::PolicyHolds, |truths| {
        let kit = kit(truths, &[("ec2:Describe*", "{}"), ("ec2:CreateVolume", "{}")]);
        equal(kit.listed(&[])?, Vec::new())?;
        let id = kit.available(&[])?;
        let used: Vec<String> = kit.sim.used_statements("tester").into_iter().collect();
        equal(used, vec!["ec2CreateVolume".to_owned(), "ec2Describe".to_owned()])?;
        let tags = [("TagSpecification.1.ResourceType", "volume"), ("TagSpecification.1.Tag.1.Key", "a")];
        equal(kit.create_volume(&tags), Err("UnauthorizedOperation".to_owned()))?;
        kit.refuses("UnauthorizedOperation", "DeleteVolume", &[("VolumeId", &id)])?;
        kit.volume(&id)?;
        let entry = kit.sim.journal().pop().ok_or("no entry")?;
        equal((entry.answer.as_str(), entry.fate), ("UnauthorizedOperation", Fate::Refused))?;
        // Every other caller has no policy.
        kit.sim
            .call("other", &[("Action", "DeleteVolume"), ("VolumeId", id.as_str())])
            .map_err(|e| e.to_string())?;
        equal(kit.sim.used_statements("other").len(), 0)
    });
}

/// Source: runs-on/terraform-aws-runs-on#60: EC2 answers `UnauthorizedOperation` for an instance that is
/// gone, since it has no tags any more that a condition could fit.
#[test]
fn the_policy_comes_before_the_question_whether_an_id_exists() {
    let gone = [("InstanceId.1", "i-00000000000000000")];
    let tagged = kit(
        Truths::all(),
        &[("ec2:TerminateInstances", r#"{"StringEquals": {"aws:ResourceTag/owner": "me"}}"#)],
    );
    tagged.refuses("UnauthorizedOperation", "TerminateInstances", &gone).unwrap();
    let any = kit(Truths::all(), &[("ec2:TerminateInstances", "{}")]);
    any.refuses("InvalidInstanceID.NotFound", "TerminateInstances", &gone).unwrap();
}

/// Source: API reference, `DryRun`: "If you have the required permissions, the error response is
/// DryRunOperation. Otherwise, it is UnauthorizedOperation."
#[test]
fn a_dry_run_says_whether_the_policy_allows_the_call() {
    let kit = kit(Truths::all(), &[("ec2:CreateVolume", r#"{"Bool": {"ec2:Encrypted": "true"}}"#)]);
    let volume = [("AvailabilityZone", ZONE), ("Size", "1"), ("DryRun", "true")];
    kit.refuses("UnauthorizedOperation", "CreateVolume", &volume).unwrap();
    let encrypted = [&volume[..], &[("Encrypted", "true")]].concat();
    kit.refuses("DryRunOperation", "CreateVolume", &encrypted).unwrap();
}

/// Source: kubernetes/kubernetes#62171 and aws-ebs-csi-driver#1951 (the volume vanishes, the attachment is
/// refused); re:Post, "kms-iam-ec2-permission" (the launch fails).
#[test]
fn a_key_that_the_caller_may_not_use_is_noticed_after_the_answer_but_at_once_when_attaching() {
    let key = [("Encrypted", "true"), ("KmsKeyId", KEY)];
    let mapping = [
        ("BlockDeviceMapping.1.DeviceName", "/dev/xvda"),
        ("BlockDeviceMapping.1.Ebs.Encrypted", "true"),
        ("BlockDeviceMapping.1.Ebs.KmsKeyId", KEY),
    ];
    let holds = |has_grant: bool| -> Holds {
        let mut statements = vec![("ec2:*", "{}"), ("kms:D*", "{}"), ("kms:ReEncrypt*", "{}")];
        statements.push(("kms:GenerateDataKeyWithoutPlaintext", "{}"));
        if has_grant {
            let through_ec2 = r#"{"StringEquals": {"kms:ViaService": "ec2.us-east-1.amazonaws.com"},
                                  "Bool": {"kms:GrantIsForAWSResource": "true"}}"#;
            statements.push(("kms:CreateGrant", through_ec2));
        }
        let kit = kit(Truths::all(), &statements);
        let instance = kit.run(&mapping)?;
        let volume = kit.create_volume(&key)?;
        kit.pass(20);
        let is_alive = kit.instance(&instance)?.state == InstanceState::Running;
        equal((is_alive, kit.volume(&volume).is_ok()), (has_grant, has_grant))?;
        if !has_grant {
            let reason = kit.instance(&instance)?.state_reason.ok_or("no reason")?;
            equal(reason.code.as_str(), "Client.InternalError")?;
        }
        let params = [
            ("Action", "CreateVolume"),
            ("AvailabilityZone", ZONE),
            ("Size", "10"),
            ("Encrypted", "true"),
            ("KmsKeyId", KEY),
        ];
        let response = kit.sim.call("other", &params).map_err(|error| error.to_string())?;
        let (volume, target) = (response.resource_ids().remove(0), kit.running()?);
        kit.pass(10);
        let expected = if has_grant { "ok" } else { "CustomerKeyHasBeenRevoked" };
        equal(kit.attach(&volume, &target, "/dev/xvdba").as_str(), expected)
    };
    holds(true).unwrap();
    holds(false).unwrap();
}

/// Source: AWS Signature Version 4: a late send is a request of the moment at which it arrives.
#[test]
fn a_send_that_arrives_late_is_authorised_when_it_arrives() {
    let kit = kit(Truths::all(), &[("ec2:RunInstances", "{}")]);
    let late = ec2sim::Effect::ApplyLate { seconds: 60.0 };
    kit.sim.add_fault(ec2sim::Fault::on("CreateVolume", late));
    let volume = [("AvailabilityZone", ZONE), ("Size", "1")];
    kit.refuses("none", "CreateVolume", &volume).unwrap();
    kit.pass(120);
    let entry = kit.sim.journal().pop().unwrap();
    assert_eq!((entry.answer.as_str(), entry.late_of), ("UnauthorizedOperation", Some(1)));
    assert_eq!(kit.sim.volumes(), []);
    let launch = [("SubnetId", SUBNET), ("InstanceType", "m7i.large")];
    check(kit.run(&launch).is_ok(), "what is allowed goes on").unwrap();
}
