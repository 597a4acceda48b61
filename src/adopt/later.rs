//! What Freehold would do later that differs from today, and what stays as it was found. Pure.

use k8s_openapi::api::apps::v1::StatefulSet;
use serde::Serialize;
use serde_json::{Value, json};

use crate::api::Database;
use crate::api::names::Names;
use crate::command::difference::{Change, differences};
use crate::controller::database::build::adopted_set;
use crate::engine;

/// What stands for the UID of a Database that is not there yet.
const UID: &str = "<UID of the Database>";

/// One field that has no counterpart in a Database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    /// Where it stands.
    pub field: String,
    /// What becomes of it.
    pub outcome: &'static str,
}

/// What differs between the StatefulSet and what Freehold makes of it.
pub fn changes(found: &StatefulSet, database: &Database) -> Vec<Change> {
    let Ok(profile) = engine::profile(&database.spec.engine, &database.spec.config) else {
        return Vec::new();
    };
    let mut database = database.clone();
    database.metadata.uid.get_or_insert_with(|| UID.to_owned());
    let names = Names::of(&database);
    let adopted = adopted_set(found, &database, &names, &profile, None);
    differences(found, &adopted)
}

/// Fields of a pod that a Database replaces, and those that the API server sets in every pod.
const POD: [(&str, Option<&str>); 13] = [
    ("affinity", None),
    ("containers", None),
    ("dnsPolicy", Some("\"ClusterFirst\"")),
    ("initContainers", None),
    ("nodeName", None),
    ("nodeSelector", None),
    ("restartPolicy", Some("\"Always\"")),
    ("schedulerName", Some("\"default-scheduler\"")),
    ("securityContext", Some("{}")),
    ("terminationGracePeriodSeconds", Some("30")),
    ("tolerations", None),
    ("topologySpreadConstraints", None),
    ("volumes", None),
];

/// The same of a container.
const CONTAINER: [(&str, Option<&str>); 6] = [
    ("image", None),
    ("imagePullPolicy", Some("\"IfNotPresent\"")),
    ("name", None),
    ("resources", None),
    ("terminationMessagePath", Some("\"/dev/termination-log\"")),
    ("terminationMessagePolicy", Some("\"File\"")),
];

/// What becomes of most of them.
const STAYS: &str = "stays in the template";

/// Everything of the StatefulSet that a Database does not have, in the order of the template; `engine` is the
/// engine's container.
pub fn kept(found: &StatefulSet, engine: &str) -> Vec<Kept> {
    let Some(spec) = &found.spec else { return Vec::new() };
    let mut kept = Vec::new();
    let mut add = |field: String, outcome: &'static str| kept.push(Kept { field, outcome });
    if spec.pod_management_policy.as_deref().is_some_and(|policy| policy != "OrderedReady") {
        add("podManagementPolicy".to_owned(), "stays in the StatefulSet");
    }
    add("volumeClaimTemplates".to_owned(), "stay in the StatefulSet; the claim that was found is used");
    let Some(pod) = &spec.template.spec else { return kept };
    for field in fields(&json!(pod), &POD) {
        add(field, STAYS);
    }
    for volume in pod.volumes.iter().flatten() {
        let outcome = if volume.host_path.is_some() {
            "stays in the template; the next machine has other files there"
        } else {
            STAYS
        };
        add(format!("volume {}", volume.name), outcome);
    }
    for container in pod.init_containers.iter().flatten() {
        add(format!("init container {}", container.name), STAYS);
    }
    for container in &pod.containers {
        if container.name != engine {
            add(format!("container {}", container.name), "stays beside the engine");
            continue;
        }
        add(format!("container {engine}: image"), "stays until spec.engine is changed");
        if container.resources.is_some() {
            add(format!("container {engine}: resources"), "stay until spec.resources is set");
        }
        for field in fields(&json!(container), &CONTAINER) {
            add(format!("container {engine}: {field}"), STAYS);
        }
    }
    kept
}

/// The names of the fields that are set and are neither replaced nor the API server's default.
fn fields(object: &Value, known: &[(&str, Option<&str>)]) -> Vec<String> {
    let is_left_out = |name: &str, value: &Value| {
        let text = value.to_string();
        let mut rows = known.iter().filter(|(known, _)| *known == name);
        rows.any(|(_, default)| default.is_none_or(|default| text == default))
    };
    let set = object.as_object().into_iter().flatten();
    set.filter(|(name, value)| !is_left_out(name, value)).map(|(name, _)| name.clone()).collect()
}

/// What differs from today in what Freehold does, as sentences.
pub fn behaviour(database: &Database) -> Vec<(&'static str, String)> {
    let spec = &database.spec;
    let set = spec.adopt.as_ref().map(|adopt| adopt.stateful_set_name.as_str()).unwrap_or_default();
    let mut lines = vec![
        (
            "At once",
            format!(
                "nothing restarts; the machine gets the taint freehold.dev/dedicated (NoSchedule), and \
                StatefulSet {set} the update strategy OnDelete: a changed template waits for the next restart"
            ),
        ),
        (
            "Next restart",
            "the pod runs only on the machine that Freehold has chosen for this Database".to_owned(),
        ),
        (
            "Next machine",
            format!(
                "it is launched as NodeClass {} says (image, subnet, security groups, instance profile, \
                    user data), as the first type of spec.instanceTypes that has capacity ({}); labels, \
                    taints and files of today's machine are not carried over",
                spec.node_class_name,
                spec.instance_types.join(", ")
            ),
        ),
        ("Machine lost", "it is fenced, and another one takes its place (docs/repair.md)".to_owned()),
        (
            "Clients",
            "the Service stays as it is; no NetworkPolicy is created (spec.access has no effect)".to_owned(),
        ),
    ];
    if let (None, Some(version)) = (&spec.engine.custom, &spec.engine.version) {
        lines.push((
            "New version",
            format!(
                "a changed spec.engine.version replaces {version} in the tag of today's image, and keeps the \
                    rest of the template"
            ),
        ));
    }
    lines.push((
        "Deletion",
        format!(
            "of the Database, once it is adopted: the pod ends, the instance is terminated, and the volume \
            is treated as spec.deletionPolicy says ({}); with spec.release, everything goes on as it was found",
            spec.deletion_policy.as_str()
        ),
    ));
    lines
}
