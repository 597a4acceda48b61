//! Puts placeholders in the place of what differs from run to run; what was equal stays equal.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ec2sim::JournalEntry;
use freehold::api::keys;
use freehold::cloud::identity;
use serde_json::{Map, Value};

use super::GROUP;
use crate::kit::env::Env as _;
use crate::kit::rig_env::RigEnv;
use crate::kit::tap::Seen;

/// In the place of a time.
const TIME: &str = "<time>";

/// In the place of a resourceVersion.
const VERSION: &str = "<version>";

/// In the place of a UID of an object that nobody introduced.
const UID: &str = "<uid>";

/// The length of `2026-01-01T00:00:00`: a fraction and a `Z` follow.
const TO_SECONDS: usize = 19;

/// The parts of a UID by their lengths.
const UID_PARTS: [usize; 5] = [8, 4, 4, 4, 12];

/// Every known text with its placeholder, the longest text first.
pub struct Mask {
    known: Vec<(String, String)>,
}

impl Mask {
    /// What a whole life has introduced, from its beginning: so a machine has the same number in each of its
    /// steps.
    pub fn of(env: &RigEnv, seen: &[Seen], journal: &[JournalEntry]) -> Self {
        let mut known = BTreeMap::from([(env.namespace().to_owned(), "<namespace>".to_owned())]);
        let class = env.node_class(env.class());
        let user_data = class["spec"]["userData"].as_str().unwrap_or_default();
        known.insert(identity::user_data_hash(user_data), "<hash-of-user-data>".to_owned());
        names(&mut known, seen);
        let nodes = machines(&mut known, seen);
        disks(&mut known, journal);
        tokens(&mut known, journal);
        objects(&mut known, seen, &nodes);
        secrets(&mut known, seen);
        let mut known: Vec<(String, String)> =
            known.into_iter().filter(|(text, _)| !text.is_empty()).collect();
        known.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        Self { known }
    }

    /// A text with placeholders.
    pub fn text(&self, text: &str) -> String {
        let text = self
            .known
            .iter()
            .fold(text.to_owned(), |text, (known, placeholder)| text.replace(known, placeholder));
        without_uids(&without_times(&text))
    }

