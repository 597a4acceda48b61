//! A Volume that is being deleted: the claim, then Retain or Delete, then its record.

use super::*;
use crate::cloud::call::Call;

/// A settled world whose claim has gone and whose EBS volume is in this state.
fn detached(policy: DeletionPolicy, state: VolumeState, change: impl FnOnce(&mut Observed)) -> Observed {
    let mut observed = deleting(policy, settled());
    observed.claim = None;
    observed.volumes.volumes[0].state = state;
    change(&mut observed);
    observed
}

fn released() -> Row {
    acts(Stage::Nothing, vec![Action::RemoveFinalizer], Reason::Deleting)
}

const BY_POLICY: &str = "the Database was deleted under deletionPolicy Retain";
const TORN_DOWN: &str = "its namespace or Freehold's resource definitions were deleted, which keeps every volume";

/// The PersistentVolume as the record of what was kept for this reason.
fn kept(because: &str) -> PersistentVolume {
    let mut kept = retained();
    let marks = [("at", "2027-01-15T08:00:10Z"), ("because", because)].map(|(key, value)| (format!("freehold.dev/retained-{key}"), value));
    kept.annotations_mut().extend(marks.map(|(key, value)| (key, value.to_owned())));
    kept.annotations_mut().insert("freehold.dev/size".into(), "100Gi".into());
    kept.annotations_mut().insert("freehold.dev/credentials-secret".into(), "orders-k3f9q-admin".into());
    kept.spec.as_mut().unwrap().claim_ref.as_mut().unwrap().uid = Some("volume-uid".into());
    kept
}

fn marks(because: &str) -> Row {
    acts(Stage::Created, vec![Action::MarkRetained(Box::new(kept(because))), Action::RemoveFinalizer], Reason::Deleting)
}

fn retained() -> PersistentVolume {
    let mut record = record();
    record.labels_mut().insert("freehold.dev/retained".into(), "true".into());
    record
}

#[test]
fn the_claim_goes_first_and_only_ours() {
    let claimed = deleting(DeletionPolicy::Delete, settled());
    hold(vec![
        (
            "asked once",
            claimed.clone(),
            now(),
            acts(Stage::Bound, vec![Action::DeleteClaim(Box::new(claim("100Gi", "100Gi")))], Reason::AwaitingDetach),
        ),
        (
            "kept by Kubernetes while a pod uses it",
            with(claimed.clone(), |it| it.claim.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(at(6)))),
            now(),
            waits(Stage::Bound, Reason::AwaitingDetach),
        ),
        (
            "another's claim is left alone",
            with(claimed, |it| {
                it.claim.as_mut().unwrap().metadata.owner_references = None;
                it.volume.spec.deletion_policy = DeletionPolicy::Retain;
            }),
            now(),
            marks(BY_POLICY),
        ),
        (
            "others' finalizers are theirs",
            with(deleting(DeletionPolicy::Delete, world()), |it| it.volume.metadata.finalizers = None),
            now(),
            waits(Stage::Nothing, Reason::Deleting),
        ),
        (
            "EC2 was not seen yet",
            with(deleting(DeletionPolicy::Delete, world()), |it| it.volumes.swept_at = None),
            now(),
            waits(Stage::Nothing, Reason::AwaitingInventory),
        ),
    ]);
}

#[test]
fn a_volume_that_was_never_recorded_is_released_only_when_none_can_come() {
    let leaves = |observed: Observed| deleting(DeletionPolicy::Delete, observed);
    let doubts = || waits(Stage::Nothing, Reason::InDoubt).pending();
    let takes = || acts(Stage::Nothing, vec![Action::RecordVolume(id("vol-1"))], Reason::Deleting);
    hold(vec![
        ("nothing was ever decided", leaves(world()), now(), released()),
        ("an attempt without an answer is never sent again", leaves(attempted()), now(), doubts()),
        ("one empty sweep releases nothing", with(leaves(attempted()), |it| it.volumes.empty = Some(run(9, 9))), now(), doubts()),
        ("absence is proven", with(leaves(attempted()), |it| it.volumes.empty = Some(run(1, 1201))), at(1202), released()),
        (
            "it was made after all: the policy says what becomes of it",
            with(leaves(attempted()), |it| it.volumes.volumes = vec![ebs("vol-1", 1, VolumeState::Available)]),
            now(),
            takes().pending(),
        ),
        (
            "refused for certain",
            with(leaves(world()), |it| status(it).launch = Some(refused("InvalidParameterValue", at(2)))),
            now(),
            released(),
        ),
        (
            "the status was lost: what carries our UID is taken on",
            with(leaves(world()), |it| it.volumes.volumes = vec![ebs("vol-1", 1, VolumeState::Available)]),
            now(),
            takes(),
        ),
        (
            "the status was lost: what the PersistentVolume names is, too",
            with(leaves(world()), |it| it.persistent_volume = Some(record())),
            now(),
            takes(),
        ),
        (
            "of several a person picks",
            with(leaves(world()), |it| {
                it.volumes.volumes = vec![ebs("vol-1", 1, VolumeState::InUse), ebs("vol-2", 2, VolumeState::Available)];
            }),
            now(),
            stalls(Stage::Nothing, Reason::InDoubt),
        ),
        ("still being made", leaves(created(VolumeState::Creating)), now(), waits(Stage::Nothing, Reason::Creating).pending()),
    ]);
}

