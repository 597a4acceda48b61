//! The EBS volume is there: its PersistentVolume, then its claim, and foreign objects of their names.

use super::growth::wanted;
use super::*;

fn available() -> Observed {
    created(VolumeState::Available)
}

fn with_record(change: impl FnOnce(&mut PersistentVolume)) -> Observed {
    let mut record = record();
    change(&mut record);
    with(available(), |it| it.persistent_volume = Some(record))
}

fn used(record: &mut PersistentVolume) {
    record.spec.as_mut().unwrap().claim_ref.as_mut().unwrap().uid = Some("old-claim".into());
}

/// Another client deletes the claim.
fn going(observed: &mut Observed) {
    observed.claim.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(at(9)));
}

/// A claim whose PersistentVolume was deleted.
fn lost() -> Observed {
    with(settled(), |it| {
        let claim = it.claim.as_mut().unwrap();
        claim.metadata.uid = Some("claim-uid".into());
        claim.status.as_mut().unwrap().phase = Some("Lost".into());
    })
}

/// The record of vol-1, after another client has written the policy Delete.
pub(super) fn ending() -> PersistentVolume {
    let mut ending = record();
    ending.spec.as_mut().unwrap().persistent_volume_reclaim_policy = Some("Delete".to_owned());
    ending
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn the_persistent_volume_is_made_first_then_the_claim_then_they_bind() {
    let mut reopened = record();
    used(&mut reopened);
    hold(vec![
        (
            "the record first",
            available(),
            now(),
            "Created: [create PersistentVolume freehold-volume-uid] AwaitingBinding",
        ),
        (
            "a state of a later day is one that is there",
            created(VolumeState::Unknown),
            now(),
            "Created: [create PersistentVolume freehold-volume-uid] AwaitingBinding",
        ),
        (
            "no class to make it by",
            with(available(), |it| it.class = None),
            now(),
            "Created: [] stalled NodeClassNotFound, again in 60 s",
        ),
        (
            "then the claim",
            with_record(|_| {}),
            now(),
            "Created: [create claim orders-k3f9q] AwaitingBinding",
        ),
        (
            "no class to make the claim by",
            with(with_record(|_| {}), |it| it.class = None),
            now(),
            "Created: [] stalled NodeClassNotFound, again in 60 s",
        ),
        (
            "a record that was claimed before waits for the claim",
            with_record(used),
            now(),
            "Created: [create claim orders-k3f9q] AwaitingBinding",
        ),
        (
            "and is opened again once the claim is there",
            with(settled(), |it| {
                it.claim.as_mut().unwrap().status.as_mut().unwrap().phase = Some("Pending".into());
                used(it.persistent_volume.as_mut().unwrap());
            }),
            now(),
            "Created: [reopen PersistentVolume freehold-volume-uid] AwaitingBinding",
        ),
        (
            "one that is gone is made again for the claim that has lost it",
            with(lost(), |it| it.persistent_volume = None),
            now(),
            "Created: [create PersistentVolume freehold-volume-uid {spec.claimRef.uid: claim-uid}] \
                AwaitingBinding",
        ),
        (
            "but not for a claim that goes, too",
            with(lost(), |it| {
                it.persistent_volume = None;
                it.claim.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(at(9)));
            }),
            now(),
            "Created: [create PersistentVolume freehold-volume-uid] AwaitingBinding",
        ),
        (
            "made again without the UID of the claim that has lost the former one",
            lost(),
            now(),
            "Created: [change PersistentVolume freehold-volume-uid {spec.claimRef.uid: claim-uid}] \
                AwaitingBinding",
        ),
        (
            "not bound yet",
            with(settled(), |it| {
                it.claim.as_mut().unwrap().status.as_mut().unwrap().phase = Some("Pending".into());
            }),
            now(),
            "Created: [] AwaitingBinding",
        ),
        ("a claim that another client deleted", with(settled(), going), now(), "Bound: [] AwaitingBinding"),
        (
            "and the volume grows meanwhile",
            wanted(going),
            at(3),
            "Bound: [modify vol-1 to 200 GiB gp3, 6000 IOPS, 125 MiB/s] Modifying, pending",
        ),
        (
            "nor is it bound any more",
            with(settled(), |it| {
                going(it);
                it.claim.as_mut().unwrap().status.as_mut().unwrap().phase = Some("Pending".into());
            }),
            now(),
            "Created: [] AwaitingBinding",
        ),
        (
            "another client has written the policy Delete",
            with(settled(), |it| it.persistent_volume = Some(ending())),
            now(),
            "[change PersistentVolume freehold-volume-uid {spec.persistentVolumeReclaimPolicy: Retain}] \
                AwaitingBinding, again in 5 s",
        ),
        (
            "and that comes before the claim that is to be made",
            with_record(|it| *it = ending()),
            now(),
            "Created: [change PersistentVolume freehold-volume-uid {spec.persistentVolumeReclaimPolicy: \
                Retain}, create claim orders-k3f9q] AwaitingBinding, again in 5 s",
        ),
        ("settled", settled(), now(), "[] as wanted"),
        (
            "settled, and the NodeClass is gone: what is bound needs none",
            with(settled(), |it| it.class = None),
            now(),
            "[] as wanted",
        ),
    ]);
}

#[test]
fn what_has_our_names_and_is_not_ours_is_left_alone() {
    let rows = vec![
        (
            "another's PersistentVolume",
            with_record(|it| it.metadata.labels = None),
            now(),
            "Created: [] stalled NameConflict, again in 60 s",
        ),
        (
            "a PersistentVolume of ours that names another EBS volume",
            with_record(|it| it.spec.as_mut().unwrap().csi.as_mut().unwrap().volume_handle = "vol-9".into()),
            now(),
            "Created: [] stalled NameConflict",
        ),
        (
            "another's claim",
            with(settled(), |it| it.claim.as_mut().unwrap().metadata.owner_references = None),
            now(),
            "Created: [] stalled NameConflict, again in 60 s",
        ),
        (
            "the claim of another Volume of the name",
            with(settled(), |it| {
                it.claim.as_mut().unwrap().metadata.owner_references.as_mut().unwrap()[0].uid =
                    "other".into();
            }),
            now(),
            "Created: [] stalled NameConflict, again in 60 s",
        ),
    ];
    for (name, observed, now, _) in &rows {
        let said = plan(observed, *now);
        assert!(
            ["freehold-volume-uid", "orders-k3f9q"].iter().any(|it| message(&said).contains(it)),
            "{name}: {}",
            message(&said)
        );
    }
    hold(rows);
}
