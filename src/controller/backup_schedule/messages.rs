//! Every sentence that a person reads about a BackupSchedule. Pure.

use super::wait::{InvalidSchedule, ScheduleWait};

/// Condition Ready, when it is true.
pub const READY: &str = "Backups are created as scheduled";

impl ScheduleWait {
    /// For the conditions: what is the case, and what a person can do about it.
    pub fn message(&self) -> String {
        match self {
            Self::Invalid(why) => why.message(),
            Self::NeverComes(schedule) => {
                format!("spec.schedule {schedule:?} has no time within the next four years: change it")
            }
            Self::Suspended => "spec.suspend is true: no Backup is created and none is deleted".to_owned(),
            Self::NoDatabase(name) => format!(
                "Database {name} does not exist: create it, or delete this BackupSchedule. Its Backups stay"
            ),
            Self::Unfinished(name) => format!(
                "Backup {name} of an earlier time is not complete: no other is created until it is, or is deleted"
            ),
            Self::Failed(name) => {
                format!(
                    "Backup {name} failed: its condition Failed says why; the next one is created in time"
                )
            }
            Self::NameTaken(name) => format!(
                "Backup {name} exists and is not one of this BackupSchedule, so its time is left out: delete it, or \
                give this BackupSchedule another name"
            ),
        }
    }
}

impl InvalidSchedule {
    fn message(&self) -> String {
        match self {
            Self::Fields(count) => format!(
                "spec.schedule has {count} fields: it needs five, which are minute, hour, day of month, month and day \
                of week"
            ),
            Self::Cron(why) => format!("spec.schedule cannot be read: {why}"),
            Self::Day(field) => format!(
                "spec.schedule has the day {field:?}: neither L nor, as a day of the month, H is supported; give \
                numbers, such as 28"
            ),
            Self::TimeZone(name) => format!(
                "spec.timeZone {name:?} is no time zone of the IANA database: give a name such as Europe/Berlin or UTC"
            ),
        }
    }
}

/// The notes of a BackupSchedule's events.
pub mod events {
    /// Event BackupScheduled.
    pub fn scheduled(backup: &str) -> String {
        format!("Backup {backup} is created")
    }

    /// Event BackupExpired.
    pub fn expired(backup: &str) -> String {
        format!("Backup {backup} is deleted with its snapshot: spec.retention does not keep it")
    }

    /// Event BackupSkipped.
    pub fn skipped(name: &str, why: &str) -> String {
        format!("Backup {name} is not created: {why}")
    }
}
