//! A machine that is declared lost: fenced in stages, freed after the proof, and taken down when its Node is
//! deleted.

use pretty_assertions::assert_eq;

use super::loss::{in_state, lost, lost_since, silent_since, with};
use super::*;
use crate::api::keys::OUT_OF_SERVICE_TAINT;
use crate::controller::memory::issued_requests::IssuedRequest;
use crate::controller::node::plan::judgement::{Lost, Stage};

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
    let silent = || {
        let mut observed = full(InstanceState::Running);
        silent_since(&mut observed, 0);
        observed.instances.swept_at = Some(at(299));
        observed
    };
    hold(vec![
        (
            "terminated",
            full(InstanceState::Terminated),
            now(),
            "[declare lost: InstanceTerminated since 10 s: EC2 reports instance i-1 terminated since \
                2027-01-15T08:00:10Z, taint out of service ip-10-0-0-1, \
                evict team-a/orders-0 orders-0-uid at once] InstanceLost, again in 5 s",
        ),
        (
            "stopped",
            full(InstanceState::Stopped),
            now(),
            "[declare lost: InstanceStopped since 10 s: EC2 reports instance i-1 stopped since \
                2027-01-15T08:00:10Z, taint out of service ip-10-0-0-1, \
                evict team-a/orders-0 orders-0-uid at once] InstanceLost, again in 5 s",
        ),
        (
            "stopping: the proof is awaited",
            full(InstanceState::Stopping),
            now(),
            "[declare lost: InstanceStopped since 10 s: EC2 is stopping instance i-1 since \
                2027-01-15T08:00:10Z] InstanceLost, pending, again in 120 s",
        ),
        (
            "terminating: the proof is awaited",
            full(InstanceState::ShuttingDown),
            now(),
            "[declare lost: InstanceTerminated since 10 s: EC2 is terminating instance i-1 since \
                2027-01-15T08:00:10Z] InstanceLost, pending, again in 120 s",
        ),
        ("silent for four minutes", silent(), at(299), "[] NodeNotReady, again in 1 s"),
        (
            "silent for five: EC2 is asked to stop it",
            silent(),
            at(300),
            "[declare lost: NodeNotReady since 0 s: Kubernetes node ip-10-0-0-1 is not Ready since \
                2027-01-15T08:00:00Z, stop i-1] InstanceLost, pending, again in 120 s",
        ),
    ]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_fence_goes_through_its_stages_and_asks_each_once() {
    let asked = |seconds: i64| Some(IssuedRequest { at: at(seconds), call_blocked: None });
    let running = |change: fn(&mut Observed)| lost(InstanceState::Running, change);
    hold(vec![
        ("stop", running(|_| {}), at(301), "[stop i-1] InstanceLost, pending, again in 119 s"),
        (
            "EC2 shows it with another Node's tags: the status names another database's machine",
            running(|it| {
                it.instances.instances.clear();
                it.is_of_another = true;
            }),
            at(301),
            "[] InstanceLost, pending, again in 119 s",
        ),
        (
            "asked for once",
            running(|it| it.issued_stop = Some(IssuedRequest { at: at(300), call_blocked: None })),
            at(304),
            "[] InstanceLost, pending, again in 116 s",
        ),
        (
            "still running long after: once more",
            with_issued(running(|it| it.instances.swept_at = Some(at(306))), asked(300)),
            at(306),
            "[stop i-1] InstanceLost, pending, again in 114 s",
        ),
        (
            "stopping: awaited",
            lost(InstanceState::Stopping, |_| {}),
            at(419),
            "[] InstanceLost, pending, again in 1 s",
        ),
        (
            "stopping for two minutes: by force",
            with_issued(lost(InstanceState::Stopping, |_| {}), asked(300)),
            at(420),
            "[stop i-1 by force] InstanceLost, pending, again in 120 s",
        ),
        (
            "running for two minutes: by force",
            with_issued(running(|_| {}), asked(400)),
            at(420),
            "[stop i-1 by force] InstanceLost, pending, again in 120 s",
        ),
        (
            "by force once",
            with_issued(lost(InstanceState::Stopping, |_| {}), asked(420)),
            at(421),
            "[] InstanceLost, pending, again in 119 s",
        ),
        (
            "for four minutes: terminated",
            with_issued(lost(InstanceState::Stopping, |_| {}), asked(420)),
            at(540),
            "[terminate i-1: it is silent] InstanceLost, pending, again in 120 s",
        ),
        (
            "terminated once",
            lost(InstanceState::Stopping, |it| {
                it.issued_terminations =
                    BTreeMap::from([(id("i-1"), IssuedRequest { at: at(540), call_blocked: None })]);
            }),
            at(541),
            "[] InstanceLost, pending, again in 119 s",
        ),
        (
            "terminated once, and EC2 shows that since",
            lost(InstanceState::ShuttingDown, |it| {
                it.issued_terminations =
                    BTreeMap::from([(id("i-1"), IssuedRequest { at: at(540), call_blocked: None })]);
                it.instances.swept_at = Some(at(550));
            }),
            at(555),
            "[] InstanceLost, pending, again in 105 s",
        ),
        (
            "for six: all is asked, and goes on slowly",
            lost(InstanceState::ShuttingDown, |_| {}),
            at(660),
            "[terminate i-1: it is silent] InstanceLost, pending, again in 120 s",
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
            "[stop i-1 by force] InstanceLost, pending, again in 120 s",
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
            "[terminate i-1: it is silent] InstanceLost, pending, again in 120 s",
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
            "[] InstanceLost, pending, again in 120 s",
        ),
        (
            "for an hour, the operator was down: it begins with the stop",
            lost(InstanceState::Stopping, |_| {}),
            at(3900),
            "[stop i-1 by force] InstanceLost, pending, again in 120 s",
        ),
        (
            "slowly",
            lost(InstanceState::ShuttingDown, |it| {
                it.issued_terminations =
                    BTreeMap::from([(id("i-1"), IssuedRequest { at: at(660), call_blocked: None })]);
                it.instances.swept_at = Some(at(770));
            }),
            at(779),
            "[] InstanceLost, pending, again in 120 s",
        ),
        (
            "and again",
            lost(InstanceState::ShuttingDown, |it| {
                it.issued_terminations =
                    BTreeMap::from([(id("i-1"), IssuedRequest { at: at(660), call_blocked: None })]);
            }),
            at(780),
            "[terminate i-1: it is silent] InstanceLost, pending, again in 120 s",
        ),
        (
            "being started by another client: it cannot be stopped yet",
            lost(InstanceState::Pending, |_| {}),
            at(301),
            "[] InstanceLost, pending, again in 119 s",
        ),
        (
            "being started by another client: terminated in its turn",
            lost(InstanceState::Pending, |_| {}),
            at(540),
            "[terminate i-1: it is silent] InstanceLost, pending, again in 120 s",
        ),
        (
            "not shown: asked all the same",
            lost(InstanceState::Running, |it| it.instances.instances.clear()),
            at(301),
            "[stop i-1] InstanceLost, pending, again in 119 s",
        ),
        (
            "stopped from outside and started again after the proof, the operator was restarted: stopped at \
                once",
            with(|it| {
                lost_since(it, 300);
                it.core_node = Some(tainted(core_node()));
            }),
            at(4000),
            "[stop i-1 by force] InstanceLost, pending, again in 120 s",
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
            "[stop i-1 by force] InstanceLost, pending, again in 120 s",
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
