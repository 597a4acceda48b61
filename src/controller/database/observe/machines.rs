//! Reads the machines of a Database: its Nodes, their Kubernetes nodes, and every one with its label.

use k8s_openapi::api::core::v1::Node as CoreNode;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use kube::runtime::reflector::ObjectRef;

use super::child::{Child, child, is_of};
use super::stage::{Stage, is_plain};
use crate::api::keys::{self, DATABASE_NODE_LABEL};
use crate::api::names::Names;
use crate::api::{Database, Node};
use crate::cluster::mirror::{Mirror, Reads};
use crate::controller::database::ordinal::{next_ordinal, ordinal};
use crate::controller::pass::context::Context;

/// Our Nodes, by their names and their owner, and whether the next name is taken. A Database that is being
/// deleted ends once it has none: that there is none the API server says to a live look.
pub(super) async fn nodes(
    database: &Database,
    names: &Names,
    copy: &Mirror<Node>,
    reads: Reads,
    ctx: &Context,
) -> Result<(Vec<Node>, Option<String>), kube::Error> {
    let is_named = |name: &str| ordinal(names, name).is_some();
    let is_believed = |nodes: &Vec<Node>| {
        let has_some = is_plain(database) && !nodes.is_empty();
        reads == Reads::Cached || database.metadata.deletion_timestamp.is_none() || has_some
    };
    let namespace = names.namespace.as_str();
    let copied = copy.all_current(Some(namespace), &names.uid, |node| is_of(node, database), is_named);
    let is_none_shown = copied.as_ref().is_some_and(Vec::is_empty);
    let Some(nodes) = copied.filter(is_believed) else {
        return read(database, names, is_none_shown && is_plain(database), copy, ctx).await;
    };
    let shown = |name: &str| copy.get(&ObjectRef::new(name).within(namespace));
    let is_taken = |name: &String| shown(name).is_some_and(|node| !is_of(&node, database));
    let taken = needed(database, names, &nodes).find(is_taken);
    Ok((nodes, taken))
}

/// The names that a Node of this Database has to be able to have: the next one, and the recorded one.
fn needed(database: &Database, names: &Names, nodes: &[Node]) -> impl Iterator<Item = String> + use<> {
    let next = names.node(next_ordinal(database, names, nodes));
    let recorded =
        database.status.as_ref().and_then(|status| status.node_ordinal).map(|ordinal| names.node(ordinal));
    let other = recorded.filter(|recorded| *recorded != next);
    [Some(next), other].into_iter().flatten()
}

/// The same from the API server: by label, and by name what may have lost its label. Where the copy shows
/// none either, which has them by their owner, too, no name is looked at: no Node is to be created.
async fn read(
    database: &Database,
    names: &Names,
    is_none_shown: bool,
    copy: &Mirror<Node>,
    ctx: &Context,
) -> Result<(Vec<Node>, Option<String>), kube::Error> {
    let api = Api::<Node>::namespaced(ctx.client.clone(), &names.namespace);
    let labelled = api
        .list(&ListParams::default().labels(&format!("{}={}", keys::DATABASE_UID_LABEL, names.uid)))
        .await?;
    for node in &labelled.items {
        copy.unseen().read(Some(&names.namespace), &node.name_any(), Some(node));
    }
    let mut nodes: Vec<Node> = labelled.items.into_iter().filter(|node| is_of(node, database)).collect();
    let mut taken = None;
    for name in needed(database, names, &nodes).filter(|_| !is_none_shown) {
        if nodes.iter().any(|node| node.name_any() == name) {
            continue;
        }
        match child(copy.read(&api, &name, Reads::Live).await?, database) {
            Child::Absent => {}
            Child::Ours(node) => nodes.push(*node),
            Child::Foreign => taken = taken.or(Some(name)),
        }
    }
    Ok((nodes, taken))
}

/// The core Nodes of our Nodes: each by the name that it registered with, if the providerID is still the
/// machine's.
pub(super) async fn core_nodes(
    nodes: &[Node],
    stage: Stage,
    reads: Reads,
    ctx: &Context,
) -> Result<Vec<CoreNode>, kube::Error> {
    let api = Api::<CoreNode>::all(ctx.client.clone());
    let mut core_nodes = Vec::new();
    for status in nodes.iter().filter_map(|node| node.status.as_ref()) {
        let (Some(name), Some(provider_id)) = (&status.core_node_name, &status.provider_id) else { continue };
        let core_node = if stage.needs_core_nodes() {
            ctx.core_nodes.read(&api, name, reads).await?
        } else {
            ctx.core_nodes.current(&api, name, reads).await?
        };
        let is_it = |core_node: &CoreNode| {
            core_node.spec.as_ref().and_then(|spec| spec.provider_id.as_ref()) == Some(provider_id)
        };
        core_nodes.extend(core_node.filter(is_it));
    }
    Ok(core_nodes)
}

/// Every Kubernetes node that carries this Database's label. A Database that is being deleted ends once none
/// does: a live look reads them from the API server before that.
pub(super) async fn labelled(
    database: &Database,
    names: &Names,
    nodes: &[Node],
    copy: &Mirror<CoreNode>,
    stage: Stage,
    reads: Reads,
    ctx: &Context,
) -> Result<Vec<CoreNode>, kube::Error> {
    let is_labelled = |node: &CoreNode| node.labels().get(DATABASE_NODE_LABEL) == Some(&names.uid);
    // The label is put on none but these.
    let is_of_ours = |name: &str| {
        let mut registered = nodes.iter().filter_map(|node| node.status.as_ref()?.core_node_name.as_deref());
        registered.any(|registered| registered == name)
    };
    let is_staying = database.metadata.deletion_timestamp.is_none();
    let is_believed = reads == Reads::Cached || is_staying || !stage.needs_core_nodes();
    if let Some(copied) = copy.all_current(None, &names.uid, is_labelled, is_of_ours).filter(|_| is_believed)
    {
        return Ok(copied);
    }
    let params = ListParams::default().labels(&format!("{DATABASE_NODE_LABEL}={}", names.uid));
    Ok(Api::<CoreNode>::all(ctx.client.clone()).list(&params).await?.items)
}
