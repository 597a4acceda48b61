//! Builds the NetworkPolicy: in come clients, what scrapes metrics, and the operator to an engine whose
//! statements it knows; out go requests to the cluster's DNS, and to an archive of the write-ahead log.

use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer,
    NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use super::owned;
use crate::api::Database;
use crate::api::database::{Access, AccessPeer, EngineType, WalArchive};
use crate::api::keys::VERIFICATION_LABEL;
use crate::api::names::Names;
use crate::engine::Profile;
use crate::settings::Network;

/// Where the EKS Pod Identity Agent of each machine listens (EKS user guide, "EKS Pod Identity agent").
const POD_IDENTITY: [&str; 2] = ["169.254.170.23/32", "fd00:ec2::23/128"];

/// The port of the DNS.
const DNS: i32 = 53;

/// The NetworkPolicy of the pod. The kubelet's probes need no rule: traffic from a pod's own machine is
/// always let in. The operator is let in all the time: it requests checkpoints, gives passwords, settings and
/// users, and flushes before a stop; each of these would wait for another policy to reach the machine.
pub fn network_policy(
    database: &Database,
    names: &Names,
    profile: &Profile,
    network: &Network,
) -> NetworkPolicy {
    let clients = profile.ports.iter().filter(|port| port.is_service).map(|port| port.number);
    let mut ingress = vec![NetworkPolicyIngressRule {
        ports: Some(clients.map(|number| port(number, "TCP")).collect()),
        from: Some(clients_of(&database.spec.access)),
    }];
    // A rule without peers would let everything in.
    if let Some(metrics) = profile.metrics_port().filter(|_| !network.metrics_from.0.is_empty()) {
        ingress.push(NetworkPolicyIngressRule {
            ports: Some(vec![port(metrics.number, "TCP")]),
            from: Some(network.metrics_from.0.iter().map(plain).collect()),
        });
    }
    let is_checked = database.labels().contains_key(VERIFICATION_LABEL);
    let is_known = database.spec.engine.kind != EngineType::Custom;
    let is_asked = (is_known || is_checked) && !network.operator_from.0.is_empty();
    if let Some(primary) = profile.primary_port_number().filter(|_| is_asked) {
        ingress.push(NetworkPolicyIngressRule {
            ports: Some(vec![port(primary, "TCP")]),
            from: Some(network.operator_from.0.iter().map(plain).collect()),
        });
    }
    let dns = NetworkPolicyEgressRule {
        ports: Some(vec![port(DNS, "UDP"), port(DNS, "TCP")]),
        to: Some(network.dns.0.iter().map(plain).collect()),
    };
    // A rule without peers would let everything out.
    let mut egress = Vec::from_iter(Some(dns).filter(|_| !network.dns.0.is_empty()));
    if let Some(archive) = &database.spec.wal_archive {
        egress.extend(archive_rules(archive, network));
    }
    NetworkPolicy {
        metadata: owned(names, &names.network_policy),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(LabelSelector {
                match_labels: Some(names.selector.clone()),
                match_expressions: None,
            }),
            policy_types: Some(vec!["Ingress".to_owned(), "Egress".to_owned()]),
            ingress: Some(ingress),
            egress: Some(egress).filter(|rules| !rules.is_empty()),
        }),
    }
}

/// To the archive, and to what gives the pod its credentials where no Secret does.
fn archive_rules(archive: &WalArchive, network: &Network) -> Vec<NetworkPolicyEgressRule> {
    let rule = |number: i32, to: Vec<NetworkPolicyPeer>| NetworkPolicyEgressRule {
        ports: Some(vec![port(number, "TCP")]),
        to: Some(to),
    };
    let to: Vec<NetworkPolicyPeer> = network.wal_archive_to.0.iter().map(plain).collect();
    let number = archive_port(archive).filter(|_| !to.is_empty());
    let mut rules = Vec::from_iter(number.map(|number| rule(i32::from(number), to)));
    if archive.secret_name.is_none() {
        let agent = |cidr: &&str| NetworkPolicyPeer {
            ip_block: Some(IPBlock { cidr: (*cidr).to_owned(), except: None }),
            ..NetworkPolicyPeer::default()
        };
        rules.push(rule(80, POD_IDENTITY.iter().map(agent).collect()));
    }
    rules
}

/// The port of the archive's service: that of its URL, else that of its scheme; `None` for no URL of one.
pub fn archive_port(archive: &WalArchive) -> Option<u16> {
    let Some(url) = &archive.endpoint_url else { return Some(443) };
    let (of_scheme, rest) = match url.split_once("://")? {
        ("http", rest) => (80, rest),
        ("https", rest) => (443, rest),
        _ => return None,
    };
    match rest.split_once(':') {
        None => Some(of_scheme),
        Some((_, port)) => port.parse().ok().filter(|port| *port != 0),
    }
}

fn port(number: i32, protocol: &str) -> NetworkPolicyPort {
    NetworkPolicyPort {
        port: Some(IntOrString::Int(number)),
        protocol: Some(protocol.to_owned()),
        end_port: None,
    }
}

/// Who may connect: the pods of the own namespace, unless the spec says otherwise.
fn clients_of(access: &Access) -> Vec<NetworkPolicyPeer> {
    let own_namespace =
        NetworkPolicyPeer { pod_selector: Some(LabelSelector::default()), ..NetworkPolicyPeer::default() };
    let mut peers = match &access.from {
        None => vec![own_namespace],
        Some(from) => {
            let peer = |from: &AccessPeer| NetworkPolicyPeer {
                namespace_selector: from.namespace_selector.clone(),
                pod_selector: from.pod_selector.clone(),
                ip_block: None,
            };
            from.iter().map(|from| plain(&peer(from))).collect()
        }
    };
    peers.extend(access.cidrs.iter().map(|cidr| NetworkPolicyPeer {
        ip_block: Some(IPBlock { cidr: cidr.clone(), except: None }),
        ..NetworkPolicyPeer::default()
    }));
    peers
}

/// The peer as the API server gives it back: without empty lists.
fn plain(peer: &NetworkPolicyPeer) -> NetworkPolicyPeer {
    let selector = |selector: &LabelSelector| LabelSelector {
        match_labels: selector.match_labels.clone().filter(|labels| !labels.is_empty()),
        match_expressions: selector.match_expressions.clone().filter(|all| !all.is_empty()).map(|all| {
            let plain = |mut one: LabelSelectorRequirement| {
                one.values = one.values.filter(|values| !values.is_empty());
                one
            };
            all.into_iter().map(plain).collect()
        }),
    };
    NetworkPolicyPeer {
        ip_block: peer.ip_block.clone(),
        namespace_selector: peer.namespace_selector.as_ref().map(selector),
        pod_selector: peer.pod_selector.as_ref().map(selector),
    }
}
