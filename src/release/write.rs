//! Requests the release, and waits until it is over.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::error::ReleaseError;
use super::found::Found;
use crate::api::{ConditionType, Database};
use crate::cluster::delete;
use crate::command::progress::{Look, watch};

/// Sets `spec.release`, deletes the very Database that was read, and waits until it is gone; that its pod
/// runs on is seen.
pub async fn release(
    client: &Client,
    found: &Found,
    limit: Duration,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), ReleaseError> {
    let Found { database, names, .. } = found;
    let (namespace, name) = (database.namespace().unwrap_or_default(), database.name_any());
    let databases = Api::<Database>::namespaced(client.clone(), &namespace);
    if !database.spec.release && !found.is_begun() {
        let patch = json!({"metadata": {"uid": database.metadata.uid}, "spec": {"release": true}});
        databases.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        say("release       spec.release is true");
    }
    if database.metadata.deletion_timestamp.is_none() {
        // In the background: in the foreground Kubernetes would delete the StatefulSet before it is released.
        delete::delete(&databases, &name, &database.uid().unwrap_or_default()).await?;
        say(&format!("Database      {namespace}/{name} is being deleted"));
    }
    let uid = database.uid();
    let is_gone = watch(say, limit, async || -> Result<Look, ReleaseError> {
        let there = databases.get_opt(&name).await?.filter(|there| there.uid() == uid);
        let Some(there) = there else {
            let pod = Api::<Pod>::namespaced(client.clone(), &namespace).get_opt(&names.pod()).await?;
            if pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()) {
                return Err(ReleaseError::NotRunning { database: name.clone(), pod: names.pod() });
            }
            let line = format!("done          {namespace}/{name} runs on without Freehold");
            return Ok(Look::Over(Some(line)));
        };
        let is_begun = there.status.as_ref().is_some_and(|status| status.release.is_some());
        if !there.spec.release && !is_begun {
            return Err(ReleaseError::Withdrawn(name.clone()));
        }
        let is_ready = |it: &&Condition| it.type_ == ConditionType::Ready.as_str();
        let ready = there.conditions().iter().find(is_ready);
        let line = ready.map(|ready| format!("{:<13} {}", ready.reason, ready.message));
        Ok(Look::Awaited(line.unwrap_or_default()))
    })
    .await?;
    if is_gone { Ok(()) } else { Err(ReleaseError::NotReleased { name, limit }) }
}
