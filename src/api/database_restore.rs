//! What a `Database` begins with, or goes on with: the data of a backup.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::backup::Consistency;
use super::database_served::Served;
use super::ids::{SnapshotId, VolumeId};
use super::size::Size;

/// The backup whose data a database begins with: one of the two.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.backupName) != has(self.snapshotID)")
    .message("spec.restore needs exactly one of backupName and snapshotID"))]
pub struct Restore {
    /// A complete Backup of this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub backup_name: Option<String>,

    /// The EBS snapshot of a Backup whose object is gone. It must carry the tags of a Backup of this
    /// namespace: `freehold backups --from-ec2` lists those.
    #[serde(rename = "snapshotID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub snapshot_id: Option<SnapshotId>,

    /// Restores the database as it was at a later moment than that of the backup, by the write-ahead log that
    /// it has archived since (PostgreSQL with spec.walArchive, when the backup was taken). Default: as it was
    /// when the backup was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point_in_time: Option<PointInTime>,

    /// How fast EC2 reads the volume from the snapshot, in MiB/s (EBS Provisioned Rate for Volume
    /// Initialization). The database serves meanwhile, and is slow where it needs what EC2 has not read yet.
    /// AWS charges for it by the GiB, and allows an account 5,000 MiB/s in a Region at a time unless that
    /// quota is raised. Default: EC2's own rate, which costs nothing, and of which AWS promises nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 300))]
    pub initialization_rate: Option<i32>,
}

/// Up to where the archived write-ahead log is applied to the data of a backup. Neither: all of it, which is
/// what is nearest to the loss of a volume.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.time) || !has(self.lsn)")
    .message("pointInTime has time or lsn, or neither for all that is archived"))]
pub struct PointInTime {
    /// The last moment whose transactions are in the data, for example 2026-11-25T10:14:59Z. It must be later
    /// than the backup, and a later transaction must be in the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<MicroTime>,

    /// The last position in the log (an LSN) that is in the data, as pg_current_wal_lsn() gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 17))]
    #[x_kube(validation = Rule::new("self.matches('^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}$')")
        .message("pointInTime.lsn must be a position in the write-ahead log, for example 16/B374D848"))]
    pub lsn: Option<String>,
}

/// The backup whose data takes the place of the data of a database that is there: one of the two, and which
/// restore this is.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.backupName) != has(self.snapshotID)")
    .message("spec.restoreInPlace needs exactly one of backupName and snapshotID"))]
#[x_kube(validation = Rule::new("self == oldSelf || self.generation > oldSelf.generation")
    .message("spec.restoreInPlace changes only with a higher generation: each restore has one of its own"))]
pub struct RestoreInPlace {
    /// Which restore this is, counted from 1: a higher number than the last one's replaces the data once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub generation: i64,

    /// A complete Backup of this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub backup_name: Option<String>,

    /// The EBS snapshot of a Backup whose object is gone, as for spec.restore.
    #[serde(rename = "snapshotID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub snapshot_id: Option<SnapshotId>,

    /// Restores the database as it was at a later moment, as for spec.restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point_in_time: Option<PointInTime>,

    /// How fast EC2 reads the volume from the snapshot, in MiB/s, as for spec.restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 300))]
    pub initialization_rate: Option<i32>,

    /// How long the engine may take, in minutes, until it accepts connections with the data of the backup.
    /// After that the database goes back to the data that it had. An engine recovers as it starts, and the
    /// volume is slow until EC2 has read it. Default: 60.
    #[serde(default = "default_timeout_minutes")]
    #[schemars(range(min = 5, max = 10_080))]
    pub timeout_minutes: u32,
}

fn default_timeout_minutes() -> u32 {
    60
}

impl RestoreInPlace {
    /// The backup alone.
    pub fn backup(&self) -> Restore {
        Restore {
            backup_name: self.backup_name.clone(),
            snapshot_id: self.snapshot_id.clone(),
            point_in_time: self.point_in_time.clone(),
            initialization_rate: self.initialization_rate,
        }
    }
}

/// A restore in place: written before anything is stopped for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoredInPlace {
    /// The generation of spec.restoreInPlace; 0 where an upgrade goes back before there was one.
    pub generation: i64,

    /// What the data is restored from.
    pub backup: Restored,

    /// How fast EC2 reads the volume from the snapshot, in MiB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization_rate: Option<i32>,

    /// How long the engine may take, in minutes. Not there where there is no way back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_minutes: Option<u32>,

    /// True where there is no way back to the data of before: a database that goes back from an upgrade
    /// (status.upgrade) has left it, or is leaving it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_way_back: bool,

    /// What the database goes back to.
    pub former: FormerData,

    /// When it was decided.
    pub started_at: Time,

    /// When the engine could first be started with the data of the backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startable_at: Option<Time>,

    /// Not there unless the database goes back to the data that it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub went_back: Option<RestoreWentBack>,

    /// When the engine accepted connections with the data of the backup, or again with the data that the
    /// database had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
}

impl RestoredInPlace {
    /// Whether the database has not come to rest with either data.
    pub fn is_underway(&self) -> bool {
        self.ended_at.is_none()
    }
}

/// The data that a database had before a restore in place. Its EBS volume is retained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FormerData {
    /// The UID of the Volume that had it.
    #[serde(rename = "volumeUID")]
    pub volume_uid: String,

    /// The EBS volume.
    #[serde(rename = "volumeID")]
    pub volume_id: VolumeId,

    /// The PersistentVolume that is its retention record.
    pub persistent_volume_name: String,

    /// Its size.
    pub size: Size,

    /// Its zone.
    pub zone: String,

    /// What it was restored from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Restored>,

    /// The newest version of QuestDB that was started on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_version: Option<String>,

    /// What its engine last accepted connections as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<Box<Served>>,
}

/// Why a database goes back to the data that it had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreWentBack {
    /// When that was decided.
    pub at: Time,

    /// What was awaited then.
    pub message: String,
}

/// How far EC2 has read a volume from the snapshot that it was created from. Not there of a volume that was
/// created empty, or of which EC2 does not say it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Initialization {
    /// How much of it is read, in per cent, in steps of ten: 100 when it has ended.
    pub progress_percent: i32,

    /// When it ends, as EC2 estimated it at this step: only at a rate that the spec requests
    /// (spec.restore.initializationRate), and until it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_end: Option<Time>,

    /// When it was seen to have ended: from then on the volume is as fast as its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
}

/// What a database was restored from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Restored {
    /// The EBS snapshot.
    #[serde(rename = "snapshotID")]
    pub snapshot_id: SnapshotId,

    /// The size of the volume that was backed up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,

    /// The moment that the data is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<Time>,

    /// What the snapshot is a snapshot of.
    pub consistency: Consistency,

    /// The version of the engine that wrote the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_version: Option<String>,

    /// How the data is recovered to a later moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
}

/// How the data of a backup is recovered to a later moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recovery {
    /// Where the write-ahead log is archived: the destination, without the folder of the volume.
    pub destination: String,

    /// The EBS volume that was backed up: its folder there.
    #[serde(rename = "volumeID")]
    pub volume_id: VolumeId,

    /// Up to where.
    pub until: PointInTime,
}
