//! What one repair must know of the others: how many are running, and whether a whole zone looks lost.
//!
//! A restart forgets the repairs that were reserved and not written down yet, and when a zone last looked
//! unavailable; the status of the Nodes shows which repairs are running.

mod zone;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::Store;
use parking_lot::Mutex;

use self::zone::{Machines, zone_looks_down};
use crate::api::node::MachineHealth;
use crate::api::{ConditionType, Node};
use crate::cloud::turns::Priority;
use crate::cluster::controller_of;
use crate::controller::conditions;
use crate::time::later;

/// The fewest repairs that may be underway at once, however small the fleet is.
const FEWEST: usize = 5;

/// One repair at once for this many Nodes.
const NODES_FOR_EACH: usize = 100;

/// The fleet as a repair sees it.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FleetView {
    /// Every Node, joined or not.
    pub nodes: usize,
    /// Other databases whose machines are declared lost and hold a place.
    pub repairs: usize,
    /// Those of them that are of its own namespace.
    pub own_repairs: usize,
    /// Other databases whose machines serve and are replaced for what was done to them outside Freehold.
    pub replaced: usize,
    /// Those of them that are of its own namespace.
    pub own_replaced: usize,
    /// Another namespace has Nodes, too.
    pub is_shared: bool,
    /// Machines of its zone that have joined, itself among them.
    pub zone_joined: usize,
    /// Those of them that look lost, itself among them.
    pub zone_lost: usize,
    /// They are so many that the zone itself may be down, and not of one namespace alone.
    pub zone_looks_down: bool,
    /// No repair is underway in its zone, and of the machines there whose repairs are postponed it is the
    /// first.
    pub is_first_of_zone: bool,
    /// When it last looked so to a machine of its namespace, as far as this process has seen it.
    pub zone_down_at: Option<Timestamp>,
    /// EC2 refuses to list its zone.
    pub zone_refused: bool,
    /// Neither its own kubelet reports to this API server nor that of any other database's machine, and there
    /// are such.
    pub no_kubelet_reports: bool,
    /// Watches that have not listed their Nodes yet: the numbers above may be too small.
    pub unlisted: usize,
}

impl FleetView {
    /// Whether its repair finds a place among the others'.
    pub fn has_place(&self) -> Result<(), RepairsAtLimit> {
        has_place(self.nodes, self.is_shared, self.repairs, self.own_repairs)
    }

    /// Whether its machine, which serves, may be replaced while those of others are, for a Kubernetes node
    /// that is being deleted or was cordoned, or an event that EC2 has scheduled: as many as may be repaired.
    pub fn has_place_to_be_replaced(&self) -> Result<(), RepairsAtLimit> {
        has_place(self.nodes, self.is_shared, self.replaced, self.own_replaced)
    }
}

fn most(nodes: usize) -> usize {
    FEWEST.max(nodes / NODES_FOR_EACH)
}

/// Whether one more repair may begin while so many are underway, so many of them in its own namespace. While
/// other namespaces have machines, no namespace takes more than half of the places, rounded up: machines that
/// one tenant loses, or breaks, leave the others theirs.
fn has_place(nodes: usize, is_shared: bool, repairs: usize, own: usize) -> Result<(), RepairsAtLimit> {
    let limit = most(nodes);
    if repairs >= limit {
        return Err(RepairsAtLimit { underway: repairs, limit, of_namespace: false });
    }
    let share = limit.div_ceil(2);
    if is_shared && own >= share {
        return Err(RepairsAtLimit { underway: own, limit: share, of_namespace: true });
    }
    Ok(())
}

/// As many repairs hold a place as may at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairsAtLimit {
    /// Databases whose repairs hold one.
    pub underway: usize,
    /// How many may be at once.
    pub limit: usize,
    /// Both are of the one namespace.
    pub of_namespace: bool,
}

