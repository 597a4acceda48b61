//! Which container of a pod is the engine's. Pure.

use k8s_openapi::api::core::v1::Container;

/// The name of the engine's container.
pub const CONTAINER: &str = "engine";

/// The engine's among the containers of a pod: the one that the spec names; without a name the one of the
/// name that Freehold gives it; else the first, as `kubectl logs` takes it in a pod that was found.
pub fn engine_of<'a>(containers: &'a [Container], named: Option<&str>) -> Option<&'a Container> {
    let of_name = |name: &str| containers.iter().find(|container| container.name == name);
    match named {
        Some(name) => of_name(name),
        None => of_name(CONTAINER).or_else(|| containers.first()),
    }
}
