//! A PostgreSQL that Freehold's script starts archives its log in an S3 server, and a copy of its volume is
//! recovered by that log.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use freehold::api::database::WalArchiveState;
use freehold::engine::archiver::Archiver;
use freehold::engine::client::{Access, Engines as _, PgWire, Tls};
use freehold_box::base::process::{Launch, Process};
use freehold_box::writer::local_postgresql;
use nix::unistd::geteuid;
use pretty_assertions::assert_eq;
use tempfile::TempDir;

use super::{SLOWNESS, connected, sql};
use crate::kit::installed;
use crate::kit::s3::{KEY, REGION, S3, free_port};
use crate::kit::wait::until;

/// A pod's machine: a volume, and what Freehold mounts into the pod.
struct Pod {
    process: Option<Process>,
    folder: TempDir,
    port: u16,
    programs: &'static str,
    variables: Vec<(&'static str, String)>,
}

fn owned_by_postgres(path: &Path) {
    if geteuid().is_root() {
        installed::done(Command::new("chown").args(["-R", "postgres"]).arg(path));
    }
}

impl Pod {
    fn new(programs: &'static str, s3: &S3, volume: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["volume", "etc", "credentials", "bin"] {
            fs::create_dir(path(name)).unwrap();
        }
        let (port, etc, run) =
            (free_port(Ipv4Addr::LOCALHOST), path("etc").display().to_string(), folder.path().display());
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine/postgresql");
        for name in ["start.sh", "wal.sh", "pg_hba.conf"] {
            let text = fs::read_to_string(sources.join(name)).unwrap();
            let text = text.replace("/etc/freehold", &etc).replace("/var/run/postgresql", &run.to_string());
            fs::write(path("etc").join(name), text.replace("port=5432", &format!("port={port}"))).unwrap();
        }
        fs::write(path("etc/postgresql.conf"), "timezone = 'Etc/UTC'\n").unwrap();
        let python = installed::python(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/box/tools/postgresql/barman.txt"),
        );
        for name in ["barman-cloud-wal-archive", "barman-cloud-wal-restore"] {
            std::os::unix::fs::symlink(python.with_file_name(name), path("bin").join(name)).unwrap();
        }
        let variables = vec![
            ("PATH", format!("{}:{programs}:/usr/bin:/bin", path("bin").display())),
            ("PGDATA", path("volume/15/data").display().to_string()),
            ("POSTGRES_USER", "admin".to_owned()),
            ("POSTGRES_DB", "app".to_owned()),
            ("POSTGRES_PASSWORD_FILE", path("password").display().to_string()),
            ("TERMINATION_LOG", path("termination-log").display().to_string()),
            ("SETTINGS", path("etc/postgresql.conf").display().to_string()),
            ("RECOVERING", path("recovering").display().to_string()),
            ("AWS_DEFAULT_REGION", REGION.to_owned()),
            ("WAL_ARCHIVE_CREDENTIALS", path("credentials").display().to_string()),
            ("WAL_ARCHIVE", "s3://backups/one".to_owned()),
            ("WAL_ARCHIVE_FOLDER", volume.to_owned()),
            ("WAL_ARCHIVE_ENDPOINT", s3.url()),
            ("WAL_ARCHIVE_INTERVAL", "3600".to_owned()),
        ];
        let pod = Self { process: None, folder, port, programs, variables };
        pod.write("password", &format!("the password of {volume}"));
        pod.has_key(KEY.1);
        owned_by_postgres(pod.folder.path());
        pod
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// The Secret of the archive has this secret key.
    fn has_key(&self, key: &str) {
        self.write("credentials/AWS_ACCESS_KEY_ID", KEY.0);
        self.write("credentials/AWS_SECRET_ACCESS_KEY", key);
    }

    fn access(&self) -> Access {
        Access {
            address: Ipv4Addr::LOCALHOST.into(),
            port: self.port,
            username: "admin".to_owned(),
            password: fs::read_to_string(self.folder.path().join("password")).unwrap(),
            database: "app".to_owned(),
            tls: Tls::IfOffered,
            slowness: SLOWNESS,
        }
    }

