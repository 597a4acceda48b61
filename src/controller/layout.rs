//! Where on its EBS volume a database has its data: one that Freehold created, where its engine's profile
//! says; an adopted one, where it was before, which may not be where a new Database looks for it. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Container, EnvVar, VolumeMount};
use kube::ResourceExt;

use crate::api::Database;
use crate::api::database::{Engine, EngineType};
use crate::controller::engine_container::engine_of;
use crate::engine::postgresql::DATA_DIRECTORY;
use crate::engine::{self, Value, Variable, questdb};

/// The root of the volume.
pub const WHOLE: &str = ".";

/// Not known: a part of it is decided when the pod is started, or it is in several places.
pub const UNKNOWN: &str = "unknown";

/// The variable by which QuestDB has its tables in another directory than `db` of its root.
const TABLES: &str = "QDB_CAIRO_ROOT";

/// Where the official image of PostgreSQL has its data by default, up to version 17 (its page,
/// `PGDATA`).
const POSTGRESQL_UNTIL_17: &str = "/var/lib/postgresql/data";

/// The directory of an adopted database's data, relative to the root of its volume; `None` of a database that
/// Freehold created.
pub fn found(database: &Database) -> Option<String> {
    let adopt = database.spec.adopt.as_ref()?;
    let adoption = database.status.as_ref().and_then(|status| status.adoption.as_ref());
    let directory = adoption.and_then(|adoption| {
        let set = adoption.found_set()?;
        directory(&set, &adopt.claim_name, adopt.container_name.as_deref(), &adoption.engine)
    });
    Some(directory.unwrap_or_else(|| UNKNOWN.to_owned()))
}

/// The directory in which a new Database of this engine looks for its data; `None` of an engine that is not
/// offered.
pub fn wanted(engine: &Engine) -> Option<String> {
    if engine.kind == EngineType::Custom {
        return Some(WHOLE.to_owned());
    }
    let profile = engine::profile(engine, &BTreeMap::new()).ok()?;
    match profile.environment.iter().find(|variable| variable.name == DATA_DIRECTORY) {
        Some(Variable { value: Value::Text(directory), .. }) => below(&profile.data_path, directory),
        Some(_) => None,
        None => Some(WHOLE.to_owned()),
    }
}

/// Where the engine's container has its data on the volume of this claim.
fn directory(set: &StatefulSet, claim: &str, named: Option<&str>, engine: &Engine) -> Option<String> {
    let pod = set.spec.as_ref()?.template.spec.as_ref()?;
    let container = engine_of(&pod.containers, named)?;
    let mount = mount(set, claim, container)?;
    if mount.sub_path_expr.as_ref().is_some_and(|path| !path.is_empty()) {
        return None;
    }
    let sub_path = mount.sub_path.as_deref().unwrap_or_default().trim_matches('/');
    let inner = match engine.kind {
        // What an image of one's own has there is its own matter: the mount is what can be served again.
        EngineType::Custom => WHOLE.to_owned(),
        EngineType::Questdb => below(&mount.mount_path, &questdb_root(container)?)?,
        EngineType::Postgresql => below(&mount.mount_path, &postgresql_data(container, engine)?)?,
    };
    let parts = [sub_path, inner.as_str()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty() && *part != WHOLE).collect();
    Some(if parts.is_empty() { WHOLE.to_owned() } else { parts.join("/") })
}

/// The mount of the volume, if there is one and no other.
fn mount<'a>(set: &StatefulSet, claim: &str, container: &'a Container) -> Option<&'a VolumeMount> {
    let spec = set.spec.as_ref()?;
    let pod = spec.template.spec.as_ref()?;
    let of_pod = pod.volumes.iter().flatten().filter(|volume| {
        volume.persistent_volume_claim.as_ref().is_some_and(|used| used.claim_name == claim)
    });
    // Kubernetes names the claim of a template after it, the StatefulSet and the number of the pod.
    let of_pod: Vec<String> = of_pod.map(|volume| volume.name.clone()).collect();
    let templates = spec.volume_claim_templates.iter().flatten().map(ResourceExt::name_any);
    let of_template = templates.filter(|name| format!("{name}-{}-0", set.name_any()) == claim);
    let names: Vec<String> = of_pod.into_iter().chain(of_template).collect();
    let mut mounts = container.volume_mounts.iter().flatten().filter(|mount| names.contains(&mount.name));
    let first = mounts.next()?;
    mounts.next().is_none().then_some(first)
}

/// QuestDB's root in the container, if its tables are below it.
fn questdb_root(container: &Container) -> Option<String> {
    let root = option(container, "-d").unwrap_or_else(|| questdb::ROOT.to_owned());
    if let Some(set) = variable(container, TABLES) {
        let tables = set.value.as_deref()?;
        let are_below = tables == "db" || below(&root, tables).as_deref() == Some("db");
        return are_below.then_some(root);
    }
    Some(root)
}

/// PostgreSQL's data directory in the container.
fn postgresql_data(container: &Container, engine: &Engine) -> Option<String> {
    if let Some(directory) = option(container, "-D") {
        return Some(directory);
    }
    if let Some(set) = variable(container, DATA_DIRECTORY) {
        return set.value.clone();
    }
    let major: u32 = engine.version.as_deref()?.split('.').next()?.parse().ok()?;
    let since_18 = || format!("/var/lib/postgresql/{major}/docker");
    Some(if major >= 18 { since_18() } else { POSTGRESQL_UNTIL_17.to_owned() })
}

/// The word that follows this option.
fn option(container: &Container, name: &str) -> Option<String> {
    let words: Vec<&String> =
        container.command.iter().flatten().chain(container.args.iter().flatten()).collect();
    words.windows(2).find(|pair| pair[0] == name).map(|pair| pair[1].clone())
}

fn variable<'a>(container: &'a Container, name: &str) -> Option<&'a EnvVar> {
    container.env.iter().flatten().find(|variable| variable.name == name)
}

/// A directory, relative to one above it or to itself.
fn below(above: &str, directory: &str) -> Option<String> {
    let (above, directory) = (above.trim_end_matches('/'), directory.trim_end_matches('/'));
    if directory == above {
        return Some(WHOLE.to_owned());
    }
    directory.strip_prefix(above)?.strip_prefix('/').map(str::to_owned)
}

#[cfg(test)]
mod tests;
