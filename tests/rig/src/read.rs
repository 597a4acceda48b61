//! Lists: selectors, pages, and metadata alone.

use std::sync::Arc;

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};

use super::answer::Refusal;
use super::kind::Kind;
use super::request::Call;
use super::selector::Selector;
use super::state::State;
use super::store::Key;

/// The text of the list that a request is for.
pub fn list(state: &State, kind: &Kind, call: &Call) -> Result<String, Refusal> {
    let selector = selector(kind, call)?;
    let limit = call.parameter("limit").parse::<usize>().ok().filter(|it| *it > 0);
    let token = call.parameter("continue");
    let (revision, after) = if token.is_empty() { (state.store.revision(), None) } else { place(token)? };
    let objects = state.store.list_at(&kind.resource(), &call.namespace, revision).ok_or_else(|| {
        Refusal::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start \
                a new list without the continue parameter, or use the continue token in this response to \
                retrieve the remainder of the results.",
        )
    })?;
    let is_after = |key: &Key| after.as_ref().is_none_or(|it| (&key.1, &key.2) > (&it.0, &it.1));
    let mut left: Vec<(Key, Arc<Value>)> =
        objects.into_iter().filter(|(key, it)| is_after(key) && selector.selects(it)).collect();
    let rest = left.split_off(limit.unwrap_or(left.len()).min(left.len()));
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if kind.is_custom && !call.metadata_only {
        metadata["continue"] = json!("");
    }
    if let (Some(last), false) = (left.last(), rest.is_empty()) {
        let token = json!({"rv": revision, "namespace": last.0.1, "name": last.0.2});
        metadata["continue"] = json!(BASE64URL_NOPAD.encode(token.to_string().as_bytes()));
        if selector.is_all() {
            metadata["remainingItemCount"] = json!(rest.len());
        }
    }
    let items: Vec<String> = left.iter().map(|(_, it)| item(kind, it, call.metadata_only)).collect();
    let (list, version) = if call.metadata_only {
        ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned())
    } else {
        (format!("{}List", kind.kind), kind.api_version())
    };
    let (list, version, items) = (json!(list), json!(version), items.join(","));
    Ok(format!(r#"{{"kind":{list},"apiVersion":{version},"metadata":{metadata},"items":[{items}]}}"#))
}

/// What a request selects.
pub fn selector(kind: &Kind, call: &Call) -> Result<Selector, Refusal> {
    Selector::parse(kind, call.parameter("labelSelector"), call.parameter("fieldSelector"))
}

/// Where a page begins: the resourceVersion of the list, and after which object.
fn place(token: &str) -> Result<(u64, Option<(String, String)>), Refusal> {
    let read = BASE64URL_NOPAD.decode(token.as_bytes()).ok();
    let read: Option<Value> = read.and_then(|it| serde_json::from_slice(&it).ok());
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    read.and_then(|it| Some((it["rv"].as_u64()?, Some((text(&it["namespace"]), text(&it["name"]))))))
        .ok_or_else(|| Refusal::bad("continue key is not valid"))
}

/// An item of a list: those of built-in kinds do not say their kind.
fn item(kind: &Kind, object: &Value, metadata_only: bool) -> String {
    if metadata_only {
        return metadata_of(object).to_string();
    }
    let (Some(members), false) = (object.as_object(), kind.is_custom) else { return object.to_string() };
    let is_said = |key: &String| key != "kind" && key != "apiVersion";
    let members =
        members.iter().filter(|(key, _)| is_said(key)).map(|(key, it)| format!("{}:{it}", json!(key)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// What a client gets that wants metadata alone.
pub fn metadata_of(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}
