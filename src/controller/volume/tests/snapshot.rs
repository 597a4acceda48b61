//! Deletion under the policy Snapshot: detached, announced, completed, and only then deleted.

use super::retaining::owner;
use super::*;
use crate::cloud::{Modification, ModificationState};

fn leaves(change: impl FnOnce(&mut Observed)) -> Observed {
    let mut observed = deleting(DeletionPolicy::Snapshot, settled());
    observed.claim = None;
    observed.volumes.volumes[0].state = VolumeState::Available;
    change(&mut observed);
    observed
}

/// The snapshot was announced at 6, and has this id.
fn announced(name: Option<&str>, change: impl FnOnce(&mut Observed)) -> Observed {
    leaves(|it| {
        let snapshot_id = name.map(|name| SnapshotId(name.to_owned()));
        status(it).final_snapshot =
            Some(FinalSnapshot { attempt: Attempt::new(1, Time(at(6))), snapshot_id });
        change(it);
    })
}

fn snapshot(name: &str, state: SnapshotState) -> Snapshot {
    Snapshot {
        id: SnapshotId(name.into()),
        volume: id("vol-1"),
        size: None,
        state,
        started_at: Some(at(6)),
        tags: BTreeMap::new(),
    }
}

#[test]
fn the_final_snapshot_is_taken_of_a_detached_volume() {
    hold(vec![
        (
            "attached by the driver",
            leaves(|it| it.attachments = vec!["csi-1".into()]),
            now(),
            "Created: [] AwaitingDetach, pending, again in 5 s",
        ),
        (
            "in use",
            leaves(|it| it.volumes.volumes[0].state = VolumeState::InUse),
            now(),
            "Created: [] AwaitingDetach, pending, again in 5 s",
        ),
        (
            "snapshots were not looked at yet",
            leaves(|it| it.snapshots.swept_at = None),
            now(),
            "Created: [] AwaitingSnapshot, pending",
        ),
        (
            "announced and taken",
            leaves(|_| {}),
            now(),
            "Created: [snapshot vol-1, attempt 1] AwaitingSnapshot, pending",
        ),
        (
            "refused: its pause",
            leaves(|it| it.issued = BTreeMap::from([(Call::CreateSnapshot, forbidden(5, 305))])),
            now(),
            "Created: [] Forbidden, pending, again in 295 s",
        ),
        (
            "refused: the pause is over",
            leaves(|it| it.issued = BTreeMap::from([(Call::CreateSnapshot, forbidden(5, 305))])),
            at(305),
            "Created: [snapshot vol-1, attempt 1] AwaitingSnapshot, pending",
        ),
    ]);
}

#[test]
fn the_final_snapshot_is_tagged_with_what_a_restore_must_know() {
    let observed = leaves(|it| {
        it.owner = Some(owner("Snapshot", true));
        it.volume.spec.deletion_decided = true;
        it.around.namespace_uid = Some("uid-of-namespace".into());
    });
    let planned = plan(&observed, now());
    let [Action::Snapshot(_, _, contents)] = planned.actions.as_slice() else { panic!("{planned:?}") };
    let tag = |key: &str| contents[&format!("freehold.dev/{key}")].as_str();
    assert_eq!((tag("engine"), tag("engine-version"), tag("file-system")), ("questdb", "9.3.4", "xfs"));
    assert_eq!((tag("namespace-uid"), tag("consistency")), ("uid-of-namespace", "CrashConsistent"));
    assert_eq!(contents["team"], "platform");
    assert_eq!(contents.len(), 6);
}

#[test]
fn the_final_snapshot_of_data_that_its_engine_has_not_recovered_from_is_still_one_of_the_checkpoint() {
    let mut database = owner("Snapshot", true);
    let restored = serde_json::json!({"snapshotID": "snap-0", "consistency": "EngineCheckpoint"});
    database.status =
        serde_json::from_value(serde_json::json!({"conditions": [], "restored": restored})).unwrap();
    let of = |database: crate::api::Database| {
        let observed = leaves(|it| {
            it.owner = Some(database);
            it.volume.spec.deletion_decided = true;
        });
        let planned = plan(&observed, now());
        let [Action::Snapshot(_, _, contents)] = planned.actions.as_slice() else { panic!("{planned:?}") };
        contents["freehold.dev/consistency"].clone()
    };
    assert_eq!(of(database.clone()), "EngineCheckpoint");
    database.status.as_mut().unwrap().first_ready_at = Some(Time(at(0)));
    assert_eq!(of(database), "CrashConsistent");
}

