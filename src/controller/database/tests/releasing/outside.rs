//! What is set, deleted or protected outside Freehold while a database is being released.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use pretty_assertions::assert_eq;

use super::*;

/// What happens to a Database that is being released.
type Change = fn(&mut Observed);

#[test]
fn a_protection_that_is_set_after_something_was_released_comes_too_late() {
    let protected = begun(|world| world.database.spec.deletion_protection = true);
    assert_eq!(line(&plan(&protected, now())), "[delete orders-gqmgm-1 orders-gqmgm-1-uid] AwaitingNode");
    let acted = Acted::new(protected.database.clone());
    let decided = Decided::of(&protected, &plan(&protected, now()), &acted);
    let status = status_of(&protected, &decided, &acted, now());
    assert!(!status.conditions.iter().any(|it| it.type_ == "DeletionProtected"), "nothing is kept");
}

#[test]
fn a_node_or_volume_that_was_deleted_once_it_was_to_be_released_is_followed_by_the_rest() {
    let node = |world: &mut Observed| deleting(&mut world.nodes[0], 1);
    let volume = |world: &mut Observed| self::change(&mut world.volume, |volume| deleting(volume, 1));
    let withdrawn = |world: &mut Observed| {
        deleting(&mut world.nodes[0], 1);
        (world.pod, world.database.spec.release) = (None, false);
    };
    let of_namespace = |world: &mut Observed| {
        world.torn_down = TornDown { namespace: true, definitions: false };
        deleting(&mut world.nodes[0], 1);
        self::change(&mut world.volume, |volume| deleting(volume, 1));
        deleting(world.pod.as_mut().unwrap(), 1);
    };
    let protected = |world: &mut Observed| {
        deleting(&mut world.nodes[0], 1);
        world.database.spec.deletion_protection = true;
    };
    let rows: [(&str, Change); 5] = [
        ("the Node", node),
        ("the Volume", volume),
        ("withdrawn since, and without a pod", withdrawn),
        ("its namespace", of_namespace),
        ("protected since", protected),
    ];
    for (what, change) in rows {
        assert_eq!(line(&plan(&told(change), now())), format!("[{OBJECTS}] Deleting"), "{what}");
    }
    let half = told(|world| {
        node(world);
        self::change(&mut world.volume, |volume| volume.spec.release = false);
    });
    let both = format!("[update volume-uid {{\"release\":true}}, {OBJECTS}] Deleting");
    assert_eq!(line(&plan(&half, now())), both, "nothing is waited for");
}

#[test]
fn a_node_that_releases_its_machine_is_never_told_to_keep_it() {
    let world = |change: fn(&mut Observed)| {
        let mut world = told(change);
        world.database.metadata.deletion_timestamp = None;
        deleting(&mut world.nodes[0], 1);
        line(&plan(&world, now()))
    };
    let kept = world(|world| world.database.status.as_mut().unwrap().release = None);
    assert!(!kept.contains("update orders-gqmgm-1"), "its tags may be gone already: {kept}");
}

#[test]
fn a_database_whose_claim_is_being_deleted_is_not_released_and_says_the_way_out() {
    let claim = |is_deleted: bool| {
        let mut claim = PersistentVolumeClaim::default();
        claim.metadata.name = Some(text("orders-gqmgm"));
        if is_deleted {
            deleting(&mut claim, 1);
        }
        Some(claim)
    };
    assert!(planned_release(|world| world.claim = claim(false)).contains("record release"));
    let first = plan(&released(|world| world.claim = claim(true)), now());
    assert_eq!(line(&first), "[] Deleting", "its next pod would find none");
    let message = first.waiting.unwrap().message();
    assert!(message.contains("claim orders-gqmgm is being deleted"), "{message}");
    // Deleted before the StatefulSet was released.
    let late = line(&plan(&told(|world| world.claim = claim(true)), now()));
    assert!(late.starts_with(&format!("[{KEPT}, forget release")), "{late}");
    let in_teardown = told(|world| {
        world.claim = claim(true);
        world.torn_down = TornDown { namespace: false, definitions: true };
    });
    assert_eq!(line(&plan(&in_teardown, now())), format!("[{OBJECTS}] Deleting"));
}
