//! Masks what differs by nature, and compares.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::run::Answer;
use super::script::{Script, Step};

/// The time that scripts write.
const GIVEN: &str = "2026-01-01T00:00:00Z";

/// Placeholders by value, numbered in the order in which the values appear.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    fn of(&mut self, what: &str, value: &str) -> String {
        let number = self.0.len() + 1;
        self.0.entry(value.to_owned()).or_insert_with(|| format!("{what}-{number}")).clone()
    }
}

#[derive(Default)]
struct Masks {
    uids: Names,
    versions: Names,
}

/// The answers, masked.
pub fn masked(answers: Vec<Answer>, script: &Script, namespace: &str) -> Vec<Answer> {
    let mut masks = Masks::default();
    let one = |(answer, step): (Answer, &Step)| {
        let mut documents = answer.documents;
        for document in &mut documents {
            masks.document(document, namespace);
            if step.has("free") {
                free(document);
            }
        }
        Answer { code: answer.code, documents }
    };
    answers.into_iter().zip(&script.steps).map(one).collect()
}

/// Takes the words of a refusal out.
fn free(document: &mut Value) {
    document["message"] = json!("any");
    if document["details"].is_object() {
        document["details"]["causes"] = json!("any");
    }
}

impl Masks {
    fn document(&mut self, document: &mut Value, namespace: &str) {
        if document["kind"].as_str().is_some_and(|it| it.ends_with("List")) {
            document["metadata"]["resourceVersion"] = json!("any");
            if document["metadata"]["continue"].is_string() {
                document["metadata"]["continue"] = json!("any");
            }
            items_in_order(document);
        }
        if document["type"] == "BOOKMARK" {
            document["object"]["metadata"]["resourceVersion"] = json!("any");
        }
        self.value(document);
        self.texts(document, namespace);
    }

    /// Masks fields by their names.
    fn value(&mut self, value: &mut Value) {
        if let Value::Array(items) = value {
            for it in items {
                self.value(it);
            }
        }
        let Value::Object(members) = value else { return };
        for (key, it) in members.iter_mut() {
            match (key.as_str(), it.as_str().map(str::to_owned)) {
                ("uid", Some(uid)) => *it = json!(self.uids.of("uid", &uid)),
                ("resourceVersion", Some(version)) if version.parse::<u64>().is_ok() => {
                    *it = json!(self.versions.of("version", &version));
                }
                ("creationTimestamp" | "deletionTimestamp" | "lastPhaseTransitionTime" | "time", Some(_)) => {
                    *it = json!("time");
                }
                ("lastTransitionTime", Some(time)) if time != GIVEN => *it = json!("time"),
                ("clusterIP", Some(ip)) if ip.starts_with("10.") => *it = json!("address"),
                ("clusterIPs", None) if it[0].as_str().is_some_and(|ip| ip.starts_with("10.")) => {
                    *it = json!(["address"]);
                }
                ("managedFields", None) => {
                    sort_managed(it);
                    self.value(it);
                }
                _ => self.value(it),
            }
        }
        if let Some(prefix) = members.get("generateName").and_then(Value::as_str).map(str::to_owned)
            && let Some(name) = members.get_mut("name")
            && name.as_str().is_some_and(|it| it.starts_with(&prefix) && it.len() == prefix.len() + 5)
        {
            *name = json!(format!("{prefix}*****"));
        }
    }

    /// Masks what stands in the middle of texts.
    fn texts(&self, value: &mut Value, namespace: &str) {
        match value {
            Value::String(text) => {
                for (uid, name) in &self.uids.0 {
                    *text = text.replace(uid, name);
                }
                for (version, name) in &self.versions.0 {
                    *text = text.replace(&format!("({version})"), &format!("({name})"));
                }
                *text = text.replace(namespace, "NS");
            }
            Value::Array(items) => {
                for it in items {
                    self.texts(it, namespace);
                }
            }
            Value::Object(members) => {
                let all = std::mem::take(members).into_iter().map(|(key, mut it)| {
                    self.texts(&mut it, namespace);
                    (key.replace(namespace, "NS"), it)
                });
                *members = all.collect();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Entries are sorted by their times, which are masked.
fn sort_managed(entries: &mut Value) {
    let key = |it: &Value| ["operation", "manager", "subresource"].map(|key| it[key].to_string());
    if let Some(entries) = entries.as_array_mut() {
        entries.sort_by_key(key);
    }
}

/// Generated names are in any order.
fn items_in_order(list: &mut Value) {
    let is_generated = |it: &Value| it["metadata"]["generateName"].is_string();
    if let Some(items) = list["items"].as_array_mut().filter(|items| items.iter().any(is_generated)) {
        items.sort_by_key(|it| it["data"].to_string());
    }
}

/// What differs, step by step; none if nothing does.
pub fn difference(script: &Script, wanted: &[Answer], found: &[Answer]) -> Option<String> {
    let mut lines = Vec::new();
    for ((step, wanted), found) in script.steps.iter().zip(wanted).zip(found) {
        if wanted.code != found.code {
            lines.push(format!(
                "  {}: the API server answers {}, the rig {}",
                step.text, wanted.code, found.code
            ));
        }
        let (wanted, found) = (json!(wanted.documents), json!(found.documents));
        let mut differences = Vec::new();
        compare("", &wanted, &found, &mut differences);
        lines.extend(differences.into_iter().map(|it| format!("  {}: {it}", step.text)));
    }
    (!lines.is_empty()).then(|| format!("{}\n{}", script.name, lines.join("\n")))
}

fn compare(path: &str, wanted: &Value, found: &Value, differences: &mut Vec<String>) {
    match (wanted, found) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let of = |it: &serde_json::Map<String, Value>| {
                    it.get(key).cloned().unwrap_or_else(|| json!("(none)"))
                };
                compare(&format!("{path}.{key}"), &of(one), &of(other), differences);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (at, (one, other)) in one.iter().zip(other).enumerate() {
                compare(&format!("{path}[{at}]"), one, other, differences);
            }
        }
        _ if wanted == found => {}
        _ => differences.push(format!("{path}\n    API server: {wanted}\n    rig:        {found}")),
    }
}
