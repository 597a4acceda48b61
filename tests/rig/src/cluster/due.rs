//! When something is due next.

use jiff::{SignedDuration, Timestamp};

/// How long until a look at what EC2 or a call is to bring.
const SOON: SignedDuration = SignedDuration::from_secs(1);

/// When something is due next.
#[derive(Debug, Default)]
pub struct Due(pub Option<Timestamp>);

impl Due {
    /// Something is due then.
    pub fn at(&mut self, moment: Timestamp) {
        self.0 = Some(self.0.map_or(moment, |next| next.min(moment)));
    }

    /// Something is awaited that does not say when it comes.
    pub fn soon(&mut self, now: Timestamp) {
        self.at(now + SOON);
    }

    /// Whether the moment has come; else something is due then.
    pub fn passed(&mut self, moment: Timestamp, now: Timestamp) -> bool {
        if moment > now {
            self.at(moment);
        }
        moment <= now
    }
}
