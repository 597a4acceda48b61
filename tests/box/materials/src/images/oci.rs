//! Images as containerd reads them: layers with their digests, configurations, manifests, and the archive
//! that holds them all.
//!
//! An OCI image is three small JSON documents around its layers (github.com/opencontainers/image-spec),
//! written here by hand: a crate of their types would bring more code than it saves. Layers are not
//! compressed: nothing is sent over a network, and importing is faster.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{Builder, Header};

use super::tree::Tree;

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A layer that is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    path: PathBuf,
    digest: String,
    size: u64,
}

impl Layer {
    /// Writes `layer.tar` and `digest` into `folder`.
    pub fn write(tree: &Tree, folder: &Path) -> io::Result<Self> {
        let path = folder.join("layer.tar");
        let mut out = Hashed {
            out: BufWriter::with_capacity(1 << 20, File::create(&path)?),
            hash: Sha256::new(),
            size: 0,
        };
        tree.write(&mut out)?;
        let digest = data_encoding::HEXLOWER.encode(&out.hash.finalize());
        fs::write(folder.join("digest"), &digest)?;
        Ok(Self { path, digest, size: out.size })
    }

    /// The layer that [`Self::write`] left in `folder`.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let path = folder.join("layer.tar");
        let size = fs::metadata(&path)?.len();
        Ok(Self { digest: fs::read_to_string(folder.join("digest"))?, path, size })
    }
}

/// Counts and hashes what passes.
struct Hashed<W> {
    out: W,
    hash: Sha256,
    size: u64,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        let bytes = bytes.get(..written).unwrap_or_default();
        self.hash.update(bytes);
        self.size += u64::try_from(bytes.len()).map_err(io::Error::other)?;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// How containers of an image start, unless the pod says otherwise.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// `user` or `user:group`; root without.
    pub user: &'static str,
    /// `NAME=value`.
    pub environment: Vec<String>,
    /// What is run.
    pub entrypoint: &'static [&'static str],
    /// Its arguments.
    pub arguments: &'static [&'static str],
    /// Where it runs.
    pub folder: &'static str,
    /// `9000/tcp`.
    pub ports: &'static [&'static str],
    /// Where data is kept: a container without a volume there gets an empty one of its own.
    pub volumes: &'static [&'static str],
    /// What ends it; SIGTERM without.
    pub stop_signal: Option<&'static str>,
}

/// What is said of an image.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// When its sources were committed, as in RFC 3339.
    pub created: Option<String>,
    /// What people and programs look up without running it (github.com/opencontainers/image-spec,
    /// annotations.md), in the manifest and as the labels of its containers.
    pub annotations: BTreeMap<&'static str, String>,
}

/// One image.
#[derive(Clone, Debug)]
pub struct Image {
    /// Whole names with registry and tag, as containerd looks them up.
    pub names: Vec<String>,
    /// From the lowest to the highest.
    pub layers: Vec<Layer>,
    /// How its containers start.
    pub start: Start,
    /// What is said of it.
    pub about: About,
}

impl Image {
    fn config(&self) -> Value {
        let names = |list: &[&str]| {
            list.iter().map(|name| ((*name).to_owned(), json!({}))).collect::<serde_json::Map<_, _>>()
        };
        let start = &self.start;
        let mut config = json!({
            "User": start.user,
            "Env": start.environment,
            "Entrypoint": start.entrypoint,
            "Cmd": start.arguments,
            "WorkingDir": start.folder,
            "ExposedPorts": names(start.ports),
            "Volumes": names(start.volumes),
            "Labels": self.about.annotations,
        });
        if let (Some(signal), Some(config)) = (start.stop_signal, config.as_object_mut()) {
            config.insert("StopSignal".to_owned(), json!(signal));
        }
        let mut image = json!({
            "architecture": architecture(),
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers",
            "diff_ids": self.layers.iter().map(|layer| named(&layer.digest)).collect::<Vec<_>>()},
        });
        if let (Some(created), Some(image)) = (&self.about.created, image.as_object_mut()) {
            image.insert("created".to_owned(), json!(created));
        }
        image
    }
}

/// What the host's architecture is called in images.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn named(digest: &str) -> String {
    format!("sha256:{digest}")
}

/// The name of a blob by its bytes.
fn digest_of(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}

/// Writes one archive with all images, and gives the digest of each, `sha256:…`. Layers that several of them
/// have are in it once.
pub fn write_archive(images: &[Image], out: impl Write) -> io::Result<Vec<String>> {
    let mut layers = BTreeMap::new();
    let mut documents = BTreeMap::new();
    let (mut manifests, mut digests) = (Vec::new(), Vec::new());
    let mut keep = |document: &Value| -> io::Result<(String, usize)> {
        let bytes = serde_json::to_vec(document)?;
        let (digest, size) = (digest_of(&bytes), bytes.len());
        documents.insert(digest.clone(), bytes);
        Ok((digest, size))
    };
    for image in images {
        let (config, config_size) = keep(&image.config())?;
        let mut descriptors = Vec::new();
        for layer in &image.layers {
            descriptors.push(json!({"mediaType": LAYER, "digest": named(&layer.digest), "size": layer.size}));
            layers.insert(layer.digest.clone(), layer);
        }
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, "digest": named(&config), "size": config_size},
            "layers": descriptors,
            "annotations": image.about.annotations,
        });
        let (digest, size) = keep(&manifest)?;
        digests.push(named(&digest));
        for name in &image.names {
            manifests.push(json!({
                "mediaType": MANIFEST,
                "digest": named(&digest),
                "size": size,
                "annotations": {"io.containerd.image.name": name,
                "org.opencontainers.image.ref.name": name.rsplit(':').next()},
                "platform": {"architecture": architecture(), "os": "linux"},
            }));
        }
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
    write_tar(&index, &documents, &layers, out)?;
    Ok(digests)
}

