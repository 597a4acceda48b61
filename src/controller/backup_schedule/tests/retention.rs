//! Which Backups a retention deletes, and that the last one that can be restored is never one of them.

use proptest::prelude::*;

use super::*;

/// The names that are deleted on 10 June with this retention.
fn expired(retention: &Value, backups: Vec<Backup>) -> Vec<String> {
    let told = json!({"lastTime": "2026-06-10T03:30:00Z"});
    let plan = planned(&json!({"retention": retention}), &told, backups, "2026-06-10T12:00:00Z");
    let name = |action: Action| match action {
        Action::Expire { name, uid, resource_version } => {
            assert_eq!((uid, resource_version.as_str()), (format!("{name}-uid"), "7"));
            name
        }
        other @ (Action::Create(_)
        | Action::BeginVerification(..)
        | Action::CreateDatabase(_)
        | Action::Check(_)
        | Action::Record(..)
        | Action::DeleteDatabase { .. }) => panic!("{other:?}"),
    };
    plan.actions.into_iter().map(name).collect()
}

/// Complete Backups of the first days of June.
fn days(days: impl IntoIterator<Item = u32>) -> Vec<Backup> {
    days.into_iter()
        .map(|day| complete(&format!("day-{day}"), &format!("2026-06-{day:02}T03:30:00Z")))
        .collect()
}

#[test]
fn what_is_beyond_the_count_or_the_age_is_deleted_the_oldest_first() {
    assert_eq!(expired(&json!({"count": 2}), days(1..=5)), ["day-1", "day-2", "day-3"]);
    assert_eq!(expired(&json!({"maxAgeDays": 7}), days(1..=5)), ["day-1", "day-2", "day-3"]);
    assert_eq!(
        expired(&json!({"maxAgeDays": 7, "count": 1}), days(1..=5)),
        ["day-1", "day-2", "day-3", "day-4"]
    );
    assert_eq!(expired(&json!({"count": 9}), days(1..=5)), [""; 0]);
    assert_eq!(expired(&Value::Null, days(1..=5)), [""; 0], "nothing is deleted without a retention");
}

#[test]
fn the_last_one_that_can_be_restored_stays_however_old_it_is() {
    assert_eq!(expired(&json!({"maxAgeDays": 1}), days(1..=3)), ["day-1", "day-2"]);
    let mut backups = days(1..=2);
    backups.push(failed("day-9", "2026-06-09T03:30:00Z"));
    backups.push(backup("day-10", &json!({})));
    assert_eq!(expired(&json!({"maxAgeDays": 1, "count": 1}), backups), ["day-1"]);
}

#[test]
fn the_last_one_of_an_earlier_database_of_the_name_stays_too() {
    let mut backups = days(5..=6);
    for backup in days(1..=2) {
        let mut earlier = backup;
        let source = source("an-earlier-database");
        earlier.status.as_mut().unwrap().source = serde_json::from_value(source).unwrap();
        backups.push(earlier);
    }
    assert_eq!(expired(&json!({"count": 1}), backups.clone()), ["day-1", "day-5"]);
    assert_eq!(expired(&json!({"count": 2}), backups), [""; 0], "each Database has its own count");
}

#[test]
fn what_ec2_does_not_show_neither_counts_nor_is_deleted() {
    let expired = |listed: Option<&[&str]>, backups: Vec<Backup>| {
        let spec = json!({"retention": {"count": 1}});
        let names = |listed: &[&str]| listed.iter().map(|name| (*name).to_owned()).collect();
        let observed = Observed {
            schedule: schedule(&spec, &json!({"lastTime": "2026-06-10T03:30:00Z"})),
            listed: listed.map(names),
            ..world(backups)
        };
        plan(&observed, at("2026-06-10T12:00:00Z")).actions.len()
    };
    assert_eq!(expired(None, days(1..=9)), 0, "nothing is known of EC2 after a start");
    assert_eq!(expired(Some(&[]), days(1..=9)), 0, "another account, or another Region");
    assert_eq!(expired(Some(&["day-1"]), days(1..=2)), 0, "the newer one is gone: the older one is the last");
    // Those that lost their snapshot are complete: three of them stay, and the others do, too.
    let missing = json!([{"type": "SnapshotMissing", "status": "True", "reason": "SnapshotMissing",
        "message": "", "lastTransitionTime": "2026-06-01T00:00:00Z"}]);
    let mut all = days(1..=9);
    for backup in &mut all {
        backup.status.as_mut().unwrap().conditions = serde_json::from_value(missing.clone()).unwrap();
    }
    let names: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(expired(Some(&names), all), 0);
}

#[test]
fn three_that_failed_stay_and_what_is_not_of_the_schedule_or_goes_already_is_left_alone() {
    let failures =
        (1..=5).map(|day| failed(&format!("failed-{day}"), &format!("2026-06-{day:02}T03:30:00Z")));
    assert_eq!(expired(&json!({"count": 1}), failures.collect()), ["failed-1", "failed-2"]);
    let mut backups = days(1..=4);
    backups[0].metadata.labels = None;
    backups[1].spec.database_name = "invoices".to_owned();
    backups[2].metadata.deletion_timestamp = backups[2].metadata.creation_timestamp.clone();
    assert_eq!(expired(&json!({"count": 1}), backups), [""; 0]);
}

#[test]
fn nothing_is_deleted_while_the_schedule_is_suspended() {
    let spec = json!({"retention": {"count": 1}, "suspend": true});
    assert_eq!(planned(&spec, &json!({}), days(1..=4), "2026-06-10T12:00:00Z").actions, []);
}

proptest! {
    #[test]
    fn whatever_was_backed_up_the_newest_that_can_be_restored_stays_of_each_database(
        backups in prop::collection::vec((1..28u32, 0..3usize, 0..2u8), 1..20),
        count in prop::option::of(1..5u32),
        days in prop::option::of(1..9u32),
    ) {
        let all: Vec<Backup> = backups
            .iter()
            .enumerate()
            .map(|(number, (day, kind, database))| {
                let (name, moment) = (format!("backup-{number}"), format!("2026-05-{day:02}T03:30:00Z"));
                let mut made = match kind {
                    0 => failed(&name, &moment),
                    1 => backup(&name, &json!({})),
                    _ => complete(&name, &moment),
                };
                if let Some(status) = made.status.as_mut().filter(|it| it.source.is_some()) {
                    status.source = serde_json::from_value(source(&format!("database-{database}"))).unwrap();
                }
                made
            })
            .collect();
        let retention = json!({"count": count.unwrap_or(7), "maxAgeDays": days});
        let gone = expired(&retention, all.clone());
        for database in ["database-0", "database-1"] {
            let of_it = |it: &&Backup| {
                let source = it.status.as_ref().and_then(|status| status.source.as_ref());
                it.can_be_restored() && source.is_some_and(|source| source.database_uid == database)
            };
            let started_at = |it: &&Backup| it.status.as_ref()?.started_at.as_ref().map(|at| at.0);
            let newest = all.iter().filter(of_it).max_by_key(started_at);
            let stays = newest.is_none_or(|newest| !gone.contains(&newest.name_any()));
            prop_assert!(stays, "{:?} of {:?}", gone, all);
        }
        let running = all.iter().filter(|it| !it.is_over());
        prop_assert!(running.into_iter().all(|it| !gone.contains(&it.name_any())), "{:?}", gone);
    }
}
