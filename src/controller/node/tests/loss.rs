//! A machine that had joined and is lost: judged, held back, fenced in stages, freed after the proof.

use pretty_assertions::assert_eq;

use super::*;
use crate::api::node::Fence;
use crate::api::{DATABASE_NODE_LABEL, OUT_OF_SERVICE_TAINT};
use crate::cloud::InstanceHealth;
use crate::controller::acting::Acted;
use crate::controller::node::fence::Stage;
use crate::controller::node::loss::{Cause, Judgement, judge};
use crate::controller::node::status::{changes, fenced_after, status as told};
use crate::controller::waiting::{Asked, HeldUp};

fn with(change: impl FnOnce(&mut Observed)) -> Observed {
    let mut observed = settled();
    change(&mut observed);
    observed
}

fn in_state(state: InstanceState) -> Observed {
    with(|it| it.instances.instances[0].state = state)
}

fn silent_since(observed: &mut Observed, since: i64) {
    observed.core_node = Some(core_node_with(&[FINALIZER], &ready("Unknown", at(since))));
}

fn impaired_since(observed: &mut Observed, since: i64) {
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

/// The machine is given up since then, for its kubelet's silence since 0.
fn lost_since(observed: &mut Observed, since: i64) {
    let fence = Fence {
        started_at: Time(at(since)),
        cause: Reason::NodeNotReady.as_str().to_owned(),
        since: Time(at(0)),
        message: "it is silent".to_owned(),
    };
    status(observed).fence = Some(fence);
    observed.instances.swept_at = Some(at(since));
}

fn lost(state: InstanceState, change: impl FnOnce(&mut Observed)) -> Observed {
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

fn verdict(observed: &Observed, now: i64) -> Verdict {
    match judge(observed, &observed.node.status.clone().unwrap_or_default(), at(now)) {
        Judgement::Well => Verdict::Well,
        Judgement::Suspected(loss) => Verdict::Suspected(loss.cause, loss.due.as_second() - at(0).as_second()),
        Judgement::Due(loss) => Verdict::Due(loss.cause),
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
        ("being terminated from outside", in_state(InstanceState::ShuttingDown), 10, Due(Cause::ShuttingDown)),
        ("being stopped from outside", in_state(InstanceState::Stopping), 10, Due(Cause::Stopping)),
        ("being started again", in_state(InstanceState::Pending), 10, Well),
        ("impaired for four minutes", with(|it| impaired_since(it, 0)), 299, Suspected(Cause::Impaired, 300)),
        ("impaired for five", with(|it| impaired_since(it, 0)), 300, Due(Cause::Impaired)),
        (
            "an event is announced and nothing impaired",
            with(|it| {
                it.instances.unhealthy = vec![InstanceHealth { id: id("i-1"), impaired: false, events: vec!["instance-stop".into()] }];
            }),
            10_000,
            Well,
        ),
        (
            "another's checks fail",
            with(|it| {
                it.instances.unhealthy = vec![InstanceHealth { id: id("i-9"), impaired: true, events: vec![] }];
            }),
            10_000,
            Well,
        ),
        ("not Ready for four minutes", with(|it| silent_since(it, 0)), 299, Suspected(Cause::NotReady, 300)),
        ("not Ready for five", with(|it| silent_since(it, 0)), 300, Due(Cause::NotReady)),
        ("its Kubernetes node gone for four minutes", with(|it| gone_since(it, 0)), 299, Suspected(Cause::NodeGone, 300)),
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
                it.instances.instances.clear();
                it.instances.empty = empty(1, 1201);
            }),
            1202,
            Due(Cause::Terminated),
        ),
        (
            "never ready for the database: waited for",
            with(|it| {
                silent_since(it, 0);
                status(it).conditions.retain(|condition| condition.type_ != "Initialized");
            }),
            10_000,
            Well,
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
        ("given up stays given up, however well it is again", with(|it| lost_since(it, 300)), 400, Lost),
    ];
    for (name, observed, now, expected) in rows {
        assert_eq!(verdict(&observed, now), expected, "{name}");
    }
}

