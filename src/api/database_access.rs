//! Who may connect to a `Database`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// Who may connect to a database, and with which password. What comes from elsewhere is dropped by the
/// cluster's network, where that enforces NetworkPolicies.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Access {
    /// The pods that may connect. Default: every pod of the Database's own namespace. A list replaces that
    /// default: name the own namespace, too, if it is to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 20))]
    pub from: Option<Vec<AccessPeer>>,

    /// The addresses outside the cluster that may connect, beside the pods: `10.20.0.0/16`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 43)))]
    #[x_kube(validation = Rule::new("self.all(c, c.matches('^[0-9]{1,3}([.][0-9]{1,3}){3}/[0-9]{1,2}$') || \
        c.matches('^[0-9a-fA-F:]+:[0-9a-fA-F:]*/[0-9]{1,3}$'))")
        .message("spec.access.cidrs: each must be an address with the length of its prefix, such as \
            10.20.0.0/16"))]
    pub cidrs: Vec<String>,

    /// Which password of the administrator is to be in force, counted from 1: a higher number than the one in
    /// force (status.passwordGeneration) has Freehold generate another password, and give it to the engine.
    /// PostgreSQL takes it while it serves; QuestDB is restarted. The Secret has the password that is in
    /// force. Without a number nothing is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    #[x_kube(validation = Rule::new("self >= oldSelf")
        .message("spec.access.passwordGeneration is only raised: a password that was in force before is not \
            known any more"))]
    pub password_generation: Option<i64>,
}

/// Pods that may connect.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.namespaceSelector) || has(self.podSelector)")
    .message("spec.access.from: each entry needs a namespaceSelector, a podSelector or both; podSelector: {} \
        is every pod of the Database's own namespace"))]
pub struct AccessPeer {
    /// Which namespaces, by their labels: `{}` is every namespace. Default: the Database's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,

    /// Which pods in them, by their labels. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<LabelSelector>,
}
