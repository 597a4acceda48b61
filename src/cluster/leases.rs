//! Reads the Leases that kubelets renew every ten seconds: one list from the API server's cache, however
//! large the fleet is.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::ListParams;
use kube::core::Request;
use kube::{Client, Resource};
use serde::Deserialize;

/// Where kubelets keep them (Kubernetes docs, "Node heartbeats").
const NAMESPACE: &str = "kube-node-lease";

/// What is read of a list of Leases: there is one for each machine of the cluster, every few seconds.
#[derive(Deserialize)]
struct Leases {
    items: Vec<Beat>,
}

#[derive(Deserialize)]
struct Beat {
    metadata: Named,
    spec: Option<Renewal>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Renewal {
    renew_time: Option<MicroTime>,
}

/// When each kubelet renewed last by its own clock, by the name of its Kubernetes node.
pub async fn renewals(client: &Client) -> Result<BTreeMap<String, Option<Timestamp>>, kube::Error> {
    // Any version will do: a list of resourceVersion 0 costs etcd nothing.
    let request = Request::new(Lease::url_path(&(), Some(NAMESPACE)));
    let mut request = request.list(&ListParams::default().match_any()).map_err(kube::Error::BuildRequest)?;
    // By this kube's clients name the request's span, as `Api` does.
    request.extensions_mut().insert("list");
    let leases: Leases = client.request(request).await?;
    let renewed = |it: Beat| (it.metadata.name, it.spec.and_then(|spec| spec.renew_time).map(|time| time.0));
    Ok(leases.items.into_iter().map(renewed).collect())
}