    /// Starts the script. PostgreSQL refuses to run as root, and its programs of the archive may be in a
    /// folder that only root reads.
    fn launch(&mut self) {
        let mut args: Vec<String> =
            self.variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        args.extend(["/bin/sh".to_owned(), self.folder.path().join("etc/start.sh").display().to_string()]);
        let mut program = PathBuf::from("/usr/bin/env");
        if geteuid().is_root() {
            let user = ["--reuid=postgres", "--regid=postgres", "--clear-groups"];
            let reads = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search", "/usr/bin/env"];
            args = user.into_iter().chain(reads).map(str::to_owned).chain(args).collect();
            program = "/usr/bin/setpriv".into();
        }
        let launch = Launch { name: "pod", program: &program, args, folder: self.folder.path() };
        self.process = Some(Process::start(launch).unwrap());
    }

    /// Starts it, and waits until it lets the administrator in. PostgreSQL refuses to start as long as one of
    /// its parts of before has not noticed a kill.
    async fn serves(&mut self) {
        self.launch();
        until("PostgreSQL letting the administrator in", || {
            if self.process.as_mut().is_some_and(|process| process.ended().is_some()) {
                self.launch();
            }
            let (access, log) = (self.access(), self.log());
            async move { connected(&access).await.map(drop).map_err(|error| format!("{error}: {log}")) }
        })
        .await;
    }

    fn log(&self) -> String {
        self.process.as_ref().map(Process::log_tail).unwrap_or_default()
    }

    /// Waits until the script has given up; what the pod's status says of it.
    async fn ends(&mut self) -> String {
        self.launch();
        until("the script having ended", || {
            let ended = self.process.as_mut().unwrap().ended();
            async move { ended.map(drop).ok_or_else(|| "it goes on".to_owned()) }
        })
        .await;
        fs::read_to_string(self.folder.path().join("termination-log")).unwrap_or_default() + &self.log()
    }

    /// Another machine, with a copy of the volume as it is in this moment.
    fn copied(&self, s3: &S3, volume: &str) -> Self {
        let copy = Self::new(self.programs, s3, volume);
        let (from, to) = (self.folder.path().join("volume"), copy.folder.path().join("volume"));
        installed::done(Command::new("cp").arg("--archive").arg(from.join("15")).arg(&to));
        fs::remove_file(to.join("15/data/postmaster.pid")).unwrap_or_default();
        copy
    }

    /// Its data is recovered by the log of this volume, up to the moment that the setting says.
    fn recovers(&mut self, from: &str, target: &str) {
        self.variables.extend([
            ("POSTGRES_NEW_CREDENTIALS", "another-uid".to_owned()),
            ("WAL_RECOVERY", "snap-1".to_owned()),
            ("WAL_RECOVERY_ARCHIVE", "s3://backups/one".to_owned()),
            ("WAL_RECOVERY_FOLDER", from.to_owned()),
            ("WAL_RECOVERY_TARGET", target.to_owned()),
        ]);
    }

    async fn text(&self, query: &str) -> String {
        let (client, _connection) = connected(&self.access()).await.unwrap();
        client.query_one(query, &[]).await.unwrap().get(0)
    }

