//! The sentences of a Database that is to begin, or to go on, with the data of a backup.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::api::SnapshotId;
use crate::api::backup::Consistency;
use crate::api::database::{FormerData, Restored, RestoredInPlace};
use crate::controller::database::messages::restore::TAKEN_BACK;
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
        RestoreRefusal::NotArchived(t("snap-1")),
        RestoreRefusal::NoArchive,
        RestoreRefusal::TooLate(at(0)),
        RestoreRefusal::TooEarly { wanted: at(0), taken_at: at(60) },
        RestoreRefusal::Layout { snapshot: t("snap-1"), has: t("."), wants: t("17/data") },
        RestoreRefusal::Layout { snapshot: t("snap-1"), has: t("pgdata"), wants: t(".") },
        RestoreRefusal::Layout { snapshot: t("snap-1"), has: t("unknown"), wants: t(".") },
    ]);
    let mut waits = vec![
        RestoreWait::Incomplete(t("Backup nightly")),
        RestoreWait::FirstSync,
        RestoreWait::Recording(SnapshotId(t("snap-1"))),
    ];
    waits.extend([
        RestoreWait::RefusedInPlace(RestoreRefusal::Version { wrote: t("9.3.4"), same_major: true }),
        RestoreWait::NoStorage(40),
        RestoreWait::Paused,
        RestoreWait::Replacing { volume: t("orders-a1b2c"), message: None },
        RestoreWait::Replacing { volume: t("orders-a1b2c"), message: Some(t("its claim is being deleted")) },
        RestoreWait::GoingBack(TAKEN_BACK.to_owned()),
        RestoreWait::NoWayBack(t("freehold-6f1c2a54")),
        RestoreWait::WentBack(at(0), t("the engine does not accept connections")),
    ]);
    waits.extend(refusals.into_iter().map(RestoreWait::Refused));
    complete(waits).into_iter().map(DatabaseWait::Restore).collect()
}

/// The notes of its events.
pub(super) fn decided() -> String {
    events::restore_decided(&restored())
}

pub(super) fn in_place() -> String {
    events::restored_in_place(&RestoredInPlace {
        generation: 1,
        backup: restored(),
        initialization_rate: None,
        timeout_minutes: Some(60),
        no_way_back: false,
        former: FormerData {
            volume_uid: t("6f1c2a54"),
            volume_id: VolumeId(t("vol-1")),
            persistent_volume_name: t("freehold-6f1c2a54"),
            size: Size::from_gib(100),
            zone: t("us-east-1b"),
            restored: None,
            engine_version: None,
            served: None,
        },
        started_at: Time(at(0)),
        startable_at: None,
        went_back: None,
        ended_at: None,
    })
}

fn restored() -> Restored {
    Restored {
        snapshot_id: SnapshotId(t("snap-1")),
        size: None,
        taken_at: None,
        consistency: Consistency::EngineCheckpoint,
        engine_version: None,
        recovery: None,
    }
}
