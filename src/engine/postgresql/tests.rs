//! What PostgreSQL needs, what it refuses, and its start on volumes of every content.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

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
    assert_eq!(files.keys().collect::<Vec<_>>(), ["pg_hba.conf", "postgresql.conf", "start.sh"]);
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

fn program(folder: &Path, name: &str, body: &str) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A volume, and stand-ins for PostgreSQL's programs that write down how they were called.
struct Container {
    folder: TempDir,
}

impl Container {
    fn new() -> Self {
        let container = Self { folder: TempDir::new().unwrap() };
        fs::create_dir_all(container.volume()).unwrap();
        fs::create_dir_all(container.path("bin")).unwrap();
        container.initdb(
            "mkdir \"$directory\" && echo 17 >\"$directory/PG_VERSION\" && chmod 0777 \
            \"$directory\"",
        );
        program(
            &container.path("bin"),
            "postgres",
            "echo \"postgres $*\" >>\"$CALLS\"; case $1 in --single) cat >>\"$CALLS\";; esac",
        );
        container
    }

    /// What initdb does with `$directory`.
    fn initdb(&self, body: &str) {
        let find = "for word; do case $word in --pgdata=*) directory=${word#*=};; esac; done";
        program(&self.path("bin"), "initdb", &format!("echo \"initdb $*\" >>\"$CALLS\"\n{find}\n{body}"));
    }

    fn path(&self, below: &str) -> std::path::PathBuf {
        self.folder.path().join(below)
    }

