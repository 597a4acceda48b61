//! The claim or the PersistentVolume of an adopted EBS volume is gone: each is created again for the other,
//! and nothing else is taken for it.

use pretty_assertions::assert_eq;

use super::adopted::{kept, tagged};
use super::*;
use crate::api::keys::{FORMER_RECLAIM_POLICY_ANNOTATION, STORAGE_CLASS_ANNOTATION};
use crate::controller::volume::adopted::{claim, persistent_volume, record as recorded};

fn claim_of(it: &mut Observed) -> &mut PersistentVolumeClaim {
    it.claim.as_mut().unwrap()
}

fn record_of(it: &mut Observed) -> &mut PersistentVolume {
    it.persistent_volume.as_mut().unwrap()
}

/// The claim is there again, by Freehold or by a person, and Kubernetes has not bound it.
fn created_again(change: impl FnOnce(&mut Observed)) -> Observed {
    kept(|it| {
        let again = claim(it.persistent_volume.as_ref().unwrap(), &it.volume);
        it.claim = Some(again);
        claim_of(it).metadata.uid = Some("claim-uid-2".to_owned());
        change(it);
    })
}

#[test]
fn a_claim_that_is_gone_is_created_again_for_its_persistent_volume_and_no_other_claim_is_used() {
    let mortal = kept(|it| {
        it.claim = None;
        let spec = record_of(it).spec.as_mut().unwrap();
        spec.persistent_volume_reclaim_policy = Some("Delete".to_owned());
    });
    let free = created_again(|it| {
        record_of(it).spec.as_mut().unwrap().claim_ref.as_mut().unwrap().uid = None;
    });
    hold(vec![
        (
            "its end waits for the pod that uses it",
            kept(|it| claim_of(it).metadata.deletion_timestamp = Some(Time(at(5)))),
            now(),
            "Created: [] AwaitingBinding, again in 5 s",
        ),
        (
            "and what it is bound to must outlive it",
            with(mortal.clone(), |it| {
                it.claim = kept(|_| {}).claim;
                claim_of(it).metadata.deletion_timestamp = Some(Time(at(5)));
            }),
            now(),
            "Created: [change PersistentVolume pvc-5a1c {spec.persistentVolumeReclaimPolicy: Retain}] \
                AwaitingBinding, again in 5 s",
        ),
        (
            "it is gone",
            kept(|it| it.claim = None),
            now(),
            "Created: [create claim data-orders-0 {metadata.finalizers: [freehold.dev/finalizer], \
                metadata.labels.freehold.dev/database-uid: database-uid, metadata.name: data-orders-0, \
                metadata.ownerReferences: [{apiVersion: freehold.dev/v1alpha1, kind: Volume, \
                name: orders-k3f9q, uid: volume-uid}], spec.accessModes: [ReadWriteOnce], \
                spec.storageClassName: '', spec.volumeName: pvc-5a1c, no spec.volumeMode}] AwaitingBinding, \
                again in 5 s",
        ),
        (
            "what it was bound to must outlive it first",
            mortal,
            now(),
            "Created: [change PersistentVolume pvc-5a1c {spec.persistentVolumeReclaimPolicy: Retain}] \
                AwaitingBinding, again in 5 s",
        ),
        (
            "the PersistentVolume still names the one before",
            created_again(|_| {}),
            now(),
            "Created: [change PersistentVolume pvc-5a1c {spec.claimRef.uid: claim-uid-2}] AwaitingBinding, \
                again in 5 s",
        ),
        (
            "a person has made the PersistentVolume free",
            free,
            now(),
            "Created: [change PersistentVolume pvc-5a1c {spec.claimRef.uid: claim-uid-2}] AwaitingBinding, \
                again in 5 s",
        ),
        (
            "Kubernetes has not bound them yet",
            created_again(|it| {
                record_of(it).spec.as_mut().unwrap().claim_ref.as_mut().unwrap().uid =
                    Some("claim-uid-2".to_owned());
            }),
            now(),
            "Created: [] AwaitingBinding, again in 5 s",
        ),
        (
            "Kubernetes has made an empty one for a pod",
            kept(|it| {
                claim_of(it).metadata.uid = Some("claim-uid-2".to_owned());
                claim_of(it).spec.as_mut().unwrap().volume_name = None;
            }),
            now(),
            "Created: [] stalled AwaitingBinding, again in 60 s",
        ),
        (
            "the PersistentVolume was given to another claim",
            created_again(|it| {
                let reference = record_of(it).spec.as_mut().unwrap().claim_ref.as_mut().unwrap();
                reference.name = Some("other".to_owned());
            }),
            now(),
            "Created: [] stalled AwaitingBinding, again in 60 s",
        ),
    ]);
}