#[test]
fn retain_keeps_the_volume_and_leaves_its_record() {
    let keep = |state: VolumeState| detached(DeletionPolicy::Retain, state, |_| {});
    let marked = || marks(BY_POLICY);
    let made = kept(BY_POLICY);
    let mut stranger = record();
    stranger.metadata.labels = None;
    let only_released = || acts(Stage::Created, vec![Action::RemoveFinalizer], Reason::Deleting);
    hold(vec![
        ("available", keep(VolumeState::Available), now(), marked()),
        ("still attached", keep(VolumeState::InUse), now(), marked()),
        ("broken", keep(VolumeState::Error), now(), marked()),
        ("marked already", with(keep(VolumeState::Available), |it| it.persistent_volume = Some(retained())), now(), only_released()),
        (
            "it never had a record: one is made, as one that was claimed",
            with(keep(VolumeState::Available), |it| it.persistent_volume = None),
            now(),
            acts(Stage::Created, vec![Action::CreatePersistentVolume(Box::new(made)), Action::RemoveFinalizer], Reason::Deleting),
        ),
        (
            "a stranger of the record's name is left alone, and the volume does not go without a record",
            with(keep(VolumeState::Available), |it| it.persistent_volume = Some(stranger)),
            now(),
            stalls(Stage::Created, Reason::NameConflict).again(5),
        ),
        (
            "somebody deletes the record: one that stays follows",
            with(keep(VolumeState::Available), |it| {
                it.persistent_volume.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(at(9)));
            }),
            now(),
            waits(Stage::Created, Reason::Deleting).again(5),
        ),
        (
            "EC2 has accepted its deletion: it is not kept, whatever is said now",
            with(keep(VolumeState::Available), |it| status(it).deleted_at = Some(Time(at(9)))),
            now(),
            waits(Stage::Created, Reason::AwaitingVolumeDeletion).pending(),
        ),
    ]);
    for policy in [DeletionPolicy::Delete, DeletionPolicy::Snapshot] {
        let torn_down = detached(policy, VolumeState::Available, |it| it.house_is_torn_down = true);
        hold(vec![("nobody decided to delete when the house is torn down", torn_down, now(), marks(TORN_DOWN))]);
    }
    assert!(message(&plan(&keep(VolumeState::Available), now())).contains("freehold-volume-uid"));
}

#[test]
fn the_record_names_the_engine_the_size_and_the_claim_that_it_had() {
    let observed = detached(DeletionPolicy::Retain, VolumeState::Available, |it| {
        it.owner = Some(owner("Retain", true));
        it.volumes.volumes[0].size = 150;
        it.persistent_volume.as_mut().unwrap().spec.as_mut().unwrap().claim_ref.as_mut().unwrap().uid = Some("of-the-claim".into());
    });
    let planned = plan(&observed, now());
    let [Action::MarkRetained(record), Action::RemoveFinalizer] = planned.actions.as_slice() else { panic!("{planned:?}") };
    let note = |key: &str| record.annotations()[&format!("freehold.dev/{key}")].as_str();
    assert_eq!((note("engine"), note("engine-version"), note("size")), ("questdb", "9.3.4", "150Gi"));
    assert_eq!(record.spec.as_ref().unwrap().claim_ref.as_ref().unwrap().uid.as_deref(), Some("of-the-claim"));
}

/// The Database that owns the Volume, with this policy.
fn owner(policy: &str, deleting: bool) -> crate::api::Database {
    let mut metadata = serde_json::json!({"name": "orders", "namespace": "team-a", "uid": "database-uid"});
    if deleting {
        metadata["deletionTimestamp"] = serde_json::json!("2027-01-01T00:00:00Z");
    }
    let spec = serde_json::json!({
        "engine": {"type": "questdb", "version": "9.3.4"},
        "storage": {"size": "100Gi"},
        "deletionPolicy": policy,
    });
    let database = serde_json::json!({"apiVersion": "freehold.dev/v1alpha1", "kind": "Database", "metadata": metadata, "spec": spec});
    serde_json::from_value(database).unwrap()
}

