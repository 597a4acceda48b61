//! The checkpoint: begun only when it is free, and released in any case, whatever was lost on the way.

use pretty_assertions::assert_eq;

use super::*;
use crate::cluster::kubelet::DiskUsage;
use crate::controller::backup::observe::{engine_in_question, first};
use crate::controller::backup::remember::ends_turn;

fn unready(it: &mut Observed) {
    it.pod = EnginePod::Running { uid: "pod-uid".into(), address: None, is_ready: false, image: None };
}

#[test]
fn a_checkpoint_begins_only_when_nothing_hinders_the_snapshot() {
    hold(vec![
        (
            "everything is there",
            world(),
            now(),
            "[begin checkpoint of pod-uid after 9 s] BeginningCheckpoint, again in 5 s",
        ),
        (
            "no finalizer yet",
            with(world(), |it| it.backup.metadata.finalizers = None),
            now(),
            "[add finalizer] AddingFinalizer",
        ),
        ("EC2 was not listed yet", with(world(), |it| it.snapshots.swept_at = None), now(), "[] FirstSync"),
        (
            "no Database",
            with(world(), |it| it.database = None),
            now(),
            "[] stalled NoDatabase, again in 60 s",
        ),
        ("no volume", with(world(), |it| it.volume = None), now(), "[] NoVolume, again in 5 s"),
        (
            "the volume is being created",
            with(world(), |it| it.volumes.volumes[0].state = VolumeState::Creating),
            now(),
            "[] NoVolume, again in 5 s",
        ),
        (
            "another goes first",
            with(world(), |it| it.first = Some("x".into())),
            now(),
            "[] Other, again in 5 s",
        ),
        (
            "no pod, and the volume is in use",
            with(world(), |it| it.pod = EnginePod::Absent),
            now(),
            "[] EngineNotReady, again in 5 s",
        ),
        ("the engine is starting", with(world(), unready), now(), "[] EngineNotReady, again in 5 s"),
        (
            "the engine does not answer",
            with(world(), |it| it.engine = EngineView::Unreadable("no".into())),
            now(),
            "[] EngineUnreadable, again in 5 s",
        ),
        (
            "the engine's root is not on the volume",
            with(world(), |it| it.is_root_elsewhere = true),
            now(),
            "[] stalled RootElsewhere, again in 60 s",
        ),
        (
            "another client's checkpoint",
            with(world(), |it| it.engine = shows(Some(0))),
            now(),
            "[] OtherCheckpoint, again in 5 s",
        ),
        (
            "the last one was in vain",
            with(world(), |it| status(it).released_in_vain_at = Some(Time(at(0)))),
            at(299),
            "[] Pausing, again in 1 s",
        ),
        (
            "the last one was in vain, and the pause is over",
            with(world(), |it| status(it).released_in_vain_at = Some(Time(at(0)))),
            at(300),
            "[begin checkpoint of pod-uid after 9 s] BeginningCheckpoint, again in 5 s",
        ),
        (
            "EC2 refused the last snapshot",
            with(world(), |it| {
                status(it).creation = Some(creation(1, 3, true));
                status(it).creation.as_mut().unwrap().attempt.refused =
                    Some(refusal("UnauthorizedOperation"));
                it.issued =
                    BTreeMap::from([(Call::CreateSnapshot, answered(Call::CreateSnapshot, "x", 300))]);
            }),
            now(),
            "[] Blocked, pending, again in 5 s",
        ),
    ]);
}

/// What a kubelet says, in GiB.
fn disk(capacity: u64, available: u64) -> DiskUsage {
    DiskUsage { capacity: capacity << 30, available: available << 30 }
}

