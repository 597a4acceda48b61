//! The status of a Node: conditions as whole values, times that stay, fields that have another writer.

use pretty_assertions::assert_eq;

use super::*;
use crate::api::node_class::{AdditionalVolume, TagValue};
use crate::controller::node::status::{changes, status as status_of};
use crate::controller::pass::acted::Acted;

fn acted(observed: &Observed) -> Acted<Node> {
    Acted::new(observed.node.clone())
}

/// The status after a pass that did nothing but look.
fn after(observed: &Observed, now: Timestamp) -> NodeStatus {
    status_of(observed, &plan(observed, now), &acted(observed), now)
}

fn whole(status: &NodeStatus) -> Vec<(&str, &str, &str, &str)> {
    status
        .conditions
        .iter()
        .map(|it| (it.type_.as_str(), it.status.as_str(), it.reason.as_str(), it.message.as_str()))
        .collect()
}

const NO_ACTION: (&str, &str, &str, &str) = ("Stalled", "False", "Progressing", "no manual action required");
const SAME: (&str, &str, &str, &str) =
    ("Drifted", "False", "UpToDate", "the machine is as its NodeClass says");
const FOUND: (&str, &str, &str, &str) =
    ("Lost", "False", "Progressing", "there is no sign that the machine is lost");
const EARLIER: &str = "waiting for an earlier step";

#[test]
fn every_stage_says_what_is_awaited_in_the_first_condition_that_does_not_hold() {
    let waiting = "instance i-1 is starting";
    assert_eq!(
        whole(&after(&launched(InstanceState::Pending), now())),
        [
            ("Ready", "False", "Launching", waiting),
            ("Launched", "False", "Launching", waiting),
            ("Registered", "False", "Pending", EARLIER),
            ("Initialized", "False", "Pending", EARLIER),
            SAME,
            NO_ACTION,
            FOUND,
        ]
    );
    let waiting = "instance i-1 runs; waiting for its kubelet to register";
    assert_eq!(
        whole(&after(&launched(InstanceState::Running), now())),
        [
            ("Ready", "False", "AwaitingRegistration", waiting),
            ("Launched", "True", "AsExpected", "instance i-1 runs"),
            ("Registered", "False", "AwaitingRegistration", waiting),
            ("Initialized", "False", "Pending", EARLIER),
            SAME,
            NO_ACTION,
            FOUND,
        ]
    );
    assert_eq!(
        whole(&after(&settled(), now())),
        [
            ("Ready", "True", "AsExpected", "the machine is ready for the database"),
            ("Launched", "True", "AsExpected", "instance i-1 runs"),
            ("Registered", "True", "AsExpected", "Kubernetes node ip-10-0-0-1 has registered"),
            ("Initialized", "True", "AsExpected", "the Kubernetes node was made ready for the database"),
            SAME,
            NO_ACTION,
            FOUND,
        ]
    );
}

#[test]
fn a_stall_shows_as_stalled() {
    let mut observed = world();
    observed.class = None;
    let status = after(&observed, now());
    let expected = ("True".to_owned(), "NodeClassNotFound".to_owned());
    assert_eq!(condition(&status.conditions, ConditionType::Stalled), expected);
    assert_eq!(
        condition(&status.conditions, ConditionType::Ready),
        ("False".to_owned(), "NodeClassNotFound".to_owned())
    );
}

#[test]
fn what_ec2_just_answered_is_told_before_what_was_planned() {
    let observed = world();
    let call_blocked = answered(Call::RunInstances, "VcpuLimitExceeded", None);
    let acted = Acted { call_blocked: Some(call_blocked), ..acted(&observed) };
    let status = status_of(&observed, &plan(&observed, now()), &acted, now());
    assert_eq!(
        whole(&status)[1],
        (
            "Launched",
            "False",
            "QuotaExceeded",
            "EC2 answered RunInstances with VcpuLimitExceeded: what EC2 says"
        )
    );
}

