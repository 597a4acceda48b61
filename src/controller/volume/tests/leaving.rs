//! A Volume that is being deleted: the claim, then Retain or Delete, then its record.

use super::bound::ending;
use super::*;

/// A settled world whose claim has gone and whose EBS volume is in this state.
pub(super) fn detached(
    policy: DeletionPolicy,
    state: VolumeState,
    change: impl FnOnce(&mut Observed),
) -> Observed {
    let mut observed = deleting(policy, settled());
    observed.claim = None;
    observed.volumes.volumes[0].state = state;
    change(&mut observed);
    observed
}

pub(super) const BY_POLICY: &str = "the Database was deleted under deletionPolicy Retain";

/// The PersistentVolume as the record of what was kept for this reason.
pub(super) fn kept(because: &str) -> PersistentVolume {
    let mut kept = retained();
    let marks = [("at", "2027-01-15T08:00:10Z"), ("because", because)]
        .map(|(key, value)| (format!("freehold.dev/retained-{key}"), value));
    kept.annotations_mut().extend(marks.map(|(key, value)| (key, value.to_owned())));
    kept.annotations_mut().insert("freehold.dev/size".into(), "100Gi".into());
    kept.annotations_mut().insert("freehold.dev/volume-type".into(), "gp3".into());
    kept.annotations_mut().insert("freehold.dev/credentials-secret".into(), "orders-k3f9q-admin".into());
    kept.spec.as_mut().unwrap().claim_ref.as_mut().unwrap().uid = Some("volume-uid".into());
    kept
}

pub(super) fn retained() -> PersistentVolume {
    let mut record = record();
    record.labels_mut().insert("freehold.dev/retained".into(), "true".into());
    record
}

#[test]
fn the_claim_goes_first_and_only_ours() {
    let claimed = deleting(DeletionPolicy::Delete, settled());
    hold(vec![
        ("asked once", claimed.clone(), now(), "Bound: [delete claim orders-k3f9q] AwaitingDetach"),
        (
            "not before the PersistentVolume outlives it",
            with(claimed.clone(), |it| it.persistent_volume = Some(ending())),
            now(),
            "Nothing: [change PersistentVolume freehold-volume-uid {spec.persistentVolumeReclaimPolicy: \
                Retain}] AwaitingBinding, again in 5 s",
        ),
        (
            "kept by Kubernetes while a pod uses it",
            with(claimed.clone(), |it| {
                it.claim.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(at(6)));
            }),
            now(),
            "Bound: [] AwaitingDetach",
        ),
        (
            "another's claim is left alone",
            with(claimed, |it| {
                it.claim.as_mut().unwrap().metadata.owner_references = None;
                it.volume.spec.deletion_policy = DeletionPolicy::Retain;
            }),
            now(),
            "Created: [retain PersistentVolume freehold-volume-uid, remove finalizer] Deleting",
        ),
        (
            "others' finalizers are theirs",
            with(deleting(DeletionPolicy::Delete, world()), |it| it.volume.metadata.finalizers = None),
            now(),
            "Nothing: [] Deleting",
        ),
        (
            "EC2 was not seen yet",
            with(deleting(DeletionPolicy::Delete, world()), |it| it.volumes.swept_at = None),
            now(),
            "Nothing: [] AwaitingInventory",
        ),
    ]);
}

#[test]
fn a_volume_that_was_never_recorded_is_released_only_when_none_can_come() {
    let leaves = |observed: Observed| deleting(DeletionPolicy::Delete, observed);
    hold(vec![
        ("nothing was ever decided", leaves(world()), now(), "Nothing: [remove finalizer] Deleting"),
        (
            "an attempt without an answer is never sent again",
            leaves(attempted()),
            now(),
            "Nothing: [] InDoubt, pending",
        ),
        (
            "one empty sweep releases nothing",
            with(leaves(attempted()), |it| it.volumes.empty = Some(run(9, 9))),
            now(),
            "Nothing: [] InDoubt, pending",
        ),
        (
            "absence is proven",
            with(leaves(attempted()), |it| it.volumes.empty = Some(run(1, 1201))),
            at(1202),
            "Nothing: [remove finalizer] Deleting",
        ),
        (
            "it was made after all: the policy says what becomes of it",
            with(leaves(attempted()), |it| {
                it.volumes.volumes = vec![ebs("vol-1", 1, VolumeState::Available)];
            }),
            now(),
            "Nothing: [record vol-1] Deleting, pending",
        ),
        (
            "refused for certain",
            with(leaves(world()), |it| status(it).creation = Some(refused("InvalidParameterValue", at(2)))),
            now(),
            "Nothing: [remove finalizer] Deleting",
        ),
        (
            "the status was lost: what carries our UID is recorded",
            with(leaves(world()), |it| it.volumes.volumes = vec![ebs("vol-1", 1, VolumeState::Available)]),
            now(),
            "Nothing: [record vol-1] Deleting",
        ),
        (
            "the status was lost: what the PersistentVolume names is, too",
            with(leaves(world()), |it| it.persistent_volume = Some(record())),
            now(),
            "Nothing: [record vol-1] Deleting",
        ),
        (
            "of several a person picks",
            with(leaves(world()), |it| {
                it.volumes.volumes =
                    vec![ebs("vol-1", 1, VolumeState::InUse), ebs("vol-2", 2, VolumeState::Available)];
            }),
            now(),
            "Nothing: [] stalled InDoubt",
        ),
        ("still being made", leaves(created(VolumeState::Creating)), now(), "Nothing: [] Creating, pending"),
    ]);
}

