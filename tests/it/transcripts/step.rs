//! One write or one call of a life: whose it is, what it is about, and what it says, with its words apart.

use std::collections::BTreeMap;

use ec2sim::{Fate, JournalEntry};
use freehold::api::keys::OUT_OF_SERVICE_TAINT;
use serde_json::{Map, Value, json};

use super::GROUP;
use super::mask::{Mask, decoded};

use crate::kit::tap::Seen;

/// In the place of words: they are in the other file.
const WORDS: &str = "<words>";

/// Fields that hold words, reasons among them.
const WORD_FIELDS: [&str; 3] = ["message", "cause", "freehold.dev/retained-because"];

/// The status fields that are written on their own, as a step of a protocol. All the others are listed by the
/// closing patch of a pass, together with the conditions.
const PROTOCOL: [&str; 13] = [
    "nodeOrdinal",
    "zone",
    "replacement",
    "history",
    "creation",
    "instanceID",
    "fence",
    "volumeID",
    "everHeld",
    "persistentVolumeName",
    "modifications",
    "finalSnapshot",
    "deletedAt",
];

/// The taints that Kubernetes puts on a node by itself, when it comes to it.
const KUBERNETES_TAINTS: &str = "node.kubernetes.io/";

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What is done to what: `PATCH (merge) nodes.freehold.dev/orders-<hash>-1 status`.
    pub what: String,
    /// What is sent.
    pub sent: Value,
    /// Each text of a people's language in it, with its place.
    pub words: Vec<(String, String)>,
}

impl Step {
    fn new(what: String, mut sent: Value) -> Self {
        let mut words = Vec::new();
        take_words(&mut sent, "", &mut words);
        Self { what, sent, words }
    }

    /// A write to the API server.
    pub fn write(seen: &Seen, mask: &Mask) -> Self {
        let place = Place::of(&seen.path);
        let mut body: Value = serde_json::from_str(&seen.body).unwrap_or_default();
        if place.resource == "secrets" {
            plain(&mut body);
        }
        if let Some(Value::Array(taints)) =
            body.pointer_mut("/spec/taints").filter(|_| place.resource == "nodes")
        {
            let key = |taint: &Value| taint["key"].as_str().unwrap_or_default().to_owned();
            taints.retain(|taint| {
                key(taint) == OUT_OF_SERVICE_TAINT || !key(taint).starts_with(KUBERNETES_TAINTS)
            });
        }
        // How a PATCH is meant, and by which field manager; the rest of a query is empty.
        let how = seen
            .content_type
            .strip_prefix("application/")
            .filter(|_| seen.method == "PATCH")
            .map(|how| format!(" {how}"));
        let query = seen.query.trim_matches('&');
        let query = if query.is_empty() { String::new() } else { format!("?{query}") };
        let refused =
            if has_taken_effect(seen) { String::new() } else { format!(" (refused: {})", seen.status) };
        let what = format!("{}{} {}{query}{refused}", seen.method, how.unwrap_or_default(), place.as_text());
        Self::new(mask.text(&what), mask.value(&body))
    }

    /// A call to EC2.
    pub fn call(entry: &JournalEntry, mask: &Mask, user_data: Option<String>) -> Self {
        let mut sent = BTreeMap::new();
        for (key, value) in &entry.parameters {
            match key.rsplit_once('.') {
                // A tag is one line, and not two.
                Some((tag, "Value")) if tag.contains("Tag.") => {}
                Some((tag, "Key")) if tag.contains("Tag.") => {
                    let of_tag = entry.parameters.get(&format!("{tag}.Value")).cloned().unwrap_or_default();
                    sent.insert(tag.to_owned(), json!(format!("{value}={of_tag}")));
                }
                Some(_) | None => {
                    sent.insert(key.clone(), json!(value));
                }
            }
        }
        sent.extend(entry.token.as_ref().map(|token| ("ClientToken".to_owned(), json!(token))));
        sent.extend(user_data.map(|text| {
            ("UserData (SHA-256)".to_owned(), json!(freehold::cloud::identity::user_data_hash(&text)))
        }));
        sent.extend(entry.dry_run.then(|| ("DryRun".to_owned(), json!(true))));
        let fate = match entry.fate {
            Fate::Committed | Fate::Read => String::new(),
            Fate::Refused => format!(" (refused: {})", entry.answer),
            Fate::Lost => " (its answer was lost)".to_owned(),
            Fate::Blocked => " (never carried out)".to_owned(),
        };
        Self::new(format!("EC2 {}{fate}", entry.action), mask.value(&json!(sent)))
    }

    /// What it is about, if doing the same to it twice is as good as once; a creation is always listed.
    pub fn may_repeat(&self) -> Option<String> {
        let idempotent =
            ["EC2 TerminateInstances", "EC2 StopInstances", "EC2 DeleteVolume", "EC2 CreateTags"];
        match self.what.split_once(' ') {
            Some(("PATCH" | "DELETE", _)) => {
                self.what.split(' ').find(|word| word.contains('/') && !word.contains("-patch+")).map(object)
            }
            Some(_) | None => {
                idempotent.iter().any(|call| self.what.starts_with(call)).then(|| self.what.clone())
            }
        }
    }

    /// The step as a person reads it.
    pub fn text(&self) -> String {
        if self.sent.is_null() {
            return format!("{}\n", self.what);
        }
        let yaml = serde_norway::to_string(&self.sent).unwrap();
        let lines: Vec<String> = yaml.lines().map(|line| format!("    {line}\n")).collect();
        format!("{}\n{}", self.what, lines.concat())
    }
}

/// The path of an object, from one that names a subresource or has a query.
fn object(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    path.splitn(3, '/').take(2).collect::<Vec<_>>().join("/")
}

