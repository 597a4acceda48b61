//! Removes everything that a site of real machines made on this host, also when the box itself is killed: one
//! script, run by a process of its own that waits until the box has ended.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, ChildStdin, Command};

const CLEAR: &str = include_str!("host_cleanup.sh");

/// How long the script is waited for; it limits itself to less.
const LIMIT: Duration = Duration::from_secs(25);

/// Where a run's folder says which sites of real machines it has: a file named after the number, with the
/// arguments of the script.
const SITES: &str = "sites";

/// What becomes of the machines' disks at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disks {
    /// They are there for the next run.
    Keep,
    /// They go.
    Remove,
}

impl Disks {
    const fn word(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Remove => "remove",
        }
    }
}

/// The process that clears a site away when the box ends, however it ends.
#[derive(Debug)]
pub struct Watcher {
    child: Child,
    // Only this process has it; its end is what the watcher waits for.
    control_pipe: Option<ChildStdin>,
}

impl Watcher {
    /// Starts it, in a session of its own, where no terminal's signal reaches it; and writes into the run's
    /// folder what is to be cleared should it be killed too.
    pub fn start(number: u8, folder: &Path, disks: Disks, run: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(run.join(SITES))?;
        std::fs::write(
            run.join(SITES).join(number.to_string()),
            format!("{}\n{}", disks.word(), folder.display()),
        )?;
        let script = format!("cat >/dev/null\n{CLEAR}");
        let mut command = Command::new("setsid");
        command
            .args(["sh", "-c", &script, "freehold-box-clear", &number.to_string()])
            .arg(folder)
            .arg(disks.word());
        // Not in the run's folder, which is removed under it.
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let control_pipe = child.stdin.take();
        Ok(Self { child, control_pipe })
    }

    /// Clears now, and says whether that came to an end.
    pub async fn clear(mut self) -> bool {
        self.control_pipe = None;
        tokio::time::timeout(LIMIT, self.child.wait())
            .await
            .is_ok_and(|ended| ended.is_ok_and(|status| status.success()))
    }
}

/// Clears a site away and waits for it.
fn clear(number: &str, folder: &Path, disks: &str) {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", CLEAR, "freehold-box-clear", number]).arg(folder).arg(disks);
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// Clears all sites away of which this run's folder knows.
pub fn sweep(run: &Path) {
    for entry in std::fs::read_dir(run.join(SITES)).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        if let (Some(number), Some((disks, folder))) = (entry.file_name().to_str(), text.split_once('\n')) {
            clear(number, Path::new(folder), disks);
        }
    }
}
