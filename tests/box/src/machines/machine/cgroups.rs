//! A machine's control groups, by which all its processes are found: frozen, thawed and killed at once,
//! containers included.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const ROOT: &str = "/sys/fs/cgroup";

/// How long killed processes may take to disappear: milliseconds, unless a disk does not answer.
const KILL_LIMIT: Duration = Duration::from_secs(15);
/// How long freezing may take; a process in the middle of a disk's answer freezes after it.
const FREEZE_LIMIT: Duration = Duration::from_secs(2);
/// How often it is looked at.
const POLL: Duration = Duration::from_millis(10);

/// The control groups of one machine, one in each hierarchy.
#[derive(Clone, Debug)]
pub struct Groups {
    path: PathBuf,
    roots: Vec<PathBuf>,
}

impl Groups {
    /// Makes them, empty; with a group `system` in each for what is no container.
    pub fn create(number: u8, name: &str) -> io::Result<Self> {
        let path = Path::new("freehold-box").join(number.to_string()).join(name);
        let hierarchies = hierarchies()?;
        for hierarchy in &hierarchies {
            let mut group = hierarchy.clone();
            for part in path.iter().chain([std::ffi::OsStr::new("system")]) {
                let parent = group.clone();
                hand_down(&parent);
                group.push(part);
                std::fs::create_dir_all(&group)?;
                copy_cpuset(&parent, &group)?;
            }
        }
        let roots = hierarchies.into_iter().map(|hierarchy| hierarchy.join(&path)).collect();
        Ok(Self { path, roots })
    }

    /// The path below each hierarchy's root, as the kubelet wants it.
    pub fn path(&self) -> PathBuf {
        Path::new("/").join(&self.path)
    }

    /// The files into which a process writes its id to join the machine.
    pub fn cgroup_files(&self) -> Vec<PathBuf> {
        self.roots.iter().map(|root| root.join("system/cgroup.procs")).collect()
    }

    /// The ids of all processes.
    pub fn processes(&self) -> BTreeSet<i32> {
        let mut ids = BTreeSet::new();
        self.roots.iter().for_each(|root| collect(root, &mut ids));
        ids
    }

    /// The ids of the processes of pods.
    pub fn pod_processes(&self) -> BTreeSet<i32> {
        let mut ids = BTreeSet::new();
        self.roots.iter().for_each(|root| collect(&root.join("kubepods"), &mut ids));
        ids
    }

    /// Stops all processes where they are; returns when they stand still, or nearly all of them.
    pub fn freeze(&self) {
        self.write("freezer.state", "FROZEN");
        self.write("cgroup.freeze", "1");
        let started = Instant::now();
        while !self.is_frozen() && started.elapsed() < FREEZE_LIMIT {
            std::thread::sleep(POLL);
        }
    }

    /// Lets them go on.
    pub fn thaw(&self) {
        self.write("freezer.state", "THAWED");
        self.write("cgroup.freeze", "0");
    }

    /// Lets all of them together have so much memory, in MiB; the kernel kills among them when they ask for
    /// more.
    pub fn limit_memory(&self, limit: u64) -> io::Result<()> {
        let bytes = (limit * 1024 * 1024).to_string();
        for root in &self.roots {
            for file in ["memory.limit_in_bytes", "memory.max"].map(|file| root.join(file)) {
                if file.exists() {
                    std::fs::write(file, &bytes)?;
                }
            }
        }
        Ok(())
    }

    /// Kills all processes at once, and says whether all are gone. What they fork meanwhile is killed too.
    pub fn kill(&self) -> bool {
        let started = Instant::now();
        while !self.processes().is_empty() {
            if started.elapsed() > KILL_LIMIT {
                return false;
            }
            // Frozen, so that no process sees another one's end; a frozen process dies when it is thawed.
            self.write("freezer.state", "FROZEN");
            self.write("cgroup.freeze", "1");
            signal(&self.processes(), Signal::SIGKILL);
            self.thaw();
            std::thread::sleep(POLL);
        }
        true
    }

    /// Removes the groups; those with processes stay.
    pub fn remove(&self) {
        self.roots.iter().for_each(|root| remove(root));
    }

    fn is_frozen(&self) -> bool {
        self.roots.iter().all(|root| {
            let reads = |file: &str, text: &str| {
                std::fs::read_to_string(root.join(file)).map_or(true, |read| read.contains(text))
            };
            reads("freezer.state", "FROZEN") && reads("cgroup.events", "frozen 1")
        })
    }

    /// Writes to this file where there is one: cgroup v1's freezer and v2 have different ones, other
    /// hierarchies have none.
    fn write(&self, file: &str, text: &str) {
        for root in &self.roots {
            let path = root.join(file);
            if path.exists() {
                let _ = std::fs::write(path, text);
            }
        }
    }
}

/// Sends a signal to processes; one that has ended meanwhile is no error.
pub fn signal(processes: &BTreeSet<i32>, signal: Signal) {
    for &id in processes {
        let _ = kill(Pid::from_raw(id), signal);
    }
}

/// The roots of all hierarchies: one with cgroup v2, one for each controller with v1. The v2 hierarchy that
/// some hosts have beside v1 has no controllers, and nothing of a machine.
fn hierarchies() -> io::Result<Vec<PathBuf>> {
    if Path::new(ROOT).join("cgroup.controllers").exists() {
        return Ok(vec![PathBuf::from(ROOT)]);
    }
    let mut roots = BTreeSet::new();
    for entry in std::fs::read_dir(ROOT)? {
        let path = entry?.path();
        // Some names are links to others: cpu to cpu,cpuacct.
        if path.join("cgroup.procs").exists() && !path.join("cgroup.controllers").exists() {
            roots.insert(path.canonicalize()?);
        }
    }
    Ok(roots.into_iter().collect())
}

/// With cgroup v2 a group has only the controllers that its parent hands down; which there are differs
/// between hosts.
fn hand_down(group: &Path) {
    let control = group.join("cgroup.subtree_control");
    if control.exists() {
        for controller in ["cpuset", "cpu", "io", "memory", "hugetlb", "pids"] {
            let _ = std::fs::write(&control, format!("+{controller}"));
        }
    }
}

/// With cgroup v1 a new cpuset is empty and takes no process.
fn copy_cpuset(from: &Path, to: &Path) -> io::Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        if from.join("cpuset.memory_migrate").exists() {
            std::fs::write(to.join(file), std::fs::read(from.join(file))?)?;
        }
    }
    Ok(())
}

fn collect(group: &Path, ids: &mut BTreeSet<i32>) {
    let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    ids.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
    children(group).for_each(|child| collect(&child, ids));
}

fn remove(group: &Path) {
    children(group).for_each(|child| remove(&child));
    let _ = std::fs::remove_dir(group);
}

fn children(group: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(group).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}
