//! Which Backups are those of a BackupSchedule, and which of them is the newest that can be restored. Pure.

use kube::ResourceExt;

use crate::api::keys::BACKUP_SCHEDULE_LABEL;
use crate::api::{Backup, BackupSchedule};

/// Whether a Backup was created by this schedule, or by an earlier one of its name for the same Database. A
/// person who removes the label keeps it for ever.
pub fn is_of(backup: &Backup, schedule: &BackupSchedule) -> bool {
    backup.labels().get(BACKUP_SCHEDULE_LABEL) == Some(&schedule.name_any())
        && backup.spec.database_name == schedule.spec.database_name
        && backup.metadata.deletion_timestamp.is_none()
}

/// The newest Backup of this schedule that can be restored.
pub fn newest<'a>(backups: &'a [Backup], schedule: &BackupSchedule) -> Option<&'a Backup> {
    let started_at = |it: &Backup| it.status.as_ref()?.started_at.as_ref().map(|at| at.0);
    let mine = backups.iter().filter(|backup| is_of(backup, schedule));
    let complete = mine.filter(|backup| backup.can_be_restored() && started_at(backup).is_some());
    complete.max_by_key(|backup| (started_at(backup), backup.name_any()))
}
