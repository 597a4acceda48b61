//! Conditions: what a status step says, merged with what was said before. The only place that decides
//! `lastTransitionTime`.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::api::{ConditionType, Reason};
use crate::controller::messages;
use crate::time::whole_second;

/// The longest message that a condition may have (the API server's own schema).
const LONGEST_MESSAGE: usize = 2000;

/// One condition as a status step says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which condition.
    pub kind: ConditionType,
    /// Whether it holds.
    pub holds: bool,
    /// Why.
    pub reason: Reason,
    /// A sentence that a person can act on. It must be the same as long as the situation is the same.
    pub message: String,
}

impl Entry {
    /// The condition holds.
    pub fn yes(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { kind, holds: true, reason, message: message.into() }
    }

    /// The condition does not hold.
    pub fn no(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { kind, holds: false, reason, message: message.into() }
    }

    /// Whether it holds.
    pub fn is_true(&self) -> bool {
        self.holds
    }
}

/// Stalled: with the wait that nothing but a person ends, if this pass has come to one.
pub fn stalled(waiting: Option<(Reason, String)>) -> Entry {
    match waiting {
        Some((reason, message)) => Entry::yes(ConditionType::Stalled, reason, message),
        None => Entry::no(ConditionType::Stalled, Reason::Progressing, messages::NOT_STALLED),
    }
}

/// The conditions of steps that follow each other, each with its message if it holds: the first that does not
/// says what is waited for.
pub fn in_order<const COUNT: usize>(
    steps: [(ConditionType, Option<String>); COUNT],
    reason: Reason,
    message: &str,
) -> [Entry; COUNT] {
    let first_unmet = steps.iter().find(|(_, met)| met.is_none()).map(|(kind, _)| *kind);
    steps.map(|(kind, met)| match met {
        Some(met) => Entry::yes(kind, Reason::AsExpected, met),
        None if Some(kind) == first_unmet => Entry::no(kind, reason, message),
        None => Entry::no(kind, Reason::Pending, messages::EARLIER_STEP),
    })
}

/// The conditions to write: `entries` in their order, each with the time of its last change of status.
pub fn merge(
    old: &[Condition],
    entries: &[Entry],
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    entries
        .iter()
        .map(|entry| {
            let status = if entry.holds { "True" } else { "False" };
            let since = old
                .iter()
                .find(|before| before.type_ == entry.kind.as_str() && before.status == status)
                .map_or_else(|| Time(whole_second(now)), |before| before.last_transition_time.clone());
            Condition {
                type_: entry.kind.as_str().to_owned(),
                status: status.to_owned(),
                reason: entry.reason.as_str().to_owned(),
                message: shortened(&entry.message),
                observed_generation: generation,
                last_transition_time: since,
            }
        })
        .collect()
}

/// The condition of this type, if it was ever written.
pub fn find(conditions: &[Condition], kind: ConditionType) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == kind.as_str())
}

/// Whether the condition was written as true.
pub fn is_true(conditions: &[Condition], kind: ConditionType) -> bool {
    find(conditions, kind).is_some_and(|condition| condition.status == "True")
}

/// Since when the condition was written as true, or as false; `None` when it is not so.
pub fn since(conditions: &[Condition], kind: ConditionType, holds: bool) -> Option<Timestamp> {
    let status = if holds { "True" } else { "False" };
    find(conditions, kind)
        .filter(|condition| condition.status == status)
        .map(|condition| condition.last_transition_time.0)
}

fn shortened(message: &str) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message.to_owned();
    }
    let end = (0..=LONGEST_MESSAGE).rev().find(|end| message.is_char_boundary(*end)).unwrap_or_default();
    message[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_transition_time_changes_with_the_status_only() {
        let first = merge(&[], &[Entry::no(ConditionType::Ready, Reason::Launching, "a")], Some(1), at(10));
        let same = merge(&first, &[Entry::no(ConditionType::Ready, Reason::Pending, "b")], Some(2), at(20));
        assert_eq!(same[0].last_transition_time, Time(at(10)));
        assert_eq!((same[0].reason.as_str(), same[0].observed_generation), ("Pending", Some(2)));
        let changed =
            merge(&same, &[Entry::yes(ConditionType::Ready, Reason::AsExpected, "c")], Some(2), at(30));
        assert_eq!(changed[0].last_transition_time, Time(at(30)));
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let long = "ä".repeat(LONGEST_MESSAGE);
        assert!(shortened(&long).len() <= LONGEST_MESSAGE);
    }
}
