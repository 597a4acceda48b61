//! A status that says the same in other words is written when that has waited for a moment: what the next
//! passes overtake is not written.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

/// How long a change of words waits for the next one. People read them; programs wait for the status of a
/// condition, which is written at once.
const MOMENT: Duration = Duration::from_secs(5);

/// Objects whose words change. A restart forgets them: the first pass of each begins its moment anew.
#[derive(Debug)]
pub struct Settling {
    moment: Duration,
    since: Mutex<HashMap<String, Instant>>,
}

impl Settling {
    /// None changes yet. Time passes so many times as fast as it does in production.
    pub fn new(time_scale: f64) -> Self {
        Self { moment: MOMENT.div_f64(time_scale), since: Mutex::default() }
    }

    /// How much longer the changed words of this object wait; none if they are to be written now.
    pub fn wait(&self, uid: &str) -> Option<Duration> {
        let now = Instant::now();
        let mut since = self.since.lock();
        if let Some(first) = since.get(uid) {
            return self.moment.checked_sub(now.duration_since(*first)).filter(|left| !left.is_zero());
        }
        // An object that was deleted meanwhile has no other end.
        since.retain(|_, first| now.duration_since(*first) < 60 * self.moment);
        since.insert(uid.to_owned(), now);
        Some(self.moment)
    }

    /// The status of this object is written, or as it should be.
    pub fn settled(&self, uid: &str) {
        self.since.lock().remove(uid);
    }
}

/// What people and metrics read of a Database and a Volume, and no pass decides on. Of a Node the type
/// appears with its zone, which is written at once.
const SHOWN: [&str; 3] = ["endpoint", "instanceType", "size"];

/// Whether both statuses differ, and in nothing but the reasons and messages of their conditions, and in
/// fields that are only shown.
pub fn differ_in_words(old: &Value, new: &Value) -> bool {
    old != new && without_words(old) == without_words(new)
}

fn without_words(status: &Value) -> Value {
    let mut status = status.clone();
    if let Some(fields) = status.as_object_mut() {
        fields.retain(|field, _| !SHOWN.contains(&field.as_str()));
    }
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.retain(|field, _| !["reason", "message"].contains(&field.as_str()));
    }
    status
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn status(state: &str, reason: &str, generation: i64) -> Value {
        json!({"volumeID": "vol-1", "conditions": [{"type": "Ready", "status": state, "reason": reason,
            "message": reason, "observedGeneration": generation}]})
    }

    #[test]
    fn words_are_the_reasons_and_messages_of_conditions_and_nothing_else() {
        let old = status("False", "Launching", 1);
        assert!(differ_in_words(&old, &status("False", "Throttled", 1)));
        assert!(!differ_in_words(&old, &old));
        assert!(!differ_in_words(&old, &status("True", "Launching", 1)));
        assert!(!differ_in_words(&old, &status("False", "Launching", 2)));
        assert!(!differ_in_words(&old, &json!({"volumeID": "vol-1"})));
        let mut sized = old.clone();
        sized["size"] = json!("100Gi");
        assert!(differ_in_words(&old, &sized), "it is only shown");
        sized["volumeID"] = json!("vol-2");
        assert!(!differ_in_words(&old, &sized));
    }

    #[tokio::test(start_paused = true)]
    async fn words_that_change_all_the_time_are_written_each_moment() {
        let settling = Settling::new(1.0);
        assert_eq!(settling.wait("a"), Some(MOMENT));
        tokio::time::advance(Duration::from_millis(600)).await;
        assert_eq!(settling.wait("a"), Some(Duration::from_millis(4400)));
        assert_eq!(settling.wait("b"), Some(MOMENT), "each object has its own");
        tokio::time::advance(Duration::from_millis(4400)).await;
        assert_eq!(settling.wait("a"), None);
        settling.settled("a");
        assert_eq!(settling.wait("a"), Some(MOMENT));
    }
}
