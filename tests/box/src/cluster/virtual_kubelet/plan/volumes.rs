//! The volumes of the pods on virtual machines: attached, in use, grown.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use kube::ResourceExt as _;

use super::action::Action;
use super::world::World;
use crate::base::names::EBS_DRIVER;
use crate::base::persistent_volume::ebs_volume;
use crate::base::quantity;

/// The PVCs of a pod, by name.
fn claim_names(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.as_str()))
}

fn claim<'a>(world: &'a World, pod: &Pod, name: &str) -> Option<&'a PersistentVolumeClaim> {
    let claims = world.claims.iter().map(AsRef::as_ref);
    claims.into_iter().find(|claim: &&PersistentVolumeClaim| {
        claim.name_any() == name && claim.namespace() == pod.namespace()
    })
}

fn volume<'a>(world: &'a World, claim: &PersistentVolumeClaim) -> Option<&'a PersistentVolume> {
    let name = claim.spec.as_ref()?.volume_name.as_deref()?;
    world.volumes.iter().map(AsRef::as_ref).find(|volume: &&PersistentVolume| volume.name_any() == name)
}

/// The first volume of the pod that its Node does not have yet, by the name that helps most.
pub fn unattached(world: &World, node: &Node, pod: &Pod) -> Option<String> {
    let is_attached = |volume: &PersistentVolume| {
        world.attachments.iter().any(|attachment| {
            attachment.spec.node_name == node.name_any()
                && attachment.spec.source.persistent_volume_name.as_deref()
                    == Some(volume.name_any().as_str())
                && attachment.status.as_ref().is_some_and(|status| status.attached)
        })
    };
    claim_names(pod)
        .find(|name| {
            claim(world, pod, name)
                .and_then(|claim| volume(world, claim))
                .is_none_or(|volume| !is_attached(volume))
        })
        .map(str::to_owned)
}

/// The volumes that the machine has mounted or is about to: the attach/detach controller leaves them alone
/// while its pods end.
pub fn in_use<'a>(world: &World, node: &Node, pods: impl Iterator<Item = &'a Arc<Pod>>) -> Option<Action> {
    let mut wanted = BTreeSet::new();
    for pod in pods {
        let volumes = claim_names(pod).filter_map(|name| volume(world, claim(world, pod, name)?));
        wanted
            .extend(volumes.filter_map(|volume| {
                Some(format!("kubernetes.io/csi/{EBS_DRIVER}^{}", ebs_volume(volume)?))
            }));
    }
    let before: BTreeSet<String> =
        node.status.iter().flat_map(|status| status.volumes_in_use.iter().flatten().cloned()).collect();
    (before != wanted).then(|| Action::SetVolumesInUse {
        node: node.name_any(),
        version: node.resource_version(),
        volumes: wanted.into_iter().collect(),
    })
}

/// The kubelet's part of a growth: while the pod runs, the file system follows the volume.
pub fn grown(world: &World, pod: &Pod) -> Option<Action> {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    if phase != Some("Running") || pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let grown = claim_names(pod).find_map(|name| {
        let claim = claim(world, pod, name)?;
        let size = volume(world, claim)?.spec.as_ref()?.capacity.as_ref()?.get("storage")?;
        let before = claim.status.as_ref()?.capacity.as_ref()?.get("storage")?;
        (quantity::bytes(size)? > quantity::bytes(before)?).then_some((claim, size))
    })?;
    let (claim, size) = grown;
    Some(Action::GrowFileSystem {
        namespace: claim.namespace().unwrap_or_default(),
        claim: claim.name_any(),
        version: claim.resource_version(),
        capacity: size.clone(),
    })
}
