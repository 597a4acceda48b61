//! What the next start of an adopted pod changes, and how a database that does not start with it goes back.

mod lives;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::*;
use crate::api::ConditionType;
use crate::api::database::{Adoption, StartFailure, WentBack};
use crate::controller::conditions::find;
use crate::controller::database::pod;
use crate::controller::database::status::{Decided, status as status_of};
use crate::controller::pass::acted::Acted;

/// When pods of these tests were created: after their machine and their volume were ready.
const CREATED: i64 = 1_780_000_000;

fn status_at(world: &Observed, second: i64) -> crate::api::DatabaseStatus {
    let acted = Acted::new(world.database.clone());
    let plan = plan(world, at(second));
    status_of(world, &Decided::of(world, &plan, &acted), &acted, at(second))
}

/// `RestartPending` as `Status/Reason: message`.
fn pending(world: &Observed) -> String {
    let status = status_at(world, CREATED);
    let condition = find(&status.conditions, ConditionType::RestartPending).unwrap();
    format!("{}/{}: {}", condition.status, condition.reason, condition.message)
}

fn adoption(world: &mut Observed) -> &mut Adoption {
    world.database.status.as_mut().unwrap().adoption.as_mut().unwrap()
}

/// Everything that was found is kept, and the spec is this from now on.
fn kept(spec: Value) -> Observed {
    let mut world = unreleased(adopted());
    requested(&mut world, spec);
    world
}

fn unreleased(mut world: Observed) -> Observed {
    change(&mut world.volume, |volume| volume.spec.release = false);
    world.nodes[0].spec.release = false;
    world
}

fn requested(world: &mut Observed, spec: Value) {
    let mut whole = self::spec();
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    world.database.spec = database(whole, json!({})).spec;
    world.profile = engine::profile(&world.database.spec.engine, &world.database.spec.config);
}

fn version(version: &str) -> Value {
    json!({"engine": {"type": "postgresql", "version": version}})
}

fn memory(limit: &str) -> Value {
    json!({"resources": {"limits": {"memory": limit}}})
}

/// The template that the plan applies is there, and its pod, with this status.
fn applied(world: &mut Observed, status: Value) {
    let plan = plan(world, at(CREATED));
    let Some(Action::ApplyStatefulSet(set)) = plan.actions.last() else { panic!("{}", line(&plan)) };
    let live = world.stateful_set.ours().unwrap();
    let metadata = ObjectMeta { annotations: set.metadata.annotations.clone(), ..live.metadata.clone() };
    let set = StatefulSet { metadata, spec: set.spec.clone(), ..live.clone() };
    world.pod = Some(started(&set, status));
    world.stateful_set = ours(seen(set));
    as_applied(world);
}

/// A pod of this template, on its machine, created just before.
fn started(set: &StatefulSet, status: Value) -> Pod {
    let mut pod = pod_with(pod_of(set), status);
    pod.metadata.name = Some("pg-17-0".to_owned());
    pod.metadata.uid = Some("later-pod-uid".to_owned());
    pod.metadata.resource_version = Some("88".to_owned());
    pod.metadata.creation_timestamp = Some(Time(at(CREATED)));
    pod
}

fn container(state: Value, restarts: i32) -> Value {
    json!({"phase": "Pending", "containerStatuses": [{"name": "postgres", "image": "i", "imageID": "i",
        "ready": false, "restartCount": restarts, "state": state}]})
}

fn no_image() -> Value {
    container(json!({"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}), 0)
}

fn crashing() -> Value {
    container(json!({"waiting": {"reason": "CrashLoopBackOff"}}), 7)
}

fn recovering() -> Value {
    container(json!({"running": {"startedAt": "2023-11-14T22:13:20Z"}}), 0)
}

fn fits_nowhere() -> Value {
    json!({"conditions": [{"type": "PodScheduled", "status": "False", "message": "Insufficient memory"}]})
}

fn serving() -> Value {
    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "postgres", "image": "i", "imageID": "i", "ready": true,
        "restartCount": 0, "state": {"running": {}}}]})
}

