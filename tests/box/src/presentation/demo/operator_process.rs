//! The shipped binary in a process of its own.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use super::common::Failure;
use crate::account::policy::OPERATOR;
use crate::base::cache::Cache;
use crate::base::process::{Identity, tail};
use crate::presentation::daemon::{self, Record};

/// How long the operator may take until it is ready.
const READY_LIMIT: Duration = Duration::from_secs(30);

/// How long it may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Where the shipped binary is: `cargo box` compiles it together with this program.
pub fn binary() -> Result<PathBuf, Failure> {
    let binary = std::env::current_exe()?.with_file_name("freehold");
    if !binary.is_file() {
        return Err(format!("failed to find {}: `cargo demo` compiles it", binary.display()).into());
    }
    Ok(binary)
}

/// A running operator; it goes on when this is dropped.
#[derive(Debug)]
pub struct OperatorProcess {
    child: Child,
    log: PathBuf,
    /// Of its own endpoints.
    address: String,
}

impl OperatorProcess {
    /// Starts it against the demo's box, with time passing at this speed, and waits until it is ready. From
    /// its first moment the box's `down` ends it too, whatever becomes of this program.
    pub async fn start(cache: &Cache, binary: &Path, record: &Record, speed: f64) -> Result<Self, Failure> {
        let log = record.log.with_file_name("operator.log");
        let address = free_address()?;
        let child = Command::new(binary)
            .args(["run", "--listen", &address, "--time-scale", &speed.to_string()])
            // The one that follows a killed one leads at once: it has its name.
            .args(["--leader-elect-identity", &record.name])
            .env("KUBECONFIG", &record.operator_kubeconfig)
            .env("AWS_ENDPOINT_URL_EC2", &record.endpoint)
            .env("AWS_ACCESS_KEY_ID", OPERATOR)
            .env("AWS_SECRET_ACCESS_KEY", "box")
            .env("AWS_REGION", &record.region)
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // Appended to: the operator of before may have been killed.
            .stderr(File::options().create(true).append(true).open(&log)?)
            // Away from the terminal's group: a Ctrl-C there is for this program, which then stops the
            // operator in good order.
            .process_group(0)
            .spawn()?;
        // None: it has ended already, which the wait below reports with its log.
        if let Some(identity) = child.id().and_then(Identity::of) {
            daemon::remember_operator(cache, &record.name, identity)?;
        }
        let mut operator = Self { child, log, address };
        operator.await_ready().await?;
        Ok(operator)
    }

    /// A client of its own endpoints.
    fn endpoints(&self) -> Result<kube::Client, Failure> {
        Ok(kube::Client::try_from(kube::Config::new(format!("http://{}", self.address).parse()?))?)
    }

    /// Its metrics, in the OpenMetrics text format.
    pub async fn metrics(&self) -> Result<String, Failure> {
        let request = http::Request::get("/metrics").body(Vec::new())?;
        Ok(self.endpoints()?.request_text(request).await?)
    }

    async fn await_ready(&mut self) -> Result<(), Failure> {
        let client = self.endpoints()?;
        let started = Instant::now();
        loop {
            let request = http::Request::get("/readyz").body(Vec::new())?;
            if client.request_text(request).await.is_ok() {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("the operator ended ({status}); its log:\n{}", self.tail()).into());
            }
            if started.elapsed() > READY_LIMIT {
                return Err(format!(
                    "the operator was not ready within {READY_LIMIT:?}; its log ends \
                    with:\n{}",
                    self.tail()
                )
                .into());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Its log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The end of its log.
    pub fn tail(&self) -> String {
        tail(&self.log)
    }

    /// Kills it at once.
    pub async fn kill(&mut self) -> Result<(), Failure> {
        Ok(self.child.kill().await?)
    }

    /// Stops it in good order: it must exit with status 0.
    pub async fn stop(&mut self) -> Result<(), Failure> {
        let id = i32::try_from(self.id())?;
        kill(Pid::from_raw(id), Signal::SIGTERM)?;
        let status = tokio::time::timeout(STOP_LIMIT, self.child.wait())
            .await
            .map_err(|_| format!("the operator did not stop within {STOP_LIMIT:?} of SIGTERM"))??;
        if !status.success() {
            return Err(
                format!("the operator ended with {status}; its log ends with:\n{}", self.tail()).into()
            );
        }
        Ok(())
    }
}

/// A loopback address that was free a moment ago.
fn free_address() -> Result<String, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}
