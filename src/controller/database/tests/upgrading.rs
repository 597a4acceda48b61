//! An engine that is tried behind a backup: what its time is counted of, and what ends the trial. Whole
//! upgrades are in the model (`life/upgrading.rs`).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::*;
use crate::api::database::Upgrade;
use crate::api::{Backup, DatabaseStatus, VolumeId};
use crate::controller::database::status::{Decided, status};
use crate::controller::pass::acted::Acted;

/// The version that served, and the one that is tried.
const SERVED: &str = "9.3.4";
const TRIED: &str = "9.3.5";

const BACKUP: &str = "orders-upgrade-1-stopped";
const GOES_BACK: &str = "[go back from an upgrade, to the data of before: true] WentBack";

fn of_version(version: &str) -> Value {
    json!({"type": "questdb", "version": version})
}

fn before(minutes: i64) -> Timestamp {
    at(now().as_second() - 60 * minutes)
}

/// The engine is tried since an hour in the pod that is there, does not accept connections, and has half an
/// hour; with this in its record.
fn trying(more: Value) -> Observed {
    let mut world = settled_as(json!({"engine": of_version(TRIED), "upgrade": {"timeoutMinutes": 30}}));
    let mut record = json!({
        "from": {"engine": of_version(SERVED)}, "to": of_version(TRIED),
        "inputsHash": build::inputs_hash(&world.database.spec),
        "startedAt": before(65), "podUID": "pod-before", "backupName": BACKUP, "snapshotID": "snap-1",
        "volumeID": "vol-1", "startableAt": before(60), "tried": {"podUID": "pod-uid"},
    });
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let served = json!({"engine": of_version(SERVED), "image": format!("questdb/questdb:{SERVED}"),
        "podUID": "pod-before"});
    let run = json!({"podUID": "pod-before", "restarts": 0, "since": before(100)});
    let shown = world.database.status.as_mut().unwrap();
    shown.upgrade = Some(serde_json::from_value(record).unwrap());
    shown.served = Some(serde_json::from_value(served).unwrap());
    shown.run = Some(serde_json::from_value(run).unwrap());
    change(&mut world.volume, |volume| {
        volume.status.as_mut().unwrap().volume_id = Some(VolumeId("vol-1".to_owned()));
    });
    world.service =
        ours(with_uid(build::service(&world.names, world.profile.as_ref().unwrap(), true), "service-uid"));
    world.kept.backups = Some(vec![complete()]);
    with_engine(world, &json!({"running": {}}), 60)
}

/// The Backup that is gone back to.
fn complete() -> Backup {
    let whole = json!({"apiVersion": "freehold.dev/v1alpha1", "kind": "Backup",
        "metadata": {"name": BACKUP, "namespace": "team-a"}, "spec": {"databaseName": "orders"},
        "status": {"snapshotID": "snap-1", "completedAt": before(50)}});
    serde_json::from_value(whole).unwrap()
}

/// The engine's container is so in the pod, which was created so many minutes ago.
fn with_engine(mut world: Observed, state: &Value, minutes: i64) -> Observed {
    let pod = world.pod.take().unwrap();
    let shown = json!({"phase": "Running", "containerStatuses": [container_status(state.clone())]});
    let mut pod = pod_with(pod, shown);
    pod.metadata.creation_timestamp = Some(Time(before(minutes)));
    world.pod = Some(pod);
    world
}

fn plan_of(world: &Observed) -> String {
    line(&plan(world, now()))
}

fn after(world: &Observed) -> DatabaseStatus {
    let acted = Acted::new(world.database.clone());
    status(world, &Decided::of(world, &plan(world, now()), &acted), &acted, now())
}

fn record_after(world: &Observed) -> Option<Upgrade> {
    after(world).upgrade.map(|upgrade| *upgrade)
}

/// The world with the record as this pass leaves it.
fn passed(mut world: Observed) -> Observed {
    let shown = record_after(&world).map(Box::new);
    world.database.status.as_mut().unwrap().upgrade = shown;
    world
}

fn since(world: &Observed) -> Option<Timestamp> {
    record_after(world).unwrap().startable_at.map(|at| at.0)
}

