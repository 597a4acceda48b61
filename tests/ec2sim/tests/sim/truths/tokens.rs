//! Idempotency: what a client token promises, and what it does not.

use std::{collections::BTreeMap, time::Duration};

use ec2sim::{Effect, Fault, Limits, Truth, Visibility};

use super::kit::{Kit, OTHER_SUBNET, ZONE, both_ways, check, equal, options};

/// Source: EC2 developer guide, "Ensuring idempotency in Amazon EC2 API requests".
#[test]
fn the_same_token_and_parameters_give_the_same_resource_again() {
    both_ways(Truth::TokenGivesSameResource, |truths| {
        let kit = Kit::new(truths);
        let first = kit.run(&[("ClientToken", "a")])?;
        equal(kit.run(&[("ClientToken", "a")])?, first)?;
        let volume = kit.create_volume(&[("ClientToken", "a")])?;
        equal(kit.create_volume(&[("ClientToken", "a")])?, volume)?;
        equal(kit.sim.instances().len(), 1)
    });
}

/// Source: EC2 developer guide, "Ensuring idempotency in Amazon EC2 API requests",
/// `IdempotentParameterMismatch`.
#[test]
fn the_same_token_with_other_parameters_is_refused() {
    both_ways(Truth::TokenMismatchRefused, |truths| {
        let kit = Kit::new(truths);
        kit.run(&[("ClientToken", "a")])?;
        let other = kit.run(&[("ClientToken", "a"), ("InstanceType", "m7i.large")]);
        equal(other, Err("IdempotentParameterMismatch".to_owned()))?;
        kit.create_volume(&[("ClientToken", "a")])?;
        let other = kit.create_volume(&[("ClientToken", "a"), ("Size", "11")]);
        equal(other, Err("IdempotentParameterMismatch".to_owned()))
    });
}

/// Source: EC2 developer guide, "Ensuring idempotency": "up to 64 ASCII characters".
#[test]
fn a_token_has_at_most_64_ascii_characters() {
    both_ways(Truth::TokenLengthLimited, |truths| {
        let kit = Kit::new(truths);
        kit.run(&[("ClientToken", &"x".repeat(64))])?;
        let long = kit.run(&[("ClientToken", &"x".repeat(65))]);
        equal(long, Err("InvalidParameterValue".to_owned()))?;
        equal(kit.run(&[("ClientToken", "grün")]), Err("InvalidParameterValue".to_owned()))
    });
}

/// Source: EC2 developer guide, "Ensuring idempotency": a client token is case-sensitive.
#[test]
fn tokens_that_differ_in_case_are_different_tokens() {
    both_ways(Truth::TokenCaseSensitive, |truths| {
        let kit = Kit::new(truths);
        check(kit.run(&[("ClientToken", "a")])? != kit.run(&[("ClientToken", "A")])?, "one instance for both")
    });
}

/// Source: EC2 developer guide, "Ensuring idempotency": RunInstances is idempotent per Availability Zone when
/// one is named.
#[test]
fn a_token_of_run_instances_counts_per_zone() {
    both_ways(Truth::TokenPerZone, |truths| {
        let kit = Kit::new(truths);
        let here = kit.run(&[("ClientToken", "a")])?;
        let there = kit.run(&[("ClientToken", "a"), ("SubnetId", OTHER_SUBNET)])?;
        check(here != there, "the other zone gave the same instance")?;
        equal(kit.run(&[("ClientToken", "a")])?, here)
    });
}

/// Source: EC2 error-code reference, `IdempotentInstanceTerminated`; github.com/boto/boto3/issues/4406.
#[test]
fn the_token_of_a_terminated_instance_is_refused() {
    both_ways(Truth::TokenOfTerminatedRefused, |truths| {
        let kit = Kit::new(truths);
        let id = kit.run(&[("ClientToken", "a")])?;
        kit.pass(10);
        kit.call("TerminateInstances", &[("InstanceId.1", &id)])?;
        kit.pass(10);
        equal(kit.run(&[("ClientToken", "a")]), Err("IdempotentInstanceTerminated".to_owned()))?;
        // After it is forgotten by the lists, its token is still dead.
        kit.pass(2 * 3600);
        equal(kit.run(&[("ClientToken", "a")]), Err("IdempotentInstanceTerminated".to_owned()))
    });
}

