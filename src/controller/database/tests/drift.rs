//! What was changed outside Freehold: reported and restored, at once or after a pause, and never taken for
//! what an upgrade of the operator or of the API server makes of it.

mod pods;
mod templates;

use jiff::SignedDuration;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::*;
use crate::api::database::{Applied, HistoryEntry, Occurrence};
use crate::api::keys::REVISION_LABEL;
use crate::api::{ConditionType, DatabaseStatus};
use crate::controller::conditions;
use crate::controller::database::apply::Answers;
use crate::controller::database::status::{Decided, status as status_of};
use crate::controller::pass::acted::Acted;
use crate::time::until;

/// Reported, and both objects restored.
const CONFIG_MAP: &str =
    "[report ConfigMapAltered orders-config, apply config config-uid, restore set set-uid x1] as wanted";
const STATEFUL_SET: &str =
    "[report StatefulSetAltered orders, apply config config-uid, restore set set-uid x1] as wanted";

fn status(world: &mut Observed) -> &mut DatabaseStatus {
    world.database.status.get_or_insert_default()
}

fn known(world: &mut Observed) -> &mut Applied {
    status(world).applied.get_or_insert_default()
}

/// Another client changes the ConfigMap of a database that was seen to run before.
fn edit_files(world: &mut Observed, edit: impl FnOnce(&mut ConfigMap)) {
    if status(world).run.is_none() {
        ran(world, "pod-uid", 0);
    }
    change(&mut world.config_map, edit);
}

/// Another client adds a file.
fn alter_files(world: &mut Observed) {
    edit_files(world, |files| {
        files.data.get_or_insert_default().insert("start.sh".to_owned(), "a program".to_owned());
    });
}

/// Another client adds something to the pod.
fn alter_set(world: &mut Observed) {
    change(&mut world.stateful_set, |set| {
        let pod = set.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
        let program = json!([{"name": "program", "image": "a-program"}]);
        pod.init_containers = serde_json::from_value(program).unwrap();
        wrote(set);
    });
}

/// The API server has counted a change, and the StatefulSet's controller has seen it.
fn wrote(set: &mut StatefulSet) {
    set.metadata.generation = set.metadata.generation.map(|generation| generation + 1);
    set.status.as_mut().unwrap().observed_generation = set.metadata.generation;
}

/// It was restored so often, the last time so many seconds ago.
fn restored(world: &mut Observed, what: Occurrence, count: i32, seconds: i64) {
    let at = Time(now() - SignedDuration::from_secs(seconds));
    status(world).history.push(HistoryEntry { at, what, cause: "CAUSE".to_owned(), count });
}

/// The pod is of this revision, and these were applied.
fn revisions(world: &mut Observed, of_pod: &str, of_set: &str, applied: &[&str]) {
    world.pod.as_mut().unwrap().labels_mut().insert(REVISION_LABEL.to_owned(), of_pod.to_owned());
    change(&mut world.stateful_set, |set| {
        set.status.as_mut().unwrap().update_revision = Some(of_set.to_owned());
    });
    known(world).revisions = applied.iter().map(|revision| (*revision).to_owned()).collect();
}

/// The status after a pass that the API server answered like this.
fn after(world: &Observed, answers: Answers) -> DatabaseStatus {
    let acted = Acted::new(world.database.clone());
    let decided = Decided { answers, ..Decided::of(world, &plan(world, now()), &acted) };
    status_of(world, &decided, &acted, now())
}

/// The message of the condition Altered.
fn altered(world: &Observed) -> Option<String> {
    let status = after(world, Answers::default());
    conditions::find(&status.conditions, ConditionType::Altered).map(|condition| condition.message.clone())
}

#[test]
fn what_another_client_changed_is_reported_and_restored_without_a_restart() {
    assert_eq!(planned(|_| {}), "[] as wanted");
    assert_eq!(planned(alter_files), CONFIG_MAP);
    assert_eq!(
        planned(|it| edit_files(it, |files| {
            let bytes = ByteString(b"a program".to_vec());
            files.binary_data = Some(BTreeMap::from([("start.sh".to_owned(), bytes)]));
        })),
        CONFIG_MAP
    );
    assert_eq!(
        planned(|it| edit_files(it, |files| files.immutable = Some(true))),
        "[report ConfigMapAltered orders-config, delete ConfigMap orders-config, restore set set-uid x1] as \
         wanted",
        "it can only be created anew"
    );
    assert_eq!(planned(alter_set), STATEFUL_SET);
    let both = planned(|it| {
        alter_files(it);
        alter_set(it);
    });
    assert_eq!(
        both,
        "[report ConfigMapAltered orders-config, report StatefulSetAltered orders, apply config config-uid, \
         restore set set-uid x1] as wanted"
    );
    let mut world = settled();
    alter_set(&mut world);
    let plan = plan(&world, now());
    let Some(Action::RestoreStatefulSet(object)) = plan.actions.last() else { panic!("{plan:?}") };
    let wanted = build::stateful_set(&world.database, &world.names, world.profile.as_ref().unwrap(), 1);
    assert_eq!(object.spec, wanted.spec);
    assert_eq!(altered(&world), None, "it is restored");
}

