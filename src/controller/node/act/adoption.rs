//! The writes about an adopted instance: recorded and tagged; and those that release a machine.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node as CoreNode;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::api::keys::{DEDICATED_LABEL, FINALIZER};
use crate::api::{EventReason, InstanceId, Node, NodeStatus};
use crate::cloud::call::Call;
use crate::cloud::identity::Kind;
use crate::cloud::turns::Priority;
use crate::cluster::events::{Events, Happened};
use crate::cluster::{is_not_found, status};
use crate::controller::node::messages;
use crate::controller::node::registration::{is_mark, stays_dedicated};
use crate::controller::pass::acted::{ActError, Acted};
use crate::controller::pass::context::Context;

/// Records that the instance is this Node's, with the resourceVersion of this pass' read, then tags it so.
pub(super) async fn adopt(
    id: &InstanceId,
    tags: &BTreeMap<String, String>,
    priority: Priority,
    acted: &mut Acted<Node>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    let nodes = Api::<Node>::namespaced(ctx.client.clone(), &acted.object.namespace().unwrap_or_default());
    let old = acted.object.status.clone().unwrap_or_default();
    let new = NodeStatus { instance_id: Some(id.clone()), ..old.clone() };
    acted.object = status::patch(&nodes, &acted.object, &old, &new).await?;
    let note = messages::events::adopted(id);
    events.publish(&acted.object, &Happened::normal(EventReason::InstanceAdopted, note)).await;
    tag(id, tags, priority, acted, ctx).await;
    Ok(())
}

/// Puts the tags on the instance.
pub(super) async fn tag(
    id: &InstanceId,
    tags: &BTreeMap<String, String>,
    priority: Priority,
    acted: &mut Acted<Node>,
    ctx: &Context,
) {
    let call = Call::CreateTags;
    if !acted.may_call(call, priority, ctx) {
        return;
    }
    let answer = ctx.cloud.tag_resource(&id.0, tags).await;
    acted.answered(call, &id.0, answer, ctx);
    ctx.inventory.request_sync(Kind::Node);
}

/// Takes the tags off these resources of the instance.
pub(super) async fn untag(
    id: &InstanceId,
    resources: &[String],
    tags: &BTreeMap<String, String>,
    priority: Priority,
    acted: &mut Acted<Node>,
    ctx: &Context,
) {
    let call = Call::DeleteTags;
    if !acted.may_call(call, priority, ctx) {
        return;
    }
    let answer = ctx.cloud.untag_resources(resources, tags).await;
    acted.answered(call, &id.0, answer, ctx);
    ctx.inventory.request_sync(Kind::Node);
}

/// Takes our finalizer off a Kubernetes node, which stays, and label and taint where the machine is not a
/// database's any more. One that is gone is no error.
pub(super) async fn restore_core_node(
    node: &Node,
    core_node: &CoreNode,
    ctx: &Context,
) -> Result<(), kube::Error> {
    let finalizers: Vec<&String> = core_node.finalizers().iter().filter(|it| *it != FINALIZER).collect();
    // Both lists are atomic: with the resourceVersion, so that nothing of another client is lost.
    let mut patch = json!({"metadata": {
        "uid": core_node.metadata.uid,
        "resourceVersion": core_node.metadata.resource_version,
        "finalizers": finalizers,
    }});
    if !stays_dedicated(node, core_node) {
        let mut taints = core_node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
        taints.retain(|taint| !is_mark(taint));
        patch["metadata"]["labels"] = json!({DEDICATED_LABEL: null});
        patch["spec"] = json!({"taints": taints});
    }
    let core_nodes = Api::<CoreNode>::all(ctx.client.clone());
    match core_nodes.patch(&core_node.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await {
        Ok(_) => Ok(()),
        Err(error) if is_not_found(&error) => Ok(()),
        Err(error) => Err(error),
    }
}
