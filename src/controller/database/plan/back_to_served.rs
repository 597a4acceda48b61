//! The part of the plan by which a database goes back to the engine that it served as, where the image of
//! another one cannot be started. Pure.
//!
//! Only as long as no engine was seen started since the one that served: until then nothing can have changed
//! the data. An adopted database has a way of its own (`going_back.rs`).

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::action::{Action, Plan};
use super::comparison::{self, Finding};
use super::facts::{engine_waiting, inputs_of_pod, is_named, is_outdated, wanted_inputs};
use super::going_back::ready_to_start;
use super::leaving::is_leaving;
use super::machines::is_lost;
use super::{permission, validation};
use crate::api::database::{ConfigValue, Engine, EngineNotStarted, Served};
use crate::controller::database::observe::Observed;
use crate::controller::database::pod::{EngineWait, engine_container, has_started, machine};
use crate::controller::database::upgrade::has_predecessor;
use crate::controller::database::wait::DatabaseWait;
use crate::controller::safety;
use crate::engine::{self, EngineError, Profile};
use crate::time::{later, sooner, until, whole_second};

/// The world of a Database that requests the engine that it went back to.
pub(super) fn world(requested: &Observed) -> Option<Observed> {
    let (served, _) = held(requested)?;
    Some(with_engine(requested, &served.engine, &requested.database.spec.config))
}

/// The plan, which says that the database went back unless it waits for more than that.
pub(super) fn told(mut plan: Plan, requested: &Observed) -> Plan {
    if let Some((_, back)) = held(requested).filter(|_| !is_leaving(requested)) {
        plan.waiting.get_or_insert_with(|| DatabaseWait::EngineWentBack(back.at.0, back.message.clone()));
    }
    plan
}

/// The plan of a pod that has its machine and its volume; it goes back where its image could not be started
/// for long.
pub(super) fn considered(mut plan: Plan, observed: &Observed, now: Timestamp) -> Plan {
    let Some((pod, wait)) = observed.pod.as_ref().zip(without_image(observed)) else { return plan };
    if !may_go_back(observed, pod) {
        return plan;
    }
    let since = ready_to_start(pod).unwrap_or(Timestamp::MAX);
    let deadline = later(since, observed.timing.image_pull_timeout);
    if now < deadline {
        plan.requeue = Some(sooner(until(deadline, now), plan.requeue));
        return plan;
    }
    plan.actions.push(Action::GoBackToServed(Box::new(EngineNotStarted {
        at: Time(whole_second(now)),
        engine: observed.database.spec.engine.clone(),
        message: wait.message(),
    })));
    plan
}

/// Whether this pod is to be replaced because the database that is carried out goes back.
pub(super) fn is_cause(world: &Observed, pod: &Pod) -> bool {
    let going = record(world).filter(|served| served.engine == world.database.spec.engine);
    going.is_some_and(|served| served.went_back.is_some()) && !has_started(pod, world.engine())
}

/// The record after a pass: what serves, and whether it is still true that the database went back. `world` is
/// what is carried out, and `before` the record as this pass' writes left it.
pub(in crate::controller::database) fn recorded(
    requested: &Observed,
    world: &Observed,
    before: Option<Box<Served>>,
) -> Option<Box<Served>> {
    if requested.database.spec.adopt.is_some() {
        return None;
    }
    let known = record(requested).and_then(|served| served.went_back.as_ref());
    let written = before.as_ref().and_then(|served| served.went_back.clone());
    let went_back = written.filter(|back| known != Some(back) || held(requested).is_some());
    if before.as_ref().is_some_and(|served| may_have_started_unseen(world, served)) {
        return None;
    }
    let pod = world.pod.as_ref().filter(|_| is_of_newest_template(world));
    let ready = || {
        let pod = pod.filter(|_| engine_waiting(world).is_none())?;
        let image = engine_container(pod, world.engine())?.image.clone()?;
        Some((world.database.spec.engine.clone(), image, pod.uid()?))
    };
    // The engine that served was started in a later pod, and nothing in between.
    let goes_on = |served: &Served| {
        let is_it = served.engine == world.database.spec.engine && is_last(requested, served);
        pod.filter(|pod| is_it && has_started(pod, world.engine())).and_then(ResourceExt::uid)
    };
    let as_before = || {
        let served = before?;
        let pod_uid = goes_on(&served).unwrap_or_else(|| served.pod_uid.clone());
        Some((served.engine, served.image, pod_uid))
    };
    let (engine, image, pod_uid) = ready().or_else(as_before)?;
    Some(Box::new(Served { engine, image, pod_uid, went_back }))
}

fn record(observed: &Observed) -> Option<&Served> {
    observed.database.status.as_ref()?.served.as_deref().filter(|_| observed.database.spec.adopt.is_none())
}

