//! The times of a schedule: which one came last, and which comes next. Pure.

use cronexpr::{Crontab, MakeTimestamp, ParseOptions};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::wait::InvalidSchedule;
use crate::api::BackupScheduleSpec;

/// How far back the newest time is looked for, one span after the other, so that a schedule of every minute
/// that has stood still for a year takes no second of work: an hour, a day, 32 days, 400 days.
const SPANS: [SignedDuration; 4] = [
    SignedDuration::from_hours(1),
    SignedDuration::from_hours(24),
    SignedDuration::from_hours(32 * 24),
    SignedDuration::from_hours(400 * 24),
];

/// Longer than any clock was ever changed by.
const LONGEST_CHANGE: SignedDuration = SignedDuration::from_hours(25);

/// The times of one schedule.
#[derive(Debug)]
pub struct Times {
    crontab: Crontab,
    /// The zone of the times, where `crontab` gives them as a wall clock shows them, with the offset of UTC.
    wall_clock: Option<TimeZone>,
}

impl Times {
    /// Reads the schedule of the BackupSchedule of this UID, which `H` picks by.
    ///
    /// Where the hours are fixed, a time is what a wall clock shows: each comes once a day, also on the days
    /// when the clocks are changed. Where they are not (`*`), every hour that passes counts. Vixie's cron
    /// makes the same difference (crontab(8), "Daylight Saving Time").
    pub fn of(spec: &BackupScheduleSpec, uid: &str) -> Result<Self, InvalidSchedule> {
        let zone =
            TimeZone::get(&spec.time_zone).map_err(|_| InvalidSchedule::TimeZone(spec.time_zone.clone()))?;
        let fields: Vec<&str> = spec.schedule.split_whitespace().collect();
        let [_, hour, _, _, _] = fields[..] else { return Err(InvalidSchedule::Fields(fields.len())) };
        let wall_clock = (!hour.starts_with('*')).then_some(zone);
        let crontab_zone = if wall_clock.is_some() { "UTC" } else { spec.time_zone.as_str() };
        let mut options = ParseOptions::default();
        options.hashed_value = Some(hashed(uid));
        let crontab = cronexpr::parse_crontab_with(&format!("{} {crontab_zone}", fields.join(" ")), options)
            .map_err(|error| InvalidSchedule::Cron(last_line(&error.to_string())))?;
        Ok(Self { crontab, wall_clock })
    }

    /// The newest time after `after`, up to and with `now`.
    pub fn newest(&self, after: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let starts = SPANS.iter().filter_map(|span| now.checked_sub(*span).ok());
        let mut starts = starts.filter(|start| *start > after).chain([after]);
        starts.find_map(|start| self.after(start).take_while(|time| *time <= now).last())
    }

    /// The first time after `now`; `None` for a day that does not come within four years, such as 30
    /// February.
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.after(now).next()
    }

    /// The times after this moment, in their order.
    fn after(&self, start: Timestamp) -> impl Iterator<Item = Timestamp> + use<'_> {
        let shown = |zone: &TimeZone| {
            let shown = TimeZone::UTC.to_timestamp(start.to_zoned(zone.clone()).datetime()).ok();
            shown.and_then(|shown| shown.checked_sub(LONGEST_CHANGE).ok()).unwrap_or(start)
        };
        let from = self.wall_clock.as_ref().map_or(start, shown);
        let times = self.crontab.iter_after(MakeTimestamp(from)).ok().into_iter().flatten();
        let moments = times.map_while(|time| {
            let time = time.ok()?;
            match &self.wall_clock {
                Some(zone) => moment(time.datetime(), zone),
                None => Some(time.timestamp()),
            }
        });
        moments.filter(move |moment| *moment > start)
    }
}

/// When a clock of this zone shows this: the first time, if it does twice; the moment of the change, if it is
/// skipped.
fn moment(shown: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(shown);
    let is_skipped = matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. });
    let moment = ambiguous.compatible().ok()?;
    if is_skipped { zone.preceding(moment).next().map(|change| change.timestamp()) } else { Some(moment) }
}

/// A number that stays the same for a UID, in every version of the operator.
fn hashed(uid: &str) -> u64 {
    uid.bytes().fold(0, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)))
}

/// The parser shows the place on lines of their own before it says what is wrong.
fn last_line(message: &str) -> String {
    let line = message.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    line.trim_start_matches('^').trim().to_owned()
}
