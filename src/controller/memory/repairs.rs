//! What one repair must know of the others: how many are running, and whether a whole zone looks lost.
//!
//! A restart forgets the repairs that were reserved and not written down yet, and when a zone last looked
//! unavailable; the status of the Nodes shows which repairs are running.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::Store;
use parking_lot::Mutex;

use crate::api::node::MachineHealth;
use crate::api::{ConditionType, Node};
use crate::cluster::controller_of;
use crate::controller::conditions;

/// The fewest repairs that may be underway at once, however small the fleet is.
const FEWEST: usize = 5;

/// One repair at once for this many Nodes.
const NODES_FOR_EACH: usize = 100;

/// A zone with fewer machines is not judged: half of two is one machine that died.
const SMALLEST_ZONE: usize = 4;

/// The fleet as a repair sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FleetView {
    /// Every Node, joined or not.
    pub nodes: usize,
    /// Other databases whose machines are declared lost and not gone yet.
    pub repairs: usize,
    /// Machines of its zone that have joined, itself among them.
    pub zone_joined: usize,
    /// Those of them that look lost, itself among them.
    pub zone_lost: usize,
    /// When they last were so many that the zone itself may be down, as far as this process has seen it.
    pub zone_down_at: Option<Timestamp>,
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

/// As many repairs are underway as may be at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairsAtLimit {
    /// Databases that are being repaired.
    pub underway: usize,
    /// How many may be at once.
    pub limit: usize,
}

/// All Nodes, as the controller's own watch has them, and the repairs that passes of this process have
/// reserved: a pass may decide before the watch brings what another has written. After a restart the Nodes'
/// status shows the same.
#[derive(Default)]
pub struct Fleet {
    nodes: OnceLock<Store<Node>>,
    reserved: Mutex<BTreeSet<String>>,
    zones_down: Mutex<BTreeMap<String, Timestamp>>,
}

impl Fleet {
    /// Reads the Nodes from here.
    pub fn watch(&self, nodes: Store<Node>) {
        // A second controller of Nodes does not exist.
        let _ = self.nodes.set(nodes);
    }

    /// What the repair of this Node must know. `has_ended`: EC2 shows the instance of a Node neither starting
    /// nor running.
    pub fn view(
        &self,
        node: &Node,
        has_ended: impl Fn(&Node) -> bool,
        zone_refused: bool,
        now: Timestamp,
    ) -> FleetView {
        let nodes = self.state();
        let uid = node.uid();
        let zone = zone(node);
        let of_zone = nodes.iter().filter(|other| {
            zone.is_some() && self::zone(other) == zone && other.uid() != uid && counts(other)
        });
        let (mut zone_joined, mut zone_lost) = (1, 1);
        for other in of_zone {
            zone_joined += 1;
            zone_lost += usize::from(looks_lost(other) || has_ended(other));
        }
        // A Node that is not lost itself, as when it is released or joins, says nothing of its zone.
        let is_lost = counts(node) && (looks_lost(node) || has_ended(node));
        let is_down_now = zone.is_some() && is_lost && zone_looks_down(zone_joined, zone_lost);
        let was_down_at = zone.and_then(|zone| self.zones_down.lock().get(zone).copied());
        let underway = underway(&nodes, &self.reserved.lock());
        FleetView {
            nodes: nodes.len(),
            repairs: underway.iter().filter(|other| **other != database_uid(node)).count(),
            zone_joined,
            zone_lost,
            zone_down_at: is_down_now.then_some(now).or(was_down_at),
            zone_refused,
        }
    }

    /// Reserves the repair of this Node and gives how many are underway; or, at the limit, their number and
    /// the limit. Checked and reserved under one lock: the plans of two passes may see the same free place. A
    /// second machine of a database that is being repaired takes no place of its own: its end is part of that
    /// repair.
    pub fn reserve(&self, node: &Node) -> Result<usize, RepairsAtLimit> {
        let nodes = self.state();
        let mut reserved = self.reserved.lock();
        let mut underway = underway(&nodes, &reserved);
        let limit = most(nodes.len());
        if !underway.contains(&database_uid(node)) && underway.len() >= limit {
            return Err(RepairsAtLimit { underway: underway.len(), limit });
        }
        reserved.extend(node.uid());
        underway.insert(database_uid(node));
        Ok(underway.len())
    }

    /// The Node, read fresh, is not declared lost: a repair that was reserved and could not be written down
    /// is none.
    pub fn withdraw(&self, uid: &str) {
        self.reserved.lock().remove(uid);
    }

