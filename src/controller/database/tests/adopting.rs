//! A Database that takes over a kept volume: the record is held before anything is made, and the credentials
//! are those of the data.

use k8s_openapi::api::core::v1::PersistentVolume;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::*;
use crate::api::{ConditionType, Reason};
use crate::controller::conditions;
use crate::controller::database::plan::plan;
use crate::controller::database::status::{Decided, changes, status};
use crate::controller::pass::acted::Acted;
use crate::controller::retention;

const RECORD: &str = "freehold-5a1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a99";

fn record(holder: Option<&str>) -> PersistentVolume {
    let mut record: PersistentVolume = serde_json::from_value(json!({
        "metadata": {
            "name": RECORD, "uid": "record-uid", "resourceVersion": "7",
            "labels": {
                "freehold.dev/retained": "true",
                "freehold.dev/volume-uid": "5a1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a99",
                "freehold.dev/database": "orders", "freehold.dev/database-uid": "former",
                "app.kubernetes.io/name": "questdb",
            },
            "annotations": {"freehold.dev/database": "team-a/orders",
            "freehold.dev/retained-at": "2026-11-22T01:00:00Z"},
        },
        "spec": {
            "capacity": {"storage": "100Gi"},
            "claimRef": {"namespace": "team-a", "name": "orders-aaaaa", "uid": "gone"},
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-9", "fsType": "xfs"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [ZONE]},
            ]}]}},
        },
        "status": {"phase": "Released"},
    }))
    .unwrap();
    if let Some(holder) = holder {
        record.annotations_mut().insert("freehold.dev/adopted-by".to_owned(), holder.to_owned());
    }
    record
}

fn own() -> String {
    format!("orders/{UID}")
}

fn kept_secret() -> Child<HeldSecret> {
    let mut secret = with_uid(secret_with(b"the-password-of-the-data"), "kept-uid");
    secret.metadata.name = Some("orders-aaaaa-admin".to_owned());
    ours(HeldSecret(secret))
}

/// A new Database that asks for the volume of this record.
fn asking(record: Option<PersistentVolume>, status: Value) -> Observed {
    let mut world = empty(json!({"storage": {"size": "100Gi", "adoptRetained": RECORD}}), status);
    world.kept.record = record;
    world.kept.credentials = Credentials::Read(kept_secret());
    world
}

/// The Secret that was made from the kept one.
fn taken(world: &Observed) -> Credentials {
    let profile = world.profile.as_ref().unwrap();
    let Child::Ours(kept) = kept_secret() else { unreachable!() };
    Credentials::Read(ours(HeldSecret(with_uid(
        build::taken_over(&world.names, profile, &kept.0, RECORD),
        "secret-uid",
    ))))
}

fn planned(world: &Observed) -> String {
    line(&plan(world, now()))
}

#[test]
fn the_record_is_held_before_anything_is_made_then_zone_and_credentials_follow_then_the_house() {
    assert_eq!(planned(&asking(Some(record(None)), json!({}))), format!("[hold {RECORD}] Adopting"));
    let mut world = asking(Some(record(Some(&own()))), json!({}));
    assert_eq!(planned(&world), format!("[record {ZONE}, take credentials of orders-aaaaa-admin] Adopting"));
    world = asking(Some(record(Some(&own()))), json!({"zone": ZONE}));
    assert_eq!(planned(&world), "[take credentials of orders-aaaaa-admin] Adopting");
    world.credentials = taken(&world);
    let expected = format!(
        "[apply config new, create account new, apply service new, apply policy new, apply budget new, create node 1 \
        orders-gqmgm-1 in {ZONE}] AwaitingNode"
    );
    let config =
        if build::config_map(&world.database, &world.names, world.profile.as_ref().unwrap()).is_some() {
            ""
        } else {
            "apply config new, "
        };
    assert_eq!(planned(&world), expected.replace(config, ""));
    world.nodes = vec![node_with(build::node(&world.database, &world.names, 1, Some(ZONE)), json!({}))];
    let made = plan(&world, now());
    let volume = made
        .actions
        .iter()
        .find_map(|action| if let Action::CreateVolume(volume) = action { Some(volume) } else { None });
    assert_eq!(volume.unwrap().spec.adopt_retained.as_deref(), Some(RECORD));
}

