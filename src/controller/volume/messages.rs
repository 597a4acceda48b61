//! Every sentence of the Volume controller that a person reads: waits, conditions and event notes. Pure.
//!
//! A sentence names its subject first, and is the same as long as the situation is the same.

use super::wait::VolumeWait;
use super::wait::creation::{AdoptionRefusal, AdoptionWait, CreationWait, Found};
use super::wait::deletion::{DeletionWait, SnapshotWait};
use super::wait::modification::{BindingWait, ModificationWait};

use crate::api::node::Refusal;
use crate::api::volume::VolumeLaunch;
use crate::api::{Size, SnapshotId, VolumeId, keys};
use crate::cloud::{CloudError, ModifyVolumeRequest};
use crate::controller::conditions::whole_second;
use crate::controller::creation::judge::Doubt;

/// Condition Created, when it is true.
pub const CREATED: &str = "the EBS volume exists";

/// Condition Bound, when it is true.
pub const BOUND: &str = "the PersistentVolume and the claim are bound to each other";

/// Condition Modified, when it is true.
pub const MODIFIED: &str = "size, type, IOPS and throughput are as wanted";

/// Condition Ready, when it is true.
pub const READY: &str = "the volume is as wanted and bound";

/// A condition after the first one that is not true.
pub const EARLIER_STEP: &str = "waiting for an earlier step";

/// Condition Stalled, when it is false.
pub const NOT_STALLED: &str = "no manual action required";

/// Why the retention record exists: the namespace or a resource definition was deleted.
pub const RETAINED_BY_TEARDOWN: &str = "its namespace or Freehold's resource definitions were deleted, which keeps every volume";

/// Why the retention record exists: the deletion policy.
pub const RETAINED_BY_POLICY: &str = "the Database was deleted under deletionPolicy Retain";

impl VolumeWait {
    /// For the conditions: what is waited for, why, and what a person can do about it.
    pub fn message(&self) -> String {
        match self {
            Self::AddingFinalizer => "adding the Freehold finalizer to the Volume".to_owned(),
            Self::FirstSync => "waiting for the first full EC2 inventory sync since the operator started".to_owned(),
            Self::InvalidSize(size) => format!("spec.size {size} is not a whole number of GiB or TiB: set a size such as 100Gi or 2Ti"),
            Self::ClassNotFound(class) => format!("NodeClass {class} does not exist: create it, or name another NodeClass"),
            Self::Blocked(held_up) => held_up.message.clone(),
            Self::Missing(id) => format!("EC2 does not list EBS volume {id}, which may hold data; still searching"),
            Self::Broken(id) => format!(
                "EC2 shows EBS volume {id} in the state error: inspect it in EC2 (often a KMS key problem). If it never held data, delete it there, and a new one is created"
            ),
            Self::Lost { volume, id } => format!(
                "the EBS volume of Volume {volume} has held data and is gone (EC2 no longer knows EBS volume {id}): it is not replaced by an empty one; restore a snapshot into a new Database"
            ),
            Self::Creation(wait) => creation(wait),
            Self::Adoption(wait) => adoption(wait),
            Self::Binding(wait) => binding(wait),
            Self::Modification(wait) => modification(wait),
            Self::Deletion(wait) => deletion(wait),
            Self::Snapshot(wait) => snapshot(wait),
        }
    }
}

fn creation(wait: &CreationWait) -> String {
    let answer = |refusal: &Refusal| format!("{} ({})", refusal.code, refusal.message);
    match wait {
        CreationWait::Recording(id, found) => format!("{}; recording its id", found_volume(id, *found)),
        CreationWait::Several(ids) => format!(
            "several EBS volumes carry this Volume's tags ({}): set status.volumeID to the one with the data, or remove the tag {} from the others",
            list(ids),
            keys::VOLUME_UID_TAG
        ),
        CreationWait::Quota => {
            "a quota of the AWS account is reached: request an increase from AWS. The call is repeated every few minutes".to_owned()
        }
        CreationWait::Throttled => "EC2 throttled the call and created nothing; retrying with the same client token".to_owned(),
        CreationWait::Resending(attempt) => {
            format!("creation attempt {attempt} is unconfirmed (no response); retrying with the same client token")
        }
        CreationWait::InDoubt { attempt, doubt } => {
            format!("creation attempt {attempt} is unconfirmed (it may have created an EBS volume): {}", in_doubt(*doubt))
        }
        CreationWait::Forbidden(refusal) => format!(
            "EC2 refused to create the EBS volume for lack of permission: {}; grant the permission. Freehold retries by itself",
            answer(refusal)
        ),
        CreationWait::NoCapacity(refusal) => {
            format!("EC2 has no capacity for the EBS volume: {}; Freehold retries by itself", answer(refusal))
        }
        CreationWait::Invalid(refusal) => {
            format!("EC2 refused to create the EBS volume as invalid: {}; change spec.storage of the Database", answer(refusal))
        }
        CreationWait::Requesting { volume_type, size, zone } => format!("requesting an EBS volume of {size} GiB {volume_type} in {zone}"),
        CreationWait::Creating(id) => format!("EC2 is creating EBS volume {id}"),
        CreationWait::NotListed(id) => format!("EC2 does not list the new EBS volume {id} yet"),
    }
}

