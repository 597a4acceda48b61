//! The writer against a real PostgreSQL that is killed and started again; and what it says when rows are not
//! as it left them.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use freehold_box::base::process::{Launch, Process};
use freehold_box::writer::{Access, Dialect, PACE, Source, Target, Writer};
use nix::unistd::geteuid;
use tokio_postgres::NoTls;

/// Where Debian has the server's programs.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

const USER: &str = "admin";
const PASSWORD: &str = "a-password-of-the-test";
const TABLE: &str = "written_rows";

/// Nothing here takes longer, even on a machine that compiles meanwhile.
const LIMIT: Duration = Duration::from_mins(5);

struct Server {
    folder: tempfile::TempDir,
    address: SocketAddr,
    process: Option<Process>,
}

/// A program of the server's; it refuses to run as root.
fn program(name: &str, args: &[&str]) -> (PathBuf, Vec<String>) {
    let path = Path::new(PROGRAMS).join(name);
    let args = args.iter().map(|arg| (*arg).to_owned());
    if geteuid().is_root() {
        let user = ["--reuid=postgres", "--regid=postgres", "--clear-groups"].map(str::to_owned);
        let args = user.into_iter().chain([path.display().to_string()]).chain(args).collect();
        ("/usr/bin/setpriv".into(), args)
    } else {
        (path, args.collect())
    }
}

impl Server {
    /// None, and it says so aloud, where there is no PostgreSQL.
    fn create() -> Option<Self> {
        if !Path::new(PROGRAMS).join("postgres").exists() {
            // Not by `eprintln!`, which the harness keeps to itself.
            let _ = writeln!(
                std::io::stderr(),
                "not run: the writer's tests, since {PROGRAMS}/postgres is not there (Debian: \
                    postgresql-15)"
            );
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("password"), PASSWORD).unwrap();
        if geteuid().is_root() {
            assert!(
                Command::new("chown").args(["-R", "postgres"]).arg(folder.path()).status().unwrap().success()
            );
        }
        let (data, password) = (folder.path().join("data"), folder.path().join("password"));
        let password = format!("--pwfile={}", password.display());
        let (path, args) = program(
            "initdb",
            &[
                "-D",
                data.to_str().unwrap(),
                "-U",
                USER,
                &password,
                "--auth=scram-sha-256",
                "--locale=C.UTF-8",
                "-N",
            ],
        );
        let made = Command::new(path).args(args).current_dir("/").output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        Some(Self { folder, address, process: None })
    }

    fn start(&mut self) {
        let folder = self.folder.path();
        let (data, port) = (folder.join("data"), self.address.port().to_string());
        let args = [
            "-D",
            data.to_str().unwrap(),
            "-p",
            &port,
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            "unix_socket_directories=",
        ];
        let (program, args) = program("postgres", &args);
        let launch = Launch { name: "postgres", program: &program, args, folder };
        self.process = Some(Process::start(launch).unwrap());
    }

    /// Kills it at once, as a power cut would but for the page cache.
    fn kill(&mut self) {
        self.process.take().unwrap().kill();
    }

