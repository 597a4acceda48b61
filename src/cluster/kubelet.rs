//! What the kubelet of a machine says of the file systems of its pods.
//!
//! The kubelet is asked itself, at its own address: through the API server that needs the right
//! `nodes/proxy`, with which one can run commands in every pod. `nodes/stats` is for `/stats/` alone
//! (Kubernetes documentation, "Kubelet authentication/authorization").

pub mod account;
mod failure;

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Limited};
use k8s_openapi::api::core::v1::Node as CoreNode;
use kube::client::Body;
use kube::{Client, Config, ResourceExt as _};
use serde::Deserialize;

use self::account::{Account, Tokens};
pub use self::failure::Failure;
use crate::api::database::Unmeasured;
use crate::clock::Clock;
use crate::error_chain::Chain;

/// How long a kubelet may take: others are asked meanwhile.
const LIMIT: Duration = Duration::from_secs(5);

/// The most bytes of an answer that are read: a machine must not take the operator's memory. Some 4 KiB are
/// of each pod, and a database's machine has few.
const LARGEST: usize = 1 << 20;

/// Where the kubelet says what its pods use.
const PATH: &str = "/stats/summary";

/// The size of a mounted file system, and what of it is free, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskUsage {
    /// All of it. Never 0.
    pub capacity: u64,
    /// What may be written. Never more than all of it.
    pub available: u64,
}

impl DiskUsage {
    /// What may not be written any more, in bytes: also what the file system keeps for itself.
    pub fn used(self) -> u64 {
        self.capacity - self.available
    }

    /// The percentage that is used, rounded down.
    pub fn used_percent(self) -> u64 {
        u64::try_from(u128::from(self.used()) * 100 / u128::from(self.capacity)).unwrap_or(100)
    }
}

/// The kubelets of the databases' machines.
#[async_trait]
pub trait Kubelets: Send + Sync + 'static {
    /// The file system of this claim on this machine. Harmless to repeat.
    async fn disk_usage(
        &self,
        core_node: &CoreNode,
        namespace: &str,
        claim: &str,
    ) -> Result<DiskUsage, Failure>;
}

/// Kubelets over HTTPS, asked as an account of its own. Their certificates must be of the cluster's
/// certificate authority: no other endpoint is given the token.
pub struct Https {
    tokens: Option<Tokens>,
    authority: Option<PathBuf>,
    clock: Arc<dyn Clock>,
}

impl Https {
    /// Kubelets that are asked as this account, if there is one, and whose certificates are of the authority
    /// in this file; of that of the API server without one.
    pub fn new(
        client: Client,
        account: Option<&Account>,
        authority: Option<PathBuf>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { tokens: account.map(|account| Tokens::of(client, account)), authority, clock }
    }

    /// How kubelets are reached: with nothing of the operator's own credentials.
    async fn config(&self, tokens: &Tokens) -> Result<Config, Failure> {
        let inferred = Config::infer().await;
        let mut config = inferred.map_err(|error| Failure::unreachable(Chain(&error).to_string()))?;
        config.auth_info = tokens.auth_info(self.clock.now()).await?;
        if let Some(authority) = &self.authority {
            config.root_cert = None;
            config.root_cert_file = Some(authority.clone());
        }
        Ok(config)
    }
}

#[async_trait]
impl Kubelets for Https {
    async fn disk_usage(
        &self,
        core_node: &CoreNode,
        namespace: &str,
        claim: &str,
    ) -> Result<DiskUsage, Failure> {
        let asking = async {
            let tokens = self.tokens.as_ref().ok_or_else(|| Failure {
                unmeasured: Unmeasured::NoAccount,
                why: "--kubelet-account is not set".to_owned(),
            })?;
            ask(self.config(tokens).await?, core_node).await.map_err(Failure::unreachable)
        };
        let late = |_| Failure::unreachable(format!("no answer within {} s", LIMIT.as_secs()));
        let (status, body) = tokio::time::timeout(LIMIT, asking).await.map_err(late)??;
        let refused = || format!("kubelet of {} answered {status}", core_node.name_any());
        match status {
            StatusCode::OK => usage(&body, namespace, claim).map_err(|unmeasured| Failure {
                unmeasured,
                why: format!("kubelet of {} names no file system of claim {claim}", core_node.name_any()),
            }),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(Failure { unmeasured: Unmeasured::Forbidden, why: refused() })
            }
            _ => Err(Failure::unreachable(refused())),
        }
    }
}

