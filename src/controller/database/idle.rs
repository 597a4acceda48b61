//! Why a part of a Database that is not there is not awaited, as data. Pure.

use crate::api::Reason;

/// Why a part of a Database is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// The Database is being deleted.
    Deleting,
    /// The Database is paused.
    Paused,
    /// The part is on its way.
    Awaited,
}

impl Idle {
    /// The reason, which is `awaited` for what is on its way.
    pub fn reason(self, awaited: Reason) -> Reason {
        match self {
            Self::Deleting => Reason::Deleting,
            Self::Paused => Reason::Paused,
            Self::Awaited => awaited,
        }
    }
}