#[test]
fn delete_deletes_only_what_is_available_ours_and_detached() {
    let gone =
        |state: VolumeState, change: fn(&mut Observed)| detached(DeletionPolicy::Delete, state, change);
    hold(vec![
        (
            "available",
            gone(VolumeState::Available, |_| {}),
            now(),
            "Created: [delete vol-1] AwaitingVolumeDeletion, pending",
        ),
        (
            "the driver has not detached it",
            gone(VolumeState::Available, |it| it.attachments = vec!["csi-1".into()]),
            now(),
            "Created: [] AwaitingDetach, again in 5 s",
        ),
        ("in use", gone(VolumeState::InUse, |_| {}), now(), "Created: [] AwaitingDetach, pending"),
        ("broken", gone(VolumeState::Error, |_| {}), now(), "Created: [] AwaitingDetach, pending"),
        (
            "a state of a later day",
            gone(VolumeState::Unknown, |_| {}),
            now(),
            "Created: [] AwaitingDetach, pending",
        ),
        (
            "a tag of ours was taken off",
            gone(VolumeState::Available, |it| {
                it.volumes.volumes[0].tags.remove("freehold.dev/volume-uid");
            }),
            now(),
            "Created: [] AwaitingVolumeDeletion, pending",
        ),
        (
            "another cluster's",
            gone(VolumeState::Available, |it| {
                it.volumes.volumes[0].tags.insert("freehold.dev/cluster-id".into(), "other".into());
            }),
            now(),
            "Created: [] AwaitingVolumeDeletion, pending",
        ),
        (
            "asked for once",
            gone(VolumeState::Available, |it| status(it).deleted_at = Some(Time(at(9)))),
            now(),
            "Created: [] AwaitingVolumeDeletion, pending",
        ),
        (
            "refused: its pause",
            gone(VolumeState::Available, |it| {
                it.issued = BTreeMap::from([(Call::DeleteVolume, forbidden(5, 305))]);
            }),
            now(),
            "Created: [] Forbidden, pending, again in 295 s",
        ),
        (
            "refused: the pause is over",
            gone(VolumeState::Available, |it| {
                it.issued = BTreeMap::from([(Call::DeleteVolume, forbidden(5, 305))]);
            }),
            at(305),
            "Created: [delete vol-1] AwaitingVolumeDeletion, pending",
        ),
        (
            "EC2 shows it being deleted by another hand",
            gone(VolumeState::Deleting, |_| {}),
            now(),
            "Created: [note deleted] AwaitingVolumeDeletion, pending",
        ),
        (
            "noted once",
            gone(VolumeState::Deleted, |it| status(it).deleted_at = Some(Time(at(9)))),
            now(),
            "Created: [] AwaitingVolumeDeletion, pending",
        ),
    ]);
}

#[test]
fn the_record_and_the_finalizer_go_when_the_volume_was_deleted_and_is_not_shown_any_more() {
    let gone = |change: fn(&mut Observed)| {
        detached(DeletionPolicy::Delete, VolumeState::Available, |it| {
            it.volumes.volumes.clear();
            change(it);
        })
    };
    hold(vec![
        (
            "never asked for, and not shown: not on one sweep",
            gone(|_| {}),
            now(),
            "Nothing: [] AwaitingVolumeDeletion, pending",
        ),
        (
            "asked for, and the sweep is older",
            gone(|it| status(it).deleted_at = Some(Time(at(9)))),
            now(),
            "Nothing: [] AwaitingVolumeDeletion, pending",
        ),
        (
            "asked for in the second of the sweep",
            gone(|it| status(it).deleted_at = Some(Time(at(7)))),
            now(),
            "Nothing: [] AwaitingVolumeDeletion, pending",
        ),
        (
            "asked for, and a later sweep does not show it",
            gone(|it| status(it).deleted_at = Some(Time(at(6)))),
            now(),
            "Nothing: [delete PersistentVolume freehold-volume-uid, remove finalizer] Deleting",
        ),
        (
            "absence is proven",
            gone(|it| it.volumes.empty = Some(run(1, 1201))),
            at(1202),
            "Nothing: [] AwaitingVolumeDeletion, pending, reads vol-1, again in 5 s",
        ),
        (
            "absence is proven, and EC2 does not show it by its id",
            gone(|it| {
                it.volumes.empty = Some(run(1, 1201));
                it.by_id = ById::NotShown;
            }),
            at(1202),
            "Nothing: [delete PersistentVolume freehold-volume-uid, remove finalizer] Deleting, pending",
        ),
        (
            "absence is proven, and EC2 shows it by its id: its tags were taken off",
            gone(|it| {
                it.volumes.empty = Some(run(1, 1201));
                it.by_id = ById::Shown(Box::new(ebs("vol-1", 1, VolumeState::Available)));
            }),
            at(1202),
            "Nothing: [] VolumeLost, pending, again in 60 s",
        ),
        (
            "a second short of it",
            gone(|it| it.volumes.empty = Some(run(1, 1200))),
            at(1202),
            "Nothing: [] AwaitingVolumeDeletion, pending",
        ),
        (
            "absence is proven without the attempt",
            gone(|it| {
                status(it).creation = None;
                it.volumes.empty = Some(run(1, 1201));
                it.by_id = ById::NotShown;
            }),
            at(1202),
            "Nothing: [delete PersistentVolume freehold-volume-uid, remove finalizer] Deleting, pending",
        ),
        (
            "a foreign object of the record's name stays",
            gone(|it| {
                status(it).deleted_at = Some(Time(at(6)));
                it.persistent_volume.as_mut().unwrap().metadata.labels = None;
            }),
            now(),
            "Nothing: [remove finalizer] Deleting",
        ),
    ]);
}
