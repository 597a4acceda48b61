//! The part of the plan that changes the engine behind a backup of the stopped database, and goes back to
//! that where the changed engine does not serve in time. Pure.
//!
//! From the stop of the engine until the changed one accepts connections, the Service lets no client in: so
//! the backup has everything that a client was ever acknowledged. After that nothing goes back by itself.

mod begin;
mod recording;
mod trial;
mod way_back;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use self::recording::recording;
use self::trial::{followed, is_judged, is_of_before};
use self::way_back::{go_back, going_back, stopped};
use super::action::Plan;
use super::back_to_served::is_unstarted_without_image;
use super::comparison::{self, Finding};
use super::engine_in_effect::nothing_served;
use super::facts::{engine_waiting, inputs_of_pod, inputs_of_set, replicas, slowly};
use super::leaving::is_leaving;
use super::machines::{self, is_lost};
use crate::api::Backup;
use crate::api::database::{Engine, EngineType, RestoredInPlace, Served, Upgrade};
use crate::controller::database::in_place;
use crate::controller::database::inputs::inputs_hash;
use crate::controller::database::messages::upgrade::{CHANGED, TAKEN_BACK};
use crate::controller::database::observe::Observed;
use crate::controller::database::pod::has_started;
use crate::controller::database::upgrade::{self, Phase};
use crate::controller::database::wait::{DatabaseWait, UpgradeWait};
use crate::engine::release::is_older;
use crate::time::{later, sooner, until, whole_second};

pub(super) use self::begin::prepared;

/// The plan while nothing else is done for the database; `None` while it is as any other one.
pub(super) fn plan(observed: &Observed, now: Timestamp) -> Option<Plan> {
    let (phase, upgrade) =
        upgrade::underway(&observed.database).filter(|_| observed.database.spec.running)?;
    match phase {
        Phase::BackingUp => begin::backing_up(observed, upgrade, now),
        // The record ends with this pass (`shown`): nothing is done by it.
        Phase::Trying | Phase::GoingBack if is_of_before(observed, upgrade) => {
            let wait = DatabaseWait::Upgrade(UpgradeWait::Recording);
            Some(Plan::wait(wait).requeue(observed.timing.requeue_interval))
        }
        Phase::Trying => edited(observed, upgrade, now),
        Phase::GoingBack if in_place::has_begun(&observed.database) => None,
        Phase::GoingBack => Some(going_back(observed, upgrade, now)),
    }
}

/// The spec has changed before the changed engine accepted connections. What was not started has changed
/// nothing, and a newer engine reads what an older one has changed; any other one begins with the data of
/// before.
fn edited(observed: &Observed, upgrade: &Upgrade, now: Timestamp) -> Option<Plan> {
    if upgrade::is_of(&observed.database, upgrade) {
        return None;
    }
    let spec = &observed.database.spec;
    let is_untouched = is_unstarted_without_image(observed) || is_not_begun(observed, upgrade);
    let is_set_back = spec.engine == upgrade.from.engine;
    if is_untouched && is_set_back {
        return None;
    }
    if !is_untouched && (is_set_back || !may_follow(&upgrade.to, &spec.engine)) {
        let why = if is_set_back { TAKEN_BACK } else { CHANGED };
        // Until there is something to go back to, the engine that is tried may be requested again.
        return Some(if is_backed_up(observed, upgrade) {
            go_back(upgrade, why.to_owned(), observed, now)
        } else {
            stopped(observed, upgrade, now)
        });
    }
    let record = Upgrade {
        to: spec.engine.clone(),
        inputs_hash: inputs_hash(spec),
        startable_at: None,
        // What may have been started is not forgotten.
        tried: (!is_untouched).then(|| upgrade.tried.clone().unwrap_or_default()),
        ..upgrade.clone()
    };
    Some(recording(observed, record))
}

/// Whether the template is that of before still, and nothing runs.
fn is_not_begun(observed: &Observed, upgrade: &Upgrade) -> bool {
    let is_known = comparison::stateful_set(observed) == Finding::Same;
    let is_stopped = observed.stateful_set.ours().is_some_and(|live| replicas(live) == 0);
    observed.pod.is_none() && is_known && is_stopped && is_set_of_former(observed, upgrade)
}