/// All Nodes, as the controllers' own watches have them, and the repairs that passes of this process have
/// reserved: a pass may decide before the watch brings what another has written. After a restart the Nodes'
/// status shows the same.
#[derive(Default)]
pub struct Fleet {
    /// How many watches bring them.
    watches: usize,
    nodes: Mutex<Vec<Store<Node>>>,
    reserved: Mutex<BTreeSet<String>>,
    /// By zone and namespace.
    zones_down: Mutex<BTreeMap<(String, String), Timestamp>>,
}

impl Fleet {
    /// All Nodes that so many watches bring: one for each namespace, or one for all.
    pub fn of(watches: usize) -> Self {
        Self { watches, ..Self::default() }
    }

    /// Reads these Nodes, too: of one namespace, or of all.
    pub fn watch(&self, nodes: Store<Node>) {
        self.nodes.lock().push(nodes);
    }

    /// What the repair of this Node must know. `has_ended`: EC2 shows the instance of a Node neither starting
    /// nor running.
    pub fn view(
        &self,
        node: &Node,
        has_ended: impl Fn(&Node) -> bool,
        zone_refused: bool,
        held_for: Duration,
        now: Timestamp,
    ) -> FleetView {
        let nodes = self.state();
        let uid = node.uid();
        let zone = zone(node);
        let namespace = node.namespace().unwrap_or_default();
        let of_zone = || {
            nodes.iter().filter(|other| {
                zone.is_some() && self::zone(other) == zone && other.uid() != uid && counts(other)
            })
        };
        let mut witnesses = BTreeMap::<String, Machines>::new();
        for other in of_zone() {
            let machines = witnesses.entry(other.namespace().unwrap_or_default()).or_default();
            machines.joined += 1;
            machines.lost += usize::from(looks_lost(other) || has_ended(other));
        }
        let zone_looks_down = zone.is_some() && zone_looks_down(&namespace, &witnesses);
        // A Node that is not lost itself, as when it is released or joins, says nothing of its zone.
        let is_lost = counts(node) && (looks_lost(node) || has_ended(node));
        let was_down_at =
            zone.and_then(|zone| self.zones_down.lock().get(&(zone.to_owned(), namespace.clone())).copied());
        let mut held = held(&nodes, &self.reserved.lock(), &has_ended, held_for, now);
        held.remove(&database_uid(node));
        let needs_another = |other: &&Arc<Node>| {
            let status = other.status.as_ref();
            other.uid() != uid && status.is_some_and(|status| status.replacement_needed.is_some())
        };
        let replaced = || nodes.iter().filter(needs_another);
        FleetView {
            nodes: nodes.len(),
            replaced: replaced().count(),
            own_replaced: replaced().filter(|other| other.namespace().as_ref() == Some(&namespace)).count(),
            repairs: held.len(),
            own_repairs: held.values().filter(|other| **other == namespace).count(),
            is_shared: is_shared(&nodes, &namespace),
            zone_joined: 1 + witnesses.values().map(|machines| machines.joined).sum::<usize>(),
            zone_lost: 1 + witnesses.values().map(|machines| machines.lost).sum::<usize>(),
            zone_looks_down,
            is_first_of_zone: of_zone().all(|other| !is_before(other, node)),
            zone_down_at: (is_lost && zone_looks_down).then_some(now).or(was_down_at),
            zone_refused,
            no_kubelet_reports: no_kubelet_reports(node, &nodes),
            unlisted: self.unlisted(),
        }
    }

    /// How urgent the calls to EC2 for this Node are: what a repair needs comes before everything else, what
    /// a database needs that has its disk before what a new one needs.
    pub fn priority(&self, node: &Node) -> Priority {
        if underway(&self.state(), &self.reserved.lock()).contains_key(&database_uid(node)) {
            Priority::Repair
        } else if node.spec.zone.is_some() {
            Priority::Existing
        } else {
            Priority::Create
        }
    }

