//! Which Nodes are this site's: those whose providerID names one of its instances.

use ec2sim::InstanceView;
use k8s_openapi::api::core::v1::Node;

/// The providerID of an instance, as AWS's cloud-controller writes it.
pub fn provider_id(instance: &InstanceView) -> String {
    format!("aws:///{}/{}", instance.zone, instance.id)
}

/// The instance id in a Node's providerID.
pub fn instance_id(node: &Node) -> Option<&str> {
    let provider_id = node.spec.as_ref()?.provider_id.as_deref()?;
    provider_id.strip_prefix("aws:///")?.split_once('/').map(|(_, id)| id)
}