#[test]
fn of_two_databases_one_has_it_and_the_other_costs_nothing() {
    let other = || Some(record(Some("orders-2/another-uid")));
    assert_eq!(planned(&asking(other(), json!({}))), "[] stalled AdoptionRefused");
    let mut world = asking(other(), json!({}));
    world.kept.holder_is_gone = true;
    assert_eq!(planned(&world), format!("[hold {RECORD}] Adopting"), "who held it is gone");
    world.kept.former_exists = true;
    assert_eq!(planned(&world), "[] Adopting", "the former Volume's own deletion is awaited");
}

#[test]
fn what_cannot_be_had_is_told_and_nothing_is_made() {
    let refused = "[] stalled AdoptionRefused";
    assert_eq!(planned(&asking(None, json!({}))), refused);
    let mut foreign = record(None);
    foreign.annotations_mut().insert("freehold.dev/database".to_owned(), "team-b/orders".to_owned());
    assert_eq!(planned(&asking(Some(foreign), json!({}))), refused);
    let mut world = asking(Some(record(Some(&own()))), json!({"zone": ZONE}));
    for credentials in [
        Credentials::Read(Child::Absent),
        Credentials::Read(Child::Foreign),
        Credentials::Unreadable("forbidden".to_owned()),
        Credentials::Read(ours(HeldSecret(secret_with(b"short")))),
    ] {
        world.kept.credentials = credentials;
        assert_eq!(planned(&world), refused, "{:?}", world.kept.credentials);
        let message = plan(&world, now()).waiting.unwrap().message();
        assert!(message.contains("orders-aaaaa-admin"), "{message}");
        let mut renewed = world.clone();
        renewed.database.spec.storage.new_credentials = true;
        assert_eq!(planned(&renewed), "[create credentials] Adopting", "{:?}", renewed.kept.credentials);
    }
}

#[test]
fn the_credentials_are_those_of_the_data_under_this_databases_names() {
    let world = asking(Some(record(Some(&own()))), json!({"zone": ZONE}));
    let Credentials::Read(Child::Ours(secret)) = taken(&world) else { unreachable!() };
    let value = |key: &str| String::from_utf8(secret.0.data.as_ref().unwrap()[key].0.clone()).unwrap();
    assert_eq!(
        (value("username"), value("password")),
        ("admin".to_owned(), "the-password-of-the-data".to_owned())
    );
    assert_eq!(value("uri"), "postgresql://admin:the-password-of-the-data@orders.team-a.svc:8812/qdb");
    assert_eq!(secret.0.labels()["freehold.dev/database-uid"], UID);
    let mut odd = secret_with(b"p@ss/word:of%the-data");
    odd.metadata.name = Some("orders-aaaaa-admin".to_owned());
    let odd = build::taken_over(&world.names, world.profile.as_ref().unwrap(), &odd, RECORD);
    let uri = String::from_utf8(odd.data.unwrap()["uri"].0.clone()).unwrap();
    assert!(uri.contains("admin:p%40ss%2Fword%3Aof%25the-data@"), "{uri}");
}

#[test]
fn the_kept_secret_goes_once_the_volume_has_the_disk_and_the_line_may_go_then_too() {
    let mut world = settled_as(json!({"storage": {"size": "100Gi"}}));
    world.credentials = taken(&world);
    world.kept.credentials = Credentials::Read(kept_secret());
    world.kept.record = Some(record(Some(&own())));
    change(&mut world.volume, |volume| {
        volume.spec.adopt_retained = Some(RECORD.to_owned());
        volume.status.as_mut().unwrap().volume_id = Some(crate::api::VolumeId("vol-9".to_owned()));
    });
    assert_eq!(planned(&world), "[] as wanted", "the record is there: the Volume is not through");
    world.kept.record = None;
    assert_eq!(planned(&world), "[delete kept orders-aaaaa-admin kept-uid] as wanted");
    world.kept.credentials = Credentials::Read(Child::Absent);
    assert_eq!(planned(&world), "[] as wanted");
}

