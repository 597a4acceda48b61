//! Strategic merge patch: a merge patch that finds a list's items by key and knows directives.
//!
//! Source: Kubernetes' "Update API Objects in Place Using kubectl patch" and
//! staging/src/k8s.io/apimachinery/pkg/util/strategicpatch.

use serde_json::{Map, Value};

use super::fields::ANY;
use super::schema::Schema;

const DIRECTIVE: &str = "$patch";

/// The object as the patch changes it.
pub fn patched(value: &Value, patch: &Value, schema: &Schema) -> Value {
    match patch {
        Value::Object(changes) => patched_object(value.as_object(), changes, schema),
        Value::Array(changes) => patched_list(value.as_array(), changes, schema),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => patch.clone(),
    }
}

fn patched_object(
    value: Option<&Map<String, Value>>,
    changes: &Map<String, Value>,
    schema: &Schema,
) -> Value {
    let directive = changes.get(DIRECTIVE).and_then(Value::as_str);
    let mut object = match (value, directive) {
        (Some(value), Some("merge") | None) => value.clone(),
        _ => Map::new(),
    };
    if directive == Some("delete") {
        return Value::Object(object);
    }
    for (key, change) in changes.iter().filter(|(key, _)| !key.starts_with('$')) {
        if change.is_null() {
            object.remove(key);
            continue;
        }
        let old = object.get(key).cloned().unwrap_or(Value::Null);
        object.insert(key.clone(), patched(&old, change, schema.field(key).unwrap_or(&ANY)));
    }
    for (key, gone) in
        changes.iter().filter_map(|(key, it)| Some((key.strip_prefix("$deleteFromPrimitiveList/")?, it)))
    {
        let gone = gone.as_array().cloned().unwrap_or_default();
        if let Some(Value::Array(items)) = object.get_mut(key) {
            items.retain(|item| !gone.contains(item));
        }
    }
    Value::Object(object)
}

fn patched_list(value: Option<&Vec<Value>>, changes: &[Value], schema: &Schema) -> Value {
    let of_item = schema.items.as_deref().unwrap_or(&ANY);
    let is_replaced = changes.iter().any(|it| it[DIRECTIVE] == "replace");
    let changes = changes.iter().filter(|it| it[DIRECTIVE] != "replace");
    let live = value.filter(|_| schema.merges && !is_replaced).cloned().unwrap_or_default();
    let is_one = |one: &Value, other: &Value| match &schema.merge_key {
        Some(key) => one.get(key) == other.get(key),
        None => one == other,
    };
    let mut left = live.clone();
    let mut named: Vec<(Option<usize>, Value)> = Vec::new();
    for change in changes {
        left.retain(|item| !is_one(item, change));
        let place = live.iter().position(|item| is_one(item, change));
        if change[DIRECTIVE] != "delete" {
            let old = place.map_or(Value::Null, |at| live[at].clone());
            named.push((place, patched(&old, change, of_item)));
        }
    }
    Value::Array(in_order(&live, left, named))
}

/// What the patch names and what only the object has: as in the object where it has both, else what the patch
/// names first (`mergeSortedSlice` in strategicpatch).
fn in_order(live: &[Value], left: Vec<Value>, named: Vec<(Option<usize>, Value)>) -> Vec<Value> {
    let place = |item: &Value| live.iter().position(|it| it == item);
    let mut left = left.into_iter().peekable();
    let mut merged = Vec::new();
    for (at, item) in named {
        while let Some(own) = left.next_if(|own| at.is_some() && place(own) < at) {
            merged.push(own);
        }
        merged.push(item);
    }
    merged.extend(left);
    merged
}
