//! Before the Node has an instance: the first attempt, doubt, the choice.

use super::*;
use crate::controller::memory::sends::Sent;

fn sent(last: i64) -> Sent {
    Sent { last: at(last), times: 1, in_doubt: true, refused_after_doubt: false, not_before: at(last + 2) }
}

pub(super) fn unavailable(offers: &[(&str, &str, i64)]) -> OfferingsView {
    let unavailable = offers
        .iter()
        .map(|(name, zone, until)| (((*name).to_owned(), (*zone).to_owned()), at(*until)))
        .collect();
    OfferingsView { unavailable, ..OfferingsView::default() }
}

pub(super) fn quota_closed() -> OfferingsView {
    OfferingsView { quotas: reached(at(70)), ..OfferingsView::default() }
}

#[test]
fn what_may_last_for_days_is_looked_for_once_a_minute() {
    let rows = [
        ("a quota is reached, until AWS raises it", attempted_with(|it| it.offerings = quota_closed()), true),
        ("the answer is lost", attempted(), false),
    ];
    for (name, world, expected) in rows {
        let plan = plan(&world, now());
        assert!(plan.pending, "{name}: it may have been carried out");
        assert_eq!(plan.waiting.unwrap().takes_long(), expected, "{name}");
    }
}

pub(super) fn with(change: impl FnOnce(&mut Observed)) -> Observed {
    let mut observed = world();
    change(&mut observed);
    observed
}

fn attempted_with(change: impl FnOnce(&mut Observed)) -> Observed {
    let mut observed = attempted();
    change(&mut observed);
    observed
}

/// The status was found lost at 20, and EC2 was searched by tag for so many seconds since.
fn lost_for(seconds: i64) -> Observed {
    with(|it| {
        let status = NodeStatus { status_lost_at: Some(Time(at(20))), ..NodeStatus::default() };
        it.node.status = Some(status);
        it.has_sent = true;
        it.instances.empty.by_tag = Some(EmptyRun { first: at(21), last: at(21 + seconds) });
    })
}

