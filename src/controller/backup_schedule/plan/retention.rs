//! Which Backups of a schedule its retention does not keep. Pure.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use crate::api::Backup;
use crate::api::backup_schedule::Retention;
use crate::controller::safety;

/// So many Backups that failed are kept, the newest ones, so that a person can see what happened.
const FAILED_KEPT: usize = 3;

/// The Backups to delete, the oldest first. `listed`: the names of those whose snapshot EC2 shows. A complete
/// one whose snapshot it does not show neither counts nor is deleted: an incomplete answer of EC2 must not
/// end a Backup.
pub(super) fn expired<'a>(
    retention: &Retention,
    mine: &[&'a Backup],
    listed: &BTreeSet<String>,
    now: Timestamp,
) -> Vec<&'a Backup> {
    let is_usable = |it: &&&Backup| it.can_be_restored() && listed.contains(&it.name_any());
    let usable: Vec<&Backup> = mine.iter().filter(is_usable).copied().collect();
    let has_failed =
        |it: &&&Backup| it.is_over() && it.status.as_ref().is_some_and(|status| status.failure.is_some());
    let failed: Vec<&Backup> = mine.iter().filter(has_failed).copied().collect();
    let mut of_databases: BTreeMap<Option<&str>, Vec<&Backup>> = BTreeMap::new();
    for backup in &usable {
        let source = backup.status.as_ref().and_then(|status| status.source.as_ref());
        of_databases.entry(source.map(|source| source.database_uid.as_str())).or_default().push(backup);
    }
    let beyond = of_databases.into_values().flat_map(|it| beyond(retention, it, now));
    let beyond = beyond.filter(|backup| safety::may_expire(backup, &usable));
    let mut expired: Vec<&Backup> =
        beyond.chain(newest_first(failed).into_iter().skip(FAILED_KEPT)).collect();
    expired.sort_by_key(|backup| age_of(backup));
    expired
}

/// Those of one Database that are beyond the count or the age.
fn beyond<'a>(retention: &Retention, usable: Vec<&'a Backup>, now: Timestamp) -> Vec<&'a Backup> {
    let count = retention.count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    let most = retention.max_age_days.map(|days| SignedDuration::from_hours(24 * i64::from(days)));
    let is_old = |backup: &Backup| {
        let age = age_of(backup).0.map(|at| now.duration_since(at));
        age.zip(most).is_some_and(|(age, most)| age > most)
    };
    let numbered = newest_first(usable).into_iter().enumerate();
    numbered.filter(|(place, it)| *place >= count || is_old(it)).map(|(_, backup)| backup).collect()
}

fn newest_first(mut backups: Vec<&Backup>) -> Vec<&Backup> {
    backups.sort_by_key(|backup| Reverse(age_of(backup)));
    backups
}

/// The moment that its data is of, or that it was created.
fn age_of(backup: &Backup) -> (Option<Timestamp>, String) {
    let started_at = backup.status.as_ref().and_then(|status| status.started_at.clone());
    (started_at.or_else(|| backup.creation_timestamp()).map(|at| at.0), backup.name_any())
}
