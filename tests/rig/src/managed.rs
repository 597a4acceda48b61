//! `metadata.managedFields`: who owns which field, kept up to date by every write.
//!
//! Source: sigs.k8s.io/structured-merge-diff `merge/update.go`, and
//! staging/src/k8s.io/apimachinery/pkg/util/managedfields.

use serde_json::{Map, Value, json};

use super::answer::Refusal;
use super::apply;
use super::defaults;
use super::fields::{Fields, compare, named, unknown};
use super::kind::Kind;
use super::schema::Schema;

/// Who writes, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The field manager.
    pub manager: String,
    /// Server-side apply, or any other write.
    pub is_apply: bool,
    /// `status`, or empty.
    pub subresource: String,
    /// When, as it is recorded.
    pub stamp: String,
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    manager: String,
    operation: String,
    subresource: String,
    api_version: String,
    time: String,
    fields: Fields,
}

impl Entry {
    fn is_of(&self, writer: &Writer) -> bool {
        let operation = if writer.is_apply { "Apply" } else { "Update" };
        self.manager == writer.manager
            && self.operation == operation
            && self.subresource == writer.subresource
    }

    /// As a conflict's message names it.
    fn shown(&self) -> String {
        if self.operation == "Apply" {
            return format!("{:?}", self.manager);
        }
        let part = if self.subresource.is_empty() {
            String::new()
        } else {
            format!(" with subresource {:?}", self.subresource)
        };
        format!("{:?}{part} using {}", self.manager, self.api_version)
    }
}

fn entries(object: &Value) -> Vec<Entry> {
    let all = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let text = |it: &Value, field: &str| it[field].as_str().unwrap_or_default().to_owned();
    let entry = |it: &Value| Entry {
        manager: text(it, "manager"),
        operation: text(it, "operation"),
        subresource: text(it, "subresource"),
        api_version: text(it, "apiVersion"),
        time: text(it, "time"),
        fields: Fields::decode(&it["fieldsV1"]),
    };
    all.map(entry).collect()
}

fn record(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|it| !it.fields.is_empty());
    entries.sort_by(|one, other| {
        (&one.operation, &one.time, &one.manager).cmp(&(&other.operation, &other.time, &other.manager))
    });
    let value = |it: &Entry| {
        let mut entry = json!({"manager": it.manager, "operation": it.operation, "apiVersion": it.api_version,
            "fieldsType": "FieldsV1", "fieldsV1": it.fields.encode()});
        if !it.time.is_empty() {
            entry["time"] = json!(it.time);
        }
        if !it.subresource.is_empty() {
            entry["subresource"] = json!(it.subresource);
        }
        entry
    };
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    metadata.remove("managedFields");
    if !entries.is_empty() {
        metadata.insert("managedFields".to_owned(), entries.iter().map(value).collect());
    }
}

/// What of an object a writer may own: not what identifies it, nor what this way of writing ignores.
fn view(kind: &Kind, object: &Value, subresource: &str) -> Value {
    let is_owned = |key: &str| match key {
        "apiVersion" | "kind" => false,
        "status" => subresource == "status" || !kind.has_status,
        _ if subresource == "status" && kind.is_custom => false,
        "spec" => subresource != "status",
        _ => true,
    };
    let identity = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    // Only what is owned is copied: the rest is most of an object.
    let copied = |(key, it): (&String, &Value)| match it.as_object().filter(|_| key == "metadata") {
        Some(metadata) => {
            let named = metadata.iter().filter(|(key, _)| !identity.contains(&key.as_str()));
            (key.clone(), named.map(|(key, it)| (key.clone(), it.clone())).collect())
        }
        None => (key.clone(), it.clone()),
    };
    let members = object.as_object().into_iter().flatten();
    members.filter(|(key, _)| is_owned(key)).map(copied).collect()
}

/// The fields of `metadata` itself belong to nobody.
fn without_root(mut fields: Fields) -> Fields {
    fields.is_member = false;
    if let Some(metadata) = fields.below.get_mut("f:metadata") {
        metadata.is_member = false;
    }
    fields.below.retain(|_, it| !it.is_empty());
    fields
}

/// Records a write that is no apply. `old` is none for a new object.
pub fn update(kind: &Kind, old: Option<&Value>, new: &mut Value, writer: &Writer) {
    let empty = defaults::empty(kind);
    let before = view(kind, old.unwrap_or(&empty), &writer.subresource);
    let after = view(kind, new, &writer.subresource);
    let difference = compare(Some(&before), Some(&after), &kind.schema);
    let (changed, removed) = (without_root(difference.changed), without_root(difference.removed));
    let mut entries = old.map(entries).unwrap_or_default();
    if old.is_some() && entries.is_empty() {
        // Who owns what is not recorded from the middle of a life on, but by an apply.
        return;
    }
    if changed.is_empty() && removed.is_empty() {
        return record(new, entries);
    }
    let touched = changed.union(&removed);
    for entry in entries.iter_mut().filter(|it| !it.is_of(writer)) {
        entry.fields = entry.fields.difference(&touched);
    }
    let mut own = take(kind, &mut entries, writer);
    own.fields = own.fields.union(&changed).difference(&removed);
    own.time.clone_from(&writer.stamp);
    entries.push(own);
    record(new, entries);
}

