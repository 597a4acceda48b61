//! Builds the container that runs before an engine whose volume was created from a backup with the engine's
//! checkpoint: the engine is to recover from it, at its first start and at no later one.

use k8s_openapi::api::core::v1::{
    Capabilities, Container, PodSpec, ResourceRequirements, SecurityContext, VolumeMount,
};

use super::pod_parts::text;
use crate::api::Database;
use crate::api::backup::Consistency;
use crate::api::database::Restored;
use crate::engine::Profile;

/// The name of the container.
pub const CONTAINER: &str = "restore";

/// The variable that names the snapshot to it.
const RESTORED_FROM: &str = "RESTORED_FROM";

/// Whether the engine of this pod recovers from the backup that its data is of, or from none where its data
/// is of none.
pub fn recovers(database: &Database, profile: &Profile, pod: Option<&PodSpec>) -> bool {
    let wanted = source(database, profile).map(|restored| &restored.snapshot_id.0);
    let containers = pod.into_iter().flat_map(|pod| pod.init_containers.iter().flatten());
    let variables = containers.filter(|it| it.name == CONTAINER).flat_map(|it| it.env.iter().flatten());
    let has = variables.filter(|it| it.name == RESTORED_FROM).find_map(|it| it.value.as_ref());
    has == wanted
}

/// The backup that the engine is to recover from.
fn source<'a>(database: &'a Database, profile: &Profile) -> Option<&'a Restored> {
    profile.recovery?;
    let restored = database.status.as_ref()?.restored.as_ref()?;
    (restored.consistency == Consistency::EngineCheckpoint).then_some(restored)
}

/// The container; `None` for an engine that recovers by itself. A snapshot without the checkpoint may hold an
/// older one, which the engine must not go back to.
pub fn container(
    database: &Database,
    profile: &Profile,
    data: VolumeMount,
    resources: ResourceRequirements,
) -> Option<Container> {
    let (script, restored) = (profile.recovery?, source(database, profile)?);
    let from = text(RESTORED_FROM, restored.snapshot_id.0.clone());
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