#[test]
fn a_volume_deleted_by_hand_is_kept_as_long_as_its_database_lives() {
    let planned = plan(&detached(DeletionPolicy::Delete, VolumeState::Available, |it| it.owner = Some(owner("Delete", false))), now());
    assert_eq!(planned.actions, []);
    assert_eq!(planned.waiting.map(|waiting| waiting.reason()), Some(Reason::Deleting));
}

#[test]
fn the_policy_that_counts_is_the_newest_of_the_database() {
    let planned = plan(&detached(DeletionPolicy::Delete, VolumeState::Available, |it| it.owner = Some(owner("Retain", true))), now());
    assert!(!planned.actions.iter().any(|action| matches!(action, Action::DeleteVolume(_))), "{:?}", planned.actions);
    assert!(planned.actions.contains(&Action::RemoveFinalizer), "{:?}", planned.actions);
}

#[test]
fn delete_deletes_only_what_is_available_ours_and_detached() {
    let gone = |state: VolumeState, change: fn(&mut Observed)| detached(DeletionPolicy::Delete, state, change);
    let awaits = || waits(Stage::Created, Reason::AwaitingVolumeDeletion).pending();
    let blocked = || waits(Stage::Created, Reason::AwaitingDetach).pending();
    let deletes = || acts(Stage::Created, vec![Action::DeleteVolume(id("vol-1"))], Reason::AwaitingVolumeDeletion).pending();
    hold(vec![
        ("available", gone(VolumeState::Available, |_| {}), now(), deletes()),
        (
            "the driver has not detached it",
            gone(VolumeState::Available, |it| it.attachments = vec!["csi-1".into()]),
            now(),
            waits(Stage::Created, Reason::AwaitingDetach).again(5),
        ),
        ("in use", gone(VolumeState::InUse, |_| {}), now(), blocked()),
        ("broken", gone(VolumeState::Error, |_| {}), now(), blocked()),
        ("a state of a later day", gone(VolumeState::Unknown, |_| {}), now(), blocked()),
        (
            "a tag of ours was taken off",
            gone(VolumeState::Available, |it| {
                it.volumes.volumes[0].tags.remove("freehold.dev/volume-uid");
            }),
            now(),
            awaits(),
        ),
        (
            "another cluster's",
            gone(VolumeState::Available, |it| {
                it.volumes.volumes[0].tags.insert("freehold.dev/cluster-id".into(), "other".into());
            }),
            now(),
            awaits(),
        ),
        ("asked for once", gone(VolumeState::Available, |it| status(it).deleted_at = Some(Time(at(9)))), now(), awaits()),
        (
            "refused: its pause",
            gone(VolumeState::Available, |it| it.asked = BTreeMap::from([(Call::DeleteVolume, forbidden(5, 305))])),
            now(),
            waits(Stage::Created, Reason::Forbidden).again(295).pending(),
        ),
        (
            "refused: the pause is over",
            gone(VolumeState::Available, |it| it.asked = BTreeMap::from([(Call::DeleteVolume, forbidden(5, 305))])),
            at(305),
            deletes(),
        ),
        (
            "EC2 shows it being deleted by another hand",
            gone(VolumeState::Deleting, |_| {}),
            now(),
            acts(Stage::Created, vec![Action::NoteDeleted], Reason::AwaitingVolumeDeletion).pending(),
        ),
        ("noted once", gone(VolumeState::Deleted, |it| status(it).deleted_at = Some(Time(at(9)))), now(), awaits()),
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
    let awaits = || waits(Stage::Nothing, Reason::AwaitingVolumeDeletion).pending();
    let finished =
        || acts(Stage::Nothing, vec![Action::DeletePersistentVolume(Box::new(record())), Action::RemoveFinalizer], Reason::Deleting);
    hold(vec![
        ("never asked for, and not shown: not on one sweep", gone(|_| {}), now(), awaits()),
        ("asked for, and the sweep is older", gone(|it| status(it).deleted_at = Some(Time(at(9)))), now(), awaits()),
        ("asked for in the second of the sweep", gone(|it| status(it).deleted_at = Some(Time(at(7)))), now(), awaits()),
        ("asked for, and a later sweep does not show it", gone(|it| status(it).deleted_at = Some(Time(at(6)))), now(), finished()),
        ("absence is proven", gone(|it| it.volumes.empty = Some(run(1, 1201))), at(1202), finished().confirmed("vol-1")),
        ("a second short of it", gone(|it| it.volumes.empty = Some(run(1, 1200))), at(1202), awaits()),
        (
            "absence is proven without the attempt",
            gone(|it| {
                status(it).launch = None;
                it.volumes.empty = Some(run(1, 1201));
            }),
            at(1202),
            finished().confirmed("vol-1"),
        ),
        (
            "a stranger of the record's name stays",
            gone(|it| {
                status(it).deleted_at = Some(Time(at(6)));
                it.persistent_volume.as_mut().unwrap().metadata.labels = None;
            }),
            now(),
            released(),
        ),
    ]);
}
