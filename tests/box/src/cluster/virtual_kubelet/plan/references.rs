//! Which Secret or `ConfigMap` a pod refers to that is not there: a kubelet does not start such a pod.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvFromSource, EnvVar, Pod, Secret, Volume};
use kube::{Resource, ResourceExt as _};

use super::world::World;

/// One reference.
struct Reference<'a> {
    is_secret: bool,
    name: &'a str,
    /// The key that must be in it, if one is named.
    key: Option<&'a str>,
    optional: Option<bool>,
}

/// What the first broken reference of the pod is, in the kubelet's words.
pub fn missing(world: &World, pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let containers = || spec.init_containers.iter().flatten().chain(&spec.containers);
    let variables =
        containers().flat_map(|container: &Container| container.env.iter().flatten()).filter_map(variable);
    let sources =
        containers().flat_map(|container: &Container| container.env_from.iter().flatten()).filter_map(source);
    let volumes = spec.volumes.iter().flatten().filter_map(volume);
    let mut references = volumes.chain(sources).chain(variables);
    references.find_map(|reference| broken(world, pod, &reference))
}

fn variable(variable: &EnvVar) -> Option<Reference<'_>> {
    let from = variable.value_from.as_ref()?;
    let secret = from.secret_key_ref.as_ref().map(|to| (true, &to.name, &to.key, to.optional));
    let map = from.config_map_key_ref.as_ref().map(|to| (false, &to.name, &to.key, to.optional));
    secret.or(map).map(|(is_secret, name, key, optional)| Reference {
        is_secret,
        name,
        key: Some(key),
        optional,
    })
}

fn source(source: &EnvFromSource) -> Option<Reference<'_>> {
    let secret = source.secret_ref.as_ref().map(|to| (true, &to.name, to.optional));
    let map = source.config_map_ref.as_ref().map(|to| (false, &to.name, to.optional));
    secret.or(map).map(|(is_secret, name, optional)| Reference { is_secret, name, key: None, optional })
}

fn volume(volume: &Volume) -> Option<Reference<'_>> {
    let secret = volume.secret.as_ref().and_then(|to| Some((true, to.secret_name.as_deref()?, to.optional)));
    let map = volume.config_map.as_ref().map(|to| (false, to.name.as_str(), to.optional));
    secret.or(map).map(|(is_secret, name, optional)| Reference { is_secret, name, key: None, optional })
}

fn broken(world: &World, pod: &Pod, reference: &Reference<'_>) -> Option<String> {
    let Reference { is_secret, name, key, optional } = *reference;
    if optional == Some(true) {
        return None;
    }
    let kind = if is_secret { "secret" } else { "configmap" };
    let has_key: Option<bool> = if is_secret {
        named(&world.secrets, pod, name).map(|secret: &Secret| {
            key.is_none_or(|key| secret.data.as_ref().is_some_and(|data| data.contains_key(key)))
        })
    } else {
        named(&world.config_maps, pod, name).map(|map: &ConfigMap| {
            key.is_none_or(|key| map.data.as_ref().is_some_and(|data| data.contains_key(key)))
        })
    };
    match has_key {
        None => Some(format!("{kind} \"{name}\" not found")),
        Some(false) => Some(format!("couldn't find key {} in {kind} {name}", key.unwrap_or_default())),
        Some(true) => None,
    }
}

fn named<'a, K: Resource>(objects: &'a [Arc<K>], pod: &Pod, name: &str) -> Option<&'a K> {
    objects
        .iter()
        .map(AsRef::as_ref)
        .find(|object: &&K| object.name_any() == name && object.namespace() == pod.namespace())
}
