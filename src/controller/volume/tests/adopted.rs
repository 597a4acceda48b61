//! A Volume that adopts an EBS volume in place: what it must be sure of, and that nothing is ever
//! created for it.

use super::*;
use crate::api::InstanceId;
use crate::api::keys::{CLUSTER_ID_TAG, VOLUME_UID_LABEL, VOLUME_UID_TAG};
use crate::api::volume::AdoptedVolume;
use crate::cloud::Attachment;
use crate::controller::volume::adopted::{disown, own, record as recorded, release_claim};

/// The PersistentVolume that was found becomes the record of the Volume.
pub(super) const TAKES_RECORD: &str = "Created: [change PersistentVolume pvc-5a1c {metadata.annotations.freehold.dev/database: team-a/orders, \
    metadata.annotations.freehold.dev/former-reclaim-policy: Delete, metadata.labels.freehold.dev/database: \
    orders, metadata.labels.freehold.dev/database-uid: database-uid, \
    metadata.labels.freehold.dev/volume-uid: volume-uid, spec.persistentVolumeReclaimPolicy: Retain}] \
    AwaitingBinding, again in 5 s";

/// EBS volume vol-9 as the person who adopts it has left it: attached, with the one tag.
pub(super) fn found() -> EbsVolume {
    let tags = [("freehold.dev/adopt", "cluster/team-a/orders"), ("Name", "legacy-orders")];
    let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    EbsVolume { tags, ..ebs("vol-9", 1, VolumeState::InUse) }
}

pub(super) fn found_record() -> PersistentVolume {
    serde_json::from_value(json!({
        "metadata": {
            "name": "pvc-5a1c", "uid": "record-uid", "resourceVersion": "7",
            "labels": {"app.kubernetes.io/name": "legacy"},
            "annotations": {"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com"},
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "100Gi"},
            "claimRef": {"namespace": "team-a", "name": "data-orders-0", "uid": "claim-uid"},
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-9", "fsType": "xfs"},
            "persistentVolumeReclaimPolicy": "Delete",
        },
        "status": {"phase": "Bound"},
    }))
    .unwrap()
}

pub(super) fn found_claim() -> PersistentVolumeClaim {
    serde_json::from_value(json!({
        "metadata": {
            "name": "data-orders-0", "namespace": "team-a", "uid": "claim-uid", "resourceVersion": "8",
            "labels": {"app": "orders"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "orders", "uid": "set",
                "controller": true}],
        },
        "spec": {"volumeName": "pvc-5a1c", "storageClassName": "gp3",
            "resources": {"requests": {"storage": "100Gi"}}},
        "status": {"phase": "Bound", "capacity": {"storage": "100Gi"}},
    }))
    .unwrap()
}

/// A Volume that is to adopt vol-9, would give it back, and has not begun; EC2 was read.
pub(super) fn asked(change: impl FnOnce(&mut Observed)) -> Observed {
    let mut observed = world();
    observed.volume.spec.adopt = Some(AdoptedVolume {
        volume_id: id("vol-9"),
        persistent_volume_name: "pvc-5a1c".to_owned(),
        claim_name: "data-orders-0".to_owned(),
    });
    observed.volume.spec.release = true;
    observed.volume.labels_mut().insert("freehold.dev/database-uid".into(), "database-uid".into());
    observed.persistent_volume = Some(found_record());
    observed.claim = Some(found_claim());
    shows(&mut observed, found());
    change(&mut observed);
    observed
}

pub(super) fn shows(observed: &mut Observed, volume: EbsVolume) {
    observed.by_id = ById::Shown(Box::new(volume));
}

