//! Builds the Service that clients connect to.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::owned;
use crate::api::keys::DATABASE_UID_LABEL;
use crate::api::names::Names;
use crate::engine::Profile;

/// The Service: inside the cluster, the engine's ports under their own numbers; and `metrics`, which only
/// what scrapes metrics reaches. One that is closed selects no pod.
pub fn service(names: &Names, profile: &Profile, is_closed: bool) -> Service {
    let selector = selector(names, is_closed);
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

fn selector(names: &Names, is_closed: bool) -> BTreeMap<String, String> {
    let mut selector = names.selector.clone();
    if is_closed {
        // Another value, and no further label: a merge patch would not remove that one again.
        selector.insert(DATABASE_UID_LABEL.to_owned(), format!("{}-closed", names.uid));
    }
    selector
}

/// The Service that is there, opened or closed, and nothing else of it changed; `None` where it is so.
pub fn with_selector(names: &Names, live: &Service, is_closed: bool) -> Option<Service> {
    let mut spec = live.spec.clone()?;
    let wanted = selector(names, is_closed);
    let differs = spec.selector.as_ref() != Some(&wanted);
    spec.selector = Some(wanted);
    differs.then(|| Service { metadata: owned(names, &names.service), spec: Some(spec), status: None })
}

/// Whether the Service was closed.
pub fn is_closed_service(names: &Names, live: &Service) -> bool {
    let has = live.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    has == Some(&selector(names, true))
}

/// The Service's name in the cluster's DNS.
pub fn host(names: &Names) -> String {
    format!("{}.{}.svc", names.service, names.namespace)
}
