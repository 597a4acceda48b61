//! The create protocol's judgement of one attempt, the same for every kind: pure.
//!
//! An attempt is decided and written (the intent), sent, and its id recorded. Whatever is lost on the way,
//! this file says what may be done next: adopt, send the identical call again, wait, or give the attempt up
//! on proof.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::api::creation::{Attempt, Refusal};
use crate::cloud::absence::AbsenceProven;
use crate::controller::memory::sends::Sent;

/// Everything that the judgement of an attempt without an id depends on.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each named")]
pub struct Facts<Id> {
    /// The object is being deleted: nothing is created for it any more.
    pub deleting: bool,
    /// When the attempt was decided.
    pub started_at: Timestamp,
    /// The definite refusal that was recorded: nothing was made.
    pub refused: Option<Refusal>,
    /// EC2 has a token for the call, so that the identical call can be sent again.
    pub has_token: bool,
    /// This process' sends; `None` when the attempt was found at start-up.
    pub sent: Option<Sent>,
    /// What carries this attempt's identity in EC2.
    pub found: Option<Id>,
    /// Complete look-ups, by tag and (instances) by token, have been made since this operator leads.
    pub looked_up: bool,
    /// The proof that the attempt made nothing.
    pub absent: Option<AbsenceProven>,
    /// The identical request can still be made (the NodeClass still has the user data of this hash).
    pub same_request: bool,
}

/// What may be done about an attempt without an id.
#[derive(Debug)]
pub enum Verdict<Id> {
    /// It made this: record the id.
    Adopt(Id),
    /// EC2 refused it for certain, and it was never in doubt: another attempt may follow.
    Refused(Refusal),
    /// It made nothing, and no send of it can still be carried out: another attempt may follow.
    ProvenAbsent(AbsenceProven),
    /// The identical call, with the same token.
    Resend,
    /// Nothing, for this reason; at the latest until then.
    Wait(Doubt, Option<Timestamp>),
}

/// Why an attempt in doubt is only looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The first complete look-up since the start of this process is awaited.
    FirstLookUp,
    /// The next send is due later.
    Pause,
    /// The object is being deleted.
    Deleting,
    /// EC2 has no token for the call: sent again, it would make a second one.
    NoToken,
    /// The token may be forgotten: the same call could make a second one.
    TokenTooOld,
    /// The NodeClass changed, so the identical call cannot be made.
    RequestChanged,
    /// EC2 refuses the call now; what an earlier send did is not known.
    RefusedAfterDoubt,
}

/// Judges an attempt that has no id yet. `client_token_max_age` is how long after its start its token may be
/// used again.
pub fn judge<Id>(facts: Facts<Id>, client_token_max_age: Duration, now: Timestamp) -> Verdict<Id> {
    if let Some(id) = facts.found {
        return Verdict::Adopt(id);
    }
    if let Some(refusal) = facts.refused {
        return Verdict::Refused(refusal);
    }
    if let Some(proof) = facts.absent {
        return Verdict::ProvenAbsent(proof);
    }
    if facts.deleting {
        return Verdict::Wait(Doubt::Deleting, None);
    }
    if !facts.has_token {
        return Verdict::Wait(Doubt::NoToken, None);
    }
    if facts.sent.is_none() && !facts.looked_up {
        return Verdict::Wait(Doubt::FirstLookUp, None);
    }
    if now.duration_since(facts.started_at)
        > SignedDuration::try_from(client_token_max_age).unwrap_or(SignedDuration::MAX)
    {
        return Verdict::Wait(Doubt::TokenTooOld, None);
    }
    if !facts.same_request {
        return Verdict::Wait(Doubt::RequestChanged, None);
    }
    match facts.sent {
        Some(sent) if sent.refused_after_doubt => Verdict::Wait(Doubt::RefusedAfterDoubt, None),
        Some(sent) if now < sent.not_before => Verdict::Wait(Doubt::Pause, Some(sent.not_before)),
        Some(_) | None => Verdict::Resend,
    }
}

