//! What the API server makes of the JSON that a client sends: unknown fields are dropped, defaults of
//! resource definitions are filled in.

use serde_json::{Map, Value};

use super::schema::{Schema, Shape};

/// A value of the wrong type: where, what it is, and what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The path of the field.
    pub field: String,
    /// The JSON type that was sent.
    pub got: &'static str,
    /// The Go type of the field.
    pub wanted: &'static str,
}

/// The value as an object of a built-in kind holds it: without unknown fields, nulls, and the empty lists and
/// maps that Go leaves out.
pub fn built_in(value: &Value, schema: &Schema, field: &str) -> Result<Value, Mismatch> {
    check(value, schema.shape, field)?;
    if let Value::Array(items) = value {
        let of_item = schema.items.as_deref();
        let items =
            items.iter().map(|it| of_item.map_or_else(|| Ok(it.clone()), |of| built_in(it, of, field)));
        return items.collect();
    }
    let Value::Object(members) = value else { return Ok(value.clone()) };
    if schema.is_map() && schema.values.is_none() {
        return Ok(value.clone());
    }
    let mut left = Map::new();
    for (key, it) in members.iter().filter(|(_, it)| !it.is_null()) {
        let Some(below) = schema.field(key) else { continue };
        let path = if schema.is_map() { field.to_owned() } else { format!("{field}.{key}") };
        let it = built_in(it, below, &path)?;
        let is_omitted = match &it {
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty() && below.is_map() && below.values.is_some(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        };
        if !is_omitted || schema.required().any(|name| name == key) {
            left.insert(key.clone(), it);
        }
    }
    Ok(Value::Object(left))
}

fn check(value: &Value, shape: Shape, field: &str) -> Result<(), Mismatch> {
    let fits = value.is_null()
        || match shape {
            Shape::Any => true,
            Shape::Object => value.is_object(),
            Shape::Array => value.is_array(),
            Shape::String => value.is_string(),
            Shape::Integer => value.is_i64() || value.is_u64(),
            Shape::Number => value.is_number(),
            Shape::Boolean => value.is_boolean(),
            Shape::IntOrString => value.is_number() || value.is_string(),
        };
    let wanted = match shape {
        Shape::String => "string",
        Shape::Integer => "int32",
        Shape::Boolean => "bool",
        Shape::Object => "map[string]string",
        Shape::Any | Shape::Array | Shape::Number | Shape::IntOrString => "slice",
    };
    if fits { Ok(()) } else { Err(Mismatch { field: field.to_owned(), got: json_type(value), wanted }) }
}

/// The type as Go's JSON names it.
fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Drops what a resource definition does not know.
pub fn prune(value: &mut Value, schema: &Schema) {
    if let Value::Object(members) = value {
        let keeps_all = schema.keeps_unknown || (schema.shape == Shape::Any && schema.is_map());
        members.retain(|key, it| {
            let Some(below) = schema.field(key) else { return keeps_all };
            prune(it, below);
            true
        });
    }
    if let (Value::Array(items), Some(of_item)) = (value, schema.items.as_deref()) {
        for it in items {
            prune(it, of_item);
        }
    }
}

/// Fills in what is missing. A null is missing where null is no value.
pub fn fill(value: &mut Value, schema: &Schema) {
    if let Value::Object(members) = value {
        for (key, below) in &schema.properties {
            let is_missing = members.get(key).is_none_or(|it| it.is_null() && !below.is_nullable);
            if let Some(default) = below.default.as_ref().filter(|_| is_missing) {
                members.insert(key.clone(), default.clone());
            } else if is_missing {
                members.remove(key);
            }
        }
        for (key, it) in members {
            if let Some(below) = schema.field(key) {
                fill(it, below);
            }
        }
        return;
    }
    if let (Value::Array(items), Some(of_item)) = (value, schema.items.as_deref()) {
        for it in items {
            fill(it, of_item);
        }
    }
}
