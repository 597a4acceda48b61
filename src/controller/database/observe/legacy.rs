//! A database that ran before its Database, as it is found. Only reads.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    Node as CoreNode, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service,
};
use kube::api::{Api, ApiResource, DynamicObject};
use serde_json::{Value, json};

use super::child::{Child, Credentials, HeldSecret, secret};
use crate::api::database::Adopt;
use crate::api::names::Names;
use crate::api::{Database, Volume};
use crate::controller::database::pod;
use crate::controller::pass::context::Context;

/// What a Database finds that adopts a database. After it was adopted, only the claim, the Service and the
/// Secret are read, and the PersistentVolume where the claim is deleted or the Volume is gone.
#[derive(Clone, Debug, PartialEq)]
pub struct Legacy {
    /// The StatefulSet.
    pub stateful_set: Option<StatefulSet>,
    /// The same as the API server sent it, with fields that are newer than the types of this program.
    pub raw: Option<Value>,
    /// Its pod.
    pub pod: Option<Pod>,
    /// The Kubernetes node of the pod.
    pub core_node: Option<CoreNode>,
    /// The claim of the data.
    pub claim: Option<PersistentVolumeClaim>,
    /// The PersistentVolume of the claim, if there is one.
    pub persistent_volume: Option<PersistentVolume>,
    /// The Service that clients use.
    pub service: Option<Service>,
    /// The Secret with the credentials, if the spec names one.
    pub credentials: Option<Credentials>,
}

/// Reads; `None` for a Database that adopts nothing. `stateful_set` is the Database's own, once it is.
pub(super) async fn observe(
    database: &Database,
    names: &Names,
    stateful_set: &Child<StatefulSet>,
    volume: &Child<Volume>,
    ctx: &Context,
) -> Result<Option<Legacy>, kube::Error> {
    let Some(adopt) = &database.spec.adopt else { return Ok(None) };
    let namespace = names.namespace.as_str();
    let mut legacy = Legacy {
        stateful_set: None,
        raw: None,
        pod: None,
        core_node: None,
        claim: Api::<PersistentVolumeClaim>::namespaced(ctx.client.clone(), namespace)
            .get_opt(&adopt.claim_name)
            .await?,
        persistent_volume: None,
        service: Api::<Service>::namespaced(ctx.client.clone(), namespace)
            .get_opt(&adopt.service_name)
            .await?,
        credentials: credentials(adopt, namespace, ctx).await?,
    };
    let is_adopted = stateful_set.ours().is_some();
    let is_deleted = legacy.claim.as_ref().is_some_and(|claim| claim.metadata.deletion_timestamp.is_some());
    if !is_adopted || is_deleted || volume.ours().is_none() {
        legacy.persistent_volume = persistent_volume(legacy.claim.as_ref(), ctx).await?;
    }
    if is_adopted {
        return Ok(Some(legacy));
    }
    let kind = ApiResource::erase::<StatefulSet>(&());
    let sets = Api::<DynamicObject>::namespaced_with(ctx.client.clone(), namespace, &kind);
    legacy.raw = sets.get_opt(&adopt.stateful_set_name).await?.map(|set| json!(set));
    let read = |raw: &Value| serde_json::from_value(raw.clone()).map_err(kube::Error::SerdeError);
    legacy.stateful_set = legacy.raw.as_ref().map(read).transpose()?;
    legacy.pod = Api::<Pod>::namespaced(ctx.client.clone(), namespace).get_opt(&names.pod()).await?;
    if let Some(machine) = legacy.pod.as_ref().and_then(pod::machine) {
        legacy.core_node = Api::<CoreNode>::all(ctx.client.clone()).get_opt(machine).await?;
    }
    Ok(Some(legacy))
}

/// The PersistentVolume that the claim names, if it is there.
async fn persistent_volume(
    claim: Option<&PersistentVolumeClaim>,
    ctx: &Context,
) -> Result<Option<PersistentVolume>, kube::Error> {
    let name = claim.and_then(|claim| claim.spec.as_ref()?.volume_name.as_deref());
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    Api::<PersistentVolume>::all(ctx.client.clone()).get_opt(name).await
}

/// The Secret, whoever it belongs to: it is used by its name alone.
async fn credentials(
    adopt: &Adopt,
    namespace: &str,
    ctx: &Context,
) -> Result<Option<Credentials>, kube::Error> {
    let Some(name) = &adopt.credentials_secret_name else { return Ok(None) };
    let secrets = Api::<Secret>::namespaced(ctx.client.clone(), namespace);
    let read = secret(&secrets, name, |_| true).await?;
    // Freehold does not use its content, so it is not kept.
    Ok(Some(match read {
        Credentials::Read(Child::Ours(held)) => {
            let kept = Secret { metadata: held.0.metadata.clone(), ..Secret::default() };
            Credentials::Read(Child::Ours(Box::new(HeldSecret(kept))))
        }
        read @ (Credentials::Unreadable(_) | Credentials::Read(Child::Absent | Child::Foreign)) => read,
    }))
}
