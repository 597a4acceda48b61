//! How long the next replacement of a machine pauses where machines of one database are replaced one soon
//! after the other: what ends them may end every one that follows. Pure.

use std::time::Duration;

use jiff::Timestamp;

use crate::api::Node;
use crate::settings::Timing;
use crate::time::later;

/// The first pauses, in so many times `relaunch_backoff`: 1, 5 and 15 minutes.
pub const PAUSES: [u32; 3] = [1, 5, 15];

/// The pause from then on, an hour: what was wrong may have been outside what people change here, and over by
/// then. A machine that has lived as long begins the count anew.
const SLOW_PAUSES: u32 = 60;

/// When the life of a machine began: with its launch, which may have waited for capacity.
pub fn born_at(node: &Node) -> Option<Timestamp> {
    let launch = node.status.as_ref().and_then(|status| status.creation.as_ref());
    let launched_at = launch.map(|launch| launch.attempt.started_at.0);
    launched_at.or_else(|| node.metadata.creation_timestamp.as_ref().map(|at| at.0))
}

/// How many machines before this one count: none once it has lived for an hour. `since`: when it ended, or
/// was seen to.
pub fn before(node: &Node, since: Timestamp, timing: &Timing) -> i32 {
    counted(node, since, slow(timing))
}

/// The same for a machine that serves: the pause that it has waited for is no time in which it was well.
pub fn before_serving(node: &Node, now: Timestamp, timing: &Timing) -> i32 {
    let paused = pause(node.spec.replaced_before, timing);
    counted(node, now, paused.saturating_add(slow(timing)))
}

/// The machines before one that has not lived for so long at this moment.
fn counted(node: &Node, at: Timestamp, span: Duration) -> i32 {
    let is_young = born_at(node).is_some_and(|born_at| at < later(born_at, span));
    if is_young { node.spec.replaced_before } else { 0 }
}

/// How long the replacement pauses that follows so many others.
pub fn pause(before: i32, timing: &Timing) -> Duration {
    let Some(place) = usize::try_from(before).unwrap_or_default().checked_sub(1) else {
        return Duration::ZERO;
    };
    PAUSES.get(place).map_or_else(|| slow(timing), |times| timing.relaunch_backoff.saturating_mul(*times))
}

/// Whether a person must find out what ends the machines.
pub fn is_stalled(before: i32) -> bool {
    usize::try_from(before).is_ok_and(|before| before > PAUSES.len())
}

/// The longest pause.
pub fn slow(timing: &Timing) -> Duration {
    timing.relaunch_backoff.saturating_mul(SLOW_PAUSES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_grow_from_none_to_an_hour_which_needs_a_person() {
        let minutes = |before| pause(before, &Timing::default()).as_secs() / 60;
        assert_eq!([-1, 0, 1, 2, 3, 4, 99].map(minutes), [0, 0, 1, 5, 15, 60, 60]);
        assert_eq!([0, 3, 4].map(is_stalled), [false, false, true]);
    }
}
