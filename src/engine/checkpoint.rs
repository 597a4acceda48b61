//! Checkpoints of an engine, as data: which engine has them, the statements, and what it answers. Pure.
//!
//! QuestDB writes to its files in place: a copy of them is consistent only if it began while the engine held
//! a checkpoint (QuestDB documentation, "CHECKPOINT"). PostgreSQL recovers from a snapshot of its one volume
//! as from a power cut, by its write-ahead log (PostgreSQL documentation, "File System Level Backup").

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::api::database::EngineType;

/// Whether a snapshot of a running engine needs a checkpoint to be consistent.
pub fn is_needed(engine: EngineType) -> bool {
    match engine {
        EngineType::Questdb => true,
        EngineType::Postgresql | EngineType::Custom => false,
    }
}

/// The statement that begins a checkpoint. The engine refuses it while it holds one.
pub const CREATE: &str = "CHECKPOINT CREATE";

/// The statement that ends the checkpoint that the engine holds, whose ever it is.
pub const RELEASE: &str = "CHECKPOINT RELEASE";

/// The query for what the engine holds, and for its own time. As strings: QuestDB 8.2.0 answers in the binary
/// formats that another client has asked for, whose place among its connections this one has now.
pub const STATUS: &str =
    "SELECT in_progress::string, started_at::string, now()::string FROM checkpoint_status()";

/// What the engine says of its checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointStatus {
    /// When the checkpoint began that it holds, by its own time; `None` if it holds none.
    pub held_since: Option<Timestamp>,
    /// Its own time.
    pub now: Timestamp,
}

/// Reads the one row of [`STATUS`], as text: whether one is in progress, since when, and the time.
pub fn read(row: [Option<&str>; 3]) -> Option<CheckpointStatus> {
    let [in_progress, started_at, now] = row;
    let now = moment(now?)?;
    let held_since = match in_progress? {
        "t" | "true" => Some(moment(started_at?)?),
        "f" | "false" => None,
        _ => return None,
    };
    Some(CheckpointStatus { held_since, now })
}

/// A timestamp as QuestDB writes it: in UTC, without a zone over the PostgreSQL wire protocol.
fn moment(text: &str) -> Option<Timestamp> {
    let with_zone = text.parse::<Timestamp>().ok();
    with_zone.or_else(|| {
        let civil = text.parse::<DateTime>().ok()?;
        Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp())
    })
}

/// A status keeps whole microseconds at most, which is what QuestDB counts in.
pub fn is_same(one: Timestamp, other: Timestamp) -> bool {
    one.duration_since(other).abs() < SignedDuration::from_micros(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn the_answers_of_questdb_9_3_4_are_read() {
        let held = read([Some("t"), Some("2026-11-25 19:34:16.991709"), Some("2026-11-25 19:34:17.078600")]);
        let expected = CheckpointStatus {
            held_since: Some(at("2026-11-25T19:34:16.991709Z")),
            now: at("2026-11-25T19:34:17.0786Z"),
        };
        assert_eq!(held, Some(expected));
        let as_strings =
            read([Some("true"), Some("2026-11-25T19:34:16.991709Z"), Some("2026-11-25T19:34:17.078600Z")]);
        assert_eq!(as_strings, Some(expected));
        let none = read([Some("false"), None, Some("2026-11-25T19:34:17.166182Z")]);
        assert_eq!(none.map(|it| it.held_since), Some(None));
    }

    #[test]
    fn half_an_answer_is_none() {
        let now = Some("2026-11-25 19:34:17.078600");
        for row in [
            [None, None, now],
            [Some("t"), None, now],
            [Some("t"), Some("yesterday"), now],
            [Some("maybe"), None, now],
            [Some("f"), None, None],
        ] {
            assert_eq!(read(row), None, "{row:?}");
        }
    }
}
