//! The snapshot: requested once for each attempt, looked up, tagged, and complete only when it is certain.

use super::*;
use crate::api::database::{Adoption, Restored};

/// What an engine that needs no checkpoint is.
fn postgresql(it: &mut Observed) {
    it.database = Some(database(&json!({"type": "postgresql", "version": "17.6"})));
    it.engine = EngineView::NotRead;
}

/// An attempt under the checkpoint of `held` has no id.
fn attempted() -> Observed {
    with(held(), |it| status(it).creation = Some(creation(1, 3, true)))
}

/// The snapshot is known, and the release is paid.
fn known(state: SnapshotState, tag: &str) -> Observed {
    with(world(), |it| {
        status(it).creation = Some(creation(1, 3, true));
        status(it).snapshot_id = Some(snap("snap-1"));
        status(it).consistency = Some(Consistency::EngineCheckpoint);
        it.snapshots.snapshots = vec![snapshot("snap-1", 1, state, tag)];
    })
}

#[test]
fn without_an_engine_that_writes_no_checkpoint_is_requested() {
    let unused = |it: &mut Observed| {
        it.pod = EnginePod::Absent;
        it.engine = EngineView::NotRead;
        it.volumes.volumes[0].state = VolumeState::Available;
    };
    let plan = plan(&with(world(), postgresql), now());
    let [Action::Create(creation, source)] = plan.actions.as_slice() else { panic!("{plan:?}") };
    assert!(!creation.with_checkpoint && source.engine_version.as_deref() == Some("17.6"));
    assert_eq!(creation.tags["freehold.dev/consistency"], "CrashConsistent");
    assert_eq!(creation.tags["freehold.dev/engine"], "postgresql");
    let still_runs = with(world(), |it| it.volumes.volumes[0].state = VolumeState::Available);
    hold(vec![
        (
            "paused",
            with(world(), unused),
            now(),
            "[snapshot attempt 1 without checkpoint] Requesting, pending, again in 5 s",
        ),
        (
            "an old view of EC2",
            still_runs,
            now(),
            "[begin checkpoint of pod-uid after 9 s] BeginningCheckpoint, again in 5 s",
        ),
    ]);
}

#[test]
fn the_snapshot_has_the_tags_of_the_volume_s_class_and_says_where_an_adopted_database_has_its_data() {
    let planned = |observed: &Observed| {
        let plan = plan(observed, now());
        let [Action::Create(creation, _)] = plan.actions.as_slice() else { panic!("{plan:?}") };
        creation.tags.clone()
    };
    let tags = planned(&with(world(), postgresql));
    assert!(!tags.contains_key("team") && !tags.contains_key("freehold.dev/data-directory"), "{tags:?}");
    let tags = planned(&with(world(), |it| {
        postgresql(it);
        let engine = it.database.as_ref().unwrap().spec.engine.clone();
        let creation = json!({"attempt": 1, "startedAt": at(0).to_string(), "clientToken": "token",
            "zone": "us-east-1b", "size": 100, "type": "gp3", "tags": {"team": "platform", "Name": "x"}});
        let status = it.volume.as_mut().unwrap().status.as_mut().unwrap();
        status.creation = Some(serde_json::from_value(creation).unwrap());
        let database = it.database.as_mut().unwrap();
        database.spec.adopt = Some(
            serde_json::from_value(json!({"statefulSetName": "pg", "claimName": "data",
            "volumeID": "vol-0123456789abcdef0", "instanceID": "i-0123456789abcdef0",
            "serviceName": "pg"}))
            .unwrap(),
        );
        let mount = json!({"name": "v", "mountPath": "/var/lib/postgresql/data"});
        let pod = json!({"containers": [{"name": "pg", "volumeMounts": [mount]}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]});
        let set = json!({"metadata": {"name": "pg"}, "spec": {"serviceName": "pg", "selector": {},
            "template": {"spec": pod}}});
        database.status.as_mut().unwrap().adoption = Some(Adoption {
            at: Time(at(0)),
            pod_uid: "pod".to_owned(),
            engine,
            inputs_hash: "hash".to_owned(),
            stateful_set: set,
            served: None,
            unproven_image: None,
            went_back: None,
        });
    }));
    assert_eq!((tags["team"].as_str(), tags["Name"].as_str()), ("platform", "nightly"));
    assert_eq!(tags["freehold.dev/data-directory"], ".");
}

/// The Database is paused. Its engine has served, or not; `restored`: it began with the data of a backup.
fn paused(has_served: bool, restored: Option<Consistency>) -> Observed {
    with(world(), |it| {
        it.pod = EnginePod::Absent;
        it.engine = EngineView::NotRead;
        it.volumes.volumes[0].state = VolumeState::Available;
        let status = it.database.as_mut().unwrap().status.as_mut().unwrap();
        status.restored = restored.map(|consistency| Restored {
            snapshot_id: snap("snap-0"),
            size: None,
            taken_at: None,
            consistency,
            engine_version: None,
            recovery: None,
        });
        status.first_ready_at = has_served.then(|| Time(at(0)));
    })
}

