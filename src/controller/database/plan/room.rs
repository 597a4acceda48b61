//! Whether a machine has room for the pod: what its Kubernetes node can give to all pods, by the kubelet's
//! own report. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Container, Node as CoreNode};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::controller::database::build;
use crate::controller::database::cause::NoRoom;
use crate::controller::database::observe::Observed;
use crate::controller::database::quantity::number;

/// What the template requests more of than the Kubernetes node has for all pods: its pod would wait for ever,
/// and the one that runs would have ended for it. A node that does not report what it has is not judged, nor
/// is memory that the spec leaves to the machine: the template follows the machine.
pub(super) fn lacking(observed: &Observed, set: &StatefulSet, core_node: &CoreNode) -> Option<NoRoom> {
    let has = core_node.status.as_ref()?.allocatable.as_ref()?;
    let containers = &set.spec.as_ref()?.template.spec.as_ref()?.containers;
    let is_fixed = !build::memory_is_of_machine(&observed.database.spec);
    let judged = ["cpu"].into_iter().chain(is_fixed.then_some("memory"));
    judged.into_iter().find_map(|resource| {
        let wants: f64 = containers.iter().filter_map(|container| requested(container, resource)).sum();
        let allocatable = has.get(resource)?;
        let is_more = number(&allocatable.0).is_some_and(|has| wants > has);
        is_more.then(|| NoRoom { resource: resource.to_owned(), allocatable: allocatable.0.clone() })
    })
}

/// Kubernetes requests the limit where there is no request.
fn requested(container: &Container, resource: &str) -> Option<f64> {
    let resources = container.resources.as_ref()?;
    let of = |named: &Option<BTreeMap<String, Quantity>>| named.as_ref()?.get(resource).cloned();
    number(&of(&resources.requests).or_else(|| of(&resources.limits))?.0)
}
