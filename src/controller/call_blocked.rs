//! What blocks a step of a plan that no write failed of, as data: it is waited for, and is no failure of the
//! pass. Pure.

use jiff::Timestamp;

use super::blocker::Blocker;
use crate::api::Reason;
use crate::cloud::call::Call;
use crate::cloud::{Class, CloudError};

/// Why a step was not taken: most often a call that EC2, or a limit of our own, did not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallBlocked {
    /// The operator's own rate limit is reached.
    RateLimited {
        /// When the call is allowed.
        until: Timestamp,
    },
    /// EC2 did not accept the call.
    Refused {
        /// The call.
        call: Call,
        /// EC2's answer.
        error: CloudError,
        /// When the call is made again; never by itself without a time.
        until: Option<Timestamp>,
    },
    /// Passes of other Nodes have reserved as many repairs as may be, since this pass observed.
    RepairPostponed {
        /// Why the machine would be declared lost.
        loss: String,
        /// The limit.
        blocker: Blocker,
        /// When the next pass follows.
        until: Timestamp,
    },
}

impl CallBlocked {
    /// For the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::RateLimited { .. } => Reason::Throttled,
            Self::Refused { call, error, .. } => refusal(*call, error.class),
            Self::RepairPostponed { blocker, .. } => blocker.reason(),
        }
    }

    /// The class of EC2's error; `None` for a limit of our own. Decisions read this, never the reason.
    pub fn class(&self) -> Option<Class> {
        match self {
            Self::Refused { error, .. } => Some(error.class),
            Self::RateLimited { .. } | Self::RepairPostponed { .. } => None,
        }
    }

    /// When the next pass follows.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Self::Refused { until, .. } => *until,
            Self::RateLimited { until } | Self::RepairPostponed { until, .. } => Some(*until),
        }
    }
}

/// The reason of an error of this class, as the answer to this call.
fn refusal(call: Call, class: Class) -> Reason {
    match class {
        Class::InDoubt | Class::Token => Reason::InDoubt,
        Class::Throttled => Reason::Throttled,
        Class::Capacity => Reason::InsufficientCapacity,
        Class::Quota => Reason::QuotaExceeded,
        Class::Forbidden => Reason::Forbidden,
        Class::Invalid if call == Call::ModifyVolume => Reason::ModificationRefused,
        Class::Invalid | Class::NotYetUsable | Class::Refused => Reason::InvalidRequest,
        Class::ModificationBudget => Reason::ModificationBudget,
        // A volume's last modification still goes on.
        Class::State if call == Call::ModifyVolume => Reason::Modifying,
        Class::NotFound | Class::State => Reason::Progressing,
    }
}
