//! The notes of a Volume's events. Pure.

use crate::api::volume::VolumeCreation;
use crate::api::{Size, SnapshotId, VolumeId};
use crate::cloud::{CloudError, ModifyVolumeRequest};

/// Event VolumeRecorded.
pub fn recorded(id: &VolumeId) -> String {
    format!("EBS volume {id} was found in EC2 and belongs to this Volume")
}

/// Event VolumeCreated.
pub fn created(id: &VolumeId, creation: &VolumeCreation) -> String {
    format!(
        "EBS volume {id} ({} GiB {} in {}) is created",
        creation.size, creation.volume_type, creation.zone
    )
}

/// Event CreationRefused.
pub fn creation_refused(error: &CloudError) -> String {
    format!("EC2 refused to create the EBS volume: {error}")
}

/// Event VolumeModifying.
pub fn modifying(request: &ModifyVolumeRequest) -> String {
    format!(
        "modifying EBS volume {} to {} GiB {}{}{}",
        request.id,
        request.size,
        request.volume_type,
        request.iops.map(|iops| format!(", {iops} IOPS")).unwrap_or_default(),
        request.throughput.map(|throughput| format!(", {throughput} MiB/s")).unwrap_or_default()
    )
}

/// Event ModificationRefused.
pub fn modification_refused(error: &CloudError) -> String {
    error.to_string()
}

/// Event VolumeAdopted.
pub fn adopted(id: &VolumeId) -> String {
    format!("EBS volume {id} was adopted and belongs to this Volume")
}

/// Event FinalSnapshotStarted.
pub fn snapshot_started(snapshot: &SnapshotId, id: &VolumeId) -> String {
    format!("EC2 is taking the final snapshot {snapshot} of EBS volume {id}")
}

/// Event FinalSnapshotRefused.
pub fn snapshot_refused(error: &CloudError) -> String {
    error.to_string()
}

/// Event VolumeDeleted.
pub fn deleted(id: &VolumeId, snapshot: Option<&SnapshotId>) -> String {
    match snapshot {
        Some(snapshot) => format!("EBS volume {id} is deleted; its final snapshot is {snapshot}"),
        None => format!("EBS volume {id} is deleted"),
    }
}

/// Event VolumeReady.
pub fn ready(size: Option<&Size>) -> String {
    format!("the volume is bound and has {}", size.map(ToString::to_string).unwrap_or_default())
}
