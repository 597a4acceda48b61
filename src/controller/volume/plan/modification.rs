//! The plan of a bound Volume: one ModifyVolume for size, type, IOPS and throughput, then the claim. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::action::{Action, Modify, Plan, Stage, VolumeInterest};
use super::facts::last_refusal;
use crate::api::volume::{ModificationRecord, VolumeSpec};
use crate::api::{Size, VolumeId, VolumeStatus};
use crate::cloud::call::Call;
use crate::cloud::{Class, EbsVolume, Modification, ModificationState, ModifyVolumeRequest};
use crate::controller::volume::expansion::{self, gib, requested};
use crate::controller::volume::observe::Observed;
use crate::controller::volume::recorded;
use crate::controller::volume::wait::VolumeWait;
use crate::controller::volume::wait::modification::ModificationWait;
use crate::time::{later, whole_second};

/// How many modifications EBS allows for a volume in a rolling day (since January 2026; EBS user guide,
/// "Modify a volume").
const DAILY_MODIFICATIONS: usize = 4;

/// What EBS gives a gp3 volume that asks for nothing else (EBS user guide, "General Purpose SSD volumes").
const GP3_IOPS: i32 = 3000;

const GP3_THROUGHPUT: i32 = 125;

/// A volume's size in GiB, type, IOPS and throughput.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape {
    size: i32,
    volume_type: String,
    iops: Option<i32>,
    throughput: Option<i32>,
}

impl Shape {
    /// What the spec wants; `None` where EC2's own default is fine, whatever it is. A volume that was adopted
    /// or restored keeps what it has until the spec names another value: EC2 keeps what a ModifyVolume does
    /// not name (EC2 API reference, "ModifyVolume").
    fn wanted(spec: &VolumeSpec, size: i32) -> Self {
        let is_new = spec.adopt.is_none() && spec.adopt_retained.is_none();
        let is_gp3 = spec.volume_type == "gp3" && is_new;
        Self {
            size,
            volume_type: spec.volume_type.clone(),
            iops: spec.iops.or(if is_gp3 { Some(GP3_IOPS) } else { None }),
            throughput: spec.throughput.or(if is_gp3 { Some(GP3_THROUGHPUT) } else { None }),
        }
    }

    /// Whether EC2 shows what is wanted.
    fn is_met_by(&self, volume: &EbsVolume) -> bool {
        volume.size >= self.size
            && volume.volume_type == self.volume_type
            && (self.iops.is_none() || volume.iops == self.iops)
            && (self.throughput.is_none() || volume.throughput == self.throughput)
    }

    fn is_recorded_as(&self, record: &ModificationRecord) -> bool {
        record.size == self.size
            && record.volume_type == self.volume_type
            && record.iops == self.iops
            && record.throughput == self.throughput
    }
}

pub(super) fn plan(
    observed: &Observed,
    status: &VolumeStatus,
    volume: &EbsVolume,
    claim: &PersistentVolumeClaim,
    size: i32,
    now: Timestamp,
) -> Plan {
    // Before EC2 is asked: what it has grown by stays, and is charged.
    let grows = requested(claim).is_some_and(|requested| requested < size);
    if let Some(cause) = expansion::refused(claim, observed.storage_class.as_ref()).filter(|_| grows) {
        let wait = ModificationWait::NotExpandable { claim: claim.name_any(), wanted: size, cause };
        // A StorageClass is not watched.
        return Plan::wait(Stage::Bound, wait).after(observed.timing.requeue_interval.saturating_mul(12));
    }
    // What EC2 has more of than is requested stays: EBS volumes only grow, and a size of the spec never
    // becomes smaller. So does a claim that another client has grown.
    let wanted = Shape::wanted(&observed.volume.spec, size.max(volume.size));
    // The new size may be shown before it can be used, which is from "optimizing" on.
    let is_early =
        observed.volumes.modification.as_ref().is_some_and(|it| it.state == ModificationState::Modifying);
    if !wanted.is_met_by(volume) || is_early {
        let mut plan = modify(observed, status, volume, &wanted, now);
        // The next modification may have to wait for hours: what EC2 has by now is used meanwhile.
        if plan.actions.is_empty() && !is_early {
            plan.actions.extend(claim_growth(claim, size.min(volume.size)));
        }
        return Plan { due: !wanted.is_met_by(volume), ..plan };
    }
    grow_claim(claim, size)
}

/// EC2 does not show what is wanted yet.
fn modify(
    observed: &Observed,
    status: &VolumeStatus,
    volume: &EbsVolume,
    wanted: &Shape,
    now: Timestamp,
) -> Plan {
    let id = &volume.id;
    if let Some(refusal) = recorded::modification_refused(status, observed.volume.metadata.generation) {
        return Plan::wait(Stage::Bound, ModificationWait::Refused(refusal));
    }
    let modification = observed.volumes.modification.as_ref();
    if let Some(running) = modification
        .filter(|it| matches!(it.state, ModificationState::Modifying | ModificationState::Optimizing))
    {
        return modifying(ModificationWait::Running { id: id.clone(), state: running.state });
    }
    // Edits within a few seconds become one call: the budget is four a day.
    let gathering_since = status.change_due_since.as_ref().map_or(now, |since| since.0);
    let ripe = later(gathering_since, observed.timing.modify_coalesce_window);
    if now < ripe {
        return modifying(ModificationWait::Coalescing(id.clone())).until(ripe, now);
    }
    if let Some(due) = unconfirmed_until(observed, status, wanted).filter(|due| now < *due) {
        return modifying(ModificationWait::NotShown(id.clone())).until(due, now);
    }
    let replaces_last = status
        .modifications
        .last()
        .is_some_and(|last| wanted.is_recorded_as(last) && !was_shown(modification, last));
    let counted = &status.modifications[..status.modifications.len() - usize::from(replaces_last)];
    // EC2 counts from when it took the call, which may be a little after it was decided on.
    let window =
        observed.timing.modify_budget_window.saturating_add(observed.timing.modify_unconfirmed_timeout);
    if let Some(next) = next_allowed(counted, window, now) {
        let wait = ModificationWait::Budget { id: id.clone(), allowed: DAILY_MODIFICATIONS, until: next };
        return Plan::wait(Stage::Bound, wait).until(next, now);
    }
    if let Some(plan) = refused(observed, now) {
        return plan;
    }
    // An answer that does not come at all (the right to ask may be missing) does not keep the change for
    // ever: EC2 refuses one too many.
    let looked_up = later(ripe, observed.timing.modify_unconfirmed_timeout);
    if !observed.volumes.modification_is_known && now < looked_up {
        return modifying(ModificationWait::LookingUp(id.clone())).until(looked_up, now);
    }
    request(id, wanted, replaces_last, now)
}

