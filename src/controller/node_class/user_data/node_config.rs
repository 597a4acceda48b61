//! The NodeConfigs that nodeadm reads on EKS' images of Amazon Linux 2023.
//!
//! Source: awslabs/amazon-eks-ami, `nodeadm`: the configurations of all parts are merged, and a cluster
//! without one of the fields below is refused (`ValidateNodeConfig`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use super::kubelet::{Kubelet, Taint};

/// What nodeadm refuses to join without.
const REQUIRED: [&str; 4] = ["name", "apiServerEndpoint", "certificateAuthority", "cidr"];

/// What they say of the kubelet together; nothing if there is none that can be read.
pub(super) fn read(texts: &[String]) -> Result<Option<Kubelet>, String> {
    let mut configs = Vec::new();
    for text in texts {
        let Some(config) = document(text)? else { return Ok(None) };
        configs.push(config);
    }
    if configs.is_empty() {
        return Ok(None);
    }
    let has = |field: &str| {
        let value = |config: &Value| config["spec"]["cluster"][field].as_str().map(str::to_owned);
        configs.iter().filter_map(value).any(|value| !value.is_empty())
    };
    let mut kubelet = Kubelet {
        absent: REQUIRED
            .iter()
            .filter(|field| !has(field))
            .map(|field| format!("spec.cluster.{field}"))
            .collect(),
        ..Kubelet::default()
    };
    for config in &configs {
        add(&config["spec"]["kubelet"], &mut kubelet);
    }
    Ok(Some(kubelet))
}

/// The first document of the text; nothing if it is compressed.
fn document(text: &str) -> Result<Option<Value>, String> {
    let value = yaml(text)?;
    // nodeadm takes base64, too.
    let value = match value.as_str().map(|text| text.split_whitespace().collect::<String>()) {
        None => value,
        Some(encoded) => match STANDARD.decode(encoded).map(String::from_utf8) {
            Ok(Ok(decoded)) => yaml(&decoded)?,
            Ok(Err(_)) => return Ok(None),
            Err(_) => return Err("it is a text instead of an object".to_owned()),
        },
    };
    let (version, kind) = (value["apiVersion"].as_str(), value["kind"].as_str());
    let is_config = version.is_some_and(|it| it.starts_with("node.eks.aws/")) && kind == Some("NodeConfig");
    if !is_config {
        return Err("its apiVersion and kind must be node.eks.aws/v1alpha1 and NodeConfig".to_owned());
    }
    Ok(Some(value))
}

fn yaml(text: &str) -> Result<Value, String> {
    for document in serde_norway::Deserializer::from_str(text) {
        let value = Value::deserialize(document).map_err(|error| error.to_string())?;
        if !value.is_null() {
            return Ok(value);
        }
    }
    Ok(Value::Null)
}

/// Adds what `spec.kubelet` of one says.
fn add(said: &Value, kubelet: &mut Kubelet) {
    let flags = said["flags"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for (name, value) in flags.filter_map(|flag| flag.trim_start_matches('-').split_once('=')) {
        let items = value.trim_matches(['"', '\'']).split(',').map(str::trim);
        match name {
            "node-labels" => kubelet.labels.extend(
                items.filter_map(|item| item.split_once('=')).map(|(key, value)| (key.into(), value.into())),
            ),
            "register-with-taints" => kubelet.taints.extend(items.filter_map(Taint::of_flag)),
            "max-pods" => kubelet.max_pods = value.parse().ok().or(kubelet.max_pods),
            _ => {}
        }
    }
    let config = &said["config"];
    let taint = |taint: &Value| {
        let text = |field: &str| taint[field].as_str().unwrap_or_default().to_owned();
        Taint { key: text("key"), value: text("value"), effect: text("effect") }
    };
    kubelet.taints.extend(config["registerWithTaints"].as_array().into_iter().flatten().map(taint));
    kubelet.max_pods = config["maxPods"].as_i64().or(kubelet.max_pods);
}
