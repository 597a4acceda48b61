//! After an instance ended before it joined: pauses, the stall and what ends it, capacity that was missing
//! after all.

use super::*;

/// Attempt `attempt`, after so many that never joined, whose instance is terminated; Launched is false since
/// 100.
fn ended(attempt: i32, never_joined: i32, change: impl FnOnce(&mut Observed)) -> Observed {
    let mut observed = with_launch(world(), launch_of(attempt, "r7i.large", 0, never_joined, at(0)));
    status(&mut observed).instance_id = Some(id("i-1"));
    observed.instances.instances = vec![instance_of_attempt(attempt, "i-1", InstanceState::Terminated)];
    launched_is(&mut observed, false, Reason::InstanceLost, at(100));
    change(&mut observed);
    observed
}

fn capacity(observed: &mut Observed) {
    observed.instances.instances[0].state_reason =
        Some("Server.InsufficientInstanceCapacity: none left".into());
}

fn unavailable(observed: &mut Observed, zone: &str, until: i64) {
    observed.offerings.unavailable.insert(("r7i.large".into(), zone.into()), at(until));
}

#[test]
fn another_machine_follows_after_one_five_and_fifteen_minutes_and_then_none() {
    hold(vec![
        ("the first pause", ended(1, 0, |_| {}), at(110), "[] NeverJoined, again in 50 s"),
        ("the first pause to the second", ended(1, 0, |_| {}), at(159), "[] NeverJoined, again in 1 s"),
        (
            "the first replacement",
            ended(1, 0, |_| {}),
            at(160),
            "[launch attempt 2, r7i.large in us-east-1a {neverJoined: 1}] Launching, pending",
        ),
        ("the second pause", ended(2, 1, |_| {}), at(399), "[] NeverJoined, again in 1 s"),
        (
            "the second replacement",
            ended(2, 1, |_| {}),
            at(400),
            "[launch attempt 3, r7i.large in us-east-1a {neverJoined: 2}] Launching, pending",
        ),
        ("the third pause", ended(3, 2, |_| {}), at(999), "[] NeverJoined, again in 1 s"),
        (
            "the third replacement",
            ended(3, 2, |_| {}),
            at(1000),
            "[launch attempt 4, r7i.large in us-east-1a {neverJoined: 3}] Launching, pending",
        ),
        ("no fourth after that", ended(4, 3, |_| {}), at(3699), "[] stalled NeverJoined, again in 1 s"),
        (
            "a fourth, an hour later",
            ended(4, 3, |_| {}),
            at(3700),
            "[launch attempt 5, r7i.large in us-east-1a {neverJoined: 3}] Launching, pending",
        ),
        (
            "EC2's own error is no machine that never joined",
            ended(4, 2, |it| {
                it.instances.instances[0].state_reason = Some("Server.InternalError: on launch".into());
            }),
            at(1000),
            "[launch attempt 5, r7i.large in us-east-1a {neverJoined: 2}] Launching, pending",
        ),
        (
            "nor after the last of them: it goes on, with the last pause",
            ended(5, 3, |it| {
                it.instances.instances[0].state_reason = Some("Client.VolumeLimitExceeded: full".into());
            }),
            at(999),
            "[] NeverJoined, again in 1 s",
        ),
        (
            "seen terminated for the first time: the pause begins now",
            ended(1, 0, |it| launched_is(it, true, Reason::AsExpected, at(3))),
            at(110),
            "[] NeverJoined, again in 60 s",
        ),
        (
            "one that never ran pauses from its launch, since Launched never changed",
            ended(2, 1, |it| launched_is(it, false, Reason::NeverJoined, at(-5000))),
            at(10),
            "[] NeverJoined, again in 290 s",
        ),
        (
            "no class when the pause is over",
            ended(1, 0, |it| it.class = None),
            at(160),
            "[] stalled NodeClassNotFound, again in 60 s",
        ),
    ]);
}

