//! Whether the root of an engine, and with it its checkpoint, is on the EBS volume: an adopted database has
//! that mounted where it was before. Pure.

use k8s_openapi::api::core::v1::{Container, Pod};

use crate::controller::database::pod::engine_container;
use crate::engine::questdb::ROOT;

/// The option by which QuestDB is given another root (QuestDB documentation, "Command-line options").
const ROOT_OPTION: &str = "-d";

/// The variable by which QuestDB has its tables in another directory than `db` of its root.
const TABLES_VARIABLE: &str = "QDB_CAIRO_ROOT";

/// Whether the volume of this claim is the engine's root. A pod that does not mount it as a whole there has
/// the checkpoint, or the tables, beside it or in another place than a restore looks for them.
pub fn is_on_volume(pod: &Pod, container: Option<&str>, claim: &str) -> bool {
    let Some(engine) = engine_container(pod, container) else { return false };
    let root = root(engine);
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let of_claim = volumes.filter(|volume| {
        volume.persistent_volume_claim.as_ref().is_some_and(|used| used.claim_name == claim)
    });
    let names: Vec<&str> = of_claim.map(|volume| volume.name.as_str()).collect();
    let mut mounts = engine.volume_mounts.iter().flatten();
    let is_root_mounted = mounts.any(|mount| {
        let is_part = |path: &Option<String>| path.as_deref().is_some_and(|path| !path.is_empty());
        names.contains(&mount.name.as_str())
            && mount.mount_path.trim_end_matches('/') == root.trim_end_matches('/')
            && !is_part(&mount.sub_path)
            && !is_part(&mount.sub_path_expr)
    });
    is_root_mounted && has_tables_in(engine, root)
}

/// The directory that the engine is started with.
fn root(engine: &Container) -> &str {
    let words: Vec<&String> = engine.command.iter().flatten().chain(engine.args.iter().flatten()).collect();
    let given = words.windows(2).find(|pair| pair[0] == ROOT_OPTION).map(|pair| pair[1].as_str());
    given.unwrap_or(ROOT)
}

fn has_tables_in(engine: &Container, root: &str) -> bool {
    let set = engine.env.iter().flatten().find(|variable| variable.name == TABLES_VARIABLE);
    let Some(path) = set.map(|variable| variable.value.as_deref().unwrap_or_default()) else { return true };
    path == "db" || path == format!("{}/db", root.trim_end_matches('/'))
}
