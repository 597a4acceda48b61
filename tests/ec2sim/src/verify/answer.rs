//! What a check comes to.

use std::fmt::{Debug, Display};

/// What a check of a truth came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The EC2 that was asked behaves as the truth says.
    Holds,

    /// It behaves otherwise: what was asked, and what was seen.
    Differs(String),

    /// It was not asked, or could not be: why.
    NotAsked(String),

    /// No client can see whether the truth holds: why.
    NotSeen(&'static str),
}

/// Why a check ended before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Differs(String),
    NotAsked(String),
}

/// A check that goes on, or ends.
pub(super) type Checked<T = ()> = Result<T, Stop>;

impl From<Checked> for Verdict {
    fn from(checked: Checked) -> Self {
        match checked {
            Ok(()) => Self::Holds,
            Err(Stop::Differs(seen)) => Self::Differs(seen),
            Err(Stop::NotAsked(why)) => Self::NotAsked(why),
        }
    }
}

impl Verdict {
    /// The verdict in the words of the table.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Differs(_) => "differs",
            Self::NotAsked(_) => "not asked",
            Self::NotSeen(_) => "not seen from outside",
        }
    }

    /// What was seen, or why nothing was.
    pub fn detail(&self) -> &str {
        match self {
            Self::Holds => "",
            Self::Differs(text) | Self::NotAsked(text) => text,
            Self::NotSeen(text) => text,
        }
    }
}

/// Ends the check unless `condition` holds; `seen` says what was seen instead.
pub(super) fn check(condition: bool, seen: impl Display) -> Checked {
    if condition { Ok(()) } else { Err(Stop::Differs(seen.to_string())) }
}

/// Ends the check unless the two are equal; `what` says what was asked.
pub(super) fn equal<T: PartialEq + Debug>(what: &str, got: &T, expected: &T) -> Checked {
    if got == expected {
        Ok(())
    } else {
        Err(Stop::Differs(format!("{what}: {got:?} instead of {expected:?}")))
    }
}
