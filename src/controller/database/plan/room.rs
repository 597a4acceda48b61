//! Whether a machine has room for the pod: what its Kubernetes node can give to all pods, by the kubelet's
//! own report. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Container, Node as CoreNode};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::controller::database::cause::NoRoom;

/// What the template requests more of than the Kubernetes node has for all pods: its pod would wait for ever,
/// and the one that runs would have ended for it. A node that does not report what it has is not judged.
pub(super) fn lacking(set: &StatefulSet, core_node: &CoreNode) -> Option<NoRoom> {
    let has = core_node.status.as_ref()?.allocatable.as_ref()?;
    let containers = &set.spec.as_ref()?.template.spec.as_ref()?.containers;
    ["cpu", "memory"].into_iter().find_map(|resource| {
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

/// The number of a quantity (Kubernetes' `resource.Quantity`).
fn number(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let unit = match suffix {
        "" => 1.0,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        "Ti" => 1_099_511_627_776.0,
        exponent => 10_f64.powi(exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
    };
    Some(number.parse::<f64>().ok()? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_compared_by_what_they_mean() {
        for (text, expected) in
            [("2", 2.0), ("500m", 0.5), ("1Ki", 1024.0), ("1.5G", 1.5e9), ("1e3", 1000.0), ("2E1", 20.0)]
        {
            assert_eq!(number(text), Some(expected), "{text}");
        }
        assert_eq!((number("lots"), number("")), (None, None));
    }
}
