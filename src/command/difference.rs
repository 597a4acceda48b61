//! In which fields two StatefulSets differ. Pure.

use k8s_openapi::api::apps::v1::StatefulSet;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// One field that changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Where it stands in the StatefulSet.
    pub field: String,
    /// The value today; null if there is none.
    pub today: Value,
    /// The value later; null if there is none.
    pub later: Value,
    /// Whether it is for the next pod; else it is a field of the StatefulSet alone.
    pub at_restart: bool,
}

/// The fields in which the second differs from the first.
pub fn differences(today: &StatefulSet, later: &StatefulSet) -> Vec<Change> {
    let mut changes = Vec::new();
    compare("", &shown(today), &shown(later), &mut changes);
    changes
}

/// What the API server does not set itself.
fn shown(set: &StatefulSet) -> Value {
    let metadata = &set.metadata;
    json!({
        "metadata": {"labels": metadata.labels, "annotations": metadata.annotations,
            "ownerReferences": metadata.owner_references},
        "spec": set.spec,
    })
}

fn change(path: &str, today: Value, later: Value) -> Change {
    Change { field: path.to_owned(), today, later, at_restart: path.starts_with("spec.template.") }
}

fn compare(path: &str, today: &Value, later: &Value, changes: &mut Vec<Change>) {
    if today == later {
        return;
    }
    if let (Value::Array(before), Value::Array(after)) = (today, later) {
        let removed = before.iter().filter(|it| !after.contains(it)).map(|it| (it.clone(), Value::Null));
        let added = after.iter().filter(|it| !before.contains(it)).map(|it| (Value::Null, it.clone()));
        changes.extend(removed.chain(added).map(|(today, later)| change(path, today, later)));
        return;
    }
    let empty = Map::new();
    let fields = match (today, later) {
        (Value::Object(today), Value::Object(later)) => Some((today, later)),
        (Value::Null, Value::Object(later)) => Some((&empty, later)),
        (Value::Object(today), Value::Null) => Some((today, &empty)),
        _ => None,
    };
    let Some((before, after)) = fields else {
        changes.push(change(path, today.clone(), later.clone()));
        return;
    };
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let path = match path {
            "" => name.clone(),
            path if name.contains('/') => format!("{path}[{name}]"),
            path => format!("{path}.{name}"),
        };
        let value = |of: &Map<String, Value>| of.get(name).cloned().unwrap_or_default();
        compare(&path, &value(before), &value(after), changes);
    }
}