    /// A pass saw so many machines of this zone lost that the zone itself may be down.
    pub fn note_zone_down(&self, zone: &str, at: Timestamp) {
        let mut zones_down = self.zones_down.lock();
        let last = zones_down.entry(zone.to_owned()).or_insert(at);
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

    fn state(&self) -> Vec<std::sync::Arc<Node>> {
        self.nodes.get().map(Store::state).unwrap_or_default()
    }
}

/// The databases with a machine that is declared lost, or about to be, and not gone.
fn underway(nodes: &[std::sync::Arc<Node>], reserved: &BTreeSet<String>) -> BTreeSet<String> {
    let is_given_up = |node: &Node| {
        let is_reserved = node.metadata.uid.as_ref().is_some_and(|uid| reserved.contains(uid));
        is_reserved || node.status.as_ref().is_some_and(|status| status.fence.is_some())
    };
    nodes.iter().filter(|node| is_given_up(node)).map(|node| database_uid(node)).collect()
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
        // Written by a version that knew no such field: until its first pass a machine that was ready and is
        // not counts against its zone.
        None => {
            let is_true = |kind| conditions::is_true(&status.conditions, kind);
            let was_ready = is_true(ConditionType::Initialized) && !is_true(ConditionType::Ready);
            status.fence.is_some() || (node.metadata.deletion_timestamp.is_none() && was_ready)
        }
    }
}

/// Whether so many of the machines that have joined in a zone look lost that the zone itself may be down.
pub fn zone_looks_down(joined: usize, lost: usize) -> bool {
    joined >= SMALLEST_ZONE && lost * 2 > joined
}

#[cfg(test)]
mod tests {
    use kube::runtime::reflector::store::Writer;
    use kube::runtime::watcher::Event;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn node(uid: &str, zone: &str, health: Option<MachineHealth>) -> Node {
        let at = "2026-01-01T00:00:00Z";
        let is_lost = health == Some(MachineHealth::Lost);
        let fence = is_lost.then(|| {
            json!({"startedAt": at, "cause": "NodeNotReady", "since": at,
        "message": "m"})
        });
        serde_json::from_value(json!({
            "metadata": {"name": uid, "namespace": "team-a", "uid": uid},
            "spec": {"nodeClassName": "default", "instanceTypes": ["r7i.large"]},
            "status": {"coreNodeName": uid, "zone": zone, "conditions": [], "fence": fence, "health": health},
        }))
        .unwrap()
    }