#[test]
fn every_cause_has_a_reason_of_its_own_kind_and_only_what_may_pass_has_a_grace() {
    for cause in Cause::ALL {
        assert!(!(cause.is_proof() && cause.has_grace()), "{cause:?}");
    }
    let both = with(|it| {
        silent_since(it, 0);
        impaired_since(it, 60);
    });
    let Judgement::Due(loss) = judge(&both, both.node.status.as_ref().unwrap(), at(300)) else { panic!("it is due") };
    for words in ["ip-10-0-0-1 is not Ready", "checks of instance i-1 fail", &at(0).to_string(), &at(60).to_string()] {
        assert!(loss.message.contains(words), "{words} is not in {}", loss.message);
    }
}

fn gives_up(observed: &Observed, now: i64) -> Action {
    match judge(observed, observed.node.status.as_ref().unwrap(), at(now)) {
        Judgement::Due(loss) => Action::GiveUp(Box::new(loss.given_up(at(now)))),
        Judgement::Well | Judgement::Suspected(_) | Judgement::Lost(_) => panic!("it is not due"),
    }
}

fn evicts(pod: &str) -> Action {
    Action::EvictPod { namespace: "team-a".into(), name: pod.into(), uid: format!("{pod}-uid"), at_once: true }
}

fn out_of_service(observed: &Observed) -> Action {
    Action::OutOfService(Box::new(observed.core_node.clone().unwrap()))
}

fn tainted(mut core_node: CoreNode) -> CoreNode {
    let taint = serde_json::from_value(json!({"key": OUT_OF_SERVICE_TAINT, "value": "nodeshutdown", "effect": "NoExecute"})).unwrap();
    core_node.spec.as_mut().unwrap().taints = Some(vec![taint]);
    core_node
}

#[test]
fn a_loss_is_written_down_before_anything_is_done_and_a_proof_frees_what_it_held_in_the_same_pass() {
    let full = |state: InstanceState| {
        let mut observed = in_state(state);
        observed.pods = vec![pod("orders-0", true)];
        observed.attachments = vec!["csi-1".into()];
        observed
    };
    let freed = |observed: Observed| {
        let actions = vec![gives_up(&observed, 10), out_of_service(&observed), evicts("orders-0")];
        (observed, acts(actions, Reason::InstanceLost).again(5))
    };
    let (terminated, terminated_row) = freed(full(InstanceState::Terminated));
    let (stopped, stopped_row) = freed(full(InstanceState::Stopped));
    let silent = || {
        let mut observed = full(InstanceState::Running);
        silent_since(&mut observed, 0);
        observed.instances.swept_at = Some(at(299));
        observed
    };
    let stopping = full(InstanceState::Stopping);
    let ending = full(InstanceState::ShuttingDown);
    hold(vec![
        ("terminated", terminated, now(), terminated_row),
        ("stopped", stopped, now(), stopped_row),
        (
            "stopping: the proof is awaited",
            stopping.clone(),
            now(),
            acts(vec![gives_up(&stopping, 10)], Reason::InstanceLost).pending().again(120),
        ),
        (
            "terminating: the proof is awaited",
            ending.clone(),
            now(),
            acts(vec![gives_up(&ending, 10)], Reason::InstanceLost).pending().again(120),
        ),
        ("silent for four minutes", silent(), at(299), waits(Reason::NodeNotReady).again(1)),
        (
            "silent for five: EC2 is asked to stop it",
            silent(),
            at(300),
            acts(vec![gives_up(&silent(), 300), Action::Stop(id("i-1"), false)], Reason::InstanceLost).pending().again(120),
        ),
    ]);
}

