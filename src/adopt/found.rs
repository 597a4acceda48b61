//! What was found of a database that runs, and what is read out of it. Pure.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    Container, Node as CoreNode, PersistentVolume, PersistentVolumeClaim, Pod, PodSpec, Service,
};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::{Resource, ResourceExt};

use super::image::recognise;
use crate::api::database::EngineType;
use crate::api::{Database, InstanceId, NodeClass, VolumeId};
use crate::cloud::{EbsVolume, Instance, Modification};
use crate::cluster::controller_of;
use crate::cluster::persistent_volume::{ebs_volume, file_system};
use crate::controller::engine_container::{CONTAINER, engine_of};

/// A database that runs, with everything around it.
#[derive(Clone, Debug)]
pub struct Found {
    /// Identifies the cluster in tags.
    pub cluster_id: String,
    /// The StatefulSet.
    pub stateful_set: StatefulSet,
    /// Its pod.
    pub pod: Option<Pod>,
    /// Every claim of the pod.
    pub claims: Vec<FoundClaim>,
    /// The StorageClass of the claim of the data.
    pub storage_class: Option<StorageClass>,
    /// The Kubernetes node of the pod.
    pub core_node: Option<CoreNode>,
    /// Every pod on that Kubernetes node.
    pub pods: Vec<Pod>,
    /// Every Service of the namespace that selects the pod.
    pub services: Vec<Service>,
    /// The instance of the Kubernetes node, if EC2 knows it.
    pub instance: Option<Instance>,
    /// The EBS volume of the claim of the data, if EC2 knows it.
    pub volume: Option<EbsVolume>,
    /// The newest modification of that volume.
    pub modification: Option<Modification>,
    /// The NodeClass of the name that was given.
    pub node_class: Option<NodeClass>,
    /// The labels of the namespace; read only where the NodeClass admits namespaces by them.
    pub namespace_labels: BTreeMap<String, String>,
    /// The Database of the name that was given.
    pub database: Option<Database>,
}

/// A claim of the pod.
#[derive(Clone, Debug)]
pub struct FoundClaim {
    /// Its name.
    pub name: String,
    /// The claim.
    pub claim: Option<PersistentVolumeClaim>,
    /// Its PersistentVolume.
    pub persistent_volume: Option<PersistentVolume>,
}

impl FoundClaim {
    /// The EBS volume.
    pub fn ebs_volume(&self) -> Option<VolumeId> {
        self.persistent_volume.as_ref().and_then(ebs_volume)
    }
}

impl Found {
    /// `StatefulSet <namespace>/<name>`.
    pub fn subject(&self) -> String {
        let set = &self.stateful_set;
        format!("StatefulSet {}/{}", set.namespace().unwrap_or_default(), set.name_any())
    }

    /// The pod that the template asks for.
    pub fn template(&self) -> Option<&PodSpec> {
        self.stateful_set.spec.as_ref()?.template.spec.as_ref()
    }

    /// The engine's container: the one with the name that Freehold gives it, or the only one that mounts the
    /// data. Of several, the one whose image is a known engine's, then the one that names a port comes first.
    pub fn engine(&self) -> Option<&Container> {
        let containers = &self.template()?.containers;
        if let Some(named) = containers.iter().find(|container| container.name == CONTAINER) {
            return Some(named);
        }
        let data = self.data_volume();
        let mounts = |container: &&Container| {
            let mut mounts = container.volume_mounts.iter().flatten();
            data.is_some_and(|data| mounts.any(|mount| mount.name == data))
        };
        let likely = |container: &&Container| {
            let image = container.image.as_deref().unwrap_or_default();
            let has_port = container.ports.as_ref().is_some_and(|ports| !ports.is_empty());
            (recognise(image).kind == EngineType::Custom, !has_port)
        };
        containers.iter().filter(mounts).min_by_key(likely).or_else(|| containers.first())
    }

