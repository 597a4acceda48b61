//! What an answer without an id means for an attempt: judged, noted in memory, written into the attempt.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::ClientToken;
use crate::api::creation::{Attempt, Refusal};
use crate::cloud::CloudError;
use crate::cloud::error::Class;
use crate::controller::memory::sends::Sends;
use crate::time::whole_second;

/// What an answer without an id means for the attempt that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Refused for certain, and nothing was in doubt: the attempt made nothing.
    Refused,
    /// Refused for certain; what an earlier send did stays open.
    RefusedAfterDoubt,
    /// This send made nothing, since EC2 throttled the call, or a quota is reached and what an earlier send
    /// did stays open: the attempt is as it was before.
    NotMade {
        /// What it was before.
        was_in_doubt: bool,
    },
    /// It may have made something.
    InDoubt,
}

/// Judges EC2's answer to a creating call. `is_old`: what EC2 does not know yet has had the time to become
/// known. `was_in_doubt`: an earlier send of the attempt was never answered.
pub fn outcome(error: &CloudError, is_old: bool, was_in_doubt: bool) -> Outcome {
    let is_refusal = error.is_definite_refusal() || (error.class == Class::NotYetUsable && is_old);
    match (is_refusal, was_in_doubt) {
        (true, false) => Outcome::Refused,
        (true, true) => Outcome::RefusedAfterDoubt,
        // EC2 checks limits before tokens, and what the request names before it makes anything: this send
        // made nothing, and no earlier one is open.
        (false, false) if matches!(error.class, Class::Quota | Class::NotFound) => Outcome::Refused,
        (false, _) if matches!(error.class, Class::Throttled | Class::Quota | Class::NotYetUsable) => {
            Outcome::NotMade { was_in_doubt }
        }
        (false, _) => Outcome::InDoubt,
    }
}

/// The same for a call that EC2 has no token for: each send is an attempt of its own, which only a lost
/// answer leaves in doubt.
pub fn outcome_without_token(error: &CloudError) -> Outcome {
    if error.class == Class::InDoubt { Outcome::InDoubt } else { Outcome::Refused }
}

impl Outcome {
    /// Notes in memory when the attempt may be sent again: `not_before` if EC2 throttled the call, after a
    /// pause that grows from `recheck` if the call is in doubt. A refusal is not forgotten here: until the
    /// status has it, the attempt stays in doubt.
    pub fn note(
        self,
        token: &ClientToken,
        sends: &Sends,
        not_before: Timestamp,
        recheck: Duration,
        now: Timestamp,
    ) {
        match self {
            Self::Refused => {}
            Self::RefusedAfterDoubt => sends.refused_after_doubt(token),
            Self::NotMade { was_in_doubt } => sends.not_made(token, was_in_doubt, not_before),
            Self::InDoubt => sends.in_doubt(token, recheck, now),
        }
    }

    /// Writes the outcome into the attempt of the status: the refusal, or since when it is in doubt.
    pub fn write(self, error: &CloudError, attempt: &mut Attempt, now: Timestamp) {
        let at = Time(whole_second(now));
        match self {
            Self::Refused => {
                let code = error.code.clone().unwrap_or_default();
                attempt.refused = Some(Refusal { code, message: error.message.clone(), at });
            }
            // Since the first doubt: nothing is written for a later one.
            Self::InDoubt => {
                attempt.in_doubt_since.get_or_insert(at);
            }
            Self::RefusedAfterDoubt | Self::NotMade { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator;

    use super::*;

    #[test]
    fn every_answer_without_an_id_has_one_meaning() {
        use Outcome::{InDoubt, NotMade, Refused, RefusedAfterDoubt};
        for class in Class::iter() {
            let not_made = |was_in_doubt| NotMade { was_in_doubt };
            // Young or old, never in doubt; then the same after doubt.
            let expected = match class {
                Class::Capacity | Class::Forbidden | Class::Invalid | Class::Refused => {
                    [Refused, Refused, RefusedAfterDoubt, RefusedAfterDoubt]
                }
                Class::NotYetUsable => [not_made(false), Refused, not_made(true), RefusedAfterDoubt],
                Class::Throttled => [not_made(false), not_made(false), not_made(true), not_made(true)],
                Class::Quota => [Refused, Refused, not_made(true), not_made(true)],
                Class::NotFound => [Refused, Refused, InDoubt, InDoubt],
                Class::InDoubt | Class::Token | Class::State | Class::ModificationBudget => [InDoubt; 4],
            };
            let error = CloudError { class, ..CloudError::in_doubt("RunInstances", "") };
            let judged = [(false, false), (true, false), (false, true), (true, true)];
            assert_eq!(
                judged.map(|(is_old, was_in_doubt)| outcome(&error, is_old, was_in_doubt)),
                expected,
                "{class:?}"
            );
        }
    }

    #[test]
    fn without_a_token_only_a_lost_answer_leaves_doubt() {
        for class in Class::iter() {
            let error = CloudError { class, ..CloudError::in_doubt("CreateSnapshot", "") };
            let expected = if class == Class::InDoubt { Outcome::InDoubt } else { Outcome::Refused };
            assert_eq!(outcome_without_token(&error), expected, "{class:?}");
        }
    }
}