/// Source: API reference: `AttachVolume`, `DetachVolume`, `ModifyVolume`, `CreateSnapshot`, `CreateTags` and
/// `DeleteVolume` have no `ClientToken`.
#[test]
fn actions_without_a_token_refuse_one() {
    both_ways(Truth::TokenOnlyWhereDefined, |truths| {
        let kit = Kit::new(truths);
        let volume = kit.available(&[])?;
        for (action, id) in [
            ("CreateSnapshot", "VolumeId"),
            ("ModifyVolume", "VolumeId"),
            ("DetachVolume", "VolumeId"),
            ("CreateTags", "ResourceId.1"),
            ("DeleteVolume", "VolumeId"),
        ] {
            kit.refuses("UnknownParameter", action, &[(id, &volume), ("ClientToken", "a")])?;
        }
        Ok(())
    });
}

/// Source: github.com/kubernetes-sigs/aws-ebs-csi-driver/issues/2512.
#[test]
fn a_limit_is_checked_before_the_token() {
    both_ways(Truth::LimitBeforeToken, |truths| {
        let mut options = options(truths);
        let vcpus = BTreeMap::from([("Standard".to_owned(), 2)]);
        options.limits = Limits { volumes: Some(1), vcpus, ..options.limits };
        let kit = Kit::with(options);
        kit.create_volume(&[("ClientToken", "a")])?;
        equal(kit.create_volume(&[("ClientToken", "a")]), Err("VolumeLimitExceeded".to_owned()))?;
        kit.run(&[("ClientToken", "a")])?;
        equal(kit.run(&[("ClientToken", "a")]), Err("VcpuLimitExceeded".to_owned()))
    });
}

/// Source: github.com/kubernetes-sigs/aws-ebs-csi-driver/issues/3010 and 1951.
#[test]
fn a_volume_with_an_unusable_key_is_made_and_vanishes_and_its_token_is_dead() {
    both_ways(Truth::KmsRefusalIsLate, |truths| {
        let kit = Kit::new(truths);
        let wanted = [
            ("ClientToken", "a"),
            ("Encrypted", "true"),
            ("KmsKeyId", "arn:aws:kms:us-east-1:1:key/unknown"),
        ];
        let id = kit.create_volume(&wanted)?;
        kit.refuses("ok", "DescribeVolumes", &[("VolumeId.1", &id)])?;
        kit.pass(10);
        kit.refuses("InvalidVolume.NotFound", "DescribeVolumes", &[("VolumeId.1", &id)])?;
        equal(kit.create_volume(&wanted), Err("IdempotentParameterMismatch".to_owned()))?;
        kit.pass(12 * 3600);
        check(kit.create_volume(&wanted)? != id, "the same volume came back")
    });
}

/// Source: API reference: a request without a token is not idempotent.
#[test]
fn without_a_token_each_call_makes_a_new_resource() {
    both_ways(Truth::NoTokenNewResource, |truths| {
        let kit = Kit::new(truths);
        check(kit.run(&[])? != kit.run(&[])?, "the same instance")?;
        check(kit.create_volume(&[])? != kit.create_volume(&[])?, "the same volume")
    });
}

