//! What a plan of the Volume controller is made of: the actions, how far the Volume is, and what is waited
//! for.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};

use crate::api::creation::Attempt;
use crate::api::volume::{ModificationRecord, VolumeCreation};
use crate::api::{SnapshotId, VolumeId};
use crate::cloud::ModifyVolumeRequest;
use crate::controller::volume::adopted::Change;
use crate::controller::volume::wait::VolumeWait;
use crate::time::until;

/// What one pass does and what it waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In this order.
    pub actions: Vec<Action>,
    /// What the Volume waits for; `None` when it is as it should be.
    pub waiting: Option<VolumeWait>,
    /// How far it is, for the conditions.
    pub stage: Stage,
    /// The next reconcile starts at the latest after this time, even without a watch event.
    pub requeue: Option<Duration>,
    /// What is about to change in EC2 and is looked up often.
    pub interest: VolumeInterest,
    /// A change of size, type, IOPS or throughput is due, and EC2 does not show it.
    pub due: bool,
    /// What this pass has to read from EC2 before it can decide: it is read, and the plan is made again.
    pub look_up: Option<VolumeId>,
}

/// What of a Volume is about to change in EC2 and is looked up often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeInterest {
    /// Nothing.
    Settled,
    /// The EBS volume.
    Volume,
    /// The EBS volume and its running modification.
    Modification,
    /// The EBS volume and its final snapshot.
    Snapshot,
}

/// How far a Volume is: what has been seen to be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// There is no EBS volume to be seen.
    Nothing,
    /// The EBS volume exists.
    Created,
    /// The PersistentVolume and the claim are bound to each other.
    Bound,
    /// Size, type, IOPS and throughput are as wanted, everywhere.
    AsWanted,
}

impl Plan {
    /// Whether anything is done but what concerns this object alone, and is refused if that has changed.
    pub(in crate::controller::volume) fn acts(&self) -> bool {
        self.actions.iter().any(|action| *action != Action::AddFinalizer)
    }

    /// Whether it does more than to end the claim and to write down what was found. What becomes of the data
    /// of a Volume that is being deleted depends on what is torn down around it.
    pub(in crate::controller::volume) fn ends_data(&self) -> bool {
        let is_of_the_claim = |action: &Action| {
            matches!(
                action,
                Action::FreeClaim(_)
                    | Action::DeleteClaim(_)
                    | Action::RecordVolume(_)
                    | Action::RecordSnapshot(_)
                    | Action::NoteDeleted
            )
        };
        !self.actions.iter().all(is_of_the_claim)
    }

    /// Whether it rests on that nothing has the EBS volume attached.
    pub(in crate::controller::volume) fn needs_detached(&self) -> bool {
        self.actions.iter().any(|it| matches!(it, Action::DeleteVolume(_) | Action::Snapshot(..)))
    }

    /// Everything is as wanted: nothing is done, and nothing waited for.
    pub(in crate::controller::volume) fn done() -> Self {
        Self {
            actions: Vec::new(),
            waiting: None,
            stage: Stage::AsWanted,
            requeue: None,
            interest: VolumeInterest::Settled,
            due: false,
            look_up: None,
        }
    }

    pub(in crate::controller::volume) fn act(
        stage: Stage,
        actions: Vec<Action>,
        wait: impl Into<VolumeWait>,
    ) -> Self {
        Self { actions, ..Self::wait(stage, wait) }
    }

    pub(in crate::controller::volume) fn wait(stage: Stage, wait: impl Into<VolumeWait>) -> Self {
        Self { waiting: Some(wait.into()), stage, ..Self::done() }
    }

    /// The EBS volume is about to change in EC2.
    pub(in crate::controller::volume) fn pending(self) -> Self {
        self.interested_in(VolumeInterest::Volume)
    }

    pub(in crate::controller::volume) fn interested_in(self, interest: VolumeInterest) -> Self {
        Self { interest, ..self }
    }

    pub(in crate::controller::volume) fn until(self, when: Timestamp, now: Timestamp) -> Self {
        self.after(until(when, now))
    }

    pub(in crate::controller::volume) fn after(self, requeue: Duration) -> Self {
        Self { requeue: Some(requeue), ..self }
    }
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put our finalizer on the Volume.
    AddFinalizer,
    /// Intent, CreateVolume, id: one compound action.
    Create(Box<VolumeCreation>),
    /// CreateVolume again, identical.
    Resend,
    /// Announce that this retained volume, or one in use, is this Volume's from now on, then tag it so: one
    /// compound action.
    Adopt(VolumeId, BTreeMap<String, String>),
    /// CreateTags again, identical.
    Retag(VolumeId, BTreeMap<String, String>),
    /// Make the PersistentVolume of an adopted volume the record of this Volume; or any Volume's its claim's
    /// again, or one that outlives its claim.
    RecordAdopted(Box<Change<PersistentVolume>>),
    /// Make the claim of an adopted volume this Volume's.
    OwnClaim(Box<Change<PersistentVolumeClaim>>),
    /// Make the claim of an adopted volume what it was before.
    DisownClaim(Box<Change<PersistentVolumeClaim>>),
    /// Make the PersistentVolume of an adopted volume what it was before.
    GiveBackRecord(Box<Change<PersistentVolume>>),
    /// DeleteTags of the tags that the adoption has put on.
    Untag(VolumeId, BTreeMap<String, String>),
    /// Release the record of a retained volume that was never adopted.
    ReleaseRecord(Box<PersistentVolume>),
    /// Record the volume that a look-up found.
    RecordVolume(VolumeId),
    /// Record that the volume may hold data from now on, then make its PersistentVolume.
    CreatePersistentVolume(Box<PersistentVolume>),
    /// Let a PersistentVolume whose claim went be claimed again.
    ReopenPersistentVolume(Box<PersistentVolume>),
    /// Make the claim.
    CreateClaim(Box<PersistentVolumeClaim>),
    /// Write the modification down, then ModifyVolume.
    Modify(Box<Modify>),
    /// Ask for the new size in the claim.
    GrowClaim(Box<PersistentVolumeClaim>),
    /// Remove our finalizer from the claim, which may go.
    FreeClaim(Box<PersistentVolumeClaim>),
    /// Delete the claim.
    DeleteClaim(Box<PersistentVolumeClaim>),
    /// Mark the PersistentVolume as the record of what was kept.
    MarkRetained(Box<PersistentVolume>),
    /// Intent, CreateSnapshot with these tags besides those of its owner, id: one compound action.
    Snapshot(VolumeId, Attempt, BTreeMap<String, String>),
    /// Record the final snapshot that a look-up found.
    RecordSnapshot(SnapshotId),
    /// DeleteVolume.
    DeleteVolume(VolumeId),
    /// Record that EC2 shows the volume being deleted.
    NoteDeleted,
    /// Delete the PersistentVolume of a volume that is gone.
    DeletePersistentVolume(Box<PersistentVolume>),
    /// Take our finalizer off the Volume.
    RemoveFinalizer,
}

/// One ModifyVolume, and what is remembered of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Modify {
    /// What is written down before the call.
    pub record: ModificationRecord,
    /// The call.
    pub request: ModifyVolumeRequest,
    /// The last record is of the same wish, and EC2 never carried it out: this one takes its place.
    pub replaces_last: bool,
}
