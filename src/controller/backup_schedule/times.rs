//! The times of a schedule: which one came last, and which comes next. Pure.

use cronexpr::{Crontab, MakeTimestamp, ParseOptions};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::wait::InvalidSchedule;

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

/// The times of one schedule, as a wall clock of its zone shows them: each comes once a day, also on the days
/// when the clocks are changed.
#[derive(Debug)]
pub struct Times {
    /// Gives them with the offset of UTC, which is never changed: in a zone that changes by half an hour
    /// (Australia/Lord_Howe) the crate's search for an hour may go round in a circle.
    crontab: Crontab,
    zone: TimeZone,
}

impl Times {
    /// Reads a schedule of the BackupSchedule of this UID, which `H` picks by.
    pub fn of(schedule: &str, time_zone: &str, uid: &str) -> Result<Self, InvalidSchedule> {
        let zone = TimeZone::get(time_zone).map_err(|_| InvalidSchedule::TimeZone(time_zone.to_owned()))?;
        let fields: Vec<&str> = schedule.split_whitespace().collect();
        let [_, _, day_of_month, _, day_of_week] = fields[..] else {
            return Err(InvalidSchedule::Fields(fields.len()));
        };
        // The crate never finds the last day of December (1.7.0), and a month may not have the day of H.
        if day_of_month.to_ascii_uppercase().contains(['L', 'H']) {
            return Err(InvalidSchedule::Day(day_of_month.to_owned()));
        }
        if day_of_week.to_ascii_uppercase().contains('L') {
            return Err(InvalidSchedule::Day(day_of_week.to_owned()));
        }
        let mut options = ParseOptions::default();
        options.hashed_value = Some(hashed(uid));
        let crontab = cronexpr::parse_crontab_with(&format!("{} UTC", fields.join(" ")), options)
            .map_err(|error| InvalidSchedule::Cron(last_line(&error.to_string())))?;
        Ok(Self { crontab, zone })
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
    pub(super) fn after(&self, start: Timestamp) -> impl Iterator<Item = Timestamp> + use<'_> {
        let shown = TimeZone::UTC.to_timestamp(start.to_zoned(self.zone.clone()).datetime());
        let shown = shown.unwrap_or(start);
        // The crate goes from time to time: a day of them is searched only where the clock was changed.
        let back = if self.is_changed_before(start) { LONGEST_CHANGE } else { SignedDuration::ZERO };
        let from = shown.checked_sub(back).unwrap_or(shown);
        let times = self.crontab.iter_after(MakeTimestamp(from)).ok().into_iter().flatten();
        let moments = times.map_while(|time| moment(time.ok()?.datetime(), &self.zone));
        moments.filter(move |moment| *moment > start)
    }

    /// Whether the clock was changed at this moment or shortly before, so that it has shown times after this
    /// one already.
    fn is_changed_before(&self, moment: Timestamp) -> bool {
        let after = moment.checked_add(SignedDuration::from_secs(1)).unwrap_or(moment);
        let change = self.zone.preceding(after).next();
        change.is_some_and(|change| moment.duration_since(change.timestamp()) <= LONGEST_CHANGE)
    }
}

/// When a clock of this zone shows this: the first time, if it does twice; the moment of the change, if it is
/// skipped.
fn moment(shown: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(shown);
    let is_skipped = matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. });
    let moment = ambiguous.compatible().ok()?;
    if !is_skipped {
        return Some(moment);
    }
    // What is skipped first is shifted to the change itself, and what precedes that is the one before.
    let after = moment.checked_add(SignedDuration::from_secs(1)).ok()?;
    zone.preceding(after).next().map(|change| change.timestamp())
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
