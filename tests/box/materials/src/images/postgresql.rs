//! PostgreSQL's images: one from Debian's packages, and those of other majors, whose servers come from Maven
//! Central and their programs for clients from Debian. Paths, user, variables, entrypoint and signal are as
//! in the published ones.

use std::path::Path;

use tokio::process::Command;

use super::error::{Error, at};
use super::host::{self, Needed};
use super::oci::{About, Image, Layer, Start};
use super::servers::Server;
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
    add_places(&mut tree);
    Ok(tree)
}

/// The programs for clients that probes and the entrypoint run.
const OF_CLIENTS: [&str; 2] = ["pg_isready", "psql"];

/// The files of a server of another major in this folder, with the programs for clients of Debian's.
pub async fn tree_of(server: &Server, folder: &Path) -> Result<Tree, Error> {
    let mut tree = Tree::default();
    let home = home(server.major);
    let home = Path::new(home.trim_start_matches('/'));
    for part in ["bin", "lib", "share"] {
        let from = folder.join(part);
        tree.copy(home.join(part), &from, &[]).map_err(at(&from))?;
    }
    let of_server = host::files(&folder.join("bin"), &[])?;
    host::add_libraries(&mut tree, &of_server, &[folder.join("lib")]).await?;
    let of_clients = OF_CLIENTS.map(|name| Path::new(BIN).join(name));
    for (name, from) in OF_CLIENTS.iter().zip(&of_clients) {
        tree.file(home.join("bin").join(name), from).map_err(at(from))?;
    }
    host::add_libraries(&mut tree, &of_clients, &[]).await?;

    let sample = Path::new("share/postgresql/postgresql.conf.sample");
    let text = std::fs::read_to_string(folder.join(sample)).map_err(at(folder.join(sample)))?;
    tree.text(home.join(sample), listening(&text), 0o644);
    add_places(&mut tree);
    Ok(tree)
}

/// The entrypoint, and the folders that the server writes to.
fn add_places(tree: &mut Tree) {
    tree.text("usr/local/bin/docker-entrypoint.sh", ENTRYPOINT, 0o755);
    tree.folder("docker-entrypoint-initdb.d", 0o755, 0);
    // Any user may be chosen for a container, so these are open until the server makes them its own.
    tree.folder("var/lib/postgresql", 0o1777, USER_ID);
    tree.folder("var/lib/postgresql/data", 0o1777, USER_ID);
    tree.folder("run/postgresql", 0o3777, USER_ID);
}

fn home(major: u32) -> String {
    format!("/usr/lib/postgresql/{major}")
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

/// The major version of Debian's.
pub const MAJOR: u32 = 15;

/// An image, under its whole version and, if there is no newer one, its major version.
pub fn image(major: u32, version: &str, is_newest: bool, layers: Vec<Layer>) -> Image {
    let bin = format!("{}/bin", home(major));
    let path = format!("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:{bin}");
    let tags = is_newest.then(|| major.to_string()).into_iter().chain([version.to_owned()]);
    Image {
        names: tags.map(|tag| format!("docker.io/library/postgres:{tag}")).collect(),
        layers,
        start: Start {
            environment: vec![
                format!("PATH={path}"),
                "LANG=en_US.utf8".to_owned(),
                format!("PG_MAJOR={major}"),
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
