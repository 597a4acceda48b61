//! The engine's next image is on its machine before anything of the engine changes.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::api::database::{ImagePull, PullOutcome};
use crate::controller::database::pod::PULL_CONTAINER;
use crate::controller::database::status::{Decided, status};
use crate::controller::pass::acted::Acted;

const NEXT: &str = "questdb/questdb:9.3.5";
const APPLIES: &str = "[apply config config-uid, apply set set-uid x1] RestartPending";
const WAITS: &str = "[] RestartPending";
const REFUSED: &str = "[] stalled ImageNotPulled";

/// The pod that has pulled the image that the template is to have, where that is another than the template's.
pub(super) fn done(world: &Observed) -> Child<Pod> {
    let (Some(set), Ok(profile)) = (world.stateful_set.ours(), &world.profile) else { return Child::Absent };
    let image = set.spec.as_ref().and_then(|spec| spec.template.spec.as_ref()?.containers[0].image.clone());
    let differs = image.is_some_and(|image| image != profile.image) && world.database.spec.adopt.is_none();
    if differs { puller(world, json!({"terminated": {"exitCode": 0}}), NEXT) } else { Child::Absent }
}

fn puller(world: &Observed, state: Value, image_id: &str) -> Child<Pod> {
    let profile = world.profile.as_ref().unwrap();
    let mut pod = with_uid(build::pull_pod(&world.names, profile, "ip-10-0-0-1"), "puller-uid");
    deleting(&mut pod, 0);
    pod.metadata.creation_timestamp = pod.metadata.deletion_timestamp.take();
    let mut container = container_status(state);
    container["name"] = json!(PULL_CONTAINER);
    container["imageID"] = json!(image_id);
    ours(pod_with(pod, json!({"phase": "Pending", "containerStatuses": [container]})))
}

/// The version was just edited, and the pod that pulls is in this state.
fn upgrade(state: Option<Value>, change: impl FnOnce(&mut Observed)) -> Observed {
    let mut world = edited(json!({"engine": {"type": "questdb", "version": "9.3.5"}}));
    world.puller = state.map_or(Child::Absent, |state| puller(&world, state, ""));
    change(&mut world);
    world
}

fn waiting(reason: &str) -> Value {
    json!({"waiting": {"reason": reason, "message": "WHY"}})
}

fn recorded(seconds_ago: i64, outcome: Option<&str>) -> impl FnOnce(&mut Observed) {
    let since = at(now().as_second() - seconds_ago).to_string();
    let record = json!({"image": NEXT, "since": since, "outcome": outcome});
    move |world| {
        world.database.status.as_mut().unwrap().image_pull = Some(serde_json::from_value(record).unwrap());
    }
}

fn engine_is(state: Value) -> impl FnOnce(&mut Observed) {
    move |world| {
        let pod = world.pod.take().unwrap();
        world.pod = Some(pod_with(pod, json!({"containerStatuses": [container_status(state)]})));
    }
}

fn planned(world: &Observed) -> String {
    line(&plan(world, now()))
}

#[test]
fn an_image_is_pulled_before_template_and_pod_change_and_a_failure_leaves_both() {
    let rows: [(&str, Option<Value>, &str); 8] = [
        ("nothing pulls yet", None, "[pull questdb/questdb:9.3.5] RestartPending"),
        ("not pulled", Some(waiting("ErrImagePull")), REFUSED),
        ("not pulled, again", Some(waiting("ImagePullBackOff")), REFUSED),
        ("no image", Some(waiting("InvalidImageName")), REFUSED),
        ("pulled, and not created", Some(waiting("CreateContainerError")), APPLIES),
        ("pulled, without the command", Some(waiting("RunContainerError")), APPLIES),
        ("it runs", Some(json!({"running": {}})), APPLIES),
        ("on its way", Some(waiting("ContainerCreating")), WAITS),
    ];
    for (what, state, expected) in rows {
        assert_eq!(planned(&upgrade(state, recorded(10, None))), expected, "{what}");
    }
}

#[test]
fn only_a_proven_failure_is_awaited_for_long() {
    let slow = || Some(waiting("ContainerCreating"));
    assert_eq!(planned(&upgrade(slow(), recorded(299, None))), WAITS);
    assert_eq!(planned(&upgrade(slow(), recorded(300, None))), APPLIES);
    assert_eq!(planned(&upgrade(slow(), |_| {})), APPLIES, "the pod is old, and nothing is recorded");
    assert_eq!(planned(&upgrade(None, recorded(300, None))), APPLIES, "another client deletes it");
    assert_eq!(planned(&upgrade(None, recorded(1, Some("NotTried")))), APPLIES, "a quota refuses it");
    let failed = Some(waiting("ErrImagePull"));
    assert_eq!(planned(&upgrade(failed, recorded(900_000, None))), REFUSED);
    assert_eq!(
        planned(&upgrade(slow(), recorded(900_000, Some("NotPulled")))),
        REFUSED,
        "its kubelet was started anew, and has not tried again"
    );
    let foreign = upgrade(None, |world| world.puller = Child::Foreign);
    assert_eq!(planned(&foreign), APPLIES);
    let evicted = upgrade(None, |world| {
        let Child::Ours(pod) = puller(world, json!({}), "") else { panic!("not ours") };
        world.puller = ours(pod_with(*pod, json!({"phase": "Failed", "reason": "Evicted"})));
    });
    assert_eq!(planned(&evicted), APPLIES);
}

