//! A Volume that adopts a retained EBS volume: what it must be sure of, that an adoption once announced is
//! finished, and its records.

use super::*;
use crate::api::names;

/// The UID of the Volume that had the kept volume, as its record's name holds it.
const FORMER: &str = "5a1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a99";

fn record_name() -> String {
    names::persistent_volume(FORMER)
}

/// The record of vol-9, which is held by this Volume's Database.
fn kept() -> PersistentVolume {
    serde_json::from_value(json!({
        "metadata": {
            "name": record_name(), "uid": "record-uid", "resourceVersion": "7",
            "labels": {
                "freehold.dev/retained": "true", "freehold.dev/volume-uid": FORMER,
                "freehold.dev/database": "orders",
                "freehold.dev/database-uid": "former-database", "app.kubernetes.io/name": "questdb",
            },
            "annotations": {"freehold.dev/database": "team-a/orders",
            "freehold.dev/adopted-by": "orders/database-uid"},
        },
        "spec": {
            "capacity": {"storage": "100Gi"},
            "claimRef": {"namespace": "team-a", "name": "orders-aaaaa", "uid": "gone"},
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-9", "fsType": "xfs"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1b"]},
            ]}]}},
        },
        "status": {"phase": "Released"},
    }))
    .unwrap()
}

/// EBS volume vol-9 with the tags of whom it belonged to.
fn former() -> EbsVolume {
    let mut volume = ebs("vol-9", 1, VolumeState::Available);
    volume.tags.insert("freehold.dev/volume-uid".into(), FORMER.into());
    volume
}

/// A Volume that is to adopt vol-9, and has not begun.
fn asked(change: impl FnOnce(&mut Observed)) -> Observed {
    let mut observed = world();
    observed.volume.spec.adopt_retained = Some(record_name());
    observed.volume.labels_mut().insert("freehold.dev/database-uid".into(), "database-uid".into());
    observed.record = Some(kept());
    observed.former.volumes = vec![former()];
    change(&mut observed);
    observed
}

/// The adoption is announced; EC2 shows the volume with these tags.
fn announced(is_moved: bool, change: impl FnOnce(&mut Observed)) -> Observed {
    asked(|it| {
        status(it).volume_id = Some(id("vol-9"));
        status(it).ever_held = true;
        if is_moved {
            it.former.volumes.clear();
            it.volumes.volumes = vec![ebs("vol-9", 1, VolumeState::Available)];
        }
        change(it);
    })
}

#[test]
fn a_kept_volume_is_taken_only_when_record_and_ec2_agree_and_no_empty_one_is_made_instead() {
    let annotated = |key: &'static str, value: &'static str| {
        asked(move |it| {
            it.record.as_mut().unwrap().annotations_mut().insert(key.into(), value.into());
        })
    };
    hold(vec![
        (
            "all is as it should be",
            asked(|_| {}),
            now(),
            "Nothing: [adopt vol-9 {Name: orders-k3f9q}] Adopting, pending",
        ),
        (
            "there is no record",
            asked(|it| it.record = None),
            now(),
            "Nothing: [] stalled AdoptionRefused, again in 60 s",
        ),
        (
            "the record is another namespace's",
            annotated("freehold.dev/database", "team-b/orders"),
            now(),
            "Nothing: [] stalled AdoptionRefused, again in 60 s",
        ),
        (
            "another Database holds it",
            annotated("freehold.dev/adopted-by", "orders/another"),
            now(),
            "Nothing: [] stalled AdoptionRefused, again in 60 s",
        ),
        (
            "no Database holds it",
            asked(|it| {
                it.record.as_mut().unwrap().annotations_mut().remove("freehold.dev/adopted-by");
            }),
            now(),
            "Nothing: [] stalled AdoptionRefused, again in 60 s",
        ),
        (
            "a PersistentVolume that was never kept",
            asked(|it| {
                it.record.as_mut().unwrap().labels_mut().remove("freehold.dev/retained");
            }),
            now(),
            "Nothing: [] stalled AdoptionRefused, again in 60 s",
        ),
        (
            "another file system",
            asked(|it| it.volume.spec.file_system = crate::api::database::FileSystem::Ext4),
            now(),
            "Nothing: [] stalled AdoptionRefused, again in 60 s",
        ),
        (
            "another zone than EC2 shows",
            asked(|it| it.former.volumes[0].zone = "us-east-1a".into()),
            now(),
            "Nothing: [] stalled AdoptionRefused, again in 60 s",
        ),
        (
            "less than it has",
            asked(|it| it.former.volumes[0].size = 101),
            now(),
            "Nothing: [] stalled AdoptionRefused, again in 60 s",
        ),
        (
            "EC2's tag names another namespace",
            asked(|it| {
                it.former.volumes[0].tags.insert("freehold.dev/database".into(), "team-b/orders".into());
            }),
            now(),
            "Nothing: [] stalled AdoptionRefused, again in 60 s",
        ),
        (
            "EC2 does not show it with its record's tags",
            asked(|it| it.former.volumes.clear()),
            now(),
            "Nothing: [] AdoptionRefused, again in 5 s",
        ),
        (
            "a machine still has it",
            asked(|it| it.former.volumes[0].state = VolumeState::InUse),
            now(),
            "Nothing: [] Adopting, pending, again in 5 s",
        ),
        (
            "the status was lost: what carries our tags is recorded",
            asked(|it| {
                it.record = None;
                it.volumes.volumes = vec![ebs("vol-9", 1, VolumeState::Available)];
            }),
            now(),
            "Nothing: [record vol-9] Creating",
        ),
    ]);
}

