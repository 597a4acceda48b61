//! Reads what EC2 and Kubernetes have. No call here changes anything.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume};
use kube::api::{Api, ListParams};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::error::OrphansError;
use super::found::Found;
use super::options::Options;
use crate::cloud::{Cloud, InstanceQuery, VolumeQuery, identity};

/// What there is: EC2 first, so that what is made meanwhile is not in the list, and everything in it that has
/// an object is seen to have one.
pub async fn inspect(options: &Options, client: &Client, cloud: &dyn Cloud) -> Result<Found, OrphansError> {
    let cluster_id = match &options.cluster_id {
        Some(id) => id.clone(),
        None => Api::<Namespace>::all(client.clone()).get("kube-system").await?.uid().unwrap_or_default(),
    };
    let tags = identity::cluster_tags(&cluster_id);
    let instances = cloud.describe_instances(&InstanceQuery::Tags(tags.clone())).await?;
    let ebs_volumes = cloud.describe_volumes(&VolumeQuery::Tags(tags.clone())).await?;
    let snapshots = cloud.describe_snapshots(&tags).await?;
    let namespace = options.namespace.as_deref();
    let persistent_volumes =
        Api::<PersistentVolume>::all(client.clone()).list(&ListParams::default()).await?;
    Ok(Found {
        instances,
        ebs_volumes,
        snapshots,
        namespace: options.namespace.clone(),
        databases: all(client, namespace).await?,
        nodes: all(client, namespace).await?,
        volumes: all(client, namespace).await?,
        backups: all(client, namespace).await?,
        persistent_volumes: persistent_volumes.items,
    })
}

async fn all<K>(client: &Client, namespace: Option<&str>) -> Result<Vec<K>, kube::Error>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let api = match namespace {
        Some(namespace) => Api::<K>::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    Ok(api.list(&ListParams::default()).await?.items)
}
