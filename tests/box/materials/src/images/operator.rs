//! The operator's own image, from a binary of this build: quickly made anew, so that a test runs what was
//! just compiled.

use std::fs::File;
use std::path::Path;

use tokio::process::Command;

use super::error::{Error, at, blocking};
use super::host::{self, Needed};
use super::oci::{Image, Layer, Start, write_archive};
use super::tree::Tree;

/// What the image is made with.
pub const NEEDED: &[Needed] = &[
    Needed { path: "/usr/bin/strip", package: "binutils" },
    Needed { path: CERTIFICATES, package: "ca-certificates" },
];

const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Writes the image `freehold:<tag>` around `binary` to the file `archive`, which containerd can import; its
/// whole name.
pub async fn write_operator_image(binary: &Path, tag: &str, archive: &Path) -> Result<String, Error> {
    for needed in NEEDED {
        needed.mark()?;
    }
    let folder = tempfile::tempdir().map_err(at("a folder for temporary files"))?;
    let stripped = folder.path().join("freehold");
    host::run(Command::new("strip").arg("-o").args([&stripped, binary])).await?;
    let mut tree = Tree::default();
    tree.file("freehold", &stripped).map_err(at(&stripped))?;
    tree.link("lib", "usr/lib");
    tree.link("lib64", "usr/lib64");
    tree.file(CERTIFICATES.trim_start_matches('/'), CERTIFICATES).map_err(at(CERTIFICATES))?;
    tree.folder("tmp", 0o1777, 0);
    tree.text(
        "etc/passwd",
        "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n",
        0o644,
    );
    tree.text("etc/group", "root:x:0:\nnonroot:x:65532:\n", 0o644);
    tree.text("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n", 0o644);
    host::add_libraries(&mut tree, &[stripped], &[]).await?;

    let name = format!("docker.io/library/freehold:{tag}");
    let (image_name, archive) = (name.clone(), archive.to_owned());
    blocking(archive.clone(), move || {
        let layers = vec![Layer::write(&tree, folder.path())?];
        let start = Start {
            user: "65532:65532",
            environment: vec!["PATH=/".to_owned(), format!("SSL_CERT_FILE={CERTIFICATES}")],
            entrypoint: &["/freehold"],
            folder: "/",
            ..Start::default()
        };
        write_archive(&[Image { names: vec![image_name], layers, start }], File::create(&archive)?)
    })
    .await?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_operators_image_holds_the_binary_and_what_it_loads() {
        if let Some(missing) = NEEDED.iter().find_map(|needed| needed.mark().err()) {
            eprintln!("NOT RUN: the operator's image: {missing}");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("image.tar");
        let name = write_operator_image(Path::new("/usr/bin/true"), "test", &archive).await.unwrap();
        assert_eq!(name, "docker.io/library/freehold:test");
        let mut found = Vec::new();
        for entry in tar::Archive::new(File::open(&archive).unwrap()).entries().unwrap() {
            // The only blob that is a tar is the layer.
            let mut layer = tar::Archive::new(entry.unwrap());
            found.extend(
                layer.entries().unwrap().flatten().map(|entry| entry.path().unwrap().display().to_string()),
            );
        }
        for path in ["freehold", "etc/ssl/certs/ca-certificates.crt", "tmp/"] {
            assert!(found.iter().any(|found| found == path), "no {path} in {found:?}");
        }
        assert!(found.iter().any(|found| found.ends_with("/libc.so.6")), "{found:?}");
    }
}