#[test]
fn a_stalled_node_goes_on_when_a_person_changed_something_and_not_when_capacity_did() {
    let stalled = |change: fn(&mut Observed)| ended(4, 3, change);
    let class = |change: fn(&mut NodeClass)| {
        ended(4, 3, |it| {
            let mut changed = class();
            change(&mut changed);
            it.class = Some(changed);
        })
    };
    hold(vec![
        (
            "the preferred type is out of capacity",
            stalled(|it| unavailable(it, "us-east-1a", 2000)),
            at(1000),
            "[] stalled NeverJoined, again in 2700 s",
        ),
        ("nothing is", stalled(|_| {}), at(1000), "[] stalled NeverJoined, again in 2700 s"),
        (
            "the class is gone",
            stalled(|it| it.class = None),
            at(1000),
            "[] stalled NeverJoined, again in 2700 s",
        ),
        (
            "a type that was tried second stays tried when the first is back",
            {
                let mut observed = stalled(|_| {});
                status(&mut observed).creation = Some(launch_of(4, "r6i.large", 2, 3, at(0)));
                observed
            },
            at(1000),
            "[] stalled NeverJoined, again in 2700 s",
        ),
        (
            "the type left the list",
            stalled(|it| it.node.spec.instance_types = vec!["r6i.large".into()]),
            at(1000),
            "[launch attempt 5, r6i.large in us-east-1a] Launching, pending",
        ),
        (
            "a reordered list changes nothing about this machine",
            stalled(|it| it.node.spec.instance_types.reverse()),
            at(1000),
            "[] stalled NeverJoined, again in 2700 s",
        ),
        (
            "its subnet left the class",
            class(|it| {
                it.spec.subnets.remove(0);
            }),
            at(1000),
            "[launch attempt 5, r7i.large in us-east-1b] Launching, pending",
        ),
        (
            "its zone is no longer allowed",
            stalled(|it| it.node.spec.zones = vec!["us-east-1b".into()]),
            at(1000),
            "[launch attempt 5, r7i.large in us-east-1b] Launching, pending",
        ),
        (
            "the class does not allow its type any more",
            class(|it| it.spec.instance_types = vec!["r6i.*".into()]),
            at(1000),
            "[launch attempt 5, r6i.large in us-east-1a] Launching, pending",
        ),
    ]);
    let fixed = class(|it| it.spec.image_id = "ami-2".into());
    let plan = plan(&fixed, at(1000));
    let [Action::Launch(next, _)] = plan.actions.as_slice() else { panic!("{plan:?}") };
    assert_eq!((next.attempt.number, next.never_joined, next.image_id.as_str()), (5, 0, "ami-2"));
}

#[test]
fn a_stall_says_where_to_look() {
    let plan = plan(&ended(4, 3, |_| {}), at(1000));
    for word in ["4 machines", "console", "NodeClass default"] {
        assert!(message(&plan).contains(word), "{}", message(&plan));
    }
}

#[test]
fn capacity_that_was_missing_after_all_is_one_refusal_and_counts_as_no_machine() {
    let only = |it: &mut Observed| {
        it.node.spec.instance_types = vec!["r7i.large".into()];
        it.node.spec.zone = Some("us-east-1a".into());
    };
    hold(vec![
        (
            "all Nodes learn of it first",
            ended(1, 2, capacity),
            at(20),
            "[mark r7i.large unavailable in us-east-1a] InsufficientCapacity, again in 0.100 s",
        ),
        (
            "the next zone at once, and the count stays",
            ended(1, 2, |it| {
                capacity(it);
                unavailable(it, "us-east-1a", 200);
            }),
            at(20),
            "[launch attempt 2, r7i.large in us-east-1b {neverJoined: 2}] Launching, pending",
        ),
        (
            "nothing else is allowed: until the pause is over",
            ended(1, 0, |it| {
                capacity(it);
                only(it);
                unavailable(it, "us-east-1a", 200);
            }),
            at(20),
            "[] InsufficientCapacity, again in 180 s",
        ),
        (
            "the pause is over: tried again, and not marked for ever",
            ended(1, 0, |it| {
                capacity(it);
                only(it);
            }),
            at(200),
            "[launch attempt 2, r7i.large in us-east-1a] Launching, pending",
        ),
        (
            "any other reason is a machine that never joined",
            ended(1, 0, |it| {
                it.instances.instances[0].state_reason = Some("Client.InternalError: key".into());
            }),
            at(110),
            "[] NeverJoined, again in 50 s",
        ),
    ]);
}

#[test]
fn a_machine_that_was_not_wanted_any_more_is_followed_at_once_and_not_counted() {
    hold(vec![
        (
            "its type left the list",
            ended(1, 0, |it| it.node.spec.instance_types = vec!["r6i.large".into()]),
            at(101),
            "[launch attempt 2, r6i.large in us-east-1a] Launching, pending",
        ),
        (
            "the volume is in another zone",
            ended(1, 0, |it| it.node.spec.zone = Some("us-east-1c".into())),
            at(101),
            "[launch attempt 2, r7i.large in us-east-1c] Launching, pending",
        ),
    ]);
}

#[test]
fn a_machine_that_joined_is_never_followed_here_but_declared_lost() {
    let rows = vec![
        ("the status says so", ended(1, 0, joined)),
        ("it joined between two looks", ended(1, 0, |it| it.core_node = Some(core_node()))),
        (
            "it joined and found no capacity later",
            ended(1, 0, |it| {
                joined(it);
                capacity(it);
            }),
        ),
    ];
    for (name, observed) in rows {
        let plan = plan(&observed, now());
        assert!(matches!(plan.actions.first(), Some(Action::DeclareLost(_))), "{name}: {plan:?}");
        assert!(!plan.actions.iter().any(|action| matches!(action, Action::Launch(..))), "{name}: {plan:?}");
        assert_eq!(plan.waiting.unwrap().reason(), Reason::InstanceLost, "{name}");
    }
}

#[test]
fn a_status_that_was_lost_but_for_the_id_goes_on_from_what_ec2_shows() {
    let lost = |attempt: i32| {
        ended(attempt, 0, |it| {
            status(it).creation = None;
        })
    };
    hold(vec![
        ("the pause, too", lost(3), at(110), "[] NeverJoined, again in 50 s"),
        (
            "the attempts that EC2 shows are counted",
            lost(3),
            at(160),
            "[launch attempt 4, r7i.large in us-east-1a {neverJoined: 1}] Launching, pending",
        ),
    ]);
}