#[test]
fn a_fence_goes_through_its_stages_and_asks_each_once() {
    let asked = |seconds: i64| Some(Asked { at: at(seconds), held_up: None });
    let running = |change: fn(&mut Observed)| lost(InstanceState::Running, change);
    let stages = |actions: Vec<Action>, again: u64| acts(actions, Reason::InstanceLost).pending().again(again);
    let (stop, force) = (|| Action::Stop(id("i-1"), false), || Action::Stop(id("i-1"), true));
    let end = || terminates("i-1", "it is silent");
    hold(vec![
        ("stop", running(|_| {}), at(301), stages(vec![stop()], 119)),
        ("asked for once", running(|it| it.stop_asked = Some(Asked { at: at(300), held_up: None })), at(304), stages(vec![], 116)),
        (
            "still running long after: once more",
            with_asks(running(|it| it.instances.swept_at = Some(at(306))), asked(300)),
            at(306),
            stages(vec![stop()], 114),
        ),
        ("stopping: awaited", lost(InstanceState::Stopping, |_| {}), at(419), stages(vec![], 1)),
        (
            "stopping for two minutes: by force",
            with_asks(lost(InstanceState::Stopping, |_| {}), asked(300)),
            at(420),
            stages(vec![force()], 120),
        ),
        ("running for two minutes: by force", with_asks(running(|_| {}), asked(400)), at(420), stages(vec![force()], 120)),
        ("by force once", with_asks(lost(InstanceState::Stopping, |_| {}), asked(420)), at(421), stages(vec![], 119)),
        ("for four minutes: terminated", with_asks(lost(InstanceState::Stopping, |_| {}), asked(420)), at(540), stages(vec![end()], 120)),
        (
            "terminated once",
            lost(InstanceState::Stopping, |it| it.asked = BTreeMap::from([(id("i-1"), Asked { at: at(540), held_up: None })])),
            at(541),
            stages(vec![], 119),
        ),
        ("for six: all is asked, and goes on slowly", lost(InstanceState::ShuttingDown, |_| {}), at(660), stages(vec![end()], 120)),
        (
            "slowly",
            lost(InstanceState::ShuttingDown, |it| {
                it.asked = BTreeMap::from([(id("i-1"), Asked { at: at(660), held_up: None })]);
                it.instances.swept_at = Some(at(770));
            }),
            at(779),
            stages(vec![], 120),
        ),
        (
            "and again",
            lost(InstanceState::ShuttingDown, |it| it.asked = BTreeMap::from([(id("i-1"), Asked { at: at(660), held_up: None })])),
            at(780),
            stages(vec![end()], 120),
        ),
        ("being started by somebody: it cannot be stopped yet", lost(InstanceState::Pending, |_| {}), at(301), stages(vec![], 119)),
        ("being started by somebody: terminated in its turn", lost(InstanceState::Pending, |_| {}), at(540), stages(vec![end()], 120)),
        (
            "not shown: asked all the same",
            lost(InstanceState::Running, |it| it.instances.instances.clear()),
            at(301),
            stages(vec![stop()], 119),
        ),
        (
            "stopped from outside and started again after the proof: ended at once",
            with(|it| {
                lost_since(it, 300);
                it.core_node = Some(tainted(core_node()));
            }),
            at(4000),
            stages(vec![end()], 120),
        ),
        (
            "refused: the next stage is asked for in its time",
            with_asks(
                running(|_| {}),
                Some(Asked {
                    at: at(300),
                    held_up: Some(HeldUp { reason: Reason::Forbidden, message: "no".into(), until: Some(at(600)) }),
                }),
            ),
            at(420),
            stages(vec![force()], 120),
        ),
    ]);
}

fn with_asks(mut observed: Observed, asked: Option<Asked>) -> Observed {
    observed.stop_asked = asked;
    observed
}

#[test]
fn after_the_proof_the_machine_is_freed_once_and_the_node_waits_for_its_deletion() {
    let proven = |state: InstanceState, change: fn(&mut Observed)| lost(state, change);
    let all = || {
        lost(InstanceState::Stopped, |it| {
            it.pods = vec![pod("orders-0", true)];
            it.attachments = vec!["csi-1".into()];
        })
    };
    let quiet = || waits(Reason::InstanceLost);
    let first = all();
    hold(vec![
        ("freed", first.clone(), at(310), acts(vec![out_of_service(&first), evicts("orders-0")], Reason::InstanceLost).again(5)),
        (
            "tainted already",
            lost(InstanceState::Stopped, |it| {
                it.core_node = it.core_node.take().map(tainted);
                it.attachments = vec!["csi-1".into()];
            }),
            at(310),
            quiet().again(5),
        ),
        (
            "freed: the Database controller deletes it",
            proven(InstanceState::Terminated, |it| it.core_node = it.core_node.take().map(tainted)),
            at(310),
            quiet(),
        ),
        ("without a Kubernetes node", proven(InstanceState::Terminated, |it| it.core_node = None), at(310), quiet()),
        (
            "forgotten by EC2 after it was shown ended",
            proven(InstanceState::Terminated, |it| {
                it.instances.instances.clear();
                it.core_node = None;
                let fenced = Entry::yes(ConditionType::Fenced, Reason::AsExpected, "stopped");
                status(it).conditions = conditions::merge(&[], &[fenced], Some(3), at(305));
            }),
            at(4000),
            quiet().pending(),
        ),
    ]);
}

