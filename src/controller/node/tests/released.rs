//! The rows of an adopted machine that is lost, released, or ended with its Node.

use kube::ResourceExt as _;

use super::adopted::{
    dedicated_core_node, issued, kept, legacy, named, owned, plain_core_node, proven, recorded, served,
    tagged, with, with_tag,
};
use super::*;
use crate::api::keys::{DATABASE_NODE_LABEL, NODE_UID_TAG};
use crate::api::node::Fence;
use crate::controller::memory::issued_requests::IssuedRequest;

#[test]
fn what_would_be_released_is_fenced_for_nothing_and_a_loss_is_as_others() {
    let not_ready = |it: &mut Observed| {
        it.core_node = Some(dedicated_core_node());
        it.core_node.as_mut().unwrap().status = core_node_with(&[], &ready("Unknown", at(-900))).status;
        status(it).not_ready_since = Some(Time(at(-900)));
    };
    let fenced = |it: &mut Observed| {
        let (started_at, since) = (Time(at(0)), Time(at(0)));
        let (cause, message) = ("NodeNotReady".to_owned(), "it is lost".to_owned());
        status(it).fence = Some(Fence { started_at, cause, since, message });
    };
    let rows: Vec<(&str, Observed)> = vec![
        ("stopped", served(InstanceState::Stopped)),
        ("not Ready", with(served(InstanceState::Running), not_ready)),
        ("without its Kubernetes node", with(served(InstanceState::Running), |it| it.core_node = None)),
    ];
    for (name, observed) in rows {
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
    let served = |change: fn(&mut Observed)| deleting(with(served(InstanceState::Running), change));
    let blocked = answered(Call::DeleteTags, "UnauthorizedOperation", Some(at(300)));
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
            "[restore ip-10-0-0-1, untag i-1] Deleting, pending",
        ),
        (
            "the Kubernetes node is restored",
            served(|it| it.core_node = Some(plain_core_node())),
            now(),
            "[untag i-1] Deleting, pending",
        ),
        (
            "the Kubernetes node is gone",
            served(|it| it.core_node = None),
            now(),
            "[untag i-1] Deleting, pending",
        ),
        (
            "the tags were taken off just now",
            served(|it| {
                it.core_node = Some(plain_core_node());
                it.issued_untags = Some(issued(7));
            }),
            now(),
            "[] Deleting, pending",
        ),
        (
            "EC2 refuses to take them off",
            deleting(with(tagged(InstanceState::Running), |it| {
                it.issued_untags = Some(IssuedRequest { at: at(1), call_blocked: Some(blocked) });
            })),
            now(),
            "[] Forbidden, pending, again in 290 s",
        ),
        (
            "the tags are off",
            deleting(with(tagged(InstanceState::Running), |it| {
                left(it);
                it.issued_untags = Some(issued(7));
            })),
            now(),
            "[remove finalizer] Deleting",
        ),
        (
            "the tags are off, and the operator has restarted since",
            deleting(with(tagged(InstanceState::Running), left)),
            now(),
            "[remove finalizer] Deleting",
        ),
        (
            "the tags may be on their way",
            deleting(with(tagged(InstanceState::Running), |it| {
                left(it);
                it.issued_tags = Some(issued(7));
            })),
            now(),
            "[] Deleting, pending",
        ),
        (
            "it is terminated",
            deleting(tagged(InstanceState::Terminated)),
            now(),
            "[remove finalizer] Deleting",
        ),
        ("EC2 does not know it", deleting(recorded(&[])), now(), "[] AwaitingTermination, pending"),
        ("it is proven absent", deleting(proven(recorded(&[]))), now(), "[remove finalizer] Deleting"),
        ("it is stopped", deleting(tagged(InstanceState::Stopped)), now(), "[untag i-1] Deleting, pending"),
        (
            "it was never adopted",
            deleting(named(&with_tag(NODE_UID_TAG, "other-uid"))),
            now(),
            "[remove finalizer] Deleting",
        ),
        (
            "EC2 was not requested to show it",
            deleting(with(recorded(&[]), |it| it.shown_by_id = None)),
            now(),
            "[] Adopting, again in 5 s",
        ),
    ]);
}

