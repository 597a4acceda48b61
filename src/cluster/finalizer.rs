//! Puts our finalizer on an object and takes it off again.
//!
//! kube's own helper removes the finalizer as soon as its closure returns `Ok`; here the plan says when.

use std::fmt::Debug;

use kube::api::{Api, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::is_not_found;
use crate::api::keys::FINALIZER;

/// Whether the object carries our finalizer.
pub fn has<K: Resource>(object: &K) -> bool {
    object.meta().finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
}

/// Adds the finalizer. Fails with a conflict when the object changed since it was read. Returns the object as
/// it is now.
pub async fn add<K>(api: &Api<K>, object: &K) -> Result<K, kube::Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut finalizers = object.meta().finalizers.clone().unwrap_or_default();
    finalizers.push(FINALIZER.to_owned());
    set(api, object, &finalizers).await
}

/// Removes the finalizer. An object that is gone already is no error.
pub async fn remove<K>(api: &Api<K>, object: &K) -> Result<(), kube::Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    if !has(object) {
        return Ok(());
    }
    let finalizers: Vec<String> = object
        .meta()
        .finalizers
        .iter()
        .flatten()
        .filter(|finalizer| *finalizer != FINALIZER)
        .cloned()
        .collect();
    match set(api, object, &finalizers).await {
        Ok(_) => Ok(()),
        Err(error) if is_not_found(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn set<K>(api: &Api<K>, object: &K, finalizers: &[String]) -> Result<K, kube::Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    // The UID keeps a new object of the same name out of it, the resourceVersion a concurrent edit of the
    // list.
    let patch = json!({"metadata": {
        "uid": object.meta().uid,
        "resourceVersion": object.meta().resource_version,
        "finalizers": finalizers,
    }});
    api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await
}