#[test]
fn neither_a_newer_rendering_nor_a_newer_api_server_nor_another_number_of_pods_is_a_change() {
    // As an older operator rendered it, or as a newer API server shows it: no client has written it.
    let grace = |set: &mut StatefulSet| {
        let pod = set.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
        pod.termination_grace_period_seconds = Some(7);
    };
    assert_eq!(planned(|it| change(&mut it.stateful_set, grace)), "[] as wanted");
    assert_eq!(
        planned(|it| {
            change(&mut it.stateful_set, grace);
            as_applied(it);
            change(&mut it.stateful_set, |set| {
                set.spec.as_mut().unwrap().replicas = Some(3);
                wrote(set);
            });
        }),
        "[scale set-uid to 1] as wanted"
    );
    assert_eq!(
        planned(|it| change(&mut it.stateful_set, |set| set
            .annotations_mut()
            .extend([("a".into(), "b".into())]))),
        "[] as wanted"
    );
}

#[test]
fn what_was_applied_before_and_is_not_known_is_applied_anew_and_not_reported() {
    assert_eq!(
        planned(|it| status(it).applied = None),
        "[apply config config-uid, restore set set-uid x1] as wanted"
    );
    assert_eq!(
        planned(|it| {
            status(it).applied = None;
            alter_set(it);
        }),
        "[apply config config-uid, restore set set-uid x1] as wanted"
    );
    // Else a write that is refused each time would repeat the other one each time, and with it the status.
    assert_eq!(planned(|it| known(it).stateful_set = None), "[restore set set-uid x1] as wanted");
    assert_eq!(planned(|it| known(it).config_map = None), "[apply config config-uid] as wanted");
    let mut outdated = edited(json!({"config": {"query.timeout": "60s"}}));
    status(&mut outdated).applied = None;
    assert_eq!(
        line(&plan(&outdated, now())),
        "[apply config config-uid, apply set set-uid x1] RestartPending",
        "with the restart, as ever"
    );
}

#[test]
fn a_change_that_meets_a_new_spec_is_reported_and_goes_with_it() {
    let mut world = edited(json!({"config": {"query.timeout": "60s"}}));
    alter_set(&mut world);
    assert_eq!(
        line(&plan(&world, now())),
        "[report StatefulSetAltered orders, apply config config-uid, apply set set-uid x1] RestartPending"
    );
}

#[test]
fn a_paused_database_is_restored_and_one_that_is_deleted_is_not() {
    let paused = |world: &mut Observed| {
        world.database.spec.running = false;
        change(&mut world.stateful_set, |set| set.spec.as_mut().unwrap().replicas = Some(0));
        world.pod = None;
        (world.nodes, world.labelled) = (Vec::new(), Vec::new());
    };
    assert_eq!(
        planned(|it| {
            paused(it);
            alter_set(it);
        }),
        "[report StatefulSetAltered orders, apply config config-uid, restore set set-uid x0] Paused"
    );
    let leaving = planned(|it| {
        deleting(&mut it.database, 1);
        alter_set(it);
        alter_files(it);
    });
    assert!(!leaving.contains("report") && !leaving.contains("restore"), "{leaving}");
}

#[test]
fn nothing_is_restored_to_a_spec_that_is_refused_and_the_condition_says_so() {
    let mut world = settled();
    alter_set(&mut world);
    world.database.spec.instance_types.clear();
    let plan = plan(&world, now());
    assert_eq!(line(&plan), "[] stalled InvalidSpec");
    assert_eq!(
        altered(&world).unwrap(),
        "StatefulSet orders was changed outside Freehold; it is restored once the spec of this Database is \
         valid and permitted"
    );
    world.class = None;
    world.database.spec.instance_types.push("r7i.large".to_owned());
    assert!(altered(&world).is_some(), "without its class it is not known where images come from");
}

#[test]
fn a_change_that_comes_back_is_restored_after_pauses_that_grow() {
    for (count, seconds, is_restored) in
        [(1, 59, false), (1, 60, true), (2, 119, false), (2, 120, true), (90, 3839, false), (90, 3840, true)]
    {
        let mut world = settled();
        alter_set(&mut world);
        restored(&mut world, Occurrence::StatefulSetAltered, count, seconds);
        let plan = plan(&world, now());
        let row = line(&plan);
        if is_restored {
            assert_eq!(row, STATEFUL_SET, "{count} times, {seconds} s ago");
            continue;
        }
        assert_eq!(row, "[] as wanted", "{count} times, {seconds} s ago");
        let again = altered(&world).unwrap();
        assert!(again.starts_with("StatefulSet orders was changed outside Freehold again"), "{again}");
        let next = at(now().as_second() + 1);
        assert_eq!(plan.requeue, Some(until(next, now())), "{count} times, {seconds} s ago");
    }
    let mut other = settled();
    alter_files(&mut other);
    restored(&mut other, Occurrence::StatefulSetAltered, 1, 1);
    assert_eq!(
        line(&plan(&other, now())),
        "[report ConfigMapAltered orders-config, apply config config-uid, restore set set-uid x1] as wanted",
        "each object has its own pause"
    );
}