    /// As a version that knew no health wrote it: its conditions Initialized and Ready.
    fn of_old_version(uid: &str, initialized: &str, ready: &str) -> Node {
        let condition = |kind: &str, status: &str| {
            json!({"type": kind, "status": status, "reason": "R",
        "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let mut node = node(uid, "a", None);
        let conditions = json!([condition("Initialized", initialized), condition("Ready", ready)]);
        node.status.as_mut().unwrap().conditions = serde_json::from_value(conditions).unwrap();
        node
    }

    fn fleet(nodes: Vec<Node>) -> Fleet {
        let mut writer = Writer::<Node>::default();
        let fleet = Fleet::default();
        fleet.watch(writer.as_reader());
        for node in nodes {
            writer.apply_watcher_event(&Event::Apply(node));
        }
        fleet
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn that_a_zone_looked_down_is_remembered_while_its_machines_come_back() {
        let mut writer = Writer::<Node>::default();
        let fleet = Fleet::default();
        fleet.watch(writer.as_reader());
        let (silent, well) = (Some(MachineHealth::Suspected), Some(MachineHealth::Healthy));
        let mut now =
            |uid: &str, zone: &str, lost| writer.apply_watcher_event(&Event::Apply(node(uid, zone, lost)));
        for uid in ["1", "2", "3", "4"] {
            now(uid, "a", silent);
        }
        now("5", "b", silent);
        let (in_a, in_b) = (node("4", "a", silent), node("5", "b", silent));
        // As a pass does: it reads, and remembers at its end.
        let view = |node: &Node, second: i64| {
            let view = fleet.view(node, |_| false, false, at(second));
            if let Some(at) = view.zone_down_at {
                fleet.note_zone_down(zone(node).unwrap(), at);
            }
            view
        };
        assert_eq!((view(&in_a, 10).zone_down_at, view(&in_b, 10).zone_down_at), (Some(at(10)), None));
        now("1", "a", well);
        now("2", "a", well);
        let view_now = view(&in_a, 20);
        assert_eq!((view_now.zone_lost, view_now.zone_down_at), (2, Some(at(10))));
        assert_eq!(
            view(&node("6", "a", well), 30).zone_down_at,
            Some(at(10)),
            "it is well, and says nothing of its zone"
        );
    }

    #[test]
    fn as_many_repairs_as_may_be_begin_and_one_that_has_begun_begins_again() {
        let fleet = fleet((0..10).map(|number| node(&number.to_string(), "a", None)).collect());
        let at_limit = Err(RepairsAtLimit { underway: 5, limit: 5 });
        let repair = |number: i32| fleet.reserve(&node(&number.to_string(), "a", None));
        let begun: Vec<bool> = (0..7).map(|number| repair(number).is_ok()).collect();
        assert_eq!(begun, [true, true, true, true, true, false, false]);
        assert_eq!(repair(0), Ok(5), "once more, after a write that failed");
        assert_eq!(repair(6), at_limit);
        assert_eq!(fleet.forget("3"), 4);
        assert_eq!(repair(6), Ok(5));
        assert_eq!(repair(5), at_limit);
        fleet.withdraw("0");
        assert_eq!(repair(5), Ok(5), "its repair was never written down, and it is well again");
    }

    #[test]
    fn a_second_machine_of_a_database_that_is_being_repaired_takes_no_place_of_its_own() {
        let of = |database: &str, uid: &str, lost| {
            let mut node = node(uid, "a", lost);
            let owner = json!([{"apiVersion": "v1", "kind": "Database", "name": database, "uid": database,
            "controller": true}]);
            node.metadata.owner_references = serde_json::from_value(owner).unwrap();
            node
        };
        let lost = Some(MachineHealth::Lost);
        let mut nodes: Vec<Node> =
            (0..5).map(|number| of(&format!("db-{number}"), &format!("old-{number}"), lost)).collect();
        let (successor, other) = (of("db-0", "new-0", None), of("db-5", "old-5", None));
        nodes.extend([successor.clone(), other.clone()]);
        let fleet = fleet(nodes);
        let repairs = |node: &Node| fleet.view(node, |_| false, false, at(0)).repairs;
        assert_eq!((repairs(&successor), repairs(&other)), (4, 5));
        let at_limit = Err(RepairsAtLimit { underway: 5, limit: 5 });
        assert_eq!((fleet.reserve(&successor), fleet.reserve(&other)), (Ok(5), at_limit));
    }

    #[test]
    fn after_a_restart_the_status_of_the_nodes_tells_which_repairs_are_underway() {
        let nodes = (0..10)
            .map(|number| node(&number.to_string(), "a", (number < 5).then_some(MachineHealth::Lost)))
            .collect();
        let fleet = fleet(nodes);
        assert!(fleet.reserve(&node("7", "a", None)).is_err());
        assert_eq!(fleet.reserve(&node("2", "a", None)), Ok(5), "it is one of them");
    }

    #[test]
    fn one_repair_for_a_hundred_nodes_may_be_underway_and_never_fewer_than_five() {
        for (nodes, most_repairs) in [(0, 5), (599, 5), (600, 6), (10_000, 100)] {
            assert_eq!(most(nodes), most_repairs);
        }
    }

    #[test]
    fn a_zone_is_judged_by_its_machines_that_have_joined_and_what_speaks_against_them() {
        let mut new = node("new", "a", None);
        new.status.as_mut().unwrap().core_node_name = None;
        let me = node("me", "a", Some(MachineHealth::Suspected));
        let fleet = fleet(vec![
            me.clone(),
            node("well", "a", Some(MachineHealth::Healthy)),
            node("suspected", "a", Some(MachineHealth::Suspected)),
            node("postponed", "a", Some(MachineHealth::RepairPostponed)),
            node("lost", "a", Some(MachineHealth::Lost)),
            node("ended in EC2 a moment ago", "a", Some(MachineHealth::Healthy)),
            node("elsewhere", "b", Some(MachineHealth::Lost)),
            new,
        ]);
        let view = fleet.view(&me, |node| node.name_any().starts_with("ended"), false, at(7));
        let expected = FleetView {
            nodes: 8,
            repairs: 2,
            zone_joined: 6,
            zone_lost: 5,
            zone_down_at: Some(at(7)),
            zone_refused: false,
        };
        assert_eq!(view, expected);
    }

    #[test]
    fn before_its_first_pass_after_an_upgrade_a_machine_that_was_ready_and_is_not_looks_lost() {
        assert!(looks_lost(&of_old_version("not ready any more", "True", "False")));
        assert!(!looks_lost(&of_old_version("ready", "True", "True")));
        assert!(!looks_lost(&of_old_version("never ready", "False", "False")));
        assert!(!looks_lost(&node("nothing written", "a", None)));
    }
}
