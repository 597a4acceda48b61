//! Observe, Node: reads everything that the plan depends on. Only reads.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node as CoreNode, Pod};
use kube::api::{Api, ListParams, ObjectList};
use kube::{Client, ResourceExt};

use super::on_machine::{Looks, on_machine};
use super::registration::{self, is_live, provider_id};
use crate::api::keys::{DEDICATED_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL};
use crate::api::{ConditionType, InstanceId, Node, NodeClass, NodeStatus, Volume, VolumeId, names};
use crate::cloud::call::Call;
use crate::cloud::inventory::InstanceView;
use crate::cloud::offerings::OfferingsView;
use crate::cloud::turns::Priority;
use crate::cloud::{CloudError, Instance, InstanceQuery, InstanceState};
use crate::cluster::mirror::{Mirror, Reads};
use crate::cluster::ownership::{self, Ownership};
use crate::cluster::{self, if_served};
use crate::controller::call_blocked::CallBlocked;
use crate::controller::conditions;
use crate::controller::copies::Copies;
use crate::controller::memory::issued_requests::IssuedRequest;
use crate::controller::memory::repairs::FleetView;
use crate::controller::memory::sends::Sent;
use crate::controller::pass::context::Context;
use crate::controller::safety::{self, Kubelet};
use crate::settings::Timing;

/// Everything that a Node's plan depends on.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The Node.
    pub node: Node,
    /// Whether it still belongs to a Database.
    pub ownership: Ownership,
    /// Its NodeClass.
    pub class: Option<NodeClass>,
    /// What EC2 has under its UID.
    pub instances: InstanceView,
    /// EC2 shows the instance that the status names with the tags of another Node.
    pub is_of_another: bool,
    /// What EC2 shows of the instance that the spec names, when it is requested by its id: one or none; read
    /// only while the inventory does not show it under this Node's UID.
    pub shown_by_id: Option<Vec<Instance>>,
    /// The ids of what carries this Node's tag in EC2, or why EC2 does not show it; read only while a
    /// launched instance is released, or is about to be.
    pub tagged: Option<Result<Vec<String>, Box<CallBlocked>>>,
    /// Which types have no capacity where.
    pub offerings: OfferingsView,
    /// This process' sends of the current attempt.
    pub sent: Option<Sent>,
    /// This process has sent a launch for this Node, whatever its status says.
    pub has_sent: bool,
    /// When this process last requested the termination of which of the instances.
    pub issued_terminations: BTreeMap<InstanceId, IssuedRequest>,
    /// When this process last requested a stop of the instance that the status names.
    pub issued_stop: Option<IssuedRequest>,
    /// When this process last requested tags on the adopted instance.
    pub issued_tags: Option<IssuedRequest>,
    /// When this process last requested that its tags be taken off.
    pub issued_untags: Option<IssuedRequest>,
    /// The other machines; read only while this one does not look healthy.
    pub fleet: FleetView,
    /// How urgent the calls to EC2 for this machine are.
    pub priority: Priority,
    /// The core Node with the instance's providerID.
    pub core_node: Option<CoreNode>,
    /// The core Nodes of other instances with this Node's UID; read only when there are such instances that
    /// live.
    pub other_core_nodes: Vec<CoreNode>,
    /// CSINode lists the EBS driver for the core Node.
    pub driver_registered: bool,
    /// Pods on the core Node that are neither a DaemonSet's nor static. While the Node stays and its instance
    /// runs from the API server's cache, which may be a moment old.
    pub pods: Vec<Pod>,
    /// When pods are to be listed anew, if these are those of an earlier pass: what woke this one may be a
    /// pod that they do not show.
    pub listed_again_in: Option<Duration>,
    /// VolumeAttachments of Freehold's volumes to the core Node; read only while the Node is being deleted,
    /// or its instance has ended.
    pub attachments: Vec<String>,
    /// The EBS volumes attached to this Node's instances that hold a database's data: by their tags, or
    /// because the Volume of this Node's Database records them.
    pub data_volumes: Vec<VolumeId>,
    /// This cluster's identity.
    pub cluster_id: String,
    /// Since when this operator leads.
    pub leading_since: Timestamp,
    /// The durations.
    pub timing: Timing,
}

