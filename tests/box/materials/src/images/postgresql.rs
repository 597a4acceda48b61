//! PostgreSQL's image, from Debian's packages: paths, user, variables, entrypoint and signal as in the
//! published one.

use std::path::Path;

use tokio::process::Command;

use super::error::{Error, at};
use super::host::{self, Needed};
use super::oci::{About, Image, Layer, Start};
use super::tree::Tree;

/// What is run as the image's first process.
pub const ENTRYPOINT: &str = include_str!("../../../tools/postgresql/docker-entrypoint.sh");

/// The user of the published image.
const USER_ID: u64 = 999;

const BIN: &str = "/usr/lib/postgresql/15/bin";
const LIB: &str = "/usr/lib/postgresql/15/lib";
const SHARE: &str = "/usr/share/postgresql/15";
const SAMPLE: &str = "/usr/share/postgresql/15/postgresql.conf.sample";

/// What it is made from.
pub const NEEDED: &[Needed] = &[
    Needed { path: "/usr/lib/postgresql/15/bin/postgres", package: "postgresql-15" },
    Needed { path: "/usr/lib/postgresql/15/bin/psql", package: "postgresql-client-15" },
];

/// The compiler of queries: with its library it is larger than all the rest, and the server runs without it.
const JUST_IN_TIME: &[&str] = &["bitcode", "llvmjit.so", "llvmjit_types.bc"];

/// PostgreSQL's files and the libraries that they load.
pub async fn tree() -> Result<Tree, Error> {
    let mut tree = Tree::default();
    let mut loaders = Vec::new();
    for (folder, leave_out) in [(BIN, &[][..]), (LIB, JUST_IN_TIME), (SHARE, &["man"])] {
        let path = Path::new(folder);
        tree.copy(path.strip_prefix("/").unwrap_or(path), path, leave_out).map_err(at(path))?;
        loaders.extend(host::files(path, leave_out)?);
    }
    host::add_libraries(&mut tree, &loaders, &[]).await?;

    let sample = std::fs::read_to_string(SAMPLE).map_err(at(SAMPLE))?;
    tree.text(SAMPLE.trim_start_matches('/'), listening(&sample), 0o644);
    tree.text("usr/local/bin/docker-entrypoint.sh", ENTRYPOINT, 0o755);
    tree.folder("docker-entrypoint-initdb.d", 0o755, 0);
    // Any user may be chosen for a container, so these are open until the server makes them its own.
    tree.folder("var/lib/postgresql", 0o1777, USER_ID);
    tree.folder("var/lib/postgresql/data", 0o1777, USER_ID);
    tree.folder("run/postgresql", 0o3777, USER_ID);
    Ok(tree)
}

/// Clusters made in the image listen to the network, as a container's must.
fn listening(sample: &str) -> String {
    let line = |line: &str| {
        let is_it = line.trim_start_matches('#').trim_start().starts_with("listen_addresses");
        if is_it { "listen_addresses = '*'\n".to_owned() } else { format!("{line}\n") }
    };
    sample.lines().map(line).collect()
}

/// The version of the installed server, `15.18`.
pub async fn version() -> Result<String, Error> {
    let program = Path::new(BIN).join("postgres");
    let said = host::run(Command::new(&program).arg("--version")).await?;
    let version = said.split_ascii_whitespace().find(|word| word.starts_with("15.")).map(str::to_owned);
    version.ok_or_else(|| Error::Command { command: format!("{} --version", program.display()), tail: said })
}

/// The image, under its major version and its whole one.
pub fn image(version: &str, layers: Vec<Layer>) -> Image {
    let path = format!("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:{BIN}");
    Image {
        names: ["15", version].map(|tag| format!("docker.io/library/postgres:{tag}")).into(),
        layers,
        start: Start {
            environment: vec![
                format!("PATH={path}"),
                "LANG=en_US.utf8".to_owned(),
                "PG_MAJOR=15".to_owned(),
                format!("PG_VERSION={version}"),
                "PGDATA=/var/lib/postgresql/data".to_owned(),
            ],
            entrypoint: &["docker-entrypoint.sh"],
            arguments: &["postgres"],
            folder: "/",
            ports: &["5432/tcp"],
            volumes: &["/var/lib/postgresql/data"],
            stop_signal: Some("SIGINT"),
            ..Start::default()
        },
        about: About::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_of_the_settings_listens_to_the_network_and_is_otherwise_unchanged() {
        let sample = "port = 5432\n#listen_addresses = 'localhost'\t\t# what IP address(es) to listen \
            on;\n#ssl = off\n";
        assert_eq!(listening(sample), "port = 5432\nlisten_addresses = '*'\n#ssl = off\n");
    }
}