/// Source: API reference: `DescribeInstances` has the filter `client-token`, `DescribeVolumes` has not.
#[test]
fn instances_can_be_filtered_by_token_and_volumes_can_not() {
    both_ways(Truth::TokenFilterOnlyOnInstances, |truths| {
        let kit = Kit::new(truths);
        let id = kit.run(&[("ClientToken", "a")])?;
        kit.run(&[("ClientToken", "b")])?;
        let by_token = [("Filter.1.Name", "client-token"), ("Filter.1.Value.1", "a")];
        equal(kit.listed(&by_token)?, vec![id])?;
        kit.refuses("InvalidParameterValue", "DescribeVolumes", &by_token)
    });
}

/// Source: AWS Signature Version 4: a signed request is accepted up to 15 minutes after its date.
#[test]
fn a_send_that_timed_out_may_still_be_carried_out_for_15_minutes() {
    both_ways(Truth::LateSend, |truths| {
        let kit = Kit::new(truths);
        kit.sim.add_fault(Fault::on("CreateVolume", Effect::ApplyLate { seconds: 840.0 }).nth(1));
        kit.sim.add_fault(Fault::on("CreateVolume", Effect::ApplyLate { seconds: 960.0 }).nth(2));
        for token in ["a", "b"] {
            equal(kit.create_volume(&[("ClientToken", token)]), Err("none".to_owned()))?;
        }
        equal(kit.sim.volumes().len(), 0)?;
        kit.pass(839);
        equal(kit.sim.volumes().len(), 0)?;
        kit.pass(200);
        equal(
            kit.sim.volumes().iter().map(|volume| volume.client_token.clone()).collect(),
            vec![Some("a".to_owned())],
        )
    });
}

/// Source: EC2 developer guide, "Eventual consistency in the Amazon EC2 API"; `API_TerminateInstances`.
#[test]
fn a_new_resource_and_its_tags_are_seen_late() {
    both_ways(Truth::EventualConsistency, |truths| {
        let mut options = options(truths);
        let seconds = Duration::from_secs;
        options.visibility = Visibility { by_id: seconds(30), by_filter: seconds(60), tags: seconds(90) };
        let kit = Kit::with(options);
        let tags = [
            ("ClientToken", "a"),
            ("TagSpecification.1.ResourceType", "instance"),
            ("TagSpecification.1.Tag.1.Key", "owner"),
            ("TagSpecification.1.Tag.1.Value", "me"),
        ];
        let id = kit.run(&tags)?;
        let by_tag = [("Filter.1.Name", "tag:owner"), ("Filter.1.Value.1", "me")];
        let by_token = [("Filter.1.Name", "client-token"), ("Filter.1.Value.1", "a")];
        kit.refuses("InvalidInstanceID.NotFound", "DescribeInstances", &[("InstanceId.1", &id)])?;
        kit.pass(29);
        kit.refuses("InvalidInstanceID.NotFound", "TerminateInstances", &[("InstanceId.1", &id)])?;
        check(kit.instance(&id)?.state.as_str() == "running", "it runs all the same")?;
        equal(kit.run(&tags)?, id.clone())?;
        kit.pass(1);
        equal(kit.listed(&[("InstanceId.1", &id)])?, vec![id.clone()])?;
        equal(kit.listed(&by_token)?, vec![])?;
        kit.pass(30);
        equal(kit.listed(&by_token)?, vec![id.clone()])?;
        equal(kit.listed(&by_tag)?, vec![])?;
        kit.pass(30);
        equal(kit.listed(&by_tag)?, vec![id])
    });
}

/// Source: observed for volumes; EC2 promises no lifetime of a token.
#[test]
fn a_token_is_forgotten_after_its_lifetime_and_then_makes_a_new_resource() {
    both_ways(Truth::TokensForgotten, |truths| {
        let kit = Kit::new(truths);
        let wanted = [("ClientToken", "a"), ("AvailabilityZone", ZONE)];
        let first = kit.create_volume(&wanted)?;
        kit.pass(12 * 3600 - 1);
        equal(kit.create_volume(&wanted)?, first.clone())?;
        kit.pass(1);
        check(kit.create_volume(&wanted)? != first, "the same volume")
    });
}
