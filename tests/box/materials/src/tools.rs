//! Builds the programs of the box from pinned Go modules, once, into the cache.

mod bundle;
mod error;
mod go;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

pub use bundle::{Bundle, KUBERNETES_VERSION, Program};
pub use error::Error;
use error::in_cache;

use crate::base::cache::{Cache, make_private_folder};
use crate::base::progress::Progress;

/// Flags of the build. Without inlining a cold build takes a fifth less (kwok alone: 205 s of processor time
/// instead of 260; the EBS driver 215 instead of 872), and the programs serve one small cluster. Without
/// debug information, which the linker leaves out in any case, it takes another 7 % less (etcd alone: 72 s
/// instead of 78).
const BUILD_FLAGS: [&str; 3] = ["-trimpath", "-mod=readonly", "-gcflags=all=-l -dwarf=false"];

/// The flags of a bundle, in the order in which the last one that fits a package counts.
fn flags(bundle: Bundle) -> Vec<String> {
    let inlined = bundle.inlined().iter().map(|packages| format!("-gcflags={packages}=-dwarf=false"));
    let flags = BUILD_FLAGS.into_iter().chain(bundle.tags()).map(str::to_owned);
    flags.chain(inlined).collect()
}

/// How long another process may take to build before this one gives up waiting for it.
const BUILD_LIMIT: Duration = Duration::from_mins(45);

/// The programs, built.
#[derive(Clone, Debug)]
pub struct Tools {
    root: PathBuf,
    folders: Vec<(Bundle, PathBuf)>,
}

impl Tools {
    /// The programs of these bundles from the cache; builds those whose module files were never built here
    /// with this Go.
    pub async fn ensure(cache: &Cache, bundles: &[Bundle], progress: &Progress) -> Result<Self, Error> {
        let tools = Self::find(cache, bundles).await?;
        for (bundle, folder) in &tools.folders {
            ensure(&tools.root, *bundle, folder, progress).await?;
        }
        Ok(tools)
    }

    /// The folders in which the programs of these bundles are, or will be.
    pub async fn find(cache: &Cache, bundles: &[Bundle]) -> Result<Self, Error> {
        let root = cache.tools();
        make_private_folder(&root).map_err(in_cache(&root))?;
        let mut folders = Vec::new();
        for &bundle in bundles {
            folders.push((bundle, root.join(bundle.folder(&key(&root, bundle).await?))));
        }
        Ok(Self { root, folders })
    }

    /// The bundles of which a program is not there.
    pub fn missing(&self) -> impl Iterator<Item = Bundle> {
        self.folders
            .iter()
            .filter(|(bundle, folder)| !is_complete(*bundle, folder))
            .map(|(bundle, _)| *bundle)
    }

    /// The path of one program. One whose bundle was not asked for gets a path that names the bundle and does
    /// not exist.
    pub fn program(&self, program: Program) -> PathBuf {
        let found = self.folders.iter().find(|(bundle, _)| *bundle == program.bundle());
        let folder = found.map_or_else(
            || self.root.join(format!("{}-not-asked-for", program.bundle().name())),
            |(_, folder)| folder.clone(),
        );
        folder.join(program.file())
    }
}

fn is_complete(bundle: Bundle, folder: &Path) -> bool {
    bundle.programs().all(|program| folder.join(program.file()).is_file())
}

/// Builds a bundle's programs into this folder, unless they are there.
async fn ensure(root: &Path, bundle: Bundle, folder: &Path, progress: &Progress) -> Result<(), Error> {
    if is_complete(bundle, folder) {
        return Ok(());
    }
    let lock = root.join("lock");
    let held = hold(&lock, progress).await?;
    if !is_complete(bundle, folder) {
        let made = tempfile::Builder::new().prefix("build-").tempdir_in(root).map_err(in_cache(root))?;
        build(bundle, made.path(), progress).await?;
        // A folder that is there but not complete was damaged; the rename needs its place.
        let _ = std::fs::remove_dir_all(folder);
        std::fs::rename(made.path().join("bin"), folder).map_err(in_cache(folder))?;
    }
    drop(held);
    Ok(())
}

