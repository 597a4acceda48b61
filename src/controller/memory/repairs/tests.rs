//! What a repair sees of the others: places, zones, urgency.

use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;

mod zone;

const HELD_FOR: Duration = Duration::from_secs(120);

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
    let fleet = Fleet::of(1);
    fleet.watch(writer.as_reader());
    list(&mut writer, nodes);
    fleet
}

/// The first list of a watch.
fn list(writer: &mut Writer<Node>, nodes: Vec<Node>) {
    writer.apply_watcher_event(&Event::Init);
    for node in nodes {
        writer.apply_watcher_event(&Event::InitApply(node));
    }
    writer.apply_watcher_event(&Event::InitDone);
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
        let view = fleet.view(node, |_| false, false, HELD_FOR, at(second));
        if let Some(at) = view.zone_down_at {
            fleet.note_zone_down(zone(node).unwrap(), "team-a", at);
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
    let at_limit = Err(RepairsAtLimit { underway: 5, limit: 5, of_namespace: false });
    let repair =
        |number: i32| fleet.reserve(&node(&number.to_string(), "a", None), |_| false, HELD_FOR, at(0));
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
    let repairs = |node: &Node| fleet.view(node, |_| false, false, HELD_FOR, at(0)).repairs;
    assert_eq!((repairs(&successor), repairs(&other)), (4, 5));
    let at_limit = Err(RepairsAtLimit { underway: 5, limit: 5, of_namespace: false });
    assert_eq!(
        (
            fleet.reserve(&successor, |_| false, HELD_FOR, at(0)),
            fleet.reserve(&other, |_| false, HELD_FOR, at(0))
        ),
        (Ok(5), at_limit)
    );
}

#[test]
fn a_fenced_machine_whose_successor_has_no_capacity_leaves_its_place_to_the_next() {
    let declared = at(1_767_225_600);
    let fenced = json!([{"type": "Fenced", "status": "True", "reason": "R", "message": "m",
        "lastTransitionTime": declared.to_string()}]);
    let nodes: Vec<Node> = (0..5)
        .map(|number| {
            let mut node = node(&number.to_string(), "a", Some(MachineHealth::Lost));
            node.status.as_mut().unwrap().conditions = serde_json::from_value(fenced.clone()).unwrap();
            node
        })
        .collect();
    let (of_fence, other) = (nodes[0].clone(), node("5", "a", None));
    let fleet = fleet(nodes);
    let repairs = |now| fleet.view(&other, |_| false, false, HELD_FOR, now).repairs;
    assert_eq!(repairs(later(declared, Duration::from_secs(119))), 5, "so soon a mistake would spread");
    let now = later(declared, HELD_FOR);
    assert_eq!(repairs(now), 0);
    assert_eq!(fleet.reserve(&other, |_| false, HELD_FOR, now), Ok(6), "the others are repaired still");
    assert_eq!(fleet.priority(&of_fence), Priority::Repair);
}

#[test]
fn a_machine_that_is_not_fenced_keeps_its_place_however_long_that_takes() {
    let lost = |uid: &str| node(uid, "a", Some(MachineHealth::Lost));
    let fleet = fleet((0..5).map(|number| lost(&number.to_string())).collect());
    let view = fleet.view(&node("5", "a", None), |_| false, false, HELD_FOR, at(2_000_000_000));
    assert_eq!(view.repairs, 5);
}

#[test]
fn a_fence_that_fails_holds_a_place_unless_ec2_shows_that_it_ends_the_machine() {
    let failed = |uid: &str| {
        let mut node = node(uid, "a", Some(MachineHealth::Lost));
        node.status.as_mut().unwrap().health = Some(MachineHealth::FenceFailed);
        node
    };
    let fleet = fleet((0..5).map(|number| failed(&number.to_string())).collect());
    let (other, now) = (node("5", "a", None), at(2_000_000_000));
    let of = |has_ended: fn(&Node) -> bool| {
        let repairs = fleet.view(&other, has_ended, false, HELD_FOR, now).repairs;
        let reserved = fleet.reserve(&other, has_ended, HELD_FOR, now).is_ok();
        fleet.withdraw("5");
        (repairs, reserved)
    };
    assert_eq!(of(|_| false), (5, false), "EC2 refuses the request, and would for the next five");
    assert_eq!(of(|node| node.name_any() == "2"), (4, true));
    assert_eq!(of(|_| true), (0, true));
    let soon = fleet.view(&other, |_| true, false, HELD_FOR, at(1_767_225_601));
    assert_eq!(soon.repairs, 5, "so soon a mistake would spread");
}

#[test]
fn in_a_zone_that_looks_down_one_machine_at_a_time_is_the_first() {
    let postponed = |uid: &str| node(uid, "a", Some(MachineHealth::RepairPostponed));
    let firsts = |nodes: Vec<Node>| {
        let fleet = fleet(nodes.clone());
        let is_first = |it: &&Node| fleet.view(it, |_| false, false, HELD_FOR, at(0)).is_first_of_zone;
        nodes.iter().filter(is_first).map(ResourceExt::name_any).collect::<Vec<_>>()
    };
    let other_zone = node("0", "b", Some(MachineHealth::Lost));
    assert_eq!(firsts(vec![postponed("3"), postponed("1"), postponed("2"), other_zone]), ["1", "0"]);
    let lost = node("9", "a", Some(MachineHealth::Lost));
    assert_eq!(firsts(vec![postponed("1"), postponed("2"), lost]), Vec::<String>::new());
}

#[test]
fn after_a_restart_the_status_of_the_nodes_tells_which_repairs_are_underway() {
    let nodes = (0..10)
        .map(|number| node(&number.to_string(), "a", (number < 5).then_some(MachineHealth::Lost)))
        .collect();
    let fleet = fleet(nodes);
    assert!(fleet.reserve(&node("7", "a", None), |_| false, HELD_FOR, at(0)).is_err());
    assert_eq!(fleet.reserve(&node("2", "a", None), |_| false, HELD_FOR, at(0)), Ok(5), "it is one of them");
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
    let view = fleet.view(&me, |node| node.name_any().starts_with("ended"), false, HELD_FOR, at(7));
    let expected = FleetView {
        nodes: 8,
        repairs: 2,
        own_repairs: 2,
        replaced: 0,
        own_replaced: 0,
        is_shared: false,
        zone_joined: 6,
        zone_lost: 5,
        zone_looks_down: true,
        is_first_of_zone: false,
        zone_down_at: Some(at(7)),
        zone_refused: false,
        no_kubelet_reports: false,
        unlisted: 0,
    };
    assert_eq!(view, expected);
}

#[test]
fn a_repair_knows_whether_the_nodes_of_every_watched_namespace_were_listed() {
    let fleet = Fleet::of(2);
    let me = node("me", "a", Some(MachineHealth::Suspected));
    let unlisted = || fleet.view(&me, |_| false, false, HELD_FOR, at(0)).unlisted;
    let (mut own, mut other) = (Writer::<Node>::default(), Writer::<Node>::default());
    fleet.watch(own.as_reader());
    list(&mut own, vec![me.clone()]);
    assert_eq!(unlisted(), 1, "the controller of the other namespace was not started yet");
    fleet.watch(other.as_reader());
    assert_eq!(unlisted(), 1, "its watch has not listed them yet");
    other.apply_watcher_event(&Event::Init);
    other.apply_watcher_event(&Event::InitApply(of_namespace("team-b", node("b1", "a", None))));
    assert_eq!(unlisted(), 1, "not all of them");
    other.apply_watcher_event(&Event::InitDone);
    assert_eq!(unlisted(), 0);
}

#[test]
fn before_its_first_pass_after_an_upgrade_a_machine_that_was_ready_and_is_not_looks_lost() {
    assert!(looks_lost(&of_old_version("not ready any more", "True", "False")));
    assert!(!looks_lost(&of_old_version("ready", "True", "True")));
    assert!(!looks_lost(&of_old_version("never ready", "False", "False")));
    assert!(!looks_lost(&node("nothing written", "a", None)));
}

#[test]
fn that_no_kubelet_reports_is_said_by_the_machines_of_other_databases_alone() {
    let silent = |uid: &str| {
        let mut node = node(uid, "a", Some(MachineHealth::Suspected));
        node.status.as_mut().unwrap().not_ready_since =
            serde_json::from_value(json!("2026-01-01T00:00:00Z")).ok();
        node
    };
    let unregistered = |uid: &str| {
        let mut node = node(uid, "b", Some(MachineHealth::Suspected));
        let registered = json!([{"type": "Registered", "status": "False", "reason": "R", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        node.status.as_mut().unwrap().conditions = serde_json::from_value(registered).unwrap();
        node
    };
    let new = |uid: &str| {
        let mut node = node(uid, "a", None);
        node.status.as_mut().unwrap().core_node_name = None;
        node
    };
    let of = |database: &str, mut node: Node| {
        let owner = json!([{"apiVersion": "v1", "kind": "Database", "name": database, "uid": database,
            "controller": true}]);
        node.metadata.owner_references = serde_json::from_value(owner).unwrap();
        node
    };
    let me = || of("mine", silent("me"));
    let impaired = || node("impaired", "b", Some(MachineHealth::RepairPostponed));
    let lost = || node("lost", "a", Some(MachineHealth::Lost));
    let rows = [
        ("it is alone", vec![me()], false),
        ("another is silent", vec![me(), silent("1")], true),
        ("another's Kubernetes node is gone", vec![me(), unregistered("1")], true),
        ("one of two in other zones reports", vec![me(), silent("1"), impaired()], false),
        ("its own reports", vec![impaired(), silent("1"), silent("2")], false),
        ("the other is declared lost: it does not report", vec![me(), lost()], false),
        ("the other has not joined", vec![me(), new("1")], false),
        ("the other is of the same database", vec![me(), of("mine", silent("1"))], false),
    ];
    for (name, nodes, expected) in rows {
        let me = nodes[0].clone();
        let view = fleet(nodes).view(&me, |_| false, false, HELD_FOR, at(0));
        assert_eq!(view.no_kubelet_reports, expected, "{name}");
    }
}

/// The Node in another namespace.
fn of_namespace(namespace: &str, mut node: Node) -> Node {
    node.metadata.namespace = Some(namespace.to_owned());
    node
}

#[test]
fn while_others_have_machines_no_namespace_takes_more_than_half_of_the_places() {
    let team_b = |uid: &str| of_namespace("team-b", node(uid, "a", None));
    let mut nodes: Vec<Node> = (0..6).map(|number| node(&number.to_string(), "a", None)).collect();
    nodes.extend([team_b("b1"), team_b("b2"), team_b("b3")]);
    let fleet = fleet(nodes);
    let repair =
        |number: i32| fleet.reserve(&node(&number.to_string(), "a", None), |_| false, HELD_FOR, at(0));
    let begun: Vec<bool> = (0..6).map(|number| repair(number).is_ok()).collect();
    assert_eq!(begun, [true, true, true, false, false, false]);
    let own = RepairsAtLimit { underway: 3, limit: 3, of_namespace: true };
    assert_eq!(repair(4), Err(own));
    let view = |node: &Node| fleet.view(node, |_| false, false, HELD_FOR, at(0)).has_place();
    assert_eq!((view(&node("4", "a", None)), view(&team_b("b1"))), (Err(own), Ok(())), "its plan knows, too");
    assert_eq!(
        (
            fleet.reserve(&team_b("b1"), |_| false, HELD_FOR, at(0)),
            fleet.reserve(&team_b("b2"), |_| false, HELD_FOR, at(0))
        ),
        (Ok(4), Ok(5))
    );
    let all = RepairsAtLimit { underway: 5, limit: 5, of_namespace: false };
    assert_eq!(fleet.reserve(&team_b("b3"), |_| false, HELD_FOR, at(0)), Err(all));
    fleet.forget("0");
    assert_eq!(repair(4), Ok(5), "a place of its own is free again");
}

#[test]
fn calls_for_a_repair_come_first_then_those_of_what_has_its_disk() {
    let of = |database: &str, uid: &str, lost, zone: Option<&str>| {
        let mut node = node(uid, "a", lost);
        let owner = json!([{"apiVersion": "v1", "kind": "Database", "name": database, "uid": database,
        "controller": true}]);
        node.metadata.owner_references = serde_json::from_value(owner).unwrap();
        node.spec.zone = zone.map(str::to_owned);
        node
    };
    let lost = of("orders", "old", Some(MachineHealth::Lost), Some("a"));
    let successor = of("orders", "new", None, Some("a"));
    let (resumed, first) = (of("paused", "two", None, Some("a")), of("wanted", "one", None, None));
    let fleet = fleet(vec![lost.clone(), successor.clone(), resumed.clone(), first.clone()]);
    for (node, expected) in [
        (&lost, Priority::Repair),
        (&successor, Priority::Repair),
        (&resumed, Priority::Existing),
        (&first, Priority::Create),
    ] {
        assert_eq!(fleet.priority(node), expected, "{}", node.name_any());
    }
}
