//! A machine for the platform's own pods, with images that the machines of databases do not have.

use std::path::{Path, PathBuf};

use crate::machines::images::import_arguments;
use crate::machines::user_data::BOOTSTRAP;

/// The label of its Node; the value is whose platform it is.
pub const LABEL: &str = "freehold.dev/platform";

/// containerd's socket in a machine.
const SOCKET: &str = "/run/containerd/containerd.sock";

/// User data of a machine that joins, with this value of [`LABEL`], when it has imported these archives of
/// images.
pub fn user_data(value: &str, archives: &[PathBuf]) -> String {
    let import = |archive: &PathBuf| {
        let words: Vec<String> =
            import_arguments(Path::new(SOCKET), archive).iter().map(|word| format!("'{word}'")).collect();
        // containerd starts at the same time.
        format!("until /opt/freehold-box/bin/ctr {}; do sleep 0.2; done\n", words.join(" "))
    };
    let imports: String = archives.iter().map(import).collect();
    format!("#!/bin/sh\n{imports}{BOOTSTRAP} --node-labels {LABEL}={value}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_images_are_there_before_the_machine_joins() {
        let script = user_data("demo", &[PathBuf::from("/a b/operator.tar")]);
        let lines: Vec<&str> = script.lines().collect();
        assert!(lines[1].ends_with("'/a b/operator.tar'; do sleep 0.2; done"), "{script}");
        assert_eq!(lines[2], "/opt/freehold-box/bootstrap --node-labels freehold.dev/platform=demo");
    }
}
