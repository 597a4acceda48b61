//! Plan, Volume: what is, what should be, what to do about it. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Resource, ResourceExt};

use super::observe::Observed;
use super::{build, growth, leaving};
use crate::api::node_class::NodeClassSpec;
use crate::api::volume::{ModificationRecord, VolumeLaunch};
use crate::api::{Reason, Size, SnapshotId, Volume, VolumeId, VolumeStatus, names};
use crate::cloud::absence::{self, AbsenceProven, TokenLookup};
use crate::cloud::error::{self, Class};
use crate::cloud::identity::{self, Kind, Owner};
use crate::cloud::{EbsVolume, ModifyVolumeRequest, VolumeState};
use crate::cluster::finalizer;
use crate::controller::conditions::whole_second;
use crate::controller::context::later;
use crate::controller::driver::until;
use crate::controller::launch::{Facts, Verdict, judge, last_possible_send};
use crate::controller::waiting::Waiting;

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
    /// Intent, CreateVolume, id: one compound action.
    Create(Box<VolumeLaunch>),
    /// CreateVolume again, identical.
    Resend,
    /// Record the volume that a look-up found.
    RecordVolume(VolumeId),
    /// Record that the volume may hold data from now on, then make its PersistentVolume.
    CreatePersistentVolume(Box<PersistentVolume>),
    /// Let a PersistentVolume whose claim went be claimed again.
    ReopenPersistentVolume(Box<PersistentVolume>),
    /// Make the claim.
    CreateClaim(Box<PersistentVolumeClaim>),
    /// Write the modification down, then ModifyVolume.
    Modify(ModificationRecord, ModifyVolumeRequest),
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

impl Plan {
    pub(super) fn act(stage: Stage, actions: Vec<Action>, reason: Reason, message: impl Into<String>) -> Self {
        Self { actions, ..Self::wait(stage, reason, message) }
    }

    pub(super) fn wait(stage: Stage, reason: Reason, message: impl Into<String>) -> Self {
        Self { actions: Vec::new(), waiting: Some(Waiting::on(reason, message)), stage, again: None, pending: false }
    }

    pub(super) fn stalled(stage: Stage, reason: Reason, message: impl Into<String>) -> Self {
        Self { actions: Vec::new(), waiting: Some(Waiting::stalled(reason, message)), stage, again: None, pending: false }
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
        (Some(launch), None) => unidentified(observed, launch, size, now),
        (None, None) => uncreated(observed, &status, size, now),
    }
}

/// Nothing was ever decided: the first attempt, unless EC2 has something under this UID already (the status was lost).
fn uncreated(observed: &Observed, status: &VolumeStatus, size: i32, now: Timestamp) -> Plan {
    match observed.volumes.volumes.as_slice() {
        [] if status.ever_held => lost(observed, "its id was lost from the status"),
        [] => next_attempt(observed, 1, size, now),
        [one] => Plan::act(
            Stage::Nothing,
            vec![Action::RecordVolume(one.id.clone())],
            Reason::Creating,
            format!("EBS volume {} carries this Volume's identity and is taken on", one.id),
        ),
        several => {
            let ids: Vec<&str> = several.iter().map(|volume| volume.id.0.as_str()).collect();
            Plan::stalled(
                Stage::Nothing,
                Reason::InDoubt,
                format!(
                    "several EBS volumes carry this Volume's identity ({}): set status.volumeID to the one with the data, or remove the tag {} from the others",
                    ids.join(", "),
                    identity::VOLUME_UID_TAG
                ),
            )
        }
    }
}

/// An attempt was decided and has no id yet.
fn unidentified(observed: &Observed, launch: &VolumeLaunch, size: i32, now: Timestamp) -> Plan {
    match judge(attempt_facts(observed, launch, false), observed.timing.token_resend, now) {
        Verdict::Adopt(id) => {
            let message = format!("EBS volume {id} was made by this attempt and is recorded");
            Plan::act(Stage::Nothing, vec![Action::RecordVolume(id)], Reason::Creating, message).pending()
        }
        Verdict::Refused => refused(observed, launch, size, now),
        Verdict::ProvenAbsent(_) => next_attempt(observed, launch.attempt + 1, size, now),
        Verdict::Resend => match observed.offerings.quota_closed_until {
            Some(until) => quota(until, now),
            None => Plan::act(
                Stage::Nothing,
                vec![Action::Resend],
                Reason::InDoubt,
                format!("attempt {} has no answer yet; the same call is sent again", launch.attempt),
            )
            .pending(),
        },
        Verdict::Wait(doubt, until) => {
            let message = format!("it is not known whether EC2 carried out creation attempt {}: {}", launch.attempt, doubt.as_words());
            let plan = Plan::wait(Stage::Nothing, Reason::InDoubt, message).pending();
            match until {
                Some(until) => plan.until(until, now),
                None => plan,
            }
        }
    }
}

