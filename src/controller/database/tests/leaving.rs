//! How a Database's resources are deleted, step by step, and that each step may be the first of a new
//! process.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::api::{ConditionType, DeletionPolicy, Reason};
use crate::controller::conditions;
use crate::controller::database::plan::plan;
use crate::controller::database::status::{Decided, status as status_of};
use crate::controller::pass::acted::Acted;

/// The end of every deletion whose children are all there.
const DOWN: &str = "delete StatefulSet orders, delete Service orders, delete ConfigMap orders-config, delete \
        ServiceAccount orders-gqmgm, delete NetworkPolicy orders, delete PodDisruptionBudget orders, \
        remove finalizer";

#[test]
fn a_protected_database_that_is_deleted_goes_on_until_the_protection_is_lifted() {
    let protected = |is_protected: bool| {
        let mut world = settled_as(json!({"deletionPolicy": "Delete", "deletionProtection": true}));
        world.database.spec.deletion_protection = is_protected;
        deleting(&mut world.database, 1);
        world
    };
    let kept = protected(true);
    assert_eq!(kept.volume.ours().unwrap().spec.deletion_policy, DeletionPolicy::Retain);
    assert_eq!(line(&plan(&kept, now())), "[] as wanted");
    let acted = Acted::new(kept.database.clone());
    let decided = Decided::of(&kept, &plan(&kept, now()), &acted);
    let status = status_of(&kept, &decided, &acted, now());
    assert!(conditions::is_true(&status.conditions, ConditionType::Ready));
    assert!(conditions::is_true(&status.conditions, ConditionType::DeletionProtected));

    let mut lost = protected(true);
    lost.nodes.clear();
    assert!(line(&plan(&lost, now())).starts_with("[create node 2 "), "it is repaired");
    assert!(line(&plan(&protected(false), now())).starts_with("[scale set-uid to 0]"));
}

#[test]
fn the_deletion_of_the_namespace_takes_a_protected_database_and_retains_its_volume() {
    let mut world = settled_as(json!({"deletionPolicy": "Delete", "deletionProtection": true}));
    deleting(&mut world.database, 1);
    world.torn_down.namespace = true;
    assert!(line(&plan(&world, now())).starts_with("[scale set-uid to 0]"));
    let world = without_machine(stopped(world));
    assert_eq!(
        line(&plan(&world, now())),
        format!("[{DECIDED}, delete volume-uid] AwaitingVolume"),
        "its policy"
    );
}

/// The Volume may end as its policy says.
const DECIDED: &str = "update volume-uid {\"deletionDecided\":true}";

#[test]
fn a_database_that_is_protected_after_all_withdraws_that_its_volume_may_end_unless_it_is_ending() {
    let protected = |is_deleted: bool| {
        let mut world = settled_as(json!({"deletionProtection": true}));
        change(&mut world.volume, |volume| volume.spec.deletion_decided = true);
        if is_deleted {
            change(&mut world.volume, |volume| deleting(volume, 1));
        }
        deleting(&mut world.database, 1);
        planned(&world)
    };
    assert_eq!(protected(false), "[update volume-uid {\"deletionDecided\":null}] Progressing");
    assert!(!protected(true).contains("deletionDecided"));
}

/// The settled world of a Database with this policy, on its way out.
fn leaving(policy: &str) -> Observed {
    let mut world = settled_as(json!({"deletionPolicy": policy}));
    deleting(&mut world.database, 1);
    world
}

fn planned(world: &Observed) -> String {
    line(&plan(world, now()))
}

fn stopped(mut world: Observed) -> Observed {
    change(&mut world.stateful_set, |set| set.spec.as_mut().unwrap().replicas = Some(0));
    world.pod = None;
    world
}

fn without_machine(world: Observed) -> Observed {
    let mut world = stopped(world);
    (world.nodes, world.core_nodes, world.labelled) = (Vec::new(), Vec::new(), Vec::new());
    world
}

fn without_disk(world: Observed) -> Observed {
    Observed { volume: Child::Absent, ..without_machine(world) }
}

