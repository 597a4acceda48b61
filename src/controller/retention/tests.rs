//! Records: what is read of them, and who may take what they record.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::*;

const UID: &str = "5a1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a99";

fn record(changes: &[(&str, Value)]) -> PersistentVolume {
    let mut record = json!({
        "metadata": {
            "name": format!("freehold-{UID}"), "uid": "record-uid",
            "labels": {
                "freehold.dev/retained": "true", "freehold.dev/volume-uid": UID,
                "freehold.dev/database": "orders",
                "freehold.dev/database-uid": "former", "app.kubernetes.io/name": "postgresql",
            },
            "annotations": {
                "freehold.dev/database": "team-a/orders", "freehold.dev/retained-at": "2026-11-22T01:00:00Z",
                "freehold.dev/retained-because": "why", "freehold.dev/size": "150Gi",
                "freehold.dev/volume-type": "gp3",
                "freehold.dev/engine": "postgresql",
                "freehold.dev/engine-version": "17.6",
            },
        },
        "spec": {
            "capacity": {"storage": "100Gi"},
            "claimRef": {"namespace": "team-a", "name": "orders-aaaaa", "uid": "gone"},
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-9", "fsType": "xfs"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1b"]},
            ]}]}},
        },
        "status": {"phase": "Released"},
    });
    for (pointer, value) in changes {
        *record.pointer_mut(pointer).unwrap() = value.clone();
    }
    serde_json::from_value(record).unwrap()
}

fn database(namespace: &str, changes: Value) -> Database {
    let mut spec = json!({
        "engine": {"type": "postgresql", "version": "17.7"},
        "storage": {"size": "150Gi", "adoptRetained": format!("freehold-{UID}")},
    });
    for (key, value) in changes.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let metadata = json!({"name": "orders", "namespace": namespace, "uid": "u"});
    serde_json::from_value(json!({"apiVersion": "freehold.dev/v1alpha1", "kind": "Database",
    "metadata": metadata, "spec": spec}))
    .unwrap()
}

#[test]
fn a_record_tells_everything_that_a_person_asks_for() {
    let expected = Retained {
        persistent_volume: format!("freehold-{UID}"),
        namespace: "team-a".to_owned(),
        namespace_uid: None,
        database: "orders".to_owned(),
        database_uid: Some("former".to_owned()),
        volume: Some("orders-aaaaa".to_owned()),
        volume_uid: UID.to_owned(),
        volume_id: VolumeId("vol-9".to_owned()),
        size: Some(Size("150Gi".to_owned())),
        volume_type: Some("gp3".to_owned()),
        zone: Some("us-east-1b".to_owned()),
        file_system: Some("xfs".to_owned()),
        engine: Some("postgresql".to_owned()),
        engine_version: Some("17.6".to_owned()),
        data_path: None,
        user_id: None,
        retained_at: Some("2026-11-22T01:00:00Z".to_owned()),
        because: Some("why".to_owned()),
        credentials_secret: Some("orders-aaaaa-admin".to_owned()),
        adopted_by: None,
        is_released: true,
    };
    assert_eq!(read(&record(&[])), Some(expected));
    let mut held = record(&[]);
    held.annotations_mut().insert(ADOPTED_BY_ANNOTATION.to_owned(), "orders/u".to_owned());
    assert_eq!(read(&held).unwrap().adopted_by, Some(Holder::of(&database("team-a", json!({})))));
}

#[test]
fn a_record_has_any_name_and_the_form_of_any_provisioner() {
    let mut found = record(&[("/metadata/name", json!("pvc-5a1c"))]);
    let spec = found.spec.as_mut().unwrap();
    spec.csi = None;
    spec.aws_elastic_block_store =
        serde_json::from_value(json!({"volumeID": "aws://us-east-1b/vol-9", "fsType": "xfs"})).unwrap();
    let expected = Retained { persistent_volume: "pvc-5a1c".to_owned(), ..read(&record(&[])).unwrap() };
    assert_eq!(read(&found), Some(expected));
}

