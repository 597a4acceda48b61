//! Where the database is now, and with which credentials: what a client in the cluster would find.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams};

/// How long the API server may take to answer.
const LIMIT: Duration = Duration::from_secs(5);

/// Names the Service that an EndpointSlice belongs to.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// How to find the database, anew at each connection.
#[derive(Clone)]
pub enum Source {
    /// Always the same.
    Given(Access),

    /// The ready address behind a Service that Freehold did not make, and credentials that do not change.
    Service {
        /// The cluster.
        client: kube::Client,
        /// The Service's namespace.
        namespace: String,
        /// The Service's name.
        name: String,
        /// The container's port.
        port: u16,
        /// The user's name.
        username: String,
        /// The password.
        password: String,
        /// The database in the engine.
        database: String,
    },

    /// The Secret of the Database's credentials and the ready address behind its Service: a pod that is
    /// replaced has another one.
    Database {
        /// The cluster.
        client: kube::Client,
        /// The Database's namespace.
        namespace: String,
        /// The Database's name.
        name: String,
    },
}

/// What a client needs in order to connect.
#[derive(Clone)]
pub struct Access {
    /// The address and the port.
    pub address: SocketAddr,
    /// The user's name.
    pub username: String,
    /// The password.
    pub password: String,
    /// The database in the engine.
    pub database: String,
}

/// Why nothing can be connected to yet.
#[derive(Debug, thiserror::Error)]
pub enum NoAccess {
    /// The API server failed.
    #[error("failed to read {what} from the API server")]
    Read {
        /// What was read.
        what: String,
        /// What it said.
        #[source]
        source: kube::Error,
    },

    /// It did not answer.
    #[error("the API server did not answer within {} s: see whether the box runs, with `cargo box status`",
    LIMIT.as_secs())]
    Silent,

    /// The Secret lacks something.
    #[error("the Secret {secret} has no usable {key}: see whether it was changed by hand")]
    Secret {
        /// Its name.
        secret: String,
        /// The entry.
        key: &'static str,
    },

    /// No pod behind the Service is ready.
    #[error("no ready address is behind the Service {0}: see the pod's conditions")]
    NoAddress(String),
}

impl Source {
    /// Looks it up.
    pub async fn access(&self) -> Result<Access, NoAccess> {
        match self {
            Self::Given(access) => Ok(access.clone()),
            Self::Service { client, namespace, name, port, username, password, database } => {
                let address = within(service_address(client, namespace, name)).await?;
                Ok(Access {
                    address: SocketAddr::new(address, *port),
                    username: username.clone(),
                    password: password.clone(),
                    database: database.clone(),
                })
            }
            Self::Database { client, namespace, name } => within(look_up(client, namespace, name)).await,
        }
    }
}

async fn within<T>(answer: impl Future<Output = Result<T, NoAccess>>) -> Result<T, NoAccess> {
    tokio::time::timeout(LIMIT, answer).await.map_err(|_| NoAccess::Silent)?
}

async fn look_up(client: &kube::Client, namespace: &str, name: &str) -> Result<Access, NoAccess> {
    let secret_name = format!("{name}-admin");
    let secret = Api::<Secret>::namespaced(client.clone(), namespace).get(&secret_name).await;
    let secret =
        secret.map_err(|source| NoAccess::Read { what: format!("the Secret {secret_name}"), source })?;
    let entry = |key: &'static str| {
        let value = secret
            .data
            .as_ref()
            .and_then(|data| data.get(key))
            .and_then(|value| String::from_utf8(value.0.clone()).ok());
        value.ok_or_else(|| NoAccess::Secret { secret: secret_name.clone(), key })
    };
    // The Service's port is the container's: Freehold never maps one to another.
    let port =
        entry("port")?.parse().map_err(|_| NoAccess::Secret { secret: secret_name.clone(), key: "port" })?;
    let address = service_address(client, namespace, name).await?;
    Ok(Access {
        address: SocketAddr::new(address, port),
        username: entry("username")?,
        password: entry("password")?,
        database: entry("database")?,
    })
}

/// The ready address behind a Service.
async fn service_address(client: &kube::Client, namespace: &str, name: &str) -> Result<IpAddr, NoAccess> {
    let of_service = ListParams::default().labels(&format!("{SERVICE_LABEL}={name}"));
    let slices = Api::<EndpointSlice>::namespaced(client.clone(), namespace).list(&of_service).await;
    let slices =
        slices.map_err(|source| NoAccess::Read { what: format!("the EndpointSlices of {name}"), source })?;
    ready_address(&slices.items).ok_or_else(|| NoAccess::NoAddress(name.to_owned()))
}

/// The address that the cluster's DNS or kube-proxy would send a client to.
fn ready_address(slices: &[EndpointSlice]) -> Option<IpAddr> {
    let endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
    let ready = endpoints.filter(|endpoint| {
        endpoint.conditions.as_ref().is_some_and(|conditions| conditions.ready == Some(true))
    });
    ready.flat_map(|endpoint| &endpoint.addresses).find_map(|address| address.parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slice(endpoints: &serde_json::Value) -> EndpointSlice {
        serde_json::from_value(json!({"addressType": "IPv4", "metadata": {"name": "orders-x"},
        "endpoints": endpoints}))
        .unwrap()
    }

    #[test]
    fn only_a_ready_address_is_taken() {
        let table = [
            ("no endpoint", json!([]), None),
            (
                "a pod that is not ready",
                json!([{"addresses": ["10.1.0.7"], "conditions": {"ready": false}}]),
                None,
            ),
            ("a pod of which nothing is known", json!([{"addresses": ["10.1.0.7"], "conditions": {}}]), None),
            (
                "a ready pod",
                json!([{"addresses": ["10.1.0.7"], "conditions": {"ready": true}}]),
                Some("10.1.0.7"),
            ),
            (
                "one that goes and one that came",
                json!([
                    {"addresses": ["10.1.0.7"], "conditions": {"ready": false, "terminating": true}},
                    {"addresses": ["10.1.1.7"], "conditions": {"ready": true}},
                ]),
                Some("10.1.1.7"),
            ),
        ];
        for (name, endpoints, wanted) in table {
            let wanted = wanted.map(|address| address.parse::<IpAddr>().unwrap());
            assert_eq!(ready_address(&[slice(&endpoints)]), wanted, "{name}");
        }
    }
}
