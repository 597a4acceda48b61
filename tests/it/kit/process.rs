//! The operator's process: the shipped binary, started, asked to end, killed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use freehold_box::base::process::{Launch, Process};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::wait::{seen, until};

/// The operator's access key id: how EC2's journal tells it from the box.
pub const OPERATOR: &str = "AKIAFREEHOLD";

/// The environment of the binary for this API server and this EC2, with the access key id of who runs it.
pub fn environment(
    kubeconfig: &Path,
    endpoint: &str,
    region: &str,
    access_key: &str,
) -> [(&'static str, String); 6] {
    [
        ("KUBECONFIG", kubeconfig.display().to_string()),
        ("AWS_ENDPOINT_URL_EC2", endpoint.to_owned()),
        ("AWS_REGION", region.to_owned()),
        ("AWS_ACCESS_KEY_ID", access_key.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "of-nothing".to_owned()),
        ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
    ]
}

/// A copy of the shipped binary in a control plane's folder, made once: a build that runs meanwhile replaces
/// the original. Another process makes it, since what a test starts inherits a file that this one writes, and
/// Linux executes no file that is open for writing (execve(2), ETXTBSY).
pub fn binary(control_plane: &Path) -> PathBuf {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let copy = control_plane.join("freehold");
    if !copy.exists() {
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_freehold")).arg(&copy).status().unwrap();
        assert!(copied.success(), "{} is not written", copy.display());
    }
    copy
}

/// A running operator; dropped, it is killed.
pub struct Operator {
    process: Process,
    log: PathBuf,
}

impl Operator {
    /// Starts the binary with these settings and this environment; `name` is its log's.
    pub fn start(
        control_plane: &Path,
        folder: &Path,
        name: &str,
        settings: &[String],
        environment: &[(&str, String)],
    ) -> Self {
        let mut args: Vec<String> = ["-i", "RUST_LOG=info,freehold=debug"].map(str::to_owned).to_vec();
        args.extend(environment.iter().map(|(key, value)| format!("{key}={value}")));
        args.push(binary(control_plane).display().to_string());
        args.push("run".to_owned());
        args.extend(settings.iter().cloned());
        let process =
            Process::start(Launch { name, program: Path::new("/usr/bin/env"), args, folder }).unwrap();
        Self { process, log: folder.join(format!("{name}.log")) }
    }

    /// SIGSTOP, or SIGCONT.
    pub fn pause(&self, on: bool) {
        let group = Pid::from_raw(i32::try_from(self.process.id()).unwrap());
        killpg(group, if on { Signal::SIGSTOP } else { Signal::SIGCONT }).unwrap();
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Whether it has ended, and with 0.
    pub fn ended(&mut self) -> Option<bool> {
        self.process.ended().map(|status| status.success())
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.process.kill();
        assert_no_panic(&self.log());
    }

    /// SIGTERM; gives whether it ended with 0, and its whole log.
    pub async fn stop(mut self) -> (bool, String) {
        self.process.ask_to_end();
        let status = until("the operator's end", || {
            let ended = self.process.ended();
            std::future::ready(seen(ended, || self.process.log_tail()))
        })
        .await;
        let log = self.log();
        assert_no_panic(&log);
        (status.success(), log)
    }

    /// The URL of its own endpoints, from its first log line.
    pub async fn endpoints(&self) -> String {
        until("the operator's line of its start", || async {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            let line =
                log.lines().find(|line| line.contains("freehold starts")).ok_or_else(|| log.clone())?;
            // The settings name an address, too, with port 0.
            let ports = line.split("127.0.0.1:").skip(1);
            let mut ports =
                ports.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
            let port = ports.find(|port| port.as_str() != "0").ok_or_else(|| line.to_owned())?;
            Ok(format!("http://127.0.0.1:{port}"))
        })
        .await
    }
}

/// A pass that panics ends no operator.
fn assert_no_panic(log: &str) {
    let of_panic = log.lines().find(|line| line.contains("panicked"));
    assert_eq!(of_panic, None, "of a pass");
}
