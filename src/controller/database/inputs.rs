//! The hash of what a pod is made from, by which a change of the spec is recognised. Pure.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use crate::api::database::{ConfigValue, DatabaseSpec, Engine};

/// The hash of what in the spec decides the pod's template: engine, settings, resources, TLS and the
/// archive of the log. What a newer operator would render differently is not in it, so an upgrade of the
/// operator restarts nothing.
pub fn inputs_hash(spec: &DatabaseSpec) -> String {
    let Engine { kind, version, custom } = &spec.engine;
    // A tuple of structs and sorted maps: its text does not depend on how serde_json keeps objects. Text,
    // numbers and maps with text keys are always JSON.
    let inputs = (kind, version, custom, &spec.config, &spec.resources);
    // Without TLS and archive the hash is that of a version of Freehold which had neither.
    let inputs = match (&spec.tls, &spec.wal_archive) {
        (None, None) => serde_json::to_string(&inputs),
        (Some(tls), None) => serde_json::to_string(&(inputs, tls)),
        (tls, Some(archive)) => serde_json::to_string(&(inputs, tls, archive)),
    };
    hash(&inputs.unwrap_or_default())
}

/// The hash of settings.
pub fn config_hash(config: &BTreeMap<String, ConfigValue>) -> String {
    hash(&serde_json::to_string(config).unwrap_or_default())
}

/// The keys of settings whose values differ, in order.
pub fn changed(from: &BTreeMap<String, ConfigValue>, to: &BTreeMap<String, ConfigValue>) -> Vec<String> {
    let keys: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    keys.into_iter().filter(|key| from.get(*key) != to.get(*key)).cloned().collect()
}

/// So many hexadecimal digits distinguish what is made for one object.
const SHORT: usize = 8;

/// The first 8 digits of a text's SHA-256.
pub fn short_hash(text: &str) -> String {
    hash(text).chars().take(SHORT).collect()
}

/// The first 16 digits of a text's SHA-256.
fn hash(text: &str) -> String {
    let mut hash = data_encoding::HEXLOWER.encode(&Sha256::digest(text.as_bytes()));
    hash.truncate(16);
    hash
}
