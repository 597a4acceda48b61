//! Reads the machines of a Database: its Nodes, their Kubernetes nodes, and every one with its label.

use k8s_openapi::api::core::v1::Node as CoreNode;
use kube::ResourceExt;
use kube::api::{Api, ListParams};

use super::child::{Child, child, is_of};
use crate::api::keys::{self, DATABASE_NODE_LABEL};
use crate::api::names::Names;
use crate::api::{Database, Node};
use crate::controller::database::ordinal::next_ordinal;
use crate::controller::pass::context::Context;

/// Our Nodes, by label and by the names that they may have, and whether the next name is taken.
pub(super) async fn nodes(
    database: &Database,
    names: &Names,
    ctx: &Context,
) -> Result<(Vec<Node>, Option<String>), kube::Error> {
    let api = Api::<Node>::namespaced(ctx.client.clone(), &names.namespace);
    let labelled = api
        .list(&ListParams::default().labels(&format!("{}={}", keys::DATABASE_UID_LABEL, names.uid)))
        .await?;
    let mut nodes: Vec<Node> = labelled.items.into_iter().filter(|node| is_of(node, database)).collect();
    let next = names.node(next_ordinal(database, names, &nodes));
    let recorded =
        database.status.as_ref().and_then(|status| status.node_ordinal).map(|ordinal| names.node(ordinal));
    let mut taken = None;
    // A Node of ours may have lost its label.
    for name in [Some(next.clone()), recorded.filter(|recorded| *recorded != next)].into_iter().flatten() {
        if nodes.iter().any(|node| node.name_any() == name) {
            continue;
        }
        match child(api.get_opt(&name).await?, database) {
            Child::Absent => {}
            Child::Ours(node) => nodes.push(*node),
            Child::Foreign => taken = taken.or(Some(name)),
        }
    }
    Ok((nodes, taken))
}

/// The core Nodes of our Nodes: each by the name that it registered with, if the providerID is still the
/// machine's.
pub(super) async fn core_nodes(nodes: &[Node], ctx: &Context) -> Result<Vec<CoreNode>, kube::Error> {
    let api = Api::<CoreNode>::all(ctx.client.clone());
    let mut core_nodes = Vec::new();
    for status in nodes.iter().filter_map(|node| node.status.as_ref()) {
        let (Some(name), Some(provider_id)) = (&status.core_node_name, &status.provider_id) else { continue };
        let core_node = api.get_opt(name).await?;
        let is_it = |core_node: &CoreNode| {
            core_node.spec.as_ref().and_then(|spec| spec.provider_id.as_ref()) == Some(provider_id)
        };
        core_nodes.extend(core_node.filter(is_it));
    }
    Ok(core_nodes)
}

/// Every Kubernetes node that carries this Database's label.
pub(super) async fn labelled(names: &Names, ctx: &Context) -> Result<Vec<CoreNode>, kube::Error> {
    let params = ListParams::default().labels(&format!("{DATABASE_NODE_LABEL}={}", names.uid));
    Ok(Api::<CoreNode>::all(ctx.client.clone()).list(&params).await?.items)
}