/// The plan at so many minutes after the pod was created.
fn after_minutes(world: &Observed, minutes: i64) -> Plan {
    plan(world, at(CREATED + 60 * minutes))
}

/// The status is what a pass at this minute writes, with what its actions wrote before.
fn passed(world: &mut Observed, minutes: i64) {
    let second = CREATED + 60 * minutes;
    for action in plan(world, at(second)).actions {
        if let Action::GoBack(back) = action {
            adoption(world).went_back = Some(*back);
        }
    }
    world.database.status = Some(status_at(world, second));
}

#[test]
fn what_the_next_start_changes_is_shown_without_a_restart() {
    let world = kept(json!({}));
    assert_eq!(line(&plan(&world, now())), "[] as wanted");
    assert_eq!(
        pending(&world),
        "True/AtNextStart: at its next start pod pg-17-0 changes: metadata.annotations, metadata.labels, \
         spec.affinity, spec.nodeSelector, spec.tolerations; nothing restarts for it"
    );
    let ready = status_at(&world, CREATED);
    assert_eq!(find(&ready.conditions, ConditionType::Ready).unwrap().status, "True");

    let mut moved = kept(json!({}));
    moved.pod = Some(started(moved.stateful_set.ours().unwrap(), serving()));
    assert_eq!(pending(&moved), "False/UpToDate: pod pg-17-0 was made from the newest template");
}

#[test]
fn a_changed_spec_restarts_the_pod_and_says_what_changes() {
    let mut world = kept(version("17.6"));
    let found = world.pod.clone();
    applied(&mut world, serving());
    world.pod = found;
    let said = pending(&world);
    assert!(
        said.starts_with("True/RestartPending: pod pg-17-0 is being replaced for a changed spec"),
        "{said}"
    );
    let image = "containers[postgres].image: mirror.example.com/postgres:17.5-acme → mirror.example.com/postgres:17.6-acme";
    assert!(said.contains(image), "{said}");
}

/// Whether a world goes back after this many minutes, and not before.
#[track_caller]
fn goes_back(spec: Value, status: Value, minutes: i64, why: StartFailure) -> Observed {
    let mut world = kept(spec);
    applied(&mut world, status);
    let early = after_minutes(&world, minutes - 1);
    assert!(early.actions.is_empty(), "{}", line(&early));
    assert_eq!(early.requeue.map(|it| it.as_secs() <= 60), Some(true), "a pass follows");
    let late = after_minutes(&world, minutes);
    assert!(line(&late).starts_with(&format!("[go back, {why:?}]")), "{}", line(&late));
    passed(&mut world, minutes);
    world
}

#[test]
fn an_image_that_was_never_started_goes_back_and_the_same_spec_is_not_tried_again() {
    let mut world = goes_back(version("17.6"), no_image(), 15, StartFailure::NotStarted);
    let back = adoption(&mut world).went_back.clone().unwrap();
    assert_eq!(back.image.as_deref(), Some("mirror.example.com/postgres:17.6-acme"));
    assert_eq!(back.message, "ImagePullBackOff: not found");
    let restores = plan(&world, at(CREATED + 901));
    assert_eq!(line(&restores), "[apply set legacy-set-uid x1] RestartPending");
    let failed = world.pod.clone();
    applied(&mut world, serving());
    let engine = &world.stateful_set.ours().unwrap().spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    assert_eq!(engine.containers[0].image.as_deref(), Some("mirror.example.com/postgres:17.5-acme"));
    assert!(engine.node_selector.as_ref().unwrap().contains_key(DATABASE_NODE_LABEL), "it finds its machine");

    let replaces = plan(&Observed { pod: failed, ..world.clone() }, at(CREATED + 902));
    assert_eq!(
        line(&replaces),
        "[replace pg-17-0 later-pod-uid of version 88: the pod did not start as the spec requests, and goes \
         back to what it ran as before] RestartPending",
        "a pod that starts meanwhile is not deleted"
    );
    let serves = plan(&world, at(CREATED + 903));
    assert_eq!(line(&serves), "[] stalled WentBack");
    assert!(pending(&world).starts_with("False/WentBack: the pod did not start as the spec requests"));
    passed(&mut world, 20);
    assert_eq!(adoption(&mut world).went_back.as_ref(), Some(&back), "for as long as the spec is the same");
    let ready = status_at(&world, CREATED + 1300);
    let of = |kind: ConditionType| find(&ready.conditions, kind).map(|it| it.status.as_str());
    assert_eq!((of(ConditionType::Ready), of(ConditionType::EngineReady)), (Some("False"), Some("True")));

    // Set back, nothing restarts, and nothing is remembered.
    requested(&mut world, version("17.5"));
    assert_eq!(line(&plan(&world, at(CREATED + 1300))), "[] as wanted");
    passed(&mut world, 22);
    assert_eq!(adoption(&mut world).went_back, None);
    requested(&mut world, version("17.6"));
    assert_eq!(line(&plan(&world, at(CREATED + 1400))), "[apply set legacy-set-uid x1] RestartPending");
}