#[test]
fn an_engine_that_does_not_run_is_replaced_at_once_but_for_an_image_that_cannot_be_pulled() {
    let crashed = || engine_is(waiting("CrashLoopBackOff"));
    assert_eq!(planned(&upgrade(None, crashed())), APPLIES);
    assert_eq!(planned(&upgrade(Some(waiting("ContainerCreating")), crashed())), APPLIES);
    assert_eq!(planned(&upgrade(Some(waiting("ErrImagePull")), crashed())), REFUSED);
    let busy = || engine_is(json!({"running": {}}));
    assert_eq!(planned(&upgrade(None, busy())), "[pull questdb/questdb:9.3.5] RestartPending");
}

#[test]
fn the_pod_that_pulls_goes_once_it_is_not_needed() {
    let failing = || Some(waiting("ErrImagePull"));
    let taken_back = |world: &mut Observed| {
        (world.database, world.profile) = (settled().database, settled().profile);
    };
    let back = upgrade(failing(), taken_back);
    assert_eq!(planned(&back), "[end pull puller-uid] as wanted", "the edit is taken back");
    let other = upgrade(failing(), |world| {
        change(&mut world.puller, |pod| {
            pod.spec.as_mut().unwrap().containers[0].image = Some("questdb/questdb:9.3.6".to_owned());
        });
    });
    assert_eq!(planned(&other), "[end pull puller-uid] RestartPending", "the edit is corrected");
    let elsewhere = upgrade(failing(), |world| {
        change(&mut world.puller, |pod| pod.spec.as_mut().unwrap().node_name = Some("ip-2".to_owned()));
    });
    assert_eq!(planned(&elsewhere), "[end pull puller-uid] RestartPending");
    for change in [
        |world: &mut Observed| world.database.spec.running = false,
        |world: &mut Observed| deleting(&mut world.database, 1),
    ] {
        let ends = planned(&upgrade(failing(), change));
        assert!(ends.contains("scale set-uid to 0") && ends.contains("end pull puller-uid"), "{ends}");
    }
    let ending = upgrade(failing(), |world| {
        taken_back(world);
        change(&mut world.puller, |pod| deleting(pod, 1));
    });
    assert_eq!(planned(&ending), "[] as wanted");
}

#[test]
fn what_the_kubelet_says_is_kept_until_the_image_is_there_or_is_not_wanted() {
    let shown = |world: &Observed| -> Option<(String, Option<PullOutcome>)> {
        let plan = plan(world, now());
        let acted = Acted::new(world.database.clone());
        let written = status(world, &Decided::of(world, &plan, &acted), &acted, now());
        written.image_pull.map(|ImagePull { image, outcome, .. }| (image, outcome))
    };
    let next = |outcome: Option<PullOutcome>| Some((NEXT.to_owned(), outcome));
    let slow = || Some(waiting("ContainerCreating"));
    assert_eq!(shown(&upgrade(slow(), recorded(10, None))), next(None));
    let failed = upgrade(Some(waiting("ErrImagePull")), recorded(10, None));
    assert_eq!(shown(&failed), next(Some(PullOutcome::NotPulled)));
    let later = upgrade(slow(), recorded(10, Some("NotPulled")));
    assert_eq!(shown(&later), next(Some(PullOutcome::NotPulled)));
    let back = upgrade(slow(), |world| {
        recorded(10, Some("NotPulled"))(world);
        let status = world.database.status.take();
        world.database = settled().database;
        world.database.status = status;
    });
    assert_eq!(shown(&back), None);
}

#[test]
fn the_pod_that_pulls_is_selected_by_nothing_and_mounts_nothing() {
    let world = upgrade(None, |_| {});
    let Child::Ours(pod) = puller(&world, json!({}), "") else { panic!("not ours") };
    let labels = pod.labels();
    assert!(world.names.selector.iter().any(|(key, value)| labels.get(key) != Some(value)), "{labels:?}");
    let spec = pod.spec.as_ref().unwrap();
    assert_eq!(
        (&spec.volumes, &spec.init_containers, spec.automount_service_account_token),
        (&None, &None, Some(false))
    );
    assert_eq!(spec.containers[0].volume_mounts, None);
    let engine = world.pod.as_ref().unwrap().spec.as_ref().unwrap();
    assert_eq!((&spec.tolerations, &spec.node_name), (&engine.tolerations, &engine.node_name));
}