#[test]
fn what_contradicts_itself_or_is_nobodys_record_is_none() {
    let rows: [(&str, Value); 5] = [
        ("/metadata/labels/freehold.dev~1retained", json!("no")),
        ("/metadata/labels/freehold.dev~1volume-uid", json!("")),
        ("/metadata/annotations/freehold.dev~1database", json!("team-b/orders")),
        ("/spec/claimRef/namespace", json!("team-b")),
        ("/spec/csi/driver", json!("other.csi")),
    ];
    for row in rows {
        assert_eq!(read(&record(std::slice::from_ref(&row))), None, "{row:?}");
    }
}

#[test]
fn the_image_of_a_custom_engine_finds_its_data_where_it_had_it() {
    let mut record = record(&[]);
    let mut owner = database("team-a", json!({}));
    let custom = |image: &str, path: &str| {
        json!({"engine": {"type": "custom", "custom": {"image": image,
        "port": 5000, "dataPath": path}}})
    };
    owner.spec = database("team-a", custom("engine:1", "/var/lib/engine")).spec;
    let disk = Disk { size: Size("150Gi".to_owned()), volume_type: "gp3".to_owned() };
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    record.annotations_mut().extend(marks("orders-aaaaa", None, Some(&owner), &disk, "why", None, now));
    let fits = |image: &str, path: &str| {
        let wanted = database("team-a", custom(image, path));
        may_adopt(&format!("freehold-{UID}"), Some(&record), &wanted, None).map(drop)
    };
    assert_eq!(fits("engine:1", "/var/lib/engine"), Ok(()));
    assert_eq!(fits("engine:2", "/data"), Ok(()), "another image may have another path");
    let why = fits("engine:1", "/data").unwrap_err();
    assert!(why.contains("dataPath: /var/lib/engine"), "{why}");
}

#[test]
fn the_files_of_a_custom_engine_belong_to_the_user_that_wrote_them() {
    let mut record = record(&[]);
    let custom = |image: &str, user: i64| {
        json!({"engine": {"type": "custom", "custom": {"image": image,
        "port": 5000, "dataPath": "/data", "userId": user}}})
    };
    let mut owner = database("team-a", json!({}));
    owner.spec = database("team-a", custom("engine:1", 999)).spec;
    let disk = Disk { size: Size("150Gi".to_owned()), volume_type: "gp3".to_owned() };
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    record.annotations_mut().extend(marks("orders-aaaaa", None, Some(&owner), &disk, "why", None, now));
    let fits = |record: &PersistentVolume, image: &str, user: i64| {
        let wanted = database("team-a", custom(image, user));
        may_adopt(&format!("freehold-{UID}"), Some(record), &wanted, None).map(drop)
    };
    assert_eq!(fits(&record, "engine:1", 999), Ok(()));
    let why = fits(&record, "engine:2", 10001).unwrap_err();
    assert!(why.contains("userId: 999"), "{why}");
    record.annotations_mut().remove(USER_ID_ANNOTATION);
    assert_eq!(fits(&record, "engine:1", 10001), Ok(()), "a record of an earlier release does not say it");
}

#[test]
fn a_record_names_the_version_that_was_started_and_not_one_that_was_only_requested() {
    let mut owner = database("team-a", json!({"engine": {"type": "questdb", "version": "9.4.0"}}));
    let disk = Disk { size: Size("150Gi".to_owned()), volume_type: "gp3".to_owned() };
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    let version = |owner: &Database| {
        marks("orders-aaaaa", None, Some(owner), &disk, "why", None, now).remove(ENGINE_VERSION_ANNOTATION)
    };
    assert_eq!(version(&owner).as_deref(), Some("9.4.0"));
    owner.status.get_or_insert_default().engine_version = Some("9.3.4".to_owned());
    assert_eq!(version(&owner).as_deref(), Some("9.3.4"));
}

