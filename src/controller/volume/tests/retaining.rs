//! A volume that is kept: by the policy, by a teardown, and what its record says.

use super::leaving::{detached, retained};
use super::*;

#[test]
fn retain_keeps_the_volume_and_leaves_its_record() {
    let keep = |state: VolumeState| detached(DeletionPolicy::Retain, state, |_| {});
    let mut foreign = record();
    foreign.metadata.labels = None;
    hold(vec![
        (
            "available",
            keep(VolumeState::Available),
            now(),
            "Created: [retain PersistentVolume freehold-volume-uid, remove finalizer] Deleting",
        ),
        (
            "still attached",
            keep(VolumeState::InUse),
            now(),
            "Created: [retain PersistentVolume freehold-volume-uid, remove finalizer] Deleting",
        ),
        (
            "broken",
            keep(VolumeState::Error),
            now(),
            "Created: [retain PersistentVolume freehold-volume-uid, remove finalizer] Deleting",
        ),
        (
            "marked already",
            with(keep(VolumeState::Available), |it| it.persistent_volume = Some(retained())),
            now(),
            "Created: [remove finalizer] Deleting",
        ),
        (
            "it never had a record: one is made, as one that was claimed",
            with(keep(VolumeState::Available), |it| it.persistent_volume = None),
            now(),
            "Created: [create PersistentVolume freehold-volume-uid \
                {metadata.annotations.freehold.dev/credentials-secret: orders-k3f9q-admin, \
                metadata.annotations.freehold.dev/retained-at: 2027-01-15T08:00:10Z, \
                metadata.annotations.freehold.dev/retained-because: the Database was deleted under \
                deletionPolicy Retain, metadata.annotations.freehold.dev/size: 100Gi, \
                metadata.annotations.freehold.dev/volume-type: gp3, metadata.labels.freehold.dev/retained: \
                true, spec.claimRef.uid: volume-uid}, remove finalizer] Deleting",
        ),
        (
            "a foreign object of the record's name is left alone: the volume does not go without a record",
            with(keep(VolumeState::Available), |it| it.persistent_volume = Some(foreign)),
            now(),
            "Created: [] stalled NameConflict, again in 5 s",
        ),
        (
            "another client deletes the record: one that stays follows",
            with(keep(VolumeState::Available), |it| {
                it.persistent_volume.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(at(9)));
            }),
            now(),
            "Created: [] Deleting, again in 5 s",
        ),
        (
            "EC2 has accepted its deletion: it is not kept, whatever is said now",
            with(keep(VolumeState::Available), |it| status(it).deleted_at = Some(Time(at(9)))),
            now(),
            "Created: [] AwaitingVolumeDeletion, pending",
        ),
    ]);
    for policy in [DeletionPolicy::Delete, DeletionPolicy::Snapshot] {
        let torn_down = detached(policy, VolumeState::Available, |it| it.around.is_torn_down = true);
        hold(vec![(
            "the policy was not decided by a person when the namespace is torn down",
            torn_down,
            now(),
            "Created: [retain PersistentVolume freehold-volume-uid \
                {metadata.annotations.freehold.dev/retained-because: its namespace or Freehold's resource \
                definitions were deleted, which keeps every volume}, remove finalizer] Deleting",
        )]);
    }
    assert!(message(&plan(&keep(VolumeState::Available), now())).contains("freehold-volume-uid"));
}

#[test]
fn the_record_names_the_engine_the_size_and_the_claim_that_it_had() {
    let observed = detached(DeletionPolicy::Retain, VolumeState::Available, |it| {
        it.owner = Some(owner("Retain", true));
        it.volume.spec.deletion_decided = true;
        it.around.namespace_uid = Some("uid-of-namespace".into());
        it.volumes.volumes[0].size = 150;
        it.persistent_volume.as_mut().unwrap().spec.as_mut().unwrap().claim_ref.as_mut().unwrap().uid =
            Some("of-the-claim".into());
    });
    let planned = plan(&observed, now());
    let [Action::MarkRetained(record), Action::RemoveFinalizer] = planned.actions.as_slice() else {
        panic!("{planned:?}")
    };
    let note = |key: &str| record.annotations()[&format!("freehold.dev/{key}")].as_str();
    assert_eq!((note("engine"), note("engine-version"), note("size")), ("questdb", "9.3.4", "150Gi"));
    assert_eq!(note("namespace-uid"), "uid-of-namespace");
    assert_eq!(
        record.spec.as_ref().unwrap().claim_ref.as_ref().unwrap().uid.as_deref(),
        Some("of-the-claim")
    );
}

#[test]
fn a_volume_deleted_by_hand_is_kept_as_long_as_its_database_lives() {
    let planned = plan(
        &detached(DeletionPolicy::Delete, VolumeState::Available, |it| {
            it.owner = Some(owner("Delete", false));
        }),
        now(),
    );
    assert_eq!(planned.actions, []);
    assert_eq!(planned.waiting.map(|waiting| waiting.reason()), Some(Reason::Deleting));
}