    fn volume(&self) -> std::path::PathBuf {
        self.path("volume")
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.volume().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn start(&self) -> Output {
        self.start_with(&[])
    }

    fn start_with(&self, variables: &[(&str, &Path)]) -> Output {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        Command::new("/bin/sh")
            .args(["-c", START])
            .env_clear()
            .env("PATH", path)
            .env("CALLS", self.path("calls"))
            .env("TERMINATION_LOG", self.path("termination-log"))
            .env("PGDATA", self.volume().join("17/data"))
            .env("POSTGRES_USER", "admin")
            .env("POSTGRES_PASSWORD_FILE", "/run/freehold/credentials/password")
            .env("POSTGRES_DB", "app")
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    fn calls(&self) -> String {
        let calls = fs::read_to_string(self.path("calls")).unwrap_or_default();
        calls.replace(&self.volume().display().to_string(), "VOLUME")
    }

    /// Every file and folder of the volume with its text.
    fn content(&self) -> BTreeMap<String, String> {
        fn walk(folder: &Path, root: &Path, found: &mut BTreeMap<String, String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(root).unwrap().display().to_string();
                if path.is_dir() {
                    walk(&path, root, found);
                    found.insert(name, String::new());
                } else {
                    found.insert(name, fs::read_to_string(&path).unwrap());
                }
            }
        }
        let mut found = BTreeMap::new();
        walk(&self.volume(), &self.volume(), &mut found);
        found
    }
}

const INITDB: &str = "initdb --pgdata=VOLUME/17/data.unfinished --username=admin \
                      --pwfile=/run/freehold/credentials/password \
                      --auth=scram-sha-256 --data-checksums --encoding=UTF8 --locale=C.UTF-8\n\
                      postgres --single -D VOLUME/17/data.unfinished -c exit_on_error=on postgres\n\
                      CREATE DATABASE \"app\"\n";
const SERVES: &str = "postgres -D VOLUME/17/data -c allow_alter_system=off -c config_file=/etc/freehold/postgresql.conf -c \
                      hba_file=/etc/freehold/pg_hba.conf -c listen_addresses=* -c port=5432 -c \
                      unix_socket_directories=/var/run/postgresql -c logging_collector=off -c fsync=on -c \
                      full_page_writes=on\n";

#[test]
fn an_empty_volume_is_initialised_once_and_then_served() {
    let container = Container::new();
    fs::create_dir(container.volume().join("lost+found")).unwrap();
    assert!(container.start().status.success());
    assert_eq!(container.calls(), format!("{INITDB}{SERVES}"));
    assert!(container.start().status.success());
    assert_eq!(container.calls(), format!("{INITDB}{SERVES}{SERVES}"));
}

#[test]
fn the_data_directory_is_its_owners_alone_at_every_start() {
    let container = Container::new();
    for _ in 0..2 {
        assert!(container.start().status.success());
        let data = container.volume().join("17/data");
        assert_eq!(fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
        // So does Kubernetes when it gives a whole volume to a group.
        fs::set_permissions(&data, fs::Permissions::from_mode(0o2770)).unwrap();
    }
}

#[test]
fn new_credentials_are_set_once_before_the_server_serves() {
    let container = Container::new();
    assert!(container.start().status.success());
    let secret = container.path("password");
    let begun = container.calls();
    for (password, times) in [("first-password", 1), ("first-password", 1), ("second-password", 2)] {
        fs::write(&secret, password).unwrap();
        let variables =
            [("POSTGRES_NEW_CREDENTIALS", Path::new("true")), ("POSTGRES_PASSWORD_FILE", secret.as_path())];
        let output = container.start_with(&variables);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let calls = container.calls();
        assert_eq!(calls[begun.len()..].matches("postgres --single").count(), times, "{calls}");
        assert!(calls.contains(&format!("ALTER ROLE \"admin\" WITH LOGIN PASSWORD '{password}'")), "{calls}");
        assert!(calls.ends_with(SERVES), "{calls}");
    }
    assert!(!container.content()["17/credentials"].contains("password"));
    program(&container.path("bin"), "postgres", "exit 1");
    fs::write(&secret, "third-password").unwrap();
    let variables =
        [("POSTGRES_NEW_CREDENTIALS", Path::new("true")), ("POSTGRES_PASSWORD_FILE", secret.as_path())];
    let before = container.content();
    assert!(!container.start_with(&variables).status.success(), "the server is not started with others");
    assert_eq!(container.content(), before);
}

#[test]
fn what_alter_system_has_set_is_set_aside_at_the_next_start() {
    const FILE: &str = "17/data/postgresql.auto.conf";
    const ASIDE: &str = "17/postgresql.auto.conf.set-aside";
    let untouched = "# Do not edit this file manually!\n\n";
    let container = Container::new();
    assert!(container.start().status.success());
    container.put(FILE, untouched);
    assert!(container.start().status.success());
    assert_eq!(container.content()[FILE], untouched);
    container.put(FILE, "# Do not edit this file manually!\nshared_buffers = '900GB'\n");
    let output = container.start();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("spec.config"), "{said}");
    assert!(!container.content().contains_key(FILE));
    assert!(container.content()[ASIDE].contains("900GB"), "nothing is lost");
    assert!(container.start().status.success());
}

#[test]
fn an_initialisation_that_was_interrupted_is_begun_anew() {
    let broken = "mkdir \"$directory\" && echo 17 >\"$directory/PG_VERSION\" && kill -9 $$";
    for body in [broken, "exit 1"] {
        let container = Container::new();
        container.initdb(body);
        assert!(!container.start().status.success());
        assert!(!container.volume().join("17/data").exists(), "half a directory got the name of a whole one");
        container.initdb(
            "[ ! -e \"$directory\" ] && mkdir \"$directory\" && echo 17 \
            >\"$directory/PG_VERSION\"",
        );
        assert!(container.start().status.success());
        assert!(container.calls().ends_with(SERVES), "{}", container.calls());
    }
    let container = Container::new();
    program(&container.path("bin"), "postgres", "exit 1");
    assert!(!container.start().status.success());
    assert!(
        !container.volume().join("17/data").exists(),
        "a directory without the database got the name of a whole one"
    );
}

#[test]
fn an_empty_directory_in_the_datas_place_is_used() {
    let container = Container::new();
    fs::create_dir_all(container.volume().join("17/data")).unwrap();
    assert!(container.start().status.success());
    assert!(container.volume().join("17/data/PG_VERSION").exists());
}

#[test]
fn a_volume_that_holds_anything_else_is_refused_by_name_and_left_as_it_is() {
    for (file, says) in [
        ("orders.csv", "VOLUME/orders.csv does not belong there"),
        (".hidden", "VOLUME/.hidden does not belong there"),
        ("..odd", "VOLUME/..odd does not belong there"),
        ("PG_VERSION", "VOLUME/PG_VERSION does not belong there"),
        ("data/PG_VERSION", "VOLUME/data does not belong there"),
        ("16/data/PG_VERSION", "VOLUME/16 does not belong there"),
        ("17/docker/PG_VERSION", "VOLUME/17/docker does not belong there"),
        ("17/data/base/1", "VOLUME/17/data/base does not belong there"),
        ("17/data/.x", "VOLUME/17/data/.x does not belong there"),
    ] {
        let container = Container::new();
        container.put(file, "precious");
        let before = container.content();
        let output = container.start();
        let said = String::from_utf8(output.stderr)
            .unwrap()
            .replace(&container.volume().display().to_string(), "VOLUME");
        assert_eq!(output.status.code(), Some(1), "{file}: {said}");
        assert!(said.starts_with("PostgreSQL 17 is not started: ") && said.contains(says), "{file}: {said}");
        let left = fs::read_to_string(container.path("termination-log")).unwrap();
        assert_eq!(left.replace(&container.volume().display().to_string(), "VOLUME"), said, "{file}");
        assert_eq!((container.content(), container.calls()), (before, String::new()), "{file}");
    }
}

#[test]
fn data_of_another_major_version_in_this_ones_place_is_refused() {
    for (version, named) in [("16\n", "'16'"), ("", "''"), ("170\n", "'170'"), ("9.6", "'9.6'")] {
        let container = Container::new();
        container.put("17/data/PG_VERSION", version);
        let output = container.start();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("holds data of PostgreSQL {named}")), "{said}");
        assert_eq!(container.calls(), "");
    }
}

#[test]
fn a_pod_that_cannot_leave_a_message_still_says_why_on_its_log() {
    let container = Container::new();
    container.put("orders.csv", "");
    fs::create_dir(container.path("termination-log")).unwrap();
    let output = container.start();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1);
}
