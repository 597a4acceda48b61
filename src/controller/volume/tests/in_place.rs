//! The PersistentVolume and the claim of an EBS volume that was adopted in place: in which order they become
//! this Volume's, and that nothing else of them changes.

use super::adopted::{TAKES_RECORD, bound, found_claim, found_record, kept, listed};
use super::*;
use crate::controller::volume::adopted::{give_back, own, record as recorded, release_claim};

#[test]
fn the_persistent_volume_is_kept_first_and_the_claim_owned_last_and_nothing_is_modified_before() {
    let wants_more = |it: &mut Observed| {
        (it.volume.spec.size, it.volume.spec.iops) = (Size("1Ti".to_owned()), Some(6000));
        status(it).change_due_since = Some(Time(at(-100)));
    };
    let altered = kept(|it| {
        let spec = it.persistent_volume.as_mut().unwrap().spec.as_mut().unwrap();
        spec.persistent_volume_reclaim_policy = Some("Delete".to_owned());
    });
    hold(vec![
        ("the PersistentVolume first", listed(|_| {}), now(), TAKES_RECORD),
        (
            "its reclaim policy was changed",
            altered,
            now(),
            "Created: [change PersistentVolume pvc-5a1c {spec.persistentVolumeReclaimPolicy: Retain}] \
                AwaitingBinding, again in 5 s",
        ),
        ("it would be released: nothing is owned", bound(|_| {}), now(), "[] as wanted"),
        ("nor modified", bound(wants_more), now(), "[] as wanted"),
        (
            "it is kept: the claim is owned",
            bound(|it| it.volume.spec.release = false),
            now(),
            "Bound: [own claim data-orders-0 {metadata.finalizers: [freehold.dev/finalizer], \
                metadata.labels.freehold.dev/database: orders, \
                metadata.labels.freehold.dev/database-uid: database-uid, \
                metadata.ownerReferences: [{apiVersion: apps/v1, controller: true, kind: StatefulSet, \
                name: orders, uid: set}, {apiVersion: freehold.dev/v1alpha1, kind: Volume, \
                name: orders-k3f9q, uid: volume-uid}]}] AwaitingBinding, again in 5 s",
        ),
        ("all is done", kept(|_| {}), now(), "[] as wanted"),
        (
            "it would be released again",
            kept(|it| it.volume.spec.release = true),
            now(),
            "Bound: [disown claim data-orders-0 {no metadata.labels.freehold.dev/database, \
                no metadata.labels.freehold.dev/database-uid, metadata.ownerReferences: [{apiVersion: \
                apps/v1, controller: true, kind: StatefulSet, name: orders, uid: set}]}] AwaitingBinding, \
                again in 5 s",
        ),
        (
            "it would be released, and the claim is gone",
            bound(|it| it.claim = None),
            now(),
            "Created: [] stalled AwaitingBinding, again in 60 s",
        ),
        (
            "it would be released, and the PersistentVolume is gone",
            bound(|it| it.persistent_volume = None),
            now(),
            "Created: [] stalled AwaitingBinding, again in 60 s",
        ),
    ]);
    let grown = plan(&kept(wants_more), now());
    assert!(matches!(grown.actions.as_slice(), [Action::Modify(_)]), "{grown:?}");
    let modified = kept(|it| {
        wants_more(it);
        (it.volumes.volumes[0].size, it.volumes.volumes[0].iops) = (1024, Some(6000));
    });
    let last = plan(&modified, now());
    let [Action::GrowClaim(claim)] = last.actions.as_slice() else { panic!("{last:?}") };
    assert_eq!(claim.name_any(), "data-orders-0", "the claim has its own name");
}

#[test]
fn nothing_else_of_the_persistent_volume_and_the_claim_is_changed() {
    let volume = kept(|_| {}).volume;
    let change = recorded(&found_record(), &volume).unwrap();
    let mut expected = found_record();
    expected.labels_mut().extend(
        [
            ("freehold.dev/volume-uid", "volume-uid"),
            ("freehold.dev/database", "orders"),
            ("freehold.dev/database-uid", "database-uid"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    expected.annotations_mut().extend(
        [("freehold.dev/database", "team-a/orders"), ("freehold.dev/former-reclaim-policy", "Delete")]
            .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    expected.spec.as_mut().unwrap().persistent_volume_reclaim_policy = Some("Retain".to_owned());
    pretty_assertions::assert_eq!(change.to, expected);
    assert_eq!(recorded(&change.to, &volume), None, "once");

    let owned = own(&found_claim(), &volume).unwrap();
    let owners: Vec<_> =
        owned.to.owner_references().iter().map(|it| (it.kind.as_str(), it.controller)).collect();
    assert_eq!(owners, [("StatefulSet", Some(true)), ("Volume", None)], "its controller stays");
    assert_eq!(own(&owned.to, &volume), None, "once");
    assert_eq!(release_claim(&owned.to, None, &volume).unwrap().to, found_claim());
    assert_eq!(release_claim(&found_claim(), None, &volume), None);
    assert_eq!(give_back(&found_record(), Some(&found_claim()), &volume), None);
}
