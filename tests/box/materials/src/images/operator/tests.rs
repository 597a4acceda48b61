//! The whole image, around a small program of this host.

use std::collections::BTreeMap;
use std::io::Read as _;

use serde_json::Value;

use super::*;

/// The image in an archive.
struct Seen {
    manifest: Value,
    config: Value,
    /// Each path in the layer with its mode, owner and bytes.
    files: BTreeMap<String, (u32, u64, Vec<u8>)>,
}

impl Seen {
    fn read(archive: &Path) -> Self {
        let mut blobs = BTreeMap::new();
        for entry in tar::Archive::new(File::open(archive).unwrap()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            blobs.insert(entry.path().unwrap().display().to_string(), bytes);
        }
        let blob = |descriptor: &Value| {
            blobs[&descriptor["digest"].as_str().unwrap().replace("sha256:", "blobs/sha256/")].as_slice()
        };
        let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        let manifest = json(blob(&json(&blobs["index.json"])["manifests"][0]));
        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(blob(&manifest["layers"][0])).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            let (mode, owner) = (entry.header().mode().unwrap(), entry.header().uid().unwrap());
            files.insert(entry.path().unwrap().display().to_string(), (mode, owner, bytes));
        }
        Self { config: json(blob(&manifest["config"])), manifest, files }
    }

    fn text(&self, path: &str) -> String {
        String::from_utf8(self.files[path].2.clone()).unwrap()
    }
}

/// The image of a small program; none where this host has not what it takes, which is said.
async fn image_of(binary: &str, archive: &Path) -> Option<Result<Written, Error>> {
    if let Some(missing) = NEEDED.iter().chain(debian::NEEDED).find_map(|needed| needed.mark().err()) {
        eprintln!("NOT RUN: the operator's image: {missing}");
        return None;
    }
    let mut image = OperatorImage::new(Path::new(binary), "test");
    image.source = Some("https://example.test/freehold".to_owned());
    Some(write_operator_image(&image, archive).await)
}

#[tokio::test]
async fn the_operators_image_holds_the_program_and_what_it_loads_and_no_shell() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("image.tar");
    let Some(written) = image_of("/usr/bin/true", &archive).await else { return };
    assert_eq!(written.unwrap().name, "docker.io/library/freehold:test");
    let image = Seen::read(&archive);
    let has = |end: &str| image.files.keys().any(|path| path.ends_with(end));
    for end in ["freehold", "/libc.so.6", "etc/ssl/certs/ca-certificates.crt", "tmp/"] {
        assert!(has(end), "no {end} in {:?}", image.files.keys());
    }
    let programs = image.files.iter().filter(|(path, (mode, ..))| mode & 0o111 != 0 && !path.ends_with('/'));
    let programs: Vec<&str> = programs.map(|(path, _)| path.as_str()).collect();
    let is_known =
        |path: &&str| *path == "freehold" || path.contains(".so") || ["lib", "lib64"].contains(path);
    assert!(programs.iter().all(is_known), "{programs:?}");
    for (path, (mode, owner, _)) in &image.files {
        assert!(mode & 0o6000 == 0 && *owner == 0, "{path} has mode {mode:o} and owner {owner}");
        assert!(mode & 0o022 == 0 || path == "tmp/" || ["lib", "lib64"].contains(&path.as_str()), "{path}");
    }
    let config = &image.config["config"];
    assert_eq!((&config["User"], &config["Entrypoint"][0]), (&"65532:65532".into(), &"/freehold".into()));
    assert_eq!(config["Env"][1], "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt");
}

#[tokio::test]
async fn the_same_program_gives_the_same_image() {
    let folder = tempfile::tempdir().unwrap();
    let archives = ["one.tar", "two.tar"].map(|name| folder.path().join(name));
    let mut written = Vec::new();
    for archive in &archives {
        let Some(image) = image_of("/usr/bin/true", archive).await else { return };
        written.push(image.unwrap());
    }
    assert_eq!(written[0], written[1]);
    assert_eq!(std::fs::read(&archives[0]).unwrap(), std::fs::read(&archives[1]).unwrap());
}

