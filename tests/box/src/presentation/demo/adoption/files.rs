//! The files on a database's volume, seen from the host of its machine: who has them open, and which of them
//! are byte for byte as they were.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use k8s_openapi::api::core::v1::Pod;
use nix::sys::stat::{major, minor};
use sha2::{Digest as _, Sha256};

use crate::presentation::demo::common::Failure;
use crate::presentation::demo::pod_access::{data_path, first_process_of};

/// The files of a volume at one moment.
#[derive(Debug)]
pub struct VolumeFiles(BTreeMap<PathBuf, File>);

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct File {
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds of the last write.
    written: (i64, i64),
    /// User, group and mode.
    access: (u32, u32, u32),
    /// Of what it holds; none while a process has it open and may be writing to it.
    digest: Option<String>,
}

impl VolumeFiles {
    /// Looks at the volume that the pod's container mounts; an error names a process that has a file of it
    /// open and is not in the container.
    pub fn of(pod: &Pod) -> Result<Self, Failure> {
        let (_, mount) = data_path(pod).ok_or("the pod mounts no claim")?;
        let engine = first_process_of(pod)?;
        let root = PathBuf::from(format!("/proc/{}/root{mount}", engine.id));
        let container = std::fs::read_to_string(format!("/proc/{}/cgroup", engine.id))?;
        let open = open_files(root.metadata()?.dev());
        for process in open.keys() {
            // One that has ended has nothing open.
            let group = std::fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
            if !group.is_empty() && group != container {
                return Err(format!("process {process} has a file of the volume open: {group}").into());
            }
        }
        let mut files = BTreeMap::new();
        walk(&root, &open.into_values().flatten().collect(), &mut files)?;
        let relative = |(path, file): (PathBuf, File)| {
            (path.strip_prefix(&root).map(Path::to_owned).unwrap_or_default(), file)
        };
        Ok(Self(files.into_iter().map(relative).collect()))
    }

    /// How many files are as they were, in words; an error names one that changed though the engine did not
    /// write to it, or whose user, group or mode is another.
    pub fn compare(&self, now: &Self) -> Result<String, Failure> {
        let (mut same, mut bytes) = (0_u32, 0);
        for (path, before) in &self.0 {
            // The engine deletes files and makes others of the same name.
            let Some(after) = now.0.get(path).filter(|after| after.inode == before.inode) else { continue };
            if after.access != before.access {
                return Err(format!("{} has another owner or mode: {after:?}", path.display()).into());
            }
            let was_written = (after.written, after.size) != (before.written, before.size);
            if was_written || before.digest.is_none() || after.digest.is_none() {
                continue;
            }
            if after.digest != before.digest {
                return Err(format!("{} holds other bytes, and was not written", path.display()).into());
            }
            same += 1;
            bytes += after.size;
        }
        if same == 0 {
            return Err("no file is left to compare".into());
        }
        Ok(format!(
            "{same} files with {} KiB that the engine did not write have the same SHA-256; no file has another \
             owner or mode",
            bytes >> 10
        ))
    }
}

/// The files below a folder; those of which an inode is among `open` have no digest.
fn walk(folder: &Path, open: &BTreeSet<u64>, files: &mut BTreeMap<PathBuf, File>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let looked = path.symlink_metadata().and_then(|found| {
            if found.is_dir() {
                walk(&path, open, files)?;
            } else if found.is_file() {
                files.insert(path.clone(), file(&path, &found, open)?);
            }
            Ok(())
        });
        match looked {
            // The engine deletes files.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            looked => looked?,
        }
    }
    Ok(())
}

fn file(path: &Path, found: &Metadata, open: &BTreeSet<u64>) -> io::Result<File> {
    let digest = if open.contains(&found.ino()) {
        None
    } else {
        Some(HEXLOWER.encode(&Sha256::digest(std::fs::read(path)?)))
    };
    Ok(File {
        inode: found.ino(),
        size: found.size(),
        written: (found.mtime(), found.mtime_nsec()),
        access: (found.uid(), found.gid(), found.mode()),
        digest,
    })
}

/// The inodes of this device that processes of this host have open or mapped, by process.
fn open_files(device: u64) -> BTreeMap<u32, BTreeSet<u64>> {
    let mut open: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for (process, folder) in
        processes.filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path())))
    {
        let mut inodes = BTreeSet::new();
        // A process may end while it is looked at.
        for descriptor in std::fs::read_dir(folder.join("fd")).into_iter().flatten().flatten() {
            let found = std::fs::metadata(descriptor.path());
            inodes.extend(found.ok().filter(|found| found.dev() == device).map(|found| found.ino()));
        }
        let maps = std::fs::read_to_string(folder.join("maps")).unwrap_or_default();
        inodes.extend(maps.lines().filter_map(|line| mapped(line, device)));
        if !inodes.is_empty() {
            open.insert(process, inodes);
        }
    }
    open
}

/// The inode of a line of `/proc/PID/maps`, if it is one of this device (proc(5): address, permissions,
/// offset, device, inode, path).
fn mapped(line: &str, device: u64) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace().skip(3);
    let (of, inode) = (fields.next()?, fields.next()?);
    (of == format!("{:02x}:{:02x}", major(device), minor(device))).then(|| inode.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files of a folder, none of which is open.
    fn files_of(folder: &Path) -> VolumeFiles {
        let mut files = BTreeMap::new();
        walk(folder, &BTreeSet::new(), &mut files).unwrap();
        VolumeFiles(files)
    }

    #[test]
    fn what_another_one_than_the_engine_changed_is_an_error_and_what_was_written_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, grown) = (folder.path().join("kept"), folder.path().join("below/grown"));
        std::fs::create_dir(folder.path().join("below")).unwrap();
        std::fs::write(&kept, "12").unwrap();
        std::fs::write(&grown, "1").unwrap();
        let before = files_of(folder.path());
        assert!(before.compare(&before).unwrap().starts_with("2 files"));
        std::fs::write(&grown, "11").unwrap();
        assert!(before.compare(&files_of(folder.path())).unwrap().starts_with("1 files"));

        let mut other = files_of(folder.path());
        other.0.get_mut(&kept).unwrap().digest = Some(String::new());
        assert!(before.compare(&other).unwrap_err().to_string().contains("other bytes"));
        let mut other = files_of(folder.path());
        other.0.get_mut(&kept).unwrap().access.0 += 1;
        assert!(before.compare(&other).unwrap_err().to_string().contains("another owner"));
        std::fs::remove_file(&kept).unwrap();
        assert!(before.compare(&files_of(folder.path())).is_err(), "nothing is left to compare");
    }

    #[test]
    fn who_has_a_file_open_or_mapped_is_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let found = file.as_file().metadata().unwrap();
        let open = open_files(found.dev());
        assert!(open[&std::process::id()].contains(&found.ino()));
        let line = "7f00-7f01 r--p 00000000 07:0a 4711 /var/lib/data";
        assert_eq!(mapped(line, nix::sys::stat::makedev(7, 10)), Some(4711));
        assert_eq!(mapped(line, nix::sys::stat::makedev(7, 11)), None);
    }
}