fn in_doubt(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::FirstLookUp => "waiting for the first full EC2 inventory sync since the operator started",
        Doubt::Pause => "the identical call is made again shortly",
        Doubt::Deleting => "the Volume is being deleted, so EC2 is searched until it is proven that nothing was created",
        Doubt::TokenTooOld => {
            "its client token is too old for the identical call, so EC2 is searched until it is proven that nothing was created"
        }
        Doubt::RequestChanged => {
            "the NodeClass has changed, so the identical call cannot be made again; EC2 is searched until it is proven that nothing was created"
        }
        Doubt::RefusedAfterDoubt => "EC2 refuses the call now, so EC2 is searched until it is proven that nothing was created",
    }
}

fn found_volume(id: &VolumeId, found: Found) -> String {
    match found {
        Found::ByAttempt => format!("EBS volume {id} was created by this Volume's attempt"),
        Found::ByTags => format!("EBS volume {id} has this Volume's tags"),
        Found::ByPersistentVolume => format!("EBS volume {id} is named by this Volume's PersistentVolume"),
    }
}

fn adoption(wait: &AdoptionWait) -> String {
    match wait {
        AdoptionWait::NotListed { id, record } => {
            format!("EC2 does not list EBS volume {id} with the tags of PersistentVolume {record}; still searching")
        }
        AdoptionWait::Refused { record, cause } => {
            format!("the volume that PersistentVolume {record} records cannot be adopted: {}", adoption_refusal(cause))
        }
        AdoptionWait::NotAvailable { id, state } => {
            format!("EBS volume {id} is not available yet ({state:?}): it is adopted once it is detached from every machine")
        }
        AdoptionWait::Adopting(id) => format!("adopting the retained EBS volume {id}"),
        AdoptionWait::Tagging(id) => format!("tagging the adopted EBS volume {id} with this Volume's tags"),
        AdoptionWait::TagsNotShown(id) => format!("EC2 does not show the new tags of the adopted EBS volume {id} yet"),
        AdoptionWait::ClosingRecord(id) => format!("EBS volume {id} is adopted; deleting its former retention record"),
    }
}

fn adoption_refusal(cause: &AdoptionRefusal) -> String {
    match cause {
        AdoptionRefusal::NoRecord { namespace } => {
            format!("the PersistentVolume is not a retention record of namespace {namespace}")
        }
        AdoptionRefusal::NotHeld => "the retention record is not held by this Volume's Database".to_owned(),
        AdoptionRefusal::FileSystem(wanted) => format!("its file system is not {wanted}"),
        AdoptionRefusal::Tag(id) => format!("EBS volume {id} does not carry the tag {} of this namespace", keys::DATABASE_TAG),
        AdoptionRefusal::Zone { id, zone, wanted } => format!("EBS volume {id} is in {zone}, not in {wanted}"),
        AdoptionRefusal::Larger { id, size } => {
            format!("EBS volume {id} has {size} GiB, and EBS volumes only grow: ask for {size} GiB or more")
        }
    }
}

fn binding(wait: &BindingWait) -> String {
    match wait {
        BindingWait::CreatingPersistentVolume => "creating the PersistentVolume".to_owned(),
        BindingWait::CreatingClaim => "creating the PersistentVolumeClaim".to_owned(),
        BindingWait::NameConflict { kind, name } => {
            format!("{kind} {name} exists and does not belong to this Volume; it is not modified: delete or rename it")
        }
        BindingWait::OtherVolume { persistent_volume, named, id } => format!(
            "PersistentVolume {persistent_volume} names EBS volume {named}, but this Volume's EBS volume is {id}: decide manually which one holds the data"
        ),
        BindingWait::ClaimDeleted(claim) => {
            format!("PersistentVolumeClaim {claim} was deleted outside Freehold; it is created again once it is gone")
        }
        BindingWait::NotBound { claim, persistent_volume } => {
            format!("PersistentVolumeClaim {claim} and PersistentVolume {persistent_volume} are not bound to each other yet")
        }
    }
}

fn modification(wait: &ModificationWait) -> String {
    match wait {
        ModificationWait::ShrinkRefused { wanted, size } => format!(
            "spec.size asks for {wanted} GiB, but the EBS volume has {size} GiB, and EBS volumes only grow: set spec.size to {size} GiB or more"
        ),
        ModificationWait::Refused(refusal) => refusal.message.clone(),
        ModificationWait::Running { id, state } => {
            format!("EBS is modifying volume {id} ({state:?}); the next modification follows when this one is completed")
        }
        ModificationWait::Coalescing(id) => format!("EBS volume {id} will be modified; coalescing the edits of a few seconds"),
        ModificationWait::NotShown(id) => format!("the modification of EBS volume {id} was requested, and EC2 does not show it yet"),
        ModificationWait::Budget { id, allowed, until } => format!(
            "EBS volume {id} is modified after {}: EBS allows {allowed} modifications of a volume in a day, and all are used",
            whole_second(*until)
        ),
        ModificationWait::LookingUp(id) => format!("checking whether a modification of EBS volume {id} is still running"),
        ModificationWait::Modifying { id, size, volume_type } => format!("modifying EBS volume {id} to {size} GiB {volume_type}"),
        ModificationWait::GrowingClaim { claim, size } => format!("changing PersistentVolumeClaim {claim} to {size} GiB"),
        ModificationWait::GrowingFileSystem(size) => format!(
            "the EBS volume has {size} GiB; waiting for the CSI driver and the kubelet to expand the file system (the pod must be running)"
        ),
    }
}