/// Takes the words out of a value, with their places.
fn take_words(value: &mut Value, place: &str, words: &mut Vec<(String, String)>) {
    let below = |key: &str| if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                if field.is_string() && WORD_FIELDS.contains(&key.as_str()) {
                    let text = std::mem::replace(field, json!(WORDS));
                    words.push((below(key), text.as_str().unwrap_or_default().to_owned()));
                } else {
                    take_words(field, &below(key), words);
                }
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter_mut().enumerate() {
                take_words(item, &below(&number.to_string()), words);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The content of a Secret as text.
fn plain(secret: &mut Value) {
    for value in secret.get_mut("data").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        if let Some(text) = value.as_str().map(decoded) {
            *value = json!(text);
        }
    }
}

/// Whether a write did what it asked for. What a deletion wants gone may be gone already.
fn has_taken_effect(seen: &Seen) -> bool {
    seen.status < 300 || (seen.method == "DELETE" && matches!(seen.status, 404 | 409))
}

/// Whether a write was refused because the view was old, or because another client has made the object
/// meanwhile: the next pass decides anew.
pub fn is_conflict(seen: &Seen) -> bool {
    seen.status == 409 && seen.method != "DELETE"
}

/// The status that the closing patch of a pass tells; none for any other write.
pub fn closing(seen: &Seen) -> Option<Value> {
    let place = Place::of(&seen.path);
    if seen.method != "PATCH" || place.subresource != "status" || !place.resource.ends_with(GROUP) {
        return None;
    }
    let body: Value = serde_json::from_str(&seen.body).ok()?;
    let status = body.get("status")?;
    let is_protocol =
        status.get("conditions").is_none() && PROTOCOL.iter().any(|field| !status[field].is_null());
    (!is_protocol).then(|| status.clone())
}

/// Where a path of the API server's leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// `nodes.freehold.dev`, `secrets`.
    pub resource: String,
    /// Empty for a creation.
    pub name: String,
    /// Empty for the object itself.
    pub subresource: String,
}

impl Place {
    /// The place of `/apis/<group>/<version>/namespaces/<namespace>/<resource>/<name>/<subresource>`, of
    /// which parts may be missing.
    pub fn of(path: &str) -> Self {
        let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let group = if parts.first() == Some(&"apis") { parts.remove(1) } else { "" };
        let namespaced = usize::from(parts.get(2) == Some(&"namespaces") && parts.len() > 4) * 2;
        let part = |number: usize| parts.get(2 + namespaced + number).copied().unwrap_or_default().to_owned();
        let resource = if group.is_empty() { part(0) } else { format!("{}.{group}", part(0)) };
        Self { resource, name: part(1), subresource: part(2) }
    }

    fn as_text(&self) -> String {
        let Self { resource, name, subresource } = self;
        let name = if name.is_empty() { String::new() } else { format!("/{name}") };
        let subresource = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
        format!("{resource}{name}{subresource}")
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    const NODE: &str = "/apis/freehold.dev/v1alpha1/namespaces/a/nodes/orders-abcde-1";

    #[test]
    fn a_path_tells_resource_name_and_subresource() {
        for (path, text) in [
            ("/api/v1/namespaces/a/secrets", "secrets"),
            ("/api/v1/nodes/ip-10-0-0-4", "nodes/ip-10-0-0-4"),
            (&format!("{NODE}/status"), "nodes.freehold.dev/orders-abcde-1/status"),
            ("/api/v1/namespaces/a", "namespaces/a"),
        ] {
            assert_eq!(Place::of(path).as_text(), text);
        }
    }

    #[test]
    fn a_protocols_write_is_told_from_the_closing_patch_of_a_pass() {
        for (status, is_closing) in [
            (json!({"creation": {"attempt": 1}, "instanceID": null}), false),
            (json!({"instanceID": "i-1"}), false),
            (json!({"conditions": [], "zone": "us-east-1a"}), true),
            (json!({"replacement": null}), true),
            (json!({"changeDueSince": "2026-01-01T00:00:00Z"}), true),
        ] {
            let seen = Seen {
                method: "PATCH".to_owned(),
                path: format!("{NODE}/status"),
                query: String::new(),
                content_type: "application/merge-patch+json".to_owned(),
                body: json!({"status": status}).to_string(),
                object: None,
                journal: 0,
                status: 200,
            };
            assert_eq!(closing(&seen).is_some(), is_closing, "{status}");
        }
    }

    #[test]
    fn what_is_repeated_to_the_letter_may_be_left_out_unless_it_creates() {
        for (what, about) in [
            ("PATCH merge-patch+json nodes/<core-node-1>?fieldManager=x", Some("nodes/<core-node-1>")),
            (
                "PATCH merge-patch+json nodes.freehold.dev/orders-<hash>-1/status",
                Some("nodes.freehold.dev/orders-<hash>-1"),
            ),
            ("DELETE pods/orders-0", Some("pods/orders-0")),
            ("EC2 TerminateInstances", Some("EC2 TerminateInstances")),
            ("EC2 RunInstances", None),
            ("POST secrets", None),
        ] {
            assert_eq!(Step::new(what.to_owned(), Value::Null).may_repeat().as_deref(), about, "{what}");
        }
    }

    #[test]
    fn words_are_taken_out_with_their_places() {
        let step = Step::new(
            "PATCH".to_owned(),
            json!({"status": {"fence": {"message": "gone",
        "since": "<time>"}}}),
        );
        assert_eq!(step.words, [("status.fence.message".to_owned(), "gone".to_owned())]);
        assert_eq!(step.sent, json!({"status": {"fence": {"message": WORDS, "since": "<time>"}}}));
    }
}
