//! The last step of a pass of the Database controller: what is counted of a Database. Nothing is remembered.

use std::time::Duration;

use crate::api::database::{HistoryEntry, Occurrence};
use crate::api::{ConditionType, Database, DatabaseStatus};
use crate::controller::conditions;
use crate::metrics::{After, Metrics};

/// Counts what this pass has written into the status.
pub(super) fn remember(before: &Database, new: &DatabaseStatus, metrics: &Metrics) {
    let old = before.status.clone().unwrap_or_default();
    for entry in occurred(&old.history, &new.history) {
        metrics.occurred(entry.what);
    }
    if let Some((after, took)) = became_ready(before, &old, new) {
        metrics.ready(after, took);
    }
}

/// The entries that are new, or happened once more.
fn occurred<'a>(old: &'a [HistoryEntry], new: &'a [HistoryEntry]) -> impl Iterator<Item = &'a HistoryEntry> {
    new.iter().filter(|entry| !old.contains(entry))
}

/// After what the database is Ready, and how long it was not; nothing if it was before, or is not.
fn became_ready(
    database: &Database,
    old: &DatabaseStatus,
    new: &DatabaseStatus,
) -> Option<(After, Duration)> {
    if conditions::is_true(&old.conditions, ConditionType::Ready) {
        return None;
    }
    let ready = conditions::since(&new.conditions, ConditionType::Ready, true)?;
    let of_old = conditions::find(&old.conditions, ConditionType::Ready);
    // A new database serves before it is Ready where it awaits the user of its application.
    let first = old.first_ready_at.as_ref().map(|first| first.0);
    let was_ready = |first| of_old.is_none_or(|ready| ready.last_transition_time.0 >= first);
    let (after, since) = if first.is_some_and(was_ready) {
        let since = of_old?.last_transition_time.0;
        // A pause lasts as long as people want; how long the database took begins when it was resumed.
        let resumed = new.history.iter().rev().find(|entry| entry.what == Occurrence::Resumed);
        match resumed.map(|entry| entry.at.0).filter(|at| *at >= since) {
            Some(resumed) => (After::Pause, resumed),
            None => (After::Interruption, since),
        }
    } else {
        (After::Creation, database.metadata.creation_timestamp.as_ref()?.0)
    };
    Some((after, ready.duration_since(since).try_into().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::new(second, 0).unwrap()
    }

    fn status(ready: &str, since: i64, more: Value) -> DatabaseStatus {
        let mut status = json!({"conditions": [{"type": "Ready", "status": ready, "reason": "AsExpected",
            "message": "", "lastTransitionTime": at(since).to_string()}]});
        if let (Some(status), Value::Object(more)) = (status.as_object_mut(), more) {
            status.extend(more);
        }
        serde_json::from_value(status).unwrap()
    }

    fn seconds(old: &DatabaseStatus, new: &DatabaseStatus) -> Option<(After, u64)> {
        let database = serde_json::from_value(json!({
            "apiVersion": "freehold.dev/v1alpha1", "kind": "Database",
            "metadata": {"name": "orders", "creationTimestamp": at(10).to_string()},
            "spec": {"engine": {"type": "questdb", "version": "9.3.4"}, "storage": {"size": "1Gi"}},
        }));
        let found = became_ready(&database.unwrap(), old, new);
        found.map(|(after, took)| (after, took.as_secs()))
    }

    #[test]
    #[expect(clippy::large_stack_arrays, reason = "the rows of a table")]
    fn a_database_that_is_ready_again_is_counted_once_with_what_it_is_ready_after() {
        let first = json!({"firstReadyAt": at(40).to_string()});
        let entry = |what: &str, second: i64| json!({"at": at(second).to_string(), "what": what, "cause": "c", "count": 1});
        let paused = json!([entry("Paused", 60), entry("Resumed", 90)]);
        let ready = |history: &Value| status("True", 100, json!({"history": history}));
        let none = json!([]);
        for (situation, old, new, expected) in [
            ("new", DatabaseStatus::default(), ready(&none), Some((After::Creation, 90))),
            ("never Ready", status("False", 20, json!({})), ready(&none), Some((After::Creation, 90))),
            (
                "never, as it had no user",
                status("False", 20, first.clone()),
                ready(&none),
                Some((After::Creation, 90)),
            ),
            (
                "interrupted",
                status("False", 70, first.clone()),
                ready(&none),
                Some((After::Interruption, 30)),
            ),
            ("unknown", status("Unknown", 70, first.clone()), ready(&none), Some((After::Interruption, 30))),
            ("paused", status("False", 60, first.clone()), ready(&paused), Some((After::Pause, 10))),
            (
                "paused long ago",
                status("False", 95, first.clone()),
                ready(&paused),
                Some((After::Interruption, 5)),
            ),
            ("Ready before", status("True", 40, first.clone()), ready(&none), None),
            ("still not", status("False", 70, first.clone()), status("False", 70, first), None),
        ] {
            assert_eq!(seconds(&old, &new), expected, "{situation}");
        }
    }

    #[test]
    fn an_occurrence_is_counted_when_it_is_new_or_repeated() {
        let entry = |what: &str, second: i64, count: i32| json!({"at": at(second).to_string(), "what": what, "cause": "c", "count": count});
        let history = |entries: Value| -> Vec<HistoryEntry> { serde_json::from_value(entries).unwrap() };
        let old = history(json!([entry("Moved", 1, 1), entry("EngineRestarted", 2, 1)]));
        let new =
            history(json!([entry("Moved", 1, 1), entry("EngineRestarted", 5, 2), entry("Paused", 6, 1)]));
        let found: Vec<Occurrence> = occurred(&old, &new).map(|entry| entry.what).collect();
        assert_eq!(found, [Occurrence::EngineRestarted, Occurrence::Paused]);
    }
}
