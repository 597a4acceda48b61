//! Builds the NetworkPolicy: in come clients of the engine's ports, out go questions to the DNS.

use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::owned;
use crate::api::names::Names;
use crate::engine::Profile;

/// The port of the DNS.
const DNS: i32 = 53;

/// The NetworkPolicy of the pod. The kubelet's probes need no rule: traffic from a pod's own machine is
/// always let in.
pub fn network_policy(names: &Names, profile: &Profile) -> NetworkPolicy {
    let port = |number: i32, protocol: &str| NetworkPolicyPort {
        port: Some(IntOrString::Int(number)),
        protocol: Some(protocol.to_owned()),
        end_port: None,
    };
    let clients = profile
        .ports
        .iter()
        .filter(|port| port.is_service)
        .map(|engine| port(engine.number, "TCP"))
        .collect();
    NetworkPolicy {
        metadata: owned(names, &names.network_policy),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(LabelSelector {
                match_labels: Some(names.selector.clone()),
                match_expressions: None,
            }),
            policy_types: Some(vec!["Ingress".to_owned(), "Egress".to_owned()]),
            ingress: Some(vec![NetworkPolicyIngressRule { ports: Some(clients), from: None }]),
            egress: Some(vec![NetworkPolicyEgressRule {
                ports: Some(vec![port(DNS, "UDP"), port(DNS, "TCP")]),
                to: None,
            }]),
        }),
    }
}