    /// Archives what is written until now.
    async fn archives(&self, s3: &S3, volume: &str) {
        let file = self.text("SELECT pg_walfile_name(pg_switch_wal())").await;
        until("the log being archived", || async {
            let files = s3.log(&format!("one/{volume}"));
            if files.contains(&file) {
                Ok(())
            } else {
                Err(format!("{file} is not in {files:?}: {}", self.log()))
            }
        })
        .await;
    }
}

const ROWS: &str = "SELECT string_agg(note, ' ' ORDER BY note) FROM trades";

async fn says(pod: &Pod) -> Archiver {
    PgWire.archiver(&pod.access()).await.unwrap()
}

/// It is idle, and archives a file once it is told to end one.
async fn begins(pod: &Pod) {
    assert!(says(pod).await.is_unproven(), "nothing was written that it would archive by itself");
    PgWire.switch_log(&pod.access()).await.unwrap();
    until("the first file being archived", || async {
        let answer = says(pod).await;
        if answer.has_archived { Ok(()) } else { Err(format!("{answer:?}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_volume_is_recovered_to_the_moment_before_a_mistake_by_the_log_that_was_archived() {
    let Some(programs) = local_postgresql::programs().unwrap() else { return };
    let s3 = S3::start(Ipv4Addr::LOCALHOST).await;
    let mut source = Pod::new(programs, &s3, "vol-1");
    source.serves().await;
    begins(&source).await;
    sql(&source.access(), "CREATE TABLE trades (note text); INSERT INTO trades VALUES ('1-archived')").await;
    source.archives(&s3, "vol-1").await;
    assert_eq!(says(&source).await.state(), WalArchiveState::Archiving);

    // The machine loses its power, as a snapshot sees it.
    source.process.take().unwrap().kill();
    let snapshot = source.copied(&s3, "vol-2");
    source.serves().await;
    sql(&source.access(), "INSERT INTO trades VALUES ('2-since')").await;
    source.archives(&s3, "vol-1").await;
    sql(&source.access(), "INSERT INTO trades VALUES ('3-just-before')").await;
    let moment = source.text("SELECT clock_timestamp()::text").await;
    let position = source.text("SELECT pg_current_wal_lsn()::text").await;
    sql(&source.access(), "DELETE FROM trades; INSERT INTO trades VALUES ('4-the-mistake')").await;
    source.archives(&s3, "vol-1").await;
    let archived = s3.log("one/vol-1");

    for (volume, target, expected) in [
        ("vol-3", format!("recovery_target_time={moment}"), "1-archived 2-since 3-just-before"),
        ("vol-4", format!("recovery_target_lsn={position}"), "1-archived 2-since 3-just-before"),
        ("vol-5", String::new(), "4-the-mistake"),
    ] {
        let mut restored = snapshot.copied(&s3, volume);
        restored.recovers("vol-1", &target);
        restored.serves().await;
        assert_eq!(restored.text(ROWS).await, expected, "{target}");
        let former = Access { port: restored.port, ..source.access() };
        assert!(connected(&former).await.is_err(), "the password of the source lets no one in");
        // It goes on as it is, and archives where it is alone.
        restored.process.take().unwrap().kill();
        restored.serves().await;
        sql(&restored.access(), "INSERT INTO trades VALUES ('5-of-its-own')").await;
        restored.archives(&s3, volume).await;
        assert_eq!(restored.text(ROWS).await, format!("{expected} 5-of-its-own"));
        assert!(s3.log(&format!("one/{volume}")).contains(&"00000002.history".to_owned()), "{volume}");
    }
    assert_eq!(s3.log("one/vol-1"), archived, "the log of the source is as it was");

    for (volume, from, target, says) in [
        ("vol-6", "vol-none", "", "s3://backups/one/vol-none does not give 00000001"),
        (
            "vol-7",
            "vol-1",
            "recovery_target_time=2999-01-01 00:00:00+00",
            "before configured recovery target",
        ),
    ] {
        let mut restored = snapshot.copied(&s3, volume);
        restored.recovers(from, target);
        let said = restored.ends().await;
        assert!(said.contains(says), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_refuses_is_seen_and_goes_on_by_itself_and_ends_no_recovery() {
    let Some(programs) = local_postgresql::programs().unwrap() else { return };
    let s3 = S3::start(Ipv4Addr::LOCALHOST).await;
    let mut source = Pod::new(programs, &s3, "vol-1");
    source.has_key("another");
    source.serves().await;
    sql(&source.access(), "CREATE TABLE trades (note text); SELECT pg_switch_wal()").await;
    until("the failure being seen", || async {
        let answer = says(&source).await;
        if answer.has_failed { Ok(()) } else { Err(format!("{answer:?}")) }
    })
    .await;
    source.has_key(KEY.1);
    sql(&source.access(), "INSERT INTO trades VALUES ('1')").await;
    source.archives(&s3, "vol-1").await;
    until("the archive being seen to work", || async {
        let answer = says(&source).await;
        if answer.has_failed { Err(format!("{answer:?}")) } else { Ok(()) }
    })
    .await;
    source.process.take().unwrap().kill();

    let mut restored = source.copied(&s3, "vol-2");
    restored.recovers("vol-1", "");
    restored.has_key("another");
    let said = restored.ends().await;
    assert!(said.contains("SignatureDoesNotMatch"), "{said}");
    restored.has_key(KEY.1);
    restored.serves().await;
    assert_eq!(restored.text(ROWS).await, "1");
}
