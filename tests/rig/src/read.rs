//! Lists: selectors, pages, and metadata alone.

use std::fmt::Write as _;
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
pub fn list(state: &mut State, kind: &Kind, call: &Call) -> Result<String, Refusal> {
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
    let mut items = String::new();
    for (_, object) in &left {
        if !items.is_empty() {
            items.push(',');
        }
        match (call.metadata_only, kind.is_custom) {
            (true, _) => items += &metadata_of(object).to_string(),
            (false, true) => items += str::from_utf8(&state.texts.of(object)).unwrap_or_default(),
            (false, false) => unnamed(object, &mut items),
        }
    }
    let (list, version) = if call.metadata_only {
        ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned())
    } else {
        (format!("{}List", kind.kind), kind.api_version())
    };
    let (list, version) = (json!(list), json!(version));
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

/// An item of a list of a built-in kind, which does not say its kind.
fn unnamed(object: &Value, items: &mut String) {
    let members = object.as_object().into_iter().flatten();
    let is_said = |(key, _): &(&String, &Value)| *key != "kind" && *key != "apiVersion";
    items.push('{');
    for (at, (key, it)) in members.filter(is_said).enumerate() {
        let comma = if at > 0 { "," } else { "" };
        // A String takes all that is written.
        let _ = write!(items, "{comma}{}:{it}", json!(key));
    }
    items.push('}');
}

/// What a client gets that wants metadata alone.
pub fn metadata_of(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}
