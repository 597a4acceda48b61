//! What a plan of the BackupSchedule controller is made of. Pure.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;

use crate::api::Backup;
use crate::api::backup_schedule::Counts;
use crate::controller::backup_schedule::wait::ScheduleWait;

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
            requeue: None,
        }
    }

    /// No time counts.
    pub(super) fn idle(waiting: ScheduleWait) -> Self {
        Self { waiting: Some(waiting), ..Self::done() }
    }
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
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
