//! Verified backups: what a `BackupSchedule` requests of them, the verification that runs, and what one came
//! to.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When the newest complete Backup is restored and checked, and how.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verify {
    /// When a verification begins: five fields of cron as in `spec.schedule`, in the same time zone. A time
    /// at which another verification of this BackupSchedule runs is left out, and so is one since which an
    /// hour has passed without an operator or a complete Backup.
    #[schemars(length(min = 9, max = 200))]
    #[x_kube(validation = Rule::new("self.matches('^\\\\s*(\\\\S+\\\\s+){4}\\\\S+\\\\s*$')")
        .message("spec.verify.schedule must have five fields: minute, hour, day of month, month and day of \
            week"))]
    pub schedule: String,

    /// The EC2 instance type of the Database that the Backup is restored in. Default: those of the Database
    /// that is backed up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9-]+[.][a-z0-9-]+$')")
        .message("spec.verify.instanceType must be an EC2 instance type such as r7i.large"))]
    pub instance_type: Option<String>,

    /// Its NodeClass. Default: that of the Database that is backed up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')")
        .message("spec.verify.nodeClassName must be the name of a NodeClass: a-z, 0-9, '-' and '.', with a \
            letter or a digit first and last"))]
    pub node_class_name: Option<String>,

    /// For how many minutes a verification may go on, the restore and the check together; after that it has
    /// failed. Default: 120.
    #[schemars(range(min = 10, max = 1440))]
    #[serde(default = "default_timeout_minutes")]
    pub timeout_minutes: u32,

    /// A statement of SQL that must give one row whose first column is true or 1. It runs as the
    /// administrator of the restored database, after every table was read. Not for the engine custom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub query: Option<String>,
}

/// The restored volume is read from S3 block by block.
pub const DEFAULT_TIMEOUT_MINUTES: u32 = 120;

fn default_timeout_minutes() -> u32 {
    DEFAULT_TIMEOUT_MINUTES
}

/// A verification that runs: written before its Database is created, removed once that is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// The Backup that is verified.
    pub backup_name: String,

    /// Its UID.
    #[serde(rename = "backupUID")]
    pub backup_uid: String,

    /// The Database that it is restored in, which is deleted at the end with its volume.
    pub database_name: String,

    /// Its UID, once it was seen.
    #[serde(rename = "databaseUID", default, skip_serializing_if = "Option::is_none")]
    pub database_uid: Option<String>,

    /// When the verification began.
    pub started_at: Time,
}

/// What the newest verification of a BackupSchedule came to. It outlives the Backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastVerification {
    /// The Backup.
    pub backup_name: String,

    /// When it came to its end.
    pub verified_at: Time,

    /// What was found.
    pub result: VerificationResult,

    /// When one passed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_at: Option<Time>,
}

/// What the newest verification of a Backup came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupVerification {
    /// When it came to its end.
    pub verified_at: Time,

    /// What was found.
    pub result: VerificationResult,

    /// The Database that the Backup was restored in. Each verification has one of its own.
    pub database_name: String,

    /// How many tables were read. Not there for the engine custom, nor where nothing was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<i64>,

    /// How many rows these have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<i64>,

    /// How many indexes of a PostgreSQL were compared with their tables. Not there where its image has no
    /// extension amcheck, or the administrator is no superuser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indexes: Option<i64>,

    /// What is wrong, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// How long it took, from its beginning to this result.
    pub duration_seconds: i64,
}

/// What a verification found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum VerificationResult {
    /// The Backup was restored, the engine served it, and the check found nothing wrong.
    Passed,
    /// It could not be restored in time, or the check found something.
    Failed,
}
