//! The plan of a restore in place: the engine is stopped, the Volume makes room for one with the data of the
//! backup, and its EBS volume is retained; if the engine does not serve in time, the same way back. Pure.
//!
//! What is to be done follows from the record in the status and from the Volume that is there: the one that
//! has the wanted data is served, any other one goes. The rest of the plan does not know of it: to it, the
//! Volume of the Database is there, or not yet.

mod request;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use self::request::{begun, refused};
use super::action::{Action, Plan};
use super::data::{recovers, template_of};
use super::facts::{
    condition_message, engine_waiting, inputs_of_pod, inputs_of_set, patch, replicas, slowly, wanted_inputs,
};
use super::leaving::is_leaving;
use super::pause;
use super::startable::startable_since;
use crate::api::database::{RestoreWentBack, RestoredInPlace};
use crate::api::{ConditionType, DeletionPolicy, Volume, VolumeSpec};
use crate::controller::blocker::Blocker;
use crate::controller::conditions;
use crate::controller::database::build;
use crate::controller::database::cause::NodeDeletion;
use crate::controller::database::in_place::{self, deadline, is_wanted, recorded, underway};
use crate::controller::database::messages::restore::TAKEN_BACK;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::Child;
use crate::controller::database::wait::{DatabaseWait, RestoreWait};
use crate::controller::retention::{self, Retained};
use crate::time::{sooner, until, whole_second};

/// The plan while the Volume is not the one that the database is to have; `None` while it is, or while no
/// restore in place is to begin.
pub(super) fn plan(observed: &Observed, now: Timestamp) -> Option<Plan> {
    let Some(record) = underway(&observed.database) else { return begun(observed, now) };
    match &observed.volume {
        Child::Ours(volume) if is_wanted(record, volume) => stopped(observed, now),
        Child::Ours(volume) if is_taken_back(observed, record) && !is_going(volume) => {
            Some(back(observed, record, TAKEN_BACK.to_owned(), now))
        }
        Child::Absent if is_taken_back(observed, record) && has_way_back(observed, record) => {
            Some(back(observed, record, TAKEN_BACK.to_owned(), now))
        }
        Child::Ours(volume) => Some(removed(observed, volume, now)),
        Child::Absent => Some(created(observed, record, now)),
        Child::Foreign => None,
    }
}

/// A pod, or the template that it is to come from, is of other data than the Volume: another client has
/// started it while the Volume was exchanged. It is stopped before it finds the data.
fn stopped(observed: &Observed, now: Timestamp) -> Option<Plan> {
    let live = observed.stateful_set.ours()?;
    let of_pod = observed.pod.as_ref().map(|pod| pod.spec.as_ref());
    let is_of_data = of_pod.is_none_or(|pod| recovers(observed, pod))
        && recovers(observed, template_of(live))
        && is_of_wanted_inputs(observed, live);
    let is_stopped = observed.pod.is_none() && replicas(live) == 0;
    let mut actions = Vec::new();
    let waiting = if is_of_data || is_stopped { None } else { emptied(observed, &mut actions, now) }?;
    Some(Plan::act(actions, waiting).requeue(observed.timing.requeue_interval))
}

/// Whether pod and template are of the engine that is to serve data from before an upgrade: the engine that
/// the database goes back from is not started on it.
fn is_of_wanted_inputs(observed: &Observed, live: &StatefulSet) -> bool {
    let is_way_back = in_place::has_begun(&observed.database);
    let wanted = wanted_inputs(observed);
    let is_of_pod = |pod: &Pod| inputs_of_pod(observed, pod).as_ref() == Some(&wanted);
    !is_way_back || (observed.pod.as_ref().is_none_or(is_of_pod) && inputs_of_set(live) == Some(&wanted))
}

/// Stops the engine; what is awaited until no pod is left. One that has had its grace is ended with its
/// machine, and another one takes the place of that afterwards.
pub(super) fn emptied(
    observed: &Observed,
    actions: &mut Vec<Action>,
    now: Timestamp,
) -> Option<DatabaseWait> {
    let stopping = pause::stop(observed, actions, now);
    let pod = observed.pod.as_ref().filter(|_| stopping.is_none());
    let Some(pod) = pod else { return stopping };
    let remains = DatabaseWait::StoppingEngine(Blocker::PodStopping(pod.name_any()));
    let is_overdue = pod.metadata.deletion_timestamp.as_ref().is_some_and(|ends| now > ends.0);
    let giving_back =
        if is_overdue { pause::give_back(observed, &NodeDeletion::PodRemains, actions) } else { None };
    giving_back.or(Some(remains))
}

/// Its user requests another restore.
fn is_another_requested(observed: &Observed, record: &RestoredInPlace) -> bool {
    observed.database.spec.restore_in_place.as_ref().is_some_and(|it| it.generation > record.generation)
}

