//! What one repair must know of the others: how many are underway, and whether a whole zone looks lost.

use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};

use kube::ResourceExt;
use kube::runtime::reflector::Store;

use super::conditions;
use crate::api::{ConditionType, Node, Reason};

/// The fewest repairs that may be underway at once, however small the fleet is.
const FEWEST: usize = 5;

/// One repair at once for this many Nodes.
const NODES_FOR_EACH: usize = 100;

/// The fleet as a repair sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FleetView {
    /// Every Node, joined or not.
    pub nodes: usize,
    /// Other machines that are given up and not gone yet.
    pub repairs: usize,
    /// Machines of its zone that have joined, itself among them.
    pub zone_joined: usize,
    /// Those of them that look lost, itself among them.
    pub zone_lost: usize,
    /// EC2 refuses to list its zone.
    pub zone_refused: bool,
}

impl FleetView {
    /// How many repairs may be underway at once.
    pub fn most(&self) -> usize {
        most(self.nodes)
    }
}

fn most(nodes: usize) -> usize {
    FEWEST.max(nodes / NODES_FOR_EACH)
}

/// All Nodes, as the controller's own watch has them, and the repairs that this process has begun: a pass may decide before the watch
/// brings what another has written. After a restart the Nodes' status tells the same.
#[derive(Default)]
pub struct Fleet {
    nodes: OnceLock<Store<Node>>,
    begun: Mutex<BTreeSet<String>>,
}

impl Fleet {
    /// Reads the Nodes from here.
    pub fn watch(&self, nodes: Store<Node>) {
        // A second controller of Nodes does not exist.
        let _ = self.nodes.set(nodes);
    }

    /// What the repair of this Node must know. `has_ended`: EC2 shows the instance of a Node neither starting nor running.
    pub fn view(&self, node: &Node, has_ended: impl Fn(&Node) -> bool, zone_refused: bool) -> FleetView {
        let nodes = self.state();
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let uid = node.uid();
        let zone = zone(node);
        let of_zone = nodes.iter().filter(|other| zone.is_some() && self::zone(other) == zone && other.uid() != uid && counts(other));
        let (mut zone_joined, mut zone_lost) = (1, 1);
        for other in of_zone {
            zone_joined += 1;
            zone_lost += usize::from(looks_lost(other) || has_ended(other));
        }
        let underway = underway(&nodes, &begun);
        FleetView {
            nodes: nodes.len(),
            repairs: underway.iter().filter(|other| Some(*other) != uid.as_ref()).count(),
            zone_joined,
            zone_lost,
            zone_refused,
        }
    }

    /// Begins the repair of the Node with this UID, unless as many as may be are underway; gives how many are.
    pub fn try_begin(&self, uid: &str) -> Result<usize, usize> {
        let nodes = self.state();
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let mut underway = underway(&nodes, &begun);
        if !underway.contains(uid) && underway.len() >= most(nodes.len()) {
            return Err(underway.len());
        }
        begun.insert(uid.to_owned());
        underway.insert(uid.to_owned());
        Ok(underway.len())
    }

    /// The Node is gone, and its repair with it; gives how many are still underway.
    pub fn forget(&self, uid: &str) -> usize {
        let nodes = self.state();
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.remove(uid);
        underway(&nodes, &begun).iter().filter(|other| *other != uid).count()
    }

    fn state(&self) -> Vec<std::sync::Arc<Node>> {
        self.nodes.get().map(Store::state).unwrap_or_default()
    }
}

/// The UIDs of the machines that are given up and not gone.
fn underway(nodes: &[std::sync::Arc<Node>], begun: &BTreeSet<String>) -> BTreeSet<String> {
    let recorded = nodes.iter().filter(|node| node.status.as_ref().is_some_and(|status| status.fence.is_some()));
    recorded.filter_map(|node| node.uid()).chain(begun.iter().cloned()).collect()
}

/// Whether a Node counts when its zone is judged: its machine has joined, and nobody gives it back.
fn counts(node: &Node) -> bool {
    let has_joined = node.status.as_ref().is_some_and(|status| status.core_node_name.is_some());
    has_joined && (node.metadata.deletion_timestamp.is_none() || looks_lost(node))
}

fn zone(node: &Node) -> Option<&str> {
    node.status.as_ref()?.zone.as_deref()
}

/// Whether what was last told of a Node speaks of a loss: given up, held back, or only suspected.
fn looks_lost(node: &Node) -> bool {
    let conditions = node.status.as_ref().map_or(&[][..], |status| &status.conditions);
    conditions::find(conditions, ConditionType::Lost)
        .is_some_and(|lost| lost.status == "True" || lost.reason != Reason::Progressing.as_str())
}
