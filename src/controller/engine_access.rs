//! Where the engine of a Database runs, and how the operator reaches it.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt;
use kube::api::Api;

use super::database::{build, pod};
use super::pass::context::Context;
use crate::api::Database;
use crate::api::backup::CheckpointEngine;
use crate::api::keys::DATABASE_UID_LABEL;
use crate::api::names::Names;
use crate::engine::client::{Access, Tls};
use crate::engine::{self, Profile};

/// The engine's process, as its pod shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnginePod {
    /// There is no pod.
    Absent,
    /// The engine's container does not run in the pod.
    NotRunning,
    /// It runs.
    Running {
        /// The UID of the pod.
        uid: String,
        /// How it is dialled, if the pod has an address.
        address: Option<Address>,
        /// Whether it accepts connections.
        is_ready: bool,
        /// The image of the engine's container.
        image: Option<String>,
    },
}

/// How the engine of a pod is dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address of the pod.
    pub ip: IpAddr,
    /// Whether the connection is encrypted.
    pub tls: Tls,
}

/// How the engine of this Database is reached.
pub fn engine(database: &Database) -> CheckpointEngine {
    let names = Names::of(database);
    let profile = engine::profile(&database.spec.engine, &database.spec.config).ok();
    let port = profile.as_ref().and_then(Profile::primary_port_number);
    let name = profile.and_then(|profile| profile.binding.database);
    CheckpointEngine {
        pod_name: names.pod(),
        container_name: names.container,
        secret_name: names.credentials_secret,
        database_uid: names.uid,
        port: port.and_then(|port| u16::try_from(port).ok()),
        database_name: name.unwrap_or_default().to_owned(),
    }
}

/// Whether the pod of this name is that of the Database's engine, and not another one. A StatefulSet that is
/// adopted keeps labels of its own.
pub fn is_of(pod: &Pod, database: &Database) -> bool {
    let of = pod.labels().get(DATABASE_UID_LABEL);
    database.spec.adopt.is_some() || of == database.metadata.uid.as_ref()
}

/// What the pod says of the engine's process.
pub fn engine_pod(pod: Option<&Pod>, container: Option<&str>) -> EnginePod {
    let Some(pod) = pod else { return EnginePod::Absent };
    if !pod::is_running(pod, container) {
        return EnginePod::NotRunning;
    }
    EnginePod::Running {
        uid: pod.uid().unwrap_or_default(),
        address: address(pod),
        is_ready: pod::engine_wait(Some(pod), container).is_none(),
        image: pod::engine_container(pod, container).and_then(|container| container.image.clone()),
    }
}

fn address(pod: &Pod) -> Option<Address> {
    let ip = pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()?;
    Some(Address { ip, tls: build::tls_of_connections(pod.spec.as_ref()?) })
}

/// Where the engine listens, and its administrator; or why that is not known.
pub async fn access(
    engine: &CheckpointEngine,
    namespace: &str,
    address: Option<Address>,
    ctx: &Context,
) -> Result<Result<Access, String>, kube::Error> {
    let CheckpointEngine { pod_name, secret_name: name, port, database_name, .. } = engine;
    let Some(Address { ip: address, tls }) = address else {
        return Ok(Err(format!("pod {pod_name} has no address yet")));
    };
    let secrets = Api::<Secret>::namespaced(ctx.client.clone(), namespace);
    let secret = match secrets.get_opt(name).await {
        Ok(Some(secret)) => secret,
        Ok(None) => return Ok(Err(format!("Secret {name} does not exist"))),
        Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403) => {
            return Ok(Err(format!("Secret {name} cannot be read: {}", status.message)));
        }
        Err(error) => return Err(error),
    };
    let value = |key: &str| {
        let value = secret.data.as_ref()?.get(key)?;
        String::from_utf8(value.0.clone()).ok().filter(|text| !text.is_empty())
    };
    let Some(port) = *port else {
        return Ok(Err("the spec of the Database says no port of the PostgreSQL wire protocol".to_owned()));
    };
    let access = value("username").zip(value("password"));
    Ok(access.map_or_else(
        || Err(format!("Secret {name} has no username or password")),
        |(username, password)| {
            let database = database_name.clone();
            Ok(Access { address, port, username, password, database, tls, slowness: 1 })
        },
    ))
}
