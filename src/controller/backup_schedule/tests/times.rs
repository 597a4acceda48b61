//! The times of schedules, through daylight saving.

use jiff::SignedDuration;

use super::*;
use crate::controller::backup_schedule::times::Times;

fn times(schedule: &str, time_zone: &str) -> Times {
    Times::of(schedule, time_zone, "0d5f3c1e-8a1f-4a57-9a39-0f6f0a6f2c11").unwrap()
}

/// The times after a moment.
fn following(schedule: &str, time_zone: &str, after: &str, count: usize) -> Vec<String> {
    let times = times(schedule, time_zone);
    let mut moment = at(after);
    let mut found = Vec::new();
    for _ in 0..count {
        moment = times.next(moment).unwrap();
        found.push(moment.to_string());
    }
    found
}

#[test]
fn a_time_of_the_wall_clock_comes_once_a_day_when_the_clocks_are_changed() {
    // 29 March: at 02:00 it is 03:00. 25 October: at 03:00 it is 02:00.
    let spring = following("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3);
    assert_eq!(spring, ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
    let autumn = following("30 2 * * *", "Europe/Berlin", "2026-10-24T00:00:00Z", 3);
    assert_eq!(autumn, ["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
}

#[test]
fn the_first_moment_that_is_skipped_and_midnight_come_on_that_day_too() {
    let rows = [
        ("0 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"),
        ("0 2 * * 0", "America/New_York", "2026-03-07T12:00:00Z", "2026-03-08T07:00:00Z"),
        ("0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", "2026-04-23T22:00:00Z"),
    ];
    for (schedule, zone, after, next) in rows {
        assert_eq!(following(schedule, zone, after, 1), [next], "{schedule} in {zone}");
    }
}

#[test]
fn every_hour_is_every_hour_that_the_wall_clock_shows() {
    let spring = following("0 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 3);
    assert_eq!(spring, ["2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z", "2026-03-29T03:00:00Z"]);
    let autumn = following("0 * * * *", "Europe/Berlin", "2026-10-24T23:00:00Z", 3);
    assert_eq!(autumn, ["2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z", "2026-10-25T03:00:00Z"]);
}

#[test]
fn a_zone_that_changes_by_half_an_hour_has_its_times_too() {
    // 5 April 2026: at 02:00 it is 01:30.
    let found = following("0 */2 * * *", "Australia/Lord_Howe", "2026-04-04T11:00:00Z", 3);
    assert_eq!(found, ["2026-04-04T13:00:00Z", "2026-04-04T15:30:00Z", "2026-04-04T17:30:00Z"]);
}

#[test]
fn the_next_time_near_a_change_of_the_clocks_is_the_one_that_a_search_from_days_before_finds() {
    let changes = [
        ("Europe/Berlin", "2026-03-29T01:00:00Z"),
        ("Europe/Berlin", "2026-10-25T01:00:00Z"),
        ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
        ("America/New_York", "2026-11-01T06:00:00Z"),
    ];
    for (zone, change) in changes {
        let change: Timestamp = change.parse().unwrap();
        for schedule in ["*/20 * * * *", "30 1,2 * * *"] {
            let times = times(schedule, zone);
            let start = change - SignedDuration::from_hours(4 * 24);
            let end = change + SignedDuration::from_hours(3 * 24);
            let all: Vec<Timestamp> = times.after(start).take_while(|time| *time < end).collect();
            for minutes in (-26 * 60..26 * 60).step_by(53) {
                let now = change + SignedDuration::from_mins(minutes);
                let expected = all.iter().find(|time| **time > now).copied();
                assert_eq!(times.next(now), expected, "{schedule} in {zone} after {now}");
            }
        }
    }
}

#[test]
fn the_newest_time_is_found_however_long_ago_it_was() {
    let rows = [
        ("* * * * *", "2020-01-01T00:00:00Z", Some("2026-06-09T12:00:00Z")),
        ("30 3 * * *", "2026-06-01T00:00:00Z", Some("2026-06-09T03:30:00Z")),
        ("30 3 * * *", "2026-06-09T03:30:00Z", None),
        ("0 0 1 * *", "2020-01-01T00:00:00Z", Some("2026-06-01T00:00:00Z")),
        ("0 0 29 2 *", "2020-01-01T00:00:00Z", Some("2024-02-29T00:00:00Z")),
    ];
    for (schedule, after, newest) in rows {
        let found = times(schedule, "UTC").newest(at(after), at("2026-06-09T12:00:00Z"));
        assert_eq!(found.map(|it| it.to_string()).as_deref(), newest, "{schedule} after {after}");
    }
}

#[test]
fn h_is_a_number_of_the_schedule_that_stays() {
    let [first, second] = ["2026-06-01T00:00:00Z"; 2].map(|after| following("H 3 * * *", "UTC", after, 2));
    assert_eq!(first, second);
    assert_eq!(first[0][11..], first[1][11..]);
    let minutes: std::collections::BTreeSet<String> = (0..100)
        .map(|number| Times::of("H 3 * * *", "UTC", &format!("uid-{number}")).unwrap())
        .map(|times| times.next(at("2026-06-01T00:00:00Z")).unwrap().to_string())
        .collect();
    assert!(minutes.len() > 20, "{minutes:?}");
}

#[test]
fn what_the_parser_does_not_read_is_said_in_one_line() {
    for schedule in
        ["61 3 * * *", "30 3 * * FOO", "@daily x x x x", "30 3 0 * *", "5-1 3 * * *", "*/0 * * * *"]
    {
        let Err(InvalidSchedule::Cron(why)) = Times::of(schedule, "UTC", "uid") else {
            panic!("{schedule} is read")
        };
        assert!(!why.is_empty() && !why.contains('\n') && !why.starts_with('^'), "{schedule}: {why:?}");
    }
}