    /// Reserves the repair of this Node and gives how many are underway; or, at the limit, their number and
    /// the limit. Checked and reserved under one lock: the plans of two passes may see the same free place. A
    /// second machine of a database that is being repaired takes no place of its own: its end is part of that
    /// repair.
    pub fn reserve(
        &self,
        node: &Node,
        has_ended: impl Fn(&Node) -> bool,
        held_for: Duration,
        now: Timestamp,
    ) -> Result<usize, RepairsAtLimit> {
        let nodes = self.state();
        let namespace = node.namespace().unwrap_or_default();
        let mut reserved = self.reserved.lock();
        let mut underway = underway(&nodes, &reserved);
        if !underway.contains_key(&database_uid(node)) {
            let held = held(&nodes, &reserved, has_ended, held_for, now);
            let own = held.values().filter(|other| **other == namespace).count();
            has_place(nodes.len(), is_shared(&nodes, &namespace), held.len(), own)?;
        }
        reserved.extend(node.uid());
        underway.insert(database_uid(node), namespace);
        Ok(underway.len())
    }

    /// The Node is not declared lost: a repair that was reserved and could not be written down
    /// is none.
    pub fn withdraw(&self, uid: &str) {
        self.reserved.lock().remove(uid);
    }

    /// To a machine of this namespace the zone itself may be down.
    pub fn note_zone_down(&self, zone: &str, namespace: &str, at: Timestamp) {
        let nodes = self.state();
        let mut zones_down = self.zones_down.lock();
        zones_down.retain(|(_, other), _| nodes.iter().any(|node| node.namespace().as_ref() == Some(other)));
        let last = zones_down.entry((zone.to_owned(), namespace.to_owned())).or_insert(at);
        *last = at.max(*last);
    }

    /// The Node is gone, and its repair with it; gives how many are still underway.
    pub fn forget(&self, uid: &str) -> usize {
        let mut nodes = self.state();
        nodes.retain(|node| node.metadata.uid.as_deref() != Some(uid));
        let mut reserved = self.reserved.lock();
        reserved.remove(uid);
        underway(&nodes, &reserved).len()
    }

    /// The Nodes of this NodeClass.
    pub fn of_class(&self, class: &str) -> Vec<Arc<Node>> {
        let mut nodes = self.state();
        nodes.retain(|node| node.spec.node_class_name == class);
        nodes
    }

    /// How many watches have not listed their Nodes once. The controller of one namespace waits for its own
    /// watch alone.
    fn unlisted(&self) -> usize {
        let is_ready = |it: &&Store<Node>| it.wait_until_ready().now_or_never().is_some_and(|it| it.is_ok());
        self.watches.saturating_sub(self.nodes.lock().iter().filter(is_ready).count())
    }

    fn state(&self) -> Vec<Arc<Node>> {
        self.nodes.lock().iter().flat_map(Store::state).collect()
    }
}

/// Whether another namespace has Nodes, too.
fn is_shared(nodes: &[std::sync::Arc<Node>], namespace: &str) -> bool {
    nodes.iter().any(|node| node.metadata.namespace.as_deref() != Some(namespace))
}

/// The databases with a machine that is declared lost, or about to be, and not gone; each with its namespace.
fn underway(nodes: &[std::sync::Arc<Node>], reserved: &BTreeSet<String>) -> BTreeMap<String, String> {
    let is_given_up = |node: &Node| {
        let is_reserved = node.metadata.uid.as_ref().is_some_and(|uid| reserved.contains(uid));
        is_reserved || node.status.as_ref().is_some_and(|status| status.fence.is_some())
    };
    let of = |node: &Node| (database_uid(node), node.namespace().unwrap_or_default());
    nodes.iter().filter(|node| is_given_up(node)).map(|node| of(node)).collect()
}

