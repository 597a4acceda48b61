//! What each engine needs, and what it refuses.

use pretty_assertions::assert_eq;

use super::*;
use crate::api::database::{CustomCredentials, CustomEngine};

fn questdb(version: &str) -> Engine {
    Engine { kind: EngineType::Questdb, version: Some(version.to_owned()), custom: None }
}

fn custom() -> CustomEngine {
    CustomEngine {
        image: "registry.example/team/db:1.2.3".to_owned(),
        port: 5555,
        data_path: "/var/lib/data".to_owned(),
        user_id: 10001,
        credentials: None,
    }
}

fn engine(custom: CustomEngine) -> Engine {
    Engine { kind: EngineType::Custom, version: None, custom: Some(custom) }
}

fn settings(entries: &[(&str, &str)]) -> BTreeMap<String, ConfigValue> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), ConfigValue((*value).to_owned()))).collect()
}

fn variables(profile: &Profile) -> Vec<(&str, &Value)> {
    profile.environment.iter().map(|variable| (variable.name.as_str(), &variable.value)).collect()
}

#[test]
fn questdb_takes_its_password_from_a_file_where_the_release_knows_files() {
    let path = Value::Text("/run/freehold/credentials/password".to_owned());
    for version in ["9.3.4", "9.3.10", "9.4", "10.0.0"] {
        let profile = profile(&questdb(version), &settings(&[])).unwrap();
        let expected = vec![
            ("QDB_PG_USER", &Value::Username),
            ("QDB_PG_PASSWORD_FILE", &path),
            ("QDB_HTTP_USER", &Value::Username),
            ("QDB_HTTP_PASSWORD_FILE", &path),
        ];
        assert_eq!(variables(&profile), expected, "{version}");
        assert_eq!(profile.password_directory, Some("/run/freehold/credentials"), "{version}");
    }
}

#[test]
fn an_older_questdb_takes_its_password_from_the_secret_by_environment() {
    for version in ["9.3.3", "9.3", "9.2.2", "8.1.0"] {
        let profile = profile(&questdb(version), &settings(&[])).unwrap();
        let expected = vec![
            ("QDB_PG_USER", &Value::Username),
            ("QDB_PG_PASSWORD", &Value::Password),
            ("QDB_HTTP_USER", &Value::Username),
            ("QDB_HTTP_PASSWORD", &Value::Password),
        ];
        assert_eq!(variables(&profile), expected, "{version}");
        assert_eq!(profile.password_directory, None, "{version}");
    }
}

#[test]
fn a_questdb_without_a_password_on_its_http_port_is_refused() {
    for version in ["8.0.3", "7.4.2", "6.0"] {
        let refused = profile(&questdb(version), &settings(&[])).unwrap_err();
        assert!(refused.to_string().contains("use 8.1.0 or later"), "{refused}");
    }
}

#[test]
fn a_version_that_is_no_release_is_refused() {
    for version in ["latest", "9", "9.3.4.1", "9.x", "", "9.3.4-rc1", "+9.3", "99999999999.1"] {
        let refused = profile(&questdb(version), &settings(&[])).unwrap_err();
        assert_eq!(refused, EngineError::VersionForm { version: version.to_owned(), example: "9.3.4" });
    }
    let refused = profile(&Engine { kind: EngineType::Questdb, version: None, custom: None }, &settings(&[]));
    assert_eq!(refused, Err(EngineError::VersionMissing { engine: "questdb", example: "9.3.4" }));
}

#[test]
fn questdb_finds_every_file_that_it_cannot_write_itself() {
    let profile = profile(&questdb("9.3.4"), &settings(&[])).unwrap();
    let files: Vec<String> = profile.config.unwrap().files.into_keys().collect();
    assert_eq!(files, ["date.formats", "log.conf", "mime.types", "server.conf"]);
}

