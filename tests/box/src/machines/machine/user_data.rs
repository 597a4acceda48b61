//! What cloud-init and nodeadm do in a machine: they carry out the user data once, on the first boot, with
//! the output on the console.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::Command;

use super::files;
use super::namespaces::Namespaces;
use super::services::Services;
use super::spec::Console;
use crate::base::error_chain::chain;
use crate::machines::user_data::{self, Part};

/// Where the machine has its user data.
const SCRIPT: &str = "/run/user-data";

/// Runs it in the background. Services that it enables are started when it has ended, however it ended.
pub fn start(namespaces: Namespaces, services: Arc<Services>, user_data: Option<String>, console: Console) {
    tokio::spawn(async move {
        console(&format!("user-data: {}", outcome(&namespaces, user_data.as_deref(), &console).await));
        services.start_enabled();
    });
}

async fn outcome(namespaces: &Namespaces, user_data: Option<&str>, console: &Console) -> String {
    let Some(text) = user_data.filter(|text| !text.is_empty()) else { return "there is none".to_owned() };
    let parts = match user_data::parts(text) {
        Ok(parts) => parts,
        Err(error) => return format!("not run: {}", chain(&error)),
    };
    for part in parts {
        let script = match part {
            Part::Script(script) => script,
            Part::NodeConfig(config) => config.as_script(),
        };
        match run(namespaces, &script, console).await {
            Ok(status) if status.success() => {}
            Ok(status) => return format!("failed with {status}"),
            Err(error) => return format!("failed to run: {error}"),
        }
    }
    "done".to_owned()
}

async fn run(
    namespaces: &Namespaces,
    text: &str,
    console: &Console,
) -> std::io::Result<std::process::ExitStatus> {
    // The machine's /run can be seen through the process that holds its namespaces.
    let place = Path::new("/proc")
        .join(namespaces.holder.to_string())
        .join("root")
        .join(SCRIPT.trim_start_matches('/'));
    files::write(&place, text, 0o700)?;
    let mut command = Command::from(namespaces.command(SCRIPT));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    // What the script leaves running may hold its output open for ever; the script's own end is what counts.
    let shown = [
        stdout.map(|output| show(output, console.clone())),
        stderr.map(|output| show(output, console.clone())),
    ];
    let status = child.wait().await;
    for output in shown.into_iter().flatten() {
        let _ = tokio::time::timeout(std::time::Duration::from_secs(1), output).await;
    }
    status
}

fn show(output: impl AsyncRead + Unpin + Send + 'static, console: Console) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        let mut lines = BufReader::new(output).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            console(&line);
        }
    })
}
