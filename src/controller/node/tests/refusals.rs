//! What follows a definite refusal of a launch: by its class, and in which words.

use super::unidentified::{quota_closed, refused_with, unavailable};
use super::*;

/// The NodeClass was found to be one of which machines can be launched.
fn launchable(observed: &mut Observed) {
    let status = NodeClassStatus { launchable: Some(true), ..NodeClassStatus::default() };
    observed.class.as_mut().unwrap().status = Some(status);
}

#[test]
fn a_quota_that_is_reached_is_answered_by_a_type_that_asks_less_of_it_or_nothing() {
    hold(vec![
        (
            "invalid, and the class is mended while a quota is reached",
            refused_with("InvalidAMIID.NotFound", |it| {
                it.class.as_mut().unwrap().spec.image_id = "ami-2".into();
                it.offerings = quota_closed();
            }),
            now(),
            "[] QuotaExceeded, again in 60 s",
        ),
        (
            "a quota: the next type that counts against another one",
            refused_with("VcpuLimitExceeded", |it| {
                it.node.spec.instance_types =
                    vec!["r7i.large".into(), "m7i.large".into(), "x2iedn.large".into()];
                it.offerings = quota_closed();
            }),
            now(),
            "[launch attempt 2, x2iedn.large in us-east-1a] Launching, pending",
        ),
        (
            "a quota: a smaller type of the same family may fit",
            refused_with("VcpuLimitExceeded", |it| {
                it.node.spec.instance_types = vec!["r7i.large".into(), "r7i.medium".into()];
                it.offerings = quota_closed();
            }),
            now(),
            "[launch attempt 2, r7i.medium in us-east-1a] Launching, pending",
        ),
        (
            "a quota that has room again",
            refused_with("VcpuLimitExceeded", |_| {}),
            now(),
            "[launch attempt 2, r7i.large in us-east-1a] Launching, pending",
        ),
    ]);
}

#[test]
fn a_definite_refusal_is_answered_by_its_class() {
    hold(vec![
        (
            "no capacity: the next zone at once",
            refused_with("InsufficientInstanceCapacity", |it| {
                it.offerings = unavailable(&[("r7i.large", "us-east-1a", 182)]);
            }),
            now(),
            "[launch attempt 2, r7i.large in us-east-1b] Launching, pending",
        ),
        (
            "no capacity anywhere: until the pause is over",
            refused_with("InsufficientInstanceCapacity", |it| {
                it.node.spec.instance_types = vec!["r7i.large".into()];
                it.node.spec.zone = Some("us-east-1a".into());
                it.offerings = unavailable(&[("r7i.large", "us-east-1a", 182)]);
            }),
            now(),
            "[] InsufficientCapacity, again in 172 s",
        ),
        (
            "no permission: after a pause",
            refused_with("UnauthorizedOperation", |_| {}),
            now(),
            "[] Forbidden, again in 292 s",
        ),
        (
            "no permission: the pause is over",
            refused_with("UnauthorizedOperation", |_| {}),
            at(302),
            "[launch attempt 2, r7i.large in us-east-1a] Launching, pending",
        ),
        (
            "a code of a later day: another attempt after the pause",
            refused_with("Whatever.New", |_| {}),
            at(301),
            "[] Forbidden, again in 1 s",
        ),
        (
            "the pause after it is over",
            refused_with("Whatever.New", |_| {}),
            at(302),
            "[launch attempt 2, r7i.large in us-east-1a] Launching, pending",
        ),
        (
            "invalid: nothing until a person changes something, or an hour has passed",
            refused_with("InvalidAMIID.NotFound", |_| {}),
            now(),
            "[] stalled InvalidRequest, again in 3592 s",
        ),
        (
            "invalid, an hour later",
            refused_with("InvalidAMIID.NotFound", |_| {}),
            at(3602),
            "[launch attempt 2, r7i.large in us-east-1a] Launching, pending",
        ),
        (
            "invalid, and the class is launchable: after a pause",
            refused_with("InvalidAMIID.NotFound", launchable),
            at(301),
            "[] stalled InvalidRequest, again in 1 s",
        ),
        (
            "the pause is over",
            refused_with("InvalidAMIID.NotFound", launchable),
            at(302),
            "[launch attempt 2, r7i.large in us-east-1a] Launching, pending",
        ),
        (
            "invalid, and another type is preferred since",
            refused_with("InvalidParameterValue", |it| {
                it.node.spec.instance_types = vec!["r6i.large".into(), "r7i.large".into()];
            }),
            now(),
            "[launch attempt 2, r6i.large in us-east-1a] Launching, pending",
        ),
        (
            "invalid, and the class is gone",
            refused_with("InvalidAMIID.NotFound", |it| it.class = None),
            now(),
            "[] stalled InvalidRequest, again in 3592 s",
        ),
        (
            "a quota gate that closed meanwhile",
            refused_with("InsufficientInstanceCapacity", |it| it.offerings = quota_closed()),
            now(),
            "[] QuotaExceeded, again in 60 s",
        ),
    ]);
    let mut fixed = with_launch(world(), refused("InvalidAMIID.NotFound", at(2)));
    fixed.class.as_mut().unwrap().spec.image_id = "ami-2".into();
    let plan = plan(&fixed, now());
    let [Action::Launch(next, _)] = plan.actions.as_slice() else { panic!("{plan:?}") };
    assert_eq!((next.attempt.number, next.image_id.as_str(), &next.attempt.refused), (2, "ami-2", &None));
}

#[test]
fn a_refusal_is_told_with_ec2s_own_words_and_the_class() {
    for (code, words) in [
        ("UnauthorizedOperation", vec!["UnauthorizedOperation", "(no)"]),
        ("InvalidAMIID.NotFound", vec!["NodeClass default"]),
    ] {
        let plan = plan(&with_launch(world(), refused(code, at(2))), now());
        for word in words {
            assert!(message(&plan).contains(word), "{}", message(&plan));
        }
    }
}
