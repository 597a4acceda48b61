//! Server-side apply: merges a configuration into an object, and takes out what its manager no longer names.
//!
//! The rules are those of sigs.k8s.io/structured-merge-diff: `typed/merge.go`, `merge/update.go`.

use serde_json::Value;

use super::fields::{ANY, Fields, element};
use super::schema::Schema;

/// The object with the configuration's fields.
pub fn merge(live: &Value, config: &Value, schema: &Schema) -> Value {
    if let (Value::Object(live), Value::Object(config)) = (live, config)
        && !schema.is_atomic
    {
        let mut merged = live.clone();
        for (key, value) in config {
            let below = schema.field(key).unwrap_or(&ANY);
            let value = live.get(key).map_or_else(|| value.clone(), |it| merge(it, value, below));
            merged.insert(key.clone(), value);
        }
        return Value::Object(merged);
    }
    if let (Value::Array(live), Value::Array(config)) = (live, config)
        && config.iter().all(|it| element(&schema.list, schema.items.as_deref(), it).is_some())
    {
        return Value::Array(merge_lists(live, config, schema));
    }
    config.clone()
}

/// Items that only the object has stay where they are; the others are in the configuration's order.
fn merge_lists(live: &[Value], config: &[Value], schema: &Schema) -> Vec<Value> {
    let of_item = schema.items.as_deref();
    let key = |it: &Value| element(&schema.list, of_item, it);
    let mut merged = Vec::new();
    let mut left = live.iter().peekable();
    let is_wanted = |it: &Value| config.iter().any(|other| key(other) == key(it));
    for item in config {
        while let Some(own) = left.next_if(|it| !is_wanted(it)) {
            merged.push(own.clone());
        }
        let before = live.iter().find(|it| key(it) == key(item));
        merged.push(before.map_or_else(|| item.clone(), |it| merge(it, item, of_item.unwrap_or(&ANY))));
        left.next_if(|it| is_wanted(it));
    }
    merged.extend(left.filter(|it| !is_wanted(it)).cloned());
    merged
}

/// The object without these fields, and what is below them.
pub fn without(value: &Value, fields: &Fields, schema: &Schema) -> Option<Value> {
    if fields.is_member {
        return None;
    }
    Some(match value {
        Value::Object(members) => {
            let left = members.iter().filter_map(|(key, it)| {
                let Some(below) = fields.below.get(&format!("f:{key}")) else {
                    return Some((key.clone(), it.clone()));
                };
                Some((key.clone(), without(it, below, schema.field(key).unwrap_or(&ANY))?))
            });
            Value::Object(left.collect())
        }
        Value::Array(items) => {
            let of_item = schema.items.as_deref();
            let left = items.iter().filter_map(|it| {
                let below = element(&schema.list, of_item, it).and_then(|key| fields.below.get(&key));
                below.map_or_else(|| Some(it.clone()), |below| without(it, below, of_item.unwrap_or(&ANY)))
            });
            Value::Array(left.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    })
}
