//! How an adopted database was found, noted on its StatefulSet beside the status: a status can be lost, by a
//! restore from a backup for example, and nothing else knows what is to be released. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::ResourceExt;

use crate::api::database::Adoption;
use crate::api::keys::ADOPTION_ANNOTATION;

/// How many bytes the annotations of one object may have, keys and values (Kubernetes,
/// `TotalAnnotationSizeLimitB` in apimachinery's pkg/api/validation/objectmeta.go).
const MOST_BYTES: usize = 256 * 1024;

/// Adds the note. One that has no room is left out: the status has it all the same, and a StatefulSet that
/// the API server refuses is never adopted.
pub(super) fn note(annotations: &mut BTreeMap<String, String>, adoption: &Adoption) {
    annotations.remove(ADOPTION_ANNOTATION);
    // Text, numbers and maps with text keys are always JSON.
    let note = serde_json::to_string(adoption).unwrap_or_default();
    let others: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    if others + ADOPTION_ANNOTATION.len() + note.len() <= MOST_BYTES {
        annotations.insert(ADOPTION_ANNOTATION.to_owned(), note);
    }
}

/// The note of this StatefulSet, if it has one that can be read.
pub fn noted(set: &StatefulSet) -> Option<Adoption> {
    serde_json::from_str(set.annotations().get(ADOPTION_ANNOTATION)?).ok()
}
