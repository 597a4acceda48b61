//! A machine that is given up: fenced in stages, freed after the proof, and taken down when its Node is deleted.

use pretty_assertions::assert_eq;

use super::loss::{in_state, lost, lost_since, silent_since, with};
use super::*;
use crate::api::keys::{DATABASE_NODE_LABEL, OUT_OF_SERVICE_TAINT};
use crate::controller::memory::issued_requests::Asked;
use crate::controller::node::plan::fence::Stage;
use crate::controller::node::plan::loss::{Judgement, judge};
use crate::controller::waiting::HeldUp;

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
            "for six, and it runs: both are asked by turns, what was asked longer ago first",
            with_asks(running(|it| it.asked = BTreeMap::from([(id("i-1"), Asked { at: at(540), held_up: None })])), asked(420)),
            at(660),
            stages(vec![force()], 120),
        ),
        (
            "the end is asked two minutes after the stop",
            with_asks(running(|it| it.asked = BTreeMap::from([(id("i-1"), Asked { at: at(540), held_up: None })])), asked(660)),
            at(780),
            stages(vec![end()], 120),
        ),
        (
            "and not before",
            with_asks(running(|it| it.asked = BTreeMap::from([(id("i-1"), Asked { at: at(540), held_up: None })])), asked(660)),
            at(779),
            stages(vec![], 120),
        ),
        (
            "for an hour, the operator was down: it begins with the stop",
            lost(InstanceState::Stopping, |_| {}),
            at(3900),
            stages(vec![force()], 120),
        ),
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
            "stopped from outside and started again after the proof, the operator was restarted: stopped at once",
            with(|it| {
                lost_since(it, 300);
                it.core_node = Some(tainted(core_node()));
            }),
            at(4000),
            stages(vec![force()], 120),
        ),
        (
            "refused: the next stage is asked for in its time",
            with_asks(
                running(|_| {}),
                Some(Asked {
                    at: at(300),
                    held_up: Some(HeldUp { reason: Reason::Forbidden, class: None, message: "no".into(), until: Some(at(600)) }),
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
        message(&plan(&observed, at(seconds)))
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
