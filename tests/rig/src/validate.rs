//! Whether an object keeps the rules of its resource definition; rules in CEL are not evaluated.
//!
//! Words and order are those of k8s.io/kube-openapi/pkg/validation and of apiextensions-apiserver.

use std::fmt::{self, Display, Formatter};

use serde_json::{Value, json};

use super::answer::Cause;
use super::pattern;
use super::schema::{Schema, Shape};

/// Where a value is, written out for a fault alone: most values have none.
#[derive(Clone, Copy)]
enum Place<'a> {
    Root,
    Field(&'a Self, &'a str),
    Item(&'a Self, usize),
}

impl Display for Place<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => write!(f, "{name}"),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Item(list, at) => write!(f, "{list}[{at}]"),
        }
    }
}

/// The faults of an object of a resource definition.
pub fn faults(object: &Value, schema: &Schema) -> Vec<Cause> {
    let mut faults = Vec::new();
    walk(object, schema, Place::Root, &mut faults);
    if !faults.is_empty() && schema.has_expressions() {
        let why = "some validation rules were not checked because the object was invalid; correct the existing \
            errors to complete validation";
        faults.push(Cause::invalid("<nil>", &Value::Null, why));
    }
    faults
}

fn walk(value: &Value, schema: &Schema, place: Place<'_>, faults: &mut Vec<Cause>) {
    if value.is_null() && schema.is_nullable {
        return;
    }
    let Some(wanted) = mismatch(value, schema.shape) else {
        of_value(value, schema, place, faults);
        return below(value, schema, place, faults);
    };
    let got = json!(type_of(value));
    let detail = format!("{place} in body must be of type {wanted}: {got}");
    let message = format!("Invalid value: {got}: {detail}");
    faults.push(Cause::new("FieldValueTypeInvalid", &place.to_string(), message));
}

fn below(value: &Value, schema: &Schema, place: Place<'_>, faults: &mut Vec<Cause>) {
    if let Value::Object(members) = value {
        let is_root = matches!(place, Place::Root);
        for (key, it) in members.iter().filter(|(key, _)| !(is_root && *key == "metadata")) {
            if let Some(of) = schema.field(key) {
                walk(it, of, Place::Field(&place, key), faults);
            }
        }
        for key in schema.required().filter(|key| !members.contains_key(*key)) {
            faults.push(Cause::required(&Place::Field(&place, key).to_string(), ""));
        }
    }
    if let (Value::Array(items), Some(of)) = (value, schema.items.as_deref()) {
        for (at, it) in items.iter().enumerate() {
            walk(it, of, Place::Item(&place, at), faults);
        }
    }
}

fn mismatch(value: &Value, shape: Shape) -> Option<&'static str> {
    let (fits, wanted) = match shape {
        Shape::Any => (true, "any"),
        Shape::Object => (value.is_object(), "object"),
        Shape::Array => (value.is_array(), "array"),
        Shape::String => (value.is_string(), "string"),
        Shape::Integer => (value.is_i64() || value.is_u64(), "integer"),
        Shape::Number => (value.is_number(), "number"),
        Shape::Boolean => (value.is_boolean(), "boolean"),
        Shape::IntOrString => (value.is_i64() || value.is_string(), "integer,string"),
    };
    (!fits).then_some(wanted)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn of_value(value: &Value, schema: &Schema, place: Place<'_>, faults: &mut Vec<Cause>) {
    let rules = &schema.rules;
    if let Some(allowed) = rules.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", allowed.join(", "));
        faults.push(Cause::new("FieldValueNotSupported", &place.to_string(), message));
    }
    let number = |key: &str| rules.get(key).and_then(Value::as_f64);
    let mut invalid = |detail: String| faults.push(Cause::invalid(&place.to_string(), value, &detail));
    if let Some(text) = value.as_str() {
        let length = f64::from(u32::try_from(text.chars().count()).unwrap_or(u32::MAX));
        if let Some(least) = number("minLength").filter(|it| length < *it) {
            invalid(format!("{place} in body should be at least {least} chars long"));
        }
        if let Some(pattern) = rules.get("pattern").and_then(Value::as_str)
            && !pattern::matches(pattern, text)
        {
            invalid(format!("{place} in body should match '{pattern}'"));
        }
    }
    if let Some(found) = value.as_f64() {
        if let Some(most) = number("maximum").filter(|it| found > *it) {
            invalid(format!("{place} in body should be less than or equal to {most}"));
        }
        if let Some(least) = number("minimum").filter(|it| found < *it) {
            invalid(format!("{place} in body should be greater than or equal to {least}"));
        }
    }
    sizes(value, schema, place, faults);
}

fn sizes(value: &Value, schema: &Schema, place: Place<'_>, faults: &mut Vec<Cause>) {
    let limit =
        |key: &str| schema.rules.get(key).and_then(Value::as_u64).and_then(|it| usize::try_from(it).ok());
    let (size, least, most) = match value {
        Value::String(text) => (text.chars().count(), None, "maxLength"),
        Value::Array(items) => (items.len(), Some("minItems"), "maxItems"),
        Value::Object(members) => (members.len(), Some("minProperties"), "maxProperties"),
        Value::Null | Value::Bool(_) | Value::Number(_) => return,
    };
    if let Some(least) = least.and_then(limit).filter(|it| size < *it) {
        let what = if value.is_array() { "items" } else { "properties" };
        let detail = format!("{place} in body should have at least {least} {what}");
        faults.push(Cause::invalid(&place.to_string(), &json!(size), &detail));
    }
    if let Some(most) = limit(most).filter(|it| size > *it) {
        let message = if value.is_string() {
            format!("Too long: may not be more than {most} bytes")
        } else {
            format!("Too many: {size}: must have at most {most} items")
        };
        let reason = if value.is_string() { "FieldValueTooLong" } else { "FieldValueTooMany" };
        faults.push(Cause::new(reason, &place.to_string(), message));
    }
}
