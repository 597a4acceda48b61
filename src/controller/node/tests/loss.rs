//! A machine that had joined and is lost: judged and reported.

use pretty_assertions::assert_eq;
use strum::IntoEnumIterator;

use super::*;
use crate::api::node::{Fence, MachineHealth, ReplacementCause};
use crate::cloud::InstanceHealth;
use crate::controller::node::cause::Cause;
use crate::controller::node::plan::judgement::Judgement;
use crate::controller::node::status::status as status_of;
use crate::controller::pass::acted::Acted;

pub(super) fn with(change: impl FnOnce(&mut Observed)) -> Observed {
    let mut observed = settled();
    change(&mut observed);
    observed
}

pub(super) fn in_state(state: InstanceState) -> Observed {
    with(|it| it.instances.instances[0].state = state)
}

pub(super) fn silent_since(observed: &mut Observed, since: i64) {
    observed.core_node = Some(core_node_with(&[FINALIZER], &ready("Unknown", at(since))));
    status(observed).not_ready_since = Some(Time(at(since)));
}

/// A machine that was never ready for the database, and this.
fn never_ready(change: impl FnOnce(&mut Observed)) -> Observed {
    with(|it| {
        change(it);
        status(it).conditions.retain(|condition| condition.type_ != "Initialized");
    })
}

/// The kubelet says by its own clock that it is not ready since 0; the operator has seen it since then.
fn says_not_ready(observed: &mut Observed, seen: Option<i64>) {
    observed.core_node = Some(core_node_with(&[FINALIZER], &ready("False", at(0))));
    status(observed).not_ready_since = seen.map(|seen| Time(at(seen)));
}

/// Every list of 20 minutes was empty.
fn never_shown(observed: &mut Observed) {
    observed.instances.instances.clear();
    observed.instances.empty = empty(1, 1201);
}

pub(super) fn impaired_since(observed: &mut Observed, since: i64) {
    observed.instances.unhealthy = vec![InstanceHealth { id: id("i-1"), impaired: true, events: Vec::new() }];
    status(observed).impaired_since = Some(Time(at(since)));
}

fn gone_since(observed: &mut Observed, since: i64) {
    observed.core_node = None;
    let entries = [
        Entry::yes(ConditionType::Launched, Reason::AsExpected, "good"),
        Entry::no(ConditionType::Registered, Reason::NodeNotReady, "gone"),
        Entry::yes(ConditionType::Initialized, Reason::AsExpected, "good"),
    ];
    status(observed).conditions = conditions::merge(&[], &entries, Some(3), at(since));
}

/// The machine is declared lost since then, for its kubelet's silence since 0.
pub(super) fn lost_since(observed: &mut Observed, since: i64) {
    let fence = Fence {
        started_at: Time(at(since)),
        cause: Reason::NodeNotReady.as_str().to_owned(),
        since: Time(at(0)),
        message: "it is silent".to_owned(),
    };
    status(observed).fence = Some(fence);
    observed.instances.swept_at = Some(at(since));
}

pub(super) fn lost(state: InstanceState, change: impl FnOnce(&mut Observed)) -> Observed {
    let mut observed = in_state(state);
    silent_since(&mut observed, 0);
    lost_since(&mut observed, 300);
    change(&mut observed);
    observed
}

/// How a world is judged: nothing, suspected until, due, or lost; with the cause.
#[derive(Debug, PartialEq)]
enum Verdict {
    Well,
    Suspected(Cause, i64),
    Due(Cause),
    Lost,
}

/// The status after a pass in which everything that was planned was done.
pub(super) fn after(observed: &Observed, now: i64) -> NodeStatus {
    let plan = plan(observed, at(now));
    let mut object = observed.node.clone();
    for action in &plan.actions {
        if let Action::DeclareLost(fence) = action {
            object.status.get_or_insert_with(NodeStatus::default).fence = Some((**fence).clone());
        }
    }
    status_of(observed, &plan, &Acted::new(object), at(now))
}

pub(super) fn of(status: &NodeStatus, kind: ConditionType) -> (String, String, String) {
    let found = conditions::find(&status.conditions, kind).unwrap();
    (found.status.clone(), found.reason.clone(), found.message.clone())
}

