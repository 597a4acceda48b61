//! A child process that ends on request and cannot outlive the process that started it.
//!
//! Each child runs under a few lines of shell that read a pipe whose other end only the parent holds. A line
//! on the pipe means SIGTERM for the child; the end of the pipe, which also comes when the parent was killed,
//! means SIGKILL for the whole group. This needs no `unsafe` (as a parent-death signal set before `exec`
//! would), no thread that must live on, and no helper binary.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// The shell around the child. `trap :` and not `trap ''`: an ignored signal would be inherited by the child.
const WRAPPER: &str = r#"
exec 3<&0 </dev/null
trap : TERM INT HUP
"$@" 3<&- &
child=$!
{ while read -r line <&3; do kill -TERM "$child" 2>/dev/null; done; kill -KILL 0; } &
watcher=$!
wait "$child"; code=$?
while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done
kill -KILL "$watcher" 2>/dev/null
exit "$code"
"#;

/// How often an ending process is looked at.
const POLL: Duration = Duration::from_millis(20);

/// How long a killed process may take to disappear: the kernel needs milliseconds.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// How much of a log an error shows, in lines.
const TAIL_LINES: usize = 12;

/// What is needed to start a process.
#[derive(Debug)]
pub struct Launch<'a> {
    /// What people call it; also the name of its log.
    pub name: &'a str,
    /// The program.
    pub program: &'a Path,
    /// Its arguments.
    pub args: Vec<String>,
    /// Where it runs and where its log `<name>.log` goes.
    pub folder: &'a Path,
}

/// A running child process; dropped, it is killed.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    control_pipe: Option<ChildStdin>,
    log: PathBuf,
}

impl Process {
    /// Starts it in a process group of its own, with its output appended to its log.
    pub fn start(launch: Launch<'_>) -> io::Result<Self> {
        let log = launch.folder.join(format!("{}.log", launch.name));
        let output = File::options().create(true).append(true).open(&log)?;
        let mut child = Command::new("/bin/sh")
            .args(["-c", WRAPPER, launch.name])
            .arg(launch.program)
            .args(launch.args)
            .current_dir(launch.folder)
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()?;
        let control_pipe = child.stdin.take();
        Ok(Self { name: launch.name.to_owned(), child, control_pipe, log })
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process id of its group's leader.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// The last lines of its log, for an error message.
    pub fn log_tail(&self) -> String {
        tail(&self.log)
    }

    /// Asks it to end.
    pub fn ask_to_end(&mut self) {
        if let Some(control_pipe) = &mut self.control_pipe {
            // A failure means that it has ended already, which is what is wanted.
            let _ = control_pipe.write_all(b"stop\n");
        }
    }

    /// Asks it to end, waits at most `grace`, then kills it. Says whether it ended by itself.
    pub async fn stop(&mut self, grace: Duration) -> bool {
        self.ask_to_end();
        let started = Instant::now();
        while started.elapsed() < grace {
            if self.ended().is_some() {
                return true;
            }
            tokio::time::sleep(POLL).await;
        }
        self.kill();
        false
    }

    /// Ends it and all of its group at once.
    pub fn kill(&mut self) {
        self.control_pipe = None;
        if self.ended().is_none() {
            kill_group(self.child.id());
            let started = Instant::now();
            while self.ended().is_none() && started.elapsed() < KILL_LIMIT {
                std::thread::sleep(POLL);
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last lines of a file; what went wrong instead if it cannot be read.
pub fn tail(path: &Path) -> String {
    match std::fs::read(path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let lines: Vec<&str> = text.lines().collect();
            lines.get(lines.len().saturating_sub(TAIL_LINES)..).unwrap_or_default().join("\n")
        }
        Err(error) => format!("(no log at {}: {error})", path.display()),
    }
}

/// A process as it can be found again: its id alone may have been given to another one meanwhile, so the
/// start time belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// The process id.
    pub id: u32,
    /// When it started, in clock ticks since boot (field 22 of /proc/PID/stat, proc(5)).
    pub started: u64,
}

impl Identity {
    /// The identity of the process that has this id now.
    pub fn of(id: u32) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The second field is the command in parentheses and may hold anything, spaces and parentheses too.
        let (_, rest) = text.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        if matches!(fields.next(), Some("Z" | "X")) {
            return None;
        }
        Some(Self { id, started: fields.nth(18)?.parse().ok()? })
    }

    /// This very process.
    pub fn of_self() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// Whether it still runs.
    pub fn lives(self) -> bool {
        Self::of(self.id) == Some(self)
    }

    /// Sends it a signal if it still runs.
    pub fn signal(self, signal: Signal) {
        if self.lives() {
            let _ = kill(to_pid(self.id), signal);
        }
    }

    /// Kills its process group if it still runs.
    pub fn kill_group(self) {
        if self.lives() {
            kill_group(self.id);
        }
    }

    /// Reads `id started` as [`Self`]'s display writes it.
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split_ascii_whitespace();
        Some(Self { id: fields.next()?.parse().ok()?, started: fields.next()?.parse().ok()? })
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.id, self.started)
    }
}

fn kill_group(id: u32) {
    let _ = killpg(to_pid(id), Signal::SIGKILL);
}

fn to_pid(id: u32) -> Pid {
    // A process id always fits; pid 0 would mean this process' own group, so the fall-back names a process
    // that cannot be.
    Pid::from_raw(i32::try_from(id).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(folder: &Path, script: &str) -> Process {
        let args = vec!["-c".to_owned(), script.to_owned()];
        Process::start(Launch { name: "test", program: Path::new("/bin/sh"), args, folder }).unwrap()
    }

    fn until(is_so: impl Fn() -> bool) {
        let started = Instant::now();
        while !is_so() {
            assert!(started.elapsed() < Duration::from_secs(10), "it did not become true in 10 s");
            std::thread::sleep(POLL);
        }
    }

    #[tokio::test]
    async fn a_process_that_is_asked_to_end_can_finish_its_work() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = start(
            folder.path(),
            "trap 'echo finished; exit 0' TERM; echo ready; while :; do sleep 0.05; done",
        );
        until(|| process.log_tail().contains("ready"));
        assert!(process.stop(Duration::from_secs(10)).await);
        assert!(process.log_tail().contains("finished"));
    }

    #[tokio::test]
    async fn a_process_that_does_not_listen_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let mut process =
            start(folder.path(), "trap '' TERM; sleep 600 & echo $!; while :; do sleep 0.05; done");
        until(|| !process.log_tail().is_empty());
        let child = Identity::of(process.log_tail().trim().parse().unwrap()).unwrap();
        assert!(!process.stop(Duration::from_millis(200)).await);
        until(|| !child.lives());
    }

    #[test]
    fn the_end_of_the_control_pipe_is_the_end_of_the_group() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = start(folder.path(), "sleep 600 & echo $!; wait");
        let leader = process.id();
        until(|| !process.log_tail().is_empty());
        let child = Identity::of(process.log_tail().trim().parse().unwrap()).unwrap();
        // What happens when the parent is killed: only its end of the pipe closes.
        process.control_pipe = None;
        until(|| !child.lives());
        until(|| Identity::of(leader).is_none());
    }

    #[test]
    fn the_exit_status_of_a_process_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = start(folder.path(), "echo broken; exit 3");
        let started = Instant::now();
        let status = loop {
            assert!(started.elapsed() < Duration::from_secs(10), "it did not end in 10 s");
            match process.ended() {
                Some(status) => break status,
                None => std::thread::sleep(POLL),
            }
        };
        assert_eq!((status.code(), process.log_tail()), (Some(3), "broken".to_owned()));
    }
}
