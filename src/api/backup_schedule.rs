//! `BackupSchedule`: when backups of a database begin, and which of them are kept.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::verification::{LastVerification, Verification, Verify};

/// When Backups of a Database are created, and which are kept.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "freehold.dev",
    version = "v1alpha1",
    kind = "BackupSchedule",
    plural = "backupschedules",
    singular = "backupschedule",
    shortname = "fschedule",
    category = "freehold",
    namespaced,
    status = "BackupScheduleStatus",
    derive = "PartialEq",
    doc = "Creates Backups of a Database of the same namespace at set times, and deletes old ones with their \
        snapshots. Its Backups outlive it.",
    printcolumn(
        name = "Ready", type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether backups are made as scheduled."
    ),
    printcolumn(
        name = "Reason", type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        description = "Why they are not."
    ),
    printcolumn(
        name = "Database", type_ = "string",
        json_path = ".spec.databaseName",
        description = "The Database."
    ),
    printcolumn(
        name = "Schedule", type_ = "string",
        json_path = ".spec.schedule",
        description = "The times, as cron fields."
    ),
    printcolumn(
        name = "Time-Zone", type_ = "string",
        json_path = ".spec.timeZone",
        description = "The time zone of the times.",
        priority = 1
    ),
    printcolumn(
        name = "Last-Complete", type_ = "date",
        json_path = ".status.lastComplete.startedAt",
        description = "The moment that the newest complete backup is of."
    ),
    printcolumn(
        name = "Next", type_ = "string",
        json_path = ".status.nextTime",
        description = "When the next backup begins."
    ),
    printcolumn(
        name = "Last-Verified", type_ = "date",
        json_path = ".status.lastVerification.passedAt",
        description = "When a Backup passed its verification last."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 63")
        .message("metadata.name must have at most 63 characters: its Backups are labelled with it")
)]
#[serde(rename_all = "camelCase")]
pub struct BackupScheduleSpec {
    /// The Database, in the namespace of this BackupSchedule. It cannot change.
    #[schemars(length(min = 1, max = 40))]
    #[x_kube(validation = Rule::new("self == oldSelf")
        .message("spec.databaseName cannot change: create another BackupSchedule"))]
    pub database_name: String,

    /// When a Backup is created: the five fields of cron (minute, hour, day of month, month, day of week),
    /// such as `30 3 * * *`. `H` in place of a number is a number that is picked for this BackupSchedule:
    /// with `H 3 * * *` those of many databases do not all begin at once.
    #[schemars(length(min = 9, max = 200))]
    #[x_kube(validation = Rule::new("self.matches('^\\\\s*(\\\\S+\\\\s+){4}\\\\S+\\\\s*$')")
        .message("spec.schedule must have five fields: minute, hour, day of month, month and day of week"))]
    pub schedule: String,

    /// The time zone of `schedule`, by its name in the IANA database, such as `Europe/Berlin`. A time that
    /// the clocks skip in spring is the moment of the change, and one that comes twice in autumn is the first
    /// of both. Default: UTC.
    #[schemars(length(min = 1, max = 64))]
    #[serde(default = "utc")]
    pub time_zone: String,

    /// While this is true no Backup is created and none is deleted, and no verification begins. What would
    /// have been created meanwhile is not made up for. Default: false.
    #[serde(default)]
    pub suspend: bool,

    /// Which Backups of this BackupSchedule are kept. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("has(self.count) || has(self.maxAgeDays)")
        .message("spec.retention needs count or maxAgeDays"))]
    pub retention: Option<Retention>,

    /// At its own times the newest complete Backup is restored in a Database of its own, which is checked and
    /// deleted with its volume; `status.verification` of the Backup has the result. Default: no Backup is
    /// verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
}

fn utc() -> String {
    "UTC".to_owned()
}

/// Which complete Backups are kept. The others are deleted with their snapshots, but never the newest one of
/// a Database that can be restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// So many complete Backups are kept, the newest ones. Default: no limit.
    #[schemars(range(min = 1, max = 10_000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,

    /// Complete Backups are kept for so many days. Default: no limit.
    #[schemars(range(min = 1, max = 36_500))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age_days: Option<u32>,
}

impl BackupSchedule {
    /// What its status says; nothing before its controller's first pass.
    pub fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }
}

/// What is known of a schedule.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupScheduleStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Ready and Stalled.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// From when on times count: not before the schedule was seen, changed or resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,

    /// The newest time of the schedule that has come: its Backup was created, or was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_time: Option<Time>,

    /// The time of the schedule that comes next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_time: Option<Time>,

    /// The newest Backup of this BackupSchedule that can be restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_complete: Option<LastComplete>,

    /// The verification that runs: written before anything of it is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,

    /// What the newest verification came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_verification: Option<LastVerification>,

    /// The newest time of `spec.verify` that has come: its verification began, or was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_verification_time: Option<Time>,

    /// The time of `spec.verify` that comes next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_verification_time: Option<Time>,
}

/// Which times count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Times after this moment.
    pub since: Time,

    /// Of this schedule.
    pub schedule: String,

    /// In this time zone.
    pub time_zone: String,
}

/// A Backup that can be restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastComplete {
    /// The Backup.
    pub backup_name: String,

    /// The moment that its data is of.
    pub started_at: Time,
}