/// What decides the programs' bytes: the module files, the flags, and the Go that builds (asked in a module
/// of that go line, because an older `go` hands over to the toolchain that the module wants).
async fn key(root: &Path, bundle: Bundle) -> Result<String, Error> {
    let module = tempfile::Builder::new().prefix("key-").tempdir_in(root).map_err(in_cache(root))?;
    write_module(bundle, module.path())?;
    let version = go::output(bundle, module.path(), &["env", "GOVERSION"]).await?;
    let (go_mod, go_sum) = bundle.module();
    let flags = flags(bundle).join(" ");
    let mut hash = Sha256::new();
    for part in [go_mod, go_sum, &flags, &bundle.linker_flags(), version.trim()] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let digest = data_encoding::HEXLOWER.encode(&hash.finalize());
    Ok(digest.chars().take(16).collect())
}

fn write_module(bundle: Bundle, folder: &Path) -> Result<(), Error> {
    let (go_mod, go_sum) = bundle.module();
    for (name, text) in [("go.mod", go_mod), ("go.sum", go_sum)] {
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
                progress.at(0, 1, "another process is building the programs of the box, waiting for it");
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            Err(TryLockError::Error(source)) => return Err(in_cache(path)(source)),
        }
    }
}

/// Builds a bundle into `folder/bin`.
async fn build(bundle: Bundle, folder: &Path, progress: &Progress) -> Result<(), Error> {
    write_module(bundle, folder)?;
    let names = bundle.contents();
    progress.begin(&format!("building {names} from source"));
    let started = Instant::now();
    let packages: Vec<&str> = bundle.programs().map(Program::package).collect();

    let mut list = vec!["list", "-deps", "-mod=readonly"];
    list.extend(bundle.tags());
    list.extend(&packages);
    // Also fetches the modules, so its lines on standard error are worth showing.
    let deps = go::lines(bundle, folder, &list, |line, _| progress.at(0, 1, line)).await?;
    let total = u64::try_from(deps.lines().count()).unwrap_or(u64::MAX);

    let (linker_flags, flags) = (bundle.linker_flags(), flags(bundle));
    let mut build = vec!["build", "-v", "-o", "bin/", linker_flags.as_str()];
    build.extend(flags.iter().map(String::as_str));
    build.extend(&packages);
    // `-v` names a package when its compilation begins; what Go's own cache already holds is never named.
    go::lines(bundle, folder, &build, |line, count| {
        let package = line.rsplit('/').next().unwrap_or(line);
        progress.at(
            count,
            total,
            &format!("packages compiled, now {package}{}", remaining(started, count, total)),
        );
    })
    .await?;
    for program in bundle.programs().filter(|program| program.built_as() != program.file()) {
        let made = folder.join("bin").join(program.built_as());
        std::fs::rename(&made, made.with_file_name(program.file())).map_err(in_cache(&made))?;
    }
    progress.end(&format!("built {names} in {} s", started.elapsed().as_secs()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_belongs_to_a_bundle_of_a_box_of_real_machines() {
        let mut files: Vec<&str> =
            Bundle::REAL.iter().flat_map(|bundle| bundle.programs()).map(Program::file).collect();
        assert_eq!(files.len(), 19);
        files.sort_unstable();
        files.dedup();
        assert_eq!(files.len(), 19);
    }

    #[test]
    fn each_program_is_named_by_the_module_that_builds_it() {
        for program in Bundle::REAL.iter().flat_map(|bundle| bundle.programs()) {
            let (go_mod, _) = program.bundle().module();
            let package = program.package();
            let is_required = go_mod.lines().any(|line| {
                let line = line.trim();
                let module =
                    line.strip_prefix("require ").unwrap_or(line).split(' ').next().unwrap_or_default();
                package == module || package.starts_with(&format!("{module}/")) && module.contains('.')
            });
            assert!(is_required, "{package} is in no module of {}", program.bundle().name());
        }
    }
}
