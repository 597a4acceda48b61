//! What PostgreSQL says of the archive of its write-ahead log. Pure.

use std::time::Duration;

use super::verify::Row;
use crate::api::database::WalArchiveState;

/// How long a file of the log may wait for its archive: PostgreSQL tries again each minute (its
/// documentation, "Continuous Archiving").
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Whether it archives at all, whether its last try has failed, whether one has not since the engine was
/// started, maybe with another archive, and how many seconds the oldest file waits.
pub const QUESTION: &str = "SELECT pg_catalog.current_setting('archive_mode'), \
    (SELECT last_failed_time IS NOT NULL AND \
        (last_archived_time IS NULL OR last_failed_time > last_archived_time) \
        FROM pg_catalog.pg_stat_archiver), \
    (SELECT coalesce(last_archived_time > pg_catalog.pg_postmaster_start_time(), false) \
        FROM pg_catalog.pg_stat_archiver), \
    (SELECT pg_catalog.date_part('epoch', \
        pg_catalog.clock_timestamp() - pg_catalog.min(modification))::bigint \
        FROM pg_catalog.pg_ls_archive_statusdir() WHERE name LIKE '%.ready')";

/// Has it end the file of its log that it writes to, which is archived then.
pub const SWITCH: &str = "SELECT pg_catalog.pg_switch_wal()";

/// What an engine says of its archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Archiver {
    /// Whether it archives at all.
    pub is_on: bool,
    /// Whether the last try has failed.
    pub has_failed: bool,
    /// Whether a file was archived since it was started.
    pub has_archived: bool,
    /// How long the oldest file waits that is to be archived, if one does.
    pub waits: Option<Duration>,
}

impl Archiver {
    /// The answer to the question; `None` for another one.
    pub fn read(rows: &[Row]) -> Option<Self> {
        let [mode, has_failed, has_archived, waits] = rows.first()?.as_slice() else { return None };
        // A clock that was set back leaves a file of the future.
        let waits = waits.as_ref().map(|seconds| seconds.parse::<i64>()).transpose().ok()?;
        let waits = waits.map(|seconds| Duration::from_secs(seconds.try_into().unwrap_or_default()));
        Some(Self {
            is_on: mode.as_deref()? != "off",
            has_failed: has_failed.as_deref()? == "t",
            has_archived: has_archived.as_deref()? == "t",
            waits,
        })
    }

    /// Whether nothing says that the archive works today, and nothing will while the database is idle:
    /// PostgreSQL ends a file of its log after `archive_timeout` only if something was written
    /// (`CheckArchiveTimeout` in src/backend/postmaster/checkpointer.c). A file that could not be archived
    /// waits; where none does, the failure is of an archive that was turned off since.
    pub fn is_unproven(self) -> bool {
        self.is_on && !self.has_archived && self.waits.is_none()
    }

    /// How far it is behind: how long the oldest file waits. `None` where it does not archive at all.
    pub fn lag(self) -> Option<Duration> {
        self.is_on.then(|| self.waits.unwrap_or_default())
    }

    /// Whether it archives. The start has it do so where the image has the program (`start.sh`).
    pub fn state(self) -> WalArchiveState {
        if !self.is_on {
            WalArchiveState::ProgramMissing
        } else if self.has_failed || self.waits.is_some_and(|waits| waits > LONGEST_WAIT) {
            WalArchiveState::Failing
        } else if self.has_archived {
            WalArchiveState::Archiving
        } else {
            WalArchiveState::Starting
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn state(row: [Option<&str>; 4]) -> Option<WalArchiveState> {
        let row = row.map(|column| column.map(str::to_owned)).to_vec();
        Archiver::read(&[row]).map(Archiver::state)
    }

    #[test]
    fn an_archive_is_unproven_where_nothing_was_archived_and_nothing_is_about_to_be() {
        let second = |seconds| Some(Duration::from_secs(seconds));
        for (row, is_unproven, lag) in [
            ([Some("on"), Some("f"), Some("f"), None], true, second(0)),
            ([Some("on"), Some("f"), Some("f"), Some("0")], false, second(0)),
            ([Some("on"), Some("t"), Some("f"), None], true, second(0)),
            ([Some("on"), Some("t"), Some("f"), Some("90")], false, second(90)),
            ([Some("on"), Some("f"), Some("t"), None], false, second(0)),
            ([Some("off"), Some("f"), Some("f"), None], false, None),
            ([Some("off"), Some("f"), Some("f"), Some("90")], false, None),
        ] {
            let columns = row.map(|column| column.map(str::to_owned)).to_vec();
            let archiver = Archiver::read(&[columns]).unwrap();
            assert_eq!((archiver.is_unproven(), archiver.lag()), (is_unproven, lag), "{row:?}");
        }
    }

    #[test]
    fn an_engine_archives_where_no_file_waits_long_and_the_last_try_has_not_failed() {
        for (row, expected) in [
            ([Some("on"), Some("f"), Some("t"), None], Some(WalArchiveState::Archiving)),
            ([Some("on"), Some("f"), Some("t"), Some("300")], Some(WalArchiveState::Archiving)),
            ([Some("on"), Some("f"), Some("t"), Some("-5")], Some(WalArchiveState::Archiving)),
            ([Some("on"), Some("f"), Some("f"), Some("300")], Some(WalArchiveState::Starting)),
            ([Some("on"), Some("f"), Some("t"), Some("301")], Some(WalArchiveState::Failing)),
            ([Some("on"), Some("t"), Some("f"), None], Some(WalArchiveState::Failing)),
            ([Some("off"), Some("f"), Some("f"), None], Some(WalArchiveState::ProgramMissing)),
            ([Some("on"), None, Some("t"), None], None),
            ([Some("on"), Some("f"), Some("t"), Some("long")], None),
        ] {
            assert_eq!(state(row), expected, "{row:?}");
        }
        assert_eq!(Archiver::read(&[]), None);
    }
}
