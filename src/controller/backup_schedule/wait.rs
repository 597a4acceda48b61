//! Why no Backups are made as a BackupSchedule says: a value with its reason. Pure.
//!
//! The sentences are in `messages`.

use crate::api::Reason;
use crate::engine::verify::Finding;

/// What keeps Backups from being made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum ScheduleWait {
    /// The schedule cannot be read.
    Invalid(Field, InvalidSchedule),
    /// The schedule has no time within four years.
    NeverComes(Field, String),
    /// The Database has an engine of which no query is known.
    QueryOfCustom,
    /// It is suspended.
    Suspended,
    /// The Database of this name does not exist.
    NoDatabase(String),
    /// The Backup of this name, of an earlier time, has not come to its end: this time is left out.
    Unfinished(String),
    /// The newest Backup, of this name, failed.
    Failed(String),
    /// An object of this name exists that is no Backup of this schedule.
    NameTaken(String),
}

/// Which of its two schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `spec.schedule`: without it no Backup is created.
    Schedule,
    /// `spec.verify.schedule`: without it no Backup is verified.
    Verify,
}

/// Why a schedule cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidSchedule {
    /// It has so many fields, and not five.
    Fields(usize),
    /// What the cron parser says.
    Cron(String),
    /// `L`, or `H` as a day of the month: not every month has such a day, or the parser misses it.
    Day(String),
    /// No time zone has this name.
    TimeZone(String),
}

impl ScheduleWait {
    /// For the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Invalid(..) | Self::NeverComes(..) | Self::QueryOfCustom => Reason::InvalidSpec,
            Self::Suspended => Reason::Suspended,
            Self::NoDatabase(_) => Reason::AwaitingDatabase,
            Self::Unfinished(_) => Reason::AwaitingBackup,
            Self::Failed(_) => Reason::BackupFailed,
            Self::NameTaken(_) => Reason::NameConflict,
        }
    }

    /// Whether nothing changes until a person does something.
    pub fn is_stalled(&self) -> bool {
        match self {
            Self::Invalid(..) | Self::NeverComes(..) | Self::QueryOfCustom | Self::NoDatabase(_) => true,
            Self::Suspended | Self::Unfinished(_) | Self::Failed(_) | Self::NameTaken(_) => false,
        }
    }
}

/// Why a Backup has not passed its verification. The sentences are those of the Backup's status.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum NotVerified {
    /// The Database of the verification could not be created in time.
    NotCreated {
        /// For how long it was tried.
        minutes: u32,
    },
    /// The Database is stalled: its restore is refused, for example.
    Stalled {
        /// Its name.
        name: String,
        /// What its condition says.
        why: String,
    },
    /// The Database was not ready in time.
    NotReady {
        /// Its name.
        name: String,
        /// For how long it was waited for.
        minutes: u32,
        /// What its condition says.
        why: String,
    },
    /// The check of the database came to no end in time.
    NotChecked {
        /// The Database.
        name: String,
        /// For how long it was waited for.
        minutes: u32,
        /// What hindered the check.
        why: Option<String>,
    },
    /// The check found something.
    Found(Finding),
}