#[test]
fn a_record_from_before_says_nothing_of_the_time_of_another_pod() {
    let tried = trying(json!({}));
    assert_eq!(plan_of(&tried), GOES_BACK);
    let rewound = with_engine(trying(json!({"tried": {"podUID": "pod-then"}})), &json!({"running": {}}), 10);
    assert!(!plan_of(&rewound).contains("go back"), "{}", plan_of(&rewound));
    assert_eq!(since(&rewound), Some(before(10)), "the time of this pod is counted");
    let in_time = passed(rewound.clone());
    assert!(!plan_of(&in_time).contains("go back"), "{}", plan_of(&in_time));
    assert_eq!(
        plan_of(&with_engine(
            passed(with_engine(rewound, &json!({"running": {}}), 30)),
            &json!({"running": {}}),
            30
        )),
        GOES_BACK
    );

    let mut absent = trying(json!({"tried": {"podUID": "pod-then"}}));
    absent.pod = None;
    assert!(!plan_of(&absent).contains("go back"), "{}", plan_of(&absent));
    assert_eq!(since(&absent), Some(now()));
}

#[test]
fn a_pod_that_was_seen_to_end_leaves_its_time_to_the_next_one() {
    let mut ending = trying(json!({"startableAt": before(20)}));
    deleting(ending.pod.as_mut().unwrap(), now().as_second() + 30);
    let ending = passed(ending);
    let mut next = ending.clone();
    let pod = next.pod.as_mut().unwrap();
    (pod.metadata.uid, pod.metadata.deletion_timestamp) = (Some("pod-next".to_owned()), None);
    pod.metadata.creation_timestamp = Some(Time(before(0)));
    assert_eq!(since(&next), Some(before(20)));
    let mut absent = ending;
    absent.pod = None;
    assert_eq!(since(&absent), Some(before(20)));
    let shown = absent.database.status.as_mut().unwrap().upgrade.as_mut().unwrap();
    shown.startable_at = Some(Time(before(30)));
    assert_eq!(plan_of(&absent), GOES_BACK, "no pod comes");
}

#[test]
fn a_record_from_before_says_nothing_of_another_volume_or_of_clients_that_were_let_in() {
    type Case = (&'static str, fn(&mut Observed));
    let cases: [Case; 2] = [
        ("another volume", |world| {
            change(&mut world.volume, |volume| {
                volume.status.as_mut().unwrap().volume_id = Some(VolumeId("vol-2".to_owned()));
            });
        }),
        ("an open Service", |world| {
            let profile = world.profile.clone().unwrap();
            world.service = ours(with_uid(build::service(&world.names, &profile, false), "service-uid"));
        }),
    ];
    let going_back =
        json!({"wentBack": {"at": before(1), "message": "it did not serve", "dataRestored": true}});
    for (name, alter) in cases {
        for record in [json!({}), going_back.clone()] {
            let mut world = trying(record);
            alter(&mut world);
            assert_eq!(plan_of(&world), "[] Progressing", "{name}");
            assert_eq!(record_after(&world), None, "{name}");
        }
    }
    let mut unknown = trying(json!({}));
    change(&mut unknown.volume, |volume| volume.status.as_mut().unwrap().volume_id = None);
    assert_eq!(plan_of(&unknown), GOES_BACK, "what is not known is no other volume");
}

/// The kubelet has no image to start in the pod since so many minutes.
fn without_image(world: Observed, minutes: i64) -> Observed {
    let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}});
    with_engine(world, &waiting, minutes)
}

/// The same world after an edit of spec.engine.
fn requesting(mut world: Observed, version: &str) -> Observed {
    world.database.spec.engine = serde_json::from_value(of_version(version)).unwrap();
    world.profile = engine::profile(&world.database.spec.engine, &world.database.spec.config);
    world
}

fn written(world: &Observed) -> Option<Upgrade> {
    plan(world, now()).actions.into_iter().find_map(|action| {
        let Action::RecordUpgrade(record) = action else { return None };
        Some(*record)
    })
}

#[test]
fn an_image_that_a_later_pod_lacks_says_nothing_of_what_the_first_one_has_started() {
    let first = without_image(trying(json!({})), 60);
    assert!(plan_of(&first).contains("go back from Some"), "{}", plan_of(&first));
    assert_eq!(written(&requesting(first.clone(), SERVED)), None, "nothing was started");

    let later = without_image(trying(json!({"tried": {"podUID": "pod-uid", "later": true}})), 60);
    assert_eq!(plan_of(&later), GOES_BACK);
    assert_eq!(plan_of(&requesting(later, SERVED)), GOES_BACK);
    let unseen = without_image(trying(json!({"tried": {"podUID": "pod-first"}})), 40);
    assert!(!plan_of(&unseen).contains("go back"), "{}", plan_of(&unseen));
    assert_eq!(plan_of(&passed(unseen)), GOES_BACK);
}

