//! A database is created, awaited, connected to and deleted (docs/backend.md).

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams};
use kube::runtime::wait::{await_condition, conditions::is_deleted};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::timeout;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn kind() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("freehold.dev", "v1alpha1", "Database"))
}

pub fn databases(client: &Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &kind())
}

/// Creates the database, or finds the one that an earlier call created.
pub async fn create(api: &Api<DynamicObject>, name: &str, spec: &Value) -> kube::Result<DynamicObject> {
    let database = DynamicObject::new(name, &kind()).data(json!({"spec": spec}));
    match api.create(&PostParams::default(), &database).await {
        Err(kube::Error::Api(refusal)) if refusal.code == 409 => api.get(name).await,
        answer => answer,
    }
}

/// The message of a condition, if it is true for the newest generation of the spec.
fn holds(database: &DynamicObject, kind: &str) -> Option<String> {
    let conditions = database.data["status"]["conditions"].as_array()?;
    let condition = conditions.iter().find(|condition| condition["type"] == kind)?;
    let is_current = condition["observedGeneration"].as_i64() == database.metadata.generation;
    (is_current && condition["status"] == "True").then(|| condition["message"].to_string())
}

/// Waits until this generation runs and answers; fails with the message when a person must act.
pub async fn ready(api: &Api<DynamicObject>, name: &str, limit: Duration) -> Result<DynamicObject, Failure> {
    let is_decided = |database: Option<&DynamicObject>| {
        let either = |it| holds(it, "Ready").or_else(|| holds(it, "Stalled")).is_some();
        database.is_some_and(either)
    };
    let database = timeout(limit, await_condition(api.clone(), name, is_decided)).await??;
    let database = database.ok_or("the database was deleted")?;
    holds(&database, "Stalled").map_or(Ok(database), |message| Err(message.into()))
}

/// What a client connects with: host, port, username, password, uri and more.
pub async fn credentials(
    client: &Client,
    database: &DynamicObject,
) -> Result<BTreeMap<String, String>, Failure> {
    let namespace = database.namespace().unwrap_or_default();
    let name = database.data["status"]["binding"]["name"].as_str().ok_or("there is no Secret yet")?;
    let secret = Api::<Secret>::namespaced(client.clone(), &namespace).get(name).await?;
    let text = |(key, ByteString(value))| Ok((key, String::from_utf8(value)?));
    secret.data.unwrap_or_default().into_iter().map(text).collect()
}

/// Deletes the database and waits until all that belongs to it is gone or retained.
pub async fn delete(api: &Api<DynamicObject>, name: &str, limit: Duration) -> Result<(), Failure> {
    let Some(database) = api.get_opt(name).await? else { return Ok(()) };
    let uid = database.uid().unwrap_or_default();
    api.delete(name, &DeleteParams::default()).await?;
    timeout(limit, await_condition(api.clone(), name, is_deleted(&uid))).await??;
    Ok(())
}