#[test]
fn a_setting_of_the_users_is_a_line_of_the_file_after_the_operators_own() {
    let profile = profile(&questdb("9.3.4"), &settings(&[("cairo.max.uncommitted.rows", "1000")])).unwrap();
    let server = &profile.config.unwrap().files["server.conf"];
    assert!(server.ends_with("metrics.enabled=true\ncairo.max.uncommitted.rows=1000\n"), "{server}");
    assert!(server.contains("\nline.tcp.enabled=false\n"), "{server}");
    assert!(server.contains("\nhttp.min.worker.count=1\n"), "{server}");
    assert!(server.contains("\nhttp.health.check.authentication.required=false\n"), "{server}");
}

#[test]
fn a_setting_that_the_operator_owns_is_refused_by_name() {
    let owned = [
        "pg.user",
        "pg.password",
        "PG.Password",
        "pg.password.file",
        "pg.readonly.user.enabled",
        "pg.readonly.password",
        "http.user",
        "http.password",
        "http.min.enabled",
        "http.min.net.bind.to",
        "http.bind.to",
        "http.net.bind.to",
        "http.enabled",
        "http.health.check.authentication.required",
        "pg.net.bind.to",
        "pg.enabled",
        "line.tcp.enabled",
        "line.tcp.auth.db.path",
        "line.udp.enabled",
        "metrics.enabled",
        "cairo.root",
        "cairo.volumes",
    ];
    for key in owned {
        let refused = profile(&questdb("9.3.4"), &settings(&[(key, "x")])).unwrap_err();
        assert!(
            matches!(&refused, EngineError::ConfigOwned { key: named, .. } if named == key),
            "{key}: {refused}"
        );
    }
    for key in [
        "cairo.wal.enabled.default",
        "pg.net.connection.limit",
        "http.net.connection.limit",
        "shared.worker.count",
    ] {
        assert!(profile(&questdb("9.3.4"), &settings(&[(key, "1")])).is_ok(), "{key}");
    }
}

#[test]
fn only_the_ports_with_a_password_are_reachable() {
    let profile = profile(&questdb("9.3.4"), &settings(&[])).unwrap();
    let expected = BTreeMap::from([("pgwire".to_owned(), 8812), ("http".to_owned(), 9000)]);
    assert_eq!(profile.service_ports(), expected);
    assert_eq!(profile.primary_port_number(), Some(8812));
}

#[test]
fn a_custom_engine_is_what_its_description_says() {
    let described = CustomEngine {
        credentials: Some(CustomCredentials {
            username_variable: Some("DB_USER".to_owned()),
            password_variable: None,
            password_file_variable: Some("DB_PASSWORD_FILE".to_owned()),
        }),
        ..custom()
    };
    let profile = profile(&engine(described), &settings(&[])).unwrap();
    assert_eq!(profile.image, "registry.example/team/db:1.2.3");
    assert_eq!(profile.data_path, "/var/lib/data");
    assert_eq!(profile.service_ports(), BTreeMap::from([("database".to_owned(), 5555)]));
    let path = Value::Text("/run/freehold/credentials/password".to_owned());
    assert_eq!(variables(&profile), vec![("DB_USER", &Value::Username), ("DB_PASSWORD_FILE", &path)]);
    assert_eq!(profile.password_directory, Some("/run/freehold/credentials"));
}

#[test]
fn a_custom_engine_that_takes_its_password_by_environment_has_no_file_of_it() {
    let described = CustomEngine {
        credentials: Some(CustomCredentials {
            username_variable: None,
            password_variable: Some("DB_PASSWORD".to_owned()),
            password_file_variable: None,
        }),
        ..custom()
    };
    let profile = profile(&engine(described), &settings(&[])).unwrap();
    assert_eq!(variables(&profile), vec![("DB_PASSWORD", &Value::Password)]);
    assert_eq!(profile.password_directory, None);
}

