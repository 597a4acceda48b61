//! Reads what the API server shows on a machine: its pods, its CSI driver and its attachments. Only reads.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node as CoreNode, Pod};
use k8s_openapi::api::storage::v1::{CSINode, VolumeAttachment};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use super::pods;
use crate::api::keys::EBS_CSI_DRIVER;
use crate::api::{Volume, names};
use crate::cluster::mirror::Reads;
use crate::controller::pass::context::Context;

/// What the API server shows on a machine.
#[derive(Default)]
pub(super) struct OnMachine {
    pub driver_registered: bool,
    pub pods: Vec<Pod>,
    pub listed_again_in: Option<Duration>,
    pub attachments: Vec<String>,
}

/// What is read on a machine, by how it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looks {
    /// It is to end, or has ended: VolumeAttachments are read, and every pod must be seen.
    Leaving,
    /// It runs: pods are read to find foreign ones.
    Running,
    /// The same, and it was Ready when this process began to lead, a moment ago, or EC2 was not listed since:
    /// a start is no reason to list its pods, which no wake is for either.
    AsReported,
}

/// Reads it; nothing while there is no Kubernetes node.
pub(super) async fn on_machine(
    core_node: Option<&CoreNode>,
    looks: Looks,
    volume: Option<&Volume>,
    reads: Reads,
    ctx: &Context,
) -> Result<OnMachine, kube::Error> {
    let Some(core_node) = core_node else { return Ok(OnMachine::default()) };
    let name = core_node.name_any();
    let is_leaving = looks == Looks::Leaving;
    // Nothing is done with the driver of a machine that is to end.
    let of_driver = if is_leaving { Reads::Cached } else { reads };
    let driver_registered = driver_is_registered(&name, of_driver, ctx).await?;
    let params = ListParams::default().fields(&format!("spec.nodeName={name}"));
    // The end of pods is awaited only of a machine that is to end, and wakes nothing.
    let is_usable = |pods: &Vec<Pod>| reads == Reads::Cached && (!is_leaving || pods.is_empty());
    let (pods, listed_again_in) = if let Some(pods) = ctx.pods.get(&name).filter(is_usable) {
        (pods, Some(ctx.pods.left(&name)))
    } else if looks == Looks::AsReported && reads == Reads::Cached {
        (Vec::new(), None)
    } else {
        let params = if is_leaving { params } else { params.match_any() };
        let pods = pods_on(&ctx.client, &params).await?;
        ctx.pods.put(&name, Some(pods.clone()));
        (pods, None)
    };
    let attachments = if is_leaving { attachments_to(ctx, &name, volume, reads).await? } else { Vec::new() };
    Ok(OnMachine { driver_registered, pods, listed_again_in, attachments })
}

async fn driver_is_registered(core_node: &str, reads: Reads, ctx: &Context) -> Result<bool, kube::Error> {
    let csi_nodes = Api::<CSINode>::all(ctx.client.clone());
    let csi_node = ctx.csi_nodes.read(&csi_nodes, core_node, reads).await?;
    Ok(csi_node
        .is_some_and(|csi_node| csi_node.spec.drivers.iter().any(|driver| driver.name == EBS_CSI_DRIVER)))
}

async fn pods_on(client: &Client, params: &ListParams) -> Result<Vec<Pod>, kube::Error> {
    let pods = Api::<Pod>::all(client.clone()).list(params).await?;
    Ok(pods.items.into_iter().filter(|pod| !pods::is_of_the_machine(pod)).collect())
}

/// A volume of others, which a foreign pod brought along, is detached by its driver or with the machine's
/// end: nothing waits for it.
async fn attachments_to(
    ctx: &Context,
    core_node: &str,
    volume: Option<&Volume>,
    reads: Reads,
) -> Result<Vec<String>, kube::Error> {
    let adopted = volume.and_then(|volume| volume.spec.adopt.as_ref());
    let is_ours = |name: &str| {
        names::volume_uid_of(name).is_some() || adopted.is_some_and(|it| it.persistent_volume_name == name)
    };
    let is_to = |attachment: &VolumeAttachment| {
        let name = attachment.spec.source.persistent_volume_name.as_deref();
        attachment.spec.node_name == core_node && name.is_some_and(is_ours)
    };
    ctx.attachments.left(&Api::all(ctx.client.clone()), is_to, reads).await
}
