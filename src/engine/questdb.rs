//! QuestDB: PostgreSQL wire protocol on 8812, HTTP on 9000, health on 9003; its root is the volume's mount
//! point.

use std::collections::BTreeMap;
use std::time::Duration;

use super::release::Release;
use super::{
    Binding, Check, ConfigDirectory, EngineError, Port, Probe, Profile, Rotation, Scratch, Value, Variable,
    properties, setting,
};
use crate::api::database::{ConfigValue, Engine};
use crate::api::node_class::PullPolicy;

/// The server's root: `db`, `conf`, `public`, and `.checkpoint` and `_restore` beside them. The volume is
/// mounted here, so that a snapshot of it holds all of them (QuestDB documentation, "Root directory
/// structure").
pub const ROOT: &str = "/var/lib/questdb";

/// The user of the published image.
const USER_ID: i64 = 10001;

/// Where the password's file is mounted. QuestDB refuses paths below /dev, /proc and /sys.
const PASSWORD_DIRECTORY: &str = "/run/freehold/credentials";

/// The first release whose HTTP port can ask for a password (questdb/questdb pull request 4672). Before it,
/// port 9000 serves SQL to every client that reaches it.
const FIRST_WITH_HTTP_PASSWORD: Release = Release(8, 1, 0);

/// The first release that is known to read passwords from files (questdb/questdb pull request 6719). An older
/// one would start with its default password if it had only the file.
const FIRST_WITH_PASSWORD_FILES: Release = Release(9, 3, 4);

/// Has the server recover from the checkpoint in restored data: it does so when it finds the file `_restore`,
/// and removes it (QuestDB documentation, "Backup and restore"). Once for each snapshot, by a file of its own
/// beside it: a server that ended during a later checkpoint leaves `.checkpoint/db` behind, and would go back
/// to it. The file comes after `_restore`, so that an end in between repeats the first and loses nothing.
/// Without `.checkpoint/db` the server does not start with `_restore`. Only what the shell has is used.
pub(super) const RECOVERY: &str = "set -eu\n\
    root=${QUESTDB_ROOT:-/var/lib/questdb}\n\
    done=\"$root/.restored-from-$RESTORED_FROM\"\n\
    if [ -e \"$done\" ]; then exit 0; fi\n\
    if [ -d \"$root/.checkpoint/db\" ]; then : > \"$root/_restore\"; fi\n\
    : > \"$done\"\n";

/// Settings that the operator owns: exact names, or a group when the name ends with a dot.
const OWNED: &[(&str, &str)] = &[
    ("pg.user", "the credentials are generated, see status.credentialsSecretName; remove it"),
    ("pg.readonly.user", "a second user would have the engine's well-known default password; remove it"),
    ("pg.net.bind.to", "clients connect as status.endpoint says; remove it"),
    ("pg.net.active.connection.bind.to", "clients connect as status.endpoint says; remove it"),
    ("pg.enabled", "clients connect as status.endpoint says; remove it"),
    ("http.user", "the credentials are generated, see status.credentialsSecretName; remove it"),
    ("http.bind.to", "clients connect as status.endpoint says; remove it"),
    ("http.net.bind.to", "clients connect as status.endpoint says; remove it"),
    ("http.enabled", "clients connect as status.endpoint says; remove it"),
    (
        "http.health.check.authentication.required",
        "Kubernetes asks for the health without credentials; remove it",
    ),
    ("http.min.", "it serves Kubernetes' probes; remove it"),
    (
        "line.tcp.",
        "InfluxDB line protocol over TCP is off, since it knows no password; send it over HTTP, and remove \
            this",
    ),
    (
        "line.udp.",
        "InfluxDB line protocol over UDP is off, since it knows no password; send it over HTTP, and remove \
            this",
    ),
    ("metrics.enabled", "metrics are always on; remove it"),
    ("cairo.root", "the volume is mounted at the default root; remove it"),
    ("cairo.checkpoint.", "a restored database recovers from the checkpoint of its backup; remove it"),
    ("cairo.snapshot.", "a restored database recovers from the checkpoint of its backup; remove it"),
    ("cairo.volumes", "all tables live on the database's own volume; remove it"),
];

/// What the Web Console's files are served as: the server does not start without this file (seen with 9.3.4).
const MIME_TYPES: &str = "text/html html htm\n\
                          text/css css\n\
                          text/plain txt\n\
                          text/csv csv\n\
                          application/javascript js\n\
                          application/json json map\n\
                          application/wasm wasm\n\
                          image/svg+xml svg svgz\n\
                          image/png png\n\
                          image/x-icon ico\n\
                          font/woff woff\n\
                          font/woff2 woff2\n\
                          font/ttf ttf\n";

