//! What the container of a `Database`'s engine requests, and may use.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kubernetes resource quantities, by resource name (`cpu`, `memory`).
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// What is reserved for the container, for example memory: 8Gi. Default: 100m of CPU, and three quarters
    /// of the memory that the machine has for pods; 256Mi where that is less than 4 GiB, or where the rest is
    /// too little for the DaemonSets of the machine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 8))]
    #[x_kube(validation = Rule::new("self.all(k, isQuantity(self[k]))")
        .message("spec.resources.requests: each value must be a quantity in quotes, for example \"2\" or \
            \"4Gi\""))]
    pub requests: BTreeMap<String, ResourceQuantity>,

    /// What the container may use at most. Default: no limit; the machine is the database's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 8))]
    #[x_kube(validation = Rule::new("self.all(k, isQuantity(self[k]))")
        .message("spec.resources.limits: each value must be a quantity in quotes, for example \"2\" or \
            \"4Gi\""))]
    pub limits: BTreeMap<String, ResourceQuantity>,
}

/// A Kubernetes quantity as text: `500m`, `2`, `4Gi`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ResourceQuantity(#[schemars(length(min = 1, max = 32))] pub String);
