//! How an adopted database is released: before it was adopted, and after.

use pretty_assertions::assert_eq;

use super::*;

#[test]
fn a_database_that_is_deleted_before_it_is_adopted_is_released() {
    let mut world = prepared();
    deleting(&mut world.database, 1);
    assert_eq!(line(&plan(&world, now())), "[delete orders-gqmgm-1 orders-gqmgm-1-uid] AwaitingNode");
    assert!(world.nodes[0].spec.release, "the Node releases its instance");
    world.nodes.clear();
    assert_eq!(line(&plan(&world, now())), "[delete volume-uid] AwaitingVolume");
    world.volume = Child::Absent;
    assert_eq!(line(&plan(&world, now())), "[remove finalizer] Deleting");
}

#[test]
fn an_adopted_database_is_released_as_it_was_found_as_long_as_its_pod_is_the_one_that_was_found() {
    let mut world = adopted();
    world.database.spec.release = true;
    change(&mut world.volume, |volume| volume.spec.release = false);
    world.nodes[0].spec.release = false;
    assert_eq!(line(&plan(&world, now())), "[] as wanted", "until it is deleted it is like any other");
    deleting(&mut world.database, 1);
    let first = plan(&world, now());
    let released =
        "update orders-gqmgm-1 orders-gqmgm-1-uid {\"release\":true}, update volume-uid {\"release\":true}";
    assert_eq!(line(&first), format!("[{released}, release legacy-set-uid] Deleting"));
    let Some(Action::ReleaseStatefulSet(_, found)) = first.actions.last() else { panic!("{first:?}") };
    assert_eq!(from_json::<StatefulSet>(found.as_ref().clone()), as_recorded());

    let mut replaced = world.clone();
    replaced.pod.as_mut().unwrap().metadata.uid = Some("another".to_owned());
    assert_eq!(line(&plan(&replaced, now())), "[] stalled Deleting");

    (world.stateful_set, world.pod) = (Child::Absent, None);
    change(&mut world.volume, |volume| volume.spec.release = true);
    world.nodes[0].spec.release = true;
    assert_eq!(
        line(&plan(&world, now())),
        "[unlabel ip-10-0-0-1 ip-10-0-0-1-uid, delete orders-gqmgm-1 orders-gqmgm-1-uid] AwaitingNode"
    );
    (world.nodes, world.labelled) = (Vec::new(), Vec::new());
    assert_eq!(line(&plan(&world, now())), "[delete volume-uid] Deleting");
    world.volume = Child::Absent;
    assert_eq!(line(&plan(&world, now())), "[remove finalizer] Deleting");
}
