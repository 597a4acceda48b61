//! The start of PostgreSQL on volumes of every content.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use pretty_assertions::assert_eq;
use tempfile::TempDir;

use super::program;
use crate::api::keys::USER_COMMENT;
use crate::engine::postgresql::START;

/// A volume, and stand-ins for PostgreSQL's programs that write down how they were called.
pub(super) struct Container {
    folder: TempDir,
}

impl Container {
    pub(super) fn new() -> Self {
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

    pub(super) fn path(&self, below: &str) -> std::path::PathBuf {
        self.folder.path().join(below)
    }

    pub(super) fn volume(&self) -> std::path::PathBuf {
        self.path("volume")
    }

    pub(super) fn put(&self, file: &str, text: &str) {
        let path = self.volume().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn start(&self) -> Output {
        self.start_with(&[])
    }

    pub(super) fn start_with(&self, variables: &[(&str, &Path)]) -> Output {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        Command::new("/bin/sh")
            .args(["-c", START])
            .env_clear()
            .env("PATH", path)
            .env("CALLS", self.path("calls"))
            .env("TERMINATION_LOG", self.path("termination-log"))
            .env("SETTINGS", self.path("postgresql.conf"))
            .env("MEMINFO", self.path("meminfo"))
            .env("MEMORY_LIMIT", self.path("memory.max"))
            .env("PGDATA", self.volume().join("17/data"))
            .env("POSTGRES_USER", "admin")
            .env("POSTGRES_PASSWORD_FILE", "/run/freehold/credentials/password")
            .env("POSTGRES_DB", "app")
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    pub(super) fn starts(&self, variables: &[(&str, &Path)]) {
        let output = self.start_with(variables);
        assert!(output.status.success(), "{output:?}");
    }

    pub(super) fn calls(&self) -> String {
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

pub(super) const INITDB: &str = "initdb --pgdata=VOLUME/17/data.unfinished --username=admin \
                      --pwfile=/run/freehold/credentials/password \
                      --auth=scram-sha-256 --data-checksums --encoding=UTF8 --locale=C.UTF-8\n\
                      postgres --single -D VOLUME/17/data.unfinished -c exit_on_error=on postgres\n\
                      CREATE DATABASE \"app\"\n";
pub(super) const SERVES: &str = "postgres -D VOLUME/17/data -c allow_alter_system=off -c config_file=/etc/freehold/postgresql.conf -c \
                      hba_file=/etc/freehold/pg_hba.conf -c listen_addresses=* -c port=5432 -c \
                      unix_socket_directories=/var/run/postgresql -c logging_collector=off -c fsync=on -c \
                      full_page_writes=on\n";

#[test]
fn an_empty_volume_is_initialised_once_and_then_served() {
    let container = Container::new();
    fs::create_dir(container.volume().join("lost+found")).unwrap();
    container.starts(&[]);
    assert_eq!(container.calls(), format!("{INITDB}{SERVES}"));
    container.starts(&[]);
    assert_eq!(container.calls(), format!("{INITDB}{SERVES}{SERVES}"));
}

#[test]
fn tls_is_offered_or_required_as_the_pod_says() {
    let files =
        "-c ssl=on -c ssl_cert_file=/run/freehold/tls/tls.crt -c ssl_key_file=/run/freehold/tls/tls.key ";
    for (variable, expected, rules) in [
        ("", "", "pg_hba.conf"),
        ("offered", files, "pg_hba.conf"),
        ("required", files, "pg_hba.hostssl.conf"),
    ] {
        let container = Container::new();
        container.starts(&[("POSTGRES_TLS", Path::new(variable))]);
        let serves = SERVES
            .replace("allow_alter_system=off ", &format!("allow_alter_system=off {expected}"))
            .replace("pg_hba.conf", rules);
        assert_eq!(container.calls(), format!("{INITDB}{serves}"), "{variable}");
    }
}

#[test]
fn the_data_directory_is_its_owners_alone_at_every_start() {
    let container = Container::new();
    for _ in 0..2 {
        container.starts(&[]);
        let data = container.volume().join("17/data");
        assert_eq!(fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
        // So does Kubernetes when it gives a whole volume to a group.
        fs::set_permissions(&data, fs::Permissions::from_mode(0o2770)).unwrap();
    }
}

/// What the container has when the credentials of its data are to be those of this file.
fn new_credentials<'a>(uid: &'a str, secret: &'a Path) -> [(&'static str, &'a Path); 2] {
    [("POSTGRES_NEW_CREDENTIALS", Path::new(uid)), ("POSTGRES_PASSWORD_FILE", secret)]
}

#[test]
fn new_credentials_are_set_once_for_each_database_before_the_server_serves() {
    let container = Container::new();
    container.starts(&[]);
    let secret = container.path("password");
    let begun = container.calls();
    let variables = |uid: &'static str| new_credentials(uid, &secret);
    // The password of a rotation is in the server already, and the file of a running pod may be older.
    for (uid, password, times) in [
        ("first-uid", "first-password", 1),
        ("first-uid", "first-password", 1),
        ("first-uid", "rotated-password", 1),
        ("second-uid", "second-password", 2),
    ] {
        fs::write(&secret, password).unwrap();
        container.starts(&variables(uid));
        let calls = container.calls();
        assert_eq!(calls[begun.len()..].matches("postgres --single").count(), times, "{calls}");
        let is_set = calls.contains(&format!("ALTER ROLE \"admin\" WITH LOGIN PASSWORD '{password}'"));
        assert_eq!(is_set, password != "rotated-password", "{calls}");
        assert!(calls.ends_with(SERVES), "{calls}");
    }
    assert!(!container.content()["17/credentials"].contains("password"));
    program(&container.path("bin"), "postgres", "exit 1");
    let before = container.content();
    assert!(!container.start_with(&variables("third-uid")).status.success(), "no server with others");
    assert_eq!(container.content(), before);
}

#[test]
fn users_are_locked_in_data_of_a_backup_once() {
    for (variable, times) in [("POSTGRES_LOCK_USERS", 1), ("ANOTHER", 0)] {
        let container = Container::new();
        container.starts(&[]);
        let secret = container.path("password");
        fs::write(&secret, "first-password").unwrap();
        let variables = [&new_credentials("uid", &secret)[..], &[(variable, Path::new("true"))]].concat();
        for _ in 0..2 {
            container.starts(&variables);
            assert_eq!(container.calls().matches("SET rolcanlogin = false").count(), times);
            assert_eq!(container.calls().matches("ALTER ROLE").count(), 1);
        }
    }
}

#[test]
fn the_users_that_are_locked_are_those_with_the_comment_of_a_database_user() {
    let of_comment = format!("description LIKE '{USER_COMMENT} %'");
    assert_eq!(START.matches(&of_comment).count(), 2);
    assert_eq!(START.matches(USER_COMMENT).count(), 2);
}

#[test]
fn a_pod_of_an_earlier_version_sets_the_mounted_password_once_whatever_a_rotation_has_set_since() {
    let container = Container::new();
    container.starts(&[]);
    let secret = container.path("password");
    fs::write(&secret, "first-password").unwrap();
    let variables = new_credentials("true", &secret);
    let times = |container: &Container| container.calls().matches("ALTER ROLE").count();
    container.starts(&variables);
    assert_eq!(times(&container), 1, "nothing was set before");
    // That version wrote down the hash of the password.
    container.put("17/credentials", "0123456789abcdef\n");
    container.starts(&variables);
    assert_eq!(times(&container), 1, "the mounted password may be older than the one in force");
}

#[test]
fn the_password_that_is_set_is_in_no_log_whatever_the_settings_say() {
    let container = Container::new();
    container.starts(&[]);
    let secret = container.path("password");
    fs::write(&secret, "first-password").unwrap();
    let variables = new_credentials("uid", &secret);
    container.starts(&variables);
    let calls = container.calls();
    let sets = calls.lines().find(|it| it.contains("--single -D VOLUME/17/data -c")).unwrap();
    for setting in [
        "log_statement=none",
        "log_min_duration_statement=-1",
        "log_min_duration_sample=-1",
        "log_transaction_sample_rate=0",
        "log_duration=off",
        "log_min_error_statement=panic",
        "default_transaction_read_only=off",
        "search_path=pg_catalog",
        "statement_timeout=0",
        "lock_timeout=30s",
    ] {
        assert!(sets.contains(&format!(" -c {setting} ")), "{setting}: {sets}");
    }
}

#[test]
fn what_alter_system_has_set_is_set_aside_at_the_next_start() {
    const FILE: &str = "17/data/postgresql.auto.conf";
    const ASIDE: &str = "17/postgresql.auto.conf.set-aside";
    let untouched = "# Do not edit this file manually!\n\n";
    let container = Container::new();
    container.starts(&[]);
    container.put(FILE, untouched);
    container.starts(&[]);
    assert_eq!(container.content()[FILE], untouched);
    container.put(FILE, "# Do not edit this file manually!\nshared_buffers = '900GB'\n");
    let output = container.start();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("spec.config"), "{said}");
    assert!(!container.content().contains_key(FILE));
    assert!(container.content()[ASIDE].contains("900GB"), "nothing is lost");
    container.starts(&[]);
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
        container.starts(&[]);
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
    container.starts(&[]);
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

#[test]
fn the_cache_is_a_quarter_of_the_memory_unless_the_spec_says_otherwise() {
    let machine = "MemTotal:       16000000 kB\nMemFree:        15000000 kB\n";
    for (settings, limit, expected) in [
        ("timezone = 'Etc/UTC'\n", "max\n", Some("4000000kB")),
        ("timezone = 'Etc/UTC'\n", "1073741824\n", Some("262144kB")),
        ("timezone = 'Etc/UTC'\n", "1099511627776\n", Some("4000000kB")),
        ("Shared_Buffers = '4GB'\n", "max\n", None),
    ] {
        let container = Container::new();
        for (name, text) in [("meminfo", machine), ("memory.max", limit), ("postgresql.conf", settings)] {
            fs::write(container.path(name), text).unwrap();
        }
        let output = container.start();
        assert!(output.status.success(), "{output:?}");
        let calls = container.calls();
        let set = calls.split_once("shared_buffers=").map(|(_, after)| after.split(' ').next().unwrap());
        assert_eq!(set, expected, "{settings} {limit}: {calls}");
    }
    let unknown = Container::new();
    unknown.start();
    assert!(!unknown.calls().contains("shared_buffers"), "{}", unknown.calls());
}
