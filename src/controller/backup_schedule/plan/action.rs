//! What a plan of the BackupSchedule controller is made of. Pure.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;

use crate::api::backup_schedule::Counts;
use crate::api::verification::{BackupVerification, Verification};
use crate::api::{Backup, Database};
use crate::controller::backup_schedule::wait::ScheduleWait;
use crate::time::sooner;

/// What one pass does and what it waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In this order.
    pub actions: Vec<Action>,
    /// What keeps Backups from being made as scheduled.
    pub waiting: Option<ScheduleWait>,
    /// Which times count from now on; `None` while none does.
    pub counts: Option<Counts>,
    /// The newest time that has come since the last pass.
    pub came: Option<Timestamp>,
    /// The Backup of that time is left out, and why.
    pub left_out: Option<(String, ScheduleWait)>,
    /// The time that comes next.
    pub next: Option<Timestamp>,
    /// The newest time of a verification that has come, and is left out.
    pub skipped_verification: Option<Timestamp>,
    /// The time of a verification that comes next.
    pub next_verification: Option<Timestamp>,
    /// The UID of the Database of the verification that runs, if it is seen.
    pub restored_uid: Option<String>,
    /// The verification that ran is over: nothing of it is left, or what is left is a person's.
    pub ends_verification: bool,
    /// The next reconcile starts at the latest after this time, even without a watch event.
    pub requeue: Option<Duration>,
}

impl Plan {
    /// Nothing is done.
    pub(super) fn done() -> Self {
        Self {
            actions: Vec::new(),
            waiting: None,
            counts: None,
            came: None,
            left_out: None,
            next: None,
            skipped_verification: None,
            next_verification: None,
            restored_uid: None,
            ends_verification: false,
            requeue: None,
        }
    }

    /// The next reconcile starts after this time, if none is to start sooner.
    pub(super) fn again(&mut self, after: Duration) {
        self.requeue = Some(sooner(after, self.requeue));
    }

    /// No time counts.
    pub(super) fn idle(waiting: ScheduleWait) -> Self {
        Self { waiting: Some(waiting), ..Self::done() }
    }
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create the Backup of this name.
    Create(String),
    /// Delete a Backup with its snapshot, as long as it is as it was read.
    Expire {
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
        /// Its resourceVersion.
        resource_version: String,
    },
    /// Write down that a verification begins, of this time, before anything of it is created.
    BeginVerification(Box<Verification>, Timestamp),
    /// Create the Database that a Backup is restored in.
    CreateDatabase(Box<Database>),
    /// Begin the check of a restored Database, which goes on in the background.
    Check(Box<Database>),
    /// Write into a Backup what its verification came to.
    Record(Box<Backup>, Box<BackupVerification>),
    /// Delete the Database that a Backup was restored in, as long as it is as it was read.
    DeleteDatabase {
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
        /// Its resourceVersion.
        resource_version: String,
    },
}

impl Action {
    pub(super) fn expire(backup: &Backup) -> Self {
        Self::Expire {
            name: backup.name_any(),
            uid: backup.uid().unwrap_or_default(),
            resource_version: backup.resource_version().unwrap_or_default(),
        }
    }
}
