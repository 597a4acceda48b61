//! How a database that Freehold made is released: as it runs, once it is complete, and to its end once begun.

mod outside;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::*;
use crate::api::database::Release;
use crate::controller::database::object_name::{ObjectKind, ObjectName};
use crate::controller::database::observe::torn_down::TornDown;
use crate::controller::database::status::{Decided, status as status_of};
use crate::controller::database::unreleasable::Unreleasable;
use crate::controller::pass::acted::Acted;
use crate::controller::tests::golden::complete;

fn text(text: &str) -> String {
    text.to_owned()
}

/// Every cause, for its sentence.
pub(super) fn unreleasable() -> Vec<Unreleasable> {
    complete([
        Unreleasable::Paused,
        Unreleasable::NoMachine,
        Unreleasable::Moving { from: text("orders-1"), to: text("orders-2") },
        Unreleasable::NotReady {
            object: ObjectName::new(ObjectKind::Node, "orders-1"),
            message: Some(text("MESSAGE")),
        },
        Unreleasable::ClaimDeleted(text("orders-gqmgm")),
        Unreleasable::Rotating,
        Unreleasable::Closed,
        Unreleasable::NoPod(text("orders-0")),
    ])
}

/// A settled Database that was deleted, with `spec.release`.
fn released(change: impl FnOnce(&mut Observed)) -> Observed {
    let mut world = settled();
    world.database.spec.release = true;
    deleting(&mut world.database, 1);
    change(&mut world);
    world
}

fn planned_release(change: impl FnOnce(&mut Observed)) -> String {
    line(&plan(&released(change), now()))
}

/// The StatefulSet was released, and what follows it in the same pass.
fn begun(change: impl FnOnce(&mut Observed)) -> Observed {
    released(|world| {
        world.database.status.as_mut().unwrap().release =
            Some(Release { started_at: Time(at(10)), as_found: false });
        world.stateful_set = Child::Foreign;
        (world.service, world.config_map) = (Child::Foreign, Child::Foreign);
        (world.service_account, world.network_policy) = (Child::Foreign, Child::Foreign);
        world.disruption_budget = Child::Absent;
        world.nodes[0].spec.release = true;
        self::change(&mut world.volume, |volume| volume.spec.release = true);
        change(world);
    })
}

/// Node and Volume say that they are released, and nothing is yet.
fn told(change: impl FnOnce(&mut Observed)) -> Observed {
    begun(|world| {
        let settled = settled();
        world.stateful_set = settled.stateful_set;
        (world.service, world.config_map) = (settled.service, settled.config_map);
        (world.service_account, world.network_policy) = (settled.service_account, settled.network_policy);
        world.disruption_budget = settled.disruption_budget;
        change(world);
    })
}

const UPDATES: &str =
    "update orders-gqmgm-1 orders-gqmgm-1-uid {\"release\":true}, update volume-uid {\"release\":true}";
const OBJECTS: &str = "release set-uid, release Service orders, release ConfigMap orders-config, release \
    ServiceAccount orders-gqmgm, release NetworkPolicy orders, delete PodDisruptionBudget orders";

#[test]
fn a_database_that_freehold_made_is_released_as_it_runs_step_by_step() {
    assert_eq!(planned_release(|_| {}), format!("[record release, as found false, {UPDATES}] Deleting"));
    assert_eq!(line(&plan(&told(|_| {}), now())), format!("[{OBJECTS}] Deleting"));
    assert_eq!(
        line(&plan(&begun(|_| {}), now())),
        "[delete orders-gqmgm-1 orders-gqmgm-1-uid] AwaitingNode",
        "without a word about the label: the pod finds its machine by it"
    );
    let without_node = |world: &mut Observed| (world.nodes, world.core_nodes) = (Vec::new(), Vec::new());
    assert_eq!(line(&plan(&begun(without_node), now())), "[delete volume-uid] Deleting");
    let gone = begun(|world| {
        without_node(world);
        world.volume = Child::Absent;
    });
    assert_eq!(line(&plan(&gone, now())), "[remove finalizer] Deleting", "the Secret stays");
}

