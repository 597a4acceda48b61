//! Proof that a resource was never created or no longer exists: the only empty answer of EC2 that Freehold
//! acts on.
//!
//! AWS accepts a signed request for 15 minutes (Signature Version 4), so a send that timed out may still be
//! carried out; and a new resource may be missing from a list for minutes (EC2 developer guide, "Eventual
//! consistency"). So one empty list proves nothing. What proves absence is a run of complete look-ups, all of
//! them empty, all of them started after the last moment at which the creating call can have been sent, that
//! spans a whole window (20 minutes by default).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Consecutive complete look-ups that were empty, by when the first and the last of them started.
///
/// A look-up that failed, or was not complete, is not part of the run and does not end it; a hit ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyRun {
    /// When the first of them started.
    pub first: Timestamp,
    /// When the last of them started.
    pub last: Timestamp,
}

impl EmptyRun {
    /// The run after one more complete look-up. One that did not start after the last possible send adds
    /// nothing, since what was sent later cannot be in it; but a hit counts whenever it started.
    pub fn after(
        run: Option<Self>,
        last_possible_send: Timestamp,
        started: Timestamp,
        is_hit: bool,
    ) -> Option<Self> {
        if is_hit {
            return None;
        }
        if started <= last_possible_send {
            return run;
        }
        match run {
            // A start before the run's is a clock that was set back: begin again rather than count a span
            // that never passed.
            Some(run) if started >= run.last => Some(Self { first: run.first, last: started }),
            Some(_) | None => Some(Self { first: started, last: started }),
        }
    }

    /// True if only look-ups after the last possible send are in it and they span the window.
    fn proves(self, last_possible_send: Timestamp, window: Duration) -> bool {
        let Ok(window) = SignedDuration::try_from(window) else { return false };
        self.first > last_possible_send && self.last.duration_since(self.first) >= window
    }
}

/// What is known from look-ups by client token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenLookup {
    /// EC2 has a filter by token (instances), so a look-up by token is required.
    Required(Option<EmptyRun>),
    /// EC2 has no such filter (volumes, snapshots).
    NotPossible,
}

/// The requested resource does not exist and can no longer come to exist. Only [`prove`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbsenceProven {
    proven_at: Timestamp,
}

impl AbsenceProven {
    /// When the look-up that completed the proof started.
    pub fn proven_at(&self) -> Timestamp {
        self.proven_at
    }
}

/// The proof, if these look-ups are one: by owner tag, and by token where EC2 has such a filter.
/// `last_possible_send` is the latest moment at which a creating call for this object can have left this
/// operator, this process or an earlier one.
pub fn prove(
    last_possible_send: Timestamp,
    by_tag: Option<EmptyRun>,
    by_token: TokenLookup,
    window: Duration,
) -> Option<AbsenceProven> {
    let proves = |run: Option<EmptyRun>| run.filter(|run| run.proves(last_possible_send, window));
    let by_tag = proves(by_tag)?;
    let proven_at = match by_token {
        TokenLookup::Required(run) => by_tag.last.max(proves(run)?.last),
        TokenLookup::NotPossible => by_tag.last,
    };
    Some(AbsenceProven { proven_at })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    const WINDOW: Duration = Duration::from_secs(1200);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    type Run = Option<(i64, i64)>;

    fn run(run: Run) -> Option<EmptyRun> {
        run.map(|(first, last)| EmptyRun { first: at(first), last: at(last) })
    }

    #[test]
    fn only_a_whole_window_of_empty_look_ups_after_the_last_send_proves_absence() {
        let rows: [(&str, Run, Option<Run>, Option<i64>); 11] = [
            ("both span the window", Some((1, 1201)), Some(Some((2, 1202))), Some(1202)),
            ("no token filter exists", Some((1, 1201)), None, Some(1201)),
            ("never looked", None, None, None),
            ("never looked by token", Some((1, 1201)), Some(None), None),
            ("never looked by tag", None, Some(Some((1, 1201))), None),
            ("a second short by tag", Some((1, 1200)), Some(Some((1, 1201))), None),
            ("a second short by token", Some((1, 1201)), Some(Some((1, 1200))), None),
            ("a run that began before the send", Some((-600, 1201)), None, None),
            ("a run that began with the send", Some((0, 1201)), None, None),
            ("by token it began before the send", Some((1, 1201)), Some(Some((-1, 1300))), None),
            ("one look-up long after the send", Some((5000, 5000)), None, None),
        ];
        for (name, by_tag, by_token, proven_at) in rows {
            let by_token =
                by_token.map_or(TokenLookup::NotPossible, |by_token| TokenLookup::Required(run(by_token)));
            let proof = prove(at(0), run(by_tag), by_token, WINDOW);
            assert_eq!(proof.map(|proof| proof.proven_at()), proven_at.map(at), "{name}");
        }
    }

    #[test]
    fn a_run_counts_only_what_started_after_the_last_send_and_a_hit_ends_it() {
        let rows: [(&str, Run, i64, bool, Run); 8] = [
            ("the first empty one", None, 10, false, Some((10, 10))),
            ("another empty one", Some((10, 20)), 30, false, Some((10, 30))),
            ("one that started before the send", None, -1, false, None),
            ("one that started with the send", None, 0, false, None),
            ("an old one does not end the run", Some((10, 20)), -1, false, Some((10, 20))),
            ("a hit", Some((10, 20)), 30, true, None),
            ("a hit in a look-up from before the send", Some((10, 20)), -1, true, None),
            ("a clock that was set back", Some((10, 20)), 15, false, Some((15, 15))),
        ];
        for (name, before, started, is_hit, after) in rows {
            assert_eq!(EmptyRun::after(run(before), at(0), at(started), is_hit), run(after), "{name}");
        }
    }
}
