//! The shell of a person, with kubectl and freehold on its path.

use std::process::Command;

use freehold_box::cluster::control_plane::ControlPlane;

use super::process::binary;

/// What this script prints, with this environment; `Err`: what it says where it fails.
pub async fn run(
    control_plane: &ControlPlane,
    environment: [(&'static str, String); 6],
    script: &str,
) -> Result<String, String> {
    let programs = [control_plane.kubectl(), binary(control_plane.folder())];
    let folders = programs.iter().map(|program| program.parent().unwrap().display().to_string());
    let path = folders.chain([std::env::var("PATH").unwrap()]).collect::<Vec<_>>().join(":");
    let mut command = Command::new("/bin/sh");
    command.args(["-euc", script]).envs(environment).env("PATH", path);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
