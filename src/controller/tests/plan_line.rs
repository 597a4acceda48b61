//! How the tables of every kind write a plan: as one line, with all that is decided in it.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::api::Reason;

/// A plan of any kind, to be written as one line.
pub struct PlanLine {
    /// Its actions, each in a few words.
    pub actions: Vec<String>,
    /// The name of what it waits for, and whether nothing changes until a person does something.
    pub waiting: Option<(String, bool)>,
    /// Whether EC2 is about to change, and is looked up often.
    pub pending: bool,
    /// What is read from EC2 by its id before the plan is made again.
    pub reads: Option<String>,
    /// After which time the next pass follows, though nothing wakes the object.
    pub again: Option<Duration>,
}

impl PlanLine {
    /// A plan that waits for what has this reason.
    pub fn of(actions: Vec<String>, waiting: Option<(Reason, bool)>) -> Self {
        let waiting = waiting.map(|(reason, is_stalled)| (reason.as_str().to_owned(), is_stalled));
        Self { actions, waiting, pending: false, reads: None, again: None }
    }

    /// `[do this, do that] stalled Reason, pending, reads vol-1, again in 5 s`.
    pub fn text(self) -> String {
        let waiting = match self.waiting {
            None => "as wanted".to_owned(),
            Some((name, false)) => name,
            Some((name, true)) => format!("stalled {name}"),
        };
        let mut parts = vec![format!("[{}] {waiting}", self.actions.join(", "))];
        parts.extend(self.pending.then(|| "pending".to_owned()));
        parts.extend(self.reads.map(|id| format!("reads {id}")));
        parts.extend(self.again.map(|again| format!("again in {}", time(again))));
        parts.join(", ")
    }
}

fn time(time: Duration) -> String {
    let (seconds, milliseconds) = (time.as_secs(), time.subsec_millis());
    if milliseconds == 0 { format!("{seconds} s") } else { format!("{seconds}.{milliseconds:03} s") }
}

/// What of an object is otherwise than in another one, as `{spec.size: 200Gi, no status}` behind a space;
/// nothing where they are equal. So the line names what a reader does not expect.
pub fn otherwise<T: Serialize + PartialEq>(than: &T, object: &T) -> String {
    if than == object {
        return String::new();
    }
    let mut found = Vec::new();
    compare("", &serde_json::to_value(than).unwrap(), &serde_json::to_value(object).unwrap(), &mut found);
    assert!(!found.is_empty(), "a difference that JSON does not show");
    format!(" {{{}}}", found.join(", "))
}

fn compare(path: &str, than: &Value, value: &Value, found: &mut Vec<String>) {
    let (Value::Object(before), Value::Object(after)) = (than, value) else {
        if than != value {
            found.push(format!("{path}: {}", plain(value)));
        }
        return;
    };
    let inner = |key: &String| if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
    for (key, value) in after {
        match before.get(key) {
            Some(than) => compare(&inner(key), than, value, found),
            None => found.push(format!("{}: {}", inner(key), plain(value))),
        }
    }
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    found.extend(gone.map(|key| format!("no {}", inner(key))));
}

/// JSON without its quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "''".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) => format!("[{}]", values.iter().map(plain).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| format!("{key}: {}", plain(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}