/// The facts that the protocol judges an attempt by. EC2 cannot be asked for volumes by token: the attempt's tag tells.
pub(super) fn attempt_facts(observed: &Observed, launch: &VolumeLaunch, deleting: bool) -> Facts<VolumeId> {
    let found = observed.volumes.volumes.iter().find(|volume| identity::attempt(&volume.tags) == Some(launch.attempt));
    Facts {
        deleting,
        started_at: launch.started_at.0,
        refused: launch.refused.is_some(),
        sent: observed.sent,
        found: found.map(|volume| volume.id.clone()),
        looked_up: observed.volumes.swept_at.is_some_and(|at| at >= observed.process_started),
        absent: proven_absent(observed, launch),
        same_request: true,
    }
}

/// The proof that this attempt's volume does not exist.
pub(super) fn proven_absent(observed: &Observed, launch: &VolumeLaunch) -> Option<AbsenceProven> {
    let last = last_possible_send(observed.sent.as_ref(), launch.started_at.0, observed.process_started);
    absence::prove(last, observed.volumes.empty, TokenLookup::NotPossible, observed.timing.absence_window)
}

/// EC2 refused an attempt for certain.
fn refused(observed: &Observed, launch: &VolumeLaunch, size: i32, now: Timestamp) -> Plan {
    let Some(refusal) = &launch.refused else { return next_attempt(observed, launch.attempt + 1, size, now) };
    let said = format!("{} ({})", refusal.code, refusal.message);
    let pause = |reason: Reason, pause: Duration, message: String| {
        let until = later(refusal.at.0, pause);
        if now < until {
            return Plan::wait(Stage::Nothing, reason, message).until(until, now);
        }
        next_attempt(observed, launch.attempt + 1, size, now)
    };
    match error::classify(Some(&refusal.code), &refusal.message, None) {
        Class::Forbidden => pause(
            Reason::Forbidden,
            observed.timing.forbidden_pause,
            format!("EC2 forbids making the volume: {said}; tried again by itself"),
        ),
        Class::Capacity => pause(
            Reason::InsufficientCapacity,
            observed.timing.offering_pause,
            format!("EC2 has no capacity for the volume: {said}; tried again by itself"),
        ),
        Class::Invalid if asks_the_same_again(observed, launch, size, now) => {
            Plan::stalled(Stage::Nothing, Reason::InvalidRequest, format!("EC2 refuses the volume as invalid: {said}; change spec.storage"))
        }
        Class::Invalid
        | Class::InDoubt
        | Class::Throttled
        | Class::Quota
        | Class::NotYetUsable
        | Class::Token
        | Class::NotFound
        | Class::State
        | Class::ModificationBudget
        | Class::DryRun => next_attempt(observed, launch.attempt + 1, size, now),
    }
}

fn asks_the_same_again(observed: &Observed, launch: &VolumeLaunch, size: i32, now: Timestamp) -> bool {
    let Some(class) = &observed.class else { return true };
    let next = request(observed, &class.spec, launch.attempt, size, now);
    let same = VolumeLaunch { started_at: next.started_at.clone(), in_doubt_since: None, refused: None, ..launch.clone() };
    next == same
}

fn next_attempt(observed: &Observed, attempt: i32, size: i32, now: Timestamp) -> Plan {
    let Some(class) = &observed.class else { return class_not_found(observed, Stage::Nothing) };
    if let Some(until) = observed.offerings.quota_closed_until {
        return quota(until, now);
    }
    let launch = request(observed, &class.spec, attempt, size, now);
    let message = format!("a {} volume of {size} GiB is asked for in {}", launch.volume_type, launch.zone);
    Plan::act(Stage::Nothing, vec![Action::Create(Box::new(launch))], Reason::Creating, message).pending()
}

