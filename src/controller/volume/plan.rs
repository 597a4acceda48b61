//! Plan, Volume: what is, what should be, what to do about it. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::{Resource, ResourceExt};

use super::observe::Observed;
use super::{adopting, attempt, build, growth, leaving};
use crate::api::volume::{ModificationRecord, VolumeLaunch};
use crate::api::{ConditionType, Reason, Size, SnapshotId, Volume, VolumeId, VolumeStatus};
use crate::cloud::call::Call;
use crate::cloud::{EbsVolume, ModifyVolumeRequest, VolumeState};
use crate::cluster::finalizer;
use crate::controller::conditions;
use crate::controller::driver::until;
use crate::controller::waiting::{Again, Waiting, again};

/// What one pass does and what it waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In this order.
    pub actions: Vec<Action>,
    /// What the Volume waits for; `None` when it is as it should be.
    pub waiting: Option<Waiting>,
    /// How far it is, for the conditions.
    pub stage: Stage,
    /// Look again at the latest then, though nothing woke us.
    pub again: Option<Duration>,
    /// EC2 is about to change: look often.
    pub pending: bool,
    /// A change of size, type, IOPS or throughput is due, and EC2 does not show it.
    pub due: bool,
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

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put our finalizer on the Volume.
    AddFinalizer,
    /// Ask EC2 for this volume by its id, and stop here if it is there: tags can be taken off.
    ConfirmGone(VolumeId),
    /// Intent, CreateVolume, id: one compound action.
    Create(Box<VolumeLaunch>),
    /// CreateVolume again, identical.
    Resend,
    /// Announce that this kept volume is this Volume's from now on, then tag it so: one compound action.
    Adopt(VolumeId, BTreeMap<String, String>),
    /// CreateTags again, identical.
    Retag(VolumeId, BTreeMap<String, String>),
    /// Give back the record of a kept volume that was never taken.
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
    /// Delete the claim.
    DeleteClaim(Box<PersistentVolumeClaim>),
    /// Mark the PersistentVolume as the record of what was kept.
    MarkRetained(Box<PersistentVolume>),
    /// Announce the final snapshot, then CreateSnapshot.
    Snapshot(VolumeId),
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

impl Plan {
    pub(super) fn act(stage: Stage, actions: Vec<Action>, reason: Reason, message: impl Into<String>) -> Self {
        Self { actions, ..Self::wait(stage, reason, message) }
    }

    pub(super) fn wait(stage: Stage, reason: Reason, message: impl Into<String>) -> Self {
        Self { actions: Vec::new(), waiting: Some(Waiting::on(reason, message)), stage, again: None, pending: false, due: false }
    }

    pub(super) fn stalled(stage: Stage, reason: Reason, message: impl Into<String>) -> Self {
        Self { actions: Vec::new(), waiting: Some(Waiting::stalled(reason, message)), stage, again: None, pending: false, due: false }
    }

    pub(super) fn pending(self) -> Self {
        Self { pending: true, ..self }
    }

    pub(super) fn until(self, when: Timestamp, now: Timestamp) -> Self {
        Self { again: Some(until(when, now)), ..self }
    }
}

/// Decides what to do about a Volume.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    if observed.volume.metadata.deletion_timestamp.is_some() {
        return leaving::plan(observed, now);
    }
    if !finalizer::has(&observed.volume) {
        return Plan::act(Stage::Nothing, vec![Action::AddFinalizer], Reason::Progressing, "the Volume is being taken on");
    }
    if observed.volumes.swept_at.is_none() {
        return Plan::wait(
            Stage::Nothing,
            Reason::AwaitingInventory,
            "the first complete look at EC2 since the operator's start is awaited",
        );
    }
    let Some(size) = observed.volume.spec.size.gib() else {
        return Plan::stalled(
            Stage::Nothing,
            Reason::InvalidSpec,
            format!("spec.size {} is not a whole number of GiB or TiB", observed.volume.spec.size),
        );
    };
    let status = observed.volume.status.clone().unwrap_or_default();
    match (&status.launch, &status.volume_id) {
        (_, Some(id)) => identified(observed, &status, id, size, now),
        (Some(launch), None) => attempt::unidentified(observed, launch, size, now),
        (None, None) => attempt::uncreated(observed, size, now),
    }
}

/// The Volume has an EBS volume.
fn identified(observed: &Observed, status: &VolumeStatus, id: &VolumeId, size: i32, now: Timestamp) -> Plan {
    let seen = observed.volumes.volumes.iter().find(|volume| volume.id == *id);
    match seen.map(|volume| (volume, volume.state)) {
        Some((_, VolumeState::Creating)) => {
            Plan::wait(Stage::Nothing, Reason::Creating, format!("EBS volume {id} is being made")).pending()
        }
        Some((volume, VolumeState::Available | VolumeState::InUse | VolumeState::Unknown)) => present(observed, status, volume, size, now),
        Some((_, VolumeState::Error)) => Plan::stalled(
            Stage::Nothing,
            Reason::VolumeLost,
            format!(
                "EC2 shows EBS volume {id} in the state error: look at it in EC2 (often its KMS key); once it is deleted there and never held data, another is made"
            ),
        ),
        None => adopting::moving(observed, id, now).unwrap_or_else(|| missing(observed, status, id, size, now)),
        Some((_, VolumeState::Deleting | VolumeState::Deleted)) => missing(observed, status, id, size, now),
    }
}