/// Those of them that hold a place: until EC2 has shown the end of the machine, and for so long at least. A
/// fence that did not succeed in its time holds none either while EC2 shows that it stops or terminates the
/// machine: it has taken the request, and five machines that EC2 never ends would stop all repairs. What
/// follows destroys nothing: a successor that finds no capacity holds no other repair up. The least time
/// keeps a mistake about the whole fleet from spreading as fast as EC2 stops machines.
fn held(
    nodes: &[Arc<Node>],
    reserved: &BTreeSet<String>,
    has_ended: impl Fn(&Node) -> bool,
    held_for: Duration,
    now: Timestamp,
) -> BTreeMap<String, String> {
    let is_over = |node: &Node| {
        let Some(status) = &node.status else { return false };
        let is_fenced = || conditions::is_true(&status.conditions, ConditionType::Fenced);
        let is_ending = || status.health == Some(MachineHealth::FenceFailed) && has_ended(node);
        let begun = status.fence.as_ref().map(|fence| fence.started_at.0);
        begun.is_some_and(|begun| now >= later(begun, held_for)) && (is_fenced() || is_ending())
    };
    let begun: Vec<Arc<Node>> = nodes.iter().filter(|node| !is_over(node)).cloned().collect();
    underway(&begun, reserved)
}

/// Whether the repair of the first comes before that of the second in a zone that looks down: it is underway,
/// or it is postponed, too, and has the smaller UID.
fn is_before(first: &Node, second: &Node) -> bool {
    first.status.as_ref().is_some_and(|status| {
        let is_postponed = status.health == Some(MachineHealth::RepairPostponed);
        status.fence.is_some() || (is_postponed && first.metadata.uid < second.metadata.uid)
    })
}

/// The UID of the database that a Node belongs to; its own if it belongs to none.
fn database_uid(node: &Node) -> String {
    controller_of(node).map(|owner| owner.uid.clone()).or_else(|| node.uid()).unwrap_or_default()
}

/// Whether a Node counts when its zone is judged: its machine has joined, and is not being released.
fn counts(node: &Node) -> bool {
    let has_joined = node.status.as_ref().is_some_and(|status| status.core_node_name.is_some());
    has_joined && (node.metadata.deletion_timestamp.is_none() || looks_lost(node))
}

/// Whether neither its own kubelet reports nor that of any other database's machine, of those that have
/// joined and are not declared lost; at least one of the others has.
fn no_kubelet_reports(node: &Node, nodes: &[Arc<Node>]) -> bool {
    let is_declared_lost = |other: &Node| other.status.as_ref().is_some_and(|status| status.fence.is_some());
    let is_witness = |other: &&Arc<Node>| {
        database_uid(other) != database_uid(node) && counts(other) && !is_declared_lost(other)
    };
    let mut others = nodes.iter().filter(is_witness).map(|other| reports(other)).peekable();
    !reports(node) && others.peek().is_some() && !others.any(|reports| reports)
}

/// Whether a Node's status shows that its kubelet reports to be ready.
fn reports(node: &Node) -> bool {
    node.status.as_ref().is_some_and(|status| {
        status.not_ready_since.is_none()
            && conditions::find(&status.conditions, ConditionType::Registered)
                .is_none_or(|registered| registered.status == "True")
    })
}

fn zone(node: &Node) -> Option<&str> {
    node.status.as_ref()?.zone.as_deref()
}

/// Whether a Node's status shows a loss: declared, postponed, or only suspected.
fn looks_lost(node: &Node) -> bool {
    let Some(status) = &node.status else { return false };
    match status.health {
        Some(MachineHealth::Healthy) => false,
        Some(
            MachineHealth::Suspected
            | MachineHealth::RepairPostponed
            | MachineHealth::Lost
            | MachineHealth::FenceFailed,
        ) => true,
        // Written by a version that knew no such field, or knew more values: until its first pass a machine
        // that was ready and is not counts against its zone.
        Some(MachineHealth::Unknown) | None => {
            let is_true = |kind| conditions::is_true(&status.conditions, kind);
            let was_ready = is_true(ConditionType::Initialized) && !is_true(ConditionType::Ready);
            status.fence.is_some() || (node.metadata.deletion_timestamp.is_none() && was_ready)
        }
    }
}

#[cfg(test)]
mod tests;