/// What the database serves as, and what it went back from, as long as that holds: the spec requests it
/// still, and it was not started after all.
fn held(requested: &Observed) -> Option<(&Served, &EngineNotStarted)> {
    let served = record(requested)?;
    let back = served.went_back.as_ref().filter(|back| back.engine == requested.database.spec.engine)?;
    let is_started = |pod: &Pod| has_started(pod, requested.engine()) && !is_pod_of(requested, served, pod);
    let was_started =
        requested.pod.as_ref().is_some_and(is_started) || may_have_started_unseen(requested, served);
    (!was_started).then_some((served, back))
}

/// Whether the pod has the image of the engine that served.
pub(super) fn is_pod_of(observed: &Observed, served: &Served, pod: &Pod) -> bool {
    let image = engine_container(pod, observed.engine()).and_then(|engine| engine.image.as_ref());
    is_image_of(observed, served, image)
}

/// Whether this is the image of the engine that served, also from where the NodeClass says by now.
pub(super) fn is_image_of(observed: &Observed, served: &Served, image: Option<&String>) -> bool {
    // Whatever the settings are.
    let by_now = || profile_of(observed, &served.engine, &BTreeMap::new()).ok().map(|profile| profile.image);
    image == Some(&served.image) || image == by_now().as_ref()
}

/// Whether the pod tries another image than the one that served, and the kubelet has none to start.
pub(super) fn is_unstarted_without_image(requested: &Observed) -> bool {
    let Some(served) = record(requested).filter(|served| is_last(requested, served)) else { return false };
    let is_unstarted = requested.pod.as_ref().is_some_and(|pod| {
        !has_started(pod, requested.engine()) && !has_predecessor(&requested.database, pod)
    });
    is_unstarted && without_image(requested).is_some() && !may_have_started_unseen(requested, served)
}

/// What the engine waits for, where the kubelet has no image to start.
fn without_image(observed: &Observed) -> Option<EngineWait> {
    let Some(DatabaseWait::Engine(wait)) = engine_waiting(observed) else { return None };
    matches!(&wait, EngineWait::Failing { failure, .. } if failure.is_without_image()).then_some(wait)
}

/// Whether the last engine that was seen started is that of the pod that served.
fn is_last(observed: &Observed, served: &Served) -> bool {
    let run = observed.database.status.as_ref().and_then(|status| status.run.as_ref());
    run.is_some_and(|run| run.pod_uid == served.pod_uid)
}

/// Whether a pod of another image is on a machine whose kubelet does not report: what it shows is old.
fn may_have_started_unseen(observed: &Observed, served: &Served) -> bool {
    let Some(pod) = observed.pod.as_ref().filter(|pod| !is_pod_of(observed, served, pod)) else {
        return false;
    };
    let Some(name) = machine(pod) else { return false };
    let is_of_lost = observed.nodes.iter().any(|node| is_lost(node) && is_named(node, name));
    let core_node = observed.core_nodes.iter().find(|it| it.metadata.name.as_deref() == Some(name));
    is_of_lost || core_node.is_none_or(safety::is_silent)
}

/// Whether this pod tries another image than the one that served, nothing was started since, by it or by a
/// pod before it, and what served would be started again.
fn may_go_back(observed: &Observed, pod: &Pod) -> bool {
    let Some(served) = record(observed) else { return false };
    let is_other = served.engine != observed.database.spec.engine && !is_pod_of(observed, served, pod);
    let is_started = has_started(pod, observed.engine()) || may_have_started_unseen(observed, served);
    if !is_other || is_started || has_predecessor(&observed.database, pod) || !is_last(observed, served) {
        return false;
    }
    let world = with_engine(observed, &served.engine, &observed.database.spec.config);
    is_of_newest_template(observed)
        && permission::engine(&world).is_none()
        && validation::invalid(&world).is_none()
}

/// Whether the pod was made from the newest template, which is as Freehold applied it.
fn is_of_newest_template(observed: &Observed) -> bool {
    let live = observed.stateful_set.ours().filter(|_| comparison::stateful_set(observed) == Finding::Same);
    let is_of_pod = |pod: &Pod| inputs_of_pod(observed, pod) == Some(wanted_inputs(observed));
    live.is_some_and(|live| !is_outdated(observed, live)) && observed.pod.as_ref().is_some_and(is_of_pod)
}

/// The world of a Database that requests this engine with these settings.
pub(super) fn with_engine(
    observed: &Observed,
    engine: &Engine,
    config: &BTreeMap<String, ConfigValue>,
) -> Observed {
    let mut world = observed.clone();
    world.database.spec.engine.clone_from(engine);
    world.database.spec.config.clone_from(config);
    world.profile = profile_of(observed, engine, config);
    world
}

/// What this engine with these settings needs, with its image from where the NodeClass says.
fn profile_of(
    observed: &Observed,
    engine: &Engine,
    config: &BTreeMap<String, ConfigValue>,
) -> Result<Profile, EngineError> {
    let images = observed.class.as_ref().map(|class| &class.spec.images);
    engine::profile_from(engine, config, images)
}
