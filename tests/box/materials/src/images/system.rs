//! The lowest layer of the database images: a shell, the usual small programs, users, locales and time zones
//! of this host's Debian.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::error::{Error, at};
use super::host::{self, Needed};
use super::tree::Tree;

/// What the layer is made from.
pub const NEEDED: &[Needed] = &[
    Needed { path: "/usr/bin/ldd", package: "libc-bin" },
    Needed { path: "/usr/bin/df", package: "coreutils" },
    Needed { path: "/usr/bin/find", package: "findutils" },
    Needed { path: "/usr/bin/ps", package: "procps" },
    Needed { path: "/usr/share/i18n/locales/en_US", package: "locales" },
    Needed { path: "/usr/share/zoneinfo/UTC", package: "tzdata" },
];

/// What scripts and people expect in a Debian image; those of a published image that are not needed here are
/// left out.
const PROGRAMS: &[&str] = &[
    "awk",
    "basename",
    "bash",
    "cat",
    "chmod",
    "chown",
    "cmp",
    "cp",
    "cut",
    "date",
    "dd",
    "df",
    "dirname",
    "du",
    "env",
    "expr",
    "fallocate",
    "false",
    "find",
    "getent",
    "grep",
    "gzip",
    "head",
    "id",
    "kill",
    "ln",
    "ls",
    "md5sum",
    "mkdir",
    "mktemp",
    "mv",
    "nproc",
    "od",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "setpriv",
    "sh",
    "sha256sum",
    "sleep",
    "sort",
    "stat",
    "sync",
    "tail",
    "tee",
    "test",
    "timeout",
    "touch",
    "tr",
    "true",
    "truncate",
    "uname",
    "uniq",
    "wc",
    "whoami",
    "xargs",
];

/// The users of the published images beside Debian's first and last.
const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\
                      postgres:x:999:999::/var/lib/postgresql:/bin/bash\n\
                      questdb:x:10001:10001::/var/lib/questdb:/sbin/nologin\n\
                      nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";

const GROUP: &str = "root:x:0:\npostgres:x:999:\nquestdb:x:10001:\nnogroup:x:65534:\n";

/// The layer; the locale is compiled in `scratch`.
pub async fn tree(scratch: &Path) -> Result<Tree, Error> {
    let mut tree = Tree::default();
    for folder in ["bin", "lib", "lib64", "sbin"] {
        tree.link(folder, format!("usr/{folder}"));
        tree.folder(format!("usr/{folder}"), 0o755, 0);
    }
    for folder in ["dev", "etc", "home", "opt", "proc", "run", "sys", "usr/local/bin", "var/lib", "var/tmp"] {
        tree.folder(folder, 0o755, 0);
    }
    tree.folder("root", 0o700, 0);
    tree.folder("tmp", 0o1777, 0);
    tree.link("var/run", "/run");
    tree.text("etc/passwd", PASSWD, 0o644);
    tree.text("etc/group", GROUP, 0o644);
    tree.text("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n", 0o644);
    tree.file("etc/os-release", "/etc/os-release").map_err(at("/etc/os-release"))?;

    let programs: Vec<PathBuf> = PROGRAMS.iter().map(|name| Path::new("/usr/bin").join(name)).collect();
    for program in &programs {
        tree.file(program.strip_prefix("/").unwrap_or(program), program).map_err(at(program))?;
    }
    host::add_libraries(&mut tree, &programs, &[]).await?;

    // PostgreSQL's published image makes its databases with en_US; C.UTF-8 comes with Debian's C library.
    let locale = scratch.join("en_US.utf8");
    host::run(Command::new("localedef").args(["--no-archive", "-i", "en_US", "-f", "UTF-8"]).arg(&locale))
        .await?;
    for (inside, from) in [
        ("usr/lib/locale/en_US.utf8", locale.as_path()),
        ("usr/lib/locale/C.utf8", Path::new("/usr/lib/locale/C.utf8")),
        ("usr/share/zoneinfo", Path::new("/usr/share/zoneinfo")),
    ] {
        // The host's own time is not the image's.
        tree.copy(inside, from, &["localtime"]).map_err(at(from))?;
    }
    Ok(tree)
}