#[test]
fn a_lost_machine_is_not_emptied_but_ended_when_its_node_is_deleted_and_is_released_when_nothing_is_attached() {
    let leaves = |state: InstanceState, change: fn(&mut Observed)| deleting(lost(state, change));
    let full = |it: &mut Observed| {
        it.pods = vec![pod("orders-0", true)];
        it.attachments = vec!["csi-1".into()];
    };
    let stopped = leaves(InstanceState::Stopped, full);
    let terminated = leaves(InstanceState::Terminated, full);
    let freed = leaves(InstanceState::Terminated, |it| it.core_node = it.core_node.take().map(tainted));
    hold(vec![
        (
            "still fenced: nothing is drained, and EC2 is asked",
            leaves(InstanceState::Running, full),
            at(301),
            acts(vec![Action::Stop(id("i-1"), false)], Reason::InstanceLost).pending().again(119),
        ),
        (
            "stopped: freed and terminated",
            stopped.clone(),
            at(310),
            acts(vec![out_of_service(&stopped), evicts("orders-0"), terminates("i-1", "it is silent")], Reason::AwaitingTermination)
                .pending(),
        ),
        (
            "terminated: its Kubernetes node stays while something is attached",
            terminated.clone(),
            at(310),
            acts(vec![out_of_service(&terminated), evicts("orders-0")], Reason::AwaitingDetach).again(5),
        ),
        (
            "freed: released",
            freed.clone(),
            at(310),
            acts(vec![Action::ReleaseCoreNode(Box::new(freed.core_node.clone().unwrap())), Action::RemoveFinalizer], Reason::Deleting),
        ),
        (
            "without a Kubernetes node nothing is awaited",
            deleting(lost(InstanceState::Terminated, |it| {
                it.core_node = None;
                it.attachments = vec!["csi-1".into()];
            })),
            at(310),
            acts(vec![Action::RemoveFinalizer], Reason::Deleting),
        ),
    ]);
}

#[test]
fn what_stays_attached_for_long_is_said_with_what_to_look_at() {
    let held = |seconds: i64| {
        let mut observed = deleting(lost(InstanceState::Terminated, |it| it.attachments = vec!["csi-1".into()]));
        let fenced = Entry::yes(ConditionType::Fenced, Reason::AsExpected, "stopped");
        status(&mut observed).conditions = conditions::merge(&[], &[fenced], Some(3), at(305));
        message(&plan(&observed, at(seconds))).to_owned()
    };
    assert!(held(310).contains("csi-1") && !held(604).contains("attacher"), "{}", held(604));
    assert!(held(605).contains(&at(305).to_string()) && held(605).contains("attacher"), "{}", held(605));
}

#[test]
fn a_node_that_was_deleted_by_hand_under_its_database_waits_for_the_move() {
    let labelled = |change: fn(&mut Observed)| {
        let mut observed = deleting(settled());
        observed.core_node.as_mut().unwrap().metadata.labels = Some(BTreeMap::from([(DATABASE_NODE_LABEL.to_owned(), "uid".to_owned())]));
        change(&mut observed);
        observed
    };
    let drains = |observed: &Observed, now: i64| {
        let actions = plan(observed, at(now)).actions;
        actions.iter().any(|action| matches!(action, Action::Cordon(..)))
    };
    // Deleted at 5.
    hold(vec![
        ("awaited", labelled(|_| {}), at(10), waits(Reason::AwaitingMove).again(895)),
        ("a second before the bound", labelled(|_| {}), at(904), waits(Reason::AwaitingMove).again(1)),
    ]);
    assert!(drains(&labelled(|_| {}), 905), "the bound");
    assert!(drains(&deleting(settled()), 10), "without the label");
    let mut silent = labelled(|_| {});
    let labels = silent.core_node.as_ref().unwrap().metadata.labels.clone();
    silent_since(&mut silent, 8);
    silent.core_node.as_mut().unwrap().metadata.labels = labels;
    assert!(drains(&silent, 10), "not well: nobody can move it in good order");
}

