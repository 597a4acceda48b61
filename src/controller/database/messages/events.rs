//! The notes of a Database's events, and the causes in its history. Pure.

use kube::ResourceExt;

use crate::api::database::{
    AutoGrowState, AutoGrowStatus, FormerData, Replacement, Restored, RestoredInPlace, Unmeasured,
};
use crate::api::{EventReason, Node, Volume};
use crate::controller::database::object_name::ObjectName;

/// The cause of a pause, in the history.
pub const PAUSED: &str = "spec.running is false";
/// The cause of the end of a pause, in the history.
pub const RESUMED: &str = "spec.running is true again";
/// The cause of an engine's restart that Kubernetes does not explain, in the history.
pub const END_UNKNOWN: &str = "Kubernetes has not reported why it ended";
/// The cause of a replaced pod that Freehold has not replaced, in the history.
pub const POD_DELETED: &str = "its pod was deleted by another client than Freehold";
/// The finalizer was removed.
pub const DELETED: &str = "all resources of this Database are deleted";

/// A volume that is to grow by itself, and does not until a person does something; nothing in other states.
pub fn not_growing(status: &AutoGrowStatus) -> Option<(EventReason, &'static str)> {
    let limit = |note| Some((EventReason::StorageLimitReached, note));
    let unknown = |note| Some((EventReason::StorageUsageUnknown, note));
    match (status.state, status.unmeasured) {
        (AutoGrowState::AtMaximum, _) => limit(
            "the file system is used beyond spec.storage.autoGrow.thresholdPercent, and the volume has the \
            size of spec.storage.autoGrow.maxSize, or the largest one of its type: raise maxSize, or free \
            space in the database",
        ),
        (AutoGrowState::NotPermitted, _) => limit(
            "the file system is used beyond spec.storage.autoGrow.thresholdPercent, and the NodeClass permits \
            no more storage, or is not there for this namespace: raise its spec.limits.storage or \
            spec.limits.totalStorage, or free space in the database",
        ),
        (AutoGrowState::Unmeasured, Some(Unmeasured::Unreachable)) => unknown(
            "the volume does not grow by itself, since the kubelet of the machine does not answer the \
            operator: its port must be open to the operator, and its certificate be of the cluster's \
            certificate authority (docs/storage.md)",
        ),
        (AutoGrowState::Unmeasured, Some(Unmeasured::NoAccount)) => unknown(
            "the volume does not grow by itself, since the operator has no account as which it asks kubelets: \
            upgrade the chart, or set --kubelet-account (docs/storage.md)",
        ),
        (AutoGrowState::Unmeasured, Some(Unmeasured::Forbidden)) => unknown(
            "the volume does not grow by itself, since the account of --kubelet-account may not get \
            nodes/stats: grant it that right (docs/storage.md)",
        ),
        _ => None,
    }
}

/// The retention record is held for this Database.
pub fn record_held(record: &str) -> String {
    format!("PersistentVolume {record} is held for this Database, which adopts the volume that it records")
}

/// The Secret of the credentials was created from the retained one.
pub fn credentials_adopted(secret: &str, retained: &str) -> String {
    format!("Secret {secret} holds the credentials that were retained as Secret {retained}")
}

/// The StatefulSet was adopted.
pub fn adopted(name: &str) -> String {
    format!("StatefulSet {name} was adopted; its pod goes on running as it was")
}

/// The database goes back to what it ran as before.
pub fn goes_back(message: &str) -> String {
    format!("the pod did not start as the spec requests, and goes back to what it ran as before: {message}")
}

/// The StatefulSet was created, or has a new template.
pub fn stateful_set_applied(name: &str, is_new: bool) -> String {
    if is_new {
        format!("StatefulSet {name} was created")
    } else {
        format!(
            "StatefulSet {name} has a new \
        template"
        )
    }
}

/// An object was changed outside Freehold, and is restored next.
pub fn altered(object: &ObjectName) -> String {
    let object = object.describe();
    format!(
        "{object} was changed outside Freehold, and is being restored; the running pod is not restarted for \
         it"
    )
}

/// The StatefulSet pulls its image from where the NodeClass says now.
pub fn image_source_changed(name: &str) -> String {
    format!(
        "StatefulSet {name} pulls its image from where the NodeClass says now; the running pod is not \
         restarted for it"
    )
}

/// The StatefulSet was scaled to zero.
pub fn engine_stopping(name: &str) -> String {
    format!("StatefulSet {name} is being stopped")
}

/// A Node was created, perhaps to replace another.
pub fn node_created(node: &Node, replacement: Option<&Replacement>) -> String {
    let created = format!("created Node {} ({})", node.name_any(), node.spec.instance_types.join(", "));
    replacement.map_or_else(
        || created.clone(),
        |Replacement { from, cause, .. }| format!("{created} to replace Node {from}: {cause}"),
    )
}

/// A Node was deleted.
pub fn node_deleted(name: &str, cause: &str) -> String {
    format!("Node {name} is being deleted: {cause}")
}

/// What the database begins with was decided.
pub fn restore_decided(restored: &Restored) -> String {
    let at = restored.taken_at.as_ref().map(|at| format!(" of {}", at.0)).unwrap_or_default();
    format!("the volume is created from snapshot {}{at}", restored.snapshot_id)
}

/// The engine is stopped for a restore in place.
pub fn stopped_for_restore(note: &str) -> String {
    format!("a restore in place: {note}")
}

/// The engine is stopped to go back from a restore in place.
pub fn data_goes_back(message: &str) -> String {
    format!("the database goes back to the data that it had: {message}")
}

/// The engine serves with the data of a backup that was restored in place.
pub fn restored_in_place(record: &RestoredInPlace) -> String {
    let FormerData { volume_id, persistent_volume_name, .. } = &record.former;
    format!(
        "the engine serves with the data of snapshot {}. The EBS volume {volume_id} with the data of before is \
        retained; its record is PersistentVolume {persistent_volume_name}",
        record.backup.snapshot_id
    )
}

/// The Volume was created.
pub fn volume_created(name: &str, volume: &Volume) -> String {
    format!("created Volume {name} of {} in {}", volume.spec.size, volume.spec.zone)
}

/// The Volume's spec was changed.
pub fn volume_changed(name: &str, patch: &serde_json::Value) -> String {
    format!("Volume {name} was updated to the spec: {patch}")
}

/// The Volume was deleted.
pub fn volume_deleted(name: &str) -> String {
    format!("Volume {name} is being deleted according to its deletionPolicy")
}

/// The credentials were retained.
pub fn credentials_retained(secret: &str) -> String {
    format!("the credentials are retained with the data, as Secret {secret}")
}

/// Another password is in force.
pub fn password_rotated(secret: &str, generation: i64) -> String {
    format!("password generation {generation} is in force, and in Secret {secret}")
}

/// A condition became bad, or is bad for another reason.
pub fn condition(reason: &str, message: &str) -> String {
    format!("{reason}: {message}")
}
