//! A machine that is proven to have stopped: what is freed, in which order, and what its Node waits for.

use super::fence::{evicts, out_of_service, tainted};
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
    let quiet = || waits(Reason::InstanceLost);
    let first = all();
    hold(vec![
        (
            "freed",
            first.clone(),
            at(310),
            acts(vec![out_of_service(&first), evicts("orders-0")], Reason::InstanceLost).again(5),
        ),
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
        (
            "without a Kubernetes node",
            proven(InstanceState::Terminated, |it| it.core_node = None),
            at(310),
            quiet(),
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
            quiet().pending(),
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
            acts(
                vec![out_of_service(&stopped), evicts("orders-0"), terminates("i-1", "it is silent")],
                Reason::AwaitingTermination,
            )
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
            acts(
                vec![
                    Action::ReleaseCoreNode(Box::new(freed.core_node.clone().unwrap())),
                    Action::RemoveFinalizer,
                ],
                Reason::Deleting,
            ),
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
    let awaits = || waits(Reason::AwaitingMove);
    // Deleted at 5.
    hold(vec![
        ("its Database moves it", labelled(|_| {}), at(10), awaits().again(60)),
        ("however long that takes", labelled(|_| {}), at(100_000), awaits().again(60)),
        ("not Ready for two seconds", labelled(silent), at(10), awaits().again(5)),
        ("nor for five minutes", labelled(silent), at(307), awaits().again(5)),
        (
            "its Database is being deleted and moves nothing: a second before the bound",
            labelled(|it| it.ownership = Ownership::Unowned),
            at(904),
            awaits().again(1),
        ),
        (
            "nothing moved it while no operator ran",
            labelled(|it| (it.ownership, it.leading_since) = (Ownership::Unowned, at(1000))),
            at(1010),
            awaits().again(5),
        ),
    ]);
    assert!(drains(&labelled(|it| it.ownership = Ownership::Unowned), 905), "the bound");
    assert!(drains(&deleting(settled()), 10), "without the label");
    assert!(drains(&labelled(|it| it.ownership = Ownership::Orphaned), 10), "no Database moves it");
    assert!(drains(&labelled(silent), 308), "not Ready for five minutes: it is not coming back");
    let stopped = labelled(|it| it.instances.instances[0].state = InstanceState::Stopped);
    assert!(drains(&stopped, 10), "nothing runs there");
}
