//! Builds what the pod has of the certificate of `spec.tls`.

use k8s_openapi::api::core::v1::{PodSpec, Volume};

use super::pod_parts::secret;
use crate::api::Database;
use crate::api::database::{EngineType, Tls};
use crate::api::keys::{TLS_CERT, TLS_KEY};
use crate::engine::client;
use crate::engine::postgresql::TLS;

/// The name of the volume with the certificate, in the pod.
pub const VOLUME: &str = "tls";

/// The variable that has PostgreSQL offer TLS, or require it; a custom engine has none.
pub fn variable(database: &Database) -> Option<(&'static str, &'static str)> {
    let tls = database.spec.tls.as_ref().filter(|_| database.spec.engine.kind == EngineType::Postgresql)?;
    Some((TLS, if tls.required { "required" } else { "offered" }))
}

/// The certificate and its key, and nothing else of the Secret.
pub fn volume(tls: &Tls) -> Volume {
    secret(VOLUME, &tls.secret_name, &[TLS_CERT, TLS_KEY], None)
}

/// How the operator connects to the engine of a pod with this spec: over TLS, if it was started with it.
pub fn of_connections(pod: &PodSpec) -> client::Tls {
    let mut variables = pod.containers.iter().flat_map(|container| container.env.iter().flatten());
    if secret_of(pod).is_some() && variables.any(|variable| variable.name == TLS) {
        client::Tls::Required
    } else {
        client::Tls::IfOffered
    }
}

/// The name of the Secret whose certificate the pods of this template have.
pub fn secret_of(template: &PodSpec) -> Option<&str> {
    let volume = template.volumes.iter().flatten().find(|volume| volume.name == VOLUME)?;
    volume.secret.as_ref()?.secret_name.as_deref()
}
