//! Builds the Kubernetes programs from pinned Go modules, once, into the cache.

use std::collections::VecDeque;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{ChildStdout, Command};

use crate::cache::{Cache, make_private_folder};
use crate::progress::Progress;

const GO_MOD: &str = include_str!("../tools/kubernetes/go.mod");
const GO_SUM: &str = include_str!("../tools/kubernetes/go.sum");

/// The version that the Kubernetes programs say they are; without the linker flags they call themselves v0.0.0.
pub const KUBERNETES_VERSION: &str = "v1.36.3";

/// Flags of the build. Without inlining a cold build takes a fifth less (kwok alone: 205 s of processor time instead of 260), and the
/// programs serve one small cluster.
const BUILD_FLAGS: [&str; 3] = ["-trimpath", "-mod=readonly", "-gcflags=all=-l"];

/// How long another process may take to build before this one gives up waiting for it.
const BUILD_LIMIT: Duration = Duration::from_mins(45);

/// The last lines of the build that an error shows.
const ERROR_LINES: usize = 15;

/// A program of the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The store of the API server.
    Etcd,
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
    /// kubectl, for people.
    Kubectl,
    /// kwok, which keeps the Node objects of virtual machines alive.
    Kwok,
}

impl Program {
    const ALL: [Self; 6] = [Self::Etcd, Self::ApiServer, Self::ControllerManager, Self::Scheduler, Self::Kubectl, Self::Kwok];

    /// The Go package that it is built from.
    const fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::ApiServer => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::ControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::Scheduler => "k8s.io/kubernetes/cmd/kube-scheduler",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::Kwok => "sigs.k8s.io/kwok/cmd/kwok",
        }
    }

    /// The file that `go build` makes of it (etcd's main package is called `server`).
    const fn file(self) -> &'static str {
        match self {
            Self::Etcd => "server",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kwok => "kwok",
        }
    }

    /// The name that people know it by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer | Self::ControllerManager | Self::Scheduler | Self::Kubectl | Self::Kwok => self.file(),
        }
    }
}

/// Why there are no tools.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Go is not installed.
    #[error(
        "failed to find `go`, which builds the Kubernetes programs of the box: install Go 1.21 or newer (it fetches the 1.26 \
         toolchain by itself) from https://go.dev/dl or as the package golang-go of Debian 13 or newer, and put it in PATH"
    )]
    GoIsMissing(#[source] io::Error),

    /// A go command failed; its last lines are in the text.
    #[error("failed to run `{command}` for the tools of the box: {tail}")]
    Go {
        /// What was run.
        command: String,
        /// The last lines of its output.
        tail: String,
    },

    /// A file of the cache could not be used.
    #[error("failed to use {path} of the tool cache: check its owner and the free space, or set FREEHOLD_CACHE")]
    Cache {
        /// Which file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },

    /// Somebody else builds for too long.
    #[error("failed to wait for the process that holds {0}: it has been building for 45 minutes; end it and try again")]
    BuiltByAnother(PathBuf),
}

/// The programs, built.
#[derive(Clone, Debug)]
pub struct Tools {
    folder: PathBuf,
}

impl Tools {
    /// The programs from the cache; builds them when these module files were never built here with this Go.
    pub async fn ensure(cache: &Cache, progress: &Progress) -> Result<Self, Error> {
        let root = cache.tools();
        make_private_folder(&root).map_err(in_cache(&root))?;
        let key = key(&root).await?;
        let tools = Self { folder: root.join(&key) };
        if tools.is_complete() {
            return Ok(tools);
        }

        let lock = root.join("lock");
        let held = hold(&lock, progress).await?;
        if !tools.is_complete() {
            let made = tempfile::Builder::new().prefix("build-").tempdir_in(&root).map_err(in_cache(&root))?;
            build(made.path(), progress).await?;
            // A folder that is there but not complete was damaged by somebody; the rename needs its place.
            let _ = std::fs::remove_dir_all(&tools.folder);
            std::fs::rename(made.path().join("bin"), &tools.folder).map_err(in_cache(&tools.folder))?;
        }
        drop(held);
        Ok(tools)
    }

    /// The path of one program.
    pub fn program(&self, program: Program) -> PathBuf {
        self.folder.join(program.file())
    }

    fn is_complete(&self) -> bool {
        Program::ALL.into_iter().all(|program| self.program(program).is_file())
    }
}

fn in_cache(path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Cache { path, source }
}

fn linker_flags() -> String {
    let version = "k8s.io/component-base/version";
    format!("-ldflags=-s -w -X {version}.gitVersion={KUBERNETES_VERSION} -X {version}.gitMajor=1 -X {version}.gitMinor=36")
}

/// What decides the programs' bytes: the module files, the flags, and the Go that builds (asked in a module of that go line, because
/// an older `go` hands over to the toolchain that the module wants).
async fn key(root: &Path) -> Result<String, Error> {
    let module = tempfile::Builder::new().prefix("key-").tempdir_in(root).map_err(in_cache(root))?;
    write_module(module.path())?;
    let version = go_output(module.path(), &["env", "GOVERSION"]).await?;
    let mut hash = Sha256::new();
    for part in [GO_MOD, GO_SUM, &BUILD_FLAGS.join(" "), &linker_flags(), version.trim()] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let digest = data_encoding::HEXLOWER.encode(&hash.finalize());
    Ok(digest.chars().take(16).collect())
}

fn write_module(folder: &Path) -> Result<(), Error> {
    for (name, text) in [("go.mod", GO_MOD), ("go.sum", GO_SUM)] {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(in_cache(&path))?;
    }
    Ok(())
}

/// Takes the lock of the cache, so that two processes never build at once.
async fn hold(path: &Path, progress: &Progress) -> Result<File, Error> {
    let file = File::create(path).map_err(in_cache(path))?;
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if started.elapsed() > BUILD_LIMIT => {
                return Err(Error::BuiltByAnother(path.to_owned()));
            }
            Err(TryLockError::WouldBlock) => {
                progress.at(0, 1, "another process is building the Kubernetes programs, waiting for it");
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            Err(TryLockError::Error(source)) => return Err(in_cache(path)(source)),
        }
    }
}