#[test]
fn no_checkpoint_begins_where_the_file_system_may_fill_up_under_it() {
    let (begins, waits) = (
        "[begin checkpoint of pod-uid after 9 s] BeginningCheckpoint, again in 5 s",
        "[] stalled NearlyFull, again in 60 s",
    );
    let full = Some(disk(100, 4));
    hold(vec![
        ("the kubelet says nothing", with(world(), |it| it.disk = None), now(), begins),
        ("4 % are free", with(world(), |it| it.disk = full), now(), waits),
        ("5 % are free", with(world(), |it| it.disk = Some(disk(100, 5))), now(), begins),
        (
            "more than is written in five minutes is free",
            with(world(), |it| it.disk = Some(disk(10_000, 37))),
            now(),
            begins,
        ),
        ("less than that is", with(world(), |it| it.disk = Some(disk(10_000, 36))), now(), waits),
        (
            "a checkpoint that is held is used, and released",
            with(held(), |it| it.disk = full),
            now(),
            "[snapshot attempt 1 with checkpoint] Requesting, pending, again in 5 s",
        ),
        (
            "another client's checkpoint is said first",
            with(world(), |it| (it.engine, it.disk) = (shows(Some(0)), full)),
            now(),
            "[] OtherCheckpoint, again in 5 s",
        ),
        (
            "a volume that nothing writes to",
            with(world(), |it| {
                (it.pod, it.disk) = (EnginePod::Absent, full);
                it.volumes.volumes[0].state = VolumeState::Available;
            }),
            now(),
            "[snapshot attempt 1 without checkpoint] Requesting, pending, again in 5 s",
        ),
        (
            "a deletion",
            with(world(), |it| {
                it.backup.metadata.deletion_timestamp = Some(Time(at(5)));
                it.disk = full;
            }),
            now(),
            "[remove finalizer] Retained",
        ),
    ]);
    let mut postgresql = world();
    postgresql.database = Some(database(&json!({"type": "postgresql", "version": "17.6"})));
    postgresql.disk = full;
    assert!(line(now(), &plan(&postgresql, now())).starts_with("[snapshot attempt 1 without checkpoint"));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn whatever_was_lost_the_release_is_paid() {
    let unanswered = |engine: EngineView| {
        with(held(), |it| {
            status(it).checkpoint = Some(owed(None));
            it.engine = engine;
        })
    };
    let started = |change: fn(&mut Observed)| {
        with(held(), |it| {
            status(it).creation = Some(creation(1, 3, true));
            status(it).snapshot_id = Some(snap("snap-1"));
            change(it);
        })
    };
    hold(vec![
        (
            "killed before CREATE: it may still begin",
            unanswered(shows(None)),
            at(61),
            "[] CheckpointUnconfirmed, again in 5 s",
        ),
        (
            "killed before CREATE: it cannot begin any more",
            unanswered(shows(None)),
            at(62),
            "[note released] Releasing",
        ),
        (
            "killed after CREATE: it is ours, and may not be whole",
            unanswered(shows(Some(2))),
            now(),
            "[release checkpoint of 2 s] Releasing, again in 5 s",
        ),
        (
            "killed after CREATE, long ago",
            unanswered(shows(Some(2))),
            at(301),
            "[release checkpoint of 2 s] Releasing, again in 5 s",
        ),
        (
            "one that began before is another client's",
            unanswered(shows(Some(0))),
            now(),
            "[note released] Releasing",
        ),
        (
            "one that began long after is another client's",
            unanswered(shows(Some(62))),
            at(70),
            "[note released] Releasing",
        ),
        (
            "the engine ended, and with it the checkpoint",
            with(held(), |it| it.pod = EnginePod::NotRunning),
            now(),
            "[note released] Releasing",
        ),
        (
            "another pod",
            with(held(), |it| status(it).checkpoint.as_mut().unwrap().pod_uid = "old".into()),
            now(),
            "[note released] Releasing",
        ),
        (
            "the engine was started again",
            with(held(), |it| it.engine = shows(None)),
            now(),
            "[note released] Releasing",
        ),
        (
            "released outside, and another client's began",
            with(held(), |it| it.engine = shows(Some(7))),
            now(),
            "[note released] Releasing",
        ),
        (
            "the engine does not answer",
            with(held(), |it| it.engine = EngineView::Unreadable("no".into())),
            at(10_000),
            "[] ReleaseOwed, again in 5 s",
        ),
        (
            "held for as long as it may be",
            held(),
            at(301),
            "[release checkpoint of 2 s] Releasing, again in 5 s",
        ),
        (
            "the snapshot has started",
            started(|_| {}),
            now(),
            "[note consistent, release checkpoint of 2 s] Releasing, again in 5 s",
        ),
        (
            "the snapshot has started, late",
            started(|_| {}),
            at(5000),
            "[note consistent, release checkpoint of 2 s] Releasing, again in 5 s",
        ),
        (
            "killed after it was noted",
            started(|it| status(it).consistency = Some(Consistency::EngineCheckpoint)),
            now(),
            "[release checkpoint of 2 s] Releasing, again in 5 s",
        ),
        (
            "a snapshot of before the checkpoint is not consistent by it",
            started(|it| status(it).creation = Some(creation(1, 0, true))),
            now(),
            "[release checkpoint of 2 s] Releasing, again in 5 s",
        ),
        (
            "the Backup is deleted",
            with(held(), |it| it.backup.metadata.deletion_timestamp = Some(Time(at(9)))),
            now(),
            "[release checkpoint of 2 s] Releasing, again in 5 s",
        ),
        (
            "the Backup is deleted, and the engine does not answer",
            with(held(), |it| {
                it.backup.metadata.deletion_timestamp = Some(Time(at(9)));
                it.engine = EngineView::Unreadable("no".into());
            }),
            now(),
            "[] ReleaseOwed, again in 5 s",
        ),
        (
            "the Backup is deleted, and its Database is gone",
            with(held(), |it| {
                it.backup.metadata.deletion_timestamp = Some(Time(at(9)));
                (it.database, it.pod, it.engine) = (None, EnginePod::Absent, EngineView::NotRead);
            }),
            now(),
            "[note released] Releasing",
        ),
        (
            "its Database is gone, and its engine still runs",
            with(held(), |it| it.database = None),
            now(),
            "[release checkpoint of 2 s] Releasing, again in 5 s",
        ),
        (
            "another Database of its name, and its engine still runs",
            with(held(), |it| it.database.as_mut().unwrap().metadata.uid = Some("other".into())),
            now(),
            "[release checkpoint of 2 s] Releasing, again in 5 s",
        ),
        (
            "held, and the snapshot is not requested yet",
            held(),
            now(),
            "[snapshot attempt 1 with checkpoint] Requesting, pending, again in 5 s",
        ),
    ]);
}

#[test]
fn the_engine_that_may_hold_a_checkpoint_is_known_without_its_database() {
    let held = owed(Some(2));
    let mut other = database(&json!({"type": "postgresql", "version": "17.6"}));
    other.metadata.name = Some("other".to_owned());
    for database in [None, Some(&other)] {
        let asked = engine_in_question(Some(&held), database).unwrap();
        assert_eq!((asked.pod_name.as_str(), asked.secret_name.as_str()), ("orders-0", "orders-admin"));
        assert_eq!((asked.port, asked.database_name.as_str()), (Some(8812), "qdb"));
    }
    assert_eq!(engine_in_question(None, Some(&other)).unwrap().pod_name, "other-0");
    assert_eq!(engine_in_question(None, None), None);
}

#[test]
fn what_was_snapshot_without_its_checkpoint_is_no_backup() {
    let lost = with(world(), |it| {
        status(it).creation = Some(creation(1, 3, true));
        status(it).snapshot_id = Some(snap("snap-1"));
        it.snapshots.snapshots = vec![snapshot("snap-1", 1, SnapshotState::Completed, "Unverified")];
    });
    hold(vec![("complete, and never seen to be consistent", lost, now(), "[] failed: CheckpointLost")]);
}

#[test]
fn who_lets_another_go_first_has_the_turn_no_more() {
    let ends = |observed: &Observed| ends_turn(&observed.backup, &plan(observed, now()));
    let in_vain = |it: &mut Observed| {
        status(it).released_in_vain_at = Some(Time(at(0)));
        it.first = Some("older".to_owned());
    };
    assert!(
        ends(&with(world(), in_vain)),
        "the older one waits for the turn, and this one for the older one"
    );
    assert!(!ends(&world()) && !ends(&held()));
    let over = with(world(), |it| status(it).completed_at = Some(Time(at(9))));
    assert!(ends(&over));
}

#[test]
fn of_two_backups_the_one_that_has_begun_goes_first_else_the_older_one() {
    let named = |name: &str, created: i64, change: fn(&mut BackupStatus)| {
        let mut backup = backup();
        backup.metadata.name = Some(name.to_owned());
        backup.metadata.uid = Some(name.to_owned());
        backup.metadata.creation_timestamp = Some(Time(at(created)));
        let mut status = BackupStatus::default();
        change(&mut status);
        backup.status = Some(status);
        backup
    };
    let is = |others: Vec<Backup>| {
        let it = named("m", 5, |_| {});
        let all: Vec<Backup> = others.into_iter().chain([it.clone()]).collect();
        first(&it, &all).and_then(|it| it.metadata.name.clone())
    };
    let completed = |status: &mut BackupStatus| status.completed_at = Some(Time(at(0)));
    let owes = |status: &mut BackupStatus| {
        status.completed_at = Some(Time(at(0)));
        status.checkpoint = Some(owed(None));
    };
    let begun = |status: &mut BackupStatus| status.creation = Some(creation(1, 3, false));
    assert_eq!(is(vec![]), None);
    assert_eq!(is(vec![named("old", 4, |_| {})]).as_deref(), Some("old"));
    assert_eq!(is(vec![named("a", 5, |_| {})]).as_deref(), Some("a"), "of one second by name");
    assert_eq!(is(vec![named("z", 5, |_| {}), named("young", 6, |_| {})]), None);
    assert_eq!(is(vec![named("old", 4, |_| {}), named("young", 6, begun)]).as_deref(), Some("young"));
    assert_eq!(is(vec![named("old", 4, completed)]), None);
    assert_eq!(is(vec![named("old", 4, owes)]).as_deref(), Some("old"), "it owes a release");
    let mut other = named("old", 4, begun);
    other.spec.database_name = "ledger".to_owned();
    assert_eq!(is(vec![other]), None, "of another Database");
    let mut deleted = named("old", 4, |_| {});
    deleted.metadata.deletion_timestamp = Some(Time(at(6)));
    assert_eq!(is(vec![deleted]), None, "it is being deleted, and has not begun");
}
