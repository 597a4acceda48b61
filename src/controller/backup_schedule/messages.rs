//! Every sentence that a person reads about a BackupSchedule. Pure.

use super::wait::{Field, InvalidSchedule, NotVerified, ScheduleWait};
use crate::engine::verify::Finding;

/// Condition Ready, when it is true.
pub const READY: &str = "Backups are created as scheduled";

impl ScheduleWait {
    /// For the conditions: what is the case, and what a person can do about it.
    pub fn message(&self) -> String {
        match self {
            Self::Invalid(field, why) => why.message(field.name()),
            Self::NeverComes(field, schedule) => {
                format!("{} {schedule:?} has no time within the next four years: change it", field.name())
            }
            Self::QueryOfCustom => {
                "spec.verify.query is set, and the Database has an engine of the type custom, for \
                which no query is known, so no Backup is verified: remove it"
                    .to_owned()
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

impl Field {
    fn name(self) -> &'static str {
        match self {
            Self::Schedule => "spec.schedule",
            Self::Verify => "spec.verify.schedule",
        }
    }
}

impl InvalidSchedule {
    fn message(&self, field: &str) -> String {
        match self {
            Self::Fields(count) => format!(
                "{field} has {count} fields: it needs five, which are minute, hour, day of month, month and day of week"
            ),
            Self::Cron(why) => format!("{field} cannot be read: {why}"),
            Self::Day(day) => format!(
                "{field} has the day {day:?}: neither L nor, as a day of the month, H is supported; give numbers, such \
                as 28"
            ),
            Self::TimeZone(name) => format!(
                "spec.timeZone {name:?} is no time zone of the IANA database: give a name such as Europe/Berlin or UTC"
            ),
        }
    }
}

/// So many findings are named; a database has any number of tables.
const NAMED: usize = 5;

/// So many characters of what is wrong are shown: it may hold what an engine or a query of the user answered.
const SHOWN: usize = 400;

/// Not more than is shown.
fn cut(text: String) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl NotVerified {
    /// What is wrong, as one text for the status of the Backup.
    pub fn message_of(all: &[Self]) -> String {
        let mut sentences: Vec<String> = all.iter().take(NAMED).map(|it| cut(it.message())).collect();
        if all.len() > NAMED {
            sentences.push(format!("and {} more", all.len().saturating_sub(NAMED)));
        }
        sentences.join("; ")
    }

    /// What is wrong.
    pub fn message(&self) -> String {
        match self {
            Self::NotCreated { minutes } => format!(
                "the Database to restore the Backup in could not be created within {minutes} min: the condition Ready \
                of the BackupSchedule says why"
            ),
            Self::Stalled { name, why } => {
                format!("Database {name}, which the Backup was restored in, is stalled: {why}")
            }
            Self::NotReady { name, minutes, why } => format!(
                "Database {name}, which the Backup was restored in, was not ready within {minutes} min: {why}"
            ),
            Self::NotChecked { name, minutes, why: Some(why) } => format!(
                "the check of Database {name}, which the Backup was restored in, has no result after {minutes} min: {why}"
            ),
            Self::NotChecked { name, minutes, why: None } => format!(
                "the check of Database {name}, which the Backup was restored in, has not ended after {minutes} min: a \
                longer spec.verify.timeoutMinutes gives it more time"
            ),
            Self::Found(finding) => found(finding),
        }
    }
}

fn found(finding: &Finding) -> String {
    match finding {
        Finding::Unreadable { table, why } => format!("the engine does not read table {table}: {why}"),
        Finding::Corrupt { table, why } => format!("table {table} is corrupt: {why}"),
        Finding::Index { index, why } => format!("index {index} does not agree with its table: {why}"),
        Finding::Suspended(table) => {
            format!("the engine has suspended table {table}: what was written to it is not applied")
        }
        Finding::NoTables => {
            "the engine has no table: the data is empty, or it is elsewhere on the volume. Where that \
            is right, a spec.verify.query such as SELECT 1 says so"
                .to_owned()
        }
        Finding::Checksums(count) => format!("the engine counted {count} checksum failures of pages"),
        Finding::Answer(answer) => {
            format!("spec.verify.query gave {answer:?}: it must give one row that begins with true or 1")
        }
        Finding::QueryRefused(why) => format!("the engine refused spec.verify.query: {why}"),
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

    /// Event BackupVerified.
    pub fn verified(database: &str) -> String {
        format!("the Backup was restored in Database {database} and checked; nothing wrong was found")
    }

    /// Event VerificationFailed.
    pub fn not_verified(why: &str) -> String {
        format!("the Backup did not pass its verification: {why}")
    }

    /// Event BackupSkipped.
    pub fn skipped(name: &str, why: &str) -> String {
        format!("Backup {name} is not created: {why}")
    }
}
