//! Checks of the machine, who else may end it, its zone, and whose it is. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node as CoreNode;
use kube::ResourceExt;

use crate::adopt::choices::instance_types;
use crate::adopt::found::Found;
use crate::adopt::wanted::Wanted;
use crate::api::keys::{
    ADOPT_TAG, CLUSTER_ID_TAG, DATABASE_TAG, INSTANCE_TYPE_LABEL, NODE_UID_TAG, VOLUME_UID_TAG, ZONE_LABEL,
};
use crate::cloud::identity::adopter;
use crate::cloud::{Instance, InstanceState};
use crate::command::finding::Finding;
use crate::controller::node::registration::provider_id;

pub(super) fn machine(found: &Found, wanted: &Wanted) -> Vec<Finding> {
    let Some(id) = found.instance_id() else {
        let message = "it does not say which EC2 instance it is (spec.providerID)";
        let node = found.core_node.as_ref().map(ResourceExt::name_any).unwrap_or_default();
        let way_out = "only a machine that is an EC2 instance can be adopted; Fargate cannot";
        return vec![Finding::blocker(format!("Kubernetes node {node}"), message).way_out(way_out)];
    };
    let object = format!("Instance {id}");
    let Some(instance) = &found.instance else {
        let way_out =
            "check the account and the Region of your AWS credentials (aws sts get-caller-identity)";
        return vec![
            Finding::blocker(object, "EC2 does not list it in this account and Region").way_out(way_out),
        ];
    };
    let mut findings = Vec::new();
    if instance.state != InstanceState::Running {
        findings.push(Finding::blocker(&object, "it is not running").way_out("start the database first"));
    }
    findings.extend(found.core_node.as_ref().and_then(|node| as_searched(node, instance)));
    if instance_types(found, wanted).len() == 1 {
        let message = format!("{} would be the only type of the next machine", instance.instance_type);
        findings.push(
            Finding::note(&object, message)
                .way_out("name others for when it has no capacity: --instance-type TYPE"),
        );
    }
    findings
}

/// The operator searches the Kubernetes node of an instance by its labels and its whole providerID.
fn as_searched(node: &CoreNode, instance: &Instance) -> Option<Finding> {
    if node.labels().get(ZONE_LABEL) != Some(&instance.zone) {
        // The check of the zones says so.
        return None;
    }
    let object = format!("Kubernetes node {}", node.name_any());
    let (id, expected) =
        (node.spec.as_ref().and_then(|spec| spec.provider_id.clone()), provider_id(instance));
    if id.as_ref() != Some(&expected) {
        let message = format!("its spec.providerID is {}, and not {expected}", id.unwrap_or_default());
        let way_out = "the machine must join the cluster with that id (kubelet --provider-id, or the cloud \
            controller manager)";
        return Some(Finding::blocker(object, message).way_out(way_out));
    }
    let label = node.labels().get(INSTANCE_TYPE_LABEL);
    if label != Some(&instance.instance_type) {
        let message = format!("its label {INSTANCE_TYPE_LABEL} is not {}", instance.instance_type);
        let way_out = "run a cloud controller manager, or set the label";
        return Some(Finding::blocker(object, message).way_out(way_out));
    }
    None
}

/// Who may end the machine without asking Freehold.
pub(super) fn groups(found: &Found, _: &Wanted) -> Vec<Finding> {
    let Some(instance) = &found.instance else { return Vec::new() };
    let (id, tag) = (&instance.id, |key: &str| instance.tags.get(key));
    let object = format!("Instance {id}");
    let mut findings = Vec::new();
    if let Some(group) = tag("aws:autoscaling:groupName") {
        let message =
            format!("Auto Scaling group {group} may terminate it when it scales in or finds it unhealthy");
        findings.push(Finding::blocker(&object, message).way_out(format!(
            "aws autoscaling detach-instances --instance-ids {id} --auto-scaling-group-name {group} \
                --should-decrement-desired-capacity"
        )));
    }
    if let Some(group) = tag("eks:nodegroup-name") {
        let message = format!(
            "it was launched by the managed node group {group}: when that is deleted, EKS may remove the \
                access of its IAM role, and the machine leaves the cluster"
        );
        findings.push(
            Finding::warning(&object, message).way_out(
                "keep the node group (its size may be 0), or give its role an access entry of its own",
            ),
        );
    }
    let node = found.core_node.as_ref();
    if tag("karpenter.sh/nodeclaim").or_else(|| tag("karpenter.sh/nodepool")).is_some() {
        let name = node.map(ResourceExt::name_any).unwrap_or_default();
        let is_held = node.is_some_and(|node| {
            node.annotations().get("karpenter.sh/do-not-disrupt").is_some_and(|value| value == "true")
        });
        findings.push(if is_held {
            Finding::warning(
                &object,
                "Karpenter launched it, and still ends it when its NodeClaim expires or is deleted",
            )
            .way_out("look at expireAfter of the NodeClaim, and do not delete its NodePool")
        } else {
            Finding::blocker(&object, "Karpenter launched it, and may end it to consolidate or replace it")
                .way_out(format!("kubectl annotate node {name} karpenter.sh/do-not-disrupt=true"))
        });
    }
    findings
}

