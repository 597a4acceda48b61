//! Golden manifests of whole databases, and the few rules that they cannot show.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::api::keys::RETAINED_LABEL;
use crate::controller::database::password::Password;
use crate::controller::tests::golden;
use crate::engine::profile;
use crate::settings::Network;

fn database(engine: serde_json::Value, more: serde_json::Value) -> Database {
    let mut spec = json!({"engine": engine, "storage": {"size": "100Gi"}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(json!({
        "apiVersion": "freehold.dev/v1alpha1",
        "kind": "Database",
        "metadata": {"name": "orders", "namespace": "team-a", "uid": "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11",
        "generation": 1},
        "spec": spec,
    }))
    .unwrap()
}

/// Every object of the database as one YAML stream.
fn manifests(database: &Database) -> String {
    let names = Names::of(database);
    let profile = profile(&database.spec.engine, &database.spec.config).unwrap();
    let network = Network {
        metrics_from: r#"[{"podSelector": {}}]"#.parse().unwrap(),
        operator_from: r#"[{"podSelector": {"matchLabels": {"app": "freehold"}}}]"#.parse().unwrap(),
        ..Network::default()
    };
    let mut objects = vec![serde_json::to_value(credentials(&names, &profile, &Password::fixed())).unwrap()];
    objects
        .extend(config_map(database, &names, &profile).map(|object| serde_json::to_value(object).unwrap()));
    objects.push(serde_json::to_value(service(&names, &profile, false)).unwrap());
    objects.push(serde_json::to_value(service_account(&names)).unwrap());
    objects.push(serde_json::to_value(network_policy(database, &names, &profile, &network)).unwrap());
    objects.push(serde_json::to_value(disruption_budget(&names)).unwrap());
    objects.push(serde_json::to_value(stateful_set(database, &names, &profile, 1)).unwrap());
    let texts: Vec<String> = objects.iter().map(|object| serde_norway::to_string(object).unwrap()).collect();
    format!("---\n{}", texts.join("---\n"))
}

fn compare(name: &str, database: &Database) {
    golden::compare(&format!("src/controller/database/build/golden/{name}"), &manifests(database));
}

#[test]
fn a_questdb_that_reads_its_password_from_a_file_is_as_the_golden_manifest() {
    let config = json!({"config": {"cairo.max.uncommitted.rows": "500000", "query.timeout": "120s"}});
    compare("questdb-9.3.4.yaml", &database(json!({"type": "questdb", "version": "9.3.4"}), config));
}

#[test]
fn a_questdb_that_takes_its_password_by_environment_is_as_the_golden_manifest() {
    let more = json!({
        "resources": {"requests": {"cpu": "1", "memory": "8Gi"}, "limits": {"memory": "12Gi"}},
        "access": {
            "from": [
                {"podSelector": {"matchLabels": {"app": "web"}, "matchExpressions": []}},
                {"namespaceSelector": {"matchLabels": {"team": "b"}}, "podSelector": {"matchLabels": {}}},
            ],
            "cidrs": ["10.20.0.0/16"],
        },
    });
    compare("questdb-9.2.2.yaml", &database(json!({"type": "questdb", "version": "9.2.2"}), more));
}

#[test]
fn a_postgresql_is_as_the_golden_manifest() {
    let config = json!({"config": {"shared_buffers": "4GB", "search_path": "\"$user\", app's"}});
    compare("postgresql-17.6.yaml", &database(json!({"type": "postgresql", "version": "17.6"}), config));
}

#[test]
fn a_custom_engine_is_as_the_golden_manifest() {
    let custom = json!({
        "image": "registry.example/team/db:1.2.3",
        "port": 5555,
        "dataPath": "/var/lib/data",
        "userId": 999,
        "credentials": {"usernameVariable": "DB_USER", "passwordFileVariable": "DB_PASSWORD_FILE"},
    });
    compare("custom.yaml", &database(json!({"type": "custom", "custom": custom}), json!({})));
}

fn questdb(more: serde_json::Value) -> Database {
    database(json!({"type": "questdb", "version": "9.3.4"}), more)
}

#[test]
fn only_what_decides_the_template_changes_the_hash_of_the_inputs() {
    let hash = |more| inputs_hash(&questdb(more).spec);
    let first = hash(json!({}));
    for same in [
        json!({"storage": {"size": "200Gi", "iops": 4000}}),
        json!({"instanceTypes": ["m7i.large"]}),
        json!({"running": false}),
        json!({"deletionPolicy": "Delete"}),
        json!({"nodeClassName": "other"}),
        json!({"zones": ["us-east-1a"]}),
        json!({"access": {"cidrs": ["10.20.0.0/16"]}}),
    ] {
        assert_eq!(hash(same.clone()), first, "{same}");
    }
    for other in [
        json!({"engine": {"type": "questdb", "version": "9.3.5"}}),
        json!({"config": {"a": "b"}}),
        json!({"resources": {"requests": {"cpu": "1"}}}),
    ] {
        assert_ne!(hash(other.clone()), first, "{other}");
    }
    // A change here would restart every database at the operator's upgrade.
    assert_eq!(first, "da3c09e52fa9bc17");
    let custom = json!({"image": "a:1", "port": 5555, "dataPath": "/data",
    "credentials": {"usernameVariable": "U",
        "passwordVariable": "P"}});
    let resources = json!({"resources": {"requests": {"memory": "1Gi", "cpu": "1"},
    "limits": {"memory": "2Gi"}}});
    assert_eq!(
        inputs_hash(&database(json!({"type": "custom", "custom": custom}), resources).spec),
        "49918102faea1d68"
    );
}

#[test]
fn retained_data_of_postgresql_is_told_to_take_new_credentials() {
    let variables = |engine: serde_json::Value| {
        let storage = json!({"storage": {"size": "100Gi", "adoptRetained": "pv", "newCredentials": true}});
        let database = database(engine, storage);
        let names = Names::of(&database);
        let profile = profile(&database.spec.engine, &database.spec.config).unwrap();
        let set = stateful_set(&database, &names, &profile, 1).spec.unwrap();
        let engine = set.template.spec.unwrap().containers.remove(0);
        engine.env.unwrap_or_default().into_iter().map(|it| it.name).collect::<Vec<_>>()
    };
    let of_postgresql = variables(json!({"type": "postgresql", "version": "17.6"}));
    assert_eq!(of_postgresql.last().map(String::as_str), Some("POSTGRES_NEW_CREDENTIALS"));
    let of_questdb = variables(json!({"type": "questdb", "version": "9.3.4"}));
    assert!(!of_questdb.contains(&"POSTGRES_NEW_CREDENTIALS".to_owned()), "it reads them at each start");
}

#[test]
fn users_are_locked_in_data_of_a_backup_and_neither_after_a_way_back_nor_in_what_was_retained() {
    let is_locked = |spec: serde_json::Value, record: serde_json::Value| {
        let mut database = database(json!({"type": "postgresql", "version": "17.6"}), spec);
        let mut in_place = json!({"generation": 1, "backup": {"snapshotID": "snap-1", "consistency": "CrashConsistent"},
            "startedAt": "2026-01-01T00:00:00Z", "former": {"volumeUID": "a", "volumeID": "vol-1",
            "persistentVolumeName": "pv", "size": "1Gi", "zone": "z"}});
        in_place.as_object_mut().unwrap().extend(record.as_object().cloned().unwrap_or_default());
        let in_place = if record.is_null() { record } else { in_place };
        let status = json!({"conditions": [], "restoredInPlace": in_place});
        database.status = Some(serde_json::from_value(status).unwrap());
        let names = Names::of(&database);
        let profile = profile(&database.spec.engine, &database.spec.config).unwrap();
        let pod = stateful_set(&database, &names, &profile, 1).spec.unwrap().template.spec.unwrap();
        pod.containers[0].env.iter().flatten().any(|it| it.name == "POSTGRES_LOCK_USERS")
    };
    let restore = || json!({"restore": {"snapshotID": "snap-1"}});
    let retained = json!({"storage": {"size": "100Gi", "adoptRetained": "pv", "newCredentials": true}});
    let back = || json!({"wentBack": {"at": "2026-01-01T00:10:00Z", "message": "it does not serve"}});
    for (spec, record, expected) in [
        (json!({}), json!(null), false),
        (retained, json!(null), false),
        (restore(), json!(null), true),
        (json!({}), json!({}), true),
        (restore(), back(), false),
        (json!({}), json!({"noWayBack": true}), false),
    ] {
        assert_eq!(is_locked(spec.clone(), record.clone()), expected, "{spec} {record}");
    }
}

#[test]
fn an_engine_recovers_from_a_checkpoint_that_a_backup_has_and_only_from_that() {
    let containers = |engine: serde_json::Value, consistency: &str| {
        let mut database = database(engine, json!({"restore": {"snapshotID": "snap-1"}}));
        database.status = serde_json::from_value(json!({"conditions": [],
            "restored": {"snapshotID": "snap-1", "consistency": consistency}}))
        .unwrap();
        let names = Names::of(&database);
        let profile = profile(&database.spec.engine, &database.spec.config).unwrap();
        let pod = stateful_set(&database, &names, &profile, 1).spec.unwrap().template.spec.unwrap();
        let renewed = pod.containers[0].env.iter().flatten().any(|it| it.name == "POSTGRES_NEW_CREDENTIALS");
        (pod.init_containers.unwrap_or_default(), renewed)
    };
    let questdb = || json!({"type": "questdb", "version": "9.3.4"});
    let (before, _) = containers(questdb(), "EngineCheckpoint");
    assert_eq!(before.len(), 1);
    assert_eq!(json!(before[0].env), json!([{"name": "RESTORED_FROM", "value": "snap-1"}]));
    assert_eq!(json!(before[0].volume_mounts), json!([{"name": "data", "mountPath": "/var/lib/questdb"}]));
    assert_eq!(containers(questdb(), "CrashConsistent").0, [], "an older checkpoint may be in it");
    let (before, renewed) = containers(json!({"type": "postgresql", "version": "17.6"}), "CrashConsistent");
    assert!(before.is_empty() && renewed, "the data has the password of another Database");
}

#[test]
fn what_the_resources_do_not_name_is_requested_as_by_default() {
    let requested = |resources: serde_json::Value| {
        let made = stateful_set::resources(&questdb(json!({"resources": resources})));
        json!({"requests": made.requests, "limits": made.limits})
    };
    let least = json!({"cpu": "100m", "memory": "256Mi"});
    assert_eq!(requested(json!({})), json!({"requests": least, "limits": null}));
    let memory = json!({"requests": {"memory": "8Gi"}});
    assert_eq!(requested(memory), json!({"requests": {"cpu": "100m", "memory": "8Gi"}, "limits": null}));
    let limits = json!({"limits": {"memory": "8Gi"}});
    assert_eq!(requested(limits), json!({"requests": {"cpu": "100m"}, "limits": {"memory": "8Gi"}}));
}

#[test]
fn a_stopped_database_differs_from_a_running_one_in_its_replicas_only() {
    let database = questdb(json!({}));
    let (names, profile) =
        (Names::of(&database), profile(&database.spec.engine, &database.spec.config).unwrap());
    let mut stopped = stateful_set(&database, &names, &profile, 0);
    stopped.spec.as_mut().unwrap().replicas = Some(1);
    assert_eq!(stopped, stateful_set(&database, &names, &profile, 1));
}

#[test]
fn a_retained_secret_has_the_same_content_no_owner_and_the_label() {
    let database = questdb(json!({}));
    let (names, profile) =
        (Names::of(&database), profile(&database.spec.engine, &database.spec.config).unwrap());
    let original = credentials(&names, &profile, &Password::fixed());
    let kept = retained(&names, &original);
    assert_eq!((&kept.data, &kept.type_), (&original.data, &original.type_));
    assert_eq!(kept.metadata.name.as_deref(), Some(names.retained_secret.as_str()));
    assert_eq!(kept.metadata.owner_references, None);
    assert_eq!(kept.metadata.labels.unwrap().get(RETAINED_LABEL).map(String::as_str), Some("true"));
}

#[test]
fn damaged_credentials_are_told_from_good_ones_without_a_word_of_their_content() {
    type Row = (Vec<(&'static str, &'static [u8])>, Result<(), CredentialsError>);
    let secret = |entries: &[(&str, &[u8])]| Secret {
        data: Some(
            entries
                .iter()
                .map(|(key, value)| ((*key).to_owned(), ByteString(value.to_vec())))
                .collect::<BTreeMap<_, _>>(),
        ),
        ..Secret::default()
    };
    let good: &'static [u8] = b"abcdefghijklmnopqrstuvwxyz234567";
    let rows: Vec<Row> = vec![
        (vec![("username", b"admin"), ("password", good)], Ok(())),
        (vec![("username", b"admin")], Err(CredentialsError::Missing("password"))),
        (vec![("password", good)], Err(CredentialsError::Missing("username"))),
        (vec![("username", b"admin"), ("password", b"")], Err(CredentialsError::Missing("password"))),
        (vec![("username", b"admin"), ("password", b"quest")], Err(CredentialsError::TooShort)),
        (
            vec![("username", b"admin"), ("password", b"abcdefghijklmnopqrstuvwxyz\n")],
            Err(CredentialsError::NotPlain("password")),
        ),
        (vec![("username", b"ad min"), ("password", good)], Err(CredentialsError::NotPlain("username"))),
        (
            vec![("username", b"admin"), ("password", b"\xff\xfeabcdefghijklmnopqrst")],
            Err(CredentialsError::NotPlain("password")),
        ),
    ];
    for (entries, expected) in rows {
        assert_eq!(check_credentials(&secret(&entries)), expected, "{entries:?}");
    }
    assert_eq!(check_credentials(&Secret::default()), Err(CredentialsError::Missing("username")));
}

#[test]
fn the_operator_reaches_an_engine_whose_statements_it_knows_or_whose_restored_data_it_checks() {
    let ports = |engine: serde_json::Value, is_checked: bool| {
        let mut database = database(engine, json!({}));
        if is_checked {
            let label = (crate::api::keys::VERIFICATION_LABEL.to_owned(), "nightly".to_owned());
            database.metadata.labels = Some([label].into());
        }
        let profile = profile(&database.spec.engine, &database.spec.config).unwrap();
        let operator = r#"[{"podSelector": {"matchLabels": {"app": "freehold"}}}]"#;
        let network = Network { operator_from: operator.parse().unwrap(), ..Network::default() };
        let policy = network_policy(&database, &Names::of(&database), &profile, &network).spec.unwrap();
        let is_operator = |rule: &serde_json::Value| rule["from"].to_string().contains("freehold");
        let rules = json!(policy.ingress);
        let rules = rules.as_array().unwrap().iter().filter(|rule| is_operator(rule));
        rules.map(|rule| rule["ports"][0]["port"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(ports(json!({"type": "questdb", "version": "9.3.4"}), false), [8812]);
    let postgresql = || json!({"type": "postgresql", "version": "17.6"});
    assert_eq!(ports(postgresql(), false), [5432]);
    let custom = || json!({"type": "custom", "custom": {"image": "db:1", "port": 5000, "dataPath": "/data"}});
    assert_eq!(ports(custom(), false), Vec::<i64>::new());
    assert_eq!(ports(custom(), true), [5000]);
}

#[test]
fn an_engine_with_an_archive_reaches_its_port_and_nothing_else_beside_the_dns() {
    let ports = |archive: serde_json::Value| {
        let mut database = database(json!({"type": "postgresql", "version": "17.6"}), json!({}));
        database.spec.wal_archive = serde_json::from_value(archive).unwrap();
        let profile = profile(&database.spec.engine, &database.spec.config).unwrap();
        let network = Network { dns: "[]".parse().unwrap(), ..Network::default() };
        let policy = network_policy(&database, &Names::of(&database), &profile, &network).spec.unwrap();
        let rules = json!(policy.egress);
        let rule = |rule: &serde_json::Value| {
            format!("{} {}", rule["ports"][0]["port"], rule["to"][0]["ipBlock"]["cidr"].as_str().unwrap())
        };
        rules.as_array().map(|rules| rules.iter().map(rule).collect::<Vec<_>>()).unwrap_or_default()
    };
    let archive = |url: &str| json!({"destination": "s3://one", "endpointURL": url, "secretName": "archive"});
    assert_eq!(ports(serde_json::Value::Null), Vec::<String>::new());
    assert_eq!(ports(archive("https://storage.example")), ["443 0.0.0.0/0"]);
    assert_eq!(ports(archive("http://storage.example")), ["80 0.0.0.0/0"]);
    assert_eq!(ports(archive("https://storage.example:9000")), ["9000 0.0.0.0/0"]);
    assert_eq!(ports(json!({"destination": "s3://one"})), ["443 0.0.0.0/0", "80 169.254.170.23/32"]);
}
