//! The fingerprints of the objects that decide what runs: by them a live object is compared with what was
//! applied.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Of everything that a ConfigMap holds, and of whether it can be changed.
pub fn of_config_map(object: &ConfigMap) -> String {
    let texts: BTreeMap<&String, &String> = object.data.iter().flatten().collect();
    let bytes: BTreeMap<&String, &ByteString> = object.binary_data.iter().flatten().collect();
    of(&(texts, bytes, object.immutable == Some(true)))
}

/// Of a StatefulSet's whole spec but the number of its pods, which a pause changes: an init container or a
/// variable that another client adds runs as much as what is rendered.
pub fn of_stateful_set(object: &StatefulSet) -> String {
    let spec = object.spec.clone().map(|spec| StatefulSetSpec { replicas: None, ..spec });
    of(&spec)
}

fn of(content: &impl Serialize) -> String {
    // Structs and sorted maps with text keys are always JSON, and in one order.
    let text = serde_json::to_string(content).unwrap_or_default();
    HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}
