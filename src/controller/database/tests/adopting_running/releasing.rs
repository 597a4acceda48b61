//! How an adopted database is released: before it was adopted, and after.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::*;
use crate::api::database::Release;
use crate::controller::database::observe::torn_down::TornDown;

#[test]
fn a_database_that_is_deleted_before_it_is_adopted_is_released() {
    let mut world = prepared();
    deleting(&mut world.database, 1);
    assert_eq!(line(&plan(&world, now())), "[delete orders-gqmgm-1 orders-gqmgm-1-uid] AwaitingNode");
    assert!(world.nodes[0].spec.release, "the Node releases its instance");
    world.nodes.clear();
    assert_eq!(
        line(&plan(&world, now())),
        "[update volume-uid {\"deletionDecided\":true}, delete volume-uid] AwaitingVolume"
    );
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
    let recorded = format!("record release, as found true, {released}");
    assert_eq!(line(&first), format!("[{recorded}] Deleting"));
    recorded_as(&mut world, true);
    change(&mut world.volume, |volume| volume.spec.release = true);
    world.nodes[0].spec.release = true;
    let second = plan(&world, now());
    assert_eq!(line(&second), "[release legacy-set-uid] Deleting");
    let Some(Action::ReleaseStatefulSet(_, found)) = second.actions.last() else { panic!("{second:?}") };
    let mut found = from_json::<StatefulSet>(found.as_ref().clone());
    found.metadata.owner_references.take_if(|owners| owners.is_empty());
    assert_eq!(found, as_recorded());

    let_go(&mut world, legacy_set());
    assert_eq!(
        line(&plan(&world, now())),
        "[unlabel ip-10-0-0-1 ip-10-0-0-1-uid, delete orders-gqmgm-1 orders-gqmgm-1-uid] AwaitingNode"
    );
    (world.nodes, world.labelled) = (Vec::new(), Vec::new());
    assert_eq!(line(&plan(&world, now())), "[delete volume-uid] Deleting");
    world.volume = Child::Absent;
    assert_eq!(line(&plan(&world, now())), "[remove finalizer] Deleting");
}

#[test]
fn an_owner_that_is_gone_since_is_not_written_back() {
    let mut world = unreleased_and_deleted();
    change(&mut world.volume, |volume| volume.spec.release = true);
    world.nodes[0].spec.release = true;
    let adoption = world.database.status.as_mut().unwrap().adoption.as_mut().unwrap();
    adoption.stateful_set["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "example.com/v1", "kind": "Legacy", "name": "pg", "uid": "gone"}]);
    let plan = plan(&world, now());
    let Some(Action::ReleaseStatefulSet(_, to)) = plan.actions.last() else { panic!("{plan:?}") };
    assert_eq!(to["metadata"]["ownerReferences"], json!([]), "Kubernetes would delete what it owned");
}

#[test]
fn an_adopted_database_whose_claim_or_machine_is_not_well_goes_on_until_it_can_be_released() {
    let begins = |change: fn(&mut Observed)| {
        let mut world = unreleased_and_deleted();
        change(&mut world);
        line(&plan(&world, now())).contains("record release")
    };
    assert!(begins(|_| ()));
    assert!(!begins(|it| it.pod.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(now()))));
    let ending = |it: &mut Observed| {
        legacy_of(it).claim.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(now()));
        change(&mut it.volume, |volume| deleting(volume, 1));
    };
    assert!(!begins(ending), "Kubernetes makes an empty claim for its next pod");
    assert!(!begins(|it| it.nodes.clear()), "what has no Node was not adopted by Freehold");
    assert!(!begins(|it| change(&mut it.volume, |volume| {
        volume.status.as_mut().unwrap().conditions.retain(|condition| condition.type_ != "Bound");
    })));
}

fn unreleased_and_deleted() -> Observed {
    let mut world = adopted();
    world.database.spec.release = true;
    change(&mut world.volume, |volume| volume.spec.release = false);
    world.nodes[0].spec.release = false;
    deleting(&mut world.database, 1);
    world
}

#[test]
fn a_database_that_was_released_as_it_ran_and_adopted_again_is_left_with_the_label_that_places_its_pod() {
    let mut set = legacy_set();
    let pod = set.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
    pod.node_selector = Some(BTreeMap::from([(DATABASE_NODE_LABEL.to_owned(), "former-uid".to_owned())]));
    let mut world = prepared();
    world.legacy.as_mut().unwrap().stateful_set = Some(set);
    world.labelled = vec![core_node("ip-10-0-0-1", true)];
    deleting(&mut world.database, 1);
    assert_eq!(
        line(&plan(&world, now())),
        "[relabel ip-10-0-0-1 ip-10-0-0-1-uid former-uid, delete orders-gqmgm-1 orders-gqmgm-1-uid] AwaitingNode"
    );
}