/// It ends without an engine that serves, as there is no way back, and another one follows.
fn given_up(observed: &Observed, record: &RestoredInPlace, now: Timestamp) -> Plan {
    let mut record = record.clone();
    record.ended_at = Some(Time(whole_second(now)));
    let wait = DatabaseWait::Restore(RestoreWait::Recording(record.backup.snapshot_id.clone()));
    let actions = vec![Action::RecordRestoreInPlace(Box::new(record))];
    Plan::act(actions, wait).requeue(observed.timing.requeue_interval)
}

fn is_going(volume: &Volume) -> bool {
    volume.metadata.deletion_timestamp.is_some()
}

/// Its user has removed it from the spec, or requests another one.
fn is_taken_back(observed: &Observed, record: &RestoredInPlace) -> bool {
    let is_removed = observed.database.spec.restore_in_place.is_none();
    (is_removed || is_another_requested(observed, record))
        && record.went_back.is_none()
        && !record.no_way_back
}

/// The Volume goes, once the engine has stopped, and its EBS volume is retained.
fn removed(observed: &Observed, volume: &Volume, now: Timestamp) -> Plan {
    let mut actions = Vec::new();
    if let Some(waiting) = emptied(observed, &mut actions, now) {
        return Plan::act(actions, waiting).requeue(observed.timing.requeue_interval);
    }
    let uid = volume.uid().unwrap_or_default();
    let replaced = VolumeSpec {
        deletion_policy: DeletionPolicy::Retain,
        deletion_decided: true,
        replaced: true,
        ..volume.spec.clone()
    };
    actions.extend(patch(&volume.spec, &replaced).map(|patch| Action::UpdateVolume(uid.clone(), patch)));
    // Only what is there says that the API server knows the field.
    if !is_going(volume) && volume.spec.replaced {
        actions.push(Action::DeleteVolume(uid));
    }
    let message = condition_message(volume.conditions(), ConditionType::Ready).filter(|_| is_going(volume));
    let wait = RestoreWait::Replacing { volume: volume.name_any(), message };
    Plan::act(actions, DatabaseWait::Restore(wait)).requeue(observed.timing.requeue_interval)
}

/// The Volume with the wanted data.
fn created(observed: &Observed, record: &RestoredInPlace, now: Timestamp) -> Plan {
    let mut actions = Vec::new();
    // Another client may have started the engine, which would find the data of another template.
    if let Some(waiting) = emptied(observed, &mut actions, now) {
        return Plan::act(actions, waiting).requeue(observed.timing.requeue_interval);
    }
    let former = &record.former.persistent_volume_name;
    let mut record = record.clone();
    if record.went_back.is_some() {
        let Some(kept) = way_back(observed, &record) else {
            let wait = DatabaseWait::Restore(RestoreWait::NoWayBack(former.clone()));
            return Plan::wait(wait).requeue(slowly(observed));
        };
        actions.extend(held(observed, &kept));
        // EC2 may show more than the spec requested.
        record.former.size =
            kept.size.filter(|it| it.gib() > record.former.size.gib()).unwrap_or(record.former.size);
        if observed.kept.former_exists {
            let wait = DatabaseWait::FormerVolumeExists(record.former.volume_id.clone());
            return Plan::act(actions, wait).requeue(observed.timing.requeue_interval);
        }
    }
    let volume = build::volume_in_place(&observed.database, &observed.names, &record);
    let waiting =
        DatabaseWait::CreatingVolume { volume: volume.name_any(), zone: record.former.zone.clone() };
    actions.push(Action::RecordData(Box::new(record)));
    actions.push(Action::CreateVolume(Box::new(volume)));
    Plan::act(actions, waiting)
}

/// The plan with the data of the backup, which goes back where the engine has not served in time, or where
/// its user has taken the restore back.
pub(super) fn considered(mut plan: Plan, observed: &Observed, now: Timestamp) -> Plan {
    let Some(record) = underway(&observed.database).filter(|record| record.went_back.is_none()) else {
        return plan;
    };
    let Some(volume) = observed.volume.ours().filter(|volume| is_wanted(record, volume)) else { return plan };
    if is_serving(observed, volume) || !observed.database.spec.running {
        return plan;
    }
    if !has_way_back(observed, record) {
        return if is_another_requested(observed, record) { given_up(observed, record, now) } else { plan };
    }
    if is_taken_back(observed, record) {
        return back(observed, record, TAKEN_BACK.to_owned(), now);
    }
    let is_true = |kind| conditions::is_true(volume.conditions(), kind);
    if is_true(ConditionType::Stalled) && !is_true(ConditionType::Bound) {
        let stalled = condition_message(volume.conditions(), ConditionType::Stalled);
        return back(observed, record, stalled.unwrap_or_default(), now);
    }
    let Some(deadline) = deadline(record, volume) else { return plan };
    if now < deadline {
        plan.requeue = Some(sooner(until(deadline, now), plan.requeue));
        return plan;
    }
    let awaited = plan.waiting.as_ref().map(DatabaseWait::message).unwrap_or_default();
    back(observed, record, awaited, now)
}

