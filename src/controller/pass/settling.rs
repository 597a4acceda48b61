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
    old != new
        && are_same(old, new, &SHOWN, |field, old, new| match (field, old, new) {
            ("conditions", Value::Array(old), Value::Array(new)) => {
                old.len() == new.len() && old.iter().zip(new).all(|(old, new)| say_the_same(old, new))
            }
            _ => old == new,
        })
}

/// Whether two conditions are the same but for their words.
fn say_the_same(old: &Value, new: &Value) -> bool {
    are_same(old, new, &["reason", "message"], |_, old, new| old == new)
}

/// Whether both have the same fields but for those that do not count, and each is the same by this.
fn are_same(
    old: &Value,
    new: &Value,
    without: &[&str],
    is_same: impl Fn(&str, &Value, &Value) -> bool,
) -> bool {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return old == new };
    let counts = |(field, _): &(&String, &Value)| !without.contains(&field.as_str());
    let (mut old, mut new) = (old.iter().filter(counts), new.iter().filter(counts));
    loop {
        match (old.next(), new.next()) {
            (None, None) => return true,
            (Some((field, old)), Some((other, new))) if field == other && is_same(field, old, new) => {}
            (Some(_) | None, Some(_)) | (Some(_), None) => return false,
        }
    }
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
