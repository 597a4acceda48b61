//! A database whose new image cannot be started goes back to the engine that it served as, where nothing can
//! have changed the data.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::*;
use crate::api::database::{EngineNotStarted, Served};
use crate::controller::database::status::{Decided, status};
use crate::controller::database::wait::DatabaseWait;
use crate::controller::pass::acted::Acted;

/// The version that served, and the one that the spec requests by now.
const SERVED: &str = "9.3.4";
const WANTED: &str = "9.3.5";

/// So many seconds after machine and volume became ready.
fn moment(second: i64) -> Timestamp {
    at(1_767_225_600 + second)
}

fn of_version(version: &str) -> Value {
    json!({"type": "questdb", "version": version})
}

/// A settled world of this version, after a pod of the one that served.
fn after(version: &str) -> Observed {
    with_record(settled_as(json!({"engine": of_version(version)})), served())
}

fn with_record(mut world: Observed, served: Value) -> Observed {
    let status = world.database.status.as_mut().unwrap();
    status.served = Some(serde_json::from_value(served).unwrap());
    let run = json!({"podUID": "pod-before", "restarts": 0, "since": moment(-900).to_string()});
    status.run = Some(serde_json::from_value(run).unwrap());
    world
}

/// The settled world of the version that served, whose spec requests this one.
fn requesting(version: &str, record: Value) -> Observed {
    let mut world = settled_as(json!({"engine": of_version(SERVED)}));
    world.database.spec.engine = serde_json::from_value(of_version(version)).unwrap();
    world.profile = engine::profile(&world.database.spec.engine, &world.database.spec.config);
    with_record(world, record)
}

fn served() -> Value {
    let image = format!("questdb/questdb:{SERVED}");
    json!({"engine": of_version(SERVED), "image": image, "podUID": "pod-before"})
}

/// The kubelet has no image to start since the pod was created.
fn without_image(mut world: Observed, reason: &str) -> Observed {
    let waiting = json!({"waiting": {"reason": reason, "message": "no such tag"}});
    let pending = json!({"phase": "Pending", "containerStatuses": [container_status(waiting)]});
    let pod = world.pod.take().unwrap();
    world.pod = Some(pod_with(pod, pending));
    world.pod.as_mut().unwrap().metadata.creation_timestamp = Some(Time(moment(0)));
    world
}

fn trying() -> Observed {
    without_image(after(WANTED), "ImagePullBackOff")
}

/// What the kubelet reported last of the pod is old.
fn silent() -> Observed {
    let mut world = trying();
    let status = json!({"conditions": [{"type": "Ready", "status": "Unknown"}]});
    world.core_nodes[0].status = Some(serde_json::from_value(status).unwrap());
    world
}

/// What the plan writes down that the database goes back from.
fn goes_back(world: &Observed, second: i64) -> Option<EngineNotStarted> {
    plan(world, moment(second)).actions.into_iter().find_map(|action| {
        let Action::GoBackToServed(back) = action else { return None };
        Some(*back)
    })
}

fn recorded(world: &Observed) -> Option<Served> {
    let acted = Acted::new(world.database.clone());
    status(world, &Decided::of(world, &plan(world, moment(900)), &acted), &acted, moment(900))
        .served
        .map(|served| *served)
}

fn not_started() -> Value {
    json!({"at": moment(300).to_string(), "engine": of_version(WANTED), "message": "no such tag"})
}

fn went_back() -> Value {
    let mut record = served();
    record["wentBack"] = not_started();
    record
}

#[test]
fn an_image_that_cannot_be_pulled_for_five_minutes_is_left_with_the_kubelets_words() {
    assert_eq!(goes_back(&trying(), 299), None);
    let back = goes_back(&trying(), 300).unwrap();
    assert_eq!((back.at, back.engine.version.as_deref()), (Time(moment(300)), Some(WANTED)));
    assert!(back.message.contains("no such tag"), "{}", back.message);
    let asked_again = plan(&trying(), moment(290)).requeue.unwrap();
    assert!(asked_again.as_secs() <= 10, "{asked_again:?}");
}

