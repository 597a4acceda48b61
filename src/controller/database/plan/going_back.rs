//! The part of the plan by which an adopted database that does not start as its spec requests goes back to
//! what it ran as before. Pure.
//!
//! Where it runs stays Freehold's: the pod must find its machine. An image goes back only as long as no
//! engine of the new one was ever started, since a version that was started may have changed the data
//! (docs/decisions/0020-adoption-by-id-and-tag.md).

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::action::{Action, Plan};
use super::comparison::{self, Finding};
use super::facts::{adoption, inputs_of_set};
use super::{gone_back, machines};
use crate::api::database::{Adoption, ServedAs, StartFailure, WentBack};
use crate::api::{ConditionType, Volume};
use crate::controller::conditions;
use crate::controller::database::build;
use crate::controller::database::observe::Observed;
use crate::controller::database::pod::{
    EngineWait, Failure, engine_container, engine_wait, has_started, inputs_of,
};
use crate::controller::database::wait::DatabaseWait;
use crate::time::{later, sooner, until, whole_second};

/// An engine that runs and has not ended may be recovering: it has as long as the start-up probes of
/// Freehold's own engines allow, an hour by default.
const RECOVERY: u32 = 4;

/// What a pod passes through before its engine can start: none of it counts as the engine's time.
const BEFORE_START: [&str; 3] = ["PodScheduled", "PodReadyToStartContainers", "Initialized"];

/// A pod of the newest template, which is another one than the last that served.
struct Attempt<'a> {
    adoption: &'a Adoption,
    pod: &'a Pod,
    before: ServedAs,
    tried: ServedAs,
}

/// What the database went back from, as long as that holds.
pub(super) fn recorded(observed: &Observed) -> Option<&WentBack> {
    gone_back::holds(observed, adoption(observed)?)
}

/// The plan of a pod that has its machine and its volume; it goes back where the pod has not started within
/// its bound.
pub(super) fn considered(mut plan: Plan, observed: &Observed, now: Timestamp) -> Plan {
    let wait = match &plan.waiting {
        Some(DatabaseWait::Engine(wait)) => wait.clone(),
        Some(_) => return plan,
        None => {
            plan.waiting = recorded(observed).map(went_back);
            return plan;
        }
    };
    let Some(attempt) = attempt(observed) else { return plan };
    let is_started = has_started(attempt.pod, observed.engine());
    let Some(why) = failure(&wait, is_started) else { return plan };
    if is_preparing(attempt.pod) || !may_be_the_cause(&attempt, &wait, is_started) {
        return plan;
    }
    let deadline = later(since(observed, attempt.pod), bound(observed, &wait));
    if now < deadline {
        plan.requeue = Some(sooner(until(deadline, now), plan.requeue));
        return plan;
    }
    let Attempt { adoption, before, tried, .. } = attempt;
    let is_other_image = before.image != tried.image;
    let started = if is_started { tried.image.clone() } else { adoption.unproven_image.clone() };
    match started.filter(|_| is_other_image) {
        Some(started) => {
            let before = before.image.unwrap_or_default();
            plan.waiting = Some(DatabaseWait::NotGoingBack { started, before, wait });
        }
        None => plan.actions.push(Action::GoBack(Box::new(WentBack {
            at: Time(whole_second(now)),
            inputs_hash: tried.inputs_hash,
            image: tried.image.filter(|_| is_other_image),
            why,
            message: wait.message(),
        }))),
    }
    plan
}

/// What is said of a database that went back.
pub(super) fn went_back(back: &WentBack) -> DatabaseWait {
    DatabaseWait::WentBack(back.at.0, back.message.clone())
}

/// The adoption after a pass: what served, which image may have changed the data, and whether it is still
/// true that the database went back. `before` is the record as this pass' writes left it.
pub(in crate::controller::database) fn record(
    observed: &Observed,
    before: Option<Adoption>,
) -> Option<Adoption> {
    let mut new = before?;
    let known = adoption(observed).and_then(|adoption| adoption.went_back.as_ref());
    if new.went_back.as_ref() == known && recorded(observed).is_none() {
        new.went_back = None;
    }
    let Some(pod) = observed.pod.as_ref().filter(|pod| is_later(&new, pod)) else { return Some(new) };
    let (engine, inputs) = (observed.engine(), inputs_of(pod));
    let live = applied(observed).filter(|live| inputs_of_set(live) == inputs);
    let accepts = engine_wait(Some(pod), engine).is_none();
    if let (true, Some(live), Some(inputs)) = (accepts, live, inputs) {
        new.served = Some(build::served_as(live, &observed.names, inputs.to_owned()));
        new.unproven_image = None;
    } else if has_started(pod, engine) {
        let served = build::served_before(&new, &observed.names);
        let image = engine_container(pod, engine).and_then(|engine| engine.image.clone());
        if inputs != Some(served.inputs_hash.as_str()) && image != served.image {
            new.unproven_image = image;
        }
    }
    Some(new)
}

