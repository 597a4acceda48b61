//! A Database that begins with the data of a backup: nothing is created before it is decided which.

use std::collections::BTreeMap;

use pretty_assertions::assert_eq;

use super::*;
use crate::api::backup::Consistency;
use crate::api::database::{Restore, Restored};
use crate::api::{SnapshotId, VolumeId};
use crate::cloud::{Snapshot, SnapshotState};
use crate::controller::database::observe::restore::RestoreView;
use crate::controller::tests::golden::variant;

fn shown(state: SnapshotState, namespace: &str) -> RestoreView {
    let tags = [
        ("freehold.dev/database", format!("{namespace}/former")),
        ("freehold.dev/consistency", "EngineCheckpoint".to_owned()),
        ("freehold.dev/engine", "questdb".to_owned()),
        ("freehold.dev/engine-version", "9.3.4".to_owned()),
        ("freehold.dev/file-system", "xfs".to_owned()),
    ];
    RestoreView::Shown(Box::new(Snapshot {
        id: SnapshotId("snap-1".to_owned()),
        volume: VolumeId("vol-9".to_owned()),
        size: Some(100),
        state,
        started_at: None,
        tags: tags.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<BTreeMap<_, _>>(),
    }))
}

fn restored() -> Restored {
    Restored {
        snapshot_id: SnapshotId("snap-1".to_owned()),
        taken_at: None,
        consistency: Consistency::EngineCheckpoint,
        engine_version: Some("9.3.4".to_owned()),
    }
}

/// A new Database that names a Backup of which this is known.
fn new(view: RestoreView) -> Observed {
    let mut observed = empty(json!({}), json!({}));
    observed.database.spec.restore =
        Some(Restore { backup_name: Some("nightly".to_owned()), snapshot_id: None });
    observed.kept.restore = view;
    observed
}

/// Whether anything but a status is written.
fn creates(plan: &Plan) -> bool {
    plan.actions.iter().any(|action| !matches!(action, Action::RecordRestore(_)))
}

#[test]
fn nothing_is_created_before_the_snapshot_is_decided() {
    let id = || SnapshotId("snap-1".to_owned());
    for (view, stalled) in [
        (RestoreView::NotListedYet, false),
        (RestoreView::Incomplete("nightly".to_owned()), false),
        (shown(SnapshotState::Pending, "team-a"), false),
        (RestoreView::NoBackup("nightly".to_owned()), true),
        (RestoreView::Unusable("nightly".to_owned()), true),
        (RestoreView::NotShown(id()), true),
        (shown(SnapshotState::Error, "team-a"), true),
        (shown(SnapshotState::Completed, "team-b"), true),
    ] {
        let plan = plan(&new(view.clone()), now());
        let waiting = plan.waiting.as_ref().unwrap();
        assert_eq!((variant(waiting).as_str(), waiting.is_stalled()), ("Restore", stalled), "{view:?}");
        assert_eq!(plan.actions, [], "{view:?}");
        assert!(plan.requeue.is_some(), "Backups are not watched");
    }
    let decided = plan(&new(shown(SnapshotState::Completed, "team-a")), now());
    assert_eq!(decided.actions, [Action::RecordRestore(Box::new(restored()))]);
}

#[test]
fn once_it_is_decided_the_volume_is_created_from_it_whatever_becomes_of_the_backup() {
    let mut observed = new(RestoreView::NotRead);
    observed.database.status.get_or_insert_default().restored = Some(restored());
    assert!(creates(&plan(&observed, now())));
    let volume = build::volume(&observed.database, &observed.names, "us-east-1b");
    assert_eq!(volume.spec.snapshot_id.map(|id| id.0).as_deref(), Some("snap-1"));
    let other = build::volume(&empty(json!({}), json!({})).database, &observed.names, "us-east-1b");
    assert_eq!(other.spec.snapshot_id, None);
}
