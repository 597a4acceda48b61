//! The image of the container that holds a pod's namespaces.

use std::path::Path;

use tokio::process::Command;

use super::error::{Error, at};
use super::host::{self, Needed};
use super::oci::{About, Image, Layer, Start};
use super::tree::Tree;

/// The name of the image: containerd's `sandbox` image must be this one.
pub const NAME: &str = "registry.k8s.io/pause:3.10";

/// Its program.
pub const SOURCE: &str = include_str!("../../../tools/pause/pause.c");

/// What it is made with.
pub const NEEDED: &[Needed] = &[
    Needed { path: "/usr/bin/cc", package: "gcc" },
    Needed { path: "/usr/include/stdlib.h", package: "libc6-dev" },
];

/// Compiles it in `scratch`.
pub async fn tree(scratch: &Path) -> Result<Tree, Error> {
    let (source, program) = (scratch.join("pause.c"), scratch.join("pause"));
    std::fs::write(&source, SOURCE).map_err(at(&source))?;
    host::run(
        Command::new("cc").args(["-Os", "-static", "-s", "-Wall", "-Werror", "-o"]).args([&program, &source]),
    )
    .await?;
    let mut tree = Tree::default();
    tree.file("pause", &program).map_err(at(&program))?;
    Ok(tree)
}

/// The image of that layer.
pub fn image(layer: Layer) -> Image {
    let start = Start { user: "65535:65535", entrypoint: &["/pause"], folder: "/", ..Start::default() };
    Image { names: vec![NAME.to_owned()], layers: vec![layer], start, about: About::default() }
}
