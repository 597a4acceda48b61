//! Builds the container that runs before an engine whose volume was created from a backup with the engine's
//! checkpoint: the engine is to recover from it, at its first start and at no later one.

use k8s_openapi::api::core::v1::{
    Capabilities, Container, EnvVar, ResourceRequirements, SecurityContext, VolumeMount,
};

use crate::api::Database;
use crate::api::backup::Consistency;
use crate::engine::Profile;

/// The name of the container.
pub const CONTAINER: &str = "restore";

/// The container; `None` for an engine that recovers by itself. A snapshot without the checkpoint may hold an
/// older one, which the engine must not go back to.
pub fn container(
    database: &Database,
    profile: &Profile,
    data: VolumeMount,
    resources: ResourceRequirements,
) -> Option<Container> {
    let script = profile.recovery?;
    let restored = database.status.as_ref().and_then(|status| status.restored.as_ref());
    let restored = restored.filter(|restored| restored.consistency == Consistency::EngineCheckpoint)?;
    let from = EnvVar {
        name: "RESTORED_FROM".to_owned(),
        value: Some(restored.snapshot_id.0.clone()),
        value_from: None,
    };
    Some(Container {
        name: CONTAINER.to_owned(),
        image: Some(profile.image.clone()),
        image_pull_policy: Some(profile.pull_policy.as_str().to_owned()),
        command: Some(["/bin/sh", "-c", script].map(str::to_owned).to_vec()),
        env: Some(vec![from]),
        resources: Some(resources),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
            ..SecurityContext::default()
        }),
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        volume_mounts: Some(vec![data]),
        ..Container::default()
    })
}
