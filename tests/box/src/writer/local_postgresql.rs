//! A PostgreSQL of this host with a folder of its own, which a test starts, kills and starts again.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use nix::unistd::geteuid;
use tempfile::TempDir;
use tokio_postgres::{Client, Config, NoTls};
use tokio_util::task::AbortOnDropHandle;

use super::Access;
use crate::base::process::{Launch, Process};

/// Where Debian has the server's programs.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

/// Nothing here takes longer, even on a machine that compiles meanwhile.
pub const LIMIT: Duration = Duration::from_mins(5);

const PAUSE: Duration = Duration::from_millis(50);

/// A server with checksums of its pages; dropped, it is killed and its folder removed.
pub struct LocalPostgresql {
    // First, so that it has ended when the folder is removed.
    process: Option<Process>,
    installed: Installed,
    folder: TempDir,
    address: SocketAddr,
}

impl LocalPostgresql {
    /// Debian's; creates its data and does not start it. `None`, and it says so, where PostgreSQL is not
    /// installed.
    ///
    /// # Errors
    ///
    /// When `initdb` fails, with what it printed.
    pub fn create() -> io::Result<Option<Self>> {
        programs()?.map(|_| Self::of(Installed::Debian)).transpose()
    }

    /// The same of what is installed like this.
    ///
    /// # Errors
    ///
    /// As for `create`.
    pub fn of(installed: Installed) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("password"), Self::PASSWORD)?;
        if geteuid().is_root() {
            succeeds(Command::new("chown").args(["-R", "postgres"]).arg(folder.path()))?;
        }
        let (data, password) = (folder.path().join("data"), folder.path().join("password"));
        let (data, password) =
            (format!("--pgdata={}", data.display()), format!("--pwfile={}", password.display()));
        let user = format!("--username={}", Self::USER);
        let others = ["--auth=scram-sha-256", "--locale=C.UTF-8", "--no-sync", "--data-checksums"];
        let (path, args) = installed
            .program("initdb", [&data, &password, &user].into_iter().map(String::as_str).chain(others));
        succeeds(Command::new(path).args(args).current_dir("/"))?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        Ok(Self { process: None, installed, folder, address })
    }

    /// The administrator.
    const USER: &str = "admin";

    /// Their password.
    const PASSWORD: &str = "a-password-of-the-test";

    /// The folder of its data.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// How the writer reaches it.
    pub fn access(&self) -> Access {
        Access {
            address: self.address,
            username: Self::USER.to_owned(),
            password: Self::PASSWORD.to_owned(),
            database: "postgres".to_owned(),
        }
    }

    /// Has it offer TLS with this certificate and its key, both as PEM, and let in who may come by these
    /// lines of `pg_hba.conf`, from its next load of the settings on.
    ///
    /// # Errors
    ///
    /// When the files cannot be written.
    pub fn offer_tls(&self, certificate: &str, key: &str, access: &str) -> io::Result<()> {
        let data = self.data();
        std::fs::write(data.join("server.crt"), certificate)?;
        std::fs::write(data.join("server.key"), key)?;
        std::fs::write(data.join("pg_hba.conf"), access)?;
        std::fs::write(data.join("postgresql.conf"), "ssl = on\n")?;
        // It uses no key that others may read.
        let key = data.join("server.key");
        succeeds(Command::new("chmod").arg("600").arg(&key))?;
        if geteuid().is_root() {
            succeeds(Command::new("chown").arg("postgres").arg(&key))?;
        }
        Ok(())
    }

    /// Kills it at once, as a power cut would but for the page cache.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Starts it, and waits until it lets the administrator in. It refuses to start as long as one of its
    /// parts of before has not noticed a kill.
    ///
    /// # Errors
    ///
    /// When it cannot be started, or lets no one in within five minutes; with the end of its log.
    pub async fn start(&mut self) -> io::Result<()> {
        let started = Instant::now();
        let mut process = self.launch()?;
        while self.connect().await.is_err() {
            if started.elapsed() >= LIMIT {
                return Err(io::Error::other(process.log_tail()));
            }
            if process.ended().is_some() {
                process = self.launch()?;
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.process = Some(process);
        Ok(())
    }

    /// Has the server alone carry out these statements, one a line, on its data, after a kill; with these
    /// settings.
    ///
    /// # Errors
    ///
    /// When it carries one out with an error, or does not begin within five minutes; with what it printed.
    pub async fn carry_out_alone(&self, settings: &[&str], statements: &str) -> io::Result<()> {
        let file = self.folder.path().join("statements");
        std::fs::write(&file, statements)?;
        let data = self.data().display().to_string();
        let settings = settings.iter().flat_map(|setting| ["-c", setting]);
        let args = ["--single", "-D", &data, "-c", "exit_on_error=on"];
        let (program, args) =
            self.installed.program("postgres", args.into_iter().chain(settings).chain(["postgres"]));
        let started = Instant::now();
        loop {
            let mut command = Command::new(&program);
            let done = succeeds(command.args(&args).current_dir("/").stdin(File::open(&file)?));
            // One of its parts of before has not noticed the kill yet.
            let held = ["postmaster.pid", "shared memory block"];
            let is_held = |error: &io::Error| held.iter().any(|it| error.to_string().contains(it));
            if !done.as_ref().is_err_and(is_held) || started.elapsed() >= LIMIT {
                return done;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// A connection of the administrator. It ends with the handle.
    ///
    /// # Errors
    ///
    /// When the server is not there, still starts, or refuses the administrator.
    pub async fn connect(&self) -> Result<(Client, AbortOnDropHandle<()>), tokio_postgres::Error> {
        connect(&self.access()).await
    }

    fn launch(&self) -> io::Result<Process> {
        let (data, port) = (self.data().display().to_string(), self.address.port().to_string());
        let args =
            ["-D", &data, "-p", &port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="];
        let (program, args) = self.installed.program("postgres", args);
        Process::start(Launch { name: "postgres", program: &program, args, folder: self.folder.path() })
    }
}

/// Where the server's programs are. `None`, and it says so, where PostgreSQL is not installed.
///
/// # Errors
///
/// When nothing can be said.
pub fn programs() -> io::Result<Option<&'static str>> {
    if Path::new(PROGRAMS).join("postgres").exists() {
        return Ok(Some(PROGRAMS));
    }
    // Not by `eprintln!`, which the test harness keeps to itself.
    let line = format!("NOT RUN: {PROGRAMS}/postgres is not there (Debian: postgresql-15)\n");
    io::Write::write_all(&mut io::stderr(), line.as_bytes())?;
    Ok(None)
}

/// A connection as this access says. It ends with the handle.
///
/// # Errors
///
/// When the server is not there, still starts, or refuses the user.
pub async fn connect(access: &Access) -> Result<(Client, AbortOnDropHandle<()>), tokio_postgres::Error> {
    let mut config = Config::new();
    config.hostaddr(access.address.ip()).port(access.address.port()).dbname(&access.database);
    let (client, connection) =
        config.user(&access.username).password(&access.password).connect(NoTls).await?;
    // Its end, good or bad, is what the client's next call says.
    Ok((client, AbortOnDropHandle::new(tokio::spawn(async move { drop(connection.await) }))))
}

/// Where a server's programs are.
#[derive(Clone, Debug)]
pub enum Installed {
    /// Debian's package.
    Debian,
    /// A folder with `bin`, `lib` and `share`.
    In(PathBuf),
}

/// How root runs a program as another user.
const AS_POSTGRES: [&str; 4] = ["/usr/bin/setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"];

/// Runs the program of the second argument with the folder of the first at `/mnt`: the folder may be one that
/// only root finds.
const AT_MNT: &str = r#"mount --bind "$0" /mnt && exec "$@""#;

impl Installed {
    /// A program of the server's; it refuses to run as root.
    fn program<'a>(&self, name: &str, args: impl IntoIterator<Item = &'a str>) -> (PathBuf, Vec<String>) {
        let mut words: Vec<String> = Vec::new();
        let programs = match self {
            Self::Debian => PathBuf::from(PROGRAMS),
            Self::In(folder) if geteuid().is_root() => {
                let folder = folder.display().to_string();
                let at_mnt = ["/usr/bin/unshare", "--mount", "/bin/sh", "-ec", AT_MNT, &folder];
                words.extend(at_mnt.map(str::to_owned));
                "/mnt/bin".into()
            }
            Self::In(folder) => folder.join("bin"),
        };
        if geteuid().is_root() {
            words.extend(AS_POSTGRES.map(str::to_owned));
        }
        words.push(programs.join(name).display().to_string());
        words.extend(args.into_iter().map(str::to_owned));
        (words.remove(0).into(), words)
    }
}

fn succeeds(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{} failed: {}", command.get_program().display(), printed.trim())))
}