#[test]
fn a_volume_that_is_deleted_ends_nothing_before_its_database_has_decided_or_is_gone() {
    let claimed = |change: fn(&mut Observed)| {
        let mut observed = deleting(DeletionPolicy::Delete, settled());
        says(&mut observed, ConditionType::Bound, true, Reason::AsExpected, at(1));
        observed.owner = Some(owner("Delete", true));
        change(&mut observed);
        observed
    };
    hold(vec![
        ("its Database has not decided", claimed(|_| {}), now(), "Bound: [] Deleting, again in 60 s"),
        (
            "nor in a teardown",
            claimed(|it| it.around.is_torn_down = true),
            now(),
            "Bound: [] Deleting, again in 60 s",
        ),
        (
            "nor where only its own definition is deleted",
            claimed(|it| (it.owner, it.around.is_torn_down) = (Some(owner("Delete", false)), true)),
            now(),
            "Bound: [] Deleting, again in 60 s",
        ),
        (
            "nor where Kubernetes has taken the owner off",
            claimed(|it| (it.owner, it.ownership) = (None, Ownership::Unowned)),
            now(),
            "Bound: [] Deleting, again in 5 s",
        ),
        (
            "and it is as far as it was",
            claimed(|it| status(it).conditions.clear()),
            now(),
            "Nothing: [] Deleting, again in 60 s",
        ),
        (
            "decided",
            claimed(|it| it.volume.spec.deletion_decided = true),
            now(),
            "Bound: [delete claim orders-k3f9q] AwaitingDetach",
        ),
        (
            "its Database is gone",
            claimed(|it| it.owner = None),
            now(),
            "Bound: [delete claim orders-k3f9q] AwaitingDetach",
        ),
        (
            "its Database has lost the finalizer, and Kubernetes deletes it once this Volume is gone",
            claimed(|it| it.owner.as_mut().unwrap().metadata.finalizers = None),
            now(),
            "Bound: [delete claim orders-k3f9q] AwaitingDetach",
        ),
    ]);
    let released = claimed(|it| it.volume.spec.release = true);
    assert!(message(&plan(&released, now())).contains("vol-1"), "and a release needs no other decision");
}

#[test]
fn the_policy_that_counts_is_the_newest_of_the_database() {
    let planned = plan(
        &detached(DeletionPolicy::Delete, VolumeState::Available, |it| {
            it.owner = Some(owner("Retain", true));
            it.volume.spec.deletion_decided = true;
        }),
        now(),
    );
    assert!(
        !planned.actions.iter().any(|action| matches!(action, Action::DeleteVolume(_))),
        "{:?}",
        planned.actions
    );
    assert!(planned.actions.contains(&Action::RemoveFinalizer), "{:?}", planned.actions);
}

#[test]
fn the_volume_of_a_database_that_is_protected_or_to_be_released_is_retained_whatever_was_decided_before() {
    let deletes = |change: fn(&mut crate::api::Database)| {
        let world = detached(DeletionPolicy::Delete, VolumeState::Available, |it| {
            let mut owner = owner("Delete", true);
            change(&mut owner);
            it.owner = Some(owner);
            it.volume.spec.deletion_decided = true;
        });
        plan(&world, now()).actions.iter().any(|action| matches!(action, Action::DeleteVolume(_)))
    };
    assert!(deletes(|_| {}));
    assert!(!deletes(|owner| owner.spec.deletion_protection = true));
    assert!(!deletes(|owner| owner.spec.release = true));
    let without_finalizer = detached(DeletionPolicy::Retain, VolumeState::Available, |it| {
        it.owner = Some(owner("Delete", true));
        it.owner.as_mut().unwrap().metadata.finalizers = Some(vec!["example.com/other".to_owned()]);
    });
    let planned = plan(&without_finalizer, now());
    assert!(!planned.actions.iter().any(|it| matches!(it, Action::DeleteVolume(_))), "{planned:?}");
}

#[test]
fn a_volume_is_retained_whatever_its_policy_while_kubernetes_takes_its_owner_off_and_after_that_by_its_own() {
    let because = |observed: &Observed| match plan(observed, now()).actions.as_slice() {
        [Action::MarkRetained(record), Action::RemoveFinalizer] => {
            record.annotations().get("freehold.dev/retained-because").cloned()
        }
        _ => None,
    };
    let expected = "the Database was deleted with the propagation policy Orphan, which keeps every volume";
    let orphaning = detached(DeletionPolicy::Delete, VolumeState::Available, |it| {
        let mut owner = owner("Delete", true);
        owner.metadata.finalizers.as_mut().unwrap().push("orphan".to_owned());
        it.volume.spec.deletion_decided = true;
        it.owner = Some(owner);
    });
    assert_eq!(because(&orphaning).as_deref(), Some(expected));
    let orphaned = |policy: DeletionPolicy| {
        detached(policy, VolumeState::Available, |it| it.volume.metadata.owner_references = None)
    };
    assert_eq!(because(&orphaned(DeletionPolicy::Retain)).as_deref(), Some(expected));
    assert_eq!(because(&orphaned(DeletionPolicy::Delete)), None, "it was deleted by a person");
}

/// The Database that owns the Volume, with this policy.
pub(super) fn owner(policy: &str, deleting: bool) -> crate::api::Database {
    let mut metadata = serde_json::json!({"name": "orders", "namespace": "team-a", "uid": "database-uid",
    "finalizers": [FINALIZER]});
    if deleting {
        metadata["deletionTimestamp"] = serde_json::json!("2027-01-01T00:00:00Z");
    }
    let spec = serde_json::json!({
        "engine": {"type": "questdb", "version": "9.3.4"},
        "storage": {"size": "100Gi"},
        "deletionPolicy": policy,
    });
    let database = serde_json::json!({"apiVersion": "freehold.dev/v1alpha1", "kind": "Database",
    "metadata": metadata, "spec": spec});
    serde_json::from_value(database).unwrap()
}
