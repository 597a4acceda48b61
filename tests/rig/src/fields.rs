//! Sets of fields as `managedFields` has them (FieldsV1), and what differs between two objects.
//!
//! The rules are those of sigs.k8s.io/structured-merge-diff: `typed/tofieldset.go`, `typed/compare.go`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::schema::{ListType, Schema, Shape};

/// A set of fields: a tree whose edges are FieldsV1's path elements (`f:name`, `k:{…}`, `v:…`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// The field itself belongs to the set.
    pub is_member: bool,
    /// Those below.
    pub below: BTreeMap<String, Self>,
}

impl Fields {
    /// Whether nothing belongs to it.
    pub fn is_empty(&self) -> bool {
        !self.is_member && self.below.values().all(Self::is_empty)
    }

    /// The set of this document.
    pub fn decode(document: &Value) -> Self {
        let Some(members) = document.as_object() else {
            return Self { is_member: true, ..Self::default() };
        };
        let is_member = members.is_empty() || members.contains_key(".");
        let below = members.iter().filter(|(key, _)| *key != ".");
        Self { is_member, below: below.map(|(key, it)| (key.clone(), Self::decode(it))).collect() }
    }

    /// The document of the whole set. The root is no field.
    pub fn encode(&self) -> Value {
        let below = self.below.iter().filter(|(_, it)| !it.is_empty());
        let mut document: Map<String, Value> = below.map(|(key, it)| (key.clone(), it.encode())).collect();
        if self.is_member && !document.is_empty() {
            document.insert(".".to_owned(), json!({}));
        }
        Value::Object(document)
    }

    /// Those of either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.is_member |= other.is_member;
        for (key, theirs) in &other.below {
            let ours = both.below.entry(key.clone()).or_default();
            *ours = ours.union(theirs);
        }
        both
    }

    /// Those of this one that are in the other.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let below = self.below.iter().filter_map(|(key, ours)| {
            let both = ours.intersection(other.below.get(key)?);
            (!both.is_empty()).then(|| (key.clone(), both))
        });
        Self { is_member: self.is_member && other.is_member, below: below.collect() }
    }

    /// Those of this one that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let below = self.below.iter().filter_map(|(key, ours)| {
            let left = other.below.get(key).map_or_else(|| ours.clone(), |theirs| ours.difference(theirs));
            (!left.is_empty()).then(|| (key.clone(), left))
        });
        Self { is_member: self.is_member && !other.is_member, below: below.collect() }
    }

    /// Each field of it, as the API server writes a path: `.spec.ports[port=80].name`.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.gather(String::new(), &mut paths);
        paths
    }

    fn gather(&self, path: String, paths: &mut Vec<String>) {
        for (key, below) in &self.below {
            below.gather(format!("{path}{}", shown(key)), paths);
        }
        if self.is_member {
            paths.push(path);
        }
    }

    fn child(&mut self, key: String) -> &mut Self {
        self.below.entry(key).or_default()
    }
}

/// A path element as a message has it.
fn shown(element: &str) -> String {
    match element.split_at(2) {
        ("f:", name) => format!(".{name}"),
        ("v:", value) => format!("[={value}]"),
        (_, keys) => {
            let keys = serde_json::from_str::<Map<String, Value>>(keys).unwrap_or_default();
            let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("[{}]", keys.join(","))
        }
    }
}

/// The path element of a list's item; none where the list is one field.
pub fn element(list: &ListType, items: Option<&Schema>, item: &Value) -> Option<String> {
    match list {
        ListType::Atomic => None,
        ListType::Set => Some(format!("v:{item}")),
        ListType::Map(keys) => {
            let value = |key: &String| {
                let default = || items.and_then(|it| it.field(key)).and_then(|it| it.default.clone());
                item.get(key).cloned().or_else(default)
            };
            let keys: Map<String, Value> =
                keys.iter().filter_map(|key| Some((key.clone(), value(key)?))).collect();
            Some(format!("k:{}", Value::Object(keys)))
        }
    }
}