#[test]
fn a_release_that_ends_anywhere_goes_on_where_it_was() {
    let half = |change: fn(&mut Observed)| {
        line(&plan(
            &begun(|world| {
                world.stateful_set = settled().stateful_set;
                change(world);
            }),
            now(),
        ))
    };
    assert_eq!(half(|_| {}), "[release set-uid] Deleting");
    assert_eq!(
        half(|world| world.nodes[0].spec.release = false),
        "[update orders-gqmgm-1 orders-gqmgm-1-uid {\"release\":true}] Deleting"
    );
    let late = line(&plan(&begun(|world| world.service = settled().service), now()));
    assert_eq!(late, "[release Service orders] Deleting");
    // Until the StatefulSet is released another decision counts; from then on nothing is ended any more.
    let withdrawn = half(|world| world.database.spec.release = false);
    assert!(
        withdrawn.starts_with("[update orders-gqmgm-1 orders-gqmgm-1-uid {\"release\":null}"),
        "{withdrawn}"
    );
    let late = begun(|world| world.database.spec.release = false);
    assert_eq!(line(&plan(&late, now())), "[delete orders-gqmgm-1 orders-gqmgm-1-uid] AwaitingNode");
    let forgotten = begun(|world| {
        world.database.spec.release = false;
        world.database.status = None;
    });
    let written = "record release, as found false, ";
    let again = format!("[{written}delete orders-gqmgm-1 orders-gqmgm-1-uid] AwaitingNode");
    assert_eq!(line(&plan(&forgotten, now())), again, "when neither is left, nothing else would show it");
}

/// The same as `begun`, and another client has deleted the StatefulSet before anything was released.
fn without_set(change: impl FnOnce(&mut Observed)) -> String {
    let world = told(|world| {
        (world.stateful_set, world.pod) = (Child::Absent, None);
        change(world);
    });
    line(&plan(&world, now()))
}

const KEPT: &str =
    "update orders-gqmgm-1 orders-gqmgm-1-uid {\"release\":null}, update volume-uid {\"release\":null}";

#[test]
fn a_stateful_set_that_is_gone_is_no_sign_of_a_release() {
    let goes_on = without_set(|_| {});
    assert!(goes_on.starts_with(&format!("[{KEPT}, forget release, ")), "{goes_on}");
    assert!(goes_on.contains("apply set") && goes_on.ends_with("Deleting"), "{goes_on}");
    let forgotten = without_set(|world| world.database.status.as_mut().unwrap().release = None);
    assert!(
        forgotten.starts_with(&format!("[{KEPT}, ")) && !forgotten.contains("release set"),
        "{forgotten}"
    );
    let withdrawn = without_set(|world| world.database.spec.release = false);
    let ends = "unlabel ip-10-0-0-1 ip-10-0-0-1-uid, delete orders-gqmgm-1 orders-gqmgm-1-uid] AwaitingNode";
    assert_eq!(withdrawn, format!("[{KEPT}, forget release, {ends}"), "the machine is ended, not released");
}

#[test]
fn a_release_whose_stateful_set_was_deleted_since_is_completed() {
    let completes = |change: fn(&mut Observed)| {
        line(&plan(
            &begun(|world| {
                world.stateful_set = Child::Absent;
                world.database.spec.release = false;
                change(world);
            }),
            now(),
        ))
    };
    assert_eq!(completes(|world| deleting(&mut world.nodes[0], 1)), "[] AwaitingNode");
    let volume = completes(|world| {
        (world.nodes, world.core_nodes) = (Vec::new(), Vec::new());
        self::change(&mut world.volume, |volume| deleting(volume, 1));
    });
    assert_eq!(volume, "[] Deleting");
    let last = begun(|world| {
        (world.nodes, world.core_nodes) = (Vec::new(), Vec::new());
        (world.stateful_set, world.volume) = (Child::Absent, Child::Absent);
    });
    assert_eq!(line(&plan(&last, now())), "[remove finalizer] Deleting");
}