#[test]
fn the_house_comes_down_in_order() {
    let mut world = leaving("Retain");
    assert_eq!(planned(&world), "[scale set-uid to 0] AwaitingStop");
    deleting(world.pod.as_mut().unwrap(), now().as_second() + 100);
    change(&mut world.stateful_set, |set| set.spec.as_mut().unwrap().replicas = Some(0));
    assert_eq!(planned(&world), "[] AwaitingStop");
    let mut world = stopped(world);
    let released = "[unlabel ip-10-0-0-1 ip-10-0-0-1-uid, delete orders-gqmgm-1 orders-gqmgm-1-uid] \
        AwaitingNode";
    assert_eq!(planned(&world), released);
    world.labelled = Vec::new();
    deleting(&mut world.nodes[0], 1);
    assert_eq!(planned(&world), "[] AwaitingNode");
    let mut world = without_machine(world);
    assert_eq!(planned(&world), format!("[{DECIDED}, delete volume-uid] AwaitingVolume"));
    change(&mut world.volume, |volume| deleting(volume, 1));
    assert_eq!(planned(&world), format!("[{DECIDED}] AwaitingVolume"), "another client has deleted it");
    change(&mut world.volume, |volume| volume.spec.deletion_decided = true);
    assert_eq!(planned(&world), "[] AwaitingVolume");
    let mut world = without_disk(world);
    assert_eq!(planned(&world), format!("[keep orders-admin, delete secret-uid, {DOWN}] Deleting"));
    world.retained = ours(HeldSecret(secret_with(b"kept")));
    assert_eq!(planned(&world), format!("[delete secret-uid, {DOWN}] Deleting"));
    world.credentials = Credentials::Read(Child::Absent);
    assert_eq!(planned(&world), format!("[{DOWN}] Deleting"));
    world.database.metadata.finalizers = None;
    assert_eq!(planned(&world), "[] Deleting");
}

#[test]
fn the_policy_decides_over_the_secret() {
    let rows = [
        ("Retain", format!("[keep orders-admin, delete secret-uid, {DOWN}] Deleting")),
        ("Snapshot", format!("[keep orders-admin, delete secret-uid, {DOWN}] Deleting")),
        ("Delete", format!("[delete secret-uid, {DOWN}] Deleting")),
    ];
    for (policy, expected) in &rows {
        assert_eq!(planned(&without_disk(leaving(policy))), *expected, "{policy}");
    }
    let after = |policy: DeletionPolicy| {
        let mut world = without_disk(leaving("Delete"));
        world.database.status.as_mut().unwrap().volume_deletion_policy = Some(policy);
        planned(&world)
    };
    assert_eq!(after(DeletionPolicy::Retain), rows[0].1, "its volume was retained before that");
    assert_eq!(after(DeletionPolicy::Delete), rows[2].1);
    let deleted = without_machine(leaving("Snapshot"));
    let acted = Acted::new(deleted.database.clone());
    let decided = Decided::of(&deleted, &plan(&deleted, now()), &acted);
    let status = status_of(&deleted, &decided, &acted, now());
    assert_eq!(status.volume_deletion_policy, Some(DeletionPolicy::Snapshot));
}

#[test]
fn the_volume_learns_the_newest_policy_before_it_is_deleted() {
    let mut world = without_machine(leaving("Retain"));
    world.database.spec.deletion_policy = crate::api::DeletionPolicy::Delete;
    assert_eq!(
        planned(&world),
        "[update volume-uid {\"deletionDecided\":true,\"deletionPolicy\":\"Delete\"}, delete volume-uid] AwaitingVolume"
    );
    change(&mut world.volume, |volume| deleting(volume, 1));
    assert_eq!(
        planned(&world),
        "[update volume-uid {\"deletionDecided\":true,\"deletionPolicy\":\"Delete\"}] AwaitingVolume"
    );
}

#[test]
fn nothing_is_destroyed_when_the_namespace_or_the_definitions_go() {
    let definitions = TornDown { namespace: false, definitions: true };
    let namespace = TornDown { namespace: true, definitions: false };
    for torn_down in [definitions, namespace] {
        let world = Observed { torn_down, ..without_machine(leaving("Delete")) };
        let expected = "[update volume-uid {\"deletionDecided\":true,\"deletionPolicy\":\"Retain\"}, delete volume-uid] \
            AwaitingVolume";
        assert_eq!(planned(&world), expected, "{torn_down:?}");
    }
    let world = Observed { torn_down: definitions, ..without_disk(leaving("Delete")) };
    assert_eq!(planned(&world), format!("[keep orders-admin, delete secret-uid, {DOWN}] Deleting"));
    // Nothing can be created in a namespace that goes: the Secret goes with it.
    let world = Observed { torn_down: namespace, ..without_disk(leaving("Delete")) };
    assert_eq!(planned(&world), format!("[{DOWN}] Deleting"));
}

#[test]
fn a_spec_that_cannot_be_does_not_keep_the_house() {
    let mut world = without_disk(leaving("Delete"));
    world.profile = Err(engine::EngineError::CustomMissing);
    assert_eq!(planned(&world), format!("[delete secret-uid, {DOWN}] Deleting"));
}