    /// Starts it again. It refuses as long as one of its parts of before has not noticed the kill.
    async fn start_again(&mut self) {
        let started = Instant::now();
        self.start();
        while tokio::net::TcpStream::connect(self.address).await.is_err() {
            let process = self.process.as_mut().unwrap();
            assert!(started.elapsed() < LIMIT, "{}", process.log_tail());
            if process.ended().is_some() {
                self.start();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn target(&self) -> Target {
        let access = Access {
            address: self.address,
            username: USER.to_owned(),
            password: PASSWORD.to_owned(),
            database: "postgres".to_owned(),
        };
        Target { dialect: Dialect::Postgresql, source: Source::Given(access), table: TABLE }
    }

    async fn sql(&self, statement: &str) {
        let config = format!(
            "host=127.0.0.1 port={} user={USER} password={PASSWORD} dbname=postgres",
            self.address.port()
        );
        let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute(statement).await.unwrap();
        connection.abort();
    }
}

#[tokio::test]
async fn what_was_acknowledged_is_found_after_kills_and_the_outage_is_measured() {
    let Some(mut server) = Server::create() else { return };
    let writer = Writer::start(server.target(), PACE);
    assert!(writer.is_served(Duration::from_millis(300)).await.unwrap_err().to_string().contains(
        "no row \
        acknowledged"
    ));
    assert_eq!((writer.first_answer(), writer.written().sent.len()), (None, 0));
    server.start_again().await;
    writer.is_served(LIMIT).await.unwrap();
    assert!(writer.first_answer().is_some());
    let before = writer.observed();

    // The outage that is to be measured is at least this long.
    let down = Duration::from_secs(1);
    for _ in 0..2 {
        server.kill();
        tokio::time::sleep(down).await;
        server.start_again().await;
        writer.is_served(LIMIT).await.unwrap();
        let observed = writer.observed();
        let outage = observed.outage.unwrap().length;
        assert!(outage >= down && outage < LIMIT, "{observed:?}");
    }

    let during = writer.verify(LIMIT).await.unwrap();
    during.check().unwrap();
    let written = writer.stop().await;
    assert!(written.acknowledged.len() >= before.acknowledged + 4, "{written:?}");
    let tally = written.verify(&server.target(), LIMIT).await.unwrap();
    tally.check().unwrap();
    assert!(tally.found.len() >= during.found.len());
}

#[tokio::test]
async fn rows_that_are_lost_doubled_or_foreign_are_named() {
    let Some(mut server) = Server::create() else { return };
    server.start_again().await;
    let writer = Writer::start(server.target(), PACE);
    writer.is_served(LIMIT).await.unwrap();
    writer.is_served(LIMIT).await.unwrap();
    let written = writer.stop().await;
    written.verify(&server.target(), LIMIT).await.unwrap().check().unwrap();

    server.sql(&format!("DELETE FROM {TABLE} WHERE number = 2")).await;
    server.sql(&format!("INSERT INTO {TABLE} (number) VALUES (1), (-7), (0)")).await;
    let untrue = written.verify(&server.target(), LIMIT).await.unwrap().check().unwrap_err();
    assert_eq!(
        untrue.to_string(),
        "1 row acknowledged and lost: 2; 2 rows found and never sent: -7, 0; 1 row found more than once: 1"
    );
}

#[tokio::test]
async fn a_row_without_an_answer_is_in_doubt_and_its_number_is_not_sent_again() {
    let Some(mut server) = Server::create() else { return };
    server.start_again().await;
    let writer = Writer::start(server.target(), PACE);
    writer.is_served(LIMIT).await.unwrap();

    // No row is written as long as this lock is held: longer than the writer waits for an answer.
    let config = format!(
        "host=127.0.0.1 port={} user={USER} password={PASSWORD} dbname=postgres",
        server.address.port()
    );
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(&format!("BEGIN; LOCK TABLE {TABLE} IN ACCESS EXCLUSIVE MODE")).await.unwrap();
    let unanswered = writer.is_served(Duration::from_secs(6)).await.unwrap_err();
    assert!(
        freehold_box::base::error_chain::chain(&unanswered).contains(
            "gave no answer within 5 s to \
        INSERT INTO"
        ),
        "{unanswered:?}"
    );
    client.batch_execute("COMMIT").await.unwrap();
    connection.abort();
    writer.is_served(LIMIT).await.unwrap();

    let written = writer.stop().await;
    let in_doubt = written.sent.without(&written.acknowledged);
    assert!(!in_doubt.is_empty());
    let tally = written.verify(&server.target(), LIMIT).await.unwrap();
    tally.check().unwrap();
    // PostgreSQL carried the insert out once the lock was gone, for a client that had left.
    assert!(in_doubt.without(&tally.found).len() < in_doubt.len());
}