impl Observed {
    /// The core Node that this instance registered as.
    pub fn core_node_of(&self, instance: &Instance) -> Option<&CoreNode> {
        let provider_id = provider_id(instance);
        self.core_node
            .iter()
            .chain(&self.other_core_nodes)
            .find(|node| node.spec.as_ref().and_then(|spec| spec.provider_id.as_ref()) == Some(&provider_id))
    }
}

/// Reads; `None` when the object is gone, or is another of its name.
pub async fn observe(
    node: &Node,
    copies: &Copies,
    reads: Reads,
    ctx: &Context,
) -> Result<Option<Observed>, kube::Error> {
    let Some(node) = copies.nodes.woken(node, &ctx.client, reads).await? else { return Ok(None) };
    let uid = node.uid().unwrap_or_default();
    let class = cluster::node_class(&ctx.node_classes, &ctx.client, &node.spec.node_class_name).await?;
    let status = node.status.clone().unwrap_or_default();
    let instances = ctx.inventory.instances_of(&uid);
    // The status learns the providerID only when EC2 shows the instance: until then from the same view.
    // What is adopted is known by the spec, even when the status was lost.
    let own = status.instance_id.as_ref().or(node.spec.instance_id.as_ref());
    let seen = own.and_then(|id| instances.by_id(id));
    let now = ctx.clock.now();
    let core_node = registered(&node, &status, seen, now, reads, ctx).await?;
    let has_ended = !seen.is_some_and(is_running);
    let is_deleted = node.metadata.deletion_timestamp.is_some();
    let needs_record = is_deleted || has_ended || instances.instances.len() > 1;
    let volume = if needs_record { volume_of(&node, &copies.volumes, reads, ctx).await? } else { None };
    let is_well = !has_ended && is_healthy(&status, &instances) && stays_ready(core_node.as_ref());
    let is_reported = is_well && conditions::is_true(&status.conditions, ConditionType::Ready);
    let is_as_reported = instances.swept_at.is_none() || (is_reported && ctx.has_just_begun());
    let looks = looks(is_deleted, has_ended, is_as_reported);
    let on_machine = on_machine(core_node.as_ref(), looks, volume.as_ref(), reads, ctx).await?;
    let other_core_nodes = other_core_nodes(&instances, own, ctx).await?;
    let data_volumes = data_volumes(&instances, volume.as_ref(), ctx);
    let fleet = if is_well { FleetView::default() } else { fleet(&node, ctx, now) };
    let priority = ctx.fleet.priority(&node);
    let issued = |call: Call| own.and_then(|id| ctx.issued.of(call, &id.0));
    Ok(Some(Observed {
        issued_terminations: terminations(&instances, own, ctx),
        issued_stop: issued(Call::StopInstances),
        issued_tags: issued(Call::CreateTags),
        issued_untags: issued(Call::DeleteTags),
        is_of_another: own.is_some_and(|id| ctx.inventory.is_of_another(&uid, id)),
        shown_by_id: None,
        tagged: None,
        fleet,
        instances,
        ownership: ownership::of_existing(&node, &copies.databases, reads, &ctx.client).await?,
        other_core_nodes,
        offerings: ctx.offerings.view(&uid, priority, now),
        priority,
        has_sent: ctx.sends.has_sent_for(&uid),
        sent: status.creation.as_ref().and_then(|launch| ctx.sends.of(&launch.client_token)),
        class,
        core_node,
        driver_registered: on_machine.driver_registered,
        pods: on_machine.pods,
        listed_again_in: on_machine.listed_again_in,
        attachments: on_machine.attachments,
        data_volumes,
        cluster_id: ctx.cluster_id.clone(),
        leading_since: ctx.leading_since,
        timing: ctx.timing.clone(),
        node,
    }))
}

/// How the machine of a Node is looked at. Before EC2 was listed no instance is seen, and nothing is decided.
/// What is deleted is about to end: what holds its machine up is read whatever the status says.
fn looks(is_deleted: bool, has_ended: bool, is_as_reported: bool) -> Looks {
    if is_deleted {
        Looks::Leaving
    } else if is_as_reported {
        Looks::AsReported
    } else if has_ended {
        Looks::Leaving
    } else {
        Looks::Running
    }
}