#[test]
fn a_changed_class_shows_as_drift_by_field_and_a_missing_one_does_not() {
    let mut observed = settled();
    let class = &mut observed.class.as_mut().unwrap().spec;
    class.image_id = "ami-2".into();
    class.user_data = "new".into();
    class.security_group_ids = vec!["sg-1".into()];
    class.instance_profile = Some("node".into());
    class.kms_key_id = Some("key".into());
    class.root_volume.size = 50;
    class.additional_volumes =
        vec![AdditionalVolume { device_name: "/dev/xvdb".into(), size: 20, volume_type: "gp3".into() }];
    class.subnets.remove(0);
    class.tags = BTreeMap::from([("team".to_owned(), TagValue("a".to_owned()))]);
    let words = "NodeClass default has changed since (imageID, subnets, securityGroupIDs, instanceProfile, \
                 userData, rootVolume, additionalVolumes, kmsKeyID, tags); the next machine is made as it \
                 says now";
    assert_eq!(whole(&after(&observed, now()))[4], ("Drifted", "True", "NodeClassChanged", words));
    observed.class = None;
    assert_eq!(
        condition(&after(&observed, now()).conditions, ConditionType::Drifted),
        ("False".into(), "Pending".into())
    );
}

#[test]
fn initialized_stays_when_a_node_is_not_ready_for_a_while_and_ready_does_not() {
    let mut observed = settled();
    observed.core_node = Some(core_node_with(&[FINALIZER], &ready("Unknown", at(9))));
    observed.driver_registered = false;
    let status = after(&observed, now());
    assert_eq!(
        condition(&status.conditions, ConditionType::Initialized),
        ("True".into(), "AsExpected".into())
    );
    assert_eq!(condition(&status.conditions, ConditionType::Ready), ("False".into(), "NodeNotReady".into()));
}

#[test]
fn a_deletion_shows_its_three_stages() {
    let mut observed = deleting(settled());
    observed.pods = vec![pod("orders-0", true)];
    observed.attachments = vec!["csi-1".into()];
    let waiting = "pods still run on the machine: team-a/orders-0; it is terminated all the same when they do \
        not end within --kubelet-silence-timeout after their grace";
    assert_eq!(
        whole(&after(&observed, now()))[7..],
        [
            ("Drained", "False", "AwaitingDrain", waiting),
            ("VolumeDetached", "False", "AwaitingDetach", waiting),
            ("InstanceTerminated", "False", "AwaitingTermination", waiting),
        ]
    );
    observed.pods.clear();
    observed.attachments.clear();
    assert_eq!(
        whole(&after(&observed, now()))[7..],
        [
            ("Drained", "True", "AsExpected", "no pod of the database is left on the machine"),
            ("VolumeDetached", "True", "AsExpected", "no volume is attached to the machine"),
            ("InstanceTerminated", "False", "AwaitingTermination", "instance i-1 is being terminated"),
        ]
    );
}

#[test]
fn of_a_machine_that_is_released_no_end_is_reported() {
    let mut observed = deleting(settled());
    observed.node.spec.release = true;
    observed.core_node = Some(core_node_with(&[], &ready("Unknown", at(-5000))));
    // Its tags are off: the inventory does not show it any more.
    observed.instances.instances.clear();
    let of_its_end = |status: &NodeStatus| {
        let ends = ["Drained", "VolumeDetached", "InstanceTerminated", "Fenced"];
        status.conditions.iter().any(|condition| ends.contains(&condition.type_.as_str()))
    };
    assert!(!of_its_end(&after(&observed, now())));
    observed.node.spec.release = false;
    assert!(of_its_end(&after(&observed, now())));
}

#[test]
fn a_second_look_at_the_same_world_writes_nothing() {
    let mut terminating = deleting(settled());
    terminating.instances.instances[0].state = InstanceState::ShuttingDown;
    let mut never = launched(InstanceState::Terminated);
    launched_is(&mut never, false, Reason::InstanceLost, at(1));
    let mut forbidden = with_launch(world(), refused("UnauthorizedOperation", at(2)));
    forbidden.offerings = OfferingsView::default();
    let mut quota = attempted();
    quota.offerings.quotas = reached(at(700));
    let worlds = vec![
        ("settled", settled()),
        ("starting", launched(InstanceState::Pending)),
        ("joining", launched(InstanceState::Running)),
        ("never joined", never),
        ("terminating", terminating),
        ("forbidden", forbidden),
        ("quota", quota),
        ("deleting in doubt", deleting(attempted())),
    ];
    for (name, mut observed) in worlds {
        let first = after(&observed, now());
        observed.node.status = Some(first.clone());
        for seconds in 1..5 {
            observed.instances.swept_at = Some(at(10 + seconds));
            assert_eq!(after(&observed, at(10 + seconds)), first, "{name}, {seconds} s later");
        }
    }
}