#[test]
fn a_custom_engine_that_cannot_run_is_refused_by_field() {
    let rows: Vec<(&str, CustomEngine)> = vec![
        ("image", CustomEngine { image: "db".to_owned(), ..custom() }),
        ("image", CustomEngine { image: "db:latest".to_owned(), ..custom() }),
        ("image", CustomEngine { image: "registry:5000/db".to_owned(), ..custom() }),
        ("image", CustomEngine { image: "db: 1".to_owned(), ..custom() }),
        ("port", CustomEngine { port: 80, ..custom() }),
        ("port", CustomEngine { port: 65536, ..custom() }),
        ("userId", CustomEngine { user_id: 0, ..custom() }),
        ("dataPath", CustomEngine { data_path: "data".to_owned(), ..custom() }),
        ("dataPath", CustomEngine { data_path: "/".to_owned(), ..custom() }),
        ("dataPath", CustomEngine { data_path: "//".to_owned(), ..custom() }),
        ("dataPath", CustomEngine { data_path: "/tmp/".to_owned(), ..custom() }),
        ("dataPath", CustomEngine { data_path: "/run".to_owned(), ..custom() }),
        ("dataPath", CustomEngine { data_path: "/var/../etc".to_owned(), ..custom() }),
        ("dataPath", CustomEngine { data_path: "/a:b".to_owned(), ..custom() }),
    ];
    for (expected, described) in rows {
        let refused = profile(&engine(described.clone()), &settings(&[])).unwrap_err();
        assert!(
            matches!(&refused, EngineError::CustomField { field, .. } if *field == expected),
            "{described:?}: {refused}"
        );
    }
}

#[test]
fn a_custom_engine_whose_variables_make_no_sense_is_refused() {
    let credentials =
        |username: Option<&str>, password: Option<&str>, file: Option<&str>| CustomCredentials {
            username_variable: username.map(str::to_owned),
            password_variable: password.map(str::to_owned),
            password_file_variable: file.map(str::to_owned),
        };
    let rows = [
        ("credentials", credentials(None, None, None)),
        ("credentials", credentials(None, Some("A"), Some("B"))),
        ("credentials.usernameVariable", credentials(Some("A B"), Some("C"), None)),
        ("credentials.passwordVariable", credentials(None, Some("1A"), None)),
        ("credentials.passwordFileVariable", credentials(None, None, Some(""))),
    ];
    for (expected, credentials) in rows {
        let described = CustomEngine { credentials: Some(credentials), ..custom() };
        let refused = profile(&engine(described.clone()), &settings(&[])).unwrap_err();
        assert!(
            matches!(&refused, EngineError::CustomField { field, .. } if *field == expected),
            "{described:?}: {refused}"
        );
    }
}

#[test]
fn a_custom_engine_takes_no_settings() {
    let refused = profile(&engine(custom()), &settings(&[("a", "b")]));
    assert_eq!(refused, Err(EngineError::ConfigUnsupported));
    let refused = profile(&Engine { kind: EngineType::Custom, version: None, custom: None }, &settings(&[]));
    assert_eq!(refused, Err(EngineError::CustomMissing));
}

/// Runs the script over this root, as if restored from this snapshot.
fn recovers(root: &std::path::Path, snapshot: &str) -> bool {
    let script = profile(&questdb("9.3.4"), &BTreeMap::new()).unwrap().recovery.unwrap();
    let ended = std::process::Command::new("/bin/sh")
        .args(["-c", script])
        .env_clear()
        .env("QUESTDB_ROOT", root)
        .env("RESTORED_FROM", snapshot)
        .status()
        .unwrap();
    assert!(ended.success());
    root.join("_restore").exists()
}

#[test]
fn questdb_recovers_once_for_each_snapshot_and_only_from_a_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    assert!(!recovers(root, "snap-0"), "there is no checkpoint: the server would not start");
    std::fs::create_dir_all(root.join(".checkpoint/db")).unwrap();
    assert!(!recovers(root, "snap-0"), "its turn has passed: this checkpoint is a later one");
    assert!(recovers(root, "snap-1"));
    std::fs::remove_file(root.join("_restore")).unwrap();
    assert!(!recovers(root, "snap-1"), "the server has recovered, and wrote since");
    assert!(recovers(root, "snap-2"), "a volume from a backup of the restored database");
}