#[test]
fn an_adoption_that_was_announced_is_finished_calmly() {
    let issued = |until: Option<i64>| {
        move |it: &mut Observed| {
            let said = |until| answered(Call::CreateTags, "UnauthorizedOperation", Some(at(until)));
            it.issued = BTreeMap::from([(
                Call::CreateTags,
                IssuedRequest { at: at(9), call_blocked: until.map(said) },
            )]);
        }
    };
    let bound = |change: fn(&mut Observed)| {
        announced(true, |it| {
            it.persistent_volume = Some(build::persistent_volume(
                &it.volume,
                &id("vol-9"),
                &Size("100Gi".into()),
                "freehold",
                None,
            ));
            it.claim = Some(claim("100Gi", "100Gi"));
            change(it);
        })
    };
    hold(vec![
        (
            "EC2 shows the former tags: the same call again",
            announced(false, |_| {}),
            now(),
            "Nothing: [tag vol-9 {Name: orders-k3f9q}] Adopting, pending",
        ),
        ("it was asked a moment ago", announced(false, issued(None)), now(), "Nothing: [] Adopting, pending"),
        (
            "forbidden: its pause",
            announced(false, issued(Some(309))),
            now(),
            "Nothing: [] Forbidden, pending, again in 299 s",
        ),
        (
            "shown nowhere: it is never replaced by an empty one",
            announced(false, |it| it.former.volumes.clear()),
            now(),
            "Nothing: [] VolumeLost, pending",
        ),
        (
            "ours: its own record is made",
            announced(true, |_| {}),
            now(),
            "Created: [create PersistentVolume freehold-volume-uid \
                {metadata.labels.freehold.dev/database-uid: database-uid, spec.csi.volumeHandle: vol-9}] \
                AwaitingBinding",
        ),
        (
            "bound: the former record goes",
            bound(|_| {}),
            now(),
            "Bound: [delete PersistentVolume freehold-5a1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a99] Adopting, \
                again in 5 s",
        ),
        ("it is gone", bound(|it| it.record = None), now(), "[] as wanted"),
        (
            "it is going",
            bound(|it| it.record.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(at(9)))),
            now(),
            "[] as wanted",
        ),
    ]);
}

#[test]
fn a_deletion_gives_back_what_was_not_taken_and_finishes_what_was_announced() {
    let leaves = |policy: DeletionPolicy, observed: Observed| deleting(policy, observed);
    for policy in [DeletionPolicy::Retain, DeletionPolicy::Snapshot, DeletionPolicy::Delete] {
        hold(vec![
            (
                "never announced: the record is released, whatever the policy",
                leaves(policy, asked(|_| {})),
                now(),
                "Nothing: [release PersistentVolume freehold-5a1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a99, \
                    remove finalizer] Deleting",
            ),
            (
                "announced: it becomes ours first",
                leaves(policy, announced(false, |_| {})),
                now(),
                "Nothing: [tag vol-9 {Name: orders-k3f9q}] Adopting, pending",
            ),
        ]);
    }
    let held = |policy: DeletionPolicy| {
        leaves(
            policy,
            announced(true, |it| {
                it.persistent_volume = Some(build::persistent_volume(
                    &it.volume,
                    &id("vol-9"),
                    &Size("100Gi".into()),
                    "freehold",
                    None,
                ));
            }),
        )
    };
    let kept_again = plan(&held(DeletionPolicy::Retain), now());
    let [Action::MarkRetained(own), Action::DeletePersistentVolume(old), Action::RemoveFinalizer] =
        kept_again.actions.as_slice()
    else {
        panic!("{kept_again:?}")
    };
    assert_eq!(
        (own.name_any(), old.name_any()),
        ("freehold-volume-uid".to_owned(), record_name()),
        "one record stays"
    );
    let mut deleted = held(DeletionPolicy::Delete);
    deleted.volumes.volumes.clear();
    status(&mut deleted).deleted_at = Some(Time(at(6)));
    let deleted = plan(&deleted, now());
    let [Action::DeletePersistentVolume(own), Action::DeletePersistentVolume(old), Action::RemoveFinalizer] =
        deleted.actions.as_slice()
    else {
        panic!("{deleted:?}")
    };
    assert_eq!(
        (own.name_any(), old.name_any()),
        ("freehold-volume-uid".to_owned(), record_name()),
        "no record of nothing stays"
    );
}