#[test]
fn a_release_that_was_recorded_and_is_not_to_be_any_more_is_forgotten() {
    let protected = told(|world| world.database.spec.deletion_protection = true);
    assert_eq!(line(&plan(&protected, now())), format!("[{KEPT}, forget release] as wanted"));
    let without_pod = told(|world| world.pod = None);
    let postponed = line(&plan(&without_pod, now()));
    assert!(postponed.starts_with(&format!("[{KEPT}, forget release")), "{postponed}");
}

#[test]
fn a_database_that_is_not_complete_goes_on_until_it_is_and_a_paused_one_says_the_way_out() {
    let not_ready = |node: &mut Node| {
        let conditions = &mut node.status.as_mut().unwrap().conditions;
        conditions[0].status = "False".to_owned();
    };
    assert_eq!(planned_release(|world| not_ready(&mut world.nodes[0])), "[] Deleting");
    assert_eq!(planned_release(|world| world.pod = None), "[] Deleting");
    let deleting_pod = planned_release(|world| deleting(world.pod.as_mut().unwrap(), 1));
    assert_eq!(deleting_pod, "[] Deleting");
    assert_eq!(planned_release(|world| world.labelled.clear()).split(' ').next_back(), Some("Deleting"));
    // Another machine takes its place: the move goes on.
    let moving = planned_release(|world| {
        world.nodes[0].status.as_mut().unwrap().instance_type = Some("m5.large".to_owned());
    });
    assert!(moving.contains("record release"), "a move that has not begun is none: {moving}");
    let moving = planned_release(|world| {
        let mut other = ready_node(world, 2);
        other.status.as_mut().unwrap().core_node_name = Some("ip-10-0-0-2".to_owned());
        world.nodes.push(other);
    });
    assert!(moving.ends_with("Deleting") && !moving.contains("release"), "{moving}");
    let paused = planned_release(|world| world.database.spec.running = false);
    assert!(paused.ends_with("stalled Deleting") && paused.contains("scale set-uid to 0"), "{paused}");
}

#[test]
fn a_deleted_database_that_goes_on_says_so_and_is_ready_for_nothing_else() {
    let world = released(|world| world.pod = None);
    let plan = plan(&world, now());
    let acted = Acted::new(world.database.clone());
    let decided = Decided::of(&world, &plan, &acted);
    assert!(!decided.is_deleting);
    let status = status_of(&world, &decided, &acted, now());
    let ready = status.conditions.iter().find(|it| it.type_ == "Ready").unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "Deleting"));
    assert!(ready.message.contains("goes on as it is until it can be"), "{}", ready.message);
}

#[test]
fn in_a_teardown_nothing_is_completed_and_what_cannot_go_on_is_deleted_as_any_other() {
    let torn_down = |namespace: bool| TornDown { namespace, definitions: !namespace };
    let stopped = planned_release(|world| world.torn_down = torn_down(true));
    assert!(stopped.contains("scale set-uid to 0"), "no pod goes on in a namespace that goes: {stopped}");
    let released = planned_release(|world| world.torn_down = torn_down(false));
    assert!(released.contains("release set-uid"), "{released}");
    let broken = planned_release(|world| {
        world.torn_down = torn_down(false);
        world.pod = None;
    });
    assert!(broken.contains("scale set-uid to 0"), "{broken}");
}