/// Whether the value is one field, whatever it holds.
fn is_leaf(value: &Value, schema: &Schema) -> bool {
    match value {
        Value::Object(_) => schema.is_atomic,
        Value::Array(_) => schema.list == ListType::Atomic || schema.shape == Shape::Any,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// What has no schema may hold anything.
pub static ANY: Schema = Schema {
    shape: Shape::Any,
    properties: BTreeMap::new(),
    values: None,
    items: None,
    keeps_unknown: true,
    is_nullable: false,
    is_atomic: false,
    list: ListType::Atomic,
    merge_key: None,
    merges: false,
    default: None,
    rules: Value::Null,
};

/// The fields that a configuration names.
pub fn named(value: &Value, schema: &Schema) -> Fields {
    let mut fields = Fields::default();
    if is_leaf(value, schema) {
        fields.is_member = true;
        return fields;
    }
    if let Value::Object(members) = value {
        for (key, member) in members {
            let known = schema.field(key);
            let mut below = named(member, known.unwrap_or(&ANY));
            let is_empty = member.is_null() || member.as_object().is_some_and(Map::is_empty);
            below.is_member |= is_empty || !schema.properties.contains_key(key);
            *fields.child(format!("f:{key}")) = below;
        }
    }
    if let Value::Array(items) = value {
        let of_item = schema.items.as_deref();
        for item in items {
            let Some(key) = element(&schema.list, of_item, item) else { continue };
            let mut below = named(item, of_item.unwrap_or(&ANY));
            below.is_member = true;
            *fields.child(key) = below;
        }
    }
    fields
}

/// The path of the first field that the schema does not have.
pub fn unknown(value: &Value, schema: &Schema) -> Option<String> {
    if schema.keeps_unknown || (schema.is_map() && schema.values.is_none() && schema.items.is_none()) {
        return None;
    }
    if let Value::Array(items) = value {
        return items.iter().find_map(|it| unknown(it, schema.items.as_deref()?));
    }
    value.as_object()?.iter().find_map(|(key, it)| {
        let Some(below) = schema.field(key) else { return Some(format!(".{key}")) };
        unknown(it, below).map(|path| format!(".{key}{path}"))
    })
}

/// What differs between two objects.
#[derive(Clone, Debug, Default)]
pub struct Difference {
    /// Only in the new one, or with another value.
    pub changed: Fields,
    /// Only in the old one.
    pub removed: Fields,
}

/// Compares two values.
pub fn compare(old: Option<&Value>, new: Option<&Value>, schema: &Schema) -> Difference {
    let mut difference = Difference::default();
    walk(old, new, schema, &mut difference.changed, &mut difference.removed);
    difference
}

fn is_nothing(value: Option<&Value>) -> bool {
    value.is_none_or(|it| match it {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    })
}

fn walk(
    old: Option<&Value>,
    new: Option<&Value>,
    schema: &Schema,
    changed: &mut Fields,
    removed: &mut Fields,
) {
    if old == new {
        return;
    }
    let either = [old, new].into_iter().flatten();
    let is_one = either.clone().any(|it| !it.is_null() && is_leaf(it, schema));
    let both_are_nothing = is_nothing(old) && is_nothing(new);
    match (old, new) {
        (None, None) => return,
        (None, Some(_)) => changed.is_member = true,
        (Some(_), None) => removed.is_member = true,
        (Some(old), Some(new)) => {
            changed.is_member = is_one || both_are_nothing || old.is_object() != new.is_object();
        }
    }
    if is_one || both_are_nothing {
        return;
    }
    for (key, old, new, schema) in pairs(old, new, schema) {
        walk(old, new, schema, changed.child(key.clone()), removed.child(key));
    }
    changed.below.retain(|_, it| !it.is_empty());
    removed.below.retain(|_, it| !it.is_empty());
}

type Pair<'a> = (String, Option<&'a Value>, Option<&'a Value>, &'a Schema);

/// The fields and items of both, side by side.
fn pairs<'a>(old: Option<&'a Value>, new: Option<&'a Value>, schema: &'a Schema) -> Vec<Pair<'a>> {
    let mut pairs: BTreeMap<String, (Option<&Value>, Option<&Value>, &Schema)> = BTreeMap::new();
    for (is_new, value) in [(false, old), (true, new)] {
        let mut add = |key: String, it: &'a Value, of: &'a Schema| {
            let pair = pairs.entry(key).or_insert((None, None, of));
            *(if is_new { &mut pair.1 } else { &mut pair.0 }) = Some(it);
        };
        if let Some(Value::Object(members)) = value {
            for (key, it) in members {
                add(format!("f:{key}"), it, schema.field(key).unwrap_or(&ANY));
            }
        }
        if let Some(Value::Array(items)) = value {
            let of_item = schema.items.as_deref();
            for it in items {
                let key = element(&schema.list, of_item, it).unwrap_or_default();
                add(key, it, of_item.unwrap_or(&ANY));
            }
        }
    }
    pairs.into_iter().map(|(key, (old, new, schema))| (key, old, new, schema)).collect()
}
