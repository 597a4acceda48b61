//! Which Service, which Secret and which instance types the Database names. Pure.

use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;

use super::found::Found;
use super::wanted::Wanted;
use crate::command::finding::Finding;

/// The Service that clients use.
pub fn service(found: &Found, wanted: &Wanted) -> Result<String, Finding> {
    let subject = found.subject();
    let names = |services: &[&Service]| {
        services.iter().map(|service| service.name_any()).collect::<Vec<_>>().join(", ")
    };
    let all: Vec<&Service> = found.services.iter().collect();
    if let Some(name) = &wanted.service {
        let is_there = all.iter().any(|service| service.name_any() == *name);
        return if is_there {
            Ok(name.clone())
        } else {
            let message = format!("Service {name} is not there or does not select the pod");
            Err(Finding::blocker(subject, message).way_out(match names(&all) {
                names if names.is_empty() => "create a Service that selects the pod".to_owned(),
                names => format!("name one of these with --service: {names}"),
            }))
        };
    }
    let is_headless = |service: &&Service| {
        let address = service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref());
        address == Some("None")
    };
    let (headless, others): (Vec<&Service>, Vec<&Service>) = all.iter().copied().partition(is_headless);
    match (others.as_slice(), headless.as_slice()) {
        ([one], _) | ([], [one]) => Ok(one.name_any()),
        ([], []) => Err(Finding::blocker(subject, "no Service selects the pod")
            .way_out("create a Service that selects the pod: status.endpoint names it")),
        _ => Err(Finding::blocker(subject, "several Services select the pod")
            .way_out(format!("name the one that clients use with --service: {}", names(&all)))),
    }
}

/// The Secret with the credentials, if there is to be one.
pub fn secret(found: &Found, wanted: &Wanted) -> Result<Option<String>, Finding> {
    if wanted.no_secret {
        return Ok(None);
    }
    if wanted.secret.is_some() {
        return Ok(wanted.secret.clone());
    }
    let names: Vec<String> = found.secrets().into_iter().collect();
    match names.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        several => Err(Finding::blocker(found.subject(), "the pod reads several Secrets").way_out(format!(
            "name the one with the credentials with --secret, or give --no-secret: {}",
            several.join(", ")
        ))),
    }
}

/// The type that was found first: a machine of a type that is not listed would be replaced at once.
pub fn instance_types(found: &Found, wanted: &Wanted) -> Vec<String> {
    let mut types: Vec<String> = found.instance.iter().map(|it| it.instance_type.clone()).collect();
    for name in &wanted.instance_types {
        if !types.contains(name) {
            types.push(name.clone());
        }
    }
    types
}
