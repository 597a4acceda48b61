//! When a zone looks down, and to whom.

use pretty_assertions::assert_eq;

use super::*;

/// A name; of each namespace how many machines it has in the zone, and how many of them are lost; then
/// whether the zone looks down to a lost one of the namespace a, and of the namespace b.
type Zone = (&'static str, &'static [(&'static str, usize, usize)], bool, Option<bool>);

#[test]
fn the_machines_of_one_namespace_alone_do_not_make_a_zone_look_down() {
    let machines = |namespace: &'static str, joined: usize, lost: usize| {
        (0..joined).map(move |number| {
            let health = if number < lost { MachineHealth::Suspected } else { MachineHealth::Healthy };
            of_namespace(namespace, node(&format!("{namespace}-{number}"), "a", Some(health)))
        })
    };
    let rows: [Zone; 8] = [
        ("one namespace has all machines", &[("a", 4, 3)], true, None),
        ("the others are well", &[("a", 10, 10), ("b", 3, 0)], false, None),
        ("one of the others is lost, too", &[("a", 10, 10), ("b", 3, 1)], false, Some(false)),
        ("most of the others are lost, too", &[("a", 10, 10), ("b", 4, 3)], true, Some(true)),
        ("a lost machine is no witness for itself", &[("a", 10, 10), ("b", 1, 1)], true, Some(false)),
        ("everything is lost", &[("a", 2, 2), ("b", 2, 2)], true, Some(true)),
        ("of three namespaces one is well", &[("a", 4, 4), ("b", 2, 2), ("c", 2, 0)], false, Some(false)),
        ("too few to judge", &[("a", 2, 2), ("b", 1, 1)], false, Some(false)),
    ];
    for (name, namespaces, first, second) in rows {
        let nodes: Vec<Node> = namespaces
            .iter()
            .flat_map(|(namespace, joined, lost)| machines(namespace, *joined, *lost))
            .collect();
        let fleet = fleet(nodes.clone());
        let told = |namespace: &str| {
            let lost = nodes.iter().find(|node| node.name_any() == format!("{namespace}-0")).unwrap();
            fleet.view(lost, |_| false, false, HELD_FOR, at(0)).zone_looks_down
        };
        assert_eq!(told("a"), first, "{name}");
        assert_eq!(second.map(|_| told("b")), second, "{name}");
    }
}

#[test]
fn that_a_zone_looked_down_to_one_namespace_postpones_nothing_in_another() {
    let lost = Some(MachineHealth::Suspected);
    let fleet = fleet(vec![node("1", "a", lost), of_namespace("team-b", node("2", "a", lost))]);
    fleet.note_zone_down("a", "team-a", at(5));
    let told = |node: &Node| fleet.view(node, |_| false, false, HELD_FOR, at(6)).zone_down_at;
    assert_eq!(told(&node("1", "a", lost)), Some(at(5)));
    assert_eq!(told(&of_namespace("team-b", node("2", "a", lost))), None);
    fleet.note_zone_down("a", "team-c", at(6));
    fleet.note_zone_down("a", "team-b", at(7));
    assert_eq!(fleet.zones_down.lock().len(), 2, "team-c has no machine, and is forgotten");
}
