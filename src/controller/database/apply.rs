//! Writes a Database's objects to the API server: a new one, or the whole content of the very one that it
//! names; or deletes that one.

use std::fmt::Debug;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::build::with_unknown;
use super::child_kind::ChildKind;
use crate::api::DatabaseUser;
use crate::api::keys::DATABASE_FIELD_MANAGER;
use crate::cluster::delete;

/// The ConfigMap and the StatefulSet as the API server answered the last write to each: with its defaults,
/// and with what its admission webhooks changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    /// The ConfigMap, if it was written.
    pub config_map: Option<ConfigMap>,
    /// The StatefulSet, if it was written.
    pub stateful_set: Option<StatefulSet>,
}

/// Applies a new object, without force: one of the name that appeared since it was looked for answers with a
/// conflict. One that is ours (it names its UID) is patched by JSON merge patch, which replaces lists whole.
/// Server-side apply would keep the entries that another client has put into a list by key, such as a
/// Service's ports, and then fail on the names that both use.
pub(super) async fn apply<K>(api: &Api<K>, object: &K) -> Result<K, kube::Error>
where
    K: Resource + Clone + Serialize + DeserializeOwned + Debug,
{
    if object.meta().uid.is_none() {
        return create(api, &object.name_any(), object).await;
    }
    api.patch(&object.name_any(), &written(), &Patch::Merge(object)).await
}

/// The same for an object whose spec is replaced whole: nothing stays in it that another client has added,
/// such as one more label that a pod must have.
pub(super) async fn apply_spec<K>(api: &Api<K>, object: &K) -> Result<K, kube::Error>
where
    K: Resource + Clone + Serialize + DeserializeOwned + Debug,
{
    write_spec(api, object, json!(object)).await
}

/// The same for a ConfigMap, whose content is replaced whole: no file stays that another client has added.
pub(super) async fn apply_config_map(
    api: &Api<ConfigMap>,
    object: &ConfigMap,
) -> Result<ConfigMap, kube::Error> {
    if object.metadata.uid.is_none() {
        return create(api, &object.name_any(), object).await;
    }
    let mut patch = json!(object);
    patch["binaryData"] = Value::Null;
    replace(api, object, patch, "data").await
}

/// The same for a StatefulSet, whose spec is replaced whole: nothing stays that another client has added,
/// such as an init container. `found` is the StatefulSet of an adopted database as the API server sent it:
/// what the types of this program do not know of it stays.
pub(super) async fn apply_stateful_set(
    api: &Api<StatefulSet>,
    object: &StatefulSet,
    found: Option<&Value>,
) -> Result<StatefulSet, kube::Error> {
    write_spec(api, object, whole(object, found)).await
}

/// Creates the object as this, or replaces its spec by this one's.
async fn write_spec<K>(api: &Api<K>, object: &K, whole: Value) -> Result<K, kube::Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    if object.meta().uid.is_none() {
        return create(api, &object.name_any(), &whole).await;
    }
    replace(api, object, whole, "spec").await
}

/// The StatefulSet with what the types do not know of it.
fn whole(object: &StatefulSet, found: Option<&Value>) -> Value {
    let mut whole = json!(object);
    if let Some(found) = found {
        whole["spec"] = with_unknown(&found["spec"], &whole["spec"]);
    }
    whole
}

/// Gives an object that is released these labels, annotations and owners, and this spec if there is one, if
/// it is still as it was read. Of a spec that stays nothing is written: it may have fields that this release
/// does not know.
pub(super) async fn release<K>(api: &Api<K>, live: &ObjectMeta, to: &Value) -> Result<(), kube::Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    let of_metadata = |field: &str, none: Value| {
        let value = to["metadata"].get(field).cloned().unwrap_or(none);
        json!({"op": "add", "path": format!("/metadata/{field}"), "value": value})
    };
    let mut patch = vec![
        json!({"op": "test", "path": "/metadata/uid", "value": live.uid}),
        json!({"op": "replace", "path": "/metadata/resourceVersion", "value": live.resource_version}),
        of_metadata("labels", json!({})),
        of_metadata("annotations", json!({})),
        of_metadata("ownerReferences", json!([])),
    ];
    patch.extend(to.get("spec").map(|spec| json!({"op": "replace", "path": "/spec", "value": spec})));
    let patch = serde_json::from_value(Value::Array(patch)).map_err(kube::Error::SerdeError)?;
    let name = live.name.as_deref().unwrap_or_default();
    api.patch(name, &written(), &Patch::Json::<()>(patch)).await.map(drop)
}