/// EC2 does not show the volume that the status names.
fn missing(observed: &Observed, status: &VolumeStatus, id: &VolumeId, size: i32, now: Timestamp) -> Plan {
    let proven = attempt::proven_absent(observed, status.launch.as_ref()).is_some();
    // What was proven once need not be proven again while EC2 goes on not showing it.
    let was_lost = conditions::find(&status.conditions, ConditionType::Stalled)
        .is_some_and(|stalled| stalled.status == "True" && stalled.reason == Reason::VolumeLost.as_str());
    match (observed.has_held(), proven || was_lost, &status.launch) {
        (true, true, _) => lost(observed, &format!("EC2 no longer knows EBS volume {id}")),
        (true, false, _) => {
            Plan::wait(Stage::Nothing, Reason::VolumeLost, format!("EC2 does not show EBS volume {id}, which has held data; looked for on"))
                .pending()
        }
        // A volume may vanish soon after it was made (a KMS refusal is asynchronous): it never held anything.
        // Pending, since the look-ups that are the proof are forgotten when nothing is awaited any more.
        (false, true, launch) if proven => {
            let attempt = launch.as_ref().map_or(1, |launch| launch.attempt) + 1;
            let mut plan = attempt::next_attempt(observed, attempt, size, now).pending();
            if !plan.actions.is_empty() {
                plan.actions.insert(0, Action::ConfirmGone(id.clone()));
            }
            plan
        }
        (false, _, _) => Plan::wait(Stage::Nothing, Reason::Creating, format!("EC2 does not show EBS volume {id} yet")).pending(),
    }
}

fn lost(observed: &Observed, why: &str) -> Plan {
    Plan::stalled(
        Stage::Nothing,
        Reason::VolumeLost,
        format!(
            "the EBS volume of Volume {} has held data and is gone ({why}): it is not replaced by an empty one; restore a snapshot into a new Database",
            observed.volume.name_any()
        ),
    )
}

/// The EBS volume is there: bound next, then as wanted.
fn present(observed: &Observed, status: &VolumeStatus, volume: &EbsVolume, size: i32, now: Timestamp) -> Plan {
    let storage_class = observed.class.as_ref().map(|class| &class.spec.storage_class_name);
    let Some(persistent_volume) = &observed.persistent_volume else {
        let Some(storage_class) = storage_class else { return attempt::class_not_found(observed, Stage::Created) };
        let size = Size::from_gib(volume.size);
        let built = build::persistent_volume(&observed.volume, &volume.id, &size, storage_class, None);
        let message = "the PersistentVolume is being made";
        return Plan::act(Stage::Created, vec![Action::CreatePersistentVolume(Box::new(built))], Reason::AwaitingBinding, message);
    };
    if !build::is_record_of(persistent_volume, &observed.volume) {
        return conflict("PersistentVolume", &persistent_volume.name_any());
    }
    if let Some(named) = observed.recorded_volume().filter(|named| *named != volume.id) {
        return Plan::stalled(
            Stage::Created,
            Reason::NameConflict,
            format!(
                "PersistentVolume {} names EBS volume {named}, but this Volume's is {}: which of them has the data must be decided by hand",
                persistent_volume.name_any(),
                volume.id
            ),
        );
    }
    let Some(claim) = &observed.claim else {
        let Some(storage_class) = storage_class else { return attempt::class_not_found(observed, Stage::Created) };
        let size = Size::from_gib(volume.size);
        // A PersistentVolume that belonged to another claim is opened after this one was made: where none can be made (the namespace
        // goes), it stays Released, the record of what is kept.
        let actions = vec![Action::CreateClaim(Box::new(build::claim(&observed.volume, &size, storage_class)))];
        return Plan::act(Stage::Created, actions, Reason::AwaitingBinding, "the claim is being made");
    };
    if !is_ours(observed, claim) {
        return conflict("PersistentVolumeClaim", &claim.name_any());
    }
    if claim.metadata.deletion_timestamp.is_some() {
        let message = format!("claim {} was deleted by somebody and is made anew once it is gone", claim.name_any());
        return Plan::wait(Stage::Created, Reason::AwaitingBinding, message);
    }
    if claim.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Bound") {
        let message = format!("claim {} and PersistentVolume {} are not bound yet", claim.name_any(), persistent_volume.name_any());
        // The claim was made, and the PersistentVolume still belongs to the one before it.
        let claimed_by = persistent_volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()).and_then(|claim| claim.uid.as_ref());
        if claimed_by.is_some() && claimed_by != claim.metadata.uid.as_ref() {
            let reopen = Action::ReopenPersistentVolume(Box::new(persistent_volume.clone()));
            return Plan::act(Stage::Created, vec![reopen], Reason::AwaitingBinding, message);
        }
        return Plan::wait(Stage::Created, Reason::AwaitingBinding, message);
    }
    adopting::closing(observed, &volume.id).unwrap_or_else(|| growth::plan(observed, status, volume, claim, size, now))
}

fn is_ours(observed: &Observed, claim: &PersistentVolumeClaim) -> bool {
    claim
        .owner_references()
        .iter()
        .any(|owner| Some(&owner.uid) == observed.volume.metadata.uid.as_ref() && owner.kind == Volume::kind(&()))
}

fn conflict(kind: &str, name: &str) -> Plan {
    Plan::stalled(
        Stage::Created,
        Reason::NameConflict,
        format!("a {kind} {name} exists that is not this Volume's: it is left alone; delete or rename it"),
    )
}

/// What EC2 last answered to this call, as long as it must not be asked again.
pub(super) fn refused(observed: &Observed, call: Call, stage: Stage, now: Timestamp) -> Option<Plan> {
    match again(observed.asked.get(&call), observed.volumes.swept_at, observed.timing.recheck, now) {
        Again::Later(held_up, until) => Some(Plan::wait(stage, held_up.reason, held_up.message.clone()).until(until, now).pending()),
        Again::Now | Again::OnceShown => None,
    }
}