    /// The name of the engine's container, where a Database must give it.
    pub fn container_name(&self) -> Option<String> {
        let engine = self.engine()?;
        let by_default = engine_of(&self.template()?.containers, None)?;
        (engine.name != by_default.name).then(|| engine.name.clone())
    }

    /// The claim with the data: the first that is an EBS volume.
    pub fn data(&self) -> Option<&FoundClaim> {
        self.claims.iter().find(|claim| claim.ebs_volume().is_some())
    }

    /// The EBS volume with the data.
    pub fn volume_id(&self) -> Option<VolumeId> {
        self.data()?.ebs_volume()
    }

    /// The instance that the Kubernetes node says it is: `aws:///<zone>/<id>`.
    pub fn instance_id(&self) -> Option<InstanceId> {
        let provider_id = self.core_node.as_ref()?.spec.as_ref()?.provider_id.as_deref()?;
        let id = provider_id.rsplit('/').next().filter(|id| id.starts_with("i-"))?;
        Some(InstanceId(id.to_owned()))
    }

    /// The file system of the data.
    pub fn file_system(&self) -> Option<String> {
        file_system(self.data()?.persistent_volume.as_ref()?)
    }

    /// Where the data is mounted in the engine's container.
    pub fn data_path(&self) -> Option<&str> {
        let volume = self.data_volume()?;
        let mounts = self.engine()?.volume_mounts.iter().flatten();
        mounts.filter(|mount| mount.name == volume).map(|mount| mount.mount_path.as_str()).next()
    }

    /// The name of the data's volume in the pod.
    fn data_volume(&self) -> Option<&str> {
        let claim = &self.data()?.name;
        let volumes = self.pod.as_ref()?.spec.as_ref()?.volumes.iter().flatten();
        let mut of_claim = volumes.filter(|volume| {
            volume.persistent_volume_claim.as_ref().is_some_and(|source| source.claim_name == *claim)
        });
        of_claim.next().map(|volume| volume.name.as_str())
    }

    /// The Secrets that the engine's container and the volumes of the template name.
    pub fn secrets(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let engine = self.engine();
        let variables = engine.into_iter().flat_map(|it| it.env.iter().flatten());
        names.extend(
            variables.filter_map(|it| Some(it.value_from.as_ref()?.secret_key_ref.as_ref()?.name.clone())),
        );
        let groups = engine.into_iter().flat_map(|it| it.env_from.iter().flatten());
        names.extend(groups.filter_map(|it| Some(it.secret_ref.as_ref()?.name.clone())));
        for volume in self.template().into_iter().flat_map(|spec| spec.volumes.iter().flatten()) {
            names.extend(volume.secret.as_ref().and_then(|secret| secret.secret_name.clone()));
            let projected = volume.projected.iter().flat_map(|it| it.sources.iter().flatten());
            names.extend(projected.filter_map(|it| Some(it.secret.as_ref()?.name.clone())));
        }
        names
    }

    /// The pods on the machine that stay there: neither this one, nor a DaemonSet's, nor the kubelet's own,
    /// nor one that has ended.
    pub fn neighbours(&self) -> Vec<&Pod> {
        let uid = self.pod.as_ref().and_then(ResourceExt::uid);
        let stays = |pod: &&Pod| {
            let is_of_machine =
                controller_of(*pod).is_some_and(|it| matches!(it.kind.as_str(), "DaemonSet" | "Node"));
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            pod.uid() != uid && !is_of_machine && !matches!(phase, Some("Succeeded" | "Failed"))
        };
        self.pods.iter().filter(stays).collect()
    }

    /// Whether the StatefulSet is the Database's already: an earlier run was completed.
    pub fn is_adopted(&self, database: &str) -> bool {
        let owner = controller_of(&self.stateful_set);
        owner.is_some_and(|it| {
            it.kind == "Database" && it.api_version == Database::api_version(&()) && it.name == database
        })
    }
}
