//! What is looked at and said of the archive of the write-ahead log, and what the pod has of it.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::status::status_of;
use super::*;
use crate::api::VolumeId;
use crate::api::database::{WalArchiveState, WalArchiveStatus};
use crate::controller::contents::archived_to;
use crate::controller::database::plan::facts::template;
use crate::controller::database::plan::wal_archive as of_archive;
use crate::engine::archiver::Archiver;

const DESTINATION: &str = "s3://backups/postgresql";

fn spec(archive: &Value) -> Value {
    json!({"engine": {"type": "postgresql", "version": "17.6"}, "walArchive": archive})
}

fn archive() -> Value {
    json!({"destination": "s3://backups/postgresql", "secretName": "archive"})
}

/// A settled world whose engine was started with the archive.
fn started() -> Observed {
    let mut world = settled_as(spec(&archive()));
    let volume = VolumeId("vol-1".to_owned());
    let mut ebs = ready_volume(&world);
    ebs.status.as_mut().unwrap().volume_id = Some(volume.clone());
    world.volume = ours(ebs);
    let set = world.stateful_set.ours().unwrap().clone();
    let set = build::with_wal_archive(set, &world.database, Some(&volume));
    world.pod = Some(pod_of(&set));
    if let Some(status) = world.pod.as_mut().and_then(|pod| pod.status.as_mut()) {
        status.pod_ip = Some("10.0.0.7".to_owned());
    }
    world.stateful_set = ours(set);
    as_applied(&mut world);
    world
}

/// An engine that has archived nothing since it was started.
const BEGINS: Archiver = Archiver { is_on: true, has_failed: false, has_archived: false, waits: None };

fn says(is_on: bool, has_failed: bool) -> Archiver {
    let waits = has_failed.then_some(Duration::ZERO);
    Archiver { is_on, has_failed, has_archived: is_on && !has_failed, waits }
}

fn knows(world: &mut Observed, pod: &str, state: WalArchiveState) {
    let (pod_uid, destination) = (pod.to_owned(), DESTINATION.to_owned());
    let volume_id = VolumeId("vol-1".to_owned());
    let since = Time(now() - Duration::from_secs(3600));
    world.database.status.as_mut().unwrap().wal_archive =
        Some(WalArchiveStatus { pod_uid, destination, volume_id, state, since });
}

fn condition(world: &Observed) -> String {
    let status = status_of(world);
    let of_archive = status.conditions.iter().find(|it| it.type_ == "WalArchived");
    of_archive.map(|it| format!("{}/{}", it.status, it.reason)).unwrap_or_default()
}

/// The variables of the engine's container and the keys of the Secret that are mounted.
fn environment(world: &Observed) -> (Vec<String>, Vec<String>) {
    let set = template(world, world.profile.as_ref().unwrap(), None);
    let pod = set.spec.unwrap().template.spec.unwrap();
    let is_of_archive = |name: &str| name.starts_with("WAL_") || name.starts_with("AWS_");
    let variables = pod.containers[0].env.clone().unwrap();
    let variables = variables.into_iter().filter(|it| is_of_archive(&it.name));
    let secret = pod.volumes.unwrap().into_iter().find(|volume| volume.name == "wal-archive");
    let keys = secret.and_then(|it| it.secret?.items).unwrap_or_default();
    (
        variables.map(|it| format!("{}={}", it.name, it.value.unwrap())).collect(),
        keys.into_iter().map(|it| it.key).collect(),
    )
}

#[test]
fn an_engine_is_made_to_archive_a_first_file() {
    let mut world = started();
    let waits = Some(Duration::ZERO);
    for (answer, does) in [
        (BEGINS, "[switch the log of admin@10.0.0.7:5432] as wanted"),
        (Archiver { waits, ..BEGINS }, "[] as wanted"),
    ] {
        world.answers.archiver = Some(Some(answer));
        let plan = plan(&world, now());
        assert_eq!(line(&plan), does);
        assert_eq!(plan.requeue, Some(Duration::from_secs(60)));
    }
}

#[test]
fn an_engine_that_serves_is_asked_each_minute_and_changes_nothing() {
    let mut world = started();
    let (pod, access) = of_archive::question(&world).unwrap();
    assert_eq!((pod.as_str(), access.database.as_str()), ("pod-uid", "postgres"));
    for answer in [
        None,
        Some(None),
        Some(Some(says(true, false))),
        Some(Some(says(true, true))),
        Some(Some(says(false, false))),
    ] {
        world.answers.archiver = answer;
        let plan = plan(&world, now());
        assert_eq!(line(&plan), "[] as wanted");
        assert_eq!(plan.requeue, Some(Duration::from_secs(60)));
    }
    let mut unready = started();
    let status = unready.pod.as_mut().unwrap().status.as_mut().unwrap();
    status.conditions = None;
    assert_eq!(of_archive::question(&unready), None);
    assert_eq!(of_archive::question(&settled_as(spec(&archive()))), None, "it was started without");
}