/// Builds all programs into `folder/bin`.
async fn build(folder: &Path, progress: &Progress) -> Result<(), Error> {
    write_module(folder)?;
    progress.begin(
        "building etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl and kwok from source, once \
         (a few minutes and 4 GB of disk for Go's own caches)",
    );
    let started = Instant::now();
    let packages = Program::ALL.map(Program::package);

    let mut list = vec!["list", "-deps", "-mod=readonly"];
    list.extend(packages);
    // Also fetches the modules, so its lines on standard error are worth showing.
    let deps = go_lines(folder, &list, |line, _| progress.at(0, 1, line)).await?;
    let total = u64::try_from(deps.lines().count()).unwrap_or(u64::MAX);

    let linker_flags = linker_flags();
    let mut build = vec!["build", "-v", "-o", "bin/", linker_flags.as_str()];
    build.extend(BUILD_FLAGS);
    build.extend(packages);
    // `-v` names a package when its compilation begins; what Go's own cache already holds is never named.
    go_lines(folder, &build, |line, count| {
        let package = line.rsplit('/').next().unwrap_or(line);
        progress.at(count, total, &format!("packages compiled, now {package}{}", remaining(started, count, total)));
    })
    .await?;
    progress.end(&format!("built the Kubernetes programs in {} s", started.elapsed().as_secs()));
    Ok(())
}

/// A guess of what is left, once enough was seen to guess from.
fn remaining(started: Instant, done: u64, total: u64) -> String {
    if done < total / 10 || done >= total {
        return String::new();
    }
    let left = started.elapsed().as_secs() * (total - done) / done.max(1);
    format!(", about {} min left", left.div_ceil(60))
}

fn go(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("go");
    // A module of its own, whatever workspace or vendor folder is around; without C there is nothing to link against.
    command.args(args).current_dir(folder).env("CGO_ENABLED", "0").env("GOWORK", "off").env("GOFLAGS", "-buildvcs=false");
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

async fn go_output(folder: &Path, args: &[&str]) -> Result<String, Error> {
    go_lines(folder, args, |_, _| {}).await
}

/// Runs go, hands each line of standard error with its number to `seen`, and gives standard output back.
async fn go_lines(folder: &Path, args: &[&str], mut seen: impl FnMut(&str, u64)) -> Result<String, Error> {
    let failed = |tail: String| Error::Go { command: format!("go {}", args.first().copied().unwrap_or_default()), tail };
    let mut child = go(folder, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(Error::GoIsMissing)?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(failed("it has no output".to_owned()));
    };
    let output = tokio::spawn(read_all(stdout));
    let mut lines = BufReader::new(stderr).lines();
    let mut tail = VecDeque::new();
    let mut count = 0;
    while let Ok(Some(line)) = lines.next_line().await {
        count += 1;
        seen(&line, count);
        tail.push_back(line);
        if tail.len() > ERROR_LINES {
            tail.pop_front();
        }
    }
    let status = child.wait().await.map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        return Err(failed(Vec::from(tail).join("\n")));
    }
    output.await.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
}

async fn read_all(mut stdout: ChildStdout) -> io::Result<String> {
    let mut text = String::new();
    stdout.read_to_string(&mut text).await?;
    Ok(text)
}
