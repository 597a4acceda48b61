//! The schemas of the built-in kinds that the rig reads are those that the API server publishes.
//!
//! `FREEHOLD_BLESS=1 cargo test --test it same_api::schemas` records them anew.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::real;
use crate::kit::is_set;
use crate::kit::test_env::run;

/// The documents of the API groups whose kinds the rig serves.
const GROUPS: [&str; 7] = [
    "api/v1",
    "apis/apps/v1",
    "apis/coordination.k8s.io/v1",
    "apis/events.k8s.io/v1",
    "apis/networking.k8s.io/v1",
    "apis/policy/v1",
    "apis/storage.k8s.io/v1",
];

/// The kinds, with their packages.
const KINDS: [&str; 17] = [
    "apps.v1.StatefulSet",
    "coordination.v1.Lease",
    "core.v1.ConfigMap",
    "core.v1.Namespace",
    "core.v1.Node",
    "core.v1.PersistentVolume",
    "core.v1.PersistentVolumeClaim",
    "core.v1.Pod",
    "core.v1.Secret",
    "core.v1.Service",
    "core.v1.ServiceAccount",
    "events.v1.Event",
    "networking.v1.NetworkPolicy",
    "policy.v1.PodDisruptionBudget",
    "storage.v1.CSINode",
    "storage.v1.StorageClass",
    "storage.v1.VolumeAttachment",
];

/// What the rig reads of a schema, as it is.
const KEPT: [&str; 7] = [
    "type",
    "required",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
];

/// A schema with what the rig reads, and the names that it refers to.
fn trimmed(schema: &Map<String, Value>, refers: &mut Vec<String>) -> Map<String, Value> {
    let mut kept = Map::new();
    let mut below = |it: &Value| Value::Object(trimmed(it.as_object().unwrap(), refers));
    for (key, value) in schema {
        match key.as_str() {
            "properties" => {
                let fields = value.as_object().unwrap().iter().map(|(name, it)| (name.clone(), below(it)));
                kept.insert(key.clone(), Value::Object(fields.collect()));
            }
            "items" | "additionalProperties" if value.is_object() => {
                drop(kept.insert(key.clone(), below(value)));
            }
            "allOf" => kept.extend(below(&value[0]).as_object().cloned().unwrap()),
            "oneOf" => drop(kept.insert("format".to_owned(), json!("int-or-string"))),
            "default" if !value.is_object() && !value.is_array() && value != "" => {
                kept.insert(key.clone(), value.clone());
            }
            "format" if value == "int-or-string" => drop(kept.insert(key.clone(), value.clone())),
            key if KEPT.contains(&key) => drop(kept.insert(key.to_owned(), value.clone())),
            _ => {}
        }
    }
    if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(|it| it.rsplit('/').next()) {
        refers.push(name.to_owned());
        kept.insert("$ref".to_owned(), json!(name));
    }
    kept
}

#[test]
fn the_recorded_schemas_are_those_of_the_api_server() {
    let mut all = Map::new();
    run(async {
        for group in GROUPS {
            let request = http::Request::get(format!("/openapi/v3/{group}")).body(Vec::new()).unwrap();
            let text = real().await.request_text(request).await.unwrap();
            let document: Value = serde_json::from_str(&text).unwrap();
            all.extend(document["components"]["schemas"].as_object().cloned().unwrap());
        }
    });
    let mut left: Vec<String> = KINDS.iter().map(|kind| format!("io.k8s.api.{kind}")).collect();
    let mut read = BTreeMap::new();
    while let Some(name) = left.pop() {
        if let Entry::Vacant(place) = read.entry(name) {
            let schema = trimmed(all[place.key()].as_object().unwrap(), &mut left);
            place.insert(Value::Object(schema));
        }
    }
    let lines: Vec<String> = read.iter().map(|(name, schema)| format!("{}: {schema}", json!(name))).collect();
    let text = format!("{{\n{}\n}}\n", lines.join(",\n"));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/rig/schemas/core.json");
    if is_set("FREEHOLD_BLESS") {
        std::fs::write(&path, &text).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap() == text, "FREEHOLD_BLESS=1 records them anew");
}