#[tokio::test]
async fn an_image_says_what_it_is_made_of_and_under_which_licenses() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("image.tar");
    let Some(written) = image_of("/usr/bin/true", &archive).await else { return };
    let written = written.unwrap();
    let image = Seen::read(&archive);
    let said = |key: &str| image.manifest["annotations"][format!("org.opencontainers.image.{key}")].clone();
    assert_eq!(said("version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(
        (said("licenses"), said("source")),
        ("Apache-2.0".into(), "https://example.test/freehold".into())
    );
    assert_eq!(image.config["config"]["Labels"], image.manifest["annotations"]);

    assert_eq!(image.text(BILL), written.bill);
    let bill: Value = serde_json::from_str(&written.bill).unwrap();
    let components = bill["components"].as_array().unwrap();
    let named = |name: &str| components.iter().filter(|component| component["name"] == name).count();
    for name in ["aws-sdk-ec2", "kube", "rustls", "tokio", "rust-std", "libc6", "ca-certificates"] {
        assert_eq!(named(name), 1, "{name}");
    }
    // A library of the tests, one that is optional, a macro, and a package that no library is of.
    for name in ["proptest", "ring", "serde_derive", "bash"] {
        assert_eq!(named(name), 0, "{name}");
    }

    let licenses = image.text("usr/share/doc/freehold/THIRD-PARTY.txt");
    assert!(licenses.contains("aws-sdk-ec2 ") && licenses.contains("Permission is hereby granted"));
    assert!(image.text("usr/share/doc/freehold/LICENSE").contains("Apache License"));
    assert!(image.text("usr/share/doc/libc6/copyright").contains("LGPL"));
    assert!(image.files.contains_key("usr/share/common-licenses/LGPL-2.1"));
    assert!(image.text("var/lib/dpkg/status.d/libc6").starts_with("Package: libc6\n"));
}

#[tokio::test]
async fn an_image_trusts_the_authorities_of_the_distribution_and_none_of_the_hosts_own() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("image.tar");
    let Some(written) = image_of("/usr/bin/true", &archive).await else { return };
    written.unwrap();
    let bundle = Seen::read(&archive).text(CERTIFICATES);
    let of_package = std::fs::read_dir("/usr/share/ca-certificates/mozilla").unwrap().count();
    assert_eq!(bundle.matches("-----BEGIN CERTIFICATE-----\n").count(), of_package);
    assert_eq!(bundle.matches("-----END CERTIFICATE-----\n").count(), of_package);
}

#[test]
fn the_image_of_the_dockerfile_starts_alike_and_all_bases_are_pinned() {
    let read = |path: &str| std::fs::read_to_string(Path::new(workspace::ROOT).join(path)).unwrap();
    let dockerfile = read("Dockerfile");
    let start = start();
    let version = env!("CARGO_PKG_VERSION");
    let mut expected = vec![
        format!("\nUSER {}\n", start.user),
        format!("\nENTRYPOINT {}\n", serde_json::to_string(start.entrypoint).unwrap()),
        format!("\nWORKDIR {}\n", start.folder),
        format!("org.opencontainers.image.version=\"{version}\""),
    ];
    expected.extend(start.environment);
    for part in expected {
        assert!(dockerfile.contains(&part), "{part}");
    }
    let bases: Vec<&str> = dockerfile.lines().filter_map(|line| line.strip_prefix("FROM ")).collect();
    assert_eq!(bases.len(), 2);
    for base in bases {
        let digest = base.split_once("@sha256:").and_then(|(_, rest)| rest.get(..64)).unwrap_or_default();
        assert!(digest.len() == 64 && digest.chars().all(|digit| digit.is_ascii_hexdigit()), "{base}");
    }
    // The same compiler everywhere.
    let toolchain = read("rust-toolchain.toml");
    let channel = toolchain.split('"').nth(1).unwrap();
    for path in ["Dockerfile", ".github/workflows/ci.yaml", ".github/workflows/release.yaml"] {
        assert!(read(path).contains(&format!("rust:{channel}-bookworm@sha256:")), "{path}");
    }
}

#[tokio::test]
async fn what_is_no_program_of_this_host_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let Some(written) = image_of("/etc/passwd", &folder.path().join("image.tar")).await else { return };
    assert!(matches!(written, Err(Error::Command { .. } | Error::Program(_))), "{written:?}");
}
