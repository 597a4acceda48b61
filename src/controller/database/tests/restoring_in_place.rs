//! A Database whose data is replaced by that of a backup: what begins it, what refuses it, and what each step
//! rests on. Whole restores are in the model (`life/in_place.rs`).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::restoring::shown;
use super::*;
use crate::api::database::{RestoreWentBack, RestoredInPlace};
use crate::api::{DatabaseStatus, DeletionPolicy, Reason, VolumeId};
use crate::cloud::SnapshotState;
use crate::controller::database::in_place::{due, goes_on_with};
use crate::controller::database::observe::restore::RestoreView;
use crate::controller::database::status::{Decided, changes, status};
use crate::controller::pass::acted::Acted;

const RECORD: &str = "freehold-volume-uid";

/// A settled world whose spec asks for the data of this backup.
fn requesting(spec: Value, view: RestoreView) -> Observed {
    let mut whole = json!({"restoreInPlace": {"generation": 1, "backupName": "nightly"}});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let mut world = settled_as(whole);
    change(&mut world.volume, |volume| {
        volume.spec.restore_generation = None;
        let status = volume.status.as_mut().unwrap();
        status.volume_id = Some(VolumeId("vol-1".to_owned()));
        status.persistent_volume_name = Some(RECORD.to_owned());
    });
    world.database.status.as_mut().unwrap().engine_version = Some("9.3.4".to_owned());
    world.kept.restore = view;
    world
}

fn fitting() -> RestoreView {
    shown(SnapshotState::Completed, "team-a")
}

fn plan_of(world: &Observed) -> String {
    line(&plan(world, now()))
}

/// The record that begins it.
fn begun(world: &Observed) -> RestoredInPlace {
    let actions = plan(world, now()).actions;
    let [Action::RecordRestoreInPlace(record)] = actions.as_slice() else { panic!("{actions:?}") };
    record.as_ref().clone()
}

/// The world in which this is recorded.
fn recorded(mut world: Observed, record: &RestoredInPlace) -> Observed {
    world.database.status.as_mut().unwrap().restored_in_place = Some(Box::new(record.clone()));
    world.kept.restore = RestoreView::NotRead;
    world
}

/// The engine has stopped.
fn stopped(mut world: Observed) -> Observed {
    world.pod = None;
    change(&mut world.stateful_set, |set| {
        set.spec.as_mut().unwrap().replicas = Some(0);
        *set = seen(set.clone());
    });
    as_applied(&mut world);
    world
}

/// The Volume of the backup has taken the place of the former one, and a pod runs on it since so many
/// seconds.
fn replaced(world: Observed, record: &RestoredInPlace, seconds: i64, is_ready: bool) -> Observed {
    let mut world = recorded(world, record);
    goes_on_with(world.database.status.as_mut().unwrap(), record);
    let profile = world.profile.clone().unwrap();
    let set = seen(with_uid(build::stateful_set(&world.database, &world.names, &profile, 1), "set-uid"));
    let mut pod = pod_of(&set);
    pod.metadata.creation_timestamp = Some(Time(at(now().as_second() - seconds)));
    if !is_ready {
        let shown =
            json!({"phase": "Running", "containerStatuses": [container_status(json!({"running": {}}))]});
        pod = pod_with(pod, shown);
    }
    (world.pod, world.stateful_set) = (Some(pod), ours(set));
    let volume = build::volume_in_place(&world.database, &world.names, record);
    let ready =
        json!({"observedGeneration": 1, "conditions": good(&["Ready", "Created", "Bound", "Modified"])});
    let mut volume = volume_with(volume, ready);
    volume.metadata.uid = Some("other-uid".to_owned());
    world.volume = ours(volume);
    world.kept.record = Some(retained(None));
    as_applied(&mut world);
    world
}

