//! When what the copies show is enough for a pass. Pure.
//!
//! A pass looks at the copies first. They may be a moment old, and of some objects they show only those with
//! our labels. So a plan that acts, and a status that takes back what an earlier one said, are made again of
//! what the API server says. What is left is to see that there is nothing to do, and to report progress,
//! which rests on objects that are there. What was set up of an object that is being deleted ends: to report
//! that is progress, too, unless what was set up is released or kept.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::api::ConditionType;

/// The conditions that become true while something is set up.
const PROGRESS: [ConditionType; 11] = [
    ConditionType::Ready,
    ConditionType::Available,
    ConditionType::NodeReady,
    ConditionType::VolumeReady,
    ConditionType::EngineReady,
    ConditionType::Launched,
    ConditionType::Registered,
    ConditionType::Initialized,
    ConditionType::Created,
    ConditionType::Bound,
    ConditionType::Modified,
];

/// The fields that name what is there, of all kinds.
const FOUND: [&str; 20] = [
    "applied",
    "binding",
    "config",
    "coreNodeName",
    "credentialsSecretName",
    "endpoint",
    "engineVersion",
    "firstReadyAt",
    "health",
    "initialization",
    "instanceType",
    "nodeName",
    "observedGeneration",
    "providerID",
    "run",
    "served",
    "size",
    "volumeName",
    "zone",
    "conditions",
];

/// The conditions that become true while an object ends. No plan reads the first; the second rests on EC2's
/// inventory, which is the same in a first look. That a machine is drained is none of them: its termination
/// depends on since when it is.
const ENDING: [ConditionType; 2] = [ConditionType::VolumeDetached, ConditionType::InstanceTerminated];

/// The field that ends with what it shows, and that no pass decides on.
const ENDS: &str = "instanceType";

/// Whether a plan made of the copies stands: it does nothing, and what follows for the status is progress.
pub fn is_enough<S: Serialize + PartialEq>(acts: bool, is_ending: bool, old: &S, new: &S) -> bool {
    let json = |status| serde_json::to_value(status).unwrap_or_default();
    !acts && (old == new || is_progress(is_ending, &json(old), &json(new)))
}

/// Whether all that the old status says is so still, and what is new has been found or set up.
fn is_progress(is_ending: bool, old: &Value, new: &Value) -> bool {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return old == new };
    let is_found = |field: &String| old.contains_key(field) || FOUND.contains(&field.as_str());
    let ends = |field: &String| is_ending && field == ENDS && !new.contains_key(field);
    let stands =
        |(field, was): (&String, &Value)| field == "conditions" || new.get(field) == Some(was) || ends(field);
    let (was, now) = (conditions(old), conditions(new));
    let is_known = |now: &Value| {
        now["status"] != "True" || is_of_progress(now) || is_in(now, was) || (is_ending && is_of_end(now))
    };
    old.iter().all(stands)
        && new.keys().all(is_found)
        && was.iter().all(|was| has_advanced(is_ending, was, now))
        && now.iter().all(is_known)
}

fn conditions(status: &Map<String, Value>) -> &[Value] {
    status.get("conditions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn is_in(condition: &Value, conditions: &[Value]) -> bool {
    conditions.iter().any(|it| it["type"] == condition["type"])
}

fn is_of_progress(condition: &Value) -> bool {
    PROGRESS.iter().any(|it| condition["type"] == it.as_str())
}

fn is_of_end(condition: &Value) -> bool {
    ENDING.iter().any(|it| condition["type"] == it.as_str())
}

/// Whether the status of a condition is as it was, or became another before anything was set up, or on its
/// way out.
fn has_advanced(is_ending: bool, was: &Value, now: &[Value]) -> bool {
    let Some(now) = now.iter().find(|now| now["type"] == was["type"]) else { return false };
    let may_end = is_ending && (is_of_progress(was) || is_of_end(was));
    now["status"] == was["status"] || may_end || (is_of_progress(was) && was["status"] != "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(conditions: &[(&str, &str)]) -> Value {
        let conditions = conditions.iter().map(|(name, status)| json!({"type": name, "status": status}));
        json!({"conditions": conditions.collect::<Vec<_>>()})
    }

    #[test]
    fn what_acts_is_decided_anew() {
        assert!(is_enough(false, false, &json!({}), &json!({})));
        assert!(!is_enough(true, false, &json!({}), &json!({})));
    }

    #[test]
    fn progress_is_reported_and_nothing_is_taken_back() {
        let cases = [
            ("the first status", json!({}), status(&[("Ready", "False")]), true),
            ("as before", status(&[("Lost", "False")]), status(&[("Lost", "False")]), true),
            ("ready", status(&[("Ready", "False")]), status(&[("Ready", "True")]), true),
            ("known", status(&[("Ready", "Unknown")]), status(&[("Ready", "False")]), true),
            ("not ready any more", status(&[("Ready", "True")]), status(&[("Ready", "False")]), false),
            ("lost", status(&[("Lost", "False")]), status(&[("Lost", "True")]), false),
            ("a condition less", status(&[("Altered", "True")]), status(&[]), false),
            ("a field more", json!({}), json!({"zone": "us-east-1a"}), true),
            ("a decision", json!({}), json!({"replacementNeeded": "Cordoned"}), false),
            ("a new sign", json!({}), status(&[("Fenced", "True")]), false),
            ("no new sign", json!({}), status(&[("Fenced", "False")]), true),
            ("another field", json!({"zone": "us-east-1a"}), json!({"zone": "us-east-1b"}), false),
            ("a field less", json!({"zone": "us-east-1a"}), json!({}), false),
        ];
        for (case, old, new, is_reported) in cases {
            assert_eq!(is_enough(false, false, &old, &new), is_reported, "{case}");
        }
    }

    #[test]
    fn what_was_set_up_ends_with_an_object_that_is_being_deleted_and_nothing_else_does() {
        let cases = [
            ("not ready", status(&[("Ready", "True")]), status(&[("Ready", "False")]), true),
            ("gone", status(&[("EngineReady", "True")]), status(&[("EngineReady", "Unknown")]), true),
            ("terminated", json!({}), status(&[("InstanceTerminated", "True")]), true),
            ("attached", status(&[("VolumeDetached", "True")]), status(&[("VolumeDetached", "False")]), true),
            ("drained", status(&[("Drained", "False")]), status(&[("Drained", "True")]), false),
            ("lost", status(&[("Lost", "False")]), status(&[("Lost", "True")]), false),
            ("no type", json!({"instanceType": "r7i.large"}), json!({}), true),
            (
                "another type",
                json!({"instanceType": "r7i.large"}),
                json!({"instanceType": "m7i.large"}),
                false,
            ),
            ("no zone", json!({"zone": "us-east-1a"}), json!({}), false),
            ("a decision", json!({}), json!({"volumeDeletionPolicy": "Delete"}), false),
        ];
        for (case, old, new, is_reported) in cases {
            assert_eq!(is_enough(false, true, &old, &new), is_reported, "{case}");
        }
        assert!(!is_enough(true, true, &json!({}), &json!({})), "what acts is decided anew");
    }

    #[test]
    fn other_words_are_reported() {
        let with =
            |reason: &str| json!({"conditions": [{"type": "Ready", "status": "True", "reason": reason}]});
        assert!(is_enough(false, false, &with("Pending"), &with("AsExpected")));
    }
}