/// Until when EC2 is given time to show the last modification before another call: its answer may be lost,
/// and EC2 may not show yet what was requested.
fn unconfirmed_until(observed: &Observed, status: &VolumeStatus, wanted: &Shape) -> Option<Timestamp> {
    let modification = observed.volumes.modification.as_ref();
    let last = status
        .modifications
        .last()
        .filter(|last| wanted.is_recorded_as(last) || !has_ended(modification, last))?;
    Some(later(last.at.0.max(observed.leading_since), observed.timing.modify_unconfirmed_timeout))
}

/// One ModifyVolume for everything that is wanted.
fn request(id: &VolumeId, wanted: &Shape, replaces_last: bool, now: Timestamp) -> Plan {
    let Shape { size, volume_type, iops, throughput } = wanted.clone();
    let record = ModificationRecord {
        at: Time(whole_second(now)),
        size,
        volume_type: volume_type.clone(),
        iops,
        throughput,
    };
    let request =
        ModifyVolumeRequest { id: id.clone(), size, volume_type: volume_type.clone(), iops, throughput };
    let wait = ModificationWait::Modifying { id: id.clone(), size, volume_type };
    let actions = vec![Action::Modify(Box::new(Modify { record, request, replaces_last }))];
    Plan { actions, ..modifying(wait) }
}

/// The modification is about to change in EC2.
fn modifying(wait: ModificationWait) -> Plan {
    Plan::wait(Stage::Bound, wait).interested_in(VolumeInterest::Modification)
}

/// EC2 did not accept the last call, and it must not be made again yet.
fn refused(observed: &Observed, now: Timestamp) -> Option<Plan> {
    let (call_blocked, until) = last_refusal(observed, Call::ModifyVolume, now)?;
    let interest = match call_blocked.class() {
        // What was refused as invalid was another spec, or this one would be stalled.
        Some(Class::Invalid) => return None,
        // A budget of a day is not worth a look every few seconds.
        Some(Class::ModificationBudget) => VolumeInterest::Settled,
        // An earlier modification is still running.
        Some(Class::State) => VolumeInterest::Modification,
        Some(_) | None => VolumeInterest::Volume,
    };
    Some(
        Plan::wait(Stage::Bound, VolumeWait::Blocked(call_blocked.clone()))
            .until(until, now)
            .interested_in(interest),
    )
}

/// Whether EC2 shows that this modification is over.
fn has_ended(modification: Option<&Modification>, last: &ModificationRecord) -> bool {
    let is_over = |state| matches!(state, ModificationState::Completed | ModificationState::Failed);
    was_shown(modification, last) && modification.is_some_and(|modification| is_over(modification.state))
}

/// Whether EC2 has shown that it carried this modification out, or a later one.
fn was_shown(modification: Option<&Modification>, last: &ModificationRecord) -> bool {
    modification.and_then(|modification| modification.started_at).is_some_and(|at| at >= last.at.0)
}

/// When the next modification is allowed, if it is not allowed now.
fn next_allowed(past: &[ModificationRecord], window: Duration, now: Timestamp) -> Option<Timestamp> {
    let window = SignedDuration::try_from(window).unwrap_or(SignedDuration::MAX);
    let recent: Vec<Timestamp> =
        past.iter().map(|record| record.at.0).filter(|at| now.duration_since(*at) < window).collect();
    let oldest_that_counts = recent.len().checked_sub(DAILY_MODIFICATIONS)?;
    recent.get(oldest_that_counts)?.checked_add(window).ok()
}

/// What makes the claim request so many GiB, where it requests less.
fn claim_growth(claim: &PersistentVolumeClaim, size: i32) -> Option<Action> {
    if requested(claim)? >= size {
        return None;
    }
    let mut grown = claim.clone();
    let requests = grown.spec.as_mut()?.resources.as_mut()?.requests.as_mut()?;
    requests.insert("storage".to_owned(), Quantity(Size::from_gib(size).0));
    Some(Action::GrowClaim(Box::new(grown)))
}

/// EC2 shows what is wanted: the claim asks for it, the CSI resizer and the kubelet grow the file system.
fn grow_claim(claim: &PersistentVolumeClaim, size: i32) -> Plan {
    if let Some(growth) = claim_growth(claim, size) {
        let wait = ModificationWait::GrowingClaim { claim: claim.name_any(), size };
        return Plan::act(Stage::Bound, vec![growth], wait);
    }
    let capacity = claim
        .status
        .as_ref()
        .and_then(|status| status.capacity.as_ref())
        .and_then(|capacity| capacity.get("storage"));
    if capacity.and_then(gib).is_none_or(|capacity| capacity < size) {
        return Plan::wait(Stage::Bound, ModificationWait::GrowingFileSystem(size));
    }
    Plan::done()
}
