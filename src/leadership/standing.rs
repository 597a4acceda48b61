//! How this operator stands: what `/readyz` and the metric `freehold_leader` show.

use parking_lot::RwLock;

use super::decision::Refusal;

/// How this operator stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stand {
    /// The Leases were not read yet, or cannot be read: why.
    Unknown(String),
    /// This replica leads by then.
    StandingBy(String),
    /// It must not act.
    Refusing(Refusal),
    /// It leads.
    Leading,
}

/// How this operator stands at the moment.
#[derive(Debug)]
pub struct Standing(RwLock<Stand>);

impl Default for Standing {
    fn default() -> Self {
        Self(RwLock::new(Stand::Unknown("the Leases were not read yet".to_owned())))
    }
}

impl Standing {
    /// At the moment.
    pub fn get(&self) -> Stand {
        self.0.read().clone()
    }

    /// Changes it; whether it was otherwise before.
    pub fn set(&self, stand: Stand) -> bool {
        let mut now = self.0.write();
        let is_new = *now != stand;
        *now = stand;
        is_new
    }
}
