//! What a kind's objects may hold, and how their lists and maps are merged: OpenAPI as the API server
//! publishes it, read once.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

/// What a value may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Anything.
    #[default]
    Any,
    /// An object with named fields, or a map.
    Object,
    /// A list.
    Array,
    /// A text.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// Yes or no.
    Boolean,
    /// A whole number or a text, such as a port or a quantity.
    IntOrString,
}

/// How a list is merged and who owns its items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// One writer owns the whole list.
    #[default]
    Atomic,
    /// Each scalar is an item of its own.
    Set,
    /// Each item is known by these fields.
    Map(Vec<String>),
}

/// One node of a schema.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a keyword of the schema")]
pub struct Schema {
    /// What it may be.
    pub shape: Shape,
    /// The named fields.
    pub properties: BTreeMap<String, Arc<Self>>,
    /// The values of a map.
    pub values: Option<Arc<Self>>,
    /// The items of a list.
    pub items: Option<Arc<Self>>,
    /// Fields that are not named stay.
    pub keeps_unknown: bool,
    /// Null is a value.
    pub is_nullable: bool,
    /// One writer owns the whole object.
    pub is_atomic: bool,
    /// How the list is merged by server-side apply.
    pub list: ListType,
    /// By which field a strategic merge patch finds an item; none replaces the list.
    pub merge_key: Option<String>,
    /// A strategic merge patch adds to the list.
    pub merges: bool,
    /// What a missing field is.
    pub default: Option<Value>,
    /// The constraints of a field's value, as the resource definition has them.
    pub rules: Value,
}

impl Schema {
    /// The schema of a field or of a map's value; none if the field is not known.
    pub fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(self.values.as_ref()).map(Arc::as_ref)
    }

    /// Whether the object has no named fields: its keys are data.
    pub fn is_map(&self) -> bool {
        self.properties.is_empty()
    }

    /// The fields that must be there.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.rules.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    /// Whether any rule in CEL stands here or below. Those are not evaluated.
    pub fn has_expressions(&self) -> bool {
        let below = self.properties.values().chain(&self.values).chain(&self.items);
        self.rules.get("x-kubernetes-validations").is_some()
            || below.into_iter().any(|it| it.has_expressions())
    }
}

/// The named schemas of a document, each read when it is first used.
pub struct Definitions {
    document: &'static Map<String, Value>,
    read: BTreeMap<String, Arc<Schema>>,
}

impl Definitions {
    /// The schemas of the built-in kinds, recorded from a kube-apiserver; `tests/it/same_api/schemas.rs`
    /// compares and records them.
    pub fn recorded() -> Self {
        static DOCUMENT: LazyLock<Map<String, Value>> = LazyLock::new(|| {
            let document = serde_json::from_str(include_str!("../schemas/core.json"));
            document.expect("the recorded schemas are JSON")
        });
        Self { document: &DOCUMENT, read: BTreeMap::new() }
    }

    /// The schema of this name.
    pub fn named(&mut self, name: &str) -> Arc<Schema> {
        if let Some(read) = self.read.get(name) {
            return Arc::clone(read);
        }
        let value = self.document.get(name).cloned().unwrap_or(Value::Null);
        let schema = Arc::new(self.parse(&value));
        self.read.insert(name.to_owned(), Arc::clone(&schema));
        schema
    }

    /// Reads a schema.
    pub fn parse(&mut self, value: &Value) -> Schema {
        if let Some(name) = value["$ref"].as_str() {
            let named = self.named(name).as_ref().clone();
            let is_atomic =
                value["x-kubernetes-map-type"].as_str().map_or(named.is_atomic, |it| it == "atomic");
            return Schema { is_atomic, default: value.get("default").cloned(), ..named };
        }
        let text = |key: &str| value[key].as_str();
        let flag = |key: &str| value[key].as_bool().unwrap_or_default();
        let mut child =
            |key: &str| value.get(key).filter(|it| it.is_object()).map(|it| Arc::new(self.parse(it)));
        let (values, items) = (child("additionalProperties"), child("items"));
        let fields = value["properties"].as_object().into_iter().flatten();
        let properties = fields.map(|(name, it)| (name.clone(), Arc::new(self.parse(it)))).collect();
        let keys = value["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
        let keys = keys.filter_map(Value::as_str).map(str::to_owned).collect();
        let strategy = text("x-kubernetes-patch-strategy").unwrap_or_default();
        Schema {
            shape: shape(value),
            properties,
            values,
            items,
            keeps_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            is_nullable: flag("nullable"),
            is_atomic: text("x-kubernetes-map-type") == Some("atomic"),
            list: match text("x-kubernetes-list-type") {
                Some("set") => ListType::Set,
                Some("map") => ListType::Map(keys),
                _ => ListType::Atomic,
            },
            merge_key: text("x-kubernetes-patch-merge-key").map(str::to_owned),
            merges: strategy.split(',').any(|it| it == "merge"),
            default: value.get("default").cloned(),
            rules: value.as_object().map(rules).unwrap_or_default(),
        }
    }
}

fn shape(value: &Value) -> Shape {
    if value["x-kubernetes-int-or-string"] == true || value["format"] == "int-or-string" {
        return Shape::IntOrString;
    }
    match value["type"].as_str() {
        Some("object") => Shape::Object,
        Some("array") => Shape::Array,
        Some("string") => Shape::String,
        Some("integer") => Shape::Integer,
        Some("number") => Shape::Number,
        Some("boolean") => Shape::Boolean,
        _ => Shape::Any,
    }
}

/// What constrains the node itself.
fn rules(value: &Map<String, Value>) -> Value {
    let is_rule = |key: &str| {
        !matches!(key, "properties" | "items" | "additionalProperties" | "description" | "type" | "default")
    };
    value.iter().filter(|(key, _)| is_rule(key)).map(|(key, it)| (key.clone(), it.clone())).collect()
}