#[test]
fn a_volume_is_only_for_its_own_namespace_engine_version_file_system_size_and_zone() {
    let name = format!("freehold-{UID}");
    let fits = |record: &PersistentVolume, namespace: &str, changes: Value| {
        may_adopt(&name, Some(record), &database(namespace, changes), Some("uid-of-namespace"))
    };
    assert!(fits(&record(&[]), "team-a", json!({})).is_ok());
    assert!(
        fits(
            &record(&[]),
            "team-a",
            json!({"zones": ["us-east-1a", "us-east-1b"],
    "storage": {"size": "1Ti"}})
        )
        .is_ok()
    );

    let of_type = |volume_type: &str| {
        let mut record = record(&[]);
        record.annotations_mut().extend([(VOLUME_TYPE_ANNOTATION.to_owned(), volume_type.to_owned())]);
        record
    };
    let io2 = || json!({"storage": {"size": "150Gi", "type": "io2", "iops": 40000}});
    assert!(fits(&of_type("io2"), "team-a", io2()).is_ok());
    assert!(fits(&of_type(""), "team-a", io2()).is_ok(), "a record of an earlier release does not say it");

    let mut of_uid = record(&[]);
    let uid = |uid: &str| (NAMESPACE_UID_ANNOTATION.to_owned(), uid.to_owned());
    of_uid.annotations_mut().extend([uid("uid-of-namespace")]);
    assert!(fits(&of_uid, "team-a", json!({})).is_ok());
    of_uid.annotations_mut().extend([uid("uid-of-earlier")]);
    let earlier = fits(&of_uid, "team-a", json!({})).unwrap_err();
    assert!(earlier.contains("earlier namespace team-a") && earlier.contains(NAMESPACE_UID_ANNOTATION));

    let other_tenant = fits(&record(&[]), "team-b", json!({})).unwrap_err();
    let nothing = may_adopt(&name, None, &database("team-b", json!({})), None).unwrap_err();
    assert_eq!(other_tenant, nothing, "a tenant learns nothing of what others have");
    assert!(nothing.contains("team-b") && nothing.contains("freehold retained"), "{nothing}");

    let rows: Vec<(PersistentVolume, Value, &[&str])> = vec![
        (record(&[("/status/phase", json!("Bound"))]), json!({}), &["not Released"]),
        (
            record(&[]),
            json!({"engine": {"type": "questdb", "version": "9.3.4"}}),
            &["written by postgresql", "not by questdb"],
        ),
        (
            record(&[]),
            json!({"engine": {"type": "postgresql", "version": "18.0"}}),
            &["PostgreSQL 17", "17.x"],
        ),
        (
            record(&[("/metadata/annotations/freehold.dev~1engine-version", json!(""))]),
            json!({}),
            &["does not say which version", ENGINE_VERSION_ANNOTATION],
        ),
        (
            record(&[]),
            json!({"storage": {"size": "150Gi", "fileSystem": "ext4"}}),
            &["formatted with xfs", "fileSystem: xfs"],
        ),
        (record(&[]), json!({"storage": {"size": "149Gi"}}), &["150 GiB", "150Gi or more"]),
        (record(&[]), json!({"zones": ["us-east-1a"]}), &["us-east-1b", "spec.zones"]),
        (
            record(&[("/metadata/annotations/freehold.dev~1volume-type", json!("io2"))]),
            json!({}),
            &["type io2, not gp3", "set spec.storage.type to io2"],
        ),
        (record(&[("/spec/nodeAffinity", Value::Null)]), json!({}), &["which zone"]),
        (record(&[("/spec/csi/fsType", Value::Null)]), json!({}), &["formatted with ext4"]),
    ];
    let of_questdb = |version: &str| {
        let mut record = record(&[]);
        record.annotations_mut().extend([
            (ENGINE_ANNOTATION.to_owned(), "questdb".to_owned()),
            (ENGINE_VERSION_ANNOTATION.to_owned(), version.to_owned()),
        ]);
        record
    };
    let questdb = || json!({"engine": {"type": "questdb", "version": "9.3.4"}});
    assert!(fits(&of_questdb("9.3.4"), "team-a", questdb()).is_ok());
    assert!(fits(&of_questdb("9.2.2"), "team-a", questdb()).is_ok(), "a newer version reads it");
    let rows = rows.into_iter().chain([(
        of_questdb("9.3.10"),
        questdb(),
        ["written by QuestDB 9.3.10", "9.3.10 or a later"].as_slice(),
    )]);
    for (record, changes, says) in rows {
        let why = fits(&record, "team-a", changes.clone()).unwrap_err();
        assert!(says.iter().all(|part| why.contains(part)), "{changes}: {why}");
    }
}