#[test]
fn an_announced_snapshot_without_an_id_is_looked_for_and_taken_again_only_on_proof() {
    let shown = |snapshots: Vec<Snapshot>| announced(None, |it| it.snapshots.snapshots = snapshots);
    let of_another = Snapshot { volume: id("vol-9"), ..snapshot("snap-9", SnapshotState::Completed) };
    hold(vec![
        ("in doubt", announced(None, |_| {}), now(), "Created: [] AwaitingSnapshot, pending"),
        (
            "found",
            shown(vec![snapshot("snap-1", SnapshotState::Pending)]),
            now(),
            "Created: [record snap-1] AwaitingSnapshot, pending",
        ),
        (
            "one that did not fail before one that did",
            shown(vec![snapshot("snap-0", SnapshotState::Error), snapshot("snap-1", SnapshotState::Pending)]),
            now(),
            "Created: [record snap-1] AwaitingSnapshot, pending",
        ),
        (
            "one that failed, if there is no other",
            shown(vec![snapshot("snap-0", SnapshotState::Error)]),
            now(),
            "Created: [record snap-0] AwaitingSnapshot, pending",
        ),
        (
            "another volume's is not ours",
            shown(vec![of_another]),
            now(),
            "Created: [] AwaitingSnapshot, pending",
        ),
        (
            "refused, and the pause of the call is over",
            announced(None, |it| {
                let attempt = status(it).final_snapshot.as_mut().map(|snapshot| &mut snapshot.attempt);
                attempt.unwrap().refused = refused("UnauthorizedOperation", at(7)).attempt.refused;
            }),
            now(),
            "Created: [snapshot vol-1, attempt 2] AwaitingSnapshot, pending",
        ),
        (
            "proven never taken",
            announced(None, |it| it.snapshots.empty = Some(run(7, 1207))),
            at(1208),
            "Created: [snapshot vol-1, attempt 2] AwaitingSnapshot, pending",
        ),
        (
            "a second short of it",
            announced(None, |it| it.snapshots.empty = Some(run(7, 1206))),
            at(1208),
            "Created: [] AwaitingSnapshot, pending",
        ),
        (
            "a run that began before it was announced",
            announced(None, |it| it.snapshots.empty = Some(run(6, 1300))),
            at(1301),
            "Created: [] AwaitingSnapshot, pending",
        ),
        (
            "an earlier process may have sent until this one started",
            announced(None, |it| {
                it.leading_since = at(100);
                it.snapshots.empty = Some(run(50, 1300));
            }),
            at(1301),
            "Created: [] AwaitingSnapshot, pending",
        ),
    ]);
}

#[test]
fn the_volume_is_deleted_only_after_its_snapshot_is_complete() {
    let in_state = |state: SnapshotState| {
        announced(Some("snap-1"), |it| it.snapshots.snapshots = vec![snapshot("snap-1", state)])
    };
    hold(vec![
        ("not complete", in_state(SnapshotState::Pending), now(), "Created: [] AwaitingSnapshot, pending"),
        (
            "complete",
            in_state(SnapshotState::Completed),
            now(),
            "Created: [delete vol-1] AwaitingVolumeDeletion, pending",
        ),
        (
            "failed: the volume is kept",
            in_state(SnapshotState::Error),
            now(),
            "Created: [] stalled AwaitingSnapshot",
        ),
        (
            "another complete one does not count",
            announced(Some("snap-1"), |it| {
                it.snapshots.snapshots = vec![snapshot("snap-2", SnapshotState::Completed)];
            }),
            now(),
            "Created: [] AwaitingSnapshot, pending",
        ),
        (
            "not shown: the volume is kept",
            announced(Some("snap-1"), |_| {}),
            now(),
            "Created: [] AwaitingSnapshot, pending",
        ),
        (
            "proven gone: another is taken",
            announced(Some("snap-1"), |it| it.snapshots.empty = Some(run(7, 1207))),
            at(1208),
            "Created: [snapshot vol-1, attempt 2] AwaitingSnapshot, pending",
        ),
        (
            "complete, and a machine has it again",
            with(in_state(SnapshotState::Completed), |it| it.volumes.volumes[0].state = VolumeState::InUse),
            now(),
            "Created: [] AwaitingDetach, pending, again in 5 s",
        ),
        (
            "complete, and asked for once",
            with(in_state(SnapshotState::Completed), |it| status(it).deleted_at = Some(Time(at(9)))),
            now(),
            "Created: [] AwaitingVolumeDeletion, pending",
        ),
        (
            "complete, and its tags are not ours",
            with(in_state(SnapshotState::Completed), |it| it.volumes.volumes[0].tags.clear()),
            now(),
            "Created: [] AwaitingVolumeDeletion, pending",
        ),
    ]);
    let failed = plan(&in_state(SnapshotState::Error), now());
    assert!(message(&failed).contains("snap-1") && message(&failed).contains("vol-1"));
}

#[test]
fn what_takes_hours_is_looked_for_once_a_minute() {
    let optimizing = |state: ModificationState| {
        with(settled(), |it| {
            it.volume.spec.iops = Some(6000);
            it.volumes.modification =
                Some(Modification { volume: id("vol-1"), state, started_at: Some(at(0)) });
        })
    };
    let untagged = with(deleting(DeletionPolicy::Delete, settled()), |it| {
        it.claim = None;
        it.volumes.volumes[0].state = VolumeState::Available;
        it.volumes.volumes[0].tags.insert("freehold.dev/cluster-id".into(), "other".into());
    });
    let hidden = with(deleting(DeletionPolicy::Delete, settled()), |it| {
        it.claim = None;
        it.volumes.empty = Some(run(1, 1201));
        it.by_id = ById::Shown(Box::new(it.volumes.volumes.remove(0)));
    });
    let refused = with(attempted(), |it| it.offerings.quotas = reached(at(70)));
    let taken = announced(Some("snap-1"), |it| {
        it.snapshots.snapshots = vec![snapshot("snap-1", SnapshotState::Pending)];
    });
    let rows: Vec<(&str, Observed, bool)> = vec![
        ("a quota is reached, until AWS raises it", refused, true),
        ("EBS optimizes, for up to a day", optimizing(ModificationState::Optimizing), true),
        ("EBS modifies, for minutes", optimizing(ModificationState::Modifying), false),
        ("the tag of another cluster", untagged, true),
        ("the snapshot is being copied", taken, true),
        ("the snapshot is not shown", announced(Some("snap-1"), |_| {}), false),
    ];
    for (name, world, expected) in rows {
        let plan = plan(&world, now());
        assert_ne!(plan.interest, VolumeInterest::Settled, "{name}");
        assert_eq!(plan.waiting.unwrap().takes_long(), expected, "{name}");
    }
    let plan = plan(&hidden, at(1202));
    assert_ne!(plan.interest, VolumeInterest::Settled, "its tags may come back");
    assert!(plan.waiting.unwrap().takes_long(), "EC2 shows it by its id, without its tags");
}
