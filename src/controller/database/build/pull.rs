//! Builds the pod that pulls the engine's next image onto its machine: it mounts nothing and runs nothing of
//! the engine's.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Capabilities, Container, Pod, PodSecurityContext, PodSpec, ResourceRequirements, SeccompProfile,
    SecurityContext,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::owned;
use super::stateful_set::{endures, pull_secrets, unreachable};
use crate::api::keys::{
    DATABASE_NAME_LABEL, DATABASE_UID_LABEL, DEDICATED_TAINT, MANAGED_BY_FREEHOLD, MANAGED_BY_LABEL,
};
use crate::api::names::{Names, PULL_COMMAND};
use crate::controller::database::pod::PULL_CONTAINER;
use crate::engine::Profile;

/// The pod. Of the labels it has those that the copy and the wakes need, and none that selects the database's
/// own pod: no Service leads to it, and no disruption budget counts it. An image without the command ends its
/// container, too, once it is pulled.
pub fn pull_pod(names: &Names, profile: &Profile, core_node: &str) -> Pod {
    let mut metadata = owned(names, &names.pull_pod());
    let labels = [
        (MANAGED_BY_LABEL, MANAGED_BY_FREEHOLD),
        (DATABASE_NAME_LABEL, names.database.as_str()),
        (DATABASE_UID_LABEL, names.uid.as_str()),
    ];
    metadata.labels = Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    let amounts = |of: [(&str, &str); 2]| -> Option<BTreeMap<String, Quantity>> {
        Some(of.map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned()))).into())
    };
    let container = Container {
        name: PULL_CONTAINER.to_owned(),
        image: Some(profile.image.clone()),
        image_pull_policy: Some(profile.pull_policy.as_str().to_owned()),
        command: Some(vec![PULL_COMMAND.to_owned()]),
        // The engine may request all that the machine has. A quota counts only what is named.
        resources: Some(ResourceRequirements {
            requests: amounts([("cpu", "0"), ("memory", "0")]),
            limits: amounts([("cpu", "100m"), ("memory", "64Mi")]),
            claims: None,
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
            ..SecurityContext::default()
        }),
        ..Container::default()
    };
    let spec = PodSpec {
        // The machine of the pod that runs, full or not, and whether it takes other pods or not.
        node_name: Some(core_node.to_owned()),
        tolerations: Some([vec![endures(DEDICATED_TAINT)], unreachable()].concat()),
        // It may bring Secrets for the registry, as to the engine's pod.
        service_account_name: Some(names.service_account.clone()),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        restart_policy: Some("Never".to_owned()),
        termination_grace_period_seconds: Some(1),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(profile.user_id),
            run_as_group: Some(profile.user_id),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                localhost_profile: None,
            }),
            ..PodSecurityContext::default()
        }),
        image_pull_secrets: pull_secrets(profile),
        containers: vec![container],
        ..PodSpec::default()
    };
    Pod { metadata, spec: Some(spec), status: None }
}