fn verdict(observed: &Observed, now: i64) -> Verdict {
    match plan(observed, at(now)).judged.loss {
        Judgement::Well => Verdict::Well,
        Judgement::Suspected(loss) => {
            Verdict::Suspected(loss.cause, loss.due.as_second() - at(0).as_second())
        }
        Judgement::Due(loss, _) => Verdict::Due(loss.cause),
        Judgement::Lost(_) => Verdict::Lost,
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn each_fact_has_its_grace_and_of_two_the_one_that_is_due_first_decides() {
    use Verdict::{Due, Lost, Suspected, Well};
    let rows = vec![
        ("settled", settled(), 10, Well),
        ("terminated", in_state(InstanceState::Terminated), 10, Due(Cause::Terminated)),
        ("stopped", in_state(InstanceState::Stopped), 10, Due(Cause::Stopped)),
        (
            "being terminated from outside",
            in_state(InstanceState::ShuttingDown),
            10,
            Due(Cause::ShuttingDown),
        ),
        ("being stopped from outside", in_state(InstanceState::Stopping), 10, Due(Cause::Stopping)),
        ("being started again", in_state(InstanceState::Pending), 10, Well),
        ("impaired for four minutes", with(|it| impaired_since(it, 0)), 299, Suspected(Cause::Impaired, 300)),
        ("impaired for five", with(|it| impaired_since(it, 0)), 300, Due(Cause::Impaired)),
        (
            "an event is announced and nothing impaired",
            with(|it| {
                it.instances.unhealthy =
                    vec![InstanceHealth { id: id("i-1"), impaired: false, events: Vec::new() }];
            }),
            10_000,
            Well,
        ),
        (
            "another's checks fail",
            with(|it| {
                it.instances.unhealthy =
                    vec![InstanceHealth { id: id("i-9"), impaired: true, events: Vec::new() }];
            }),
            10_000,
            Well,
        ),
        ("not Ready for four minutes", with(|it| silent_since(it, 0)), 299, Suspected(Cause::NotReady, 300)),
        ("not Ready for five", with(|it| silent_since(it, 0)), 300, Due(Cause::NotReady)),
        (
            "not Ready for an hour, as the kubelet says, and seen only now",
            with(|it| says_not_ready(it, None)),
            3600,
            Suspected(Cause::NotReady, 3900),
        ),
        (
            "not Ready for an hour, as the kubelet says, and seen for four minutes",
            with(|it| says_not_ready(it, Some(3300))),
            3599,
            Suspected(Cause::NotReady, 3600),
        ),
        ("seen for five", with(|it| says_not_ready(it, Some(3300))), 3600, Due(Cause::NotReady)),
        (
            "not Ready from now on, as the kubelet says: its clock is fast",
            with(|it| {
                silent_since(it, 400);
                status(it).not_ready_since = Some(Time(at(0)));
            }),
            300,
            Suspected(Cause::NotReady, 700),
        ),
        (
            "its Kubernetes node gone for four minutes",
            with(|it| gone_since(it, 0)),
            299,
            Suspected(Cause::NodeGone, 300),
        ),
        ("its Kubernetes node gone for five", with(|it| gone_since(it, 0)), 300, Due(Cause::NodeGone)),
        (
            "not Ready, and then impaired: the first counts",
            with(|it| {
                silent_since(it, 0);
                impaired_since(it, 200);
            }),
            300,
            Due(Cause::NotReady),
        ),
        (
            "impaired, and then not Ready",
            with(|it| {
                impaired_since(it, 0);
                silent_since(it, 50);
            }),
            299,
            Suspected(Cause::Impaired, 300),
        ),
        (
            "impaired, and then without its Kubernetes node",
            with(|it| {
                gone_since(it, 100);
                impaired_since(it, 0);
            }),
            300,
            Due(Cause::Impaired),
        ),
        (
            "not Ready for a minute, and then stopped",
            with(|it| {
                silent_since(it, 0);
                it.instances.instances[0].state = InstanceState::Stopped;
            }),
            60,
            Due(Cause::Stopped),
        ),
        ("EC2 does not show it: no proof", with(|it| it.instances.instances.clear()), 10_000, Well),
        (
            "EC2 does not show it, and its kubelet is silent",
            with(|it| {
                it.instances.instances.clear();
                silent_since(it, 0);
            }),
            300,
            Due(Cause::NotReady),
        ),
        (
            "proven gone",
            with(|it| {
                never_shown(it);
                silent_since(it, 1200);
            }),
            1202,
            Due(Cause::Terminated),
        ),
        (
            "EC2 never shows it, and its kubelet is Ready: another account's EC2?",
            with(never_shown),
            10_000,
            Well,
        ),
        (
            "never ready for the database, and the kubelet says why: waited for",
            never_ready(|it| says_not_ready(it, Some(0))),
            10_000,
            Well,
        ),
        (
            "never ready for the database, and silent for four minutes",
            never_ready(|it| silent_since(it, 0)),
            299,
            Suspected(Cause::NotReady, 300),
        ),
        (
            "never ready for the database, and silent for five",
            never_ready(|it| silent_since(it, 0)),
            300,
            Due(Cause::NotReady),
        ),
        (
            "never ready for the database, and its Kubernetes node gone for five minutes",
            never_ready(|it| gone_since(it, 0)),
            300,
            Due(Cause::NodeGone),
        ),
        (
            "never ready for the database, and EC2's check of its host fails",
            never_ready(|it| impaired_since(it, 0)),
            300,
            Due(Cause::Impaired),
        ),
        ("never joined: its attempt is judged elsewhere", launched(InstanceState::Stopped), 10_000, Well),
        ("being deleted: on its own way", deleting(in_state(InstanceState::Stopped)), 10, Well),
        (
            "EC2 was not seen yet",
            with(|it| {
                it.instances.swept_at = None;
                silent_since(it, 0);
            }),
            10_000,
            Well,
        ),
        (
            "declared lost stays declared lost, however well it is again",
            with(|it| lost_since(it, 300)),
            400,
            Lost,
        ),
    ];
    for (name, observed, now, expected) in rows {
        assert_eq!(verdict(&observed, now), expected, "{name}");
    }
}

#[test]
fn a_machine_that_follows_others_that_were_lost_soon_has_longer_to_come_back() {
    let young = |before: i32, change: fn(&mut Observed)| {
        with(|it| {
            it.node.spec.replaced_before = before;
            change(it);
        })
    };
    let silent: fn(&mut Observed) = |it| silent_since(it, 0);
    for (before, due) in [(0, 300), (1, 360), (2, 600), (3, 1200), (4, 3900)] {
        let world = young(before, silent);
        assert_eq!(verdict(&world, due - 1), Verdict::Suspected(Cause::NotReady, due), "after {before}");
        assert_eq!(verdict(&world, due), Verdict::Due(Cause::NotReady), "after {before}");
        assert!(!plan(&world, at(299)).waiting.unwrap().is_stalled());
        assert_eq!(plan(&world, at(300)).waiting.unwrap().is_stalled(), before == 4);
    }
    let ended = young(9, |it| it.instances.instances[0].state = InstanceState::Terminated);
    assert_eq!(verdict(&ended, 10), Verdict::Due(Cause::Terminated), "it cannot come back");
    let old = young(9, |it| silent_since(it, 3600));
    assert_eq!(verdict(&old, 3900), Verdict::Due(Cause::NotReady), "it has lived for an hour");
}

#[test]
fn every_cause_has_a_reason_of_its_own_kind_and_only_what_may_pass_has_a_grace() {
    for cause in Cause::iter() {
        assert!(!(cause.is_proof() && cause.has_grace()), "{cause:?}");
    }
    let both = with(|it| {
        silent_since(it, 0);
        impaired_since(it, 60);
    });
    let Judgement::Due(loss, _) = plan(&both, at(300)).judged.loss else { panic!("it is due") };
    for words in
        ["ip-10-0-0-1 is not Ready", "checks of instance i-1 fail", &at(0).to_string(), &at(60).to_string()]
    {
        assert!(loss.signs.message().contains(words), "{words} is not in {}", loss.signs.message());
    }
}

#[test]
fn a_kubernetes_node_that_another_client_deletes_under_a_machine_that_is_well_asks_for_a_replacement() {
    let deleted =
        |it: &mut Observed| it.core_node.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(at(9)));
    let observed = with(deleted);
    let mut many = with(|it| {
        deleted(it);
        it.fleet.replaced = 5;
    });
    hold(vec![
        (
            "EC2 is being asked whether the machine has ended",
            observed.clone(),
            now(),
            "[] NodeNotReady, again in 9 s",
        ),
        ("it cannot be undone", observed.clone(), at(19), "[] KubernetesNodeDeleted"),
        (
            "five others are replaced for that: it runs on",
            many.clone(),
            at(19),
            "[] RepairPostponed, again in 60 s",
        ),
    ]);
    assert_eq!(after(&many, 19).replacement_needed, None);
    status(&mut many).replacement_needed = after(&observed, 19).replacement_needed;
    assert!(after(&many, 19).replacement_needed.is_some(), "what was requested stays so");
    let status = after(&observed, 19);
    let ready = condition(&status.conditions, ConditionType::Ready);
    assert_eq!(ready, ("False".into(), "KubernetesNodeDeleted".into()));
    assert_eq!(condition(&status.conditions, ConditionType::Lost), ("False".into(), "Progressing".into()));
    let needed = status.replacement_needed.unwrap();
    assert_eq!(needed.cause, ReplacementCause::KubernetesNodeDeleted);
    assert!(needed.message.contains("ip-10-0-0-1"), "{}", needed.message);
    assert_eq!(
        (after(&observed, 10).replacement_needed, status.health),
        (None, Some(MachineHealth::Healthy))
    );
}
