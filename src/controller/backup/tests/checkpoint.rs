//! The checkpoint: begun only when it is free, and released in any case, whatever was lost on the way.

use pretty_assertions::assert_eq;

use super::*;
use crate::controller::backup::observe::{engine_in_question, first};
use crate::controller::backup::remember::ends_turn;

fn begins() -> Vec<Action> {
    vec![Action::Checkpoint { pod_uid: "pod-uid".to_owned(), engine_time: at(9) }]
}

fn unready(it: &mut Observed) {
    it.pod = EnginePod::Running { uid: "pod-uid".into(), address: None, is_ready: false, image: None };
}

#[test]
fn a_checkpoint_begins_only_when_nothing_hinders_the_snapshot() {
    let none = Vec::new;
    hold(vec![
        ("everything is there", world(), now(), begins(), "BeginningCheckpoint", None),
        (
            "no finalizer yet",
            with(world(), |it| it.backup.metadata.finalizers = None),
            now(),
            vec![Action::AddFinalizer],
            "AddingFinalizer",
            None,
        ),
        (
            "EC2 was not listed yet",
            with(world(), |it| it.snapshots.swept_at = None),
            now(),
            none(),
            "FirstSync",
            None,
        ),
        ("no Database", with(world(), |it| it.database = None), now(), none(), "NoDatabase", None),
        ("no volume", with(world(), |it| it.volume = None), now(), none(), "NoVolume", None),
        (
            "the volume is being created",
            with(world(), |it| it.volumes.volumes[0].state = VolumeState::Creating),
            now(),
            none(),
            "NoVolume",
            None,
        ),
        ("another goes first", with(world(), |it| it.first = Some("x".into())), now(), none(), "Other", None),
        (
            "no pod, and the volume is in use",
            with(world(), |it| it.pod = EnginePod::Absent),
            now(),
            none(),
            "EngineNotReady",
            None,
        ),
        ("the engine is starting", with(world(), unready), now(), none(), "EngineNotReady", None),
        (
            "the engine does not answer",
            with(world(), |it| it.engine = EngineView::Unreadable("no".into())),
            now(),
            none(),
            "EngineUnreadable",
            None,
        ),
        (
            "the engine's root is not on the volume",
            with(world(), |it| it.is_root_elsewhere = true),
            now(),
            none(),
            "RootElsewhere",
            None,
        ),
        (
            "another client's checkpoint",
            with(world(), |it| it.engine = shows(Some(0))),
            now(),
            none(),
            "OtherCheckpoint",
            None,
        ),
        (
            "the last one was in vain",
            with(world(), |it| status(it).released_in_vain_at = Some(Time(at(0)))),
            at(299),
            none(),
            "Pausing",
            None,
        ),
        (
            "the last one was in vain, and the pause is over",
            with(world(), |it| status(it).released_in_vain_at = Some(Time(at(0)))),
            at(300),
            begins(),
            "BeginningCheckpoint",
            None,
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
            none(),
            "Blocked",
            None,
        ),
    ]);
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
    let released = || vec![Action::NoteReleased];
    let release = || vec![Action::Release(at(2))];
    let certain = || vec![Action::NoteConsistent, Action::Release(at(2))];
    let none = Vec::new;
    hold(vec![
        (
            "killed before CREATE: it may still begin",
            unanswered(shows(None)),
            at(61),
            none(),
            "CheckpointUnconfirmed",
            None,
        ),
        (
            "killed before CREATE: it cannot begin any more",
            unanswered(shows(None)),
            at(62),
            released(),
            "Releasing",
            None,
        ),
        (
            "killed after CREATE: it is ours, and may not be whole",
            unanswered(shows(Some(2))),
            now(),
            release(),
            "Releasing",
            None,
        ),
        ("killed after CREATE, long ago", unanswered(shows(Some(2))), at(301), release(), "Releasing", None),
        (
            "one that began before is another client's",
            unanswered(shows(Some(0))),
            now(),
            released(),
            "Releasing",
            None,
        ),
        (
            "one that began long after is another client's",
            unanswered(shows(Some(62))),
            at(70),
            released(),
            "Releasing",
            None,
        ),
        (
            "the engine ended, and with it the checkpoint",
            with(held(), |it| it.pod = EnginePod::NotRunning),
            now(),
            released(),
            "Releasing",
            None,
        ),
        (
            "another pod",
            with(held(), |it| status(it).checkpoint.as_mut().unwrap().pod_uid = "old".into()),
            now(),
            released(),
            "Releasing",
            None,
        ),
        (
            "the engine was started again",
            with(held(), |it| it.engine = shows(None)),
            now(),
            released(),
            "Releasing",
            None,
        ),
        (
            "released outside, and another client's began",
            with(held(), |it| it.engine = shows(Some(7))),
            now(),
            released(),
            "Releasing",
            None,
        ),
        (
            "the engine does not answer",
            with(held(), |it| it.engine = EngineView::Unreadable("no".into())),
            at(10_000),
            none(),
            "ReleaseOwed",
            None,
        ),
        ("held for as long as it may be", held(), at(301), release(), "Releasing", None),
        ("the snapshot has started", started(|_| {}), now(), certain(), "Releasing", None),
        ("the snapshot has started, late", started(|_| {}), at(5000), certain(), "Releasing", None),
        (
            "killed after it was noted",
            started(|it| status(it).consistency = Some(Consistency::EngineCheckpoint)),
            now(),
            release(),
            "Releasing",
            None,
        ),
        (
            "a snapshot of before the checkpoint is not consistent by it",
            started(|it| status(it).creation = Some(creation(1, 0, true))),
            now(),
            release(),
            "Releasing",
            None,
        ),
        (
            "the Backup is deleted",
            with(held(), |it| it.backup.metadata.deletion_timestamp = Some(Time(at(9)))),
            now(),
            release(),
            "Releasing",
            None,
        ),
        (
            "the Backup is deleted, and the engine does not answer",
            with(held(), |it| {
                it.backup.metadata.deletion_timestamp = Some(Time(at(9)));
                it.engine = EngineView::Unreadable("no".into());
            }),
            now(),
            none(),
            "ReleaseOwed",
            None,
        ),
        (
            "the Backup is deleted, and its Database is gone",
            with(held(), |it| {
                it.backup.metadata.deletion_timestamp = Some(Time(at(9)));
                (it.database, it.pod, it.engine) = (None, EnginePod::Absent, EngineView::NotRead);
            }),
            now(),
            released(),
            "Releasing",
            None,
        ),
        (
            "its Database is gone, and its engine still runs",
            with(held(), |it| it.database = None),
            now(),
            release(),
            "Releasing",
            None,
        ),
        (
            "another Database of its name, and its engine still runs",
            with(held(), |it| it.database.as_mut().unwrap().metadata.uid = Some("other".into())),
            now(),
            release(),
            "Releasing",
            None,
        ),
        (
            "held, and the snapshot is not requested yet",
            held(),
            now(),
            creates(1, 10, true),
            "Requesting",
            None,
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
    let fails = Some(Verdict::Failed(BackupFault::CheckpointLost));
    hold(vec![("complete, and never seen to be consistent", lost, now(), Vec::new(), "", fails)]);
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