#[test]
fn the_volume_of_a_database_that_was_never_ready_is_not_snapshot() {
    let never = |restored| paused(false, restored);
    let starting = with(world(), |it| {
        it.database.as_mut().unwrap().status.as_mut().unwrap().first_ready_at = None;
    });
    let checkpoint = Some(Consistency::EngineCheckpoint);
    let crash = Some(Consistency::CrashConsistent);
    hold(vec![
        ("it starts for the first time", starting.clone(), now(), "[] NeverReady, again in 5 s"),
        (
            "it starts for the first time, and needs no checkpoint",
            with(starting, |it| it.database.as_mut().unwrap().spec.engine.kind = EngineType::Postgresql),
            now(),
            "[] NeverReady, again in 5 s",
        ),
        ("paused before its first start", never(None), now(), "[] NeverReady, again in 5 s"),
        (
            "restored, and paused before its first start",
            never(checkpoint),
            now(),
            "[] NeverReady, again in 5 s",
        ),
        ("restored from the data of a power cut", never(crash), now(), "[] NeverReady, again in 5 s"),
        (
            "paused after it",
            paused(true, None),
            now(),
            "[snapshot attempt 1 without checkpoint] Requesting, pending, again in 5 s",
        ),
        (
            "restored, and paused after it",
            paused(true, checkpoint),
            now(),
            "[snapshot attempt 1 without checkpoint] Requesting, pending, again in 5 s",
        ),
    ]);
}

#[test]
fn an_attempt_without_an_id_is_looked_for_and_made_again_only_on_proof() {
    let refused = |held: bool| {
        with(attempted(), |it| {
            status(it).creation.as_mut().unwrap().attempt.refused = Some(refusal("x"));
            if !held {
                status(it).checkpoint = None;
                it.engine = shows(None);
            }
        })
    };
    let found = |attempt| {
        with(attempted(), |it| {
            it.snapshots.snapshots = vec![snapshot("snap-1", attempt, SnapshotState::Pending, "Unverified")];
        })
    };
    let absent = |last: i64| {
        with(attempted(), |it| {
            status(it).checkpoint = None;
            it.engine = shows(None);
            it.snapshots.empty = Some(EmptyRun { first: at(4), last: at(last) });
        })
    };
    hold(vec![
        ("in doubt", attempted(), now(), "[] InDoubt, pending, again in 5 s"),
        ("found", found(1), now(), "[record snap-1] Recording, pending"),
        (
            "found, of a later attempt than the status knows",
            found(2),
            now(),
            "[record snap-1] Recording, pending",
        ),
        (
            "of an earlier attempt, proven to have made nothing",
            found(0),
            now(),
            "[] InDoubt, pending, again in 5 s",
        ),
        (
            "refused, under the same checkpoint",
            refused(true),
            now(),
            "[snapshot attempt 2 with checkpoint] Requesting, pending, again in 5 s",
        ),
        (
            "refused, and released",
            refused(false),
            now(),
            "[begin checkpoint of pod-uid after 9 s] BeginningCheckpoint, pending, again in 5 s",
        ),
        (
            "proven absent",
            absent(1204),
            at(1210),
            "[begin checkpoint of pod-uid after 9 s] BeginningCheckpoint, pending, again in 5 s",
        ),
        ("a second short of it", absent(1203), at(1210), "[] InDoubt, pending"),
        (
            "the status was lost",
            with(world(), |it| {
                it.snapshots.snapshots = vec![snapshot("snap-1", 1, SnapshotState::Pending, "Unverified")];
            }),
            now(),
            "[record snap-1] Recording, pending",
        ),
    ]);
}

#[test]
fn a_backup_is_complete_once_ec2_shows_its_snapshot_complete_and_tagged() {
    let crash = with(known(SnapshotState::Completed, "CrashConsistent"), |it| {
        status(it).creation = Some(creation(1, 3, false));
        status(it).consistency = None;
    });
    let not_shown = || with(known(SnapshotState::Pending, ""), |it| it.snapshots.snapshots.clear());
    let unlisted = |by_id| {
        with(not_shown(), |it| {
            it.snapshots.empty = Some(EmptyRun { first: at(4), last: at(1204) });
            it.by_id = by_id;
        })
    };
    let lost = |tag: &str| {
        with(known(SnapshotState::Completed, tag), |it| {
            it.backup.status =
                Some(BackupStatus { snapshot_id: Some(snap("snap-1")), ..BackupStatus::default() });
        })
    };
    hold(vec![
        (
            "pending, not tagged",
            known(SnapshotState::Pending, "Unverified"),
            now(),
            "[tag snap-1 EngineCheckpoint] Tagging, pending",
        ),
        ("pending, tagged", known(SnapshotState::Pending, "EngineCheckpoint"), now(), "[] Pending, pending"),
        (
            "tagged a moment ago",
            with(known(SnapshotState::Completed, "Unverified"), |it| {
                let issued = IssuedRequest { at: at(7), call_blocked: None };
                it.issued = BTreeMap::from([(Call::CreateTags, issued)]);
            }),
            now(),
            "[] Tagging, pending",
        ),
        (
            "complete",
            known(SnapshotState::Completed, "EngineCheckpoint"),
            now(),
            "[] complete: EngineCheckpoint",
        ),
        ("crash-consistent", crash, now(), "[] complete: CrashConsistent"),
        ("EC2 failed", known(SnapshotState::Error, "EngineCheckpoint"), now(), "[] failed: SnapshotFailed"),
        ("not shown", not_shown(), now(), "[] NotListed, pending"),
        (
            "proven gone by tag, and not read by its id",
            unlisted(ById::NotRead),
            at(1210),
            "[] NotListed, pending, reads snap-1, again in 5 s",
        ),
        (
            "its tags were taken off",
            unlisted(ById::Shown),
            at(1210),
            "[] stalled WithoutTags, pending, again in 60 s",
        ),
        ("proven gone", unlisted(ById::NotShown), at(1210), "[] failed: SnapshotGone"),
        (
            "the status was lost, and the tag is certain",
            lost("EngineCheckpoint"),
            now(),
            "[] complete: EngineCheckpoint",
        ),
        ("the status was lost before it was certain", lost("Unverified"), now(), "[] failed: CheckpointLost"),
    ]);
}
