//! The sentences of an EBS volume that is not bound or not as wanted yet. Pure.

use crate::controller::volume::expansion::{NotExpandable, permitted_by};
use crate::controller::volume::wait::modification::{BindingWait, ModificationWait};
use crate::time::whole_second;

impl BindingWait {
    pub(super) fn message(&self) -> String {
        match self {
            Self::CreatingPersistentVolume => "creating the PersistentVolume".to_owned(),
            Self::CreatingClaim => "creating the PersistentVolumeClaim".to_owned(),
            Self::NameConflict { kind, name } => {
                format!(
                    "{kind} {name} exists and does not belong to this Volume; it is not modified: delete or \
                    rename it"
                )
            }
            Self::OtherVolume { persistent_volume, named, id } => format!(
                "PersistentVolume {persistent_volume} names EBS volume {named}, but this Volume's EBS volume \
                is {id}: decide manually which one holds the data"
            ),
            Self::ClaimDeleted(claim) => {
                format!(
                    "PersistentVolumeClaim {claim} was deleted outside Freehold; it is created again once it \
                    is gone"
                )
            }
            Self::NotBound { claim, persistent_volume } => {
                format!(
                    "PersistentVolumeClaim {claim} and PersistentVolume {persistent_volume} are not bound to \
                    each other yet"
                )
            }
        }
    }
}

impl ModificationWait {
    pub(super) fn message(&self) -> String {
        match self {
            Self::NotExpandable { claim, wanted, cause } => not_expandable(claim, *wanted, cause),
            Self::Refused(refusal) => refusal.message.clone(),
            Self::Running { id, state } => {
                format!(
                    "EBS is modifying volume {id} ({state:?}); the next modification follows when this one \
                    is completed"
                )
            }
            Self::Coalescing(id) => {
                format!("EBS volume {id} will be modified; coalescing the edits of a few seconds")
            }
            Self::NotShown(id) => {
                format!("the modification of EBS volume {id} was requested, and EC2 does not show it yet")
            }
            Self::Budget { id, allowed, until } => format!(
                "EBS volume {id} is modified after {}: EBS allows {allowed} modifications of a volume in a \
                day, and all are used",
                whole_second(*until)
            ),
            Self::LookingUp(id) => {
                format!("checking whether a modification of EBS volume {id} is still running")
            }
            Self::Modifying { id, size, volume_type } => {
                format!("modifying EBS volume {id} to {size} GiB {volume_type}")
            }
            Self::GrowingClaim { claim, size } => {
                format!("changing PersistentVolumeClaim {claim} to {size} GiB")
            }
            Self::GrowingFileSystem(size) => format!(
                "the EBS volume has {size} GiB; waiting for the CSI driver and the kubelet to expand the \
                file system (the pod must be running)"
            ),
        }
    }
}

fn not_expandable(claim: &str, wanted: i32, cause: &NotExpandable) -> String {
    let (why, way_out) = match cause {
        NotExpandable::WithoutClass => (
            "it names no StorageClass".to_owned(),
            "create it again with one (docs/adopt.md, \"A claim that cannot grow\")".to_owned(),
        ),
        NotExpandable::ClassNotFound(name) => {
            (format!("its StorageClass {name} is not there"), format!("create StorageClass {name} again"))
        }
        NotExpandable::ClassFixed(name) => (
            format!("its StorageClass {name} does not set allowVolumeExpansion"),
            format!("run {}", permitted_by(name)),
        ),
    };
    format!(
        "PersistentVolumeClaim {claim} cannot be expanded to {wanted} GiB: {why}; {way_out}, or set the size \
        back"
    )
}
