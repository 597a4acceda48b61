//! The sentences of a Volume's waits and conditions, and of its retention record. Pure.

mod adopted;
mod creation;
mod deletion;
pub mod events;
mod modification;

use super::wait::VolumeWait;
use crate::api::VolumeId;
use crate::controller::messages::FIRST_SYNC;

/// Condition Created, when it is true.
pub const CREATED: &str = "the EBS volume exists";
/// Condition Bound, when it is true.
pub const BOUND: &str = "the PersistentVolume and the claim are bound to each other";
/// Condition Modified, when it is true.
pub const MODIFIED: &str = "size, type, IOPS and throughput are as wanted";
/// Condition Modified, when it is true for a volume that would be released.
pub const NOT_MODIFIED: &str = "the EBS volume is not modified while spec.release is true";
/// Condition Ready, when it is true.
pub const READY: &str = "the volume is as wanted and bound";
/// Condition Orphaned, when it is true.
pub const ORPHANED: &str = "no Database owns this Volume any more: its Database was deleted with the \
    propagation policy Orphan. The EBS volume stays as it is. To release it, delete the Node of that \
    Database, then this Volume: spec.deletionPolicy of this Volume says what becomes of the data";
/// Why the retention record exists: the namespace or a resource definition was deleted.
pub const RETAINED_BY_TEARDOWN: &str = "its namespace or Freehold's resource definitions were deleted, which \
    keeps every volume";
/// Why the retention record exists: the Database was to be deleted without what belongs to it.
pub const RETAINED_BY_ORPHANING: &str = "the Database was deleted with the propagation policy Orphan, which \
    keeps every volume";
/// Why the retention record exists: the data was restored in place.
pub const RETAINED_BY_RESTORE: &str = "spec.restoreInPlace of the Database replaced the data, which keeps the \
    volume that had it";
/// Why the retention record exists: the deletion policy.
pub const RETAINED_BY_POLICY: &str = "the Database was deleted under deletionPolicy Retain";

impl VolumeWait {
    /// For the conditions: what is waited for, why, and what a person can do about it.
    pub fn message(&self) -> String {
        match self {
            Self::AddingFinalizer => "adding the Freehold finalizer to the Volume".to_owned(),
            Self::FirstSync => FIRST_SYNC.to_owned(),
            Self::InvalidSize(size) => format!(
                "spec.size {size} is not a whole number of GiB or TiB: set a size such as 100Gi or 2Ti"
            ),
            Self::ClassNotFound(class) => {
                format!("NodeClass {class} does not exist: create it, or name another NodeClass")
            }
            Self::Blocked(call_blocked) => call_blocked.message(),
            Self::Missing(id) => {
                format!("EC2 does not list EBS volume {id}, which may hold data; still searching")
            }
            Self::WithoutTags(id) => {
                format!("EC2 still has EBS volume {id}, without this Volume's tags: restore the tags")
            }
            Self::Broken(id) => format!(
                "EC2 shows EBS volume {id} in the state error: inspect it in EC2 (often a KMS key problem). \
                If it never held data, delete it there, and a new one is created"
            ),
            Self::Lost { volume, id } => format!(
                "the EBS volume of Volume {volume} has held data and is gone (EC2 no longer knows EBS volume \
                {id}): it is not replaced by an empty one; restore a snapshot into a new Database"
            ),
            Self::Creation(wait) => wait.message(),
            Self::Adoption(wait) => wait.message(),
            Self::Adopted(wait) => wait.message(),
            Self::Binding(wait) => wait.message(),
            Self::Modification(wait) => wait.message(),
            Self::Deletion(wait) => wait.message(),
            Self::Snapshot(wait) => wait.message(),
        }
    }
}

fn list(ids: &[VolumeId]) -> String {
    ids.iter().map(|id| id.0.as_str()).collect::<Vec<_>>().join(", ")
}
