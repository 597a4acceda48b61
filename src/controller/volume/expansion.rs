//! Whether Kubernetes expands the claim of a Volume. Pure.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::api::Size;
use crate::cluster::persistent_volume::storage_class;

/// Why Kubernetes refuses to expand a claim (its admission plugin `PersistentVolumeClaimResize`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotExpandable {
    /// The claim names no StorageClass.
    WithoutClass,
    /// The StorageClass of this name is not there.
    ClassNotFound(String),
    /// The StorageClass of this name does not set `allowVolumeExpansion`.
    ClassFixed(String),
}

/// How many GiB the claim requests.
pub fn requested(claim: &PersistentVolumeClaim) -> Option<i32> {
    claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?.get("storage").and_then(gib)
}

/// The name of the claim's StorageClass.
pub fn class_of(claim: &PersistentVolumeClaim) -> Option<&str> {
    let field = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_ref());
    storage_class(&claim.metadata, field).filter(|name| !name.is_empty())
}

/// Why the claim cannot be expanded, with the StorageClass that it names.
pub fn refused(claim: &PersistentVolumeClaim, class: Option<&StorageClass>) -> Option<NotExpandable> {
    let Some(name) = class_of(claim) else { return Some(NotExpandable::WithoutClass) };
    let Some(class) = class else { return Some(NotExpandable::ClassNotFound(name.to_owned())) };
    (class.allow_volume_expansion != Some(true)).then(|| NotExpandable::ClassFixed(name.to_owned()))
}

/// The command by which a person permits it for the claims of a StorageClass.
pub fn permitted_by(class: &str) -> String {
    format!("kubectl patch storageclass {class} --patch '{{\"allowVolumeExpansion\":true}}'")
}

/// The GiB of a quantity that Kubernetes may have written in a form of its own (`2Ti` for `2048Gi`, or
/// bytes).
pub fn gib(quantity: &Quantity) -> Option<i32> {
    let text = quantity.0.as_str();
    if let Some(gib) = Size(text.to_owned()).gib() {
        return Some(gib);
    }
    let bytes: i64 = match text.strip_suffix("Mi") {
        Some(mib) => mib.parse::<i64>().ok()?.checked_mul(1 << 20)?,
        None => text.parse().ok()?,
    };
    i32::try_from(bytes >> 30).ok()
}
