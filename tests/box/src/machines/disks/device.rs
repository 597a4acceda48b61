//! A loop device: a file as a block device.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::command::{failed, run};
use super::error::Error;

/// Cuts a device off. util-linux changes the size limit of a device only when it sets it up.
const CUT: &str = include_str!("cut.pl");

/// The same for all: left to the kernel, the device of a file that shares blocks with a snapshot has other
/// sectors than the device that the file system was made on, and is refused.
const SECTOR: &str = "--sector-size=4096";

/// How long a device may stay in use after it was given back; writing back a full page cache takes a second
/// or two.
const FREE_LIMIT: Duration = Duration::from_secs(10);
/// How often that is looked at.
const POLL: Duration = Duration::from_millis(10);

/// A loop device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Device {
    path: PathBuf,
}

impl Device {
    /// Makes a device of a file. Past the host's page cache where the file system can: with it every byte
    /// would be kept in memory twice, and flushing takes three times as long.
    pub(super) fn of(file: &Path) -> Result<Self, Error> {
        let name = file.to_string_lossy();
        let doing = format!("make a block device of {name}");
        let direct = run(&doing, "losetup", &["--direct-io=on", SECTOR, "--find", "--show", &name]);
        let path = direct.or_else(|_| run(&doing, "losetup", &[SECTOR, "--find", "--show", &name]))?;
        Ok(Self { path: path.into() })
    }

    /// The devices of files below a folder.
    pub(super) fn below(folder: &Path) -> Vec<Self> {
        let list = run(
            "list the loop devices",
            "losetup",
            &["--list", "--noheadings", "--output", "NAME,BACK-FILE"],
        );
        let list = list.unwrap_or_default();
        let devices = list.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
        let ours = devices.filter(|(_, file)| Path::new(file.trim()).starts_with(folder));
        ours.map(|(path, _)| Self { path: path.into() }).collect()
    }

    /// `/dev/loop…`.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes on the size of its file.
    pub(super) fn grow(&self) -> Result<(), Error> {
        let path = self.path.to_string_lossy();
        run(&format!("grow {path}"), "losetup", &["--set-capacity", &path]).map(drop)
    }

    /// Takes the device from its users: from now on they get errors, and the file stays as it is.
    pub(super) fn cut(&self) -> Result<(), Error> {
        let path = self.path.to_string_lossy();
        run(&format!("cut {path} off"), "perl", &["-e", CUT, &path]).map(drop)
    }

    /// Detaches the device; while it is mounted somewhere it stays until it is not.
    pub(super) fn detach(&self) -> Result<(), Error> {
        let path = self.path.to_string_lossy();
        run(&format!("detach {path}"), "losetup", &["--detach", &path]).map(drop)
    }

    /// Waits until the detached device is not in use any more, and returns whether that was so in time. The
    /// file systems of a machine are unmounted, and written back, a moment after its last process has ended.
    pub(super) fn is_free_soon(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default();
        let backing = Path::new("/sys/block").join(name).join("loop/backing_file");
        let started = Instant::now();
        while backing.exists() && started.elapsed() < FREE_LIMIT {
            std::thread::sleep(POLL);
        }
        !backing.exists()
    }

    /// Where any process sees it mounted.
    pub(super) fn mounted_at(&self) -> Vec<String> {
        let number = self.path.to_string_lossy().trim_start_matches("/dev/loop").to_owned();
        // The major number of loop devices is 7 (devices.txt of the kernel).
        let device = format!("7:{number}");
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut seen = BTreeSet::new();
        let mut places = BTreeSet::new();
        for process in processes.map(|entry| entry.path()) {
            // A namespace is read once, not once for each of its processes.
            let is_new = fs::read_link(process.join("ns/mnt")).is_ok_and(|namespace| seen.insert(namespace));
            if is_new {
                let text = fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
                let fields = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
                let here = fields.filter(|fields| fields.get(2) == Some(&device.as_str()));
                places.extend(here.filter_map(|fields| fields.get(4).map(|place| (*place).to_owned())));
            }
        }
        places.into_iter().collect()
    }

    /// Gives it the name by which the EBS CSI driver looks for the volume, in the machine of this process.
    pub(super) fn link(&self, leader: u32, volume: &str) -> Result<(), Error> {
        let doing = || failed(format!("name {} in the machine of process {leader}", self.path.display()));
        let (link, new) = (link(leader, volume), link(leader, &format!("{volume}.new")));
        let _ = fs::remove_file(&new);
        symlink(&self.path, &new).map_err(doing())?;
        fs::rename(&new, &link).map_err(doing())
    }
}

/// Takes the name of a volume from the machine of this process.
pub(super) fn unlink(leader: u32, volume: &str) {
    // It is not there if the machine has ended or booted again, which is as good.
    let _ = fs::remove_file(link(leader, volume));
}

/// Through /proc it is the machine's own /dev/disk that is meant (proc(5), /proc/PID/root).
fn link(leader: u32, volume: &str) -> PathBuf {
    let serial = volume.replace('-', "");
    PathBuf::from(format!("/proc/{leader}/root/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{serial}"))
}