#[test]
fn a_kubernetes_node_that_somebody_deletes_under_a_machine_that_is_well_asks_for_a_replacement() {
    let deleted = |it: &mut Observed| it.core_node.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(at(9)));
    let observed = with(deleted);
    hold(vec![
        ("EC2 is being asked whether the machine has ended", observed.clone(), now(), waits(Reason::NodeNotReady).again(9)),
        ("it cannot be undone", observed.clone(), at(19), waits(Reason::KubernetesNodeDeleted)),
    ]);
    let status = after(&observed, 19);
    assert_eq!(condition(&status.conditions, ConditionType::Ready), ("False".into(), "KubernetesNodeDeleted".into()));
    assert_eq!(condition(&status.conditions, ConditionType::Lost), ("False".into(), "Progressing".into()));
}

#[test]
fn a_repair_is_held_back_by_too_many_others_an_old_inventory_and_a_zone_that_looks_down() {
    type Change = fn(&mut Observed);
    let rows: [(&str, InstanceState, Change, bool); 11] = [
        ("alone", InstanceState::Running, |_| {}, true),
        ("four others", InstanceState::Running, |it| it.fleet.repairs = 4, true),
        ("five others", InstanceState::Running, |it| it.fleet.repairs = 5, false),
        ("five others, and this one is terminated", InstanceState::Terminated, |it| it.fleet.repairs = 5, false),
        ("five others of a thousand", InstanceState::Running, |it| (it.fleet.repairs, it.fleet.nodes) = (5, 1000), true),
        ("ten others of a thousand", InstanceState::Running, |it| (it.fleet.repairs, it.fleet.nodes) = (10, 1000), false),
        ("the inventory is three sweeps old", InstanceState::Running, |it| it.instances.swept_at = Some(at(120)), true),
        ("the inventory is older", InstanceState::Running, |it| it.instances.swept_at = Some(at(119)), false),
        ("two of four in its zone", InstanceState::Running, |it| (it.fleet.zone_joined, it.fleet.zone_lost) = (4, 2), true),
        ("three of four in its zone", InstanceState::Running, |it| (it.fleet.zone_joined, it.fleet.zone_lost) = (4, 3), false),
        ("EC2 refuses its zone", InstanceState::Running, |it| it.fleet.zone_refused = true, false),
    ];
    let more: [(&str, InstanceState, Change, bool); 3] = [
        ("three of three: too few to judge a zone", InstanceState::Running, |it| (it.fleet.zone_joined, it.fleet.zone_lost) = (3, 3), true),
        (
            "a terminated one does not come back with its zone",
            InstanceState::Terminated,
            |it| (it.fleet.zone_joined, it.fleet.zone_lost) = (4, 4),
            true,
        ),
        ("a stopped one may", InstanceState::Stopped, |it| (it.fleet.zone_joined, it.fleet.zone_lost) = (4, 4), false),
    ];
    for (name, state, change, begins) in rows.into_iter().chain(more) {
        let mut observed = in_state(state);
        silent_since(&mut observed, 0);
        observed.instances.swept_at = Some(at(299));
        change(&mut observed);
        let plan = plan(&observed, at(300));
        assert_eq!(matches!(plan.actions.first(), Some(Action::GiveUp(_))), begins, "{name}: {plan:?}");
        if !begins {
            assert_eq!(Row::of(plan), waits(Reason::RepairHeldBack).again(5), "{name}");
            let status = after(&observed, 300);
            assert_eq!(condition(&status.conditions, ConditionType::Lost), ("False".into(), "RepairHeldBack".into()), "{name}");
        }
    }
}

/// The status after a pass in which everything that was planned was done.
fn after(observed: &Observed, now: i64) -> NodeStatus {
    let plan = plan(observed, at(now));
    let mut object = observed.node.clone();
    for action in &plan.actions {
        if let Action::GiveUp(fence) = action {
            object.status.get_or_insert_with(NodeStatus::default).fence = Some((**fence).clone());
        }
    }
    told(observed, &plan, &Acted { object, finished: false, held_up: None, error: None }, at(now))
}

fn of(status: &NodeStatus, kind: ConditionType) -> (String, String, String) {
    let found = conditions::find(&status.conditions, kind).unwrap();
    (found.status.clone(), found.reason.clone(), found.message.clone())
}