/// The whole request of an attempt.
fn request(observed: &Observed, class: &NodeClassSpec, attempt: i32, size: i32, now: Timestamp) -> VolumeLaunch {
    let volume = &observed.volume;
    let uid = volume.uid().unwrap_or_default();
    let spec = &volume.spec;
    let class_tags = class.tags.iter().map(|(key, value)| (key.clone(), value.0.clone())).collect();
    VolumeLaunch {
        attempt,
        token: identity::token(&observed.cluster_id, Kind::Volume, &uid, attempt),
        zone: spec.zone.clone(),
        size,
        volume_type: spec.volume_type.clone(),
        iops: spec.iops,
        throughput: spec.throughput,
        snapshot_id: spec.snapshot_id.clone(),
        kms_key_id: class.kms_key_id.clone(),
        tags: identity::tags(&owner_of(volume, &observed.cluster_id), attempt, &class_tags),
        started_at: Time(whole_second(now)),
        in_doubt_since: None,
        refused: None,
    }
}

/// Whom the EBS volume belongs to.
pub(super) fn owner_of(volume: &Volume, cluster_id: &str) -> Owner {
    let database = volume.labels().get(names::DATABASE_NAME_LABEL).cloned().unwrap_or_default();
    Owner {
        cluster_id: cluster_id.to_owned(),
        kind: Kind::Volume,
        uid: volume.uid().unwrap_or_default(),
        database: format!("{}/{database}", volume.namespace().unwrap_or_default()),
        name: volume.name_any(),
    }
}

fn class_not_found(observed: &Observed, stage: Stage) -> Plan {
    let name = &observed.volume.spec.node_class_name;
    let plan = Plan::stalled(stage, Reason::NodeClassNotFound, format!("NodeClass {name} does not exist: create it, or name another one"));
    Plan { again: Some(observed.timing.sweep_instances), ..plan }
}

fn quota(until: Timestamp, now: Timestamp) -> Plan {
    Plan::wait(
        Stage::Nothing,
        Reason::QuotaExceeded,
        "a quota of the AWS account is used up: ask AWS to raise it; tried again every few minutes",
    )
    .until(until, now)
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
        None | Some((_, VolumeState::Deleting | VolumeState::Deleted)) => missing(observed, status, id, size, now),
    }
}

/// EC2 does not show the volume that the status names.
fn missing(observed: &Observed, status: &VolumeStatus, id: &VolumeId, size: i32, now: Timestamp) -> Plan {
    let proven = status.launch.as_ref().is_some_and(|launch| proven_absent(observed, launch).is_some());
    match (status.ever_held, proven, &status.launch) {
        (true, true, _) => lost(observed, &format!("EC2 no longer knows EBS volume {id}")),
        (true, false, _) => {
            Plan::wait(Stage::Nothing, Reason::VolumeLost, format!("EC2 does not show EBS volume {id}, which has held data; looked for on"))
                .pending()
        }
        // A volume may vanish soon after it was made (a KMS refusal is asynchronous): it never held anything.
        (false, true, Some(launch)) => next_attempt(observed, launch.attempt + 1, size, now),
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
    let Some(class) = &observed.class else { return class_not_found(observed, Stage::Created) };
    let storage_class = &class.spec.storage_class_name;
    let Some(persistent_volume) = &observed.persistent_volume else {
        let size = Size::from_gib(volume.size);
        let built = build::persistent_volume(&observed.volume, &volume.id, &size, storage_class, None);
        let message = "the PersistentVolume is being made";
        return Plan::act(Stage::Created, vec![Action::CreatePersistentVolume(Box::new(built))], Reason::AwaitingBinding, message);
    };
    if persistent_volume.labels().get(build::VOLUME_UID_LABEL) != observed.volume.metadata.uid.as_ref() {
        return conflict("PersistentVolume", &persistent_volume.name_any());
    }
    let Some(claim) = &observed.claim else {
        let mut actions = Vec::new();
        if persistent_volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()).is_some_and(|claim| claim.uid.is_some()) {
            actions.push(Action::ReopenPersistentVolume(Box::new(persistent_volume.clone())));
        }
        let size = Size::from_gib(volume.size);
        actions.push(Action::CreateClaim(Box::new(build::claim(&observed.volume, &size, storage_class))));
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
        return Plan::wait(Stage::Created, Reason::AwaitingBinding, message);
    }
    growth::plan(observed, status, volume, claim, size, now)
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