/// The record of the data that the database had, if it is there for it.
fn way_back(observed: &Observed, record: &RestoredInPlace) -> Option<Retained> {
    let is_for = |kept: &Retained| {
        let is_free = kept.adopted_by.as_ref().is_none_or(|holder| holder.uid == observed.names.uid);
        is_free && kept.volume_id == record.former.volume_id && kept.namespace == observed.names.namespace
    };
    observed.kept.record.as_ref().and_then(retention::read).filter(is_for)
}

fn has_way_back(observed: &Observed, record: &RestoredInPlace) -> bool {
    !record.no_way_back && way_back(observed, record).is_some()
}

/// Reserves the record, unless that is done.
fn held(observed: &Observed, kept: &Retained) -> Option<Action> {
    let record = observed.kept.record.as_ref().filter(|_| kept.adopted_by.is_none())?;
    Some(Action::TakeRecord(Box::new(record.clone())))
}

fn back(observed: &Observed, record: &RestoredInPlace, message: String, now: Timestamp) -> Plan {
    let mut back = record.clone();
    back.went_back = Some(RestoreWentBack { at: Time(whole_second(now)), message: message.clone() });
    // No other Database takes it meanwhile.
    let mut actions: Vec<Action> =
        way_back(observed, record).and_then(|kept| held(observed, &kept)).into_iter().collect();
    actions.push(Action::RecordRestoreInPlace(Box::new(back)));
    let wait = DatabaseWait::Restore(RestoreWait::GoingBack(message));
    Plan::act(actions, wait).requeue(observed.timing.requeue_interval)
}

/// Whether the engine accepts connections with the data of this Volume: its pod was created after any other
/// one had ended, and recovers from the backup.
fn is_serving(observed: &Observed, volume: &Volume) -> bool {
    is_started(observed, volume) && engine_waiting(observed).is_none()
}

/// Whether there is a pod for the data of this Volume.
fn is_started(observed: &Observed, volume: &Volume) -> bool {
    let is_bound = conditions::is_true(volume.conditions(), ConditionType::Bound);
    let pod = observed.pod.as_ref().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    is_bound && pod.is_some_and(|pod| recovers(observed, pod.spec.as_ref()))
}

/// The plan, which says why the data is not replaced, or that the database went back, unless it waits for
/// more than that.
pub(super) fn told(mut plan: Plan, observed: &Observed, now: Timestamp) -> Plan {
    let Some((wait, requeue)) = refused(observed, now).or_else(|| went_back(observed)) else { return plan };
    // An engine that fails is what a backup is restored for.
    let is_first = plan.waiting.as_ref().is_none_or(|it| matches!(it, DatabaseWait::Engine(_)));
    if !is_leaving(observed) && is_first {
        plan.waiting = Some(DatabaseWait::Restore(wait));
        plan.requeue = Some(sooner(requeue, plan.requeue));
    }
    plan
}

/// That the restore in place which the spec still requests was not completed.
fn went_back(observed: &Observed) -> Option<(RestoreWait, Duration)> {
    let record = recorded(&observed.database).filter(|record| !record.is_underway())?;
    let wanted = observed.database.spec.restore_in_place.as_ref()?;
    let back = record.went_back.as_ref().filter(|_| wanted.generation <= record.generation)?;
    Some((RestoreWait::WentBack(back.at.0, back.message.clone()), slowly(observed)))
}

/// The record after a pass; `before` is what this pass' writes left.
pub(in crate::controller::database) fn shown(
    observed: &Observed,
    before: Option<Box<RestoredInPlace>>,
    now: Timestamp,
) -> Option<Box<RestoredInPlace>> {
    let mut record = before?;
    // What was seen is of the record as it was before this pass.
    let Some(volume) = observed
        .volume
        .ours()
        .filter(|volume| record.is_underway() && is_wanted(&record, volume))
        .filter(|_| underway(&observed.database).map(|it| &it.went_back) == Some(&record.went_back))
    else {
        return Some(record);
    };
    record.startable_at = startable_since(observed, record.startable_at.take(), |_| true, now);
    // With the data that it had, the database is as it was, whether that serves or not.
    let is_back = record.went_back.is_some() && is_started(observed, volume);
    if is_back || is_serving(observed, volume) {
        record.ended_at = Some(Time(whole_second(now)));
    }
    Some(record)
}
