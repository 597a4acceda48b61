//! PostgreSQL: the official image on port 5432; its data lies two folders below the volume's mount point, the
//! major version in the path.

mod conf;
mod grace;

use std::collections::BTreeMap;

use super::{
    Binding, Check, ConfigDirectory, EngineError, Port, Probe, Profile, Rotation, Scratch, Value, Variable,
    setting,
};
use crate::api::database::{ConfigValue, Engine};
use crate::api::node_class::PullPolicy;

/// The volume's mount point. Not where the image has its data: it declares that as a volume of its own
/// (`data` below /var/lib/postgresql, from version 18 on all of it), and a container runtime mounts an empty
/// directory over what it declares.
const ROOT: &str = "/var/lib/freehold";

/// The variable that names the data directory, here as in PostgreSQL's own programs. It holds the major
/// version: one major cannot read the files of another, and an upgrade needs the old and the new directory on
/// one volume.
pub const DATA_DIRECTORY: &str = "PGDATA";

/// The variable with which the start sets the password of data that has another one (`start.sh`): whose data
/// it is now. It is set once for each, since a rotation changes it later.
pub const NEW_CREDENTIALS: &str = "POSTGRES_NEW_CREDENTIALS";

/// The variable with which the start locks the users that DatabaseUsers made, where it sets the password: the
/// data is of a backup, and one of them may have been dropped since.
pub const LOCK_USERS: &str = "POSTGRES_LOCK_USERS";

/// The variable that has the start offer TLS, with the files in [`super::TLS_DIRECTORY`]: `offered`, or
/// `required` where no client is let in without it.
pub const TLS: &str = "POSTGRES_TLS";

/// The variable with the destination of `spec.walArchive`.
pub const WAL_ARCHIVE: &str = "WAL_ARCHIVE";

/// The variable with the folder of the volume in it.
pub const WAL_ARCHIVE_FOLDER: &str = "WAL_ARCHIVE_FOLDER";

/// The variable with its service's URL, where that is not AWS'.
pub const WAL_ARCHIVE_ENDPOINT: &str = "WAL_ARCHIVE_ENDPOINT";

/// The variable with the seconds after which what was written is archived.
pub const WAL_ARCHIVE_INTERVAL: &str = "WAL_ARCHIVE_INTERVAL";

/// The variable that has the start recover the data of a backup to a later moment: which restore it is. It is
/// done once for each.
pub const WAL_RECOVERY: &str = "WAL_RECOVERY";

/// The variable with the destination that the backup's database archived to.
pub const WAL_RECOVERY_ARCHIVE: &str = "WAL_RECOVERY_ARCHIVE";

/// The variable with the folder of its volume in it.
pub const WAL_RECOVERY_FOLDER: &str = "WAL_RECOVERY_FOLDER";

/// The variable with the setting that says up to where, if not all of the log is recovered.
pub const WAL_RECOVERY_TARGET: &str = "WAL_RECOVERY_TARGET";

/// Where the credentials of the archive are mounted.
pub const WAL_ARCHIVE_CREDENTIALS: &str = "/run/freehold/wal-archive";

/// The user of the official image (Debian).
const USER_ID: i64 = 999;

/// The database that is made beside the built-in ones, for the application.
pub const DATABASE: &str = "app";

/// The database for the administrator's own connections: a user may drop any other.
pub const MAINTENANCE_DATABASE: &str = "postgres";

/// Where the password's file is mounted.
const PASSWORD_DIRECTORY: &str = "/run/freehold/credentials";

/// The major versions whose image, settings and layout are known (postgresql.org, "Versioning Policy": five
/// years each; the last release of 14 is of November 2026).
const FIRST_MAJOR: u32 = 14;
const LAST_MAJOR: u32 = 18;

/// Starts the server; initialises an empty volume before.
const START: &str = include_str!("start.sh");

/// Archives the write-ahead log, and gets it back.
const WAL: &str = include_str!("wal.sh");

/// Who may connect, and how they prove who they are.
const ACCESS: &str = include_str!("pg_hba.conf");

/// The same where TLS is required.
const ACCESS_WITH_TLS: &str = include_str!("pg_hba.hostssl.conf");