#[test]
fn what_was_deleted_before_its_database_is_released_all_the_same() {
    let deleted_volume = |world: &mut Observed| {
        self::change(&mut world.volume, |volume| {
            deleting(volume, 1);
            volume.status.as_mut().unwrap().conditions[0].status = "False".to_owned();
        });
    };
    let node_first = "[record release, as found false, update orders-gqmgm-1 orders-gqmgm-1-uid \
        {\"release\":true}] Deleting";
    assert_eq!(planned_release(deleted_volume), node_first, "its Volume would release at once");
    let told_but_the_volume = told(|world| {
        self::change(&mut world.volume, |volume| volume.spec.release = false);
        deleted_volume(world);
    });
    let released = line(&plan(&told_but_the_volume, now()));
    assert!(released.starts_with("[release set-uid"), "{released}");
    let volume_last = line(&plan(
        &begun(|world| {
            self::change(&mut world.volume, |volume| volume.spec.release = false);
            deleted_volume(world);
        }),
        now(),
    ));
    assert!(volume_last.starts_with("[update volume-uid {\"release\":true}"), "{volume_last}");
    let unbound = planned_release(|world| {
        deleted_volume(world);
        self::change(&mut world.volume, |it| it.status.as_mut().unwrap().conditions.clear());
    });
    assert_eq!(unbound, "[] Deleting", "it goes on until it can be released");
    // The definitions are deleted, and everything with them at once.
    let deleted_node = |world: &mut Observed| {
        deleting(&mut world.nodes[0], 1);
        world.nodes[0].status.as_mut().unwrap().conditions[0].status = "False".to_owned();
        world.torn_down = TornDown { namespace: false, definitions: true };
    };
    let torn_down = planned_release(|world| {
        deleted_volume(world);
        deleted_node(world);
    });
    let first = "[record release, as found false, release set-uid";
    assert!(torn_down.starts_with(first), "its Node would release its machine at once: {torn_down}");
    let begun = begun(|world| {
        deleted_node(world);
        world.nodes[0].spec.release = false;
    });
    assert_eq!(
        line(&plan(&begun, now())),
        "[update orders-gqmgm-1 orders-gqmgm-1-uid {\"release\":true}] AwaitingNode"
    );
    let drained = planned_release(|world| {
        deleted_node(world);
        world.labelled.clear();
    });
    assert!(drained.contains("scale set-uid to 0"), "its machine may be emptied already: {drained}");
}

#[test]
fn a_volume_that_was_let_end_is_released_no_more() {
    let late = planned_release(|world| {
        self::change(&mut world.volume, |volume| volume.spec.deletion_decided = true);
        world.nodes.clear();
        (world.stateful_set, world.pod) = (Child::Absent, None);
    });
    assert!(late.ends_with("delete volume-uid] AwaitingVolume"), "{late}");
}

#[test]
fn the_volume_of_a_database_that_is_to_be_released_is_retained_whatever_deletes_it() {
    let mut world = settled_as(json!({"deletionPolicy": "Delete"}));
    world.database.spec.release = true;
    assert_eq!(line(&plan(&world, now())), "[update volume-uid {\"deletionPolicy\":\"Retain\"}] Progressing");
}

#[test]
fn what_is_released_keeps_what_selects_it_and_loses_what_freehold_looks_for() {
    let world = settled();
    let live = &world.service.ours().unwrap().metadata;
    let released = build::released(live, &world.names, None);
    assert_eq!(
        released,
        json!({"metadata": {
            "labels": {"app.kubernetes.io/instance": "orders", "app.kubernetes.io/name": "questdb"},
            "annotations": {}, "ownerReferences": [],
        }})
    );
}

#[test]
fn nothing_is_released_before_node_and_volume_have_seen_it_and_can_be() {
    let waits = |change: fn(&mut Observed)| plan(&told(change), now());
    let says = |wait: Plan| wait.waiting.unwrap().message();
    let not_seen = waits(|world| world.nodes[0].metadata.generation = Some(99));
    assert_eq!(line(&not_seen), "[] AwaitingNode");
    let not_seen = waits(|world| self::change(&mut world.volume, |it| it.metadata.generation = Some(99)));
    assert_eq!(line(&not_seen), "[] AwaitingVolume");
    let forbidden = waits(|world| {
        let ready = &mut world.nodes[0].status.as_mut().unwrap().conditions[0];
        (ready.status, ready.message) = ("False".to_owned(), "EC2 refuses DescribeTags".to_owned());
    });
    assert_eq!(line(&forbidden).split(']').next(), Some("["), "and it is withdrawn by nothing");
    assert!(says(forbidden).contains("EC2 refuses DescribeTags"));
}