#[test]
fn files_that_cannot_be_changed_and_do_not_go_are_reported_after_pauses_and_deleted_once() {
    let mut world = settled();
    edit_files(&mut world, |files| {
        files.immutable = Some(true);
        files.metadata.deletion_timestamp = Some(Time(at(1)));
    });
    known(&mut world).config_map = None;
    restored(&mut world, Occurrence::ConfigMapAltered, 1, 10);
    assert_eq!(line(&plan(&world, now())), "[] as wanted");
    let reported = altered(&world).unwrap();
    assert!(reported.starts_with("ConfigMap orders-config was changed outside Freehold again"), "{reported}");
    status(&mut world).history.clear();
    restored(&mut world, Occurrence::ConfigMapAltered, 1, 60);
    assert_eq!(
        line(&plan(&world, now())),
        "[report ConfigMapAltered orders-config, restore set set-uid x1] as wanted"
    );
}

#[test]
fn what_cannot_be_changed_of_a_stateful_set_stays_as_a_webhook_made_it() {
    let mut world = settled();
    change(&mut world.stateful_set, |set| {
        set.spec.as_mut().unwrap().pod_management_policy = Some("Parallel".to_owned());
    });
    alter_set(&mut world);
    let plan = plan(&world, now());
    let Some(Action::RestoreStatefulSet(object)) = plan.actions.last() else { panic!("{plan:?}") };
    assert_eq!(object.spec.as_ref().unwrap().pod_management_policy.as_deref(), Some("Parallel"));
}

#[test]
fn an_image_that_another_client_wrote_does_not_become_what_freehold_applied() {
    let image = |world: &mut Observed| {
        change(&mut world.stateful_set, |set| {
            let pod = set.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
            pod.containers[0].image = Some("a-program".to_owned());
            wrote(set);
        });
    };
    assert_eq!(planned(image), STATEFUL_SET);
    assert_eq!(
        planned(|it| {
            image(it);
            restored(it, Occurrence::StatefulSetAltered, 1, 1);
        }),
        "[] as wanted"
    );
}

/// The engine was seen to run in this pod, started again so often.
fn ran(world: &mut Observed, pod: &str, restarts: i32) {
    let run = json!({"podUID": pod, "restarts": restarts, "since": "2023-01-01T00:00:00Z"});
    status(world).run = serde_json::from_value(run).unwrap();
}

#[test]
fn what_the_api_server_answered_is_recorded_and_what_others_wrote_is_not() {
    let mut world = settled();
    known(&mut world).stateful_set.as_mut().unwrap().spec = "as an older API server showed it".to_owned();
    let kept = after(&world, Answers::default()).applied.unwrap();
    assert_eq!(kept.config_map, status(&mut world.clone()).applied.as_ref().unwrap().config_map);
    assert_eq!(
        kept.stateful_set.unwrap().spec,
        build::of_stateful_set(world.stateful_set.ours().unwrap()),
        "what is shown of an unchanged generation"
    );

    let mut altered = world.clone();
    alter_set(&mut altered);
    assert_eq!(
        after(&altered, Answers::default()).applied,
        altered.database.status.as_ref().unwrap().applied,
        "as before"
    );
    // As a webhook changes it on its way.
    let answer = altered.stateful_set.ours().cloned();
    let applied = after(&altered, Answers { stateful_set: answer, config_map: None }).applied.unwrap();
    let set = applied.stateful_set.unwrap();
    assert_eq!((set.generation, set.uid.as_str()), (6, "set-uid"));
    assert_eq!(set.spec, build::of_stateful_set(altered.stateful_set.ours().unwrap()));
}

#[test]
fn a_change_while_the_database_is_paused_is_no_second_pause() {
    let mut world = settled();
    world.database.spec.running = false;
    status(&mut world).run = serde_json::from_value(json!({
        "podUID": "pod-uid", "restarts": 0, "since": "2023-01-01T00:00:00Z",
    }))
    .unwrap();
    restored(&mut world, Occurrence::Paused, 1, 100);
    restored(&mut world, Occurrence::ConfigMapAltered, 1, 50);
    let last = after(&world, Answers::default()).history.pop().unwrap();
    assert_eq!((last.what, last.count), (Occurrence::ConfigMapAltered, 1));
}
