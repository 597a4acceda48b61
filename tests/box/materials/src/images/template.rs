//! The machine image: a containerd root in which all images are imported and unpacked, made once and given to
//! each machine.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::Command;

use super::error::{Error, at, blocking, key};
use super::host::{self, mark};
use super::oci::{Image, write_archive};
use super::parts::Parts;
use crate::base::cache::{Cache, make_private_folder};
use crate::base::process::{Launch, Process};
use crate::base::progress::Progress;

/// What it holds.
pub const WHAT: &str = "images of QuestDB, PostgreSQL and the machines";

/// How long making it takes on two cores, downloads included (measured on 2026-11-22, without any cache).
pub const SECONDS: u64 = 40;

/// The namespace of containerd in which Kubernetes looks for images.
pub const NAMESPACE: &str = "k8s.io";

/// Keeps an image from the kubelet's garbage collection; containerd's own keeps everything that an image
/// refers to.
const PINNED: &str = "io.cri-containerd.pinned=pinned";

/// How long another process may take to make the images.
const MAKE_LIMIT: Duration = Duration::from_mins(15);

/// How long containerd may take to start or to stop.
const CONTAINERD_LIMIT: Duration = Duration::from_secs(30);

const POLL: Duration = Duration::from_millis(50);

/// The two folders of a containerd root in which files are written once and never again, so machines may
/// share them. Everything else, above all its databases, is changed in place: a link would carry one
/// machine's changes into all others.
const SHARED: [&str; 2] =
    ["io.containerd.content.v1.content/blobs", "io.containerd.snapshotter.v1.overlayfs/snapshots"];

/// The programs that fill the machine image: those that the machines run, whose databases they must be able
/// to read.
#[derive(Clone, Debug)]
pub struct Containerd {
    /// The daemon.
    pub daemon: PathBuf,
    /// Its client.
    pub ctr: PathBuf,
}

/// The machine image.
#[derive(Clone, Debug)]
pub struct Template {
    root: PathBuf,
    names: Vec<String>,
}

impl Template {
    /// The machine image from the cache; makes it when these sources never made one from these inputs.
    pub async fn ensure(cache: &Cache, containerd: &Containerd, progress: &Progress) -> Result<Self, Error> {
        let parts = Parts::of_this_host()?;
        let folder = folder_of(cache, &parts, containerd)?;
        if let Ok(template) = Self::read(&folder) {
            return Ok(template);
        }

        let images = cache.images();
        let templates = images.join("templates");
        make_private_folder(&templates).map_err(at(&templates))?;
        let held = hold(&images.join("lock"), progress).await?;
        if let Ok(template) = Self::read(&folder) {
            return Ok(template);
        }
        progress.begin(&format!("making the {WHAT}"));
        let started = Instant::now();
        let made = parts.images(&images, progress).await?;
        let new =
            tempfile::Builder::new().prefix("making-").tempdir_in(&templates).map_err(at(&templates))?;
        progress.at(0, 1, "unpacking the images");
        fill(new.path(), &made, containerd).await?;
        let _ = fs::remove_dir_all(&folder);
        fs::rename(new.path(), &folder).map_err(at(&folder))?;
        drop(held);
        progress.end(&format!("made the images in {} s", started.elapsed().as_secs()));
        Self::read(&folder).map_err(at(&folder))
    }

    /// Whether it is in the cache. An error names what this host lacks to make it.
    pub fn is_made(cache: &Cache, containerd: &Containerd) -> Result<bool, Error> {
        let parts = Parts::of_this_host()?;
        Ok(containerd.daemon.is_file() && Self::read(&folder_of(cache, &parts, containerd)?).is_ok())
    }

    fn read(folder: &Path) -> io::Result<Self> {
        let names = fs::read_to_string(folder.join("names"))?;
        Ok(Self { root: folder.join("root"), names: names.lines().map(str::to_owned).collect() })
    }

    /// The containerd root that machines are given copies of.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The whole names of the images in it.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Makes `root`, which must not be there yet, a containerd root of its own with all images: in a fraction
    /// of a second on the file system of the cache, by a copy on another one.
    pub async fn install(&self, root: &Path) -> Result<(), Error> {
        let parent = root.parent().unwrap_or(root);
        make_private_folder(parent).map_err(at(parent))?;
        fs::create_dir(root).map_err(at(root))?;
        let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).map_err(at(path));
        let may_link = device(&self.root)? == device(root)?;
        let how = if may_link { "-al" } else { "-a" };
        for entry in fs::read_dir(&self.root).map_err(at(&self.root))? {
            let from = entry.map_err(at(&self.root))?.path();
            let name = from.file_name().unwrap_or_default();
            let (shared, own): (Vec<_>, Vec<_>) = children(&from)?.into_iter().partition(|child| {
                let inside = child.strip_prefix(&self.root).unwrap_or(child);
                SHARED.iter().any(|shared| Path::new(shared) == inside)
            });
            let into = root.join(name);
            fs::create_dir(&into).map_err(at(&into))?;
            fs::set_permissions(&into, fs::metadata(&from).map_err(at(&from))?.permissions())
                .map_err(at(&into))?;
            for (how, these) in [(how, shared), ("-a", own)] {
                if !these.is_empty() {
                    host::run(Command::new("cp").arg(how).args(these).arg(&into)).await?;
                }
            }
        }
        Ok(())
    }
}

/// Where the one is that these sources make from these inputs.
fn folder_of(cache: &Cache, parts: &Parts, containerd: &Containerd) -> Result<PathBuf, Error> {
    let mut decides = parts.keys();
    decides.push(include_str!("template.rs").to_owned());
    decides.push(mark(&containerd.daemon).map_err(at(&containerd.daemon))?);
    Ok(cache.images().join("templates").join(key(&decides)))
}