#[test]
fn a_node_that_is_deleted_without_a_release_ends_its_machine_as_any_other() {
    let legacy_pod = pod("legacy-db-0", false);
    let untagged = || recorded(&[legacy(InstanceState::Running)]);
    hold(vec![
        (
            "the database's pod has the name that it was created with",
            deleting(kept(with(served(InstanceState::Running), |it| it.pods = vec![legacy_pod]))),
            now(),
            "[cordon ip-10-0-0-1 core-uid, evict team-a/legacy-db-0 legacy-db-0-uid] AwaitingDrain, \
                again in 1 s",
        ),
        (
            "it never joined",
            deleting(kept(tagged(InstanceState::Running))),
            now(),
            "[terminate i-1: its Node is deleted] AwaitingTermination, pending",
        ),
        ("it is not tagged yet", deleting(kept(untagged())), now(), "[tag i-1] Adopting, pending"),
        (
            "it was never adopted",
            deleting(kept(named(&[legacy(InstanceState::Running)]))),
            now(),
            "[remove finalizer] Deleting",
        ),
        (
            "the status was lost",
            deleting(kept(named(&[owned(InstanceState::Running)]))),
            now(),
            "[record i-1] Deleting, pending",
        ),
    ]);
}

/// A machine that Freehold launched, in use, whose Node is deleted and releases it.
fn launched(change: impl FnOnce(&mut Observed)) -> Observed {
    let mut observed = settled();
    observed.node.spec.release = true;
    let labels = observed.core_node.as_mut().unwrap().labels_mut();
    labels.insert(DATABASE_NODE_LABEL.to_owned(), "database-uid".to_owned());
    observed.pods = vec![pod("orders-0", false)];
    observed.tagged = Some(Ok(vec!["i-1".to_owned(), "vol-root-of-i-1".to_owned(), "eni-1".to_owned()]));
    change(&mut observed);
    deleting(observed)
}

#[test]
fn a_machine_that_freehold_launched_is_released_with_its_disks_and_nothing_that_places_the_pod_is_removed() {
    let tags: BTreeMap<String, String> =
        launch(1).tags.into_iter().filter(|(key, _)| key.starts_with("freehold.dev/")).collect();
    assert_eq!(tags.len(), 4, "{tags:?}");
    let released = |it: &mut Observed| it.core_node.as_mut().unwrap().metadata.finalizers = None;
    let bare = |it: &mut Observed| {
        it.tagged = Some(Ok(Vec::new()));
        for instance in &mut it.instances.instances {
            instance.tags.retain(|key, _| !tags.contains_key(key));
        }
    };
    let forbidden = answered(Call::DescribeTags, "UnauthorizedOperation", Some(at(300)));
    let whole = launched(|_| {});
    hold(vec![
        (
            "it serves",
            whole,
            now(),
            "[restore ip-10-0-0-1, untag i-1 with vol-root-of-i-1 and eni-1 {freehold.dev/attempt: 1}] \
                Deleting, pending",
        ),
        (
            "its Kubernetes node is released",
            launched(released),
            now(),
            "[untag i-1 with vol-root-of-i-1 and eni-1 {freehold.dev/attempt: 1}] Deleting, pending",
        ),
        (
            "an instance of an earlier attempt still has the tags",
            launched(|it| {
                released(it);
                it.tagged = Some(Ok(vec!["i-1".to_owned(), "i-0".to_owned(), "vol-of-i-0".to_owned()]));
            }),
            now(),
            "[untag i-1 {freehold.dev/attempt: 1}] Deleting, pending",
        ),
        (
            "EC2 was not requested to show what has the tags",
            launched(|it| {
                released(it);
                it.tagged = None;
            }),
            now(),
            "[] Adopting, again in 5 s",
        ),
        (
            "EC2 does not let the operator read what has the tags",
            launched(|it| {
                released(it);
                it.tagged = Some(Err(Box::new(forbidden)));
            }),
            now(),
            "[] Forbidden, again in 290 s",
        ),
        (
            "nothing has the tags any more, and the inventory is older",
            launched(|it| {
                released(it);
                it.tagged = Some(Ok(Vec::new()));
            }),
            now(),
            "[] Deleting, pending",
        ),
        (
            "the tags are off, and it is found by its token",
            launched(|it| {
                released(it);
                bare(it);
            }),
            now(),
            "[remove finalizer] Deleting",
        ),
        (
            "the tags are off",
            launched(|it| {
                released(it);
                bare(it);
                it.shown_by_id = Some(it.instances.instances.drain(..).collect());
            }),
            now(),
            "[remove finalizer] Deleting",
        ),
    ]);
}

