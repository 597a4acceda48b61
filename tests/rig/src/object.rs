//! An object as a client sends it, and the rules of its metadata.

use serde_json::{Value, json};

use super::answer::{Cause, Refusal};
use super::decode;
use super::defaults;
use super::kind::Kind;
use super::{pattern, validate};

/// What a name must match (RFC 1123).
const SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// What the name of a namespace must match.
const LABEL: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// Reads the body of a request.
pub fn parse(body: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::bad(&format!("error decoding the body: {error}")))
}

/// Text of the metadata; empty if it is missing.
pub fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// The finalizers.
pub fn finalizers(object: &Value) -> Vec<String> {
    let all = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether its deletion was asked for.
pub fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Drops what the kind does not know, and fills in defaults.
pub fn decode(kind: &Kind, sent: &Value) -> Result<Value, Refusal> {
    let (wanted, version) = (kind.kind.as_str(), kind.api_version());
    let said = sent["kind"].as_str().unwrap_or_default();
    if kind.is_custom && said.is_empty() {
        let shown = sent.to_string();
        let short: String = shown.chars().take(30).collect();
        let short = if shown.len() > 30 { format!("{short} ...") } else { shown.clone() };
        let message = format!(
            "the object provided is unrecognized (must be of type {wanted}): Object 'Kind' is missing in \
                '{shown}' ({short})"
        );
        return Err(Refusal::bad(&message));
    }
    if !said.is_empty() && said != wanted {
        let said_version = sent["apiVersion"].as_str().unwrap_or(&version);
        let message = format!("{said} in version {said_version:?} cannot be handled as a {wanted}");
        return Err(Refusal::bad(&message));
    }
    let mut object = if kind.is_custom {
        custom(kind, sent)
    } else {
        decode::built_in(sent, &kind.schema, wanted)
    }
    .map_err(|it| {
        let message = format!(
            "{wanted} in version {:?} cannot be handled as a {wanted}: json: cannot unmarshal {} into Go \
                    struct field {} of type {}",
            kind.version, it.got, it.field, it.wanted
        );
        Refusal::bad(&message)
    })?;
    object["apiVersion"] = json!(version);
    object["kind"] = json!(wanted);
    if object["metadata"].is_null() {
        object["metadata"] = json!({});
    }
    if kind.is_custom {
        decode::fill(&mut object, &kind.schema);
    } else {
        defaults::fill(kind, &mut object);
    }
    Ok(object)
}

fn custom(kind: &Kind, sent: &Value) -> Result<Value, decode::Mismatch> {
    let mut object = sent.clone();
    decode::prune(&mut object, &kind.schema);
    if let Some(schema) = kind.schema.field("metadata") {
        object["metadata"] = decode::built_in(&sent["metadata"], schema, "metadata")?;
    }
    Ok(object)
}

/// The faults of an object that is about to be kept.
pub fn faults(kind: &Kind, object: &Value) -> Vec<Cause> {
    let mut faults = Vec::new();
    let name = meta(object, "name");
    let is_label = matches!(kind.built_in(), "Namespace" | "Service");
    let (pattern, shown) = if is_label { (LABEL, "label") } else { (SUBDOMAIN, "subdomain") };
    if name.is_empty() {
        faults.push(Cause::required("metadata.name", "name or generateName is required"));
    } else if !pattern::matches(pattern, name) {
        let detail = format!(
            "a lowercase RFC 1123 {shown} must consist of lower case alphanumeric characters, '-' or '.', and must \
                start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{}')",
            pattern.trim_start_matches('^').trim_end_matches('$')
        );
        faults.push(Cause::invalid("metadata.name", &json!(name), &detail));
    }
    if kind.is_custom {
        faults.extend(validate::faults(object, &kind.schema));
    }
    faults
}

/// The faults of a change.
pub fn faults_of_change(old: &Value, new: &Value) -> Vec<Cause> {
    let mut faults = Vec::new();
    for field in ["uid", "creationTimestamp"] {
        if old["metadata"][field] != new["metadata"][field] {
            let field_path = format!("metadata.{field}");
            faults.push(Cause::invalid(&field_path, &new["metadata"][field], "field is immutable"));
        }
    }
    if is_deleting(old) {
        let before = finalizers(old);
        let mut added: Vec<String> = finalizers(new);
        added.retain(|it| !before.contains(it));
        if !added.is_empty() {
            let added: Vec<String> = added.iter().map(|it| format!("{it:?}")).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            faults.push(Cause::forbidden("metadata.finalizers", &detail));
        }
    }
    // The API server checks the metadata twice and lists what it finds twice.
    faults.iter().cloned().chain(faults.iter().cloned()).collect()
}