#[test]
fn a_deletion_gives_back_a_record_that_was_held_and_leaves_its_secret_there() {
    let end = "delete secret-uid, remove finalizer] Deleting";
    for policy in ["Retain", "Delete"] {
        let mut world = asking(Some(record(Some(&own()))), json!({"zone": ZONE}));
        world.database.spec.deletion_policy = if policy == "Retain" {
            crate::api::DeletionPolicy::Retain
        } else {
            crate::api::DeletionPolicy::Delete
        };
        deleting(&mut world.database, 1);
        assert_eq!(planned(&world), format!("[give back {RECORD}, remove finalizer] Deleting"), "{policy}");
        world.credentials = taken(&world);
        assert_eq!(
            planned(&world),
            format!("[give back {RECORD}, {end}"),
            "{policy}: what was kept stays kept"
        );
        // The Volume took the disk, and has dealt with it as the policy says.
        world.kept.record = None;
        let keep = if policy == "Retain" { "keep orders-admin, " } else { "" };
        assert_eq!(
            planned(&world),
            format!("[{keep}delete kept orders-aaaaa-admin kept-uid, {end}"),
            "{policy}"
        );
    }
}

#[test]
fn a_database_under_the_name_of_retained_data_is_not_created_before_its_spec_says_what_it_is() {
    let found = |spec: Value| {
        let mut world = empty(json!({"storage": spec}), json!({}));
        world.kept.found = Some(vec![retention::read(&record(None)).unwrap()]);
        world
    };
    let undecided = found(json!({"size": "100Gi"}));
    assert_eq!(planned(&undecided), "[] stalled RetainedVolumeFound");
    let message = plan(&undecided, now()).waiting.unwrap().message();
    for part in ["vol-9", &format!("adoptRetained: {RECORD}"), "startEmpty: true"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(plan(&undecided, now()).requeue.is_some(), "records are not watched");
    let decided = found(json!({"size": "100Gi", "startEmpty": true}));
    assert!(planned(&decided).contains("create node 1"), "{}", planned(&decided));
    let mut begun = found(json!({"size": "100Gi"}));
    begun.nodes = vec![node_with(build::node(&begun.database, &begun.names, 1, None), json!({}))];
    assert!(planned(&begun).starts_with("[create credentials"), "{}", planned(&begun));
    assert_eq!(
        planned(&Observed { kept: found(json!({"size": "100Gi"})).kept, ..settled() }),
        "[] as wanted"
    );
}

#[test]
fn a_volume_that_was_kept_under_the_name_is_told_as_long_as_it_is_there() {
    let status_of = |world: &Observed| {
        let acted = Acted::new(world.database.clone());
        status(world, &Decided::of(world, &plan(world, now()), &acted), &acted, now())
    };
    let mut world = settled();
    let before = status_of(&world);
    assert!(conditions::find(&before.conditions, ConditionType::RetainedVolumeFound).is_none());
    world.kept.found = Some(vec![retention::read(&record(None)).unwrap()]);
    let after = status_of(&world);
    let found = conditions::find(&after.conditions, ConditionType::RetainedVolumeFound).unwrap();
    assert_eq!(
        (found.status.as_str(), found.reason.as_str()),
        ("True", Reason::RetainedVolumeFound.as_str())
    );
    for part in ["vol-9", "2026-11-22T01:00:00Z", &format!("spec.storage.adoptRetained: {RECORD}")] {
        assert!(found.message.contains(part), "{}", found.message);
    }
    assert!(conditions::is_true(&after.conditions, ConditionType::Ready));
    let acted = Acted::new(world.database.clone());
    let decided = Decided::of(&world, &plan(&world, now()), &acted);
    let events = |old: &crate::api::DatabaseStatus, new: &crate::api::DatabaseStatus| {
        changes(old, new, &decided).into_iter().map(|it| it.reason.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(events(&before, &after), ["RetainedVolumeFound"]);
    assert_eq!(events(&after, &after), [] as [&str; 0]);
}
