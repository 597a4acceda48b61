//! Deletion by name and UID, so that a new object of the same name is never hit.

use std::fmt::Debug;

use kube::api::{Api, DeleteParams, Preconditions, PropagationPolicy};
use serde::de::DeserializeOwned;

use super::{is_conflict, is_not_found};

/// Deletes this very object, its dependents in the background. One that is gone already, or replaced by
/// another of its name, counts as deleted.
pub async fn delete<K>(api: &Api<K>, name: &str, uid: &str) -> Result<(), kube::Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    delete_with(api, name, uid, None).await
}

/// The same with a grace period in seconds.
pub async fn delete_with<K>(
    api: &Api<K>,
    name: &str,
    uid: &str,
    grace_seconds: Option<u32>,
) -> Result<(), kube::Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    let params = DeleteParams {
        grace_period_seconds: grace_seconds,
        propagation_policy: Some(PropagationPolicy::Background),
        preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
        ..DeleteParams::default()
    };
    match api.delete(name, &params).await {
        Ok(_) => Ok(()),
        // 409: the UID differs, so the object that was meant is gone.
        Err(error) if is_not_found(&error) || is_conflict(&error) => Ok(()),
        Err(error) => Err(error),
    }
}
