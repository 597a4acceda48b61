//! Whether the controllers of this process go on: when each last came to something.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// When each controller last came to something.
#[derive(Default)]
pub struct Pulse(Mutex<Vec<(&'static str, Beat)>>);

/// When one controller last came to something; never before its watch has listed everything once, which takes
/// as long as the API server is away.
#[derive(Clone, Default)]
pub struct Beat(Arc<Mutex<Option<Instant>>>);

impl Beat {
    /// It came to something now.
    pub fn beat(&self, now: Instant) {
        *self.0.lock() = Some(now);
    }
}

impl Pulse {
    /// The beat of one more controller of this name: there is one for each namespace.
    pub fn of(&self, controller: &'static str) -> Beat {
        let beat = Beat::default();
        self.0.lock().push((controller, beat.clone()));
        beat
    }

    /// The controller that has come to nothing for longer than this, and for how long.
    pub fn silent(&self, longest: Duration, now: Instant) -> Option<(&'static str, Duration)> {
        let silence = |beat: &Beat| Some(now.duration_since((*beat.0.lock())?));
        let all = self.0.lock();
        let mut silent = all.iter().filter_map(|(name, beat)| Some((*name, silence(beat)?)));
        silent.find(|(_, silence)| *silence > longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_secs(900);

    #[test]
    fn a_controller_that_has_come_to_nothing_for_long_is_silent_and_one_that_never_began_is_not() {
        let pulse = Pulse::default();
        let (one, other, start) = (pulse.of("node"), pulse.of("node"), Instant::now());
        let _waits = pulse.of("volume");
        one.beat(start);
        other.beat(start + Duration::from_secs(600));
        assert_eq!(pulse.silent(LONGEST, start + LONGEST), None);
        let later = LONGEST + Duration::from_secs(1);
        assert_eq!(pulse.silent(LONGEST, start + later), Some(("node", later)));
        one.beat(start + later);
        assert_eq!(pulse.silent(LONGEST, start + later), None);
    }
}