/// The retention record of the former data.
fn retained(holder: Option<&str>) -> k8s_openapi::api::core::v1::PersistentVolume {
    let mut record = json!({
        "metadata": {"name": RECORD, "labels": {"freehold.dev/retained": "true",
            "freehold.dev/volume-uid": "volume-uid", "freehold.dev/database-uid": UID},
            "annotations": {"freehold.dev/database": "team-a/orders"}},
        "spec": {"capacity": {"storage": "100Gi"},
            "claimRef": {"namespace": "team-a", "name": "orders-gqmgm"},
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1", "fsType": "xfs"}},
    });
    if let Some(holder) = holder {
        record["metadata"]["annotations"]["freehold.dev/adopted-by"] = json!(holder);
    }
    serde_json::from_value(record).unwrap()
}

fn shown_record(world: &Observed) -> (DatabaseStatus, Vec<String>) {
    let (plan, acted) = (plan(world, now()), Acted::new(world.database.clone()));
    let decided = Decided::of(world, &plan, &acted);
    let new = status(world, &decided, &acted, now());
    let old = world.database.status.clone().unwrap();
    let events = changes(&old, &new, &decided).into_iter().map(|it| format!("{:?}", it.reason)).collect();
    (new, events)
}

#[test]
fn it_begins_only_with_a_backup_that_fits_and_where_the_engine_could_be_started() {
    let as_is = json!({});
    let begins = "[restore in place snap-1] Restoring";
    for (situation, spec, view, expected) in [
        ("the backup fits", as_is.clone(), fitting(), begins),
        ("not listed yet", as_is.clone(), RestoreView::NotListedYet, "[] AwaitingInventory"),
        ("not complete", as_is.clone(), shown(SnapshotState::Pending, "team-a"), "[] Restoring"),
        (
            "no backup",
            as_is.clone(),
            RestoreView::NoBackup("nightly".to_owned()),
            "[] stalled RestoreRefused",
        ),
        (
            "of another tenant",
            as_is.clone(),
            shown(SnapshotState::Completed, "team-b"),
            "[] stalled RestoreRefused",
        ),
        (
            "of a newer version",
            json!({"engine": {"type": "questdb", "version": "9.3.3"}}),
            fitting(),
            "[] stalled InvalidSpec",
        ),
        ("another spec is invalid", json!({"instanceTypes": []}), fitting(), "[] stalled InvalidSpec"),
    ] {
        let mut world = requesting(spec, view);
        if situation == "not listed yet" {
            assert!(plan(&world, now()).requeue.is_some(), "EC2's lists wake no Database");
        }
        assert_eq!(plan_of(&world), expected, "{situation}");
        // Whatever keeps it from beginning, the engine goes on, and one that fails is no reason to be silent.
        if expected.contains("RestoreRefused") {
            let pod = world.pod.take().unwrap();
            world.pod = Some(pod_with(
                pod,
                json!({"phase": "Running",
                "containerStatuses": [container_status(json!({"running": {}}))]}),
            ));
            assert_eq!(plan_of(&world), expected, "{situation}, and the engine does not serve");
        }
    }
}

#[test]
fn an_older_version_and_its_data_come_back_in_one_edit() {
    let older = json!({"engine": {"type": "questdb", "version": "9.3.3"}});
    let RestoreView::Shown(mut snapshot) = fitting() else { panic!() };
    snapshot.tags.insert("freehold.dev/engine-version".to_owned(), "9.3.3".to_owned());
    let world = requesting(older, RestoreView::Shown(snapshot));
    let record = begun(&world);
    let serving = replaced(world, &record, 10, true);
    assert_eq!(serving.database.status.as_ref().unwrap().engine_version.as_deref(), Some("9.3.3"));
    assert_eq!(plan_of(&serving), "[apply service service-uid] Progressing");
}

#[test]
fn a_paused_database_says_that_it_waits_and_each_generation_is_restored_once() {
    let mut paused = requesting(json!({"running": false}), fitting());
    (paused.nodes, paused.core_nodes, paused.labelled) = (Vec::new(), Vec::new(), Vec::new());
    paused = stopped(paused);
    assert_eq!(plan_of(&paused), "[] Paused");

    let world = requesting(json!({}), fitting());
    let record = begun(&world);
    let volume = |generation: Option<i64>| {
        let mut volume = world.volume.ours().unwrap().clone();
        volume.spec.restore_generation = generation;
        volume
    };
    let is_due = |world: &Observed, generation| due(&world.database, &volume(generation)).is_some();
    assert!(is_due(&world, None));
    assert!(!is_due(&world, Some(1)), "the Volume knows it where the status is lost");
    let mut ended = record.clone();
    ended.ended_at = Some(Time(now()));
    let mut again = recorded(requesting(json!({}), fitting()), &ended);
    assert!(!is_due(&again, None), "the status knows it");
    again.database.spec.restore_in_place.as_mut().unwrap().generation = 2;
    assert!(is_due(&again, Some(1)));
    again.database.status.as_mut().unwrap().restored_in_place.as_mut().unwrap().ended_at = None;
    assert!(!is_due(&again, Some(1)), "not while another one is underway");
    let made = build::volume(&world.database, &world.names, ZONE);
    assert_eq!(made.spec.restore_generation, Some(1), "a Database that is created has nothing to replace");
}

#[test]
fn the_engine_stops_before_its_volume_goes_and_the_volume_is_retained_whatever_the_policy() {
    let world = requesting(json!({"deletionPolicy": "Delete"}), fitting());
    let record = begun(&world);
    let running = recorded(world, &record);
    assert_eq!(plan_of(&running), "[scale set-uid to 0] AwaitingStop");
    let going = stopped(running);
    let marked = plan(&going, now());
    let [Action::UpdateVolume(_, patch)] = marked.actions.as_slice() else { panic!("{:?}", marked.actions) };
    assert_eq!(*patch, json!({"deletionDecided": true, "deletionPolicy": "Retain", "replaced": true}));
    let mut going = going;
    change(&mut going.volume, |volume| volume.spec.deletion_decided = true);
    change(&mut going.volume, |volume| volume.spec.deletion_policy = DeletionPolicy::Retain);
    let unmarked = plan(&going, now());
    let ends = |action: &Action| matches!(action, Action::DeleteVolume(_));
    assert!(!unmarked.actions.iter().any(ends), "a definition of before this field has dropped it");
    change(&mut going.volume, |volume| volume.spec.replaced = true);
    assert_eq!(plan_of(&going), "[delete volume-uid] Restoring");
    let mut gone = going;
    gone.volume = Child::Absent;
    assert_eq!(plan_of(&gone), "[record data, create volume 100Gi in us-east-1b] AwaitingVolume");
}

#[test]
fn the_pod_starts_from_a_template_of_the_backup_whatever_else_is_due() {
    let world = requesting(json!({}), fitting());
    let record = begun(&world);
    let before = stopped(recorded(world, &record));
    let mut there = replaced(before.clone(), &record, 0, false);
    (there.pod, there.stateful_set) = (None, before.stateful_set.clone());
    there.database.status.as_mut().unwrap().applied = before.database.status.unwrap().applied;
    let recovers = |world: &Observed| {
        let profile = world.profile.clone().unwrap();
        plan(world, now()).actions.iter().any(|action| {
            let Action::ApplyStatefulSet(set) = action else { return matches!(action, Action::Scale(_, 0)) };
            let pod = set.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
            build::recovers(&world.database, &profile, pod)
        })
    };
    assert!(recovers(&there), "{}", plan_of(&there));
    there.database.spec.access.password_generation = Some(2);
    let Credentials::Read(Child::Ours(secret)) = &mut there.credentials else { panic!() };
    let mut whole = serde_json::to_value(&secret.0).unwrap();
    json_patch::merge(&mut whole, &build::with_next(&secret.0, &Password::fixed(), 2));
    secret.0 = serde_json::from_value(whole).unwrap();
    assert!(recovers(&there), "with another password: {}", plan_of(&there));
}

#[test]
fn it_has_ended_when_the_engine_accepts_connections_with_the_data_of_the_backup() {
    let world = requesting(json!({}), fitting());
    let record = begun(&world);
    let (starting, starting_events) = shown_record(&replaced(world.clone(), &record, 10, false));
    let shown = starting.restored_in_place.unwrap();
    assert_eq!((shown.startable_at.map(|it| it.0), shown.ended_at), (Some(at(now().as_second() - 10)), None));
    assert!(!starting_events.contains(&"RestoredInPlace".to_owned()));
    let serving = replaced(world, &record, 10, true);
    let closing = "[apply service service-uid] Progressing";
    assert_eq!(plan_of(&serving), closing, "no client is let in before the end is recorded");
    let (ended, events) = shown_record(&serving);
    assert_eq!(ended.restored_in_place.unwrap().ended_at, Some(Time(now())));
    assert!(events.contains(&"RestoredInPlace".to_owned()), "{events:?}");
}

#[test]
fn the_database_goes_back_where_the_engine_has_not_served_in_time_and_the_former_data_is_there() {
    let world = requesting(json!({}), fitting());
    let mut record = begun(&world);
    let goes_back = |world: &Observed| plan_of(world).contains("go back from snap-1");
    let of = |minutes: i64, record: &RestoredInPlace| {
        let mut record = record.clone();
        record.startable_at = Some(Time(at(now().as_second() - 60 * minutes)));
        replaced(requesting(json!({}), fitting()), &record, 60 * minutes, false)
    };
    assert!(!goes_back(&of(59, &record)));
    let late = of(60, &record);
    assert!(goes_back(&late));
    let change = |change: fn(&mut Observed)| {
        let mut world = late.clone();
        change(&mut world);
        goes_back(&world)
    };
    assert!(!change(|world| world.kept.record = None), "there is no way back");
    assert!(!change(|world| world.kept.record = Some(retained(Some("other/uid")))), "another one has it");
    assert!(!change(|world| world.database.spec.running = false), "it is paused");
    record.timeout_minutes = Some(90);
    assert!(!goes_back(&of(60, &record)));
    let mut early = of(1, &record);
    early.database.spec.restore_in_place = None;
    assert!(goes_back(&early), "its user has taken it back");
}

#[test]
fn the_way_back_takes_the_former_volume_by_its_record() {
    let world = requesting(json!({}), fitting());
    let record = begun(&world);
    let late = replaced(world, &record, 4000, false);
    let mut back = record;
    back.went_back = Some(crate::api::database::RestoreWentBack {
        at: Time(now()),
        message: "it did not start".to_owned(),
    });
    let going = recorded(late, &back);
    assert_eq!(plan_of(&going), "[scale set-uid to 0] AwaitingStop");
    let mut gone = stopped(going);
    gone.volume = Child::Absent;
    let free = "[hold freehold-volume-uid, record data, create volume 100Gi in us-east-1b] AwaitingVolume";
    assert_eq!(plan_of(&gone), free);
    gone.kept.record = Some(retained(Some(&format!("orders/{UID}"))));
    assert_eq!(plan_of(&gone), free.replace("hold freehold-volume-uid, ", ""));
    gone.kept.record = Some(retained(Some("other/uid")));
    assert_eq!(plan_of(&gone), "[] stalled VolumeLost");
    gone.kept.record = None;
    assert_eq!(plan_of(&gone), "[] stalled VolumeLost");

    let mut ended = back.clone();
    ended.ended_at = Some(Time(now()));
    let told = plan(&recorded(requesting(json!({}), RestoreView::NotRead), &ended), now()).waiting.unwrap();
    assert_eq!((told.reason(), told.is_stalled()), (Reason::WentBack, true));
    let mut removed = recorded(requesting(json!({}), RestoreView::NotRead), &ended);
    removed.database.spec.restore_in_place = None;
    assert_eq!(plan_of(&removed), "[] as wanted");
}

#[test]
fn data_that_it_went_back_to_ends_it_whether_that_serves_or_not_and_another_generation_follows() {
    let world = requesting(json!({}), fitting());
    let mut back = begun(&world);
    back.went_back = Some(RestoreWentBack { at: Time(now()), message: "it did not start".to_owned() });
    let failing = replaced(world, &back, 10, false);
    let (after, _) = shown_record(&failing);
    assert_eq!(after.restored_in_place.as_ref().unwrap().ended_at, Some(Time(now())));
    let mut again = recorded(requesting(json!({}), fitting()), &after.restored_in_place.unwrap());
    again.database.spec.restore_in_place.as_mut().unwrap().generation = 2;
    again.kept.restore = fitting();
    assert_eq!(begun(&again).generation, 2);
}

#[test]
fn a_higher_generation_ends_one_that_is_underway() {
    let world = requesting(json!({}), fitting());
    let record = begun(&world);
    let mut starting = replaced(world, &record, 10, false);
    starting.database.spec.restore_in_place.as_mut().unwrap().generation = 2;
    assert!(plan_of(&starting).contains("go back from snap-1"));
    starting.kept.record = None;
    let actions = plan(&starting, now()).actions;
    let [Action::RecordRestoreInPlace(given_up)] = actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!((given_up.ended_at.is_some(), &given_up.went_back), (true, &None), "there is no way back");
}

#[test]
fn a_pod_that_another_client_has_started_from_the_template_of_before_is_stopped() {
    let world = requesting(json!({}), fitting());
    let record = begun(&world);
    let before = recorded(world, &record);
    let mut wrong = replaced(before.clone(), &record, 10, true);
    (wrong.pod, wrong.stateful_set) = (before.pod.clone(), before.stateful_set.clone());
    wrong.database.status.as_mut().unwrap().applied =
        before.database.status.as_ref().unwrap().applied.clone();
    assert_eq!(plan_of(&wrong), "[scale set-uid to 0] AwaitingStop");
    let (after, _) = shown_record(&wrong);
    assert_eq!(after.restored_in_place.unwrap().ended_at, None, "it has not recovered from the backup");
    let mut absent = before;
    absent.volume = Child::Absent;
    assert_eq!(plan_of(&absent), "[scale set-uid to 0] AwaitingStop");
}

#[test]
fn a_volume_that_cannot_be_created_is_no_reason_to_wait_for() {
    let world = requesting(json!({}), fitting());
    let record = begun(&world);
    let mut refused = stopped(replaced(world, &record, 10, false));
    let conditions = json!({"observedGeneration": 1, "conditions": [
        condition("Ready", "False", "CreationRefused", "the snapshot does not exist"),
        condition("Stalled", "True", "CreationRefused", "the snapshot does not exist")]});
    change(&mut refused.volume, |volume| {
        volume.status = Some(serde_json::from_value(conditions).unwrap());
    });
    assert!(plan_of(&refused).contains("go back from snap-1"), "{}", plan_of(&refused));
}
