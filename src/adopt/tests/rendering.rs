//! What is written and reported of a QuestDB and a PostgreSQL as of 2021.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::{Wanted, from_json, postgresql, questdb, running, wanted};
use crate::adopt::found::Found;
use crate::adopt::preflight::check;
use crate::adopt::render;
use crate::adopt::report::Report;
use crate::api::Database;
use crate::api::database::{EngineType, FileSystem};
use crate::controller::tests::golden::compare;
use crate::engine;

/// The report of one that can be adopted, beside the file that a person reads.
fn is_as_shown(name: &str, found: &Found, wanted: &Wanted) {
    let report = Report::new(found, wanted, check(found, wanted)).unwrap();
    compare(&format!("src/adopt/golden/{name}.txt"), &report.text(false));
}

#[test]
fn a_questdb_of_2021_is_reported_as_a_person_reads_it() {
    is_as_shown("questdb", &running(&questdb()), &wanted());
}

#[test]
fn a_postgresql_of_2021_is_reported_as_a_person_reads_it() {
    let mut found = running(&postgresql());
    let spec = found.stateful_set.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
    spec.containers.push(from_json(json!({"name": "exporter", "image": "exporter:1"})));
    spec.init_containers = Some(vec![from_json(json!({"name": "chown", "image": "busybox:1"}))]);
    let wanted = Wanted { engine_version: Some("15.7".to_owned()), ..wanted() };
    is_as_shown("postgresql", &found, &wanted);
}

#[test]
fn what_stands_before_an_adoption_is_reported_first_and_without_a_database_nothing_is_shown_of_it() {
    let mut found = running(&postgresql());
    found.volume.as_mut().unwrap().attachments[0].delete_on_termination = true;
    is_as_shown("blocked", &found, &wanted());
}

#[test]
fn the_yaml_is_the_database() {
    for (container, version) in [(questdb(), None), (postgresql(), Some("15.7"))] {
        let wanted = Wanted { engine_version: version.map(str::to_owned), ..wanted() };
        let database = render::database(&running(&container), &wanted).unwrap();
        let yaml = render::yaml(&database).unwrap();
        let read: Database = serde_norway::from_str(&yaml).unwrap();
        assert_eq!(read, database);
        engine::profile(&read.spec.engine, &read.spec.config).unwrap();
    }
}

#[test]
fn an_engine_behind_sidecars_is_found_by_mount_image_and_port_and_named() {
    let mounts = json!([{"name": "data", "mountPath": "/data"}]);
    let proxy = json!({"name": "proxy", "image": "proxy:1"});
    let backup = json!({"name": "backup", "image": "backup:1", "volumeMounts": mounts});
    let known = questdb()["name"].as_str().map(str::to_owned);
    let mut own = questdb();
    (own["image"], own["name"]) = (json!("registry.example/own:1"), json!("own"));
    let own_name = Some("own".to_owned());
    for (engine, sidecars, expected) in [
        (questdb(), vec![], &None),
        (questdb(), vec![&proxy], &known),
        (questdb(), vec![&backup, &proxy], &known),
        (own.clone(), vec![&proxy], &own_name),
        // Only the engine names a port.
        (own, vec![&backup], &own_name),
    ] {
        let mut found = running(&engine);
        let spec = found.stateful_set.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
        for it in &sidecars {
            spec.containers.insert(0, from_json((*it).clone()));
        }
        let adopt = render::database(&found, &wanted()).unwrap().spec.adopt.unwrap();
        assert_eq!(adopt.container_name, *expected, "{sidecars:?}");
    }
}

#[test]
fn a_volume_is_written_with_what_its_type_allows() {
    for (volume_type, iops, throughput, expected) in [
        ("gp3", Some(6000), Some(250), (Some(6000), Some(250))),
        ("gp2", Some(600), None, (None, None)),
        ("io2", Some(10_000), None, (Some(10_000), None)),
        ("st1", None, None, (None, None)),
    ] {
        let mut found = running(&questdb());
        let volume = found.volume.as_mut().unwrap();
        volume.volume_type = volume_type.to_owned();
        (volume.iops, volume.throughput) = (iops, throughput);
        let storage = render::database(&found, &wanted()).unwrap().spec.storage;
        assert_eq!((storage.iops, storage.throughput), expected, "{volume_type}");
        assert_eq!(storage.size.0, "200Gi");
    }
}

#[test]
fn a_volume_of_the_driver_in_kubernetes_is_found_and_no_file_system_is_ext4() {
    let mut found = running(&questdb());
    let spec = found.claims[0].persistent_volume.as_mut().unwrap().spec.as_mut().unwrap();
    spec.csi = None;
    spec.aws_elastic_block_store =
        Some(from_json(json!({"volumeID": "aws://us-east-1b/vol-0123456789abcdef0"})));
    let database = render::database(&found, &wanted()).unwrap();
    assert_eq!(database.spec.adopt.unwrap().volume_id.0, super::VOLUME);
    assert_eq!(database.spec.storage.file_system, FileSystem::Ext4);
}

#[test]
fn an_image_that_is_not_the_published_one_is_adopted_as_it_is() {
    let mut container = postgresql();
    container["image"] = "bitnami/postgresql:15.4.0-debian-11-r0".into();
    container["securityContext"] = json!({"runAsUser": 1001});
    let engine = render::database(&running(&container), &wanted()).unwrap().spec.engine;
    assert_eq!((engine.kind, engine.version), (EngineType::Custom, None));
    let custom = engine.custom.unwrap();
    assert_eq!((custom.port, custom.user_id), (5432, 1001));
    assert_eq!(custom.data_path, "/var/lib/postgresql/data");
}
