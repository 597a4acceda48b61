//! Builds the Service that clients connect to.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::owned;
use crate::api::keys::DATABASE_UID_LABEL;
use crate::api::names::Names;
use crate::engine::Profile;

/// The Service: inside the cluster, the engine's ports under their own numbers; and `metrics`, which only
/// what scrapes metrics reaches. One that is closed selects no pod.
pub fn service(names: &Names, profile: &Profile, is_closed: bool) -> Service {
    let mut selector = names.selector.clone();
    if is_closed {
        // Another value, and no further label: a merge patch would not remove that one again.
        selector.insert(DATABASE_UID_LABEL.to_owned(), format!("{}-closed", names.uid));
    }
    let clients = profile.ports.iter().filter(|port| port.is_service).map(|port| (port.name, port));
    let metrics = profile.metrics_port().map(|port| ("metrics", port));
    let ports = clients
        .chain(metrics)
        .map(|(name, port)| ServicePort {
            name: Some(name.to_owned()),
            port: port.number,
            protocol: Some("TCP".to_owned()),
            target_port: Some(IntOrString::String(port.name.to_owned())),
            ..ServicePort::default()
        })
        .collect();
    Service {
        metadata: owned(names, &names.service),
        spec: Some(ServiceSpec {
            type_: Some("ClusterIP".to_owned()),
            selector: Some(selector),
            ports: Some(ports),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// The Service's name in the cluster's DNS.
pub fn host(names: &Names) -> String {
    format!("{}.{}.svc", names.service, names.namespace)
}
