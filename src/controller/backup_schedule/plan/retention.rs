//! Which Backups of a schedule its retention does not keep. Pure.

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use crate::api::Backup;
use crate::api::backup_schedule::Retention;
use crate::controller::safety;

/// So many Backups that cannot be restored are kept, the newest ones, so that a person can see what happened.
const UNUSABLE_KEPT: usize = 3;

/// The Backups to delete, the oldest first. Nothing is deleted without a retention.
pub(super) fn expired<'a>(
    retention: Option<&Retention>,
    mine: &[&'a Backup],
    now: Timestamp,
) -> Vec<&'a Backup> {
    let Some(retention) = retention else { return Vec::new() };
    let (mut usable, unusable): (Vec<&Backup>, Vec<&Backup>) =
        mine.iter().copied().filter(|backup| backup.is_over()).partition(|backup| backup.can_be_restored());
    usable.sort_by_key(|backup| std::cmp::Reverse(age_of(backup)));
    let count = retention.count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    let since = retention.max_age_days.map(|days| SignedDuration::from_hours(24 * i64::from(days)));
    let is_old = |backup: &Backup| {
        let age = age_of(backup).0.map(|at| now.duration_since(at));
        age.zip(since).is_some_and(|(age, since)| age > since)
    };
    let beyond = usable.iter().enumerate().filter(|(place, it)| *place >= count || is_old(it));
    let beyond = beyond.map(|(_, backup)| *backup).filter(|it| safety::may_expire(it, mine));
    let mut expired: Vec<&Backup> = beyond.chain(beyond_kept(unusable)).collect();
    expired.sort_by_key(|backup| age_of(backup));
    expired
}

/// The oldest ones of what cannot be restored.
fn beyond_kept(mut unusable: Vec<&Backup>) -> impl Iterator<Item = &Backup> {
    unusable.sort_by_key(|backup| std::cmp::Reverse(age_of(backup)));
    unusable.into_iter().skip(UNUSABLE_KEPT)
}

/// The moment that its data is of, or that it was created.
fn age_of(backup: &Backup) -> (Option<Timestamp>, String) {
    let started_at = backup.status.as_ref().and_then(|status| status.started_at.clone());
    (started_at.or_else(|| backup.creation_timestamp()).map(|at| at.0), backup.name_any())
}
