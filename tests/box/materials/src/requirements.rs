//! What a host must have for real machines.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::base::cache::{Cache, make_private_folder};

/// The programs of the host, each with the Debian package that has it.
const PROGRAMS: [(&str, &str); 11] = [
    ("ip", "iproute2"),
    ("iptables", "iptables"),
    ("nsenter", "util-linux"),
    ("unshare", "util-linux"),
    ("setsid", "util-linux"),
    ("losetup", "mount"),
    ("mkfs.xfs", "xfsprogs"),
    ("perl", "perl-base"),
    ("cc", "gcc"),
    ("pkg-config", "pkg-config"),
    ("find", "findutils"),
];

/// What is tried, as root, in namespaces of its own that end with it: all that a machine does to its host's
/// kernel. The folder is where disks would be.
const TRIALS: [(&str, &str); 6] = [
    ("mount and host-name namespaces", "unshare --mount --uts true"),
    (
        "network namespaces with virtual Ethernet pairs",
        "unshare --net ip link add fh-a type veth peer name fh-b",
    ),
    ("bridges", "unshare --net ip link add fh-a type bridge"),
    (
        "address translation by iptables",
        "unshare --net --mount sh -c 'mount -t tmpfs t /run && iptables -w -t nat -A OUTPUT -d 10.96.0.1 -p \
            tcp --dport 443 -j DNAT --to 10.0.0.1:6443'",
    ),
    (
        "the overlay file system in the box's cache",
        "unshare --mount sh -c 'mkdir -p \"$1/upper\" \"$1/work\" && mount -t overlay -o \
            \"lowerdir=/etc,upperdir=$1/upper,workdir=$1/work\" o /mnt' sh \"$0\"",
    ),
    ("loop devices", "losetup --find"),
];

/// The control groups that a container needs.
const CONTROLLERS: [&str; 4] = ["cpu", "cpuset", "memory", "pids"];

/// What this host lacks for real machines, in words; empty if they can be had. Tries what can be tried in a
/// moment, and leaves nothing.
pub fn missing(cache: &Cache) -> Vec<String> {
    if !nix::unistd::geteuid().is_root() {
        return vec!["root: namespaces, mounts and loop devices are made by root only".to_owned()];
    }
    let mut missing: Vec<String> = PROGRAMS
        .iter()
        .filter(|(program, _)| !is_installed(program))
        .map(|(program, package)| format!("the program {program} (Debian package {package})"))
        .collect();
    if !succeeds("pkg-config --exists libseccomp", Path::new("/")) {
        missing.push("the headers of libseccomp (Debian package libseccomp-dev)".to_owned());
    }
    missing.extend(CONTROLLERS.iter().filter(|name| !has_controller(name)).map(|name| {
        format!(
            "the cgroup \
        controller {name}"
        )
    }));
    if missing.is_empty() {
        missing.extend(try_out(cache));
    }
    missing
}

fn try_out(cache: &Cache) -> Vec<String> {
    let made = make_private_folder(&cache.runs())
        .and_then(|()| tempfile::Builder::new().prefix("trial-").tempdir_in(cache.runs()));
    let Ok(folder) = made else {
        return vec![format!("a folder {} that can be written to", cache.runs().display())];
    };
    // Tried again, since another process may be trying the same at this moment.
    let works = |command: &str| succeeds(command, folder.path()) || succeeds(command, folder.path());
    TRIALS.iter().filter(|(_, command)| !works(command)).map(|(what, _)| (*what).to_owned()).collect()
}

fn is_installed(program: &str) -> bool {
    // As root's PATH is where these are, whatever this process has been given.
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':').chain(["/usr/sbin", "/sbin"]).any(|folder| Path::new(folder).join(program).is_file())
}

fn has_controller(name: &str) -> bool {
    let of_version_2 = std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers");
    match of_version_2 {
        Ok(controllers) => controllers.split_ascii_whitespace().any(|controller| controller == name),
        Err(_) => Path::new("/sys/fs/cgroup").join(name).join("cgroup.procs").exists(),
    }
}

fn succeeds(command: &str, folder: &Path) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).arg(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_the_same_when_asked_again_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        assert_eq!(missing(&cache), missing(&cache));
        let left = std::fs::read_dir(cache.runs()).map_or(0, Iterator::count);
        assert_eq!(left, 0);
    }
}