fn deletion(wait: &DeletionWait) -> String {
    match wait {
        DeletionWait::OtherFinalizers => "waiting for other controllers to remove their finalizers from the Volume".to_owned(),
        DeletionWait::DatabaseRemains => {
            "the Volume was deleted, but its Database was not: nothing is deleted or retained before the Database is deleted, too"
                .to_owned()
        }
        DeletionWait::ClaimRemains(claim) => {
            format!("PersistentVolumeClaim {claim} must be deleted first; Kubernetes keeps it while a pod uses it")
        }
        DeletionWait::Recording(id, found) => format!("{}; applying the deletion policy", found_volume(id, *found)),
        DeletionWait::Several(ids) => format!(
            "several EBS volumes carry this Volume's tags ({}): remove the tag {} from all but one",
            list(ids),
            keys::VOLUME_UID_TAG
        ),
        DeletionWait::NotResent => "nothing is created for a Volume that is being deleted".to_owned(),
        DeletionWait::NotDetached(id) => format!("the EBS CSI driver has not detached EBS volume {id} yet"),
        DeletionWait::Unsafe(blocker) => blocker.message.clone(),
        DeletionWait::DeletingVolume(id) => format!("EBS volume {id} is being deleted"),
        DeletionWait::ProvingAbsence(id) => format!("EC2 does not list EBS volume {id}; proving its absence"),
        DeletionWait::Retaining { id, record } => format!("EBS volume {id} is retained; PersistentVolume {record} is its retention record"),
        DeletionWait::RecordDeleted { id, record } => {
            format!("EBS volume {id} is retained; PersistentVolume {record} is being deleted and is created again once it is gone")
        }
        DeletionWait::RecordNotOurs { id, record, uid } => format!(
            "EBS volume {id} is retained without a record: restore the label {}={uid} on PersistentVolume {record}",
            keys::VOLUME_UID_LABEL
        ),
        DeletionWait::Gone => "the EBS volume is gone".to_owned(),
    }
}

fn snapshot(wait: &SnapshotWait) -> String {
    match wait {
        SnapshotWait::NotDetached(id) => format!("EBS volume {id} must be detached before its final snapshot"),
        SnapshotWait::FirstSync => "waiting for the first full sync of EC2's snapshots since the operator started".to_owned(),
        SnapshotWait::Recording(snapshot) => format!("snapshot {snapshot} of the EBS volume was taken; recording its id"),
        SnapshotWait::Requesting(id) => format!("requesting the final snapshot of EBS volume {id}"),
        SnapshotWait::Pending(snapshot) => format!("snapshot {snapshot} is not complete yet; the EBS volume is kept until it is"),
        SnapshotWait::Failed { snapshot, id } => format!(
            "the final snapshot {snapshot} failed, so EBS volume {id} is kept: set deletionPolicy to Retain, or delete the failed snapshot in EC2 and have status.finalSnapshot removed"
        ),
        SnapshotWait::InDoubt(id) => format!(
            "the final snapshot of EBS volume {id} is unconfirmed (EC2 may have taken it): EC2 is searched until its absence is proven"
        ),
        SnapshotWait::NotListed(snapshot) => format!("EC2 does not list snapshot {snapshot} yet; the EBS volume is kept"),
    }
}

fn list(ids: &[VolumeId]) -> String {
    ids.iter().map(|id| id.0.as_str()).collect::<Vec<_>>().join(", ")
}

/// Condition, after the EBS volume seemed gone: EC2 lists it when asked by its id.
pub fn still_there(id: &VolumeId) -> String {
    format!("EC2 still has EBS volume {id}, without this Volume's tags: restore the tags")
}

/// Event VolumeRecorded.
pub fn recorded(id: &VolumeId) -> String {
    format!("EBS volume {id} was found in EC2 and belongs to this Volume")
}

/// Event VolumeCreated.
pub fn created(id: &VolumeId, launch: &VolumeLaunch) -> String {
    format!("EBS volume {id} ({} GiB {} in {}) is created", launch.size, launch.volume_type, launch.zone)
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
    format!("the retained EBS volume {id} was adopted and belongs to this Volume")
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
pub fn deleted(id: &VolumeId) -> String {
    format!("EBS volume {id} is deleted")
}

/// Event VolumeReady.
pub fn ready(size: Option<&Size>) -> String {
    format!("the volume is bound and has {}", size.map(ToString::to_string).unwrap_or_default())
}