/// What QuestDB needs.
pub fn profile(engine: &Engine, config: &BTreeMap<String, ConfigValue>) -> Result<Profile, EngineError> {
    let Some(version) = &engine.version else {
        return Err(EngineError::VersionMissing { engine: "questdb", example: "9.3.4" });
    };
    let Some(release) = Release::parse(version) else {
        return Err(EngineError::VersionForm { version: version.clone(), example: "9.3.4" });
    };
    if release < FIRST_WITH_HTTP_PASSWORD {
        return Err(EngineError::VersionTooOld {
            version: version.clone(),
            reason: "its HTTP port cannot ask for a password",
            minimum: "8.1.0",
        });
    }
    let reads_files = release >= FIRST_WITH_PASSWORD_FILES;
    Ok(Profile {
        image: format!("questdb/questdb:{version}"),
        pull_policy: PullPolicy::default(),
        pull_secrets: Vec::new(),
        command: Vec::new(),
        ports: vec![
            Port { name: "pgwire", number: 8812, is_service: true },
            Port { name: "http", number: 9000, is_service: true },
            Port { name: "health", number: 9003, is_service: false },
        ],
        metrics: Some("health"),
        primary_port: "pgwire",
        data_path: ROOT.to_owned(),
        user_id: USER_ID,
        environment: environment(reads_files),
        config: Some(ConfigDirectory { path: "/var/lib/questdb/conf", files: files(config)? }),
        password_directory: reads_files.then_some(PASSWORD_DIRECTORY),
        // `reload_config()` gives another password to the PostgreSQL wire protocol alone: the HTTP server
        // makes its authenticator once, at its start (seen with 8.2.0, 9.2.3 and 9.3.4).
        rotation: Rotation::AtStart,
        // Recovery of the tables after a crash may take long; at least an hour passes before the start counts
        // as failed. Probed each second: what lies between the engine's start and the next question is an
        // outage, too.
        startup: health(1, 3600),
        readiness: health(5, 3),
        // The health server shows that the process is up, nothing more: an engine that waits for its disk for
        // five minutes is not ended, since a restart would wait for the same disk.
        liveness: health(10, 30),
        // What was committed is in its files already, in the page cache at least, which outlives the process;
        // what is not applied to a table yet is in its write-ahead log, and is applied after the start
        // (QuestDB documentation, "Write-Ahead Log (WAL)"). CHECKPOINT CREATE is for copies: it holds the
        // files as they are.
        flush: None,
        termination_grace: Duration::from_secs(120),
        recovery: Some(RECOVERY),
        binding: Binding {
            kind: "postgresql",
            provider: "questdb",
            scheme: "postgresql",
            database: Some("qdb"),
        },
        scratch: vec![Scratch::disk("/tmp")],
    })
}

/// The variables that carry the credentials. A variable wins over the file of settings (QuestDB
/// documentation, "Configuration").
fn environment(reads_files: bool) -> Vec<Variable> {
    let mut variables = Vec::new();
    for protocol in ["PG", "HTTP"] {
        variables.push(Variable { name: format!("QDB_{protocol}_USER"), value: Value::Username });
        variables.push(if reads_files {
            let path = format!("{PASSWORD_DIRECTORY}/password");
            Variable { name: format!("QDB_{protocol}_PASSWORD_FILE"), value: Value::Text(path) }
        } else {
            Variable { name: format!("QDB_{protocol}_PASSWORD"), value: Value::Password }
        });
    }
    variables
}

/// The directory `conf`. It is read-only, so each file that the server would write at its first start must be
/// there.
fn files(config: &BTreeMap<String, ConfigValue>) -> Result<BTreeMap<String, String>, EngineError> {
    let mut server = "# Written by Freehold from the Database's spec.config: edit it there.\n".to_owned();
    for (key, value) in [
        // With a worker of its own the health server answers while all others are busy.
        ("http.min.enabled", "true"),
        ("http.min.worker.count", "1"),
        // Once HTTP requires a password, so does the health server, unless configured otherwise.
        ("http.health.check.authentication.required", "false"),
        ("line.tcp.enabled", "false"),
        ("line.udp.enabled", "false"),
        ("metrics.enabled", "true"),
    ] {
        server.push_str(&properties::line(key, value));
    }
    for (key, value) in config {
        setting::check(key, value)?;
        if let Some(way_out) = owned(key) {
            return Err(EngineError::ConfigOwned { key: key.clone(), way_out });
        }
        server.push_str(&properties::line(key, &value.0));
    }
    let log = "# Everything goes to the container's log; the health server's own lines only when they are \
               errors.\n\
               writers=stdout,http.min\n\
               w.stdout.class=io.questdb.log.LogConsoleWriter\n\
               w.stdout.level=INFO\n\
               w.http.min.class=io.questdb.log.LogConsoleWriter\n\
               w.http.min.level=ERROR\n\
               w.http.min.scope=http-min-server\n";
    Ok(BTreeMap::from([
        ("server.conf".to_owned(), server),
        ("log.conf".to_owned(), log.to_owned()),
        ("mime.types".to_owned(), MIME_TYPES.to_owned()),
        // Releases differ in whether they look for it.
        ("date.formats".to_owned(), "# The server's built-in date formats are used.\n".to_owned()),
    ]))
}

/// What to do instead of setting this key, when the operator owns it.
fn owned(key: &str) -> Option<&'static str> {
    let key = key.to_ascii_lowercase();
    if key.contains("password") {
        return Some("passwords are generated, see status.credentialsSecretName; remove it");
    }
    let is_group = |name: &str| name.ends_with('.') && key.starts_with(name);
    let is_same =
        |name: &str| key == name || key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    OWNED.iter().find(|(name, _)| is_group(name) || is_same(name)).map(|(_, way_out)| *way_out)
}

/// A question to the health server.
fn health(period: i32, failures: i32) -> Probe {
    Probe { check: Check::Http { path: "/status", port: "health" }, period, timeout: 5, failures }
}
