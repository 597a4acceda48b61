//! The sentences of a Volume that is being deleted. Pure.

use super::list;
use crate::api::keys;
use crate::controller::volume::wait::deletion::{DeletionWait, SnapshotWait};

impl DeletionWait {
    pub(super) fn message(&self) -> String {
        match self {
            Self::OtherFinalizers => "waiting for other controllers to remove their finalizers from the \
                Volume"
                .to_owned(),
            Self::DatabaseRemains => {
                "the Volume was deleted; waiting for its Database, which decides what becomes of the EBS volume \
                once the Database is deleted, too: nothing is deleted, retained or released before"
                    .to_owned()
            }
            Self::ClaimRemains(claim) => {
                format!(
                    "PersistentVolumeClaim {claim} must be deleted first; Kubernetes keeps it while a pod \
                    uses it"
                )
            }
            Self::Recording(id, found) => {
                format!("{}; applying the deletion policy", found.message(id))
            }
            Self::Several(ids) => format!(
                "several EBS volumes carry this Volume's tags ({}): remove the tag {} from all but one",
                list(ids),
                keys::VOLUME_UID_TAG
            ),
            Self::NotResent => "nothing is created for a Volume that is being deleted".to_owned(),
            Self::NotDetached(id) => format!("the EBS CSI driver has not detached EBS volume {id} yet"),
            Self::Unsafe(blocker) => blocker.message(),
            Self::DeletingVolume(id) => format!("EBS volume {id} is being deleted"),
            Self::ProvingAbsence(id) => format!("EC2 does not list EBS volume {id}; proving its absence"),
            Self::Retaining { id, record } => {
                format!("EBS volume {id} is retained; PersistentVolume {record} is its retention record")
            }
            Self::RecordDeleted { id, record } => {
                format!(
                    "EBS volume {id} is retained; PersistentVolume {record} is being deleted and is created \
                    again once it is gone"
                )
            }
            Self::RecordNotOurs { id, record, uid } => format!(
                "EBS volume {id} is retained without a record: restore the label {}={uid} on \
                PersistentVolume {record}",
                keys::VOLUME_UID_LABEL
            ),
            Self::Gone => "the EBS volume is gone".to_owned(),
        }
    }
}

impl SnapshotWait {
    pub(super) fn message(&self) -> String {
        match self {
            Self::NotDetached(id) => format!("EBS volume {id} must be detached before its final snapshot"),
            Self::FirstSync => {
                "waiting for the first full sync of EC2's snapshots since the operator started".to_owned()
            }
            Self::Recording(snapshot) => {
                format!("snapshot {snapshot} of the EBS volume was taken; recording its id")
            }
            Self::Requesting(id) => format!("requesting the final snapshot of EBS volume {id}"),
            Self::Pending(snapshot) => {
                format!("snapshot {snapshot} is not complete yet; the EBS volume is kept until it is")
            }
            Self::Failed { snapshot, id } => format!(
                "the final snapshot {snapshot} failed, so EBS volume {id} is kept: set deletionPolicy to \
                Retain, or delete the failed snapshot in EC2 and have status.finalSnapshot removed"
            ),
            Self::InDoubt(id) => format!(
                "the final snapshot of EBS volume {id} is unconfirmed (EC2 may have taken it): EC2 is \
                searched until its absence is proven"
            ),
            Self::NotListed(snapshot) => {
                format!("EC2 does not list snapshot {snapshot} yet; the EBS volume is kept")
            }
        }
    }
}