/// Whether it is another pod than the one that was found.
fn is_later(adoption: &Adoption, pod: &Pod) -> bool {
    pod.metadata.uid.as_ref() != Some(&adoption.pod_uid) && inputs_of(pod).is_some()
}

/// The StatefulSet, if it is as Freehold applied it.
fn applied(observed: &Observed) -> Option<&StatefulSet> {
    observed.stateful_set.ours().filter(|_| comparison::stateful_set(observed) == Finding::Same)
}

fn attempt(observed: &Observed) -> Option<Attempt<'_>> {
    let adoption = adoption(observed)?;
    let (live, pod) = (applied(observed)?, observed.pod.as_ref()?);
    let inputs = build::inputs_hash(&observed.database.spec);
    let is_of_it = inputs_of(pod) == Some(inputs.as_str()) && inputs_of_set(live) == Some(inputs.as_str());
    if !is_of_it || !is_later(adoption, pod) || recorded(observed).is_some() {
        return None;
    }
    let before = build::served_before(adoption, &observed.names);
    let tried = build::served_as(live, &observed.names, inputs);
    let differs = before.image != tried.image || before.resources != tried.resources;
    differs.then_some(Attempt { adoption, pod, before, tried })
}

/// What keeps the pod from accepting connections; `None` where another start of it would change nothing.
fn failure(wait: &EngineWait, has_started: bool) -> Option<StartFailure> {
    let of_start = if has_started { StartFailure::EngineEnds } else { StartFailure::NotStarted };
    match wait {
        EngineWait::NoPod | EngineWait::NotScheduled { .. } | EngineWait::Stopping { .. } => None,
        EngineWait::Unschedulable { .. } => Some(StartFailure::Unschedulable),
        EngineWait::ContainerStarting { .. } => Some(of_start),
        EngineWait::Failing { failure: Failure::CrashLoop { .. }, .. } => Some(StartFailure::EngineEnds),
        EngineWait::Failing { failure: Failure::Container { .. } | Failure::Pod { .. }, .. } => {
            Some(of_start)
        }
        EngineWait::ProbeFailing { .. } => Some(StartFailure::ProbeFails),
    }
}

/// Whether the volume is being mounted, or containers run that come before the engine: neither image nor
/// resources of the engine have a part in it.
fn is_preparing(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|it| {
        it.status != "True" && ["PodReadyToStartContainers", "Initialized"].contains(&it.type_.as_str())
    })
}

/// Whether what differs can be the cause: an image keeps no pod from being scheduled, and requests keep none
/// from being pulled.
fn may_be_the_cause(attempt: &Attempt<'_>, wait: &EngineWait, is_started: bool) -> bool {
    if let EngineWait::Unschedulable { .. } = wait {
        return attempt.before.resources != attempt.tried.resources;
    }
    let is_pulled_or_made = matches!(
        wait,
        EngineWait::ContainerStarting { .. } | EngineWait::Failing { failure: Failure::Container { .. }, .. }
    );
    is_started || !is_pulled_or_made || attempt.before.image != attempt.tried.image
}

fn bound(observed: &Observed, wait: &EngineWait) -> Duration {
    let timeout = observed.timing.adopted_start_timeout;
    match wait {
        // A pull that fails is `Failing`: this one is slow.
        EngineWait::ProbeFailing { last: None, .. } | EngineWait::ContainerStarting { .. } => {
            timeout.saturating_mul(RECOVERY)
        }
        EngineWait::NoPod
        | EngineWait::NotScheduled { .. }
        | EngineWait::Unschedulable { .. }
        | EngineWait::Failing { .. }
        | EngineWait::ProbeFailing { last: Some(_), .. }
        | EngineWait::Stopping { .. } => timeout,
    }
}

/// Since when nothing but the template can keep the pod from starting.
fn since(observed: &Observed, pod: &Pod) -> Timestamp {
    let node = machines::of(observed).map(|machines| machines.host.conditions());
    let volume = observed.volume.ours().map(Volume::conditions);
    let ready = [node, volume].into_iter().flatten();
    let ready = ready.filter_map(|conditions| conditions::since(conditions, ConditionType::Ready, true));
    ready_to_start(pod).into_iter().chain(ready).max().unwrap_or(Timestamp::MAX)
}

/// Since when nothing of the pod's own comes before its engine.
pub(super) fn ready_to_start(pod: &Pod) -> Option<Timestamp> {
    let created = pod.metadata.creation_timestamp.as_ref().map(|it| it.0);
    let passed = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let passed = passed
        // A pod that was Ready while no operator ran has served: its time begins when it ended.
        .filter(|it| it.type_ == "Ready" || it.status == "True" && BEFORE_START.contains(&it.type_.as_str()))
        .filter_map(|it| it.last_transition_time.as_ref().map(|it| it.0));
    created.into_iter().chain(passed).max()
}