#[test]
fn a_transition_has_its_time_and_a_new_generation_does_not_change_it() {
    let mut observed = launched(InstanceState::Running);
    let first = after(&observed, at(10));
    observed.node.status = Some(first.clone());
    observed.core_node = Some(core_node());
    observed.node.metadata.generation = Some(4);
    let second = after(&observed, at(20));
    let time = |status: &NodeStatus, kind| {
        conditions::find(&status.conditions, kind).unwrap().last_transition_time.0
    };
    assert_eq!(
        (time(&second, ConditionType::Launched), time(&second, ConditionType::Registered)),
        (at(10), at(20))
    );
    assert!(second.conditions.iter().all(|it| it.observed_generation == Some(4)));
    assert_eq!(second.observed_generation, Some(4));
}

#[test]
fn the_fields_of_the_create_protocol_are_told_as_the_last_write_left_them() {
    let observed = settled();
    let mut written = observed.node.clone();
    let other = NodeStatus {
        creation: Some(launch(7)),
        instance_id: Some(id("i-7")),
        ..written.status.clone().unwrap()
    };
    written.status = Some(other);
    let acted = Acted { object: written, ..acted(&observed) };
    let status = status_of(&observed, &plan(&observed, now()), &acted, now());
    assert_eq!((status.creation, status.instance_id), (Some(launch(7)), Some(id("i-7"))));
}

#[test]
fn what_ec2_shows_is_told_and_stays_when_it_shows_nothing() {
    let mut observed = launched(InstanceState::Running);
    let status = after(&observed, now());
    let facts = |it: &NodeStatus| (it.provider_id.clone(), it.instance_type.clone(), it.zone.clone());
    let expected =
        (Some("aws:///us-east-1a/i-1".into()), Some("r7i.large".into()), Some("us-east-1a".into()));
    assert_eq!(facts(&status), expected);
    observed.node.status = Some(status);
    observed.instances.instances.clear();
    assert_eq!(facts(&after(&observed, now())), expected);
}

#[test]
fn becoming_ready_again_is_an_event_once() {
    let new = after(&launched(InstanceState::Running), now());
    let ready = after(&settled(), now());
    let mut not_ready = ready.clone();
    for condition in not_ready.conditions.iter_mut().filter(|it| it.type_ == "Ready") {
        condition.status = "False".to_owned();
    }
    let events = |old, new| changes(old, new).into_iter().map(|it| it.reason.as_str()).collect::<Vec<_>>();
    assert_eq!(events(&not_ready, &ready), ["NodeReady"]);
    assert_eq!((events(&ready, &ready), events(&ready, &not_ready)), (vec![], vec![]));
    assert_eq!(events(&new, &ready), Vec::<&str>::new(), "its Database says that it is ready");
}

#[test]
fn a_machine_whose_database_was_deleted_without_it_goes_on_and_says_so_once() {
    let owned = after(&settled(), now());
    let mut observed = settled();
    observed.ownership = Ownership::Orphaned;
    assert!(plan(&observed, now()).actions.is_empty());
    let status = after(&observed, now());
    assert_eq!(whole(&status)[..7], whole(&owned)[..], "it is as ready as it was");
    let expected = ("True".to_owned(), "Orphaned".to_owned());
    assert_eq!(condition(&status.conditions, ConditionType::Orphaned), expected);
    let events = |old, new| changes(old, new).into_iter().map(|it| it.reason.as_str()).collect::<Vec<_>>();
    assert_eq!((events(&owned, &status), events(&status, &status)), (vec!["Orphaned"], vec![]));
    let leaving = after(&deleting(observed), now());
    assert!(conditions::find(&leaving.conditions, ConditionType::Orphaned).is_none(), "a person has acted");
}

#[test]
fn a_machine_whose_database_is_being_deleted_without_it_is_looked_at_again_and_is_no_orphan_yet() {
    let mut observed = settled();
    observed.ownership = Ownership::Unowned;
    assert_eq!(plan(&observed, now()).requeue, Some(observed.timing.requeue_interval));
    let status = after(&observed, now());
    assert!(conditions::find(&status.conditions, ConditionType::Orphaned).is_none());
}
