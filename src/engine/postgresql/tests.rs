//! What PostgreSQL needs, and what it refuses.

mod start;
mod wal;

use std::path::Path;
use std::process::Command;

use pretty_assertions::assert_eq;
use tempfile::TempDir;

use super::*;
use crate::api::database::EngineType;

fn engine(version: &str) -> Engine {
    Engine { kind: EngineType::Postgresql, version: Some(version.to_owned()), custom: None }
}

fn settings(entries: &[(&str, &str)]) -> BTreeMap<String, ConfigValue> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), ConfigValue((*value).to_owned()))).collect()
}

/// An executable of this name, written by a process of its own: what another test starts inherits a file that
/// this process writes, for the moment between fork and exec, and Linux executes no file that is open for
/// writing (execve(2), ETXTBSY).
fn program(folder: &Path, name: &str, body: &str) {
    let write = r#"printf '%s\n' '#!/bin/sh' "$1" >"$0" && chmod 0755 "$0""#;
    let written = Command::new("sh").arg("-c").arg(write).arg(folder.join(name)).arg(body).status().unwrap();
    assert!(written.success(), "{name} is not written");
}

fn variable<'a>(profile: &'a Profile, name: &str) -> &'a Value {
    &profile.environment.iter().find(|variable| variable.name == name).unwrap().value
}

#[test]
fn the_major_version_is_in_the_path_of_the_data_and_the_minor_is_not() {
    for (version, directory) in [
        ("14.20", "/var/lib/freehold/14/data"),
        ("17.5", "/var/lib/freehold/17/data"),
        ("17.6", "/var/lib/freehold/17/data"),
        ("18.0", "/var/lib/freehold/18/data"),
    ] {
        let profile = profile(&engine(version), &settings(&[])).unwrap();
        assert_eq!(profile.image, format!("docker.io/library/postgres:{version}"));
        assert_eq!(variable(&profile, "PGDATA"), &Value::Text(directory.to_owned()), "{version}");
        assert_eq!(profile.data_path, "/var/lib/freehold");
    }
}

#[test]
fn a_version_that_is_not_run_is_refused_with_those_that_are() {
    for version in ["13.23", "9.6", "19.0", "20.1"] {
        let refused = profile(&engine(version), &settings(&[])).unwrap_err();
        assert_eq!(refused, EngineError::VersionUnknown { version: version.to_owned(), known: "14 to 18" });
    }
    for version in
        ["17", "17.6.1", "17.", ".6", "latest", "17.6-alpine", "+17.6", "17.x", "", "99999999999.1"]
    {
        let refused = profile(&engine(version), &settings(&[])).unwrap_err();
        assert_eq!(refused, EngineError::VersionForm { version: version.to_owned(), example: "17.6" });
    }
    let none = profile(&Engine { version: None, ..engine("17.6") }, &settings(&[]));
    assert_eq!(none, Err(EngineError::VersionMissing { engine: "postgresql", example: "17.6" }));
}

#[test]
fn clients_find_the_database_by_its_port_and_its_name() {
    let profile = profile(&engine("17.6"), &settings(&[])).unwrap();
    assert_eq!(profile.service_ports(), BTreeMap::from([("postgresql".to_owned(), 5432)]));
    assert_eq!(profile.primary_port_number(), Some(5432));
    assert_eq!(profile.binding.database, Some("app"));
    assert_eq!(variable(&profile, "POSTGRES_DB"), &Value::Text("app".to_owned()));
    assert_eq!(variable(&profile, "POSTGRES_USER"), &Value::Username);
}

#[test]
fn a_setting_of_the_users_stands_after_the_operators_own() {
    let profile =
        profile(&engine("17.6"), &settings(&[("work_mem", "64MB"), ("timezone", "Europe/Berlin")])).unwrap();
    let files = profile.config.unwrap().files;
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        ["pg_hba.conf", "pg_hba.hostssl.conf", "postgresql.conf", "start.sh", "wal.sh"]
    );
    let text = &files["postgresql.conf"];
    assert!(text.ends_with("timezone = 'Europe/Berlin'\nwork_mem = '64MB'\n"), "{text}");
}

#[test]
fn a_setting_that_the_operator_owns_is_refused_by_name() {
    for key in [
        "data_directory",
        "config_file",
        "hba_file",
        "ident_file",
        "include",
        "INCLUDE_IF_EXISTS",
        "include_dir",
        "listen_addresses",
        "Port",
        "unix_socket_directories",
        "unix_socket_permissions",
        "ssl",
        "ssl_cert_file",
        "SSL_Key_File",
        "ssl_passphrase_command_supports_reload",
        "password_encryption",
        "logging_collector",
        "fsync",
        "FSYNC",
        "full_page_writes",
        "data_sync_retry",
        "zero_damaged_pages",
        "ignore_checksum_failure",
        "archive_mode",
        "archive_command",
        "restore_command",
        "recovery_target",
        "recovery_target_time",
        "primary_conninfo",
        "synchronous_standby_names",
    ] {
        let refused = profile(&engine("17.6"), &settings(&[(key, "x")])).unwrap_err();
        assert!(
            matches!(&refused, EngineError::ConfigOwned { key: named, .. } if named == key),
            "{key}: {refused}"
        );
    }
    for key in [
        "shared_buffers",
        "synchronous_commit",
        "max_connections",
        "wal_level",
        "recovery_prefetch",
        "auto_explain.log_analyze",
    ] {
        assert!(profile(&engine("17.6"), &settings(&[(key, "1")])).is_ok(), "{key}");
    }
    let refused = profile(&engine("17.6"), &settings(&[("a.b.c", "1")])).unwrap_err();
    assert_eq!(refused, EngineError::ConfigKey { key: "a.b.c".to_owned() });
}

#[test]
fn a_server_that_recovers_is_never_killed_and_gets_no_clients() {
    let profile = profile(&engine("17.6"), &settings(&[])).unwrap();
    assert_eq!(profile.startup.check, profile.liveness.check);
    // pg_isready says 0: accepts, 1: not ready yet, 2: no answer, 3: could not ask.
    for (code, lives, is_ready) in [(0, true, true), (1, true, false), (2, false, false), (3, false, false)] {
        let bin = TempDir::new().unwrap();
        program(bin.path(), "pg_isready", &format!("exit {code}"));
        let succeeds = |check: &Check| {
            let Check::Command(command) = check else { panic!("not a command") };
            let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap());
            Command::new("/bin/sh")
                .args(["-c", "\"$@\"", "sh"])
                .args(command)
                .env("PATH", path)
                .status()
                .unwrap()
                .success()
        };
        assert_eq!(
            (succeeds(&profile.liveness.check), succeeds(&profile.readiness.check)),
            (lives, is_ready),
            "{code}"
        );
    }
}
