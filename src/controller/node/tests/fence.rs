//! A machine that is declared lost: fenced in stages, freed after the proof, and taken down when its Node is
//! deleted.

use pretty_assertions::assert_eq;

use super::loss::{in_state, lost, lost_since, silent_since, with};
use super::*;
use crate::api::keys::OUT_OF_SERVICE_TAINT;
use crate::controller::memory::issued_requests::IssuedRequest;
use crate::controller::node::plan::judgement::{Judgement, Lost, Stage};

fn declares_lost(observed: &Observed, now: i64) -> Action {
    match plan(observed, at(now)).judged.loss {
        Judgement::Due(_, lost) => Action::DeclareLost(Box::new(lost.fence)),
        Judgement::Well | Judgement::Suspected(_) | Judgement::Lost(_) => panic!("it is not due"),
    }
}

pub(super) fn evicts(pod: &str) -> Action {
    Action::EvictPod {
        namespace: "team-a".into(),
        name: pod.into(),
        uid: format!("{pod}-uid"),
        at_once: true,
    }
}

pub(super) fn out_of_service(observed: &Observed) -> Action {
    Action::OutOfService(Box::new(observed.core_node.clone().unwrap()))
}

pub(super) fn tainted(mut core_node: CoreNode) -> CoreNode {
    let taint = serde_json::from_value(json!({"key": OUT_OF_SERVICE_TAINT, "value": "nodeshutdown",
    "effect": "NoExecute"}))
    .unwrap();
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
        let actions = vec![declares_lost(&observed, 10), out_of_service(&observed), evicts("orders-0")];
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
            acts(vec![declares_lost(&stopping, 10)], Reason::InstanceLost).pending().again(120),
        ),
        (
            "terminating: the proof is awaited",
            ending.clone(),
            now(),
            acts(vec![declares_lost(&ending, 10)], Reason::InstanceLost).pending().again(120),
        ),
        ("silent for four minutes", silent(), at(299), waits(Reason::NodeNotReady).again(1)),
        (
            "silent for five: EC2 is asked to stop it",
            silent(),
            at(300),
            acts(vec![declares_lost(&silent(), 300), Action::Stop(id("i-1"), false)], Reason::InstanceLost)
                .pending()
                .again(120),
        ),
    ]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_fence_goes_through_its_stages_and_asks_each_once() {
    let asked = |seconds: i64| Some(IssuedRequest { at: at(seconds), call_blocked: None });
    let running = |change: fn(&mut Observed)| lost(InstanceState::Running, change);
    let stages =
        |actions: Vec<Action>, again: u64| acts(actions, Reason::InstanceLost).pending().again(again);
    let (stop, force) = (|| Action::Stop(id("i-1"), false), || Action::Stop(id("i-1"), true));
    let end = || terminates("i-1", "it is silent");
    hold(vec![
        ("stop", running(|_| {}), at(301), stages(vec![stop()], 119)),
        (
            "EC2 shows it with another Node's tags: the status names another database's machine",
            running(|it| {
                it.instances.instances.clear();
                it.is_of_another = true;
            }),
            at(301),
            stages(vec![], 119),
        ),
        (
            "asked for once",
            running(|it| it.issued_stop = Some(IssuedRequest { at: at(300), call_blocked: None })),
            at(304),
            stages(vec![], 116),
        ),
        (
            "still running long after: once more",
            with_issued(running(|it| it.instances.swept_at = Some(at(306))), asked(300)),
            at(306),
            stages(vec![stop()], 114),
        ),
        ("stopping: awaited", lost(InstanceState::Stopping, |_| {}), at(419), stages(vec![], 1)),
        (
            "stopping for two minutes: by force",
            with_issued(lost(InstanceState::Stopping, |_| {}), asked(300)),
            at(420),
            stages(vec![force()], 120),
        ),
        (
            "running for two minutes: by force",
            with_issued(running(|_| {}), asked(400)),
            at(420),
            stages(vec![force()], 120),
        ),
        (
            "by force once",
            with_issued(lost(InstanceState::Stopping, |_| {}), asked(420)),
            at(421),
            stages(vec![], 119),
        ),
        (
            "for four minutes: terminated",
            with_issued(lost(InstanceState::Stopping, |_| {}), asked(420)),
            at(540),
            stages(vec![end()], 120),
        ),
        (
            "terminated once",
            lost(InstanceState::Stopping, |it| {
                it.issued_terminations =
                    BTreeMap::from([(id("i-1"), IssuedRequest { at: at(540), call_blocked: None })]);
            }),
            at(541),
            stages(vec![], 119),
        ),
        (
            "terminated once, and EC2 shows that since",
            lost(InstanceState::ShuttingDown, |it| {
                it.issued_terminations =
                    BTreeMap::from([(id("i-1"), IssuedRequest { at: at(540), call_blocked: None })]);
                it.instances.swept_at = Some(at(550));
            }),
            at(555),
            stages(vec![], 105),
        ),
        (
            "for six: all is asked, and goes on slowly",
            lost(InstanceState::ShuttingDown, |_| {}),
            at(660),
            stages(vec![end()], 120),
        ),
        (
            "for six, and it runs: both are requested alternately, what was requested longer ago first",
            with_issued(
                running(|it| {
                    it.issued_terminations =
                        BTreeMap::from([(id("i-1"), IssuedRequest { at: at(540), call_blocked: None })]);
                }),
                asked(420),
            ),
            at(660),
            stages(vec![force()], 120),
        ),
        (
            "the end is asked two minutes after the stop",
            with_issued(
                running(|it| {
                    it.issued_terminations =
                        BTreeMap::from([(id("i-1"), IssuedRequest { at: at(540), call_blocked: None })]);
                }),
                asked(660),
            ),
            at(780),
            stages(vec![end()], 120),
        ),
        (
            "and not before",
            with_issued(
                running(|it| {
                    it.issued_terminations =
                        BTreeMap::from([(id("i-1"), IssuedRequest { at: at(540), call_blocked: None })]);
                }),
                asked(660),
            ),
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
                it.issued_terminations =
                    BTreeMap::from([(id("i-1"), IssuedRequest { at: at(660), call_blocked: None })]);
                it.instances.swept_at = Some(at(770));
            }),
            at(779),
            stages(vec![], 120),
        ),
        (
            "and again",
            lost(InstanceState::ShuttingDown, |it| {
                it.issued_terminations =
                    BTreeMap::from([(id("i-1"), IssuedRequest { at: at(660), call_blocked: None })]);
            }),
            at(780),
            stages(vec![end()], 120),
        ),
        (
            "being started by another client: it cannot be stopped yet",
            lost(InstanceState::Pending, |_| {}),
            at(301),
            stages(vec![], 119),
        ),
        (
            "being started by another client: terminated in its turn",
            lost(InstanceState::Pending, |_| {}),
            at(540),
            stages(vec![end()], 120),
        ),
        (
            "not shown: asked all the same",
            lost(InstanceState::Running, |it| it.instances.instances.clear()),
            at(301),
            stages(vec![stop()], 119),
        ),
        (
            "stopped from outside and started again after the proof, the operator was restarted: stopped at \
                once",
            with(|it| {
                lost_since(it, 300);
                it.core_node = Some(tainted(core_node()));
            }),
            at(4000),
            stages(vec![force()], 120),
        ),
        (
            "refused: the next stage is asked for in its time",
            with_issued(
                running(|_| {}),
                Some(IssuedRequest {
                    at: at(300),
                    call_blocked: Some(answered(Call::StopInstances, "UnauthorizedOperation", Some(at(600)))),
                }),
            ),
            at(420),
            stages(vec![force()], 120),
        ),
    ]);
}

fn with_issued(mut observed: Observed, asked: Option<IssuedRequest>) -> Observed {
    observed.issued_stop = asked;
    observed
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
        let lost = Lost::by(fence.clone(), &timing, at(now));
        assert_eq!((lost.stage, lost.begun), (stage, at(since)), "{now}");
        assert_eq!(lost.ends.is_none(), stage == Stage::Failed, "{now}");
    }
}