pub(super) fn tags() -> BTreeMap<String, String> {
    [
        ("freehold.dev/cluster-id", "cluster"),
        ("freehold.dev/volume-uid", "volume-uid"),
        ("freehold.dev/database", "team-a/orders"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into()
}

pub(super) fn tagged() -> EbsVolume {
    let mut volume = found();
    volume.tags.extend(tags());
    volume
}

/// EC2 shows this of the volume by its id, with one more tag.
fn with_tag(key: &'static str, value: &'static str) -> Observed {
    asked(|it| {
        let mut volume = found();
        volume.tags.insert(key.to_owned(), value.to_owned());
        shows(it, volume);
    })
}

fn shown_as(change: fn(&mut EbsVolume)) -> Observed {
    asked(|it| {
        let mut volume = found();
        change(&mut volume);
        shows(it, volume);
    })
}

fn with_record(change: fn(&mut PersistentVolume)) -> Observed {
    asked(|it| change(it.persistent_volume.as_mut().unwrap()))
}

fn with_claim(change: fn(&mut PersistentVolumeClaim)) -> Observed {
    asked(|it| change(it.claim.as_mut().unwrap()))
}

/// The adoption is announced; EC2 was not read by id.
pub(super) fn announced(change: impl FnOnce(&mut Observed)) -> Observed {
    asked(|it| {
        (status(it).volume_id, status(it).ever_held) = (Some(id("vol-9")), true);
        it.by_id = ById::NotRead;
        change(it);
    })
}

/// Tagged, as EC2's lists show.
pub(super) fn listed(change: impl FnOnce(&mut Observed)) -> Observed {
    announced(|it| {
        it.volumes.volumes = vec![tagged()];
        change(it);
    })
}

/// Its PersistentVolume is the record.
pub(super) fn bound(change: impl FnOnce(&mut Observed)) -> Observed {
    listed(|it| {
        it.persistent_volume = Some(recorded(&found_record(), &it.volume).unwrap().to);
        change(it);
    })
}

/// The Database is adopted: nothing would be released any more.
pub(super) fn kept(change: impl FnOnce(&mut Observed)) -> Observed {
    bound(|it| {
        it.volume.spec.release = false;
        it.claim = Some(own(&found_claim(), &it.volume).unwrap().to);
        change(it);
    })
}

#[test]
fn an_ebs_volume_is_adopted_by_its_id_and_a_tag_with_its_own_persistent_volume_and_claim() {
    let allowed = vec![
        ("all is as it should be", asked(|_| {})),
        (
            "its status was lost: it carries this Volume's tags",
            shown_as(|it| {
                it.tags.remove("freehold.dev/adopt");
                it.tags.extend(tags());
            }),
        ),
        ("it is detached", shown_as(|it| it.state = VolumeState::Available)),
        ("it is smaller than wanted", shown_as(|it| it.size = 50)),
        ("the status names another EBS volume", asked(|it| status(it).volume_id = Some(id("vol-1")))),
        (
            "Kubernetes' own plugin provisioned it",
            with_record(|it| {
                let spec = it.spec.as_mut().unwrap();
                spec.csi = None;
                spec.aws_elastic_block_store =
                    serde_json::from_value(json!({"volumeID": "aws://us-east-1b/vol-9", "fsType": "xfs"}))
                        .unwrap();
            }),
        ),
        (
            "ext4 is what a PersistentVolume means that names none",
            asked(|it| {
                it.volume.spec.file_system = crate::api::database::FileSystem::Ext4;
                let csi = it.persistent_volume.as_mut().and_then(|it| it.spec.as_mut()?.csi.as_mut());
                csi.unwrap().fs_type = None;
            }),
        ),
    ];
    let expected = "Nothing: [adopt vol-9] Adopting, pending";
    hold(allowed.into_iter().map(|(name, observed)| (name, observed, now(), expected)).collect());
    hold(vec![(
        "EC2 is read by the id first",
        asked(|it| it.by_id = ById::NotRead),
        now(),
        "Nothing: [] Adopting, reads vol-9, again in 5 s",
    )]);
}

#[test]
fn nothing_else_is_adopted_and_only_a_person_helps() {
    let refused = vec![
        ("EC2 shows no such id", asked(|it| it.by_id = ById::NotShown)),
        ("no tag", shown_as(|it| it.tags.clear())),
        ("the tag of another Database", with_tag("freehold.dev/adopt", "cluster/team-a/other")),
        ("the tag of another namespace", with_tag("freehold.dev/adopt", "cluster/team-b/orders")),
        ("the tag of another cluster's Database", with_tag("freehold.dev/adopt", "other/team-a/orders")),
        ("another cluster's", with_tag(CLUSTER_ID_TAG, "other")),
        ("another Volume's", with_tag(VOLUME_UID_TAG, "other")),
        ("another zone", shown_as(|it| it.zone = "us-east-1a".to_owned())),
        ("Multi-Attach", shown_as(|it| it.multi_attach = true)),
        (
            "DeleteOnTermination",
            shown_as(|it| {
                it.attachments = vec![Attachment {
                    instance: InstanceId("i-1".to_owned()),
                    device: "/dev/xvdba".to_owned(),
                    delete_on_termination: true,
                }];
            }),
        ),
        ("broken", shown_as(|it| it.state = VolumeState::Error)),
        ("being deleted", shown_as(|it| it.state = VolumeState::Deleting)),
        ("larger than the spec", shown_as(|it| it.size = 101)),
        ("no PersistentVolume", asked(|it| it.persistent_volume = None)),
        (
            "the PersistentVolume of another EBS volume",
            with_record(|it| {
                it.spec.as_mut().unwrap().csi.as_mut().unwrap().volume_handle = "vol-1".to_owned();
            }),
        ),
        (
            "the PersistentVolume of another driver",
            with_record(|it| {
                it.spec.as_mut().unwrap().csi.as_mut().unwrap().driver = "other.csi".to_owned();
            }),
        ),
        (
            "the PersistentVolume is being deleted",
            with_record(|it| {
                it.metadata.deletion_timestamp = Some(Time(at(5)));
            }),
        ),
        (
            "the PersistentVolume of another Volume",
            with_record(|it| {
                it.labels_mut().insert(VOLUME_UID_LABEL.to_owned(), "other".to_owned());
            }),
        ),
        (
            "a claim of another namespace",
            with_record(|it| {
                it.spec.as_mut().unwrap().claim_ref.as_mut().unwrap().namespace = Some("team-b".to_owned());
            }),
        ),
        ("another claim of the name", with_claim(|it| it.metadata.uid = Some("other".to_owned()))),
        ("no claim", asked(|it| it.claim = None)),
        (
            "a claim of another PersistentVolume",
            with_claim(|it| {
                it.spec.as_mut().unwrap().volume_name = Some("pvc-other".to_owned());
            }),
        ),
        ("a claim that is not bound", with_claim(|it| it.status = None)),
        (
            "a claim that is being deleted",
            with_claim(|it| {
                it.metadata.deletion_timestamp = Some(Time(at(5)));
            }),
        ),
        (
            "another file system",
            asked(|it| {
                it.volume.spec.file_system = crate::api::database::FileSystem::Ext4;
            }),
        ),
    ];
    let expected = "Nothing: [] stalled AdoptionRefused, again in 60 s";
    hold(refused.into_iter().map(|(name, observed)| (name, observed, now(), expected)).collect());
}

#[test]
fn a_tenant_learns_nothing_of_an_ebs_volume_without_the_tag() {
    let say = |observed: Observed| message(&plan(&observed, now()));
    let absent = say(asked(|it| it.by_id = ById::NotShown));
    assert_eq!(say(shown_as(|it| it.tags.clear())), absent);
    assert_eq!(say(with_tag("freehold.dev/adopt", "other/team-b/orders")), absent);
    assert!(absent.contains("freehold.dev/adopt=cluster/team-a/orders"), "{absent}");
}

#[test]
fn what_was_announced_is_tagged_until_a_list_shows_it_and_what_is_gone_is_lost_and_never_replaced() {
    let read = |volume: EbsVolume| announced(move |it| shows(it, volume));
    let issued = |seconds: i64| IssuedRequest { at: at(seconds), call_blocked: None };
    hold(vec![
        (
            "it is read by its id, since no list shows it",
            announced(|_| {}),
            now(),
            "Nothing: [] VolumeLost, pending, reads vol-9, again in 5 s",
        ),
        ("the same call again", read(found()), now(), "Nothing: [tag vol-9] Adopting, pending, again in 5 s"),
        (
            "it was requested a moment ago",
            with(read(found()), |it| it.issued = BTreeMap::from([(Call::CreateTags, issued(9))])),
            now(),
            "Nothing: [] Adopting, pending, again in 5 s",
        ),
        (
            "EC2 shows the tags, and its lists do not yet",
            read(tagged()),
            now(),
            "Nothing: [] Adopting, pending, again in 5 s",
        ),
        (
            "another Volume has it by now",
            announced(|it| {
                let mut volume = found();
                volume.tags.insert(VOLUME_UID_TAG.to_owned(), "other".to_owned());
                shows(it, volume);
            }),
            now(),
            "Nothing: [] VolumeLost, pending, again in 60 s",
        ),
        (
            "EC2 does not show it",
            announced(|it| it.by_id = ById::NotShown),
            now(),
            "Nothing: [] VolumeLost, pending",
        ),
        (
            "that is proven",
            announced(|it| (it.by_id, it.volumes.empty) = (ById::NotShown, Some(run(1, 1201)))),
            at(1202),
            "Nothing: [] stalled VolumeLost",
        ),
        (
            "proven once, and the rate limit does not allow the read",
            announced(|it| {
                status(it).lost_since = Some(Time(at(1)));
                says(it, ConditionType::Stalled, true, Reason::VolumeLost, at(1));
            }),
            now(),
            "Nothing: [] stalled VolumeLost, pending, reads vol-9, again in 5 s",
        ),
        (
            "EC2 shows it being deleted",
            listed(|it| it.volumes.volumes[0].state = VolumeState::Deleting),
            now(),
            "Nothing: [] VolumeLost, pending",
        ),
    ]);
}

#[test]
fn the_claim_of_an_adopted_volume_gets_our_finalizer_beside_those_of_others_and_loses_it_with_the_release() {
    let mut found = found_claim();
    found.metadata.finalizers = Some(vec!["kubernetes.io/pvc-protection".to_owned()]);
    let volume = asked(|_| {}).volume;
    let owned = own(&found, &volume).unwrap().to;
    assert_eq!(owned.finalizers(), ["kubernetes.io/pvc-protection", FINALIZER]);
    assert_eq!(own(&owned, &volume), None);
    let kept = recorded(&found_record(), &volume).unwrap().to;
    assert_eq!(release_claim(&owned, Some(&kept), &volume).unwrap().to, found);
    // It is to be released, and is not yet: a claim that is deleted meanwhile must stay.
    let flagged = disown(&owned, &volume).unwrap().to;
    assert_eq!((flagged.owner_references(), flagged.labels()), (found.owner_references(), found.labels()));
    assert_eq!(flagged.finalizers(), owned.finalizers());
    let freed = release_claim(&flagged, Some(&kept), &volume).unwrap().to;
    assert_eq!(freed, found, "no Volume owns it any more");
    assert_eq!(release_claim(&flagged, Some(&found_record()), &volume), None, "it is another's");
    // One that was adopted before Freehold had this finalizer.
    let mut earlier = owned.clone();
    earlier.metadata.finalizers.clone_from(&found.metadata.finalizers);
    assert_eq!(own(&earlier, &volume).unwrap().to, owned);
}

#[test]
fn the_finalizer_of_a_claim_that_another_volume_owns_stays() {
    let mut volume = asked(|_| {}).volume;
    let mut of_other = own(&found_claim(), &volume).unwrap().to;
    volume.metadata.uid = Some("another-uid".to_owned());
    of_other.metadata.labels = found_claim().metadata.labels;
    let kept = recorded(&found_record(), &volume).unwrap().to;
    assert_eq!(release_claim(&of_other, Some(&kept), &volume), None);
}
