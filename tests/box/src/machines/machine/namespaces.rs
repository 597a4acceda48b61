//! How a program of the host is started in a machine: in its namespaces and control groups.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

/// Joins the machine's control groups, then becomes the program; the arguments are the files of the control
/// groups, `--`, and the command line.
const JOIN: &str = r#"while [ "$1" != -- ]; do echo $$ >"$1" || exit 125; shift; done; shift; exec "$@""#;

/// Where programs in a machine are looked for: the machine's own first, then the host's.
const PATH: &str = "/opt/freehold-box/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The namespaces and control groups of a machine, which programs join. The process that is started becomes
/// the program itself, so its id is the program's; killed with the machine, it needs no supervisor.
#[derive(Clone, Debug)]
pub struct Namespaces {
    /// The process that holds the namespaces.
    pub holder: u32,
    /// The files by which its control groups are joined.
    pub cgroup_files: Vec<PathBuf>,
}

impl Namespaces {
    /// The command that runs `program` in the machine, as root, with a clean environment.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = joining(&self.cgroup_files);
        command.args([
            "nsenter",
            "--target",
            &self.holder.to_string(),
            "--mount",
            "--uts",
            "--net",
            "--wd=/",
            "--",
        ]);
        command.arg(program);
        clean(&mut command);
        command
    }
}

/// A command that joins these control groups and becomes what its further arguments say.
pub fn joining(cgroup_files: &[PathBuf]) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", JOIN, "machine"]).args(cgroup_files).arg("--");
    command
}

/// The environment of a machine. Its Go programs collect their garbage earlier than by default: memory is
/// what a box lacks first.
pub fn clean(command: &mut Command) {
    command.env_clear().envs([("PATH", PATH), ("HOME", "/root"), ("LANG", "C.UTF-8"), ("GOGC", "50")]);
}
