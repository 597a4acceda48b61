//! The sentences of a Database that is to begin with the data of a backup.

use super::*;
use crate::api::SnapshotId;
use crate::api::backup::Consistency;
use crate::api::database::Restored;
use crate::controller::database::wait::RestoreWait;
use crate::controller::restoring::RestoreRefusal;

/// One of each.
pub(super) fn waits() -> Vec<DatabaseWait> {
    let refusals = complete(vec![
        RestoreRefusal::NoBackup(t("nightly")),
        RestoreRefusal::Unusable(t("nightly")),
        RestoreRefusal::Ending(t("nightly")),
        RestoreRefusal::NotOurs(t("snap-1")),
        RestoreRefusal::EarlierNamespace(t("snap-1")),
        RestoreRefusal::Failed(t("snap-1")),
        RestoreRefusal::Unverified(t("snap-1")),
        RestoreRefusal::Engine(t("postgresql")),
        RestoreRefusal::Version { wrote: t("9.3.4"), same_major: false },
        RestoreRefusal::Version { wrote: t("9.3.4"), same_major: true },
        RestoreRefusal::FileSystem(t("ext4")),
        RestoreRefusal::Larger(200),
        RestoreRefusal::Layout { snapshot: t("snap-1"), has: t("."), wants: t("17/data") },
        RestoreRefusal::Layout { snapshot: t("snap-1"), has: t("pgdata"), wants: t(".") },
        RestoreRefusal::Layout { snapshot: t("snap-1"), has: t("unknown"), wants: t(".") },
    ]);
    let mut waits = vec![
        RestoreWait::Incomplete(t("Backup nightly")),
        RestoreWait::FirstSync,
        RestoreWait::Recording(SnapshotId(t("snap-1"))),
    ];
    waits.extend(refusals.into_iter().map(RestoreWait::Refused));
    complete(waits).into_iter().map(DatabaseWait::Restore).collect()
}

/// The note of its event.
pub(super) fn decided() -> String {
    events::restore_decided(&Restored {
        snapshot_id: SnapshotId(t("snap-1")),
        size: None,
        taken_at: None,
        consistency: Consistency::EngineCheckpoint,
        engine_version: None,
    })
}