/// Writes the files of an archive: its index, and the documents and layers by their digests.
fn write_tar(
    index: &Value,
    documents: &BTreeMap<String, Vec<u8>>,
    layers: &BTreeMap<String, &Layer>,
    out: impl Write,
) -> io::Result<()> {
    let mut tar = Builder::new(BufWriter::with_capacity(1 << 20, out));
    let mut add = |path: &str, size: u64, content: &mut dyn io::Read| {
        let mut header = Header::new_gnu();
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(size);
        tar.append_data(&mut header, path, content.take(size))
    };
    let mut add_bytes = |path: &str, bytes: &[u8]| {
        add(path, u64::try_from(bytes.len()).map_err(io::Error::other)?, &mut &*bytes)
    };
    add_bytes("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    add_bytes("index.json", &serde_json::to_vec(index)?)?;
    for (digest, document) in documents {
        add_bytes(&format!("blobs/sha256/{digest}"), document)?;
    }
    for (digest, layer) in layers {
        add(&format!("blobs/sha256/{digest}"), layer.size, &mut File::open(&layer.path)?)?;
    }
    tar.into_inner()?.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(folder: &Path, text: &str) -> Layer {
        let folder = folder.join(text);
        fs::create_dir_all(&folder).unwrap();
        let mut tree = Tree::default();
        tree.text("etc/motd", text, 0o644);
        Layer::write(&tree, &folder).unwrap()
    }

    fn image(name: &str, layers: Vec<Layer>) -> Image {
        Image {
            names: vec![name.to_owned()],
            layers,
            start: Start { entrypoint: &["/run"], ..Start::default() },
            about: About {
                created: Some("2026-11-23T00:00:00Z".to_owned()),
                annotations: BTreeMap::from([("org.opencontainers.image.version", "1".to_owned())]),
            },
        }
    }

    fn files(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
        tar::Archive::new(archive)
            .entries()
            .unwrap()
            .map(|entry| {
                let mut entry = entry.unwrap();
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).unwrap();
                (entry.path().unwrap().display().to_string(), bytes)
            })
            .collect()
    }

    #[test]
    fn a_layer_is_named_by_its_bytes_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let written = layer(folder.path(), "one");
        assert_eq!(written.digest, digest_of(&fs::read(&written.path).unwrap()));
        assert_eq!(Layer::read(&folder.path().join("one")).unwrap(), written);
    }

    #[test]
    fn every_blob_of_an_archive_has_its_digest_as_its_name_and_is_in_it_once() {
        let folder = tempfile::tempdir().unwrap();
        let (shared, own) = (layer(folder.path(), "shared"), layer(folder.path(), "own"));
        let images =
            [image("example.test/a:1", vec![shared.clone()]), image("example.test/b:1", vec![shared, own])];
        let mut archive = Vec::new();
        write_archive(&images, &mut archive).unwrap();

        let files = files(&archive);
        let blobs: Vec<_> = files
            .iter()
            .filter_map(|(path, bytes)| Some((path.strip_prefix("blobs/sha256/")?, bytes)))
            .collect();
        // Two configurations, two manifests, two layers.
        assert_eq!(blobs.len(), 6);
        for (digest, bytes) in blobs {
            assert_eq!(digest, digest_of(bytes));
        }
        let mut again = Vec::new();
        write_archive(&images, &mut again).unwrap();
        assert_eq!(archive, again);
    }

    #[test]
    fn an_archive_names_its_images_and_leads_from_each_to_its_layers() {
        let folder = tempfile::tempdir().unwrap();
        let layer = layer(folder.path(), "one");
        let mut archive = Vec::new();
        let digests = write_archive(&[image("example.test/a:1", vec![layer.clone()])], &mut archive).unwrap();
        let files: BTreeMap<_, _> = files(&archive).into_iter().collect();
        let blob = |descriptor: &Value| -> Value {
            let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
            let bytes = &files[&format!("blobs/sha256/{digest}")];
            assert_eq!(descriptor["size"], bytes.len());
            serde_json::from_slice(bytes).unwrap()
        };
        let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
        let entry = &index["manifests"][0];
        assert_eq!(entry["annotations"]["io.containerd.image.name"], "example.test/a:1");
        assert_eq!(digests, [entry["digest"].as_str().unwrap()]);
        let manifest = blob(entry);
        assert_eq!(manifest["layers"][0]["digest"], named(&layer.digest));
        let config = blob(&manifest["config"]);
        assert_eq!(
            (&config["rootfs"]["diff_ids"], &config["config"]["Entrypoint"]),
            (&json!([named(&layer.digest)]), &json!(["/run"]))
        );
        let said = json!({"org.opencontainers.image.version": "1"});
        assert_eq!((&manifest["annotations"], &config["config"]["Labels"]), (&said, &said));
        assert_eq!(config["created"], "2026-11-23T00:00:00Z");
    }
}
