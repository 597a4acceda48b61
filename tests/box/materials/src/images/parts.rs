//! The layers, each in the cache under its key, and the images that are made of them.

use std::io;
use std::path::{Path, PathBuf};

use super::error::{Error, at, blocking, key};
use super::host::Needed;
use super::oci::{Image, Layer};
use super::servers::Server;
use super::tree::Tree;
use super::{barman, pause, postgresql, questdb, servers, system};
use crate::base::cache::make_private_folder;
use crate::base::progress::Progress;

/// The sources that every layer's bytes depend on.
const SHARED: [&str; 3] = [include_str!("tree.rs"), include_str!("oci.rs"), include_str!("host.rs")];

/// A layer's name and what decides its bytes.
#[derive(Clone, Debug)]
struct Part {
    name: String,
    key: String,
}

impl Part {
    fn new(name: impl Into<String>, sources: &[&str], needed: &[Needed]) -> Result<Self, Error> {
        let mut parts: Vec<String> = SHARED.iter().chain(sources).map(|&source| source.to_owned()).collect();
        for needed in needed {
            parts.push(needed.mark()?);
        }
        let name = name.into();
        parts.push(name.clone());
        Ok(Self { name, key: key(&parts) })
    }

    fn folder(&self, root: &Path) -> PathBuf {
        root.join("layers").join(format!("{}-{}", self.name, self.key))
    }

    /// The layer from the cache, or else the one that `make` describes in a scratch folder.
    async fn layer(
        &self,
        root: &Path,
        make: impl AsyncFnOnce(&Path) -> Result<Tree, Error>,
    ) -> Result<Layer, Error> {
        let folder = self.folder(root);
        if let Ok(layer) = Layer::read(&folder) {
            return Ok(layer);
        }
        let work_folder = tempfile::Builder::new().prefix("making-").tempdir_in(root).map_err(at(root))?;
        let (scratch, result) = (work_folder.path().join("scratch"), work_folder.path().join("layer"));
        for folder in [&scratch, &result] {
            make_private_folder(folder).map_err(at(folder))?;
        }
        let tree = make(&scratch).await?;
        blocking(folder.clone(), move || {
            Layer::write(&tree, &result)?;
            // What is there without being a whole layer was damaged; the rename needs its place.
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::rename(&result, &folder)?;
            drop(work_folder);
            Layer::read(&folder)
        })
        .await
    }
}

/// All layers of the machine image.
#[derive(Debug)]
pub struct Parts {
    pause: Part,
    system: Part,
    java: Part,
    questdb: Vec<(questdb::Release, Part)>,
    postgresql: Part,
    barman: Part,
    servers: Vec<(Server, Part)>,
}

impl Parts {
    /// Looks at what they would be made from; makes nothing.
    pub fn of_this_host() -> Result<Self, Error> {
        // Their libraries must be of the C library that the shell's layer has.
        let on_system = |needed: &[Needed]| [system::NEEDED, needed].concat();
        let questdb = |release: questdb::Release| {
            let name = format!("questdb-{}", release.version);
            Ok((
                release,
                Part::new(
                    name,
                    &[include_str!("questdb.rs"), questdb::ENTRYPOINT],
                    &on_system(questdb::NEEDED),
                )?,
            ))
        };
        let server = |server: Server| {
            let name = format!("postgresql-{}", server.release());
            let sources = [include_str!("servers.rs"), include_str!("postgresql.rs"), postgresql::ENTRYPOINT];
            let needed = [servers::NEEDED, postgresql::NEEDED].concat();
            Ok((server, Part::new(name, &sources, &on_system(&needed))?))
        };
        Ok(Self {
            pause: Part::new("pause", &[include_str!("pause.rs"), pause::SOURCE], pause::NEEDED)?,
            system: Part::new("system", &[include_str!("system.rs")], system::NEEDED)?,
            java: Part::new("java", &[include_str!("questdb.rs")], &on_system(questdb::NEEDED))?,
            questdb: questdb::RELEASES.into_iter().map(questdb).collect::<Result<_, Error>>()?,
            postgresql: Part::new(
                "postgresql",
                &[include_str!("postgresql.rs"), postgresql::ENTRYPOINT],
                &on_system(postgresql::NEEDED),
            )?,
            barman: Part::new(
                "barman",
                &[include_str!("barman.rs"), barman::PACKAGES],
                &on_system(barman::NEEDED),
            )?,
            servers: servers::IMAGES.into_iter().map(server).collect::<Result<_, Error>>()?,
        })
    }

    /// What decides all of their bytes.
    pub fn keys(&self) -> Vec<String> {
        let Self { pause, system, java, questdb, postgresql, barman, servers } = self;
        let fixed = [pause, system, java, postgresql, barman];
        let releases = questdb.iter().map(|(_, part)| part).chain(servers.iter().map(|(_, part)| part));
        fixed.into_iter().chain(releases).map(|part| part.key.clone()).collect()
    }

    /// The images, with the layers that are not yet in `root` made.
    pub async fn images(&self, root: &Path, progress: &Progress) -> Result<Vec<Image>, Error> {
        let jars = root.join("jars");
        for folder in [&root.join("layers"), &jars] {
            make_private_folder(folder).map_err(at(folder))?;
        }
        let releases = self.questdb.len() + self.servers.len();
        let steps = 5 + u64::try_from(releases).map_err(io::Error::other).map_err(at(root))?;
        progress.at(0, steps, "making images, now pause");
        let pause = self.pause.layer(root, pause::tree).await?;
        progress.at(1, steps, "making images, now the shell and its programs");
        let system = self.system.layer(root, system::tree).await?;
        progress.at(2, steps, "making images, now PostgreSQL");
        let postgresql = self.postgresql.layer(root, async |_: &Path| postgresql::tree().await).await?;
        progress.at(3, steps, "making images, now Barman's programs");
        let barman = self.barman.layer(root, barman::tree).await?;
        progress.at(4, steps, "making images, now the Java runtime");
        let java = self.java.layer(root, questdb::runtime).await?;

        let version = postgresql::version().await?;
        let layers = vec![system.clone(), postgresql];
        let postgresql = postgresql::image(postgresql::MAJOR, &version, true, layers);
        let with_barman = barman::image(&postgresql, &version, barman);
        let mut images = vec![pause::image(pause), postgresql, with_barman];
        for (done, (release, part)) in (5..).zip(&self.questdb) {
            progress.at(done, steps, &format!("making images, now QuestDB {}", release.version));
            let make =
                async |scratch: &Path| questdb::tree(&questdb::jar(*release, &jars).await?, scratch).await;
            let layer = part.layer(root, make).await?;
            images.push(questdb::image(*release, vec![system.clone(), java.clone(), layer]));
        }
        let done = (5..).skip(self.questdb.len());
        for (done, (server, part)) in done.zip(&self.servers) {
            progress.at(done, steps, &format!("making images, now PostgreSQL {}", server.release()));
            let make = async |_: &Path| postgresql::tree_of(server, &server.unpacked(root).await?).await;
            let layers = vec![system.clone(), part.layer(root, make).await?];
            let is_newest = servers::SERVERS.iter().any(|it| it.release() == server.release());
            images.push(postgresql::image(server.major, server.release(), is_newest, layers));
        }
        Ok(images)
    }
}
