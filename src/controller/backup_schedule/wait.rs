//! Why no Backups are made as a BackupSchedule says: a value with its reason. Pure.
//!
//! The sentences are in `messages`.

use crate::api::Reason;

/// What keeps Backups from being made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum ScheduleWait {
    /// The schedule cannot be read.
    Invalid(InvalidSchedule),
    /// The schedule has no time within four years.
    NeverComes(String),
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
            Self::Invalid(_) | Self::NeverComes(_) => Reason::InvalidSpec,
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
            Self::Invalid(_) | Self::NeverComes(_) | Self::NoDatabase(_) => true,
            Self::Suspended | Self::Unfinished(_) | Self::Failed(_) | Self::NameTaken(_) => false,
        }
    }
}