/// Settings that the operator owns: exact names, or a group when the name ends with `_`.
const OWNED: &[(&str, &str)] = &[
    ("data_directory", "the data lies on the database's own volume; remove it"),
    ("config_file", "all settings are in spec.config; remove it"),
    ("hba_file", "every connection needs a password; remove it"),
    ("ident_file", "every connection needs a password; remove it"),
    ("external_pid_file", "no program reads it in a container; remove it"),
    ("include", "all settings are in spec.config; remove it"),
    ("include_", "all settings are in spec.config; remove it"),
    ("listen_addresses", "clients connect as status.endpoint says; remove it"),
    ("port", "clients connect as status.endpoint says; remove it"),
    ("unix_socket_", "the probes use the socket; remove it"),
    ("ssl", "spec.tls has the engine offer TLS; remove it"),
    // A server takes a wrong one of these at a reload, and does not start with it.
    ("ssl_", "TLS is as spec.tls says; remove it"),
    ("krb_", "every connection needs a password; remove it"),
    ("password_encryption", "passwords are checked by scram-sha-256 only; remove it"),
    ("logging_collector", "the log is the container's, so that it cannot fill the volume; remove it"),
    // Each of these loses committed data without a word; for speed at a known price there is
    // synchronous_commit.
    (
        "fsync",
        "without it a power cut destroys the database; for speed set synchronous_commit to off, which loses \
        the last commits only",
    ),
    ("full_page_writes", "without it a power cut destroys pages; for speed set synchronous_commit to off"),
    ("data_sync_retry", "after a failed flush the data in memory is not to be trusted; remove it"),
    ("zero_damaged_pages", "it empties damaged pages; a superuser can set it in a session, once"),
    ("ignore_checksum_failure", "it hides damage; a superuser can set it in a session, once"),
    ("ignore_invalid_pages", "it hides damage; remove it"),
    ("archive_", "spec.walArchive has the log archived; remove it"),
    ("restore_command", "spec.restore has the data restored; remove it"),
    ("recovery_target", "spec.restore.pointInTime says it; remove it"),
    ("recovery_target_", "spec.restore.pointInTime says it; remove it"),
    ("recovery_end_command", "spec.restore has the data restored; remove it"),
    ("primary_", "there is no other server to follow; remove it"),
    ("synchronous_standby_names", "there is no other server, and every commit would wait for it; remove it"),
];

/// The major version; `None` when the text is no release such as 17.6.
fn major(version: &str) -> Option<u32> {
    let (major, minor) = version.split_once('.')?;
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if is_number { text.parse::<u32>().ok() } else { None }
    };
    number(minor)?;
    number(major)
}

/// What PostgreSQL needs.
pub fn profile(engine: &Engine, config: &BTreeMap<String, ConfigValue>) -> Result<Profile, EngineError> {
    let Some(version) = &engine.version else {
        return Err(EngineError::VersionMissing { engine: "postgresql", example: "17.6" });
    };
    let Some(major) = major(version) else {
        return Err(EngineError::VersionForm { version: version.clone(), example: "17.6" });
    };
    if !(FIRST_MAJOR..=LAST_MAJOR).contains(&major) {
        return Err(EngineError::VersionUnknown { version: version.clone(), known: "14 to 18" });
    }
    Ok(Profile {
        image: format!("docker.io/library/postgres:{version}"),
        pull_policy: PullPolicy::default(),
        pull_secrets: Vec::new(),
        // Kubernetes mounts a ConfigMap's files without the right to execute them.
        command: vec!["/bin/sh", "/etc/freehold/start.sh"],
        ports: vec![Port { name: "postgresql", number: 5432, is_service: true }],
        metrics: None,
        primary_port: "postgresql",
        data_path: ROOT.to_owned(),
        user_id: USER_ID,
        environment: environment(major),
        config: Some(ConfigDirectory { path: "/etc/freehold", files: files(config)? }),
        password_directory: Some(PASSWORD_DIRECTORY),
        rotation: Rotation::Statement,
        // It answers while it recovers, however long that takes; hours of silence count as a failed start.
        startup: Probe { check: answers(), period: 1, timeout: 5, failures: 3600 },
        readiness: Probe {
            check: Check::Command(vec![
                "pg_isready",
                "--host=/var/run/postgresql",
                "--username=admin",
                "--dbname=app",
            ]),
            period: 5,
            timeout: 5,
            failures: 3,
        },
        // A server that died of one connection's crash recovers by itself, and says so meanwhile: only long
        // silence is an end.
        liveness: Probe { check: answers(), period: 10, timeout: 5, failures: 30 },
        // A fast shutdown sends the clients away first and writes everything then, however much it is. What a
        // CHECKPOINT has written before, it does not write again (PostgreSQL documentation, "CHECKPOINT").
        flush: Some("CHECKPOINT"),
        // The image's stop signal asks for a fast shutdown: clients are sent away, and what is in memory is
        // written down. Cut off, the next start repeats the log instead; nothing is lost.
        termination_grace: grace::of(config),
        recovery: None,
        binding: Binding {
            kind: "postgresql",
            provider: "postgresql",
            scheme: "postgresql",
            database: Some(DATABASE),
        },
        scratch: scratch(),
    })
}