#[test]
fn what_may_have_started_is_not_forgotten_where_a_later_version_is_requested() {
    let next = |world: &Observed| written(&requesting(world.clone(), "9.3.6")).unwrap();
    let json = |record: &Upgrade| serde_json::to_value(record).unwrap()["tried"].clone();
    assert_eq!(json(&next(&without_image(trying(json!({})), 60))), Value::Null);
    let started = next(&trying(json!({})));
    assert_eq!(json(&started)["podUID"], "pod-uid");
    let unseen = next(&trying(json!({"tried": null})));
    let mut world = without_image(requesting(trying(json!({})), "9.3.6"), 60);
    for record in [started, unseen] {
        world.database.status.as_mut().unwrap().upgrade = Some(Box::new(record));
        let set = build::stateful_set(&world.database, &world.names, world.profile.as_ref().unwrap(), 1);
        let mut pod = pod_of(&set);
        pod.metadata.uid = Some("pod-next".to_owned());
        (world.pod, world.stateful_set) = (Some(pod), ours(seen(with_uid(set, "set-uid"))));
        as_applied(&mut world);
        let next = passed(without_image(world.clone(), 60));
        assert!(!plan_of(&next).contains("go back from Some"), "{}", plan_of(&next));
    }
}

/// The engine of before serves, and the spec requests the other one behind a backup. Nothing says what
/// serves.
fn unrecorded() -> Observed {
    let mut world = settled_as(json!({"engine": of_version(SERVED), "upgrade": {"timeoutMinutes": 30}}));
    world.database.status.as_mut().unwrap().first_ready_at = Some(Time(before(100)));
    requesting(world, TRIED)
}