#[test]
fn what_belongs_to_others_is_left_alone() {
    let mut world = empty(json!({}), json!({}));
    deleting(&mut world.database, 1);
    world.stateful_set = Child::Foreign;
    world.volume = Child::Foreign;
    world.credentials = Credentials::Read(Child::Foreign);
    assert_eq!(planned(&world), "[remove finalizer] Deleting");
}

#[test]
fn a_database_that_was_never_built_goes_at_once() {
    let mut world = empty(json!({}), json!({}));
    deleting(&mut world.database, 1);
    assert_eq!(planned(&world), "[remove finalizer] Deleting");
}

#[test]
fn a_pod_that_hangs_on_a_dead_machine_does_not_keep_the_house() {
    let mut world = leaving("Retain");
    change(&mut world.stateful_set, |set| set.spec.as_mut().unwrap().replicas = Some(0));
    deleting(world.pod.as_mut().unwrap(), now().as_second() - 1);
    assert_eq!(
        planned(&world),
        "[unlabel ip-10-0-0-1 ip-10-0-0-1-uid, delete orders-gqmgm-1 orders-gqmgm-1-uid] AwaitingNode"
    );
}

#[test]
fn every_node_goes_whatever_its_ordinal() {
    let mut world = stopped(leaving("Retain"));
    world.nodes.push(ready_node(&world, 2));
    let expected = "[unlabel ip-10-0-0-1 ip-10-0-0-1-uid, delete orders-gqmgm-1 orders-gqmgm-1-uid, delete \
        orders-gqmgm-2 orders-gqmgm-2-uid] AwaitingNode";
    assert_eq!(planned(&world), expected);
}

#[test]
fn credentials_that_cannot_be_read_or_kept_hold_the_deletion_and_say_why() {
    let mut world = without_disk(leaving("Retain"));
    world.credentials = Credentials::Unreadable("forbidden".to_owned());
    let unreadable = plan(&world, now());
    assert_eq!(line(&unreadable), "[] stalled CredentialsUnreadable");
    assert!(unreadable.requeue.is_some());
    let mut world = without_disk(leaving("Retain"));
    world.retained = Child::Foreign;
    let taken = plan(&world, now());
    assert_eq!(line(&taken), "[] stalled NameConflict");
    assert_eq!(taken.waiting.unwrap().reason(), Reason::NameConflict);
    for (policy, is_kept) in [("Retain", true), ("Delete", false)] {
        let mut world = without_disk(leaving(policy));
        world.credentials = Credentials::Read(Child::Foreign);
        let unlabelled = plan(&world, now());
        if is_kept {
            assert_eq!(line(&unlabelled), "[] stalled NameConflict");
            let message = unlabelled.waiting.unwrap().message();
            assert!(message.contains("restore its label freehold.dev/database-uid"), "{message}");
        } else {
            assert_eq!(line(&unlabelled), format!("[{DOWN}] Deleting"));
        }
    }
}

#[test]
fn a_database_that_is_deleted_with_the_policy_orphan_goes_as_ever_and_its_volume_is_retained() {
    // Kubernetes sets its finalizer with the deletion, and removes it with the last owner reference.
    let orphaning = |mut world: Observed| {
        world.database.metadata.finalizers.as_mut().unwrap().push("orphan".to_owned());
        world
    };
    let orphaned = |mut world: Observed| {
        let bare = |meta: &mut ObjectMeta| meta.owner_references = None;
        world.nodes.iter_mut().for_each(|node| bare(&mut node.metadata));
        if let Child::Ours(volume) = &mut world.volume {
            bare(&mut volume.metadata);
        }
        change(&mut world.stateful_set, |it| bare(&mut it.metadata));
        change(&mut world.service, |it| bare(&mut it.metadata));
        world
    };
    for step in [orphaning as fn(Observed) -> Observed, orphaned] {
        let first = plan(&step(leaving("Delete")), now());
        assert_eq!(line(&first), "[scale set-uid to 0] AwaitingStop");
        assert!(first.requeue.is_some(), "what has no owner reference wakes no Database");
        let stopped = plan(&step(stopped(leaving("Delete"))), now());
        assert!(line(&stopped).contains("delete orders-gqmgm-1"), "{}", line(&stopped));
        assert!(stopped.requeue.is_some());
        let released = planned(&step(without_machine(leaving("Delete"))));
        let expected = "[update volume-uid {\"deletionDecided\":true,\"deletionPolicy\":\"Retain\"}, delete volume-uid] AwaitingVolume";
        assert_eq!(released, expected);
        let last = planned(&step(without_disk(leaving("Delete"))));
        assert!(last.starts_with("[keep orders-admin"), "they stay with the data: {last}");
    }
}