#[test]
fn the_condition_says_whether_the_log_is_archived_and_remembers_it_while_the_engine_is_silent() {
    let plain = settled_as(json!({"engine": {"type": "postgresql", "version": "17.6"}}));
    assert_eq!(condition(&plain), "");
    let state = |state| Some((state, "pod-uid"));
    for (known, answer, expected) in [
        (None, None, "False/WalArchiveUnknown"),
        (None, Some(Some(says(true, false))), "True/AsExpected"),
        (None, Some(Some(says(true, true))), "False/WalArchiveFailing"),
        (None, Some(Some(says(false, false))), "False/WalArchiveProgramMissing"),
        (state(WalArchiveState::Archiving), None, "True/AsExpected"),
        (state(WalArchiveState::Failing), None, "False/WalArchiveFailing"),
        (state(WalArchiveState::Archiving), Some(None), "False/WalArchiveUnknown"),
        (None, Some(Some(BEGINS)), "False/WalArchiveUnknown"),
        (state(WalArchiveState::Archiving), Some(Some(BEGINS)), "True/AsExpected"),
        (Some((WalArchiveState::Archiving, "former-pod")), Some(Some(BEGINS)), "False/WalArchiveUnknown"),
        (Some((WalArchiveState::Failing, "former-pod")), Some(Some(BEGINS)), "False/WalArchiveUnknown"),
        (state(WalArchiveState::Failing), Some(Some(says(true, false))), "True/AsExpected"),
        (Some((WalArchiveState::Archiving, "former-pod")), None, "False/WalArchiveUnknown"),
    ] {
        let mut world = started();
        if let Some((state, pod)) = known {
            knows(&mut world, pod, state);
        }
        world.answers.archiver = answer;
        assert_eq!(condition(&world), expected, "{known:?} {answer:?}");
        assert!(status_of(&world).conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True"));
    }
}

#[test]
fn the_archive_of_a_former_destination_or_volume_is_not_that_which_the_spec_requests() {
    let archiving = || {
        let mut world = started();
        knows(&mut world, "pod-uid", WalArchiveState::Archiving);
        world
    };
    assert_eq!(condition(&archiving()), "True/AsExpected");
    let mut moved = archiving();
    moved.database.spec.wal_archive.as_mut().unwrap().destination = "s3://elsewhere".to_owned();
    let mut restored = archiving();
    let mut volume = restored.volume.ours().unwrap().clone();
    volume.status.as_mut().unwrap().volume_id = Some(VolumeId("vol-2".to_owned()));
    restored.volume = ours(volume);
    for world in [Box::new(moved), Box::new(restored)] {
        assert_eq!(condition(&world), "False/WalArchiveUnknown");
        assert!(status_of(&world).wal_archive.is_some(), "a backup of this moment has it as its archive");
    }
}

#[test]
fn since_when_it_is_so_is_kept_and_begins_anew_with_what_changes() {
    let mut world = started();
    knows(&mut world, "pod-uid", WalArchiveState::Failing);
    let known = world.database.status.as_ref().unwrap().wal_archive.clone();
    world.answers.archiver = Some(Some(says(true, true)));
    assert_eq!(status_of(&world).wal_archive, known);
    world.answers.archiver = Some(Some(says(true, false)));
    let now_archived = status_of(&world).wal_archive.unwrap();
    assert_eq!(now_archived.since, Time(crate::time::whole_second(now())));
    assert_eq!(now_archived.folder(), format!("{DESTINATION}/vol-1"));
    world.database.spec.wal_archive = None;
    assert_eq!(status_of(&world).wal_archive, None, "none is wanted");
}

#[test]
fn a_snapshot_says_where_the_log_goes_once_the_engine_keeps_all_of_it() {
    for (state, expected) in [
        (WalArchiveState::Archiving, Some(DESTINATION)),
        (WalArchiveState::Starting, Some(DESTINATION)),
        (WalArchiveState::Failing, Some(DESTINATION)),
        (WalArchiveState::ProgramMissing, None),
        (WalArchiveState::Unknown, None),
    ] {
        let mut world = started();
        let [volume, other] = ["vol-1", "vol-2"].map(|id| VolumeId(id.to_owned()));
        assert_eq!(archived_to(&world.database, &volume), None);
        knows(&mut world, "pod-uid", state);
        assert_eq!(archived_to(&world.database, &volume).as_deref(), expected, "{state:?}");
        assert_eq!(archived_to(&world.database, &other), None, "it is the folder of another volume");
    }
}

#[test]
fn the_pod_has_the_folder_of_its_volume_and_what_its_data_is_recovered_from() {
    let mut world = started();
    let own = ["WAL_ARCHIVE=s3://backups/postgresql", "WAL_ARCHIVE_FOLDER=vol-1", "WAL_ARCHIVE_INTERVAL=300"];
    let keys = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"].map(str::to_owned);
    assert_eq!(environment(&world), (own.map(str::to_owned).to_vec(), keys.to_vec()));

    world.database.spec.wal_archive = serde_json::from_value(json!({
        "destination": "s3://backups/postgresql", "endpointURL": "https://storage.example:9000",
        "region": "eu-west-1",
    }))
    .unwrap();
    world.database.status.as_mut().unwrap().restored = serde_json::from_value(json!({
        "snapshotID": "snap-1", "consistency": "CrashConsistent",
        "recovery": {
            "destination": "s3://backups/before", "volumeID": "vol-0",
            "until": {"time": "2026-11-25T10:14:59.900000Z"},
        },
    }))
    .unwrap();
    let (variables, keys) = environment(&world);
    let further = [
        "WAL_ARCHIVE_ENDPOINT=https://storage.example:9000",
        "AWS_DEFAULT_REGION=eu-west-1",
        "WAL_RECOVERY=snap-1",
        "WAL_RECOVERY_ARCHIVE=s3://backups/before",
        "WAL_RECOVERY_FOLDER=vol-0",
        "WAL_RECOVERY_TARGET=recovery_target_time=2026-11-25 10:14:59.9+00",
    ];
    assert_eq!(variables, [&own[..], &further].concat());
    assert_eq!(keys, Vec::<String>::new(), "the identity of the pod");
}

#[test]
fn what_cannot_archive_is_refused() {
    let rows = [
        (
            json!({"engine": {"type": "questdb", "version": "9.3.4"}}),
            "spec.walArchive is for PostgreSQL only",
        ),
        (json!({"config": {"WAL_Level": "Minimal"}}), "sets wal_level to minimal"),
        (json!({"walArchive": {"destination": "s3://"}}), "must be a bucket"),
        (json!({"walArchive": {"destination": "s3://a b"}}), "must be a bucket"),
        (
            json!({"walArchive": {"destination": "s3://a", "endpointURL": "http://a:99999"}}),
            "must be a bucket",
        ),
        (json!({"walArchive": {"destination": "s3://a", "endpointURL": "ftp://a"}}), "must be a bucket"),
    ];
    for (changes, says) in rows {
        let mut requested = spec(&archive());
        requested.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let plan = plan(&edited(requested), now());
        let wait = plan.waiting.unwrap();
        assert!(wait.is_stalled() && wait.message().contains(says), "{}", wait.message());
    }
}

/// The same, whose data is that of a backup and is to be recovered.
fn recovered() -> Observed {
    let mut world = started();
    let status = world.database.status.as_mut().unwrap();
    status.first_ready_at = None;
    status.restored = serde_json::from_value(json!({
        "snapshotID": "snap-1", "consistency": "CrashConsistent", "engineVersion": "17.6",
        "recovery": {"destination": "s3://backups/before", "volumeID": "vol-0", "until": {}},
    }))
    .unwrap();
    world
}

#[test]
fn a_template_of_another_volume_or_of_another_recovery_is_not_started() {
    let of_volume = |world: &Observed, volume: &str| {
        let pod = world.stateful_set.ours().unwrap().spec.as_ref().unwrap().template.spec.as_ref().unwrap();
        build::is_of_volume(&world.database, Some(&VolumeId(volume.to_owned())), pod)
    };
    let plain = settled_as(spec(&archive()));
    assert!(of_volume(&plain, "vol-1"), "it does not archive yet");
    assert!(of_volume(&started(), "vol-1"));
    assert!(!of_volume(&started(), "vol-2"));
    assert!(!of_volume(&recovered(), "vol-1"), "it would not recover");
    let mut stopped = recovered();
    let mut set = stopped.stateful_set.ours().unwrap().clone();
    set.spec.as_mut().unwrap().replicas = Some(0);
    stopped.stateful_set = ours(set);
    stopped.pod = None;
    let done = line(&plan(&stopped, now()));
    assert!(done.contains("apply set set-uid x1"), "a template that does is applied first: {done}");
}

#[test]
fn nothing_is_started_on_data_that_is_to_be_recovered_without_the_archive() {
    let mut world = recovered();
    world.database.spec.wal_archive = None;
    let wait = plan(&world, now()).waiting.unwrap();
    assert!(wait.is_stalled() && wait.message().contains("set that again"), "{}", wait.message());
    world.database.status.as_mut().unwrap().first_ready_at = Some(Time(now()));
    assert!(!plan(&world, now()).waiting.is_some_and(|it| it.is_stalled()), "it has served");
}

#[test]
fn data_that_is_recovered_gets_its_password_after_that_whatever_of_the_status_is_known() {
    let named = |world: &Observed| {
        let set = template(world, world.profile.as_ref().unwrap(), None);
        let engine = set.spec.unwrap().template.spec.unwrap().containers.remove(0);
        engine.env.unwrap().into_iter().any(|it| it.name == "POSTGRES_NEW_CREDENTIALS")
    };
    assert!(!named(&started()));
    assert!(named(&recovered()));
}
