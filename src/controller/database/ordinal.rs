//! The ordinals of the Nodes of a Database: each Node has its own, and none is used for a second one. Pure.

use kube::ResourceExt;

use crate::api::names::Names;
use crate::api::{Database, Node};

/// The ordinal of the next Node, beyond all that there are: a status that was lost or restored may know less.
/// One whose Node was never seen is used again: its creation may still be on its way, and a second one of
/// another name would be a second machine.
pub fn next_ordinal(database: &Database, names: &Names, nodes: &[Node]) -> i32 {
    let status = database.status.as_ref();
    let seen = status.and_then(|status| status.node_name.as_deref());
    let next = match status.and_then(|status| status.node_ordinal) {
        None => 1,
        Some(ordinal) if seen == Some(names.node(ordinal).as_str()) => ordinal + 1,
        Some(ordinal) => ordinal,
    };
    let highest = nodes.iter().filter_map(|node| ordinal(names, &node.name_any())).max();
    highest.map_or(next, |highest| next.max(highest + 1))
}

/// The ordinal in a Node's name.
pub(super) fn ordinal(names: &Names, node: &str) -> Option<i32> {
    node.strip_prefix(&names.volume)?.strip_prefix('-')?.parse().ok()
}