/// Where the server writes beside its data.
fn scratch() -> Vec<Scratch> {
    vec![
        Scratch::disk("/tmp"),
        Scratch::disk("/var/run/postgresql"),
        // Parallel queries share memory here, and a container's own 64 MiB are soon full. Without a size
        // of its own it may hold what the pod may use, or else the machine, which is the database's
        // alone; the kubelet sets that bound.
        Scratch::memory("/dev/shm"),
    ]
}

/// What the start reads; the names are the official image's.
fn environment(major: u32) -> Vec<Variable> {
    let variable = |name: &str, value| Variable { name: name.to_owned(), value };
    vec![
        variable(DATA_DIRECTORY, Value::Text(format!("{ROOT}/{major}/data"))),
        variable("POSTGRES_USER", Value::Username),
        variable("POSTGRES_PASSWORD_FILE", Value::Text(format!("{PASSWORD_DIRECTORY}/password"))),
        variable("POSTGRES_DB", Value::Text(DATABASE.to_owned())),
    ]
}

/// The directory of settings. The file that `initdb` writes is not used, so what it would decide is here.
fn files(config: &BTreeMap<String, ConfigValue>) -> Result<BTreeMap<String, String>, EngineError> {
    let mut settings = "# Written by Freehold from the Database's spec.config: edit it there.\n".to_owned();
    for (key, value) in [
        ("timezone", "Etc/UTC"),
        ("log_timezone", "Etc/UTC"),
        ("default_text_search_config", "pg_catalog.english"),
        ("password_encryption", "scram-sha-256"),
    ] {
        settings.push_str(&conf::line(key, value));
    }
    for (key, value) in config {
        setting::check(key, value)?;
        conf::check_name(key)?;
        if let Some(way_out) = owned(key) {
            return Err(EngineError::ConfigOwned { key: key.clone(), way_out });
        }
        // The last of two lines of one name wins.
        settings.push_str(&conf::line(key, &value.0));
    }
    Ok(BTreeMap::from([
        ("postgresql.conf".to_owned(), settings),
        ("pg_hba.conf".to_owned(), ACCESS.to_owned()),
        ("pg_hba.hostssl.conf".to_owned(), ACCESS_WITH_TLS.to_owned()),
        ("start.sh".to_owned(), START.to_owned()),
        ("wal.sh".to_owned(), WAL.to_owned()),
    ]))
}

/// What to do instead of setting this, when the operator owns it. PostgreSQL's names know no case.
fn owned(key: &str) -> Option<&'static str> {
    let key = key.to_ascii_lowercase();
    let is_owned = |name: &str| key == name || (name.ends_with('_') && key.starts_with(name));
    OWNED.iter().find(|(name, _)| is_owned(name)).map(|(_, way_out)| *way_out)
}

/// The server says something: that it accepts connections (0) or that it is not ready for them yet (1). One
/// that recovers alone says nothing, for as long as it takes (`start.sh`).
fn answers() -> Check {
    let ask = "pg_isready --quiet --host=/var/run/postgresql --username=admin --dbname=app; test $? -lt 2 || \
        test -e /tmp/freehold-recovering";
    Check::Command(vec!["/bin/sh", "-c", ask])
}

#[cfg(test)]
mod tests;