/// Whether the template is one that Freehold has applied before this upgrade. One that another client has put
/// in its place (`kubectl rollout undo`) leaves the hash of the inputs as it is.
fn is_set_of_former(observed: &Observed, upgrade: &Upgrade) -> bool {
    let of_former = upgrade::inputs_of_former(&observed.database, upgrade);
    let is_of_former = |live: &StatefulSet| inputs_of_set(live) == Some(&of_former);
    comparison::stateful_set(observed) != Finding::Altered
        && observed.stateful_set.ours().is_some_and(is_of_former)
}

/// Whether the next engine reads what this one may have written, for certain.
fn may_follow(tried: &Engine, next: &Engine) -> bool {
    if tried == next {
        return true;
    }
    let versions = tried.version.as_ref().zip(next.version.as_ref());
    tried.kind != EngineType::Custom && versions.is_some_and(|(tried, next)| !is_older(next, tried))
}

/// The plan of an engine that is tried, which goes back where it does not accept connections in time, as soon
/// as there is something to go back to.
pub(super) fn considered(mut plan: Plan, observed: &Observed, now: Timestamp) -> Plan {
    let Some(upgrade) = upgrade::in_phase(&observed.database, Phase::Trying) else { return plan };
    let spec = &observed.database.spec;
    let Some(policy) = spec.upgrade.as_ref().filter(|_| spec.running) else { return plan };
    // One that was never started goes back by itself (`back_to_served.rs`).
    if is_unstarted_without_image(observed) || is_serving(observed, upgrade) {
        return plan;
    }
    let Some(since) = upgrade.startable_at.as_ref().filter(|_| is_judged(observed, upgrade)) else {
        return plan;
    };
    let deadline = later(since.0, Duration::from_mins(u64::from(policy.timeout_minutes)));
    if now < deadline {
        plan.requeue = Some(sooner(until(deadline, now), plan.requeue));
        return plan;
    }
    if !is_backed_up(observed, upgrade) {
        plan.requeue = Some(sooner(slowly(observed), plan.requeue));
        return plan;
    }
    let awaited = plan.waiting.as_ref().map(DatabaseWait::message).unwrap_or_default();
    go_back(upgrade, awaited, observed, now)
}

/// Whether the Backup of the stopped database is complete.
fn is_backed_up(observed: &Observed, upgrade: &Upgrade) -> bool {
    observed.kept.backup(&upgrade.backup_name).is_some_and(Backup::can_be_restored)
}

/// Whether the changed engine accepts connections. No client could have connected before this was seen: the
/// Service is closed until it is recorded.
fn is_serving(observed: &Observed, upgrade: &Upgrade) -> bool {
    let pod = observed.pod.as_ref().filter(|_| engine_waiting(observed).is_none());
    upgrade::is_of(&observed.database, upgrade)
        && pod.is_some_and(|pod| inputs_of_pod(observed, pod).as_ref() == Some(&upgrade.inputs_hash))
}

/// Whether the pod was made from what the database served as before.
fn is_of_former(observed: &Observed, pod: &Pod, upgrade: &Upgrade) -> bool {
    inputs_of_pod(observed, pod) == Some(upgrade::inputs_of_former(&observed.database, upgrade))
}

/// The plan, which says that the database went back unless it waits for more than that.
pub(super) fn told(mut plan: Plan, requested: &Observed) -> Plan {
    if is_leaving(requested) {
        return plan;
    }
    if upgrade::is_closed(&requested.database) && requested.database.spec.running && plan.waiting.is_none() {
        plan.waiting = Some(DatabaseWait::Upgrade(UpgradeWait::Opening));
        plan.requeue = Some(sooner(requested.timing.requeue_interval, plan.requeue));
    }
    // An engine that fails is perhaps what the change is to mend.
    let is_first = match &plan.waiting {
        Some(DatabaseWait::Engine(_)) => plan.actions.is_empty(),
        waiting => waiting.is_none(),
    };
    if let Some(wait) = nothing_served(requested).filter(|_| is_first && requested.database.spec.running) {
        plan.waiting = Some(DatabaseWait::Upgrade(wait));
    }
    let held = upgrade::held(&requested.database);
    if let Some(back) = held.and_then(|upgrade| upgrade.went_back.as_ref()) {
        plan.waiting.get_or_insert_with(|| {
            DatabaseWait::Upgrade(UpgradeWait::WentBack {
                at: back.at.0,
                message: back.message.clone(),
                data_restored: back.data_restored,
            })
        });
    }
    plan
}

