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
    let begins = vec![Action::Checkpoint { pod_uid: "pod-uid".into(), engine_time: at(9) }];
    hold(vec![
        ("paused", with(world(), unused), now(), creates(1, 10, false), "Requesting", None),
        ("an old view of EC2", still_runs, now(), begins, "BeginningCheckpoint", None),
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
            taken_at: None,
            consistency,
            engine_version: None,
        });
        status.first_ready_at = has_served.then(|| Time(at(0)));
    })
}

#[test]
fn the_volume_of_a_database_that_was_never_ready_is_not_snapshot() {
    let creates = || creates(1, 10, false);
    let never = |restored| paused(false, restored);
    let starting = with(world(), |it| {
        it.database.as_mut().unwrap().status.as_mut().unwrap().first_ready_at = None;
    });
    let checkpoint = Some(Consistency::EngineCheckpoint);
    let crash = Some(Consistency::CrashConsistent);
    hold(vec![
        ("it starts for the first time", starting.clone(), now(), Vec::new(), "NeverReady", None),
        (
            "it starts for the first time, and needs no checkpoint",
            with(starting, |it| it.database.as_mut().unwrap().spec.engine.kind = EngineType::Postgresql),
            now(),
            Vec::new(),
            "NeverReady",
            None,
        ),
        ("paused before its first start", never(None), now(), Vec::new(), "NeverReady", None),
        ("restored, and paused before its first start", never(checkpoint), now(), vec![], "NeverReady", None),
        ("restored from the data of a power cut", never(crash), now(), vec![], "NeverReady", None),
        ("paused after it", paused(true, None), now(), creates(), "Requesting", None),
        ("restored, and paused after it", paused(true, checkpoint), now(), creates(), "Requesting", None),
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
    let records = || vec![Action::RecordSnapshot(snap("snap-1"))];
    let begins = || vec![Action::Checkpoint { pod_uid: "pod-uid".into(), engine_time: at(9) }];
    hold(vec![
        ("in doubt", attempted(), now(), vec![], "InDoubt", None),
        ("found", found(1), now(), records(), "Recording", None),
        ("found, of a later attempt than the status knows", found(2), now(), records(), "Recording", None),
        ("of an earlier attempt, proven to have made nothing", found(0), now(), vec![], "InDoubt", None),
        (
            "refused, under the same checkpoint",
            refused(true),
            now(),
            creates(2, 10, true),
            "Requesting",
            None,
        ),
        ("refused, and released", refused(false), now(), begins(), "BeginningCheckpoint", None),
        ("proven absent", absent(1204), at(1210), begins(), "BeginningCheckpoint", None),
        ("a second short of it", absent(1203), at(1210), vec![], "InDoubt", None),
        (
            "the status was lost",
            with(world(), |it| {
                it.snapshots.snapshots = vec![snapshot("snap-1", 1, SnapshotState::Pending, "Unverified")];
            }),
            now(),
            records(),
            "Recording",
            None,
        ),
    ]);
}

#[test]
fn a_backup_is_complete_once_ec2_shows_its_snapshot_complete_and_tagged() {
    let tags = || vec![Action::Tag(snap("snap-1"), Consistency::EngineCheckpoint)];
    let complete = Some(Verdict::Complete(Consistency::EngineCheckpoint));
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
        ("pending, not tagged", known(SnapshotState::Pending, "Unverified"), now(), tags(), "Tagging", None),
        (
            "pending, tagged",
            known(SnapshotState::Pending, "EngineCheckpoint"),
            now(),
            vec![],
            "Pending",
            None,
        ),
        (
            "tagged a moment ago",
            with(known(SnapshotState::Completed, "Unverified"), |it| {
                let issued = IssuedRequest { at: at(7), call_blocked: None };
                it.issued = BTreeMap::from([(Call::CreateTags, issued)]);
            }),
            now(),
            vec![],
            "Tagging",
            None,
        ),
        ("complete", known(SnapshotState::Completed, "EngineCheckpoint"), now(), vec![], "", complete),
        ("crash-consistent", crash, now(), vec![], "", Some(Verdict::Complete(Consistency::CrashConsistent))),
        (
            "EC2 failed",
            known(SnapshotState::Error, "EngineCheckpoint"),
            now(),
            vec![],
            "",
            Some(Verdict::Failed(BackupFault::SnapshotFailed)),
        ),
        ("not shown", not_shown(), now(), vec![], "NotListed", None),
        (
            "proven gone by tag, and not read by its id",
            unlisted(ById::NotRead),
            at(1210),
            vec![],
            "NotListed",
            None,
        ),
        ("its tags were taken off", unlisted(ById::Shown), at(1210), vec![], "WithoutTags", None),
        (
            "proven gone",
            unlisted(ById::NotShown),
            at(1210),
            vec![],
            "",
            Some(Verdict::Failed(BackupFault::SnapshotGone)),
        ),
        (
            "the status was lost, and the tag is certain",
            lost("EngineCheckpoint"),
            now(),
            vec![],
            "",
            complete,
        ),
        (
            "the status was lost before it was certain",
            lost("Unverified"),
            now(),
            vec![],
            "",
            Some(Verdict::Failed(BackupFault::CheckpointLost)),
        ),
    ]);
}