/// The last moment at which this attempt may have left a machine of ours: this process' last send, or, for an
/// attempt found at start-up, the moment before this operator led. Without the attempt (the status was
/// lost) it is what an earlier operator sent: what this one did is not known here.
pub fn last_possible_send(
    attempt: Option<&Attempt>,
    sent: Option<&Sent>,
    leading_since: Timestamp,
) -> Timestamp {
    attempt.map_or(leading_since, |attempt| {
        sent.map_or(leading_since, |sent| sent.last).max(attempt.started_at.0)
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    const RESEND: Duration = Duration::from_secs(6 * 3600);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn facts() -> Facts<u8> {
        Facts {
            deleting: false,
            started_at: at(1000),
            refused: None,
            has_token: true,
            sent: None,
            found: None,
            looked_up: true,
            absent: None,
            same_request: true,
        }
    }

    fn refusal() -> Refusal {
        Refusal { code: "InvalidParameterValue".to_owned(), message: "no".to_owned(), at: Time(at(1000)) }
    }

    fn sent() -> Sent {
        Sent { last: at(1000), times: 1, in_doubt: true, refused_after_doubt: false, not_before: at(1002) }
    }

    fn word(verdict: &Verdict<u8>) -> String {
        match verdict {
            Verdict::Adopt(id) => format!("adopt {id}"),
            Verdict::Refused(_) => "refused".to_owned(),
            Verdict::ProvenAbsent(_) => "absent".to_owned(),
            Verdict::Resend => "resend".to_owned(),
            Verdict::Wait(doubt, until) => format!("wait {doubt:?} {:?}", until.map(Timestamp::as_second)),
        }
    }

    #[test]
    fn every_row_of_the_protocol() {
        let rows: Vec<(&str, Facts<u8>, i64, &str)> = vec![
            (
                "what is found is adopted, whatever else",
                Facts { found: Some(7), deleting: true, refused: Some(refusal()), ..facts() },
                1001,
                "adopt 7",
            ),
            (
                "a definite refusal allows another attempt",
                Facts { refused: Some(refusal()), ..facts() },
                1001,
                "refused",
            ),
            (
                "found at start-up: first a look-up",
                Facts { looked_up: false, ..facts() },
                1001,
                "wait FirstLookUp None",
            ),
            ("found at start-up and looked up: the same call", facts(), 1001, "resend"),
            (
                "in doubt: not before its time",
                Facts { sent: Some(sent()), ..facts() },
                1001,
                "wait Pause Some(1002)",
            ),
            ("in doubt: the same call", Facts { sent: Some(sent()), ..facts() }, 1002, "resend"),
            (
                "our own send needs no look-up first",
                Facts { sent: Some(sent()), looked_up: false, ..facts() },
                1002,
                "resend",
            ),
            ("six hours to the second are allowed", facts(), 1000 + 21600, "resend"),
            ("a token older than six hours is never sent", facts(), 1000 + 21601, "wait TokenTooOld None"),
            (
                "never for an object that is being deleted",
                Facts { deleting: true, ..facts() },
                1001,
                "wait Deleting None",
            ),
            (
                "a call without a token is never sent again",
                Facts { has_token: false, ..facts() },
                1001,
                "wait NoToken None",
            ),
            (
                "never another request under this token",
                Facts { same_request: false, ..facts() },
                1001,
                "wait RequestChanged None",
            ),
            (
                "a refusal after doubt proves nothing",
                Facts { sent: Some(Sent { refused_after_doubt: true, ..sent() }), ..facts() },
                2000,
                "wait RefusedAfterDoubt None",
            ),
        ];
        for (name, facts, now, expected) in rows {
            assert_eq!(word(&judge(facts, RESEND, at(now))), expected, "{name}");
        }
    }

    #[test]
    fn an_attempt_found_at_start_up_may_have_been_sent_until_this_operator_led() {
        let decided = |second| Attempt::new(1, Time(at(second)));
        assert_eq!(last_possible_send(Some(&decided(1000)), None, at(5000)), at(5000));
        assert_eq!(last_possible_send(Some(&decided(900)), Some(&sent()), at(500)), at(1000));
        assert_eq!(last_possible_send(None, None, at(5000)), at(5000));
    }
}