/// It is not declared lost, and EC2 reports no impaired check.
fn is_healthy(status: &NodeStatus, instances: &InstanceView) -> bool {
    status.fence.is_none() && instances.unhealthy.is_empty()
}

/// Its kubelet is Ready, and nothing deletes or cordons it.
fn stays_ready(core_node: Option<&CoreNode>) -> bool {
    let is_left = |it: &CoreNode| it.metadata.deletion_timestamp.is_some() || safety::is_cordoned(it);
    safety::kubelet(core_node) == Kubelet::Ready && !core_node.is_some_and(is_left)
}

/// Neither stopped nor ended, nor about to be.
fn is_running(instance: &Instance) -> bool {
    matches!(instance.state, InstanceState::Pending | InstanceState::Running | InstanceState::Unknown)
}

/// What EC2 shows of an instance when it is requested by its id: one or none; nothing while the rate limit
/// does not allow the call. By the filter, since an id that EC2 does not know would fail the call.
pub async fn shown_by_id(
    node: &Node,
    id: &InstanceId,
    priority: Priority,
    ctx: &Context,
) -> Result<Option<Vec<Instance>>, CloudError> {
    if ctx.try_take(Call::DescribeInstances, node, priority).is_err() {
        return Ok(None);
    }
    ctx.cloud.describe_instances(&InstanceQuery::Among(vec![id.clone()])).await.map(Some)
}

/// When this process last requested the termination of which instance; of the Node's own also while EC2 does
/// not show it.
fn terminations(
    instances: &InstanceView,
    own: Option<&InstanceId>,
    ctx: &Context,
) -> BTreeMap<InstanceId, IssuedRequest> {
    let ids = instances.instances.iter().map(|instance| &instance.id).chain(own);
    ids.filter_map(|id| Some((id.clone(), ctx.issued.of(Call::TerminateInstances, &id.0)?))).collect()
}

/// What the repair of this machine must know of the others; nothing before it has joined or was adopted.
fn fleet(node: &Node, ctx: &Context, now: Timestamp) -> FleetView {
    let has_joined = node.status.as_ref().is_some_and(registration::has_joined);
    if !has_joined && node.spec.instance_id.is_none() {
        return FleetView::default();
    }
    let zone = node.status.as_ref().and_then(|status| status.zone.as_deref());
    let refused = zone.is_some_and(|zone| ctx.inventory.refuses_zone(zone));
    ctx.fleet.view(node, |other| has_ended(other, ctx), refused, ctx.timing.fence_step_timeout, now)
}

/// Whether EC2 shows the instance of a Node neither starting nor running.
pub(super) fn has_ended(node: &Node, ctx: &Context) -> bool {
    let id = node.status.as_ref().and_then(|status| status.instance_id.as_ref());
    id.is_some_and(|id| ctx.inventory.has_ended(&node.uid().unwrap_or_default(), id))
}

/// The core Node that the instance registered as.
async fn registered(
    node: &Node,
    status: &NodeStatus,
    seen: Option<&Instance>,
    now: Timestamp,
    reads: Reads,
    ctx: &Context,
) -> Result<Option<CoreNode>, kube::Error> {
    let Some(provider_id) = status.provider_id.clone().or_else(|| seen.map(provider_id)) else {
        return Ok(None);
    };
    let is_awaited = seen.is_some_and(|instance| registration::is_awaited(node, instance, &ctx.timing, now));
    let found = core_node(ctx, status.core_node_name.as_deref(), &provider_id, is_awaited, reads).await?;
    // What ran before it was adopted registered long ago, without the label.
    let is_late = if node.spec.instance_id.is_some() {
        !registration::has_joined(status)
    } else {
        is_awaited && now >= registration::searched_from(status, &ctx.timing, now)
    };
    match seen.filter(|_| found.is_none() && is_late) {
        Some(instance) => unlabelled(instance, &ctx.client).await,
        None => Ok(found),
    }
}