#[test]
fn a_launch_in_doubt_of_a_node_that_is_released_ends_when_its_absence_is_proven() {
    let doubtful = |change: fn(&mut Observed)| {
        deleting(with(attempted(), |it| {
            it.node.spec.release = true;
            change(it);
        }))
    };
    hold(vec![
        ("it is not proven", doubtful(|_| {}), now(), "[] InDoubt, pending"),
        (
            "by its tag alone, which is taken off",
            doubtful(|it| it.instances.empty = EmptyRuns { by_token: None, ..empty(1, 1201) }),
            at(1202),
            "[] InDoubt, pending",
        ),
        (
            "by its token, too",
            doubtful(|it| it.instances.empty = empty(1, 1201)),
            at(1202),
            "[remove finalizer] Deleting",
        ),
        (
            "it was launched after all: it goes on running",
            doubtful(|it| it.instances.instances = vec![instance("i-1", InstanceState::Running)]),
            now(),
            "[record i-1] Deleting, pending",
        ),
    ]);
}

#[test]
fn a_machine_that_freehold_launched_and_is_to_be_released_is_neither_repaired_nor_emptied() {
    let stays = |change: fn(&mut Observed)| {
        let mut observed = settled();
        observed.node.spec.release = true;
        change(&mut observed);
        let plan = plan(&observed, now());
        assert!(plan.actions.is_empty() && !plan.declares_lost(), "{plan:?}");
    };
    stays(|it| {
        it.core_node.as_mut().unwrap().status = core_node_with(&[], &ready("Unknown", at(-900))).status;
        status(it).not_ready_since = Some(Time(at(-900)));
    });
    stays(|it| it.pods = vec![pod("other", false)]);
    // Whether it can be is known before.
    let tagged = |tagged: Option<Result<Vec<String>, Box<CallBlocked>>>| {
        let mut observed = settled();
        (observed.node.spec.release, observed.tagged) = (true, tagged);
        plan(&observed, now()).waiting.map(|waiting| waiting.reason())
    };
    let forbidden = answered(Call::DescribeTags, "UnauthorizedOperation", Some(at(300)));
    assert_eq!(tagged(Some(Ok(Vec::new()))), None);
    assert_eq!(tagged(Some(Err(Box::new(forbidden)))), Some(Reason::Forbidden));
    assert_eq!(tagged(None), Some(Reason::Adopting), "it is read by the next pass");
    let forbidden = answered(Call::DeleteTags, "UnauthorizedOperation", Some(at(300)));
    let adopted = |tagged: Option<Result<Vec<String>, Box<CallBlocked>>>| {
        let observed = with(served(InstanceState::Running), |it| it.tagged = tagged);
        plan(&observed, now()).waiting.map(|waiting| waiting.reason())
    };
    assert_eq!(adopted(Some(Ok(vec!["i-1".to_owned()]))), None);
    assert_eq!(adopted(Some(Err(Box::new(forbidden)))), Some(Reason::Forbidden));
    assert_eq!(adopted(None), Some(Reason::Adopting), "it is read by the next pass");
    // The status was lost while it was released: recorded, and released.
    let lost = launched(|it| it.node.status = None);
    assert_eq!(plan(&lost, now()).actions, [Action::RecordInstance(id("i-1"))]);
}
