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
    match api.delete(name, &params(uid, None, grace_seconds)).await {
        Ok(_) => Ok(()),
        // 409: the UID differs, so the object that was meant is gone.
        Err(error) if is_not_found(&error) || is_conflict(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Deletes this very object as long as it is as it was read; a conflict when it has changed since. One that
/// is gone counts as deleted.
pub async fn delete_as_read<K>(
    api: &Api<K>,
    name: &str,
    uid: &str,
    resource_version: &str,
) -> Result<(), kube::Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    match api.delete(name, &params(uid, Some(resource_version), None)).await {
        Err(error) if !is_not_found(&error) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn params(uid: &str, resource_version: Option<&str>, grace_seconds: Option<u32>) -> DeleteParams {
    DeleteParams {
        grace_period_seconds: grace_seconds,
        propagation_policy: Some(PropagationPolicy::Background),
        preconditions: Some(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: resource_version.map(str::to_owned),
        }),
        ..DeleteParams::default()
    }
}