/// The core Node with this providerID: names and addresses are used again, a providerID is not. The copy
/// shows its name; that there is none it may show only while one is awaited.
async fn core_node(
    ctx: &Context,
    known_name: Option<&str>,
    provider_id: &str,
    is_awaited: bool,
    reads: Reads,
) -> Result<Option<CoreNode>, kube::Error> {
    let nodes = Api::<CoreNode>::all(ctx.client.clone());
    let is_it = |node: &CoreNode| {
        node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()) == Some(provider_id)
    };
    let found = ctx.core_nodes.names(is_it);
    for name in known_name.into_iter().chain(found.iter().flatten().map(String::as_str)) {
        let node = ctx.core_nodes.read(&nodes, name, reads).await?;
        if let Some(node) = node.filter(is_it) {
            return Ok(Some(node));
        }
    }
    if found.is_some() && (is_awaited || reads == Reads::Cached) {
        return Ok(None);
    }
    Ok(dedicated(&ctx.client).await?.items.into_iter().find(is_it))
}

/// The core Node of an instance among those without the label, which are not watched: its user data does not
/// set it. Those of its type and zone only, from the API server's cache, and only while a registration is
/// late: a list of every Kubernetes node would be megabytes in a large cluster, and the API server knows no
/// search by providerID.
async fn unlabelled(instance: &Instance, client: &Client) -> Result<Option<CoreNode>, kube::Error> {
    let Instance { instance_type, zone, .. } = instance;
    let selector =
        format!("{INSTANCE_TYPE_LABEL}={instance_type},{ZONE_LABEL}={zone},{DEDICATED_LABEL}!=true");
    let params = ListParams::default().labels(&selector).match_any();
    let provider_id = provider_id(instance);
    let nodes = Api::<CoreNode>::all(client.clone()).list(&params).await?;
    Ok(nodes
        .items
        .into_iter()
        .find(|node| node.spec.as_ref().and_then(|spec| spec.provider_id.as_ref()) == Some(&provider_id)))
}

/// The Volume of the Node's Database: what it records is written by this process alone. That there is none
/// the API server says to a live look.
async fn volume_of(
    node: &Node,
    copy: &Mirror<Volume>,
    reads: Reads,
    ctx: &Context,
) -> Result<Option<Volume>, kube::Error> {
    let name = node.name_any();
    let Some(volume) = names::volume_of_node(&name) else { return Ok(None) };
    let volumes = Api::namespaced(ctx.client.clone(), &node.namespace().unwrap_or_default());
    if_served(copy.current(&volumes, volume, reads).await)
}

/// The attached volumes that hold data. EC2's tags may lag behind a new volume, and may be taken off: what
/// the Volume records counts, too, where something could be ended.
fn data_volumes(instances: &InstanceView, volume: Option<&Volume>, ctx: &Context) -> Vec<VolumeId> {
    let recorded = volume.and_then(|volume| volume.status.as_ref()?.volume_id.as_ref());
    let attached = instances.instances.iter().flat_map(|instance| &instance.volumes);
    attached.filter(|id| recorded == Some(*id) || ctx.inventory.is_of_a_volume(id)).cloned().collect()
}

/// The core Nodes among which those of other instances of this Node are; none while no other lives.
async fn other_core_nodes(
    instances: &InstanceView,
    own: Option<&InstanceId>,
    ctx: &Context,
) -> Result<Vec<CoreNode>, kube::Error> {
    let is_other = |instance: &Instance| is_live(instance) && Some(&instance.id) != own;
    if !instances.instances.iter().any(is_other) {
        return Ok(Vec::new());
    }
    Ok(dedicated(&ctx.client).await?.items)
}

async fn dedicated(client: &Client) -> Result<ObjectList<CoreNode>, kube::Error> {
    Api::<CoreNode>::all(client.clone())
        .list(&ListParams::default().labels(&format!("{DEDICATED_LABEL}=true")))
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_to_end_is_looked_at_whole_even_right_after_a_start() {
        for (is_deleted, has_ended, is_as_reported, expected) in [
            (false, false, false, Looks::Running),
            (false, false, true, Looks::AsReported),
            (false, true, true, Looks::AsReported),
            (false, true, false, Looks::Leaving),
            (true, false, false, Looks::Leaving),
            (true, false, true, Looks::Leaving),
            (true, true, true, Looks::Leaving),
        ] {
            assert_eq!(
                looks(is_deleted, has_ended, is_as_reported),
                expected,
                "deleted: {is_deleted}, ended: {has_ended}, as reported: {is_as_reported}"
            );
        }
    }
}
