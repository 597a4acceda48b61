//! What images are made from on this host: its commands, its files with the libraries they need, and a mark
//! that changes with them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, UNIX_EPOCH};

use tokio::process::Command;

use super::error::{Error, at};
use super::tree::Tree;

/// How long a command may take; the longest are downloads.
const COMMAND_LIMIT: Duration = Duration::from_mins(10);

/// The last lines of a command that an error shows.
const ERROR_LINES: usize = 12;

/// A file that must be on this host, and the Debian package that brings it.
#[derive(Clone, Copy, Debug)]
pub struct Needed {
    /// The file.
    pub path: &'static str,
    /// The package.
    pub package: &'static str,
}

impl Needed {
    /// Which version of it is here: differs when the package was updated.
    pub fn mark(self) -> Result<String, Error> {
        mark(Path::new(self.path)).map_err(|source| Error::Missing {
            path: self.path.into(),
            package: self.package,
            source,
        })
    }
}

/// Size and time of a file, which say whether it is the same one without reading it.
pub fn mark(path: &Path) -> io::Result<String> {
    let found = fs::metadata(path)?;
    let modified = found.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(format!("{} {} {}", path.display(), found.len(), modified.as_nanos()))
}

/// Runs a command to its end; its standard output.
pub async fn run(command: &mut Command) -> Result<String, Error> {
    let mut said = format!("{}", command.as_std().get_program().display());
    for argument in command.as_std().get_args() {
        let _ = write!(said, " {}", argument.display());
    }
    let failed = |tail: String| Error::Command { command: said.clone(), tail };
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(COMMAND_LIMIT, command.output())
        .await
        .map_err(|_| failed(format!("it took longer than {} min", COMMAND_LIMIT.as_secs() / 60)))?
        .map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().chain(errors.lines()).collect();
    Err(failed(lines.get(lines.len().saturating_sub(ERROR_LINES)..).unwrap_or_default().join("\n")))
}

/// The files of a folder but those that are left out, in order.
pub fn files(folder: &Path, leave_out: &[&str]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let entry = entry.map_err(at(folder))?;
        if entry.path().is_file()
            && !leave_out.iter().any(|left_out| OsStr::new(left_out) == entry.file_name())
        {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Adds the libraries that these programs and libraries load at their start, and gives their paths on this
/// host. Those in `beside` are theirs already.
pub async fn add_libraries(
    tree: &mut Tree,
    of: &[PathBuf],
    beside: &[PathBuf],
) -> Result<BTreeSet<PathBuf>, Error> {
    let search = std::env::join_paths(beside).unwrap_or_default();
    // It fails when one of the files is no program, so its word counts and not its exit status.
    let script = r#"ldd "$@" 2>/dev/null || true"#;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "ldd"]).args(of).env("LD_LIBRARY_PATH", search).env("LC_ALL", "C");
    let mut libraries = loaded(&run(&mut command).await?)?;
    libraries.retain(|library| !beside.iter().any(|folder| library.starts_with(folder)));
    for library in &libraries {
        // The loader is asked for in /lib64 and the rest in /lib, both links into /usr on a merged system, as
        // in the image.
        let folder = library.parent().unwrap_or(library);
        let folder = folder.canonicalize().map_err(at(folder))?;
        let name = library.file_name().unwrap_or_default();
        let inside = folder.strip_prefix("/").unwrap_or(&folder).join(name);
        tree.file(inside, library).map_err(at(library))?;
    }
    Ok(libraries)
}

/// The libraries in the output of ldd.
fn loaded(output: &str) -> Result<BTreeSet<PathBuf>, Error> {
    let mut libraries = BTreeSet::new();
    let mut of = "";
    for line in output.lines() {
        let Some(line) = line.strip_prefix('\t') else {
            of = line.trim_end_matches(':');
            continue;
        };
        let (name, found) = line.split_once(" => ").unwrap_or((line, line));
        if found.starts_with("not found") {
            return Err(Error::Library { of: of.to_owned(), library: name.to_owned() });
        }
        let path = found.split(" (").next().unwrap_or(found);
        // What has no path is the kernel's own (linux-vdso) or a remark.
        if path.starts_with('/') {
            libraries.insert(PathBuf::from(path));
        }
    }
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_what_ldd_says() {
        let output = "/usr/bin/df:\n\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => \
                      /lib/x86_64-linux-gnu/libc.so.6 (0x00007f4d)\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x00007f4e)\n/usr/bin/ls:\n\tlibc.so.6 => \
                      /lib/x86_64-linux-gnu/libc.so.6 (0x00007f4d)\n\
                      /bin/script:\n\tnot a dynamic executable\n";
        let expected = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        assert_eq!(loaded(output).unwrap(), BTreeSet::from(expected));
    }

    #[test]
    fn a_library_that_is_not_installed_is_named_with_who_wants_it() {
        let error = loaded("/opt/java:\n\tlibz.so.1 => not found\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "failed to find library libz.so.1, which /opt/java loads: install the Debian package that has it"
        );
    }
}
