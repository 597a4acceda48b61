//! What must be observed when a database is adopted, and when it is released.

use kube::ResourceExt as _;

use crate::legacy::Legacy;
use crate::presentation::demo::milestones::{Milestone, milestone, ready};
use crate::presentation::demo::world::World;

/// Volume, machine and StatefulSet are those of before, and the Database's.
pub fn adoption(legacy: &Legacy) -> Vec<Milestone> {
    let (name, instance, claim) = (legacy.name.clone(), legacy.instance.clone(), legacy.claim());
    vec![
        milestone("volume adopted", move |world| {
            let (volume, disk) = (world.volume()?, world.ebs_volume()?);
            let bound = world.bound_claim().filter(|bound| bound.name_any() == claim)?;
            Some(format!(
                "volume adopted: Volume {} is {}, by claim {}",
                volume.name_any(),
                disk.id,
                bound.name_any()
            ))
        }),
        milestone("machine adopted", move |world| {
            let machine = world.running_instance().filter(|machine| machine.id == instance)?;
            let (node, core_node) = (world.node()?, world.ready_core_node()?);
            Some(format!(
                "machine adopted: Node {} is {}, Kubernetes node {}",
                node.name_any(),
                machine.id,
                core_node.name_any()
            ))
        }),
        milestone("StatefulSet adopted", move |world| {
            let set = world.stateful_sets.iter().find(|set| set.name_any() == name)?;
            let owner = set.owner_references().iter().find(|owner| owner.kind == "Database")?;
            Some(format!("StatefulSet adopted: its owner is Database {}", owner.name))
        }),
        milestone("Ready", |world| world.is_ready().then(|| ready(world))),
    ]
}

/// Nothing of Freehold's is left, and the StatefulSet has no owner.
pub fn release(legacy: &Legacy) -> Vec<Milestone> {
    let name = legacy.name.clone();
    vec![
        milestone("StatefulSet released", move |world| {
            let set = world.stateful_sets.iter().find(|set| set.name_any() == name)?;
            set.owner_references().is_empty().then(|| format!("StatefulSet released: {name} has no owner"))
        }),
        milestone("objects gone", |world| {
            is_released(world).then(|| "released: Database, Node and Volume are gone".to_owned())
        }),
    ]
}

fn is_released(world: &World) -> bool {
    world.databases.is_empty() && world.nodes.is_empty() && world.volumes.is_empty()
}