/// What an object holds that nobody has owned so far.
fn before_first_apply(kind: &Kind, live: &Value, writer: &Writer) -> Entry {
    let (empty, live) = (view(kind, &defaults::empty(kind), ""), view(kind, live, ""));
    let fields = without_root(compare(Some(&empty), Some(&live), &kind.schema).changed);
    let manager = "before-first-apply".to_owned();
    let nobody = Writer { manager, is_apply: false, subresource: String::new(), ..writer.clone() };
    Entry { fields, time: writer.stamp.clone(), ..take(kind, &mut Vec::new(), &nobody) }
}

fn take(kind: &Kind, entries: &mut Vec<Entry>, writer: &Writer) -> Entry {
    let found = entries.iter().position(|it| it.is_of(writer)).map(|at| entries.remove(at));
    found.unwrap_or_else(|| Entry {
        manager: writer.manager.clone(),
        operation: if writer.is_apply { "Apply" } else { "Update" }.to_owned(),
        subresource: writer.subresource.clone(),
        api_version: kind.api_version(),
        time: String::new(),
        fields: Fields::default(),
    })
}

/// The object with an applied configuration, before defaults are filled in. Without `is_forced`, a field that
/// another manager owns with another value is a conflict.
pub fn applied(
    kind: &Kind,
    live: Option<&Value>,
    config: &Value,
    writer: &Writer,
    is_forced: bool,
) -> Result<Value, Refusal> {
    let schema = kind.schema.as_ref();
    let wanted = view(kind, config, &writer.subresource);
    if let Some(path) = unknown(&wanted, schema) {
        let name = config["metadata"]["name"].as_str().unwrap_or_default();
        let message = format!(
            "failed to create typed patch object ({name}; {}, Kind={}): {path}: field not declared in schema",
            kind.api_version(),
            kind.kind
        );
        return Err(Refusal::plain(500, "", &message));
    }
    let set = without_root(named(&wanted, schema));
    let Some(live) = live else {
        let mut new = config.clone();
        let time = writer.stamp.clone();
        let entry = Entry { fields: set, time, ..take(kind, &mut Vec::new(), writer) };
        record(&mut new, vec![entry]);
        return Ok(new);
    };
    let mut entries = entries(live);
    if entries.is_empty() {
        entries.push(before_first_apply(kind, live, writer));
    }
    let last = take(kind, &mut entries, writer);
    let mut merged = apply::merge(live, &wanted, schema);
    let before = view(kind, live, &writer.subresource);
    let changed = compare(Some(&before), Some(&view(kind, &merged, &writer.subresource)), schema).changed;
    let changed = without_root(changed);
    give_way(&mut entries, &changed, is_forced)?;
    let gone = with_parents(&last.fields, schema).difference(&with_parents(&set, schema));
    let others = entries.iter().fold(Fields::default(), |all, it| all.union(&it.fields));
    let gone = without_root(gone.difference(&with_all_parents(&others)));
    if !gone.is_empty() {
        merged = apply::without(&merged, &gone, schema).unwrap_or_else(|| Value::Object(Map::new()));
    }
    let is_same = view(kind, &merged, &writer.subresource) == before;
    let time = if is_same { last.time.clone() } else { writer.stamp.clone() };
    entries.push(Entry { fields: set, time, ..last });
    record(&mut merged, entries);
    for field in ["uid", "resourceVersion"] {
        if let Some(wanted) = config["metadata"].get(field) {
            merged["metadata"][field] = wanted.clone();
        }
    }
    Ok(merged)
}

/// Takes changed fields from their managers, or refuses.
fn give_way(entries: &mut [Entry], changed: &Fields, is_forced: bool) -> Result<(), Refusal> {
    let mut conflicts = Vec::new();
    for entry in entries {
        let both = entry.fields.intersection(changed);
        conflicts.extend(both.paths().into_iter().map(|path| (entry.shown(), path)));
        entry.fields = entry.fields.difference(&both);
    }
    if is_forced || conflicts.is_empty() { Ok(()) } else { Err(Refusal::fields_in_use(&conflicts)) }
}

/// With the named fields that hold members.
fn with_parents(fields: &Fields, schema: &Schema) -> Fields {
    let mut all = fields.clone();
    for (key, below) in &mut all.below {
        let name = key.strip_prefix("f:");
        let is_named = name.is_some_and(|it| schema.properties.contains_key(it));
        let of = name.map_or(schema.items.as_deref(), |it| schema.field(it));
        if let Some(of) = of {
            *below = with_parents(below, of);
        }
        below.is_member |= is_named && !below.below.is_empty();
    }
    all
}

fn with_all_parents(fields: &Fields) -> Fields {
    let below = fields.below.iter().map(|(key, it)| (key.clone(), with_all_parents(it)));
    Fields { is_member: true, below: below.collect() }
}