#[test]
fn resources_go_back_however_the_pod_fails_as_long_as_the_image_is_the_same() {
    for (status, minutes, why) in [
        (fits_nowhere(), 15, StartFailure::Unschedulable),
        (crashing(), 15, StartFailure::EngineEnds),
        // An engine that may be recovering has longer.
        (recovering(), 60, StartFailure::ProbeFails),
    ] {
        let mut world = goes_back(memory("1Mi"), status, minutes, why);
        assert_eq!(adoption(&mut world).went_back.as_ref().unwrap().image, None);
        applied(&mut world, serving());
        let pod = &world.stateful_set.ours().unwrap().spec.as_ref().unwrap().template.spec.as_ref().unwrap();
        assert_eq!(pod.containers[0].resources, None, "as it was found");
        assert_eq!(line(&plan(&world, at(CREATED + 9000))), "[] stalled WentBack");
    }
}

#[test]
fn an_image_that_was_started_does_not_go_back_by_itself() {
    let mut world = kept(version("17.6"));
    applied(&mut world, crashing());
    assert_eq!(line(&after_minutes(&world, 14)), "[] EngineFailing");
    assert_eq!(line(&after_minutes(&world, 15)), "[] stalled EngineFailing");
    let said = after_minutes(&world, 15).waiting.unwrap().message();
    assert!(said.contains("may have changed the data"), "{said}");
    passed(&mut world, 15);
    let image = "mirror.example.com/postgres:17.6-acme";
    assert_eq!(adoption(&mut world).unproven_image.as_deref(), Some(image));

    // Nor does another image after it, which was not started, until one has served.
    requested(&mut world, version("17.7"));
    applied(&mut world, no_image());
    assert_eq!(line(&after_minutes(&world, 15)), "[] stalled EngineFailing");
    world.pod.as_mut().unwrap().status = from_json(serving());
    passed(&mut world, 16);
    assert_eq!(adoption(&mut world).unproven_image, None);
}

#[test]
fn a_database_goes_back_to_what_served_last_and_not_to_what_was_found_long_ago() {
    let mut world = kept(version("17.6"));
    applied(&mut world, serving());
    passed(&mut world, 1);
    requested(&mut world, version("17.7"));
    applied(&mut world, no_image());
    passed(&mut world, 15);
    applied(&mut world, serving());
    let pod = &world.stateful_set.ours().unwrap().spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    assert_eq!(pod.containers[0].image.as_deref(), Some("mirror.example.com/postgres:17.6-acme"));
    // What served before and does not start any more has nothing to go back to.
    requested(&mut world, version("17.6"));
    world.pod.as_mut().unwrap().status = from_json(crashing());
    assert_eq!(line(&after_minutes(&world, 600)), "[] EngineFailing");
}

