//! Reads the Leases that kubelets renew every ten seconds: one list from the API server's cache, however
//! large the fleet is.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

/// Where kubelets keep them (Kubernetes docs, "Node heartbeats").
const NAMESPACE: &str = "kube-node-lease";

/// When each kubelet renewed last by its own clock, by the name of its Kubernetes node.
pub async fn renewals(client: &Client) -> Result<BTreeMap<String, Option<Timestamp>>, kube::Error> {
    // Any version will do: a list of resourceVersion 0 costs etcd nothing.
    let leases =
        Api::<Lease>::namespaced(client.clone(), NAMESPACE).list(&ListParams::default().match_any()).await?;
    let renewed =
        |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0);
    Ok(leases.items.iter().map(|lease| (lease.name_any(), renewed(lease))).collect())
}