/// The record after a pass; `before` is what this pass' writes left, and `served` and `restored` are what the
/// status says after it. `carried_out` is the world without the settings that the engine rejects.
pub(in crate::controller::database) fn shown(
    requested: &Observed,
    carried_out: &Observed,
    before: Option<Box<Upgrade>>,
    served: Option<&Served>,
    restored: Option<&RestoredInPlace>,
    now: Timestamp,
) -> Option<Box<Upgrade>> {
    let record = before?;
    let database = &requested.database;
    // What was seen is of the record as it was before this pass.
    if upgrade::recorded(database) != Some(&record) || is_leaving(requested) {
        return Some(record);
    }
    let Some((phase, _)) = upgrade::underway(database) else {
        let is_past = record.went_back.is_some() && !upgrade::is_of(database, &record);
        return (!is_past).then_some(record);
    };
    match phase {
        Phase::Trying | Phase::GoingBack if is_of_before(requested, &record) => None,
        Phase::BackingUp => {
            let has_other_data = restored.is_some_and(RestoredInPlace::is_underway);
            (!has_other_data && !is_given_up(requested, &record)).then_some(record)
        }
        Phase::Trying => tried(carried_out, record, served, restored, now),
        Phase::GoingBack => {
            // What this pass has begun is in `restored` already. Another restore than its own ends it, too.
            let is_own = |it: &RestoredInPlace| {
                it.no_way_back && Some(&it.backup.snapshot_id) == record.snapshot_id.as_ref()
            };
            let is_over = restored.is_some_and(|it| it.is_underway() != is_own(it));
            let ended_at = is_over.then(|| Time(whole_second(now)));
            Some(Box::new(Upgrade { ended_at, ..*record }))
        }
    }
}

/// The engine is not stopped any longer for what the spec does not request, or what must be mended before; or
/// another client has started it again.
fn is_given_up(requested: &Observed, record: &Upgrade) -> bool {
    let spec = &requested.database.spec;
    let is_later = |pod: &Pod| pod.metadata.uid.as_ref() != Some(&record.pod_uid);
    if requested.pod.as_ref().is_some_and(is_later) {
        return true;
    }
    let has_machine = machines::of(requested).is_some_and(|machines| !is_lost(machines.host));
    !spec.running || spec.upgrade.is_none() || !upgrade::is_of(&requested.database, record) || !has_machine
}

/// The record of an engine that is tried.
fn tried(
    requested: &Observed,
    mut record: Box<Upgrade>,
    served: Option<&Served>,
    restored: Option<&RestoredInPlace>,
    now: Timestamp,
) -> Option<Box<Upgrade>> {
    let spec = &requested.database.spec;
    let was_not_there = served.is_some_and(|served| served.went_back.is_some());
    let has_other_data = restored.is_some_and(RestoredInPlace::is_underway);
    // A spec that cannot be carried out has started it, or the user has set it back. What another client has
    // started from a template of its own is replaced, and the trial goes on.
    let is_as_before = requested
        .pod
        .as_ref()
        .is_some_and(|pod| has_started(pod, requested.engine()) && is_of_former(requested, pod, &record))
        && is_set_of_former(requested, &record);
    // A user who changes nothing else has no use for a way back any more.
    let is_let_go = spec.upgrade.is_none() && upgrade::is_of(&requested.database, &record);
    if was_not_there || has_other_data || is_as_before || is_let_go {
        return None;
    }
    if is_serving(requested, &record) {
        record.ended_at = Some(Time(whole_second(now)));
        return Some(record);
    }
    followed(requested, &mut record, now);
    Some(record)
}
