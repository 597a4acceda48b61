//! A machine that is proven to have stopped: what is freed, in which order, and what its Node waits for.

use super::fence::tainted;
use super::loss::{lost, silent_since};
use super::*;
use crate::api::keys::DATABASE_NODE_LABEL;

#[test]
fn after_the_proof_the_machine_is_freed_once_and_the_node_waits_for_its_deletion() {
    let proven = |state: InstanceState, change: fn(&mut Observed)| lost(state, change);
    let all = || {
        lost(InstanceState::Stopped, |it| {
            it.pods = vec![pod("orders-0", true)];
            it.attachments = vec!["csi-1".into()];
        })
    };
    let named = proven(InstanceState::Terminated, |it| it.core_node = it.core_node.take().map(tainted));
    let with_attachment = |mut it: Observed| {
        it.attachments = vec!["csi-1".into()];
        it
    };
    hold(vec![
        (
            "freed",
            all(),
            at(310),
            "[taint out of service ip-10-0-0-1, evict team-a/orders-0 orders-0-uid at once] InstanceLost, \
                again in 5 s",
        ),
        (
            "tainted already",
            lost(InstanceState::Stopped, |it| {
                it.core_node = it.core_node.take().map(tainted);
                it.attachments = vec!["csi-1".into()];
            }),
            at(310),
            "[] InstanceLost, again in 5 s",
        ),
        (
            "terminated: its name is free for another machine with its address",
            named.clone(),
            at(310),
            "[release ip-10-0-0-1] InstanceLost",
        ),
        (
            "terminated: its Kubernetes node stays while something is attached",
            with_attachment(named),
            at(310),
            "[] InstanceLost, again in 5 s",
        ),
        (
            "terminated: its Kubernetes node is released once",
            proven(InstanceState::Terminated, |it| {
                it.core_node = it.core_node.take().map(tainted);
                it.core_node.as_mut().unwrap().metadata.finalizers = None;
            }),
            at(310),
            "[] InstanceLost",
        ),
        (
            "stopped: it has its address, and the Database controller deletes it",
            proven(InstanceState::Stopped, |it| it.core_node = it.core_node.take().map(tainted)),
            at(310),
            "[] InstanceLost",
        ),
        (
            "without a Kubernetes node",
            proven(InstanceState::Terminated, |it| it.core_node = None),
            at(310),
            "[] InstanceLost",
        ),
        (
            "forgotten by EC2 after it was shown ended",
            proven(InstanceState::Terminated, |it| {
                it.instances.instances.clear();
                it.core_node = None;
                let fenced = Entry::yes(ConditionType::Fenced, Reason::AsExpected, "stopped");
                status(it).conditions = conditions::merge(&[], &[fenced], Some(3), at(305));
            }),
            at(4000),
            "[] InstanceLost, pending",
        ),
    ]);
}

#[test]
fn a_lost_machine_is_not_emptied_but_ended_when_its_node_is_deleted_and_is_released_when_nothing_is_attached()
{
    let leaves = |state: InstanceState, change: fn(&mut Observed)| deleting(lost(state, change));
    let full = |it: &mut Observed| {
        it.pods = vec![pod("orders-0", true)];
        it.attachments = vec!["csi-1".into()];
    };
    let freed = leaves(InstanceState::Terminated, |it| it.core_node = it.core_node.take().map(tainted));
    hold(vec![
        (
            "still fenced: nothing is drained, and EC2 is asked",
            leaves(InstanceState::Running, full),
            at(301),
            "[stop i-1] InstanceLost, pending, again in 119 s",
        ),
        (
            "stopped: freed and terminated",
            leaves(InstanceState::Stopped, full),
            at(310),
            "[taint out of service ip-10-0-0-1, evict team-a/orders-0 orders-0-uid at once, \
                terminate i-1: it is silent] AwaitingTermination, pending",
        ),
        (
            "terminated: its Kubernetes node stays while something is attached",
            leaves(InstanceState::Terminated, full),
            at(310),
            "[taint out of service ip-10-0-0-1, evict team-a/orders-0 orders-0-uid at once] AwaitingDetach, \
                again in 5 s",
        ),
        ("freed: released", freed, at(310), "[release ip-10-0-0-1, remove finalizer] Deleting"),
        (
            "without a Kubernetes node nothing is awaited",
            deleting(lost(InstanceState::Terminated, |it| {
                it.core_node = None;
                it.attachments = vec!["csi-1".into()];
            })),
            at(310),
            "[remove finalizer] Deleting",
        ),
    ]);
}

#[test]
fn what_stays_attached_for_long_is_said_with_what_to_look_at() {
    let held = |seconds: i64| {
        let mut observed =
            deleting(lost(InstanceState::Terminated, |it| it.attachments = vec!["csi-1".into()]));
        let fenced = Entry::yes(ConditionType::Fenced, Reason::AsExpected, "stopped");
        status(&mut observed).conditions = conditions::merge(&[], &[fenced], Some(3), at(305));
        message(&plan(&observed, at(seconds)))
    };
    assert!(held(310).contains("csi-1") && !held(604).contains("attacher"), "{}", held(604));
    assert!(held(605).contains(&at(305).to_string()) && held(605).contains("attacher"), "{}", held(605));
}

/// Its kubelet is silent since 8, and its labels stay.
fn silent(it: &mut Observed) {
    let labels = it.core_node.as_ref().unwrap().metadata.labels.clone();
    silent_since(it, 8);
    it.core_node.as_mut().unwrap().metadata.labels = labels;
}

#[test]
fn a_node_that_was_deleted_by_hand_under_its_database_waits_for_the_move() {
    let labelled = |change: fn(&mut Observed)| {
        let mut observed = deleting(settled());
        observed.core_node.as_mut().unwrap().metadata.labels =
            Some(BTreeMap::from([(DATABASE_NODE_LABEL.to_owned(), "uid".to_owned())]));
        change(&mut observed);
        observed
    };
    let drains = |observed: &Observed, now: i64| {
        let actions = plan(observed, at(now)).actions;
        actions.iter().any(|action| matches!(action, Action::Cordon(..)))
    };
    // Deleted at 5.
    hold(vec![
        ("its Database moves it", labelled(|_| {}), at(10), "[] AwaitingMove, again in 60 s"),
        ("however long that takes", labelled(|_| {}), at(100_000), "[] AwaitingMove, again in 60 s"),
        ("not Ready for two seconds", labelled(silent), at(10), "[] AwaitingMove, again in 5 s"),
        ("nor for five minutes", labelled(silent), at(307), "[] AwaitingMove, again in 5 s"),
        (
            "its Database is being deleted and moves nothing: a second before the bound",
            labelled(|it| it.ownership = Ownership::Unowned),
            at(904),
            "[] AwaitingMove, again in 1 s",
        ),
        (
            "nothing moved it while no operator ran",
            labelled(|it| (it.ownership, it.leading_since) = (Ownership::Unowned, at(1000))),
            at(1010),
            "[] AwaitingMove, again in 5 s",
        ),
    ]);
    assert!(drains(&labelled(|it| it.ownership = Ownership::Unowned), 905), "the bound");
    assert!(drains(&deleting(settled()), 10), "without the label");
    assert!(drains(&labelled(|it| it.ownership = Ownership::Orphaned), 10), "no Database moves it");
    assert!(drains(&labelled(silent), 308), "not Ready for five minutes: it is not coming back");
    let stopped = labelled(|it| it.instances.instances[0].state = InstanceState::Stopped);
    assert!(drains(&stopped, 10), "nothing runs there");
}
