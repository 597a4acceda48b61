//! The settings that Bottlerocket reads, in TOML.
//!
//! Source: Bottlerocket's documentation, "settings.kubernetes.*", and its quickstart for EKS, "user data": a
//! machine joins by the cluster's name, endpoint and certificate.

use serde_json::Value;

use super::kubelet::{Kubelet, Taint};

/// What a machine does not join without.
const REQUIRED: [&str; 3] = ["cluster-name", "api-server", "cluster-certificate"];

/// What they say of the kubelet.
pub(super) fn read(text: &str) -> Result<Kubelet, String> {
    let table: Value = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
        let place = line.map(|line| format!(" in line {line}")).unwrap_or_default();
        format!("{}{place}", error.message())
    })?;
    let kubernetes = &table["settings"]["kubernetes"];
    let has = |field: &str| kubernetes[field].as_str().is_some_and(|value| !value.is_empty());
    let entries = |field: &str| kubernetes[field].as_object().into_iter().flatten();
    let taints = entries("node-taints").flat_map(|(key, value)| {
        let values = value.as_array().map_or_else(|| vec![value], |values| values.iter().collect());
        values.into_iter().filter_map(Value::as_str).map(|value| Taint::new(key, value))
    });
    Ok(Kubelet {
        absent: REQUIRED
            .iter()
            .filter(|field| !has(field))
            .map(|field| format!("settings.kubernetes.{field}"))
            .collect(),
        labels: entries("node-labels")
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect(),
        taints: taints.collect(),
        max_pods: kubernetes["max-pods"].as_i64(),
    })
}
