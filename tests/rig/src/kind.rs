//! The kinds that are served: the built-in ones in a table, and those of resource definitions.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::schema::{Definitions, Schema};

/// A served kind.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column of the table of kinds")]
pub struct Kind {
    /// The API group; empty for the core.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural, as paths have it.
    pub plural: String,
    /// The kind.
    pub kind: String,
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
    /// Whether the status is written apart.
    pub has_status: bool,
    /// Whether changes of what is wanted are counted in metadata.generation.
    pub has_generation: bool,
    /// Whether a resource definition made it.
    pub is_custom: bool,
    /// A deletion answers with the object, not with a `Status`.
    pub returns_deleted: bool,
    /// An update may leave out the resourceVersion.
    pub updates_blindly: bool,
    /// An update of what does not exist creates it.
    pub creates_on_update: bool,
    /// What its objects hold.
    pub schema: Arc<Schema>,
    /// The fields beside name and namespace by which objects are selected.
    pub selectable: Vec<String>,
}

const STATUS: u8 = 1;
const GENERATION: u8 = 2;
const RETURNED: u8 = 4;
const STRICT: u8 = 8;
const UPSERT: u8 = 16;
const CLUSTER: u8 = 32;

/// Path, kind, package of the schema, and what is special. Seen on kube-apiserver 1.36 by deleting and
/// updating one object of each kind.
const BUILT_IN: [(&str, &str, &str, &str, u8); 17] = [
    ("", "pods", "Pod", "core", STATUS | GENERATION | RETURNED),
    ("", "configmaps", "ConfigMap", "core", 0),
    ("", "secrets", "Secret", "core", 0),
    ("", "services", "Service", "core", STATUS | RETURNED | UPSERT),
    ("", "serviceaccounts", "ServiceAccount", "core", RETURNED),
    ("", "namespaces", "Namespace", "core", STATUS | RETURNED | CLUSTER),
    ("", "nodes", "Node", "core", STATUS | CLUSTER),
    ("", "persistentvolumes", "PersistentVolume", "core", STATUS | RETURNED | CLUSTER),
    ("", "persistentvolumeclaims", "PersistentVolumeClaim", "core", STATUS | RETURNED),
    ("apps", "statefulsets", "StatefulSet", "apps", STATUS | GENERATION),
    ("networking.k8s.io", "networkpolicies", "NetworkPolicy", "networking", GENERATION),
    ("policy", "poddisruptionbudgets", "PodDisruptionBudget", "policy", STATUS | GENERATION | STRICT),
    ("storage.k8s.io", "storageclasses", "StorageClass", "storage", RETURNED | CLUSTER),
    (
        "storage.k8s.io",
        "volumeattachments",
        "VolumeAttachment",
        "storage",
        STATUS | RETURNED | STRICT | CLUSTER,
    ),
    ("storage.k8s.io", "csinodes", "CSINode", "storage", RETURNED | STRICT | CLUSTER),
    ("coordination.k8s.io", "leases", "Lease", "coordination", STRICT | UPSERT),
    ("events.k8s.io", "events", "Event", "events", UPSERT),
];

/// Every built-in kind.
pub fn built_in() -> Vec<Arc<Kind>> {
    static KINDS: LazyLock<Vec<Arc<Kind>>> = LazyLock::new(read_built_in);
    KINDS.clone()
}

fn read_built_in() -> Vec<Arc<Kind>> {
    let mut definitions = Definitions::recorded();
    let kinds = BUILT_IN.iter().map(|(group, plural, kind, package, special)| {
        let is = |flag: u8| special & flag != 0;
        Kind {
            group: (*group).to_owned(),
            version: "v1".to_owned(),
            plural: (*plural).to_owned(),
            kind: (*kind).to_owned(),
            is_namespaced: !is(CLUSTER),
            has_status: is(STATUS),
            has_generation: is(GENERATION),
            is_custom: false,
            returns_deleted: is(RETURNED),
            updates_blindly: !is(STRICT),
            creates_on_update: is(UPSERT),
            schema: definitions.named(&format!("io.k8s.api.{package}.v1.{kind}")),
            selectable: selectable(plural).iter().map(|it| (*it).to_owned()).collect(),
        }
    });
    kinds.chain([definitions_kind()]).map(Arc::new).collect()
}

/// Resource definitions themselves, which are kept as they are.
fn definitions_kind() -> Kind {
    Kind {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        is_namespaced: false,
        has_status: true,
        has_generation: true,
        is_custom: false,
        returns_deleted: false,
        updates_blindly: false,
        creates_on_update: false,
        schema: Arc::new(Schema { keeps_unknown: true, ..Schema::default() }),
        selectable: Vec::new(),
    }
}

fn selectable(plural: &str) -> &'static [&'static str] {
    match plural {
        "pods" => &["spec.nodeName", "status.phase", "spec.restartPolicy", "spec.serviceAccountName"],
        "events" => {
            &["regarding.kind", "regarding.name", "regarding.namespace", "regarding.uid", "reason", "type"]
        }
        "secrets" => &["type"],
        "nodes" => &["spec.unschedulable"],
        "namespaces" => &["status.phase"],
        _ => &[],
    }
}

/// The kinds of a resource definition, one for each version that is served.
pub fn of_definition(definition: &Value) -> Vec<Kind> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let versions = spec["versions"].as_array().into_iter().flatten();
    let kinds = versions.filter(|it| it["served"] == true).map(|version| {
        let mut schema = version["schema"]["openAPIV3Schema"].clone();
        schema["properties"]["apiVersion"] = json!({"type": "string"});
        schema["properties"]["kind"] = json!({"type": "string"});
        schema["properties"]["metadata"] = json!({"$ref": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"});
        let fields = version["selectableFields"].as_array().into_iter().flatten();
        Kind {
            group: text(&spec["group"]),
            version: text(&version["name"]),
            plural: text(&spec["names"]["plural"]),
            kind: text(&spec["names"]["kind"]),
            is_namespaced: spec["scope"] == "Namespaced",
            has_status: version["subresources"]["status"].is_object(),
            has_generation: true,
            is_custom: true,
            returns_deleted: false,
            updates_blindly: false,
            creates_on_update: false,
            schema: Arc::new(Definitions::recorded().parse(&schema)),
            selectable: fields.map(|it| text(&it["jsonPath"]).trim_start_matches('.').to_owned()).collect(),
        }
    });
    kinds.collect()
}

impl Kind {
    /// `v1` or `group/version`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The kind, if it is a built-in one; empty for one of a resource definition, whose name may be the same.
    pub fn built_in(&self) -> &str {
        if self.is_custom { "" } else { &self.kind }
    }

    /// `plural` or `plural.group`, as messages have it.
    pub fn resource(&self) -> String {
        with_group(&self.plural, &self.group)
    }

    /// `Kind` or `Kind.group`, as messages have it.
    pub fn qualified(&self) -> String {
        with_group(&self.kind, &self.group)
    }
}

fn with_group(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}