#[test]
fn a_lost_status_never_leads_to_a_second_machine() {
    let shown = |instances: Vec<Instance>| with(|it| it.instances.instances = instances);
    hold(vec![
        (
            "what carries this UID is recorded",
            shown(vec![instance("i-1", InstanceState::Running)]),
            now(),
            "[record i-1] Launching",
        ),
        (
            "the newest attempt of several",
            shown(vec![
                instance_of_attempt(2, "i-2", InstanceState::Pending),
                instance_of_attempt(10, "i-10", InstanceState::Running),
                instance("i-9", InstanceState::Running),
            ]),
            now(),
            "[record i-10] Launching",
        ),
        (
            "one that lives before one that is being terminated",
            shown(vec![
                instance("i-1", InstanceState::Running),
                instance_of_attempt(2, "i-2", InstanceState::ShuttingDown),
            ]),
            now(),
            "[record i-1] Launching",
        ),
        (
            "nothing follows one that is only being terminated",
            shown(vec![instance("i-1", InstanceState::ShuttingDown)]),
            now(),
            "[record i-1] Launching",
        ),
        (
            "the attempts that were used up are counted",
            shown(vec![instance_of_attempt(4, "i-4", InstanceState::Terminated)]),
            now(),
            "[launch attempt 5, r7i.large in us-east-1a] Launching, pending",
        ),
        (
            "it was empty although this process sent a launch: nothing follows while one may come to light",
            with(|it| it.has_sent = true),
            now(),
            "[] InDoubt, pending",
        ),
        (
            "empty, and the Node is older than this operator's term",
            with(|it| it.leading_since = at(2)),
            now(),
            "[] InDoubt, pending",
        ),
        (
            "found lost, and searched for less than the window since",
            lost_for(1199),
            at(1300),
            "[] InDoubt, pending",
        ),
        (
            "and for the window",
            lost_for(1201),
            at(1300),
            "[launch attempt 1, r7i.large in us-east-1a] Launching, pending",
        ),
        (
            "what comes to light is recorded",
            Observed {
                instances: InstanceView {
                    instances: vec![instance_of_attempt(2, "i-2", InstanceState::Running)],
                    ..lost_for(600).instances
                },
                ..lost_for(600)
            },
            at(700),
            "[record i-2] Launching",
        ),
        (
            "a copy of our tags is not recorded, and its attempt is not counted",
            shown(vec![Instance { token: None, ..instance_of_attempt(4, "i-4", InstanceState::Running) }]),
            now(),
            "[launch attempt 1, r7i.large in us-east-1a] Launching, pending",
        ),
    ]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn an_attempt_without_an_id_is_adopted_resent_or_looked_up_and_never_replaced_on_doubt() {
    hold(vec![
        (
            "what has its token is its own",
            attempted_with(|it| it.instances.instances = vec![instance("i-1", InstanceState::Pending)]),
            now(),
            "[record i-1] Launching, pending",
        ),
        (
            "a terminated one, too",
            attempted_with(|it| it.instances.instances = vec![instance("i-1", InstanceState::Terminated)]),
            now(),
            "[record i-1] Launching, pending",
        ),
        (
            "a later attempt's is, too: the status is older than what was done",
            attempted_with(|it| {
                it.instances.instances = vec![instance_of_attempt(2, "i-2", InstanceState::Running)];
                it.sent = Some(sent(9));
            }),
            now(),
            "[record i-2] Launching, pending",
        ),
        (
            "a copy of our tags is not",
            attempted_with(|it| {
                let copy = instance_of_attempt(2, "i-2", InstanceState::Running);
                it.instances.instances = vec![Instance { token: None, ..copy }];
                it.sent = Some(sent(9));
            }),
            now(),
            "[] InDoubt, pending, again in 1 s",
        ),
        (
            "found at start-up and looked up: the same call",
            attempted(),
            now(),
            "[launch again] InDoubt, pending",
        ),
        (
            "found at start-up: not before the first sweep of this process",
            attempted_with(|it| it.leading_since = at(9)),
            now(),
            "[] InDoubt, pending",
        ),
        (
            "not before the first look-up by token",
            attempted_with(|it| it.instances.token_looked_up_at = None),
            now(),
            "[] InDoubt, pending",
        ),
        (
            "nor with a look-up by token from before this process",
            attempted_with(|it| {
                it.leading_since = at(8);
                it.instances.token_looked_up_at = Some(at(7));
            }),
            now(),
            "[] InDoubt, pending",
        ),
        (
            "our own send: after its pause",
            attempted_with(|it| it.sent = Some(sent(9))),
            now(),
            "[] InDoubt, pending, again in 1 s",
        ),
        (
            "our own send: then the same call",
            attempted_with(|it| it.sent = Some(sent(8))),
            now(),
            "[launch again] InDoubt, pending",
        ),
        (
            "a closed quota gate holds the same call back, too",
            attempted_with(|it| it.offerings = quota_closed()),
            now(),
            "[] QuotaExceeded, pending, again in 60 s",
        ),
        (
            "six hours to the second",
            attempted_with(|it| it.instances.swept_at = Some(at(21_600))),
            at(21_600),
            "[launch again] InDoubt, pending",
        ),
        ("a token older than six hours is never sent", attempted(), at(21_601), "[] InDoubt, pending"),
        (
            "the class' user data changed",
            attempted_with(|it| it.class.as_mut().unwrap().spec.user_data = "new".into()),
            now(),
            "[] InDoubt, pending",
        ),
        (
            "decided by a release that added other constants to the request",
            attempted_with(|it| status(it).creation.as_mut().unwrap().shape = -1),
            now(),
            "[] InDoubt, pending",
        ),
        ("the class is gone", attempted_with(|it| it.class = None), now(), "[] InDoubt, pending"),
        (
            "a changed image does not matter: the recorded request is sent",
            attempted_with(|it| it.class.as_mut().unwrap().spec.image_id = "ami-2".into()),
            now(),
            "[launch again] InDoubt, pending",
        ),
        (
            "refused after doubt",
            attempted_with(|it| it.sent = Some(Sent { refused_after_doubt: true, ..sent(1) })),
            now(),
            "[] InDoubt, pending",
        ),
        (
            "no capacity left while in doubt: still never another zone or type",
            attempted_with(|it| {
                it.sent = Some(sent(8));
                it.offerings = unavailable(&[("r7i.large", "us-east-1a", 100)]);
            }),
            now(),
            "[launch again] InDoubt, pending",
        ),
    ]);
}

#[test]
fn only_proven_absence_ends_doubt() {
    let proven = |first: i64, last: i64, change: fn(&mut Observed)| {
        attempted_with(|it| {
            it.instances.empty = empty(first, last);
            it.sent = Some(sent(50));
            change(it);
        })
    };
    let late = at(2000);
    hold(vec![
        (
            "a whole window",
            proven(51, 1251, |_| {}),
            late,
            "[launch attempt 2, r7i.large in us-east-1a] Launching, pending",
        ),
        ("a second short", proven(51, 1250, |_| {}), late, "[launch again] InDoubt, pending"),
        ("a run that began with the send", proven(50, 1300, |_| {}), late, "[launch again] InDoubt, pending"),
        (
            "by tag alone",
            proven(51, 1251, |it| it.instances.empty.by_token = None),
            late,
            "[launch again] InDoubt, pending",
        ),
        (
            "by token alone",
            proven(51, 1251, |it| it.instances.empty.by_tag = None),
            late,
            "[launch again] InDoubt, pending",
        ),
        (
            "found at start-up: an earlier process may have sent until this one started",
            proven(51, 1251, |it| {
                it.sent = None;
                it.leading_since = at(60);
                it.instances.swept_at = Some(at(1251));
                it.instances.token_looked_up_at = Some(at(1251));
            }),
            late,
            "[launch again] InDoubt, pending",
        ),
        (
            "the machines that never joined are counted on",
            proven(51, 1251, |it| status(it).creation.as_mut().unwrap().never_joined = 2),
            late,
            "[launch attempt 2, r7i.large in us-east-1a {neverJoined: 2}] Launching, pending",
        ),
        (
            "without capacity the proof is kept",
            proven(51, 1251, |it| {
                it.node.spec.instance_types = vec!["r7i.large".into()];
                it.node.spec.zone = Some("us-east-1a".into());
                it.offerings = unavailable(&[("r7i.large", "us-east-1a", 2100)]);
            }),
            late,
            "[] InsufficientCapacity, pending, again in 100 s",
        ),
        (
            "without a class, too",
            proven(51, 1251, |it| it.class = None),
            late,
            "[] stalled NodeClassNotFound, pending, again in 60 s",
        ),
    ]);
}

/// The world whose attempt EC2 refused like this, changed.
pub(super) fn refused_with(code: &str, change: fn(&mut Observed)) -> Observed {
    let mut observed = with_launch(world(), refused(code, at(2)));
    change(&mut observed);
    observed
}
