//! The settings of the databases' NetworkPolicies: whom they admit beside their clients.

use std::str::FromStr;

use clap::Args;
use k8s_openapi::api::networking::v1::NetworkPolicyPeer;
use serde::Serialize;

use crate::api::keys::CLUSTER_DNS;

/// Peers that are every public IPv4 address, as those of S3 are: neither pods and machines nor the address
/// where EC2 gives credentials to a machine (RFC 1918, 3927 and 6598).
const PUBLIC: &str = r#"[{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"]}}]"#;

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

    /// Where an engine may connect to that archives its write-ahead log (`spec.walArchive`), as `to` of a
    /// NetworkPolicy in JSON: at the port of that archive only. Default: every public IPv4 address, where S3
    /// is.
    #[arg(long, env = "FREEHOLD_WAL_ARCHIVE_TO", default_value = PUBLIC)]
    pub wal_archive_to: Peers,

    /// Where the cluster's DNS is, the only thing that an engine without an archive may connect to, as `to`
    /// of a NetworkPolicy in JSON. Default: CoreDNS in kube-system (k8s-app=kube-dns) and NodeLocal DNSCache
    /// (169.254.20.10).
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
        let wal_archive_to = PUBLIC.parse().unwrap_or(Peers(Vec::new()));
        Self { metrics_from: Peers(Vec::new()), operator_from: Peers(Vec::new()), wal_archive_to, dns }
    }
}