#[test]
fn a_loss_is_told_from_the_first_suspicion_to_the_proof_with_an_event_each() {
    let events = |old: &NodeStatus, new: &NodeStatus| changes(old, new).into_iter().map(|it| it.reason.as_str()).collect::<Vec<_>>();
    let mut observed = settled();
    let well = after(&observed, 10);
    assert_eq!(of(&well, ConditionType::Lost), ("False".into(), "Progressing".into(), "nothing speaks against the machine".into()));
    assert!(conditions::find(&well.conditions, ConditionType::Fenced).is_none());

    observed.node.status = Some(well.clone());
    silent_since(&mut observed, 20);
    let suspected = after(&observed, 30);
    let (state, reason, words) = of(&suspected, ConditionType::Lost);
    assert_eq!((state.as_str(), reason.as_str()), ("False", "NodeNotReady"));
    assert!(words.contains(&at(20).to_string()) && words.contains(&at(320).to_string()), "{words}");
    assert_eq!(events(&well, &suspected), ["MachineSuspected"]);

    observed.node.status = Some(suspected.clone());
    observed.instances.swept_at = Some(at(318));
    let lost = after(&observed, 320);
    let (state, reason, words) = of(&lost, ConditionType::Lost);
    assert_eq!((state.as_str(), reason.as_str()), ("True", "NodeNotReady"));
    assert!(words.contains(&at(20).to_string()), "{words}");
    assert_eq!(condition(&lost.conditions, ConditionType::Fenced), ("False".into(), "Fencing".into()));
    assert_eq!(condition(&lost.conditions, ConditionType::Ready), ("False".into(), "InstanceLost".into()));
    assert_eq!(events(&suspected, &lost), Vec::<&str>::new(), "the decision has its event where it is written down");

    observed.node.status = Some(lost.clone());
    let failed = after(&observed, 680);
    let (state, reason, words) = of(&failed, ConditionType::Fenced);
    assert_eq!((state.as_str(), reason.as_str()), ("False", "FenceFailed"));
    assert!(words.contains("nothing moves") && words.contains(&at(680).to_string()), "{words}");
    assert_eq!(events(&lost, &failed), ["FenceFailed"]);

    observed.node.status = Some(failed.clone());
    observed.instances.instances[0].state = InstanceState::Stopped;
    let proven = after(&observed, 700);
    let words = "EC2 shows instance i-1 stopped: nothing on it can write any more";
    assert_eq!(of(&proven, ConditionType::Fenced), ("True".into(), "AsExpected".into(), words.into()));
    assert_eq!(of(&proven, ConditionType::Lost), of(&lost, ConditionType::Lost), "and stays so");
    assert_eq!(events(&failed, &proven), ["MachineFenced"]);
    assert_eq!(fenced_after(&failed, &proven), Some(Duration::from_secs(680)));
    assert_eq!(fenced_after(&proven, &proven), None);
}

#[test]
fn a_machine_that_is_taken_down_by_force_says_when_it_is_fenced() {
    let mut observed = deleting(settled());
    assert!(conditions::find(&after(&observed, 10).conditions, ConditionType::Fenced).is_none());
    silent_since(&mut observed, 0);
    assert_eq!(condition(&after(&observed, 300).conditions, ConditionType::Fenced), ("False".into(), "Fencing".into()));
    observed.instances.instances[0].state = InstanceState::Terminated;
    assert_eq!(condition(&after(&observed, 310).conditions, ConditionType::Fenced), ("True".into(), "AsExpected".into()));
}

#[test]
fn an_impairment_is_remembered_from_its_first_sight_and_forgotten_when_it_passes() {
    let mut observed = with(|it| impaired_since(it, 0));
    status(&mut observed).impaired_since = None;
    let first = after(&observed, 10);
    assert_eq!(first.impaired_since, Some(Time(at(10))));
    observed.node.status = Some(first);
    assert_eq!(after(&observed, 50).impaired_since, Some(Time(at(10))));
    observed.instances.unhealthy.clear();
    assert_eq!(after(&observed, 60).impaired_since, None);
}

#[test]
fn the_stages_of_a_fence_are_two_minutes_each() {
    let fence = lost(InstanceState::Running, |_| {}).node.status.unwrap().fence.unwrap();
    let timing = Timing::default();
    let rows = [
        (300, Stage::Stop, 300),
        (419, Stage::Stop, 300),
        (420, Stage::ForceStop, 420),
        (540, Stage::Terminate, 540),
        (660, Stage::Failed, 660),
        (99_999, Stage::Failed, 660),
    ];
    for (now, stage, since) in rows {
        let (is, begun, ends) = Stage::at(&fence, &timing, at(now));
        assert_eq!((is, begun), (stage, at(since)), "{now}");
        assert_eq!(ends.is_none(), stage == Stage::Failed, "{now}");
    }
}
