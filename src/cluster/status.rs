//! Writes a status: a JSON merge patch of what differs, with the resourceVersion that it was computed from.

use std::fmt::Debug;

use kube::api::{Api, Patch, PatchParams};
use kube::core::Request;
use kube::core::object::HasStatus;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value, json};

/// Patches the status of `object` so that `old` becomes `new`; no call when nothing differs. Fails with a
/// conflict when the object changed since it was read: the view was old, observe again. Returns the object as
/// it is now.
pub async fn patch<K, S>(api: &Api<K>, object: &K, old: &S, new: &S) -> Result<K, PatchError>
where
    K: Resource + Clone + DeserializeOwned + Debug,
    S: Serialize,
{
    let Some(difference) = difference(&serde_json::to_value(old)?, &serde_json::to_value(new)?) else {
        return Ok(object.clone());
    };
    let patch = Patch::Merge(of_version(object, &difference));
    Ok(api.patch_status(&object.name_any(), &PatchParams::default(), &patch).await?)
}

/// The same by a difference that is known. What the object is now is not read: of a whole object that takes
/// as long as all the rest of the write.
pub async fn write<K>(api: &Api<K>, object: &K, difference: &Value) -> Result<(), PatchError>
where
    K: Resource<DynamicType = ()> + Clone,
{
    let patch = Patch::Merge(of_version(object, difference));
    let request = Request::new(api.resource_url());
    let mut request = request
        .patch_subresource("status", &object.name_any(), &PatchParams::default(), &patch)
        .map_err(kube::Error::BuildRequest)?;
    // By this kube's clients name the request's span, as `Api` does.
    request.extensions_mut().insert("patch_status");
    api.clone().into_client().request::<IgnoredAny>(request).await?;
    Ok(())
}

/// The patch of what differs, of the object as it was read.
fn of_version<K: Resource>(object: &K, difference: &Value) -> Value {
    json!({
        "metadata": {"resourceVersion": object.meta().resource_version, "uid": object.meta().uid},
        "status": difference,
    })
}

/// Writes fields that have one writer: without a resourceVersion, since no other client's write may delay
/// them, but never to another object of the name. `change` sets the fields on a copy of the status as
/// `object` has it. Returns the object as it is now.
pub async fn record<K>(api: &Api<K>, object: &K, change: impl FnOnce(&mut K::Status)) -> Result<K, PatchError>
where
    K: Resource + HasStatus + Clone + DeserializeOwned + Debug,
    K::Status: Serialize + Clone + Default,
{
    let old = object.status().cloned().unwrap_or_default();
    let mut new = old.clone();
    change(&mut new);
    let Some(difference) = difference(&serde_json::to_value(&old)?, &serde_json::to_value(&new)?) else {
        return Ok(object.clone());
    };
    let patch = json!({"metadata": {"uid": object.meta().uid}, "status": difference});
    Ok(api.patch_status(&object.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await?)
}

/// Why a status was not written.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// The API server refused, or did not answer.
    #[error(transparent)]
    Kube(#[from] kube::Error),
    /// The status could not be turned into JSON.
    #[error("failed to serialise the status")]
    Json(#[from] serde_json::Error),
}

/// The JSON merge patch (RFC 7386) that turns `old` into `new`; `None` when they are equal. Lists are
/// replaced whole.
pub fn difference(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return Some(new.clone());
    };
    let mut patch = Map::new();
    for (key, value) in new {
        match old.get(key) {
            Some(before) => {
                if let Some(inner) = difference(before, value) {
                    patch.insert(key.clone(), inner);
                }
            }
            None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patch_holds_what_differs_and_null_for_what_went() {
        let old = json!({"a": 1, "b": {"c": 2, "d": 3}, "list": [1, 2], "gone": true});
        let new = json!({"a": 1, "b": {"c": 2, "d": 4}, "list": [1], "new": "x"});
        assert_eq!(
            difference(&old, &new),
            Some(json!({"b": {"d": 4}, "list": [1], "new": "x",
        "gone": null}))
        );
        assert_eq!(difference(&old, &old), None);
    }
}