/// Every zone that is named, by who names it, must be the same.
pub(super) fn zones(found: &Found, _: &Wanted) -> Vec<Finding> {
    let mut zones: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    if let Some(volume) = &found.volume {
        zones.entry(&volume.zone).or_default().push(format!("EBS volume {}", volume.id));
    }
    if let Some(instance) = &found.instance {
        zones.entry(&instance.zone).or_default().push(format!("instance {}", instance.id));
    }
    let node = found.core_node.as_ref();
    let label = node.and_then(|node| node.labels().get(ZONE_LABEL));
    if let (Some(node), Some(zone)) = (node, label) {
        zones.entry(zone).or_default().push(format!("Kubernetes node {}", node.name_any()));
    }
    let volume = found.data().and_then(|claim| claim.persistent_volume.as_ref());
    let terms = volume.and_then(|volume| volume.spec.as_ref()?.node_affinity.as_ref()?.required.as_ref());
    let requirements = terms
        .into_iter()
        .flat_map(|it| &it.node_selector_terms)
        .flat_map(|it| it.match_expressions.iter().flatten());
    for value in requirements.filter(|it| it.key.contains("zone")).flat_map(|it| it.values.iter().flatten()) {
        zones.entry(value).or_default().push("the node affinity of the PersistentVolume".to_owned());
    }
    let mut findings = Vec::new();
    if zones.len() > 1 {
        let named: Vec<String> =
            zones.iter().map(|(zone, by)| format!("{zone} ({})", by.join(", "))).collect();
        let message = format!("its zone is not the same everywhere: {}", named.join("; "));
        findings.push(Finding::blocker(found.subject(), message).way_out(
            "check that Kubernetes node, PersistentVolume and EC2 speak of the same machine and volume",
        ));
    }
    if let (Some(node), None) = (node, label) {
        let message = format!("it has no label {ZONE_LABEL}");
        let way_out = "run a cloud controller manager, or set the label";
        findings
            .push(Finding::blocker(format!("Kubernetes node {}", node.name_any()), message).way_out(way_out));
    }
    findings
}

/// Whose instance and volume are, as their tags say.
pub(super) fn tags(found: &Found, wanted: &Wanted) -> Vec<Finding> {
    let database = format!("{}/{}", wanted.stateful_set.namespace, wanted.database());
    let ours = adopter(&found.cluster_id, &database);
    let instance = found.instance.as_ref().map(|it| (format!("Instance {}", it.id), &it.tags));
    let volume = found.volume.as_ref().map(|it| (format!("EBS volume {}", it.id), &it.tags));
    let mut findings = Vec::new();
    for (object, tags) in instance.into_iter().chain(volume) {
        if let Some(other) = tags.get(ADOPT_TAG).filter(|value| **value != ours) {
            let message = format!("its tag {ADOPT_TAG} allows another Database to adopt it: {other}");
            findings.push(Finding::blocker(&object, message).way_out("remove that tag if it is left over"));
        }
        let is_owned = |(key, value): (&str, &str)| tags.get(key).is_some_and(|it| it != value);
        if [(CLUSTER_ID_TAG, found.cluster_id.as_str()), (DATABASE_TAG, database.as_str())]
            .into_iter()
            .any(is_owned)
        {
            let message = "its tags say that it is another Database's";
            findings.push(Finding::blocker(&object, message).way_out("release it from that Database first"));
        } else if let Some(left) = [NODE_UID_TAG, VOLUME_UID_TAG]
            .into_iter()
            .find(|key| found.database.is_none() && tags.contains_key(*key))
        {
            let message = format!("its tag {left} names an object of a Database that is not there any more");
            findings.push(Finding::blocker(&object, message).way_out("remove that tag"));
        }
    }
    findings.push(Finding::note(
        "AWS credentials",
        "whether they may take a snapshot and tag (ec2:CreateSnapshot, ec2:CreateTags) is known with --write \
            only",
    ));
    findings
}
