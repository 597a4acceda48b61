//! Builds what an object is that was a Database's and goes on without it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};

use crate::api::keys::{
    ADOPTION_ANNOTATION, DATABASE_NAME_LABEL, DATABASE_UID_LABEL, INPUTS_HASH_ANNOTATION, MANAGED_BY_LABEL,
};
use crate::api::names::Names;

/// What Freehold alone writes; the rest of the recommended set describes the object, and stays.
const OURS: [&str; 3] = [DATABASE_NAME_LABEL, DATABASE_UID_LABEL, MANAGED_BY_LABEL];

/// Labels, annotations and owners of the object once it is released: without Freehold's. Where it is known
/// how it was found, a label that Freehold has changed becomes what it was.
pub fn released(live: &ObjectMeta, names: &Names, found: Option<&ObjectMeta>) -> Value {
    let mut labels = live.labels.clone().unwrap_or_default();
    for (key, value) in names.labels.iter().filter(|(key, value)| live_has(live, key, value)) {
        let before = found.and_then(|found| found.labels.as_ref()?.get(key));
        match before {
            Some(before) => labels.insert(key.clone(), before.clone()),
            None if found.is_some() || OURS.contains(&key.as_str()) => labels.remove(key),
            None => Some(value.clone()),
        };
    }
    let mut annotations = live.annotations.clone().unwrap_or_default();
    annotations.retain(|key, _| ![INPUTS_HASH_ANNOTATION, ADOPTION_ANNOTATION].contains(&key.as_str()));
    json!({"metadata": {
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": other_owners(live, names),
    }})
}

/// What was found, once it is released. Its owners are those that it has today: one that is gone since would
/// have Kubernetes delete it.
pub fn released_as_found(mut found: Value, live: &ObjectMeta, names: &Names) -> Value {
    found["metadata"]["ownerReferences"] = json!(other_owners(live, names));
    found
}

/// The owners but the Database.
fn other_owners<'a>(live: &'a ObjectMeta, names: &Names) -> Vec<&'a OwnerReference> {
    live.owner_references.iter().flatten().filter(|owner| owner.uid != names.uid).collect()
}

fn live_has(live: &ObjectMeta, key: &str, value: &str) -> bool {
    live.labels.as_ref().and_then(|labels| labels.get(key)).is_some_and(|live| live == value)
}