/// The same for an object of this kind.
pub(super) async fn release_child(
    kind: ChildKind,
    live: &ObjectMeta,
    to: &Value,
    client: Client,
) -> Result<(), kube::Error> {
    let namespace = live.namespace.clone().unwrap_or_default();
    match kind {
        ChildKind::StatefulSet => {
            release(&Api::<StatefulSet>::namespaced(client, &namespace), live, to).await
        }
        ChildKind::Service => release(&Api::<Service>::namespaced(client, &namespace), live, to).await,
        ChildKind::ConfigMap => release(&Api::<ConfigMap>::namespaced(client, &namespace), live, to).await,
        ChildKind::ServiceAccount => {
            release(&Api::<ServiceAccount>::namespaced(client, &namespace), live, to).await
        }
        ChildKind::NetworkPolicy => {
            release(&Api::<NetworkPolicy>::namespaced(client, &namespace), live, to).await
        }
        ChildKind::PodDisruptionBudget => {
            release(&Api::<PodDisruptionBudget>::namespaced(client, &namespace), live, to).await
        }
        ChildKind::DatabaseUser => {
            release(&Api::<DatabaseUser>::namespaced(client, &namespace), live, to).await
        }
    }
}

/// Deletes an object of this kind, if it still has this UID.
pub(super) async fn delete_child(
    kind: ChildKind,
    name: &str,
    uid: &str,
    namespace: &str,
    client: Client,
) -> Result<(), kube::Error> {
    match kind {
        ChildKind::StatefulSet => {
            delete::delete(&Api::<StatefulSet>::namespaced(client, namespace), name, uid).await
        }
        ChildKind::Service => delete::delete(&Api::<Service>::namespaced(client, namespace), name, uid).await,
        ChildKind::ConfigMap => {
            delete::delete(&Api::<ConfigMap>::namespaced(client, namespace), name, uid).await
        }
        ChildKind::ServiceAccount => {
            delete::delete(&Api::<ServiceAccount>::namespaced(client, namespace), name, uid).await
        }
        ChildKind::NetworkPolicy => {
            delete::delete(&Api::<NetworkPolicy>::namespaced(client, namespace), name, uid).await
        }
        ChildKind::PodDisruptionBudget => {
            delete::delete(&Api::<PodDisruptionBudget>::namespaced(client, namespace), name, uid).await
        }
        ChildKind::DatabaseUser => {
            delete::delete(&Api::<DatabaseUser>::namespaced(client, namespace), name, uid).await
        }
    }
}

/// Changes these fields of an object.
pub(super) async fn merge<K>(api: &Api<K>, name: &str, patch: &Value) -> Result<(), kube::Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    api.patch(name, &written(), &Patch::Merge(patch)).await.map(drop)
}

/// By strategic merge patch, the only one that can replace a part as a whole (Kubernetes' API conventions,
/// "Strategic Merge Patch": the directive `$patch`).
async fn replace<K>(api: &Api<K>, object: &K, mut patch: Value, part: &str) -> Result<K, kube::Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    patch[part]["$patch"] = json!("replace");
    api.patch(&object.name_any(), &written(), &Patch::Strategic(patch)).await
}

async fn create<K>(api: &Api<K>, name: &str, object: &(impl Serialize + Debug)) -> Result<K, kube::Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    api.patch(name, &PatchParams::apply(DATABASE_FIELD_MANAGER), &Patch::Apply(object)).await
}

/// What names Freehold as the creator of an object.
pub(super) fn created() -> PostParams {
    PostParams { field_manager: Some(DATABASE_FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

/// How a field is changed.
pub(super) fn written() -> PatchParams {
    PatchParams { field_manager: Some(DATABASE_FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_stateful_set_is_written_with_the_fields_that_the_types_do_not_know() {
        let found = json!({"spec": {"serviceName": "pg", "selector": {}, "template": {"spec": {
            "containers": [{"name": "pg", "image": "pg:1", "ofTomorrow": true}], "alsoOfTomorrow": 1}}}});
        let mut wanted: StatefulSet = serde_json::from_value(found.clone()).unwrap();
        let pod = wanted.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
        pod.containers[0].image = Some("pg:2".to_owned());
        let mut expected = found.clone();
        expected["spec"]["template"]["spec"]["containers"][0]["image"] = json!("pg:2");
        assert_eq!(whole(&wanted, Some(&found))["spec"], expected["spec"]);
        assert_eq!(whole(&wanted, None), json!(wanted));
    }
}
