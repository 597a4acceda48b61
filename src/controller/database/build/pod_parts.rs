//! The parts that a pod is built of in several places: variables, volumes of Secrets, and mounts.

use k8s_openapi::api::core::v1::{EnvVar, KeyToPath, SecretVolumeSource, Volume, VolumeMount};

/// The files of these keys of a Secret, and no others, in the pod's volume of this name.
pub(super) fn secret(name: &str, secret: &str, keys: &[&str], optional: Option<bool>) -> Volume {
    let file = |key: &&str| KeyToPath { key: (*key).to_owned(), path: (*key).to_owned(), mode: None };
    Volume {
        name: name.to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret.to_owned()),
            // Readable by the engine's group only: PostgreSQL takes no key that others can read.
            default_mode: Some(0o440),
            items: Some(keys.iter().map(file).collect()),
            optional,
        }),
        ..Volume::default()
    }
}

/// A variable of the engine's container with this text.
pub(super) fn text(name: &str, value: String) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value), value_from: None }
}

/// A volume of the pod, mounted here.
pub(super) fn mount(name: &str, path: &str, read_only: Option<bool>) -> VolumeMount {
    VolumeMount { name: name.to_owned(), mount_path: path.to_owned(), read_only, ..VolumeMount::default() }
}