#[test]
fn a_claim_that_is_created_again_is_as_the_first_one_was_and_names_the_persistent_volume() {
    let gone = kept(|it| it.claim = None);
    let again = claim(gone.persistent_volume.as_ref().unwrap(), &gone.volume);
    let spec = again.spec.unwrap();
    assert_eq!(
        serde_json::to_value(&spec).unwrap(),
        json!({
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100Gi"}},
            "storageClassName": "", "volumeName": "pvc-5a1c",
        })
    );
    assert_eq!(
        again.metadata.finalizers,
        Some(vec![FINALIZER.to_owned()]),
        "it is kept as the first one was"
    );
    let mut annotated = gone.persistent_volume.clone().unwrap();
    annotated.annotations_mut().insert(STORAGE_CLASS_ANNOTATION.to_owned(), "legacy".to_owned());
    let class = claim(&annotated, &gone.volume).spec.unwrap().storage_class_name;
    assert_eq!(class.as_deref(), Some("legacy"), "Kubernetes binds no claim of another class");
    let owners = again.metadata.owner_references.unwrap();
    assert_eq!((owners.len(), owners[0].kind.as_str(), owners[0].controller), (1, "Volume", None));
}

#[test]
fn a_persistent_volume_that_is_gone_is_created_again_for_the_claim_that_has_lost_it() {
    let lost = kept(|it| {
        it.persistent_volume = None;
        let spec = claim_of(it).spec.as_mut().unwrap();
        (spec.access_modes, spec.storage_class_name) =
            (Some(vec!["ReadWriteOnce".to_owned()]), Some("gp3-legacy".to_owned()));
        claim_of(it).status.as_mut().unwrap().phase = Some("Lost".to_owned());
    });
    let size = Size("100Gi".to_owned());
    let claimed = lost.claim.as_ref();
    let again = persistent_volume(&lost.volume, &id("vol-9"), &size, "gp3-legacy", claimed);
    let plan = plan(&lost, now());
    let [Action::CreatePersistentVolume(made)] = plan.actions.as_slice() else { panic!("{plan:?}") };
    assert_eq!(**made, again);
    let (meta, spec) = (&again.metadata, again.spec.as_ref().unwrap());
    assert_eq!(meta.name.as_deref(), Some("pvc-5a1c"), "under its name");
    assert_eq!(spec.claim_ref.as_ref().unwrap().uid.as_deref(), Some("claim-uid"), "or it stays lost");
    assert_eq!(spec.access_modes.as_deref(), Some(["ReadWriteOnce".to_owned()].as_slice()));
    assert_eq!(spec.persistent_volume_reclaim_policy.as_deref(), Some("Retain"));
    assert_eq!(spec.csi.as_ref().unwrap().volume_handle, "vol-9");
    let labels: Vec<&str> = meta.labels.iter().flatten().map(|(key, _)| key.as_str()).collect();
    assert_eq!(
        labels,
        ["freehold.dev/database", "freehold.dev/database-uid", "freehold.dev/volume-uid"],
        "those alone that a release removes"
    );
    let next = recorded(&again, &lost.volume).unwrap().to;
    assert_eq!(
        next.annotations()[FORMER_RECLAIM_POLICY_ANNOTATION],
        "Retain",
        "and a release deletes nothing"
    );
}

#[test]
fn an_adopted_volume_keeps_the_iops_and_the_throughput_that_it_was_found_with_until_the_spec_names_others() {
    let fast = |it: &mut Observed| {
        let mut found = tagged();
        (found.iops, found.throughput) = (Some(6000), Some(250));
        it.volumes.volumes = vec![found];
    };
    hold(vec![("nothing is named", kept(fast), now(), "[] as wanted")]);
    let grown = kept(|it| {
        fast(it);
        it.volume.spec.size = Size("200Gi".to_owned());
        status(it).change_due_since = Some(Time(at(-100)));
    });
    let plan = plan(&grown, now());
    let [Action::Modify(modify)] = plan.actions.as_slice() else { panic!("{plan:?}") };
    let request = &modify.request;
    assert_eq!((request.size, request.iops, request.throughput), (200, None, None));
}