/// The kubelet's answer, or why there is none.
async fn ask(mut config: Config, core_node: &CoreNode) -> Result<(StatusCode, Vec<u8>), String> {
    config.cluster_url = url(core_node).ok_or("its Kubernetes node has no internal address")?;
    if config.root_cert.is_none() && config.root_cert_file.is_none() {
        // The system's authorities would be trusted then, and they know nothing of this cluster's machines.
        return Err("the operator has no certificate of the cluster's certificate authority".to_owned());
    }
    // Whatever holds for the API server's certificate and way: those of a machine are its own.
    config.accept_invalid_certs = false;
    config.tls_server_name = None;
    config.proxy_url = None;
    let client = Client::try_from(config).map_err(|error| Chain(&error).to_string())?;
    let request = Request::get(PATH).body(Body::empty()).map_err(|error| error.to_string())?;
    let answer = client.send(request).await.map_err(|error| Chain(&error).to_string())?;
    let status = answer.status();
    let body =
        Limited::new(answer.into_body(), LARGEST).collect().await.map_err(|error| error.to_string())?;
    Ok((status, body.to_bytes().to_vec()))
}

/// Where the kubelet listens.
fn url(core_node: &CoreNode) -> Option<Uri> {
    let status = core_node.status.as_ref()?;
    let addresses = status.addresses.iter().flatten();
    let address = addresses.into_iter().find(|address| address.type_ == "InternalIP")?;
    let port = status.daemon_endpoints.as_ref()?.kubelet_endpoint.as_ref()?.port;
    let mut url = "https://".to_owned();
    match address.address.parse().ok()? {
        IpAddr::V4(address) => write!(url, "{address}:{port}").ok()?,
        IpAddr::V6(address) => write!(url, "[{address}]:{port}").ok()?,
    }
    url.parse().ok()
}

/// What of the kubelet's answer is read (Kubernetes, `k8s.io/kubelet/pkg/apis/stats/v1alpha1`).
#[derive(Deserialize)]
struct Summary {
    #[serde(default)]
    pods: Vec<PodStats>,
}

#[derive(Deserialize)]
struct PodStats {
    #[serde(default)]
    volume: Vec<VolumeStats>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VolumeStats {
    pvc_ref: Option<PvcReference>,
    capacity_bytes: Option<u64>,
    available_bytes: Option<u64>,
}

#[derive(Deserialize)]
struct PvcReference {
    name: String,
    namespace: String,
}

/// What the answer says of this claim.
fn usage(body: &[u8], namespace: &str, claim: &str) -> Result<DiskUsage, Unmeasured> {
    let summary: Summary = serde_json::from_slice(body).map_err(|_| Unmeasured::Unreadable)?;
    let volumes = summary.pods.into_iter().flat_map(|pod| pod.volume);
    let is_it = |volume: &VolumeStats| {
        volume.pvc_ref.as_ref().is_some_and(|pvc| pvc.name == claim && pvc.namespace == namespace)
    };
    let found = volumes.into_iter().find(is_it).ok_or(Unmeasured::NotMounted)?;
    match (found.capacity_bytes, found.available_bytes) {
        (Some(capacity), Some(available)) if capacity > 0 && available <= capacity => {
            Ok(DiskUsage { capacity, available })
        }
        // The kubelet has not looked yet, or says what cannot be.
        _ => Err(Unmeasured::Unreadable),
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "a json! reads best where it is used")]
mod tests;