/// What is otherwise in a world, and whether the engine stays as it is all the same.
type HeldCase = (&'static str, fn(&mut Observed), bool);

#[test]
fn an_engine_does_not_change_behind_a_backup_as_long_as_it_is_not_recorded_what_serves() {
    let held = plan(&unrecorded(), now());
    assert_eq!(line(&held), "[] stalled AwaitingBackup");
    let message = held.waiting.unwrap().message();
    assert!(message.contains("questdb/questdb:9.3.4") && message.contains("spec.upgrade"), "{message}");

    let cases: [HeldCase; 8] = [
        ("the status is lost", |world| world.database.status.as_mut().unwrap().first_ready_at = None, true),
        (
            "it does not serve now",
            |world| *world = with_engine(world.clone(), &json!({"running": {}}), 1),
            true,
        ),
        (
            "another client has changed the template",
            |world| {
                change(&mut world.stateful_set, |set| {
                    set.metadata.generation = Some(6);
                    let pod = set.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
                    pod.node_name = Some("other".to_owned());
                });
            },
            true,
        ),
        (
            "it has never served",
            |world| {
                world.database.status.as_mut().unwrap().first_ready_at = None;
                *world = with_engine(world.clone(), &json!({"running": {}}), 1);
            },
            false,
        ),
        ("no backup is requested", |world| world.database.spec.upgrade = None, false),
        (
            "only a setting changes",
            |world| {
                *world = requesting(world.clone(), SERVED);
                world.database.spec.config =
                    serde_json::from_value(json!({"cairo.max.uncommitted.rows": "1000"})).unwrap();
            },
            false,
        ),
        ("it is set back", |world| *world = requesting(world.clone(), SERVED), true),
        ("it is stopped", |world| world.pod = None, true),
    ];
    for (name, alter, is_held) in cases {
        let mut world = unrecorded();
        alter(&mut world);
        let line = plan_of(&world);
        assert_eq!(!line.contains("apply set") && !line.contains("restore set"), is_held, "{name}: {line}");
    }
    let set_back = requesting(unrecorded(), SERVED);
    assert_eq!(after(&set_back).served.unwrap().engine.version.as_deref(), Some(SERVED));
}

/// The engine is stopped since an hour for a Backup that has no snapshot yet.
fn backing_up(record: Value, backup: Value) -> Observed {
    let mut more = json!({"snapshotID": null, "startableAt": null, "tried": null});
    more.as_object_mut().unwrap().extend(record.as_object().unwrap().clone());
    let mut world = requesting(
        settled_as(json!({"engine": of_version(SERVED), "upgrade": {"timeoutMinutes": 30}})),
        TRIED,
    );
    let mut of_trial = trying(more);
    of_trial.database.status.as_mut().unwrap().applied = world.database.status.unwrap().applied;
    world.database.status = of_trial.database.status;
    (world.volume, world.service) = (of_trial.volume, of_trial.service);
    world.pod = None;
    change(&mut world.stateful_set, |set| {
        set.spec.as_mut().unwrap().replicas = Some(0);
        *set = seen(set.clone());
    });
    as_applied(&mut world);
    let mut whole = serde_json::to_value(complete()).unwrap();
    whole["status"] = backup;
    world.kept.backups = Some(vec![serde_json::from_value(whole).unwrap()]);
    world
}

/// The engine of before serves again, and this was recorded.
fn serving_again(record: &Upgrade, backup: Value) -> Observed {
    let mut world = backing_up(json!({}), backup);
    let before = settled_as(json!({"engine": of_version(SERVED)}));
    (world.pod, world.stateful_set, world.service) = (before.pod, before.stateful_set, before.service);
    world.database.status.as_mut().unwrap().upgrade = Some(Box::new(record.clone()));
    as_applied(&mut world);
    world
}

#[test]
fn a_snapshot_that_is_in_doubt_for_too_long_is_taken_once_more_by_itself() {
    let in_doubt = || {
        json!({"creation": {"attempt": 1, "startedAt": before(60), "inDoubtSince": before(60),
            "volumeID": "vol-1", "tags": {}}})
    };
    let given_up = written(&backing_up(json!({}), in_doubt())).unwrap();
    assert!(given_up.ended_at.is_some());
    let waits = serving_again(&given_up, in_doubt());
    let plan_now = plan(&waits, now());
    assert_eq!(line(&plan_now), "[] AwaitingBackup", "it is not known yet what became of the first one");
    let source = json!({"databaseUID": "", "volumeName": "", "volumeID": "vol-1", "fileSystem": "xfs",
        "engine": "questdb"});
    let known = json!({"snapshotID": "snap-2", "completedAt": before(0), "source": source});
    let again = written(&serving_again(&given_up, known.clone())).unwrap();
    assert_eq!((again.went_back.as_ref(), again.ended_at.as_ref()), (None, None));

    let mut second = backing_up(json!({}), in_doubt());
    let late = Upgrade { started_at: Time(before(65)), backup_name: BACKUP.to_owned(), ..again };
    second.database.status.as_mut().unwrap().upgrade = Some(Box::new(late));
    let held = written(&second).unwrap();
    assert_eq!(plan_of(&serving_again(&held, in_doubt())), "[] stalled WentBack", "a second time");
    let refused = written(&backing_up(json!({}), json!({}))).unwrap();
    assert_eq!(plan_of(&serving_again(&refused, json!({}))), "[] stalled WentBack", "it was not sent");
}

/// The StatefulSet and its pod as the engine of before has them.
fn of_former(world: &Observed) -> (StatefulSet, Pod) {
    let former = requesting(world.clone(), SERVED);
    let profile = former.profile.as_ref().unwrap();
    let set = seen(with_uid(build::stateful_set(&former.database, &former.names, profile, 1), "set-uid"));
    let mut pod = pod_of(&set);
    pod.metadata.uid = Some("pod-undone".to_owned());
    (set, pod)
}

#[test]
fn a_template_that_another_client_has_undone_leaves_the_way_back() {
    let world = trying(json!({}));
    let (former, pod) = of_former(&world);
    let mut undone = world.clone();
    undone.pod = Some(pod.clone());
    change(&mut undone.stateful_set, |set| {
        set.metadata.generation = Some(6);
        set.spec = former.spec.clone();
    });
    assert!(record_after(&undone).is_some(), "{}", plan_of(&undone));
    assert!(plan_of(&undone).contains("restore set"), "{}", plan_of(&undone));
    let mut restored = world.clone();
    restored.pod = Some(pod.clone());
    assert!(record_after(&restored).is_some(), "{}", plan_of(&restored));

    // Freehold itself has started it, as its spec could not be carried out.
    let mut refused = world;
    (refused.pod, refused.stateful_set) = (Some(pod), ours(former));
    as_applied(&mut refused);
    assert_eq!(record_after(&refused), None);
}
