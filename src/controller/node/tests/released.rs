//! The rows of an adopted machine that is lost, released, or ended with its Node.

use super::adopted::{
    dedicated_core_node, issued, kept, legacy, named, own_tags, owned, plain_core_node, proven, recorded,
    served, tagged, with, with_tag,
};
use super::*;
use crate::api::keys::NODE_UID_TAG;
use crate::api::node::Fence;
use crate::controller::memory::issued_requests::IssuedRequest;

#[test]
fn what_would_be_released_is_fenced_for_nothing_and_a_loss_is_as_others() {
    let not_ready = |it: &mut Observed| {
        it.core_node = Some(dedicated_core_node());
        it.core_node.as_mut().unwrap().status = core_node_with(&[], &ready("Unknown", at(-900))).status;
    };
    let fenced = |it: &mut Observed| {
        let (started_at, since) = (Time(at(0)), Time(at(0)));
        let (cause, message) = ("NodeNotReady".to_owned(), "it is lost".to_owned());
        status(it).fence = Some(Fence { started_at, cause, since, message });
    };
    for (name, observed) in [
        ("stopped", served(InstanceState::Stopped)),
        ("not Ready", with(served(InstanceState::Running), not_ready)),
        ("without its Kubernetes node", with(served(InstanceState::Running), |it| it.core_node = None)),
    ] {
        let released = plan(&observed, now());
        assert!(!released.declares_lost() && released.actions.is_empty(), "{name}: {released:?}");
        assert!(released.waiting.is_some(), "{name}");
        let is_in_grace = name.starts_with("without");
        assert_eq!(plan(&kept(observed), now()).declares_lost(), !is_in_grace, "{name}");
    }
    for observed in [served(InstanceState::Terminated), kept(served(InstanceState::Terminated))] {
        assert!(plan(&observed, now()).declares_lost());
    }
    let lost = with(served(InstanceState::Running), fenced);
    assert_eq!(plan(&lost, now()).actions, [], "what is to be released is stopped no more");
    assert_eq!(plan(&kept(lost), now()).actions, [Action::Stop(id("i-1"), false)]);
}

#[test]
fn a_machine_is_released_as_it_was_and_goes_on_running() {
    let restore = || Action::RestoreCoreNode(Box::new(dedicated_core_node()));
    let untag = || Action::Untag(id("i-1"), own_tags());
    let served = |change: fn(&mut Observed)| deleting(with(served(InstanceState::Running), change));
    let blocked = answered(Call::DeleteTags, "UnauthorizedOperation", Some(at(300)));
    let finalizer = || vec![Action::RemoveFinalizer];
    let releasing = |actions| acts(actions, Reason::Deleting).pending();
    let left = |it: &mut Observed| {
        it.instances.instances.clear();
        it.core_node = Some(plain_core_node());
        it.shown_by_id = Some(vec![legacy(InstanceState::Running)]);
    };
    hold(vec![
        (
            "it serves, and its database runs",
            served(|it| {
                it.pods = vec![pod("orders-0", false)];
                it.attachments = vec!["csi-1".to_owned()];
            }),
            now(),
            releasing(vec![restore(), untag()]),
        ),
        (
            "the Kubernetes node is restored",
            served(|it| it.core_node = Some(plain_core_node())),
            now(),
            releasing(vec![untag()]),
        ),
        ("the Kubernetes node is gone", served(|it| it.core_node = None), now(), releasing(vec![untag()])),
        (
            "the tags were taken off just now",
            served(|it| {
                it.core_node = Some(plain_core_node());
                it.issued_untags = Some(issued(7));
            }),
            now(),
            releasing(Vec::new()),
        ),
        (
            "EC2 refuses to take them off",
            deleting(with(tagged(InstanceState::Running), |it| {
                it.issued_untags = Some(IssuedRequest { at: at(1), call_blocked: Some(blocked) });
            })),
            now(),
            waits(Reason::Forbidden).pending().again(290),
        ),
        (
            "the tags are off",
            deleting(with(tagged(InstanceState::Running), |it| {
                left(it);
                it.issued_untags = Some(issued(7));
            })),
            now(),
            acts(finalizer(), Reason::Deleting),
        ),
        (
            "the tags are off, and the operator has restarted since",
            deleting(with(tagged(InstanceState::Running), left)),
            now(),
            acts(finalizer(), Reason::Deleting),
        ),
        (
            "the tags may be on their way",
            deleting(with(tagged(InstanceState::Running), |it| {
                left(it);
                it.issued_tags = Some(issued(7));
            })),
            now(),
            releasing(Vec::new()),
        ),
        (
            "it is terminated",
            deleting(tagged(InstanceState::Terminated)),
            now(),
            acts(finalizer(), Reason::Deleting),
        ),
        (
            "EC2 does not know it",
            deleting(recorded(&[])),
            now(),
            waits(Reason::AwaitingTermination).pending(),
        ),
        ("it is proven absent", deleting(proven(recorded(&[]))), now(), acts(finalizer(), Reason::Deleting)),
        ("it is stopped", deleting(tagged(InstanceState::Stopped)), now(), releasing(vec![untag()])),
        (
            "it was never adopted",
            deleting(named(&with_tag(NODE_UID_TAG, "other-uid"))),
            now(),
            acts(finalizer(), Reason::Deleting),
        ),
        (
            "EC2 was not requested to show it",
            deleting(with(recorded(&[]), |it| it.shown_by_id = None)),
            now(),
            waits(Reason::Adopting).again(5),
        ),
    ]);
}

#[test]
fn a_node_that_is_deleted_without_a_release_ends_its_machine_as_any_other() {
    let terminate = || acts(vec![terminates("i-1", "its Node is deleted")], Reason::AwaitingTermination);
    let cordon = Action::Cordon(CORE_NODE.to_owned(), "core-uid".to_owned());
    let legacy_pod = pod("legacy-db-0", false);
    let evict = Action::EvictPod {
        namespace: "team-a".to_owned(),
        name: "legacy-db-0".to_owned(),
        uid: "legacy-db-0-uid".to_owned(),
        at_once: false,
    };
    let untagged = || recorded(&[legacy(InstanceState::Running)]);
    hold(vec![
        (
            "the database's pod has the name that it was created with",
            deleting(kept(with(served(InstanceState::Running), |it| it.pods = vec![legacy_pod]))),
            now(),
            acts(vec![cordon, evict], Reason::AwaitingDrain).again(1),
        ),
        ("it never joined", deleting(kept(tagged(InstanceState::Running))), now(), terminate().pending()),
        (
            "it is not tagged yet",
            deleting(kept(untagged())),
            now(),
            acts(vec![Action::Tag(id("i-1"), own_tags())], Reason::Adopting).pending(),
        ),
        (
            "it was never adopted",
            deleting(kept(named(&[legacy(InstanceState::Running)]))),
            now(),
            acts(vec![Action::RemoveFinalizer], Reason::Deleting),
        ),
        (
            "the status was lost",
            deleting(kept(named(&[owned(InstanceState::Running)]))),
            now(),
            acts(vec![Action::RecordInstance(id("i-1"))], Reason::Deleting).pending(),
        ),
    ]);
}
