//! The files that hold the bytes of volumes and snapshots.
//!
//! They lie on an XFS of their own, which is itself one sparse file: XFS copies a file by sharing its blocks,
//! at one instant and in milliseconds, while it is being written. So a snapshot is a point in time whatever
//! file system the host has.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::command::{failed, run};
use super::device::Device;
use super::error::Error;
use crate::base::cache::make_private_folder;

/// How large the pool seems; it takes what the volumes have really been given.
const SIZE: u64 = 1 << 40;

/// The pool's log: what XFS would choose for this size is written as zeros, and takes as long.
const LOG: &str = "size=64m";

/// The sectors of every device here (device.rs).
const SECTORS: &str = "size=4096";

/// A GiB.
const GIB: u64 = 1 << 30;

/// The mounted pool; dropped, it is unmounted.
#[derive(Debug)]
pub(super) struct Pool {
    mount: PathBuf,
}

impl Pool {
    /// Mounts the pool of this folder, after making it if there is none. What a killed box left of it is
    /// taken down first.
    pub(super) fn open(folder: &Path) -> Result<Self, Error> {
        let (image, mount) = (folder.join("pool.xfs"), folder.join("pool"));
        make_private_folder(&mount).map_err(failed(format!("make the folder {}", mount.display())))?;
        clear(&mount);
        if !image.exists() {
            // Whole or not at all.
            let new = folder.join("pool.new");
            let made = File::create(&new).and_then(|file| file.set_len(SIZE));
            made.map_err(failed(format!("make the pool of the volumes' bytes, {}", new.display())))?;
            run(
                "make the pool of the volumes' bytes",
                "mkfs.xfs",
                &["-q", "-f", "-s", SECTORS, "-l", LOG, &new.to_string_lossy()],
            )?;
            fs::rename(&new, &image)
                .map_err(failed(format!("make the pool of the volumes' bytes, {}", image.display())))?;
        }
        let device = Device::of(&image)?;
        let mounted = run(
            "mount the pool",
            "mount",
            &["-t", "xfs", &device.path().to_string_lossy(), &mount.to_string_lossy()],
        );
        // Detached while it is in use, it goes when it is unmounted.
        device.detach()?;
        mounted?;
        Ok(Self { mount })
    }

    /// The file of a volume or a snapshot.
    pub(super) fn file(&self, id: &str) -> PathBuf {
        self.mount.join(id)
    }

    /// Makes a file of so many GiB: empty, or with the bytes of another.
    pub(super) fn create(&self, id: &str, size: u32, from: Option<&str>) -> Result<(), Error> {
        match from {
            Some(source) => self.copy(source, id)?,
            None => drop(File::create_new(self.file(id)).map_err(failed(format!("make the file of {id}")))?),
        }
        self.grow(id, size)
    }

    /// Copies a file as it is at this instant.
    pub(super) fn copy(&self, from: &str, to: &str) -> Result<(), Error> {
        let paths = [self.file(from), self.file(to)].map(|path| path.to_string_lossy().into_owned());
        run(&format!("copy the bytes of {from} to {to}"), "cp", &["--reflink=always", &paths[0], &paths[1]])
            .map(drop)
    }

    /// Makes a file larger, never smaller.
    pub(super) fn grow(&self, id: &str, size: u32) -> Result<(), Error> {
        let doing = || failed(format!("grow the file of {id} to {size} GiB"));
        let file = File::options().write(true).open(self.file(id)).map_err(doing())?;
        let wanted = u64::from(size) * GIB;
        if file.metadata().map_err(doing())?.len() < wanted {
            file.set_len(wanted).map_err(doing())?;
        }
        Ok(())
    }

    /// Whether there is a file.
    pub(super) fn has(&self, id: &str) -> bool {
        self.file(id).exists()
    }

    /// Removes a file.
    pub(super) fn remove(&self, id: &str) -> Result<(), Error> {
        fs::remove_file(self.file(id)).map_err(failed(format!("remove the file of {id}")))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        clear(&self.mount);
    }
}

/// Detaches every device on a file of this mount and unmounts it; lazily, since a machine that is still
/// ending may hold it.
fn clear(mount: &Path) {
    for device in Device::below(mount) {
        if let Err(error) = device.detach() {
            tracing::warn!(%error, "a device stays");
        }
    }
    // Mounted more than once if a box was killed at a bad moment. It fails when nothing is mounted, which is
    // what is wanted.
    while run("unmount the pool", "umount", &["--lazy", &mount.to_string_lossy()]).is_ok() {}
}
