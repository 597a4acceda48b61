//! The settings of the databases' NetworkPolicies: whom they admit beside their clients.

use std::str::FromStr;

use clap::Args;
use k8s_openapi::api::networking::v1::NetworkPolicyPeer;
use serde::Serialize;

use crate::api::keys::CLUSTER_DNS;

/// What the NetworkPolicy of every database admits, beside the clients that its spec names.
#[derive(Args, Clone, Debug, PartialEq, Serialize)]
pub struct Network {
    /// Who may scrape the metrics of the databases' engines, as `from` of a NetworkPolicy in JSON. Default:
    /// no one.
    #[arg(long, env = "FREEHOLD_METRICS_FROM", default_value = "[]")]
    pub metrics_from: Peers,

    /// Where the operator runs, as `from` of a NetworkPolicy in JSON: it connects to the engines whose backup
    /// needs a checkpoint (QuestDB), and to those that a Backup is restored in to verify it. In the chart the
    /// operator's own pods. Default: no one.
    #[arg(long, env = "FREEHOLD_OPERATOR_FROM", default_value = "[]")]
    pub operator_from: Peers,

    /// Where the cluster's DNS is, the only thing that an engine may connect to, as `to` of a NetworkPolicy
    /// in JSON. Default: CoreDNS in kube-system (k8s-app=kube-dns) and NodeLocal DNSCache (169.254.20.10).
    #[arg(long, env = "FREEHOLD_DNS", default_value = CLUSTER_DNS, hide_default_value = true)]
    pub dns: Peers,
}

/// Peers of a NetworkPolicy, in JSON on the command line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Peers(pub Vec<NetworkPolicyPeer>);

impl FromStr for Peers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let peers: Vec<NetworkPolicyPeer> = serde_json::from_str(text)
            .map_err(|error| format!("not a list of a NetworkPolicy's peers in JSON: {error}"))?;
        match peers.iter().position(|peer| *peer == NetworkPolicyPeer::default()) {
            Some(place) => Err(format!(
                "entry {} names no one: it needs a namespaceSelector, a podSelector or an ipBlock",
                place + 1
            )),
            None => Ok(Self(peers)),
        }
    }
}

impl Default for Network {
    fn default() -> Self {
        let dns = CLUSTER_DNS.parse().unwrap_or(Peers(Vec::new()));
        Self { metrics_from: Peers(Vec::new()), operator_from: Peers(Vec::new()), dns }
    }
}
