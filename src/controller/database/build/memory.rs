//! What memory the engine requests where the spec does not say: by what its machine has, which is its own.
//! A pod within its request is the last that the kubelet evicts, and late among those that the kernel ends.
//! Pure.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Container, Node as CoreNode, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::stateful_set::LEAST_MEMORY;
use crate::api::database::DatabaseSpec;
use crate::controller::database::quantity::number;
use crate::controller::engine_container::CONTAINER;

const MEMORY: &str = "memory";

/// Of what the Kubernetes node has for all pods. The rest is for the DaemonSets of the platform.
const SHARE: f64 = 0.75;

/// From how much memory on: less leaves no gibibyte to others.
const FROM: f64 = 4.0 * 1024.0 * MIB;

const MIB: f64 = 1_048_576.0;

/// Whether the spec leaves it to the machine. An adopted database keeps the template that was found.
pub fn memory_is_of_machine(spec: &DatabaseSpec) -> bool {
    let is_named = spec
        .resources
        .as_ref()
        .is_some_and(|it| it.requests.contains_key(MEMORY) || it.limits.contains_key(MEMORY));
    spec.adopt.is_none() && !is_named
}

/// What is requested on this machine; `None` where the spec says it, or the kubelet has not reported what it
/// has.
pub fn memory_on(spec: &DatabaseSpec, core_node: &CoreNode) -> Option<Quantity> {
    let allocatable = core_node.status.as_ref()?.allocatable.as_ref()?.get(MEMORY)?;
    let has = number(&allocatable.0).filter(|_| memory_is_of_machine(spec))?;
    let mebibytes = (has * SHARE / MIB).floor();
    Some(Quantity(if has < FROM { LEAST_MEMORY.to_owned() } else { format!("{mebibytes}Mi") }))
}

/// What the engine's container requests.
pub fn memory_of(containers: &[Container]) -> Option<&Quantity> {
    let engine = containers.iter().find(|container| container.name == CONTAINER)?;
    engine.resources.as_ref()?.requests.as_ref()?.get(MEMORY)
}

/// The same of the pods of this StatefulSet.
pub fn memory_of_set(set: &StatefulSet) -> Option<&Quantity> {
    memory_of(&set.spec.as_ref()?.template.spec.as_ref()?.containers)
}

/// What the spec says of a container's resources.
pub fn asked_of(spec: &DatabaseSpec, container: &Container) -> Option<ResourceRequirements> {
    let mut resources = container.resources.clone()?;
    if let Some(requests) = resources.requests.as_mut().filter(|_| memory_is_of_machine(spec)) {
        requests.remove(MEMORY);
    }
    Some(resources)
}

/// The StatefulSet with this request, and nothing else changed; `None` when it has it.
pub fn with_memory(live: &StatefulSet, memory: Quantity) -> Option<StatefulSet> {
    let metadata = ObjectMeta {
        name: live.metadata.name.clone(),
        namespace: live.metadata.namespace.clone(),
        // What else is in it was read, and must not be older than what is there.
        resource_version: live.metadata.resource_version.clone(),
        ..ObjectMeta::default()
    };
    let mut set = StatefulSet { metadata, spec: live.spec.clone(), status: None };
    let containers = &mut set.spec.as_mut()?.template.spec.as_mut()?.containers;
    if memory_of(containers).is_some_and(|before| is_same(before, &memory)) {
        return None;
    }
    let engine = containers.iter_mut().find(|container| container.name == CONTAINER)?;
    let requests = engine.resources.get_or_insert_default().requests.get_or_insert_default();
    requests.insert(MEMORY.to_owned(), memory);
    Some(set)
}

/// Whether two quantities mean the same: the API server writes them in a form of its own, `12Gi` for
/// `12288Mi`.
pub fn is_same(one: &Quantity, other: &Quantity) -> bool {
    one == other || number(&one.0).is_some_and(|it| Some(it) == number(&other.0))
}

/// The least request.
pub fn least_memory() -> Quantity {
    Quantity(LEAST_MEMORY.to_owned())
}