#[test]
fn nothing_goes_back_whose_data_may_have_changed_or_that_another_image_would_not_help() {
    type Case = (&'static str, fn() -> Observed);
    let cases: [Case; 12] = [
        ("it was started", || {
            let mut world = trying();
            let status = world.pod.as_mut().unwrap().status.as_mut().unwrap();
            status.container_statuses.as_mut().unwrap()[0].restart_count = 1;
            world
        }),
        ("it was started, has ended, and its image cannot be pulled again", || {
            let mut world = trying();
            let status = world.pod.as_mut().unwrap().status.as_mut().unwrap();
            let ended = json!({"terminated": {"exitCode": 1}});
            let container = &mut status.container_statuses.as_mut().unwrap()[0];
            container.last_state = Some(serde_json::from_value(ended).unwrap());
            world
        }),
        ("an engine was started in a later pod than the one that served", || {
            let mut world = trying();
            world.database.status.as_mut().unwrap().run.as_mut().unwrap().pod_uid = "pod-between".to_owned();
            world
        }),
        ("the NodeClass does not permit what served", || {
            let mut world = trying();
            world.class = Some(class(json!({"limits": {"engines": ["postgresql"]}})));
            world
        }),
        ("a newer version was started on the data", || {
            let mut world = trying();
            world.database.status.as_mut().unwrap().engine_version = Some(WANTED.to_owned());
            world
        }),
        ("it never served", || {
            let mut world = trying();
            world.database.status.as_mut().unwrap().served = None;
            world
        }),
        ("it serves as what it served as", || without_image(after(SERVED), "ErrImagePull")),
        ("a Secret is missing", || without_image(after(WANTED), "CreateContainerConfigError")),
        ("another client has changed the template", || {
            let mut world = trying();
            change(&mut world.stateful_set, |set| {
                set.metadata.generation = Some(6);
                set.spec.as_mut().unwrap().template.spec.as_mut().unwrap().node_name =
                    Some("other".to_owned());
            });
            world
        }),
        ("its machine is lost", || {
            let mut world = trying();
            let status = world.nodes[0].status.as_mut().unwrap();
            let lost = condition("Lost", "True", "InstanceTerminated", "gone");
            status.conditions.push(serde_json::from_value(lost).unwrap());
            world
        }),
        ("its kubelet does not report", silent),
        ("it serves as what it served as, by an image of an earlier NodeClass", || {
            let mut world = without_image(after(SERVED), "ErrImagePull");
            let pod = world.pod.as_mut().unwrap();
            pod.spec.as_mut().unwrap().containers[0].image =
                Some("registry.example/questdb:9.3.4".to_owned());
            world
        }),
    ];
    for (name, world) in cases {
        assert_eq!(goes_back(&world(), 100_000), None, "{name}");
    }
}

#[test]
fn what_may_have_started_unseen_ends_the_record() {
    assert_eq!(recorded(&silent()), None);
    let mut back = with_record(silent(), went_back());
    assert!(!line(&plan(&back, moment(301))).contains("apply"), "what the spec requests is carried out");
    assert_eq!(recorded(&back), None);
    back.core_nodes[0].status = None;
    assert!(recorded(&back).is_some());
}

#[test]
fn a_container_that_needs_the_image_before_the_engine_does_counts_as_the_engine() {
    let mut restored = after(WANTED);
    let mut pod = restored.pod.take().unwrap();
    let spec = pod.spec.as_mut().unwrap();
    let image = spec.containers[0].image.clone().unwrap();
    let before = json!([{"name": "restore", "image": image}]);
    spec.init_containers = Some(serde_json::from_value(before).unwrap());
    pod.metadata.creation_timestamp = Some(Time(moment(0)));
    let of = |name: &str, reason: &str| {
        let mut status = container_status(json!({"waiting": {"reason": reason, "message": "no such tag"}}));
        status["name"] = json!(name);
        status
    };
    restored.pod = Some(pod_with(
        pod,
        json!({"phase": "Pending", "conditions": [{"type": "Initialized", "status": "False"}],
            "initContainerStatuses": [of("restore", "ErrImagePull")],
            "containerStatuses": [of("engine", "PodInitializing")]}),
    ));
    assert_eq!(goes_back(&restored, 299), None);
    let back = goes_back(&restored, 300).unwrap();
    assert!(back.message.contains("no such tag"), "{}", back.message);
}

#[test]
fn the_record_follows_the_engine_that_served_to_a_later_pod_that_is_not_ready_yet() {
    let mut moved = after(SERVED);
    let pod = moved.pod.take().unwrap();
    let starting =
        json!({"phase": "Running", "containerStatuses": [container_status(json!({"running": {}}))]});
    moved.pod = Some(pod_with(pod, starting));
    assert_eq!(recorded(&moved).unwrap().pod_uid, "pod-uid");
    let mut other = moved;
    other.database.status.as_mut().unwrap().run.as_mut().unwrap().pod_uid = "pod-between".to_owned();
    assert_eq!(recorded(&other).unwrap().pod_uid, "pod-before", "another engine was started in between");
}

#[test]
fn it_goes_back_whatever_else_is_waited_for() {
    let mut waits = trying();
    let Child::Ours(volume) = &mut waits.volume else { panic!("no Volume") };
    volume.spec.size = crate::api::Size::from_gib(50);
    assert!(goes_back(&waits, 300).is_some(), "{}", line(&plan(&waits, moment(300))));
}

#[test]
fn the_engine_that_served_is_started_again_and_the_spec_is_not_tried_twice() {
    let going = with_record(trying(), went_back());
    let applied = plan(&going, moment(301));
    let image = applied.actions.iter().find_map(|action| {
        let Action::ApplyStatefulSet(set) = action else { return None };
        set.spec.as_ref()?.template.spec.as_ref()?.containers[0].image.clone()
    });
    assert!(image.as_ref().is_some_and(|image| image.ends_with(SERVED)), "{image:?}");

    let back = requesting(WANTED, went_back());
    let rests = plan(&back, moment(100_000));
    assert_eq!(line(&rests), "[] stalled WentBack");
    assert!(matches!(rests.waiting, Some(DatabaseWait::EngineWentBack(..))));
    let kept = recorded(&back).unwrap();
    assert_eq!(kept.went_back, Some(serde_json::from_value(not_started()).unwrap()));
    assert_eq!((kept.engine.version.as_deref(), kept.pod_uid.as_str()), (Some(SERVED), "pod-uid"));
}

#[test]
fn a_pod_of_the_spec_that_starts_after_all_is_what_is_carried_out() {
    let started = with_record(after(WANTED), went_back());
    assert_eq!(line(&plan(&started, moment(301))), "[] as wanted");
    let now = recorded(&started).unwrap();
    assert_eq!((now.engine.version.as_deref(), now.went_back), (Some(WANTED), None));
    let edited_meanwhile = {
        let mut world = started;
        world.database.spec.config =
            serde_json::from_value(json!({"cairo.max.uncommitted.rows": "1000"})).unwrap();
        world
    };
    assert_eq!(recorded(&edited_meanwhile).unwrap().went_back, None);
}

#[test]
fn another_engine_in_the_spec_is_tried_and_the_one_that_served_needs_no_restart() {
    let corrected = requesting("9.4.0", went_back());
    let tried = line(&plan(&corrected, moment(301)));
    assert!(tried.contains("apply"), "{tried}");
    assert_eq!(recorded(&corrected).unwrap().went_back, None);
    let taken_back = requesting(SERVED, went_back());
    assert_eq!(line(&plan(&taken_back, moment(301))), "[] as wanted");
    assert_eq!(recorded(&taken_back).unwrap().went_back, None);
}

#[test]
fn what_serves_is_recorded_with_its_pod_and_nothing_else_is() {
    let mut first = settled();
    first.database.status.as_mut().unwrap().served = None;
    let record = recorded(&first).unwrap();
    assert_eq!((&record.engine, record.pod_uid.as_str()), (&first.database.spec.engine, "pod-uid"));
    assert!(record.image.ends_with(SERVED), "{}", record.image);

    let mut fails = after(WANTED);
    let mut container = container_status(json!({"waiting": {"reason": "CrashLoopBackOff"}}));
    container["restartCount"] = json!(3);
    let pod = fails.pod.take().unwrap();
    fails.pod = Some(pod_with(pod, json!({"phase": "Running", "containerStatuses": [container]})));
    assert_eq!(recorded(&fails), Some(serde_json::from_value(served()).unwrap()));
    let edited = requesting(WANTED, served());
    assert_eq!(
        recorded(&edited),
        Some(serde_json::from_value(served()).unwrap()),
        "the pod is of the edit before"
    );
}

#[test]
fn the_data_is_of_the_engine_that_was_started_last() {
    let version = |world: &Observed| world.database.engine_of_data().version.clone().unwrap();
    assert_eq!(version(&trying()), SERVED, "nothing else was started");
    assert_eq!(version(&requesting(WANTED, went_back())), SERVED);
    let mut started = after(WANTED);
    started.database.status.as_mut().unwrap().run.as_mut().unwrap().pod_uid = "pod-uid".to_owned();
    assert_eq!(version(&started), WANTED);
    let mut back_and_moved = requesting(WANTED, went_back());
    back_and_moved.database.status.as_mut().unwrap().run.as_mut().unwrap().pod_uid = "pod-uid".to_owned();
    assert_eq!(version(&back_and_moved), SERVED);
}