/// The release is written down.
fn recorded_as(world: &mut Observed, as_found: bool) {
    let status = world.database.status.get_or_insert_default();
    status.release = Some(Release { started_at: Time(at(10)), as_found });
}

#[test]
fn an_adopted_database_whose_pod_was_replaced_is_released_as_it_runs_with_the_metadata_that_was_found() {
    let mut world = adopted();
    world.database.spec.release = true;
    deleting(&mut world.database, 1);
    world.pod.as_mut().unwrap().metadata.uid = Some("another".to_owned());
    let first = plan(&world, now());
    assert!(
        line(&first).ends_with("record release, as found false, release legacy-set-uid] Deleting"),
        "{first:?}"
    );
    let Some(Action::ReleaseStatefulSet(live, to)) = first.actions.last() else { panic!("{first:?}") };
    assert!(live.labels().contains_key("freehold.dev/database-uid"), "{live:?}");
    let metadata = json!({
        "labels": {"app": "pg", "app.kubernetes.io/managed-by": "provisioner"},
        "annotations": {}, "ownerReferences": [],
    });
    assert_eq!(**to, json!({"metadata": metadata.clone()}), "and nothing is written of the spec");

    recorded_as(&mut world, false);
    let mut set = world.stateful_set.ours().unwrap().clone();
    set.metadata = from_json(metadata);
    let_go(&mut world, set);
    world.nodes[0].spec.release = true;
    change(&mut world.volume, |volume| volume.spec.release = true);
    let delete = "delete orders-gqmgm-1 orders-gqmgm-1-uid] AwaitingNode";
    let labelled = "the pod goes on finding its machine by the label";
    assert_eq!(line(&plan(&world, now())), format!("[{delete}"), "{labelled}");
    // As found it would lose the label and the taint, and the next pod would find no machine.
    world.database.status = None;
    let lost = line(&plan(&world, now()));
    assert_eq!(lost, format!("[record release, as found false, {delete}"), "{labelled}, by its template");
    (world.nodes, world.labelled) = (Vec::new(), Vec::new());
    let lost = line(&plan(&world, now()));
    assert_eq!(lost, "[record release, as found false, delete volume-uid] Deleting");
}

/// The StatefulSet is no longer the Database's, and is this.
fn let_go(world: &mut Observed, set: StatefulSet) {
    (world.stateful_set, world.pod) = (Child::Absent, None);
    legacy_of(world).stateful_set = Some(set);
}

#[test]
fn an_adopted_database_whose_stateful_set_is_gone_is_not_released_without_it() {
    let mut world = unreleased_and_deleted();
    (world.stateful_set, world.pod) = (Child::Absent, None);
    let planned = line(&plan(&world, now()));
    assert!(!planned.contains("delete") && planned.ends_with("Deleting"), "{planned}");
    let torn_down = TornDown { namespace: true, definitions: false };
    let goes = line(&plan(&Observed { torn_down, ..world.clone() }, now()));
    assert!(goes.contains("{\"release\":true}") && goes.ends_with("AwaitingNode"), "{goes}");
    recorded_as(&mut world, true);
    world.nodes[0].spec.release = true;
    let planned = line(&plan(&world, now()));
    let kept = "[update orders-gqmgm-1 orders-gqmgm-1-uid {\"release\":null}, forget release, ";
    assert!(planned.starts_with(kept) && planned.ends_with("Deleting"), "{planned}");
}

#[test]
fn a_node_that_was_deleted_with_its_database_in_a_teardown_is_released_before_the_label_is_gone() {
    let mut world = unreleased_and_deleted();
    world.torn_down.definitions = true;
    deleting(&mut world.nodes[0], 1);
    let first = line(&plan(&world, now()));
    let expected =
        "[record release, as found true, update volume-uid {\"release\":true}, release legacy-set-uid]";
    assert!(first.starts_with(expected), "{first}");
    recorded_as(&mut world, true);
    (world.stateful_set, world.pod) = (Child::Absent, None);
    change(&mut world.volume, |volume| volume.spec.release = true);
    assert_eq!(
        line(&plan(&world, now())),
        "[update orders-gqmgm-1 orders-gqmgm-1-uid {\"release\":true}, unlabel ip-10-0-0-1 ip-10-0-0-1-uid] \
         AwaitingNode",
        "without it the machine would be emptied"
    );
}