    /// The same for every text in a value, its keys too. Keys come out sorted.
    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
                let masked = |key: &str, value: &Value| {
                    let is_version = key == "resourceVersion" && value.is_string();
                    if is_version { Value::String(VERSION.to_owned()) } else { self.value(value) }
                };
                Value::Object(
                    sorted
                        .into_iter()
                        .map(|(key, value)| (self.text(key), masked(key, value)))
                        .collect::<Map<_, _>>(),
                )
            }
            Value::Array(items) => Value::Array(items.iter().map(|item| self.value(item)).collect()),
            Value::String(text) => Value::String(self.text(text)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

/// The names that hold a hash of the Database's UID: its Nodes' are `<database>-<hash>-<ordinal>`, and the
/// others begin like that.
fn names(known: &mut BTreeMap<String, String>, seen: &[Seen]) {
    let objects = seen.iter().filter_map(|seen| seen.object.as_ref());
    for node in objects.filter(|object| object.group == GROUP && object.kind == "Node") {
        let parts: Vec<&str> = node.name.rsplitn(3, '-').collect();
        if let [_, hash, database] = parts.as_slice() {
            known.insert(format!("{database}-{hash}"), format!("{database}-<hash>"));
        }
    }
}

/// The instances and the Kubernetes nodes of the Nodes, by their ordinals; gives the ordinal of each
/// Kubernetes node.
fn machines(known: &mut BTreeMap<String, String>, seen: &[Seen]) -> BTreeMap<String, String> {
    let mut nodes = BTreeMap::new();
    for write in seen.iter().filter(|seen| {
        seen.method == "PATCH" && seen.path.contains("/freehold.dev/") && seen.path.ends_with("/status")
    }) {
        let Some((_, name)) = write.path.trim_end_matches("/status").split_once("/nodes/") else { continue };
        let ordinal = ordinal(name);
        let body: Value = serde_json::from_str(&write.body).unwrap_or_default();
        if let Some(core_node) = body["status"]["coreNodeName"].as_str() {
            known.insert(core_node.to_owned(), format!("<core-node-{ordinal}>"));
            nodes.insert(core_node.to_owned(), ordinal.to_owned());
        }
        if let Some(instance) = body["status"]["instanceID"].as_str() {
            let placeholder = format!("<instance-{ordinal}>");
            let is_second = known.iter().any(|(id, other)| id != instance && *other == placeholder);
            known.insert(
                instance.to_owned(),
                if is_second { format!("<another-instance-{ordinal}>") } else { placeholder },
            );
        }
    }
    nodes
}

/// EBS volumes and snapshots, in the order in which they were made; roots go with their machines.
fn disks(known: &mut BTreeMap<String, String>, journal: &[JournalEntry]) {
    for (action, prefix, name) in [
        ("CreateVolume", "vol-", "volume"),
        ("CreateSnapshot", "snap-", "snapshot"),
        ("RunInstances", "vol-", "root-volume"),
    ] {
        let mut number = 0;
        for entry in journal.iter().filter(|entry| entry.action == action) {
            for id in entry.resources.iter().filter(|id| id.starts_with(prefix)) {
                if !known.contains_key(id) {
                    number += 1;
                    known.insert(id.clone(), format!("<{name}-{number}>"));
                }
            }
        }
    }
}

/// Tokens, by what they are for and by the attempt.
fn tokens(known: &mut BTreeMap<String, String>, journal: &[JournalEntry]) {
    for entry in journal {
        let Some(token) = &entry.token else { continue };
        let name = entry.tags.get("Name").map(String::as_str).unwrap_or_default();
        let is_node = entry.tags.contains_key(keys::NODE_UID_TAG);
        let owner = if is_node { format!("node-{}", ordinal(name)) } else { "volume".to_owned() };
        let attempt = entry.tags.get(keys::ATTEMPT_TAG).map(String::as_str).unwrap_or_default();
        known.insert(token.clone(), format!("<token-of-{owner}-attempt-{attempt}>"));
    }
}

/// The number at the end of a Node's name.
fn ordinal(name: &str) -> &str {
    name.rsplit('-').next().unwrap_or_default()
}

/// The UIDs of objects that a write was answered with, and of the pods that a status names.
fn objects(known: &mut BTreeMap<String, String>, seen: &[Seen], core_nodes: &BTreeMap<String, String>) {
    let mut pods = Vec::new();
    for seen in seen {
        let body: Value = serde_json::from_str(&seen.body).unwrap_or_default();
        if let Some(pod) = body["status"]["run"]["podUID"].as_str() {
            pods.push(pod.to_owned());
        }
        if seen.method == "DELETE" && seen.path.contains("/pods/") {
            pods.extend(body["preconditions"]["uid"].as_str().map(str::to_owned));
        }
        let Some(object) = &seen.object else { continue };
        let name = match (object.group.as_str(), object.kind.as_str()) {
            ("", "Node") => core_nodes.get(&object.name).map(|ordinal| format!("core-node-{ordinal}")),
            ("", "Secret") => Some(
                if known.contains_key(object.name.trim_end_matches("-admin")) {
                    "kept-secret"
                } else {
                    "secret"
                }
                .to_owned(),
            ),
            ("", "Pod" | "Event") | ("events.k8s.io", _) => None,
            ("freehold.dev", "Node") => Some(format!("node-{}", ordinal(&object.name))),
            (_, kind) => Some(kind.to_lowercase()),
        };
        if let Some(name) = name {
            known.entry(object.uid.clone()).or_insert_with(|| format!("<uid-{name}>"));
        }
    }
    let mut number = 0;
    for pod in pods {
        known.entry(pod).or_insert_with(|| {
            number += 1;
            format!("<uid-pod-{number}>")
        });
    }
}

/// The generated passwords.
fn secrets(known: &mut BTreeMap<String, String>, seen: &[Seen]) {
    for write in seen.iter().filter(|seen| seen.method == "POST" && seen.path.ends_with("/secrets")) {
        let body: Value = serde_json::from_str(&write.body).unwrap_or_default();
        let password = body["data"]["password"].as_str().map(decoded).unwrap_or_default();
        known.insert(password, "<password>".to_owned());
    }
}

/// What a Secret holds under a key, as text.
pub fn decoded(value: &str) -> String {
    STANDARD.decode(value).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// The text with every time in it replaced: `2026-01-01T00:00:00Z`, with or without a fraction.
fn without_times(text: &str) -> String {
    replaced(text, TIME, |rest| {
        let seconds = rest.get(..TO_SECONDS)?;
        let fits = |(at, byte): (usize, u8)| match at {
            4 | 7 => byte == b'-',
            10 => byte == b'T',
            13 | 16 => byte == b':',
            _ => byte.is_ascii_digit(),
        };
        let fraction =
            rest[TO_SECONDS..].bytes().take_while(|byte| *byte == b'.' || byte.is_ascii_digit()).count();
        let end = TO_SECONDS + fraction;
        (seconds.bytes().enumerate().all(fits) && rest[end..].starts_with('Z')).then_some(end + 1)
    })
}

/// The text with every UID in it replaced.
fn without_uids(text: &str) -> String {
    replaced(text, UID, |rest| {
        let mut end = 0;
        for (part, length) in UID_PARTS.iter().enumerate() {
            let separator = usize::from(part > 0);
            let found = rest.get(end..end + separator + length)?;
            let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            let digits = if part > 0 { found.strip_prefix('-')? } else { found };
            if !digits.bytes().all(is_hex) {
                return None;
            }
            end += separator + length;
        }
        Some(end)
    })
}

/// The text with a placeholder wherever `length` finds something that begins there, and says how long it is.
fn replaced(text: &str, placeholder: &str, length: impl Fn(&str) -> Option<usize>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        if let Some(found) = length(rest) {
            out.push_str(placeholder);
            rest = &rest[found..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

#[test]
fn times_and_unknown_uids_are_replaced_wherever_they_stand() {
    let text = "since 2026-11-22T16:26:06Z, and 2026-11-22T16:26:06.123456Z; not 2026-11-22";
    assert_eq!(without_times(text), "since <time>, and <time>; not 2026-11-22");
    assert_eq!(without_uids("freehold-6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11-x"), "freehold-<uid>-x");
    assert_eq!(without_uids("6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a1g"), "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a1g");
}
