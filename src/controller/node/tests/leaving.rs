//! A Node that is being deleted, from every stage: cordon, pods, volumes, termination, release.

use super::loss::silent_since;
use super::*;
use crate::controller::memory::issued_requests::IssuedRequest;
use crate::controller::memory::sends::Sent;

pub(super) fn leaves(observed: Observed, change: impl FnOnce(&mut Observed)) -> Observed {
    let mut observed = deleting(observed);
    change(&mut observed);
    observed
}

fn cordoned() -> CoreNode {
    let mut core_node = core_node();
    core_node.spec.as_mut().unwrap().unschedulable = Some(true);
    core_node
}

#[test]
fn a_node_that_has_no_machine_is_released_only_when_none_can_come() {
    hold(vec![
        (
            "others' finalizers are theirs",
            leaves(world(), |it| it.node.metadata.finalizers = Some(vec!["else".into()])),
            now(),
            "[] Deleting",
        ),
        (
            "EC2 was not seen yet",
            leaves(world(), |it| it.instances.swept_at = None),
            now(),
            "[] AwaitingInventory",
        ),
        ("nothing was ever decided", deleting(world()), now(), "[remove finalizer] Deleting"),
        (
            "an attempt without an answer is never sent again",
            deleting(attempted()),
            now(),
            "[] InDoubt, pending",
        ),
        (
            "nor when its pause is over",
            leaves(attempted(), |it| {
                it.sent = Some(Sent {
                    last: at(1),
                    times: 1,
                    in_doubt: true,
                    refused_after_doubt: false,
                    not_before: at(2),
                });
            }),
            now(),
            "[] InDoubt, pending",
        ),
        ("nor without a class", leaves(attempted(), |it| it.class = None), now(), "[] InDoubt, pending"),
        (
            "one empty sweep releases nothing",
            leaves(attempted(), |it| it.instances.empty = empty(9, 9)),
            now(),
            "[] InDoubt, pending",
        ),
        (
            "absence is proven",
            leaves(attempted(), |it| it.instances.empty = empty(1, 1201)),
            at(1202),
            "[remove finalizer] Deleting",
        ),
        (
            "it was launched after all: recorded, then taken down",
            leaves(attempted(), |it| it.instances.instances = vec![instance("i-1", InstanceState::Running)]),
            now(),
            "[record i-1] Deleting, pending",
        ),
        (
            "refused for certain",
            deleting(with_launch(world(), refused("InvalidAMIID.NotFound", at(2)))),
            now(),
            "[remove finalizer] Deleting",
        ),
        (
            "the status was lost: a machine of ours goes the whole way",
            leaves(world(), |it| it.instances.instances = vec![instance("i-1", InstanceState::Running)]),
            now(),
            "[record i-1] Deleting, pending",
        ),
        (
            "the status was lost, and only the tags are ours: neither recorded nor terminated, nor awaited",
            leaves(world(), |it| it.instances.instances = vec![copy_of_our_tags("i-1")]),
            now(),
            "[remove finalizer] Deleting",
        ),
        (
            "the status was lost, and the machine is ending",
            leaves(world(), |it| it.instances.instances = vec![instance("i-1", InstanceState::ShuttingDown)]),
            now(),
            "[] AwaitingTermination, pending",
        ),
    ]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_machine_is_emptied_before_it_is_terminated() {
    let full = |change: fn(&mut Observed)| {
        leaves(settled(), |it| {
            it.core_node = Some(cordoned());
            change(it);
        })
    };
    hold(vec![
        (
            "cordoned first, and pods are asked to end",
            leaves(settled(), |it| it.pods = vec![pod("orders-0", false)]),
            now(),
            "[cordon ip-10-0-0-1 core-uid, evict team-a/orders-0 orders-0-uid] AwaitingDrain, again in 1 s",
        ),
        (
            "a pod is asked once",
            full(|it| it.pods = vec![pod("orders-0", true)]),
            now(),
            "[] AwaitingDrain, again in 1 s",
        ),
        (
            "a VolumeAttachment",
            full(|it| it.attachments = vec!["csi-1".into()]),
            now(),
            "[] AwaitingDetach, again in 5 s",
        ),
        ("empty", full(|_| {}), now(), "[terminate i-1: its Node is deleted] AwaitingTermination, pending"),
        (
            "empty, and not cordoned yet",
            deleting(settled()),
            now(),
            "[cordon ip-10-0-0-1 core-uid, terminate i-1: its Node is deleted] AwaitingTermination, pending",
        ),
        (
            "the CSI driver says detached while an older sweep shows the volume",
            full(data_of),
            now(),
            "[terminate i-1: its Node is deleted] AwaitingTermination, pending",
        ),
        (
            "before it joined",
            deleting(launched(InstanceState::Pending)),
            now(),
            "[terminate i-1: its Node is deleted] AwaitingTermination, pending",
        ),
        (
            "while its kubelet is awaited",
            deleting(launched(InstanceState::Running)),
            now(),
            "[terminate i-1: its Node is deleted] AwaitingTermination, pending",
        ),
        (
            "its Kubernetes node is gone and a volume is attached",
            leaves(launched(InstanceState::Running), data_of),
            now(),
            "[] AwaitingDetach, again in 1 s",
        ),
        (
            "EC2 shows it stopped: nothing runs there",
            full(|it| {
                it.instances.instances[0].state = InstanceState::Stopped;
                it.pods = vec![pod("orders-0", true)];
                it.attachments = vec!["csi-1".into()];
            }),
            now(),
            "[terminate i-1: its Node is deleted] AwaitingTermination, pending",
        ),
        (
            "its kubelet has been silent for four minutes",
            full(|it| {
                silent_since(it, 0);
                it.core_node.as_mut().unwrap().spec.as_mut().unwrap().unschedulable = Some(true);
                it.pods = vec![pod("orders-0", true)];
            }),
            at(299),
            "[] AwaitingDrain, again in 1 s",
        ),
        (
            "for five: termination is the fence",
            full(|it| {
                silent_since(it, 0);
                it.core_node.as_mut().unwrap().spec.as_mut().unwrap().unschedulable = Some(true);
                it.pods = vec![pod("orders-0", true)];
                it.attachments = vec!["csi-1".into()];
            }),
            at(300),
            "[terminate i-1: its Node is deleted] AwaitingTermination, pending",
        ),
        (
            "its pod has not ended five minutes after its grace, though its kubelet is Ready",
            full(|it| {
                it.pods = vec![pod("orders-0", true)];
                it.attachments = vec!["csi-1".into()];
            }),
            at(306),
            "[terminate i-1: its Node is deleted] AwaitingTermination, pending",
        ),
        (
            "a second before",
            full(|it| it.pods = vec![pod("orders-0", true)]),
            at(305),
            "[] AwaitingDrain, again in 1 s",
        ),
        (
            "drained for five minutes, and a volume is not detached",
            full(|it| {
                it.attachments = vec!["csi-1".into()];
                drained_at(it, 10);
            }),
            at(310),
            "[terminate i-1: its Node is deleted] AwaitingTermination, pending",
        ),
        (
            "a second before that",
            full(|it| {
                it.attachments = vec!["csi-1".into()];
                drained_at(it, 10);
            }),
            at(309),
            "[] AwaitingDetach, again in 5 s",
        ),
        (
            "without a Kubernetes node there is none to detach: nor is that awaited for ever",
            leaves(launched(InstanceState::Running), |it| {
                data_of(it);
                drained_at(it, 10);
            }),
            at(310),
            "[terminate i-1: its Node is deleted] AwaitingTermination, pending",
        ),
        (
            "terminating",
            full(|it| it.instances.instances[0].state = InstanceState::ShuttingDown),
            now(),
            "[] AwaitingTermination, pending",
        ),
        (
            "asked for once",
            full(|it| {
                it.issued_terminations =
                    BTreeMap::from([(id("i-1"), IssuedRequest { at: at(9), call_blocked: None })]);
            }),
            now(),
            "[] AwaitingTermination, pending",
        ),
        (
            "the class is gone",
            full(|it| it.class = None),
            now(),
            "[terminate i-1: its Node is deleted] AwaitingTermination, pending",
        ),
    ]);
}

fn drained_at(observed: &mut Observed, seconds: i64) {
    let drained = Entry::yes(ConditionType::Drained, Reason::AsExpected, "drained");
    status(observed).conditions = conditions::merge(&[], &[drained], Some(3), at(seconds));
}

fn data_of(observed: &mut Observed) {
    observed.instances.instances[0].volumes.push(VolumeId("vol-data".into()));
}

#[test]
fn what_is_awaited_is_named() {
    let mut observed = deleting(settled());
    observed.pods = vec![pod("orders-0", true)];
    assert!(message(&plan(&observed, now())).contains("team-a/orders-0"));
    observed.pods.clear();
    observed.attachments = vec!["csi-1".into()];
    assert!(message(&plan(&observed, now())).contains("csi-1"));
}

#[test]
fn the_finalizers_go_when_the_machine_is_seen_terminated_or_proven_absent() {
    let gone = |change: fn(&mut Observed)| {
        leaves(settled(), |it| {
            it.instances.instances[0].state = InstanceState::Terminated;
            change(it);
        })
    };
    hold(vec![
        ("seen terminated", gone(|_| {}), now(), "[release ip-10-0-0-1, remove finalizer] Deleting"),
        (
            "its pods are deleted at once: nothing can run them",
            gone(|it| it.pods = vec![pod("orders-0", true)]),
            now(),
            "[taint out of service ip-10-0-0-1, evict team-a/orders-0 orders-0-uid at once, \
                release ip-10-0-0-1, remove finalizer] Deleting",
        ),
        ("without a Kubernetes node", gone(|it| it.core_node = None), now(), "[remove finalizer] Deleting"),
        (
            "EC2 does not show it: not on one sweep",
            leaves(settled(), |it| it.instances.instances.clear()),
            now(),
            "[] AwaitingTermination, pending",
        ),
        (
            "EC2 does not show it, and the status was lost but for the id: neither",
            leaves(settled(), |it| {
                it.instances.instances.clear();
                status(it).creation = None;
            }),
            now(),
            "[] AwaitingTermination, pending",
        ),
        (
            "absence is proven",
            leaves(settled(), |it| {
                it.instances.instances.clear();
                it.instances.empty = empty(1, 1201);
                it.core_node = None;
            }),
            at(1202),
            "[remove finalizer] Deleting",
        ),
        (
            "EC2 never shows it, and its kubelet is Ready: it may be another account's EC2",
            leaves(settled(), |it| {
                it.instances.instances.clear();
                it.instances.empty = empty(1, 1201);
            }),
            at(100_000),
            "[] AwaitingTermination, pending",
        ),
        (
            "absence is proven without the attempt",
            leaves(settled(), |it| {
                it.instances.instances.clear();
                status(it).creation = None;
                it.instances.empty = EmptyRuns { by_token: None, ..empty(1, 1201) };
                it.core_node = None;
            }),
            at(1202),
            "[remove finalizer] Deleting",
        ),
    ]);
}