#[test]
fn what_comes_up_while_the_database_goes_back_stays() {
    let mut image = goes_back(version("17.6"), no_image(), 15, StartFailure::NotStarted);
    image.pod.as_mut().unwrap().status = from_json(recovering());
    assert_eq!(line(&after_minutes(&image, 16)), "[] EngineStarting", "it may have changed the data");
    passed(&mut image, 16);
    assert_eq!(adoption(&mut image).went_back, None);
    let mut resources = goes_back(memory("1Mi"), fits_nowhere(), 15, StartFailure::Unschedulable);
    resources.pod.as_mut().unwrap().status = from_json(serving());
    assert_eq!(line(&after_minutes(&resources, 16)), "[] as wanted");
}

#[test]
fn the_bound_begins_when_pod_machine_and_volume_are_there() {
    let mut world = kept(memory("1Mi"));
    applied(&mut world, crashing());
    let ready = world.nodes[0].status.as_mut().unwrap();
    let ready = ready.conditions.iter_mut().find(|it| it.type_ == "Ready").unwrap();
    ready.last_transition_time = Time(at(CREATED + 600));
    assert_eq!(line(&after_minutes(&world, 24)), "[] EngineFailing");
    assert!(line(&after_minutes(&world, 25)).starts_with("[go back"));
    // A machine that is not ready, or a volume on its way, is no fault of the template.
    let ready = world.nodes[0].status.as_mut().unwrap();
    ready
        .conditions
        .iter_mut()
        .filter(|it| it.type_ == "Ready")
        .for_each(|it| it.status = "False".to_owned());
    assert!(after_minutes(&world, 600).actions.is_empty());
}

#[test]
fn resources_that_the_spec_requested_from_the_beginning_go_back_too() {
    let mut world = prepared();
    requested(&mut world, memory("1Mi"));
    let mut world = unreleased(adopted_from(world));
    let first = world.database.status.as_ref().unwrap().adoption.as_ref().unwrap().inputs_hash.clone();
    // The machine died: the pod is of the new template for the first time.
    let set = world.stateful_set.ours().unwrap().clone();
    world.pod = Some(started(&set, crashing()));
    assert!(line(&after_minutes(&world, 15)).starts_with("[go back, EngineEnds]"));
    passed(&mut world, 15);
    applied(&mut world, serving());
    let inputs = &world.stateful_set.ours().unwrap().annotations()[INPUTS_HASH_ANNOTATION];
    assert_eq!(*inputs, format!("{first}-back"));
    passed(&mut world, 16);
    assert_eq!(line(&after_minutes(&world, 17)), "[] stalled WentBack");
}

#[test]
fn a_record_of_going_back_is_read_by_its_fields_only() {
    let mut world = goes_back(version("17.6"), no_image(), 15, StartFailure::NotStarted);
    let before = line(&after_minutes(&world, 16));
    let back = adoption(&mut world).went_back.as_mut().unwrap();
    *back = WentBack { why: StartFailure::ProbeFails, message: String::new(), ..back.clone() };
    assert_eq!(line(&after_minutes(&world, 16)), before);
}

#[test]
fn what_the_change_cannot_be_the_cause_of_goes_back_to_nothing() {
    let goes_back = |spec: Value, status: Value| {
        let mut world = kept(spec);
        applied(&mut world, status);
        let plan = after_minutes(&world, 600);
        plan.actions.iter().any(|it| matches!(it, Action::GoBack(_)))
    };
    assert!(goes_back(version("17.6"), no_image()));
    assert!(goes_back(memory("2Ti"), fits_nowhere()));
    assert!(!goes_back(version("17.6"), fits_nowhere()), "an image keeps no pod from being scheduled");
    assert!(!goes_back(memory("2Ti"), no_image()), "memory keeps no image from being pulled");
    let mounting = json!({"phase": "Pending",
        "conditions": [{"type": "PodReadyToStartContainers", "status": "False"}],
        "containerStatuses": [{"name": "postgres", "image": "i", "imageID": "i", "ready": false,
            "restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}}]});
    assert!(!goes_back(version("17.6"), mounting), "the volume is being mounted");
}
