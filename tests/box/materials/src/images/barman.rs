//! Barman's programs for the archive of PostgreSQL's log, with a Python that runs them: the layer that a
//! person adds to the published image.

use std::path::Path;

use tokio::process::Command;

use super::error::{Error, at};
use super::host::{self, Needed};
use super::oci::{Image, Layer};
use super::tree::Tree;

/// Its packages, each with its version.
pub const PACKAGES: &str = include_str!("../../../tools/postgresql/barman.txt");

/// The name of the image without its tag.
pub const REPOSITORY: &str = "registry.example/postgres-with-barman";

const PYTHON: &str = "/usr/bin/python3";

/// What the layer is made from.
pub const NEEDED: &[Needed] = &[
    Needed { path: PYTHON, package: "python3" },
    Needed { path: "/usr/lib/python3.11/ensurepip/__init__.py", package: "python3-venv" },
];

/// Where its packages are in the image.
const INSTALLED: &str = "usr/share/barman";

/// The programs, each with its module.
const PROGRAMS: [(&str, &str); 2] = [
    ("barman-cloud-wal-archive", "barman.clients.cloud_walarchive"),
    ("barman-cloud-wal-restore", "barman.clients.cloud_walrestore"),
];

/// Makes, in the folder of its first argument, a copy of Python's library without what only developers use,
/// and the packages; `$2` lists these. Each start would compile them anew where nothing can be written, and a
/// layer has no times by which what is compiled could be seen to be old.
const MAKE: &str = r#"set -eu
cp -rL "$(/usr/bin/python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" "$1/library"
cd "$1/library"
rm -rf config-* dist-packages ensurepip idlelib lib2to3 lib-dynload/_tkinter* test tkinter
/usr/bin/python3 -m venv "$1/venv"
printf %s "$2" > "$1/packages"
"$1/venv/bin/python3" -m pip install --quiet --no-deps --requirement "$1/packages" --target "$1/installed"
/usr/bin/python3 -m compileall -q -f --invalidation-mode unchecked-hash "$1/library" "$1/installed"
/usr/bin/python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])'
"#;

/// Python, the packages and the programs; all made in `scratch`.
pub async fn tree(scratch: &Path) -> Result<Tree, Error> {
    let mut make = Command::new("/bin/sh");
    make.args(["-c", MAKE, "sh"]).arg(scratch).arg(PACKAGES);
    let version = host::run(&mut make).await?;
    let (library, installed) = (scratch.join("library"), scratch.join("installed"));
    let mut tree = Tree::default();
    tree.file(PYTHON.trim_start_matches('/'), PYTHON).map_err(at(PYTHON))?;
    tree.copy(Path::new("usr/lib").join(version.trim()), &library, &[]).map_err(at(&library))?;
    tree.copy(INSTALLED, &installed, &["bin"]).map_err(at(&installed))?;
    let brought = installed.join("psycopg2_binary.libs");
    let mut loaders = host::files(&library.join("lib-dynload"), &[])?;
    loaders.extend(host::files(&brought, &[])?);
    loaders.push(PYTHON.into());
    host::add_libraries(&mut tree, &loaders, &[brought]).await?;
    for (program, module) in PROGRAMS {
        let text = format!(
            "#!{PYTHON}\nimport sys\nsys.path.insert(0, '/{INSTALLED}')\nfrom {module} import main\nsys.exit(main())\n"
        );
        tree.text(Path::new("usr/bin").join(program), text, 0o755);
    }
    Ok(tree)
}

/// The image of PostgreSQL with these programs, under its own name.
pub fn image(postgresql: &Image, version: &str, barman: Layer) -> Image {
    let mut image = postgresql.clone();
    image.names = vec![format!("{REPOSITORY}:{version}")];
    image.layers.push(barman);
    image
}