fn children(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(folder).map_err(at(folder))?;
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(at(folder))).collect()
}

/// Takes the lock of the cache, so that two processes never make images at once.
async fn hold(path: &Path, progress: &Progress) -> Result<File, Error> {
    let file = File::create(path).map_err(at(path))?;
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if started.elapsed() > MAKE_LIMIT => {
                return Err(Error::MadeByAnother(path.to_owned()));
            }
            Err(TryLockError::WouldBlock) => {
                progress.at(0, 1, "another process is making the images, waiting for it");
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            Err(TryLockError::Error(source)) => return Err(at(path)(source)),
        }
    }
}

/// The arguments of `ctr` that import an archive (`-`: from standard input) for Kubernetes, kept from the
/// kubelet's garbage collection. The socket's path must be a whole one.
pub fn import_arguments(socket: &Path, archive: &Path) -> Vec<String> {
    let (socket, archive) = (socket.display().to_string(), archive.display().to_string());
    ["--address", &socket, "--namespace", NAMESPACE, "images", "import", "--label", PINNED, &archive]
        .map(str::to_owned)
        .into()
}

/// Imports the images with a containerd of their own, and leaves its root in `folder/root`.
async fn fill(folder: &Path, images: &[Image], containerd: &Containerd) -> Result<(), Error> {
    // Not below the cache: a socket's path may have 107 characters only.
    let state = tempfile::tempdir().map_err(at("a folder for temporary files"))?;
    let socket = state.path().join("containerd.sock");
    let config = state.path().join("config.toml");
    fs::write(&config, settings(&folder.join("root"), state.path(), &socket)).map_err(at(&config))?;
    let args = vec!["--config".to_owned(), config.display().to_string()];
    let launch = Launch { name: "containerd", program: &containerd.daemon, args, folder: state.path() };
    let mut daemon = Process::start(launch).map_err(at(&containerd.daemon))?;
    let started = Instant::now();
    while !answers(containerd, &socket).await {
        if daemon.ended().is_some() || started.elapsed() > CONTAINERD_LIMIT {
            return Err(Error::Containerd { tail: daemon.log_tail() });
        }
        tokio::time::sleep(POLL).await;
    }
    import(images, containerd, &socket).await?;
    // A stop, not a kill: what it has not written yet would be missing in each machine.
    if !daemon.stop(CONTAINERD_LIMIT).await {
        return Err(Error::Containerd { tail: format!("it did not stop\n{}", daemon.log_tail()) });
    }
    let names: Vec<_> = images.iter().flat_map(|image| &image.names).map(String::as_str).collect();
    let path = folder.join("names");
    fs::write(&path, names.join("\n")).map_err(at(&path))
}

/// Only what storing and unpacking needs: nothing of Kubernetes', no network, no runtime.
fn settings(root: &Path, state: &Path, socket: &Path) -> String {
    let unneeded = [
        "io.containerd.cri.v1.images",
        "io.containerd.cri.v1.runtime",
        "io.containerd.grpc.v1.cri",
        "io.containerd.nri.v1.nri",
        "io.containerd.internal.v1.opt",
        "io.containerd.internal.v1.restart",
    ];
    format!(
        "version = 3\nroot = \"{}\"\nstate = \"{state}/state\"\ndisabled_plugins = \
         {unneeded:?}\n[grpc]\naddress = \"{socket}\"\n\
         [ttrpc]\naddress = \"{socket}.ttrpc\"\n",
        root.display(),
        state = state.display(),
        socket = socket.display(),
    )
}

async fn answers(containerd: &Containerd, socket: &Path) -> bool {
    let mut ask = Command::new(&containerd.ctr);
    ask.arg("--address").arg(socket).args(["--connect-timeout", "1s", "version"]);
    socket.exists() && host::run(&mut ask).await.is_ok()
}

async fn import(images: &[Image], containerd: &Containerd, socket: &Path) -> Result<(), Error> {
    let mut child = std::process::Command::new(&containerd.ctr)
        .args(import_arguments(socket, Path::new("-")))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(at(&containerd.ctr))?;
    let images = images.to_vec();
    let output = blocking(containerd.ctr.clone(), move || {
        let written = child.stdin.take().map(|pipe| write_archive(&images, pipe)).transpose();
        let output = child.wait_with_output()?;
        // When ctr fails the pipe breaks too, and what ctr says is the reason.
        if output.status.success() {
            written?;
        }
        Ok(output)
    })
    .await?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Command {
        command: "ctr images import".to_owned(),
        tail: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_machine_shares_layers_and_has_databases_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let template = Template { root: folder.path().join("root"), names: vec![] };
        let files = [
            "io.containerd.content.v1.content/blobs/sha256/aa",
            "io.containerd.snapshotter.v1.overlayfs/snapshots/1/fs/bin/sh",
            "io.containerd.snapshotter.v1.overlayfs/metadata.db",
            "io.containerd.metadata.v1.bolt/meta.db",
        ];
        for file in files {
            let path = template.root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        let machine = folder.path().join("machines/1/containerd");
        template.install(&machine).await.unwrap();

        let inode = |root: &Path, file: &str| fs::metadata(root.join(file)).unwrap().ino();
        let is_shared = files.map(|file| inode(&template.root, file) == inode(&machine, file));
        assert_eq!(is_shared, [true, true, false, false]);
        for file in files {
            assert_eq!(fs::read_to_string(machine.join(file)).unwrap(), file);
        }
        assert!(template.install(&machine).await.is_err(), "a root that is in use must not be filled again");
    }
}
