//! Finds a database that runs, and everything around it. Only reads: no call here changes anything, not even
//! as a dry run.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    Namespace, Node as CoreNode, PersistentVolume, PersistentVolumeClaim, Pod, Service,
};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use super::error::AdoptError;
use super::found::{Found, FoundClaim};
use super::wanted::Wanted;
use crate::api::names;
use crate::api::{Database, InstanceId, NodeClass, VolumeId};
use crate::cloud::{Cloud, InstanceQuery, VolumeQuery};
use crate::cluster::if_served;
use crate::controller::volume::expansion;

/// What there is.
pub async fn inspect(
    client: &Client,
    cloud: &dyn Cloud,
    cluster_id: Option<&String>,
    wanted: &Wanted,
) -> Result<Found, AdoptError> {
    let mut found = in_kubernetes(client, cluster_id, wanted).await?;
    in_ec2(cloud, slice::from_mut(&mut found)).await?;
    Ok(found)
}

/// What Kubernetes has of it.
pub async fn in_kubernetes(
    client: &Client,
    cluster_id: Option<&String>,
    wanted: &Wanted,
) -> Result<Found, AdoptError> {
    let (namespace, name) = (wanted.stateful_set.namespace.as_str(), wanted.stateful_set.name.as_str());
    let sets = Api::<StatefulSet>::namespaced(client.clone(), namespace);
    let stateful_set = sets.get_opt(name).await?.ok_or_else(|| AdoptError::NoStatefulSet {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })?;
    let pod = Api::<Pod>::namespaced(client.clone(), namespace).get_opt(&names::pod(name)).await?;
    let node = pod.as_ref().and_then(|pod| pod.spec.as_ref()?.node_name.clone());
    let mut found = Found {
        cluster_id: match cluster_id {
            Some(id) => id.clone(),
            None => uid_of_cluster(client).await?,
        },
        claims: claims(client, namespace, pod.as_ref()).await?,
        services: services(client, namespace, pod.as_ref()).await?,
        namespace_labels: BTreeMap::new(),
        node_class: if_served(Api::<NodeClass>::all(client.clone()).get_opt(&wanted.node_class).await)?,
        database: if_served(
            Api::<Database>::namespaced(client.clone(), namespace).get_opt(wanted.database()).await,
        )?,
        stateful_set,
        pod,
        storage_class: None,
        core_node: None,
        pods: Vec::new(),
        instance: None,
        volume: None,
        modification: None,
    };
    if found.node_class.as_ref().is_some_and(|class| class.spec.namespace_selector.is_some()) {
        let namespace = Api::<Namespace>::all(client.clone()).get(namespace).await?;
        found.namespace_labels = namespace.metadata.labels.unwrap_or_default();
    }
    if let Some(node) = &node {
        found.core_node = Api::<CoreNode>::all(client.clone()).get_opt(node).await?;
        let on_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
        found.pods = Api::<Pod>::all(client.clone()).list(&on_node).await?.items;
    }
    let claim = found.data().and_then(|data| data.claim.as_ref());
    if let Some(class) = claim.and_then(expansion::class_of) {
        found.storage_class = Api::<StorageClass>::all(client.clone()).get_opt(class).await?;
    }
    Ok(found)
}

/// What identifies the cluster in tags unless another id is given.
pub async fn uid_of_cluster(client: &Client) -> Result<String, kube::Error> {
    Ok(Api::<Namespace>::all(client.clone()).get("kube-system").await?.uid().unwrap_or_default())
}

/// Fills in what EC2 has of all of them, in as few calls as for one as long as they are at most 200. By the
/// `…-id` filters: EC2 leaves out what it does not know, and the checks say so.
pub async fn in_ec2(cloud: &dyn Cloud, all: &mut [Found]) -> Result<(), AdoptError> {
    let ids: BTreeSet<InstanceId> = all.iter().filter_map(Found::instance_id).collect();
    if !ids.is_empty() {
        let query = InstanceQuery::Among(ids.into_iter().collect());
        let listed = cloud.describe_instances(&query).await?;
        let listed: BTreeMap<_, _> = listed.into_iter().map(|it| (it.id.clone(), it)).collect();
        for found in &mut *all {
            found.instance = found.instance_id().and_then(|id| listed.get(&id).cloned());
        }
    }
    let ids: BTreeSet<VolumeId> = all.iter().filter_map(Found::volume_id).collect();
    if !ids.is_empty() {
        let listed = cloud.describe_volumes(&VolumeQuery::Ids(ids.into_iter().collect())).await?;
        let listed: BTreeMap<_, _> = listed.into_iter().map(|it| (it.id.clone(), it)).collect();
        let ids: Vec<VolumeId> = listed.keys().cloned().collect();
        let modified = if ids.is_empty() { Vec::new() } else { cloud.describe_modifications(&ids).await? };
        let modified: BTreeMap<_, _> = modified.into_iter().map(|it| (it.volume.clone(), it)).collect();
        for found in all {
            let id = found.volume_id();
            found.volume = id.as_ref().and_then(|id| listed.get(id).cloned());
            found.modification = id.and_then(|id| modified.get(&id).cloned());
        }
    }
    Ok(())
}

/// Every claim of the pod, with its PersistentVolume.
async fn claims(client: &Client, namespace: &str, pod: Option<&Pod>) -> Result<Vec<FoundClaim>, AdoptError> {
    let volumes =
        pod.and_then(|pod| pod.spec.as_ref()).into_iter().flat_map(|spec| spec.volumes.iter().flatten());
    let mut found = Vec::new();
    for name in volumes.filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.clone()))
    {
        let claims = Api::<PersistentVolumeClaim>::namespaced(client.clone(), namespace);
        let claim = claims.get_opt(&name).await?;
        let volume = claim.as_ref().and_then(|claim| claim.spec.as_ref()?.volume_name.clone());
        let persistent_volume = match volume.filter(|name| !name.is_empty()) {
            Some(volume) => Api::<PersistentVolume>::all(client.clone()).get_opt(&volume).await?,
            None => None,
        };
        found.push(FoundClaim { name, claim, persistent_volume });
    }
    Ok(found)
}

/// The Services whose selector the pod's labels match.
async fn services(client: &Client, namespace: &str, pod: Option<&Pod>) -> Result<Vec<Service>, AdoptError> {
    let Some(pod) = pod else { return Ok(Vec::new()) };
    let all = Api::<Service>::namespaced(client.clone(), namespace).list(&ListParams::default()).await?;
    let selects = |service: &Service| {
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        selector.is_some_and(|selector| {
            !selector.is_empty() && selector.iter().all(|(key, value)| pod.labels().get(key) == Some(value))
        })
    };
    Ok(all.items.into_iter().filter(selects).collect())
}
