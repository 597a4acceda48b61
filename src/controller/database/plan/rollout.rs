//! The part of the plan that starts the engine and replaces its pod. The template changes only together with
//! that replacement. Pure.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Node as CoreNode, Pod};
use kube::ResourceExt;

use super::access::{bound, bound_set, rewritten};
use super::action::Action;
use super::comparison::{self, Finding};
use super::drift;
use super::engine_in_effect::nothing_served;
use super::facts::{engine_waiting, inputs_of_pod, inputs_of_set, is_outdated, replicas, template};
use super::{back_to_served, data, failing, going_back, permission, reload, room, rotation, sizing, tls};
use crate::api::Node;
use crate::api::keys::INPUTS_HASH_ANNOTATION;
use crate::controller::database::build;
use crate::controller::database::cause::RestartCause;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::Child;
use crate::controller::database::pod::{engine_container, has_started, machine};
use crate::controller::database::wait::{DatabaseWait, RestartStep};
use crate::controller::engine_container::engine_of;
use crate::controller::safety;
use crate::engine::Profile;

/// Starts the engine or replaces its pod; what is awaited of it. Machine, disk and label are there.
pub(super) fn plan(
    observed: &Observed,
    profile: &Profile,
    node: &Node,
    is_replaced: bool,
    actions: &mut Vec<Action>,
    now: Timestamp,
) -> Option<DatabaseWait> {
    let core_node = observed.core_node_of(node);
    let Child::Ours(live) = &observed.stateful_set else {
        return Some(first(observed, profile, core_node, actions));
    };
    let is_anew = replicas(live) == 0 && data::is_of_other_data(observed, live);
    if let Some(refusal) = refused(observed, live) {
        if !is_anew {
            run(live, actions);
        }
        return engine_waiting(observed).or_else(|| said(refusal));
    }
    if let Some(wait) = rotation::before_start(observed, profile, live, actions) {
        return Some(DatabaseWait::Rotation(wait));
    }
    if is_anew {
        return settle(observed, profile, core_node, actions);
    }
    // An engine that was stopped for its next password starts from the template that it had.
    let is_rotated = matches!(actions.last(), Some(Action::PutNextPasswordInForce(..)));
    if let Some(wait) = reload::before_files(observed, actions, now) {
        run(live, actions);
        return Some(wait);
    }
    if (!is_rotated || is_outdated(observed, live))
        && let Some(waiting) = settle(observed, profile, core_node, actions)
    {
        return Some(waiting);
    }
    run(live, actions);
    match &observed.pod {
        Some(pod) if reload::is_outstanding(observed, pod) && !reload::awaits_start(observed, pod) => {
            let loading = reload::load(observed, actions, now);
            loading.or_else(|| Some(replace(observed, live, pod, actions, now)))
        }
        Some(pod) => {
            if let Some(why) = drift::altered_pod(observed) {
                return Some(replace_altered(observed, live, pod, why, actions, now));
            }
            if let Some(waiting) = resized(observed, live, pod, actions, now) {
                return Some(waiting);
            }
            end_failing(observed, live, pod, actions, now);
            let waiting = engine_waiting(observed).map(|wait| tls::explained(observed, wait));
            // What is awaited of the machine that takes this one's place is said, and comes first.
            if waiting.is_some() || is_replaced {
                return waiting;
            }
            of_serving(observed, profile, live, pod, actions)
        }
        None => engine_waiting(observed),
    }
}

/// What is awaited of an engine that serves from the template that is wanted.
fn of_serving(
    observed: &Observed,
    profile: &Profile,
    live: &StatefulSet,
    pod: &Pod,
    actions: &mut Vec<Action>,
) -> Option<DatabaseWait> {
    let rotating = rotation::plan(observed, profile, live, pod, actions).map(DatabaseWait::Rotation);
    rotating.or_else(|| tls::awaited(observed, pod))
}

/// There is no StatefulSet yet.
fn first(
    observed: &Observed,
    profile: &Profile,
    core_node: Option<&CoreNode>,
    actions: &mut Vec<Action>,
) -> DatabaseWait {
    if let Some(refusal) = permission::engine(observed) {
        return DatabaseWait::NotPermitted(refusal);
    }
    if let Some(refusal) = tls::refused(observed, None) {
        return refusal;
    }
    settings(observed, profile, actions);
    actions.push(Action::ApplyStatefulSet(Box::new(template(observed, profile, core_node))));
    DatabaseWait::StartingEngine
}

/// A pod whose engine keeps ending comes anew.
fn end_failing(
    observed: &Observed,
    live: &StatefulSet,
    pod: &Pod,
    actions: &mut Vec<Action>,
    now: Timestamp,
) {
    let Some((record, why)) = failing::due(observed, pod, now) else { return };
    let mut ending = Vec::new();
    if let RestartStep::Deleting(_) = end(observed, live, pod, why, &mut ending) {
        actions.extend(record.map(Action::RecordNotStarting));
        actions.append(&mut ending);
    }
}

/// A pod that finds no room comes anew with the request that this machine has room for: what is awaited of
/// that.
pub(super) fn resized(
    observed: &Observed,
    live: &StatefulSet,
    pod: &Pod,
    actions: &mut Vec<Action>,
    now: Timestamp,
) -> Option<DatabaseWait> {
    let step = if let Some(action) = sizing::for_waiting_pod(observed, live, pod, now) {
        actions.push(action);
        RestartStep::ApplyingTemplate
    } else if sizing::is_outgrown(observed, live, pod) {
        end(observed, live, pod, RestartCause::NoRoom, actions)
    } else {
        return None;
    };
    Some(restart_pending(pod, step))
}

/// What is said of it here: that there is nothing to go back to comes after whatever else is awaited
/// (`upgrade::told`).
fn said(refusal: DatabaseWait) -> Option<DatabaseWait> {
    Some(refusal).filter(|refusal| !matches!(refusal, DatabaseWait::Upgrade(_)))
}

/// Why the template of the newest spec is not applied, if it is not.
fn refused(observed: &Observed, live: &StatefulSet) -> Option<DatabaseWait> {
    let refusal = permission::template(observed, live).map(DatabaseWait::NotPermitted);
    let refusal = refusal.or_else(|| nothing_served(observed).map(DatabaseWait::Upgrade));
    refusal.or_else(|| tls::refused(observed, Some(live))).or_else(|| reload::refused(observed))
}

/// One pod, of the template that is there.
fn run(live: &StatefulSet, actions: &mut Vec<Action>) {
    if replicas(live) != 1 {
        actions.push(Action::Scale(live.uid().unwrap_or_default(), 1));
    }
}

/// Gives an existing StatefulSet the template of the newest spec; what is awaited until that is done. A
/// template that differs only because a newer operator renders it differently is left as it is.
fn settle(
    observed: &Observed,
    profile: &Profile,
    core_node: Option<&CoreNode>,
    actions: &mut Vec<Action>,
) -> Option<DatabaseWait> {
    let live = observed.stateful_set.ours()?;
    settings(observed, profile, actions);
    let is_outdated = is_outdated(observed, live);
    if !is_outdated && replicas(live) != 0 {
        image_source(observed, profile, live, actions);
        return None;
    }
    let template = template(observed, profile, core_node);
    actions.push(Action::ApplyStatefulSet(Box::new(bound_set(live, template))));
    Some(match &observed.pod {
        Some(pod) if is_outdated => reload::writing(observed, actions)
            .unwrap_or_else(|| restart_pending(pod, RestartStep::ApplyingTemplate)),
        Some(_) | None => DatabaseWait::StartingEngine,
    })
}

/// A pod that is to come back on another machine, or that waits for one, comes back from the newest template:
/// what is awaited until it can.
pub(super) fn before_move(
    observed: &Observed,
    profile: &Profile,
    node: &Node,
    actions: &mut Vec<Action>,
    now: Timestamp,
) -> Option<DatabaseWait> {
    let core_node = observed.core_node_of(node);
    let (Some(live), Some(pod)) = (observed.stateful_set.ours(), &observed.pod) else { return None };
    if refused(observed, live).is_some() {
        return None;
    }
    if is_outdated(observed, live) {
        return settle(observed, profile, core_node, actions);
    }
    if let Some(action) = sizing::for_move(observed, live, core_node) {
        actions.push(action);
        return Some(restart_pending(pod, RestartStep::ApplyingTemplate));
    }
    image_source(observed, profile, live, actions);
    let waits = machine(pod).is_none() && inputs_of_pod(observed, pod).as_deref() != inputs_of_set(live);
    waits.then(|| replace(observed, live, pod, actions, now))
}

/// Where images are pulled from is no input of the spec: the template follows the NodeClass at once, and no
/// pod is replaced for it. Whatever ends the pod, the next one pulls from there.
fn image_source(observed: &Observed, profile: &Profile, live: &StatefulSet, actions: &mut Vec<Action>) {
    // What another client has put into the template must not become what Freehold applied. An adopted
    // database keeps the image that it was found with.
    if permission::class(observed).is_none()
        && observed.database.spec.adopt.is_none()
        && comparison::stateful_set(observed) == Finding::Same
        && let Some(wanted) = build::with_image_of(live, profile)
    {
        actions.push(Action::ChangeImageSource(Box::new(bound(live, wanted))));
    }
}

/// The files of settings change with the template, so that a pod never finds those of another generation for
/// long.
fn settings(observed: &Observed, profile: &Profile, actions: &mut Vec<Action>) {
    let wanted = build::inputs_hash(&observed.database.spec);
    if let (Child::Ours(live), Some(files)) =
        (&observed.config_map, build::config_map(&observed.database, &observed.names, profile))
        && live.annotations().get(INPUTS_HASH_ANNOTATION).map(String::as_str) != Some(wanted.as_str())
    {
        actions.extend(rewritten(live, files));
    }
}

/// The pod is of an older template. It does not come back right from a template that another client has
/// changed.
fn replace(
    observed: &Observed,
    live: &StatefulSet,
    pod: &Pod,
    actions: &mut Vec<Action>,
    now: Timestamp,
) -> DatabaseWait {
    if let Some(wait) = tls::before_restart(observed) {
        return wait;
    }
    // One that is not scheduled, or has another machine to go to, ends for nothing that serves.
    let host = || observed.labelled.iter().find(|it| it.metadata.name.as_deref() == machine(pod));
    let lacking = host().and_then(|host| room::lacking(observed, live, host));
    let step = match (drift::template_settled(observed, now), lacking) {
        (Ok(()), Some(lacking)) if engine_waiting(observed).is_none() => RestartStep::NoRoom(lacking),
        (Ok(()), _) => end(observed, live, pod, cause(observed, live, pod), actions),
        (Err(moment), _) => RestartStep::Unsettled(moment),
    };
    restart_pending(pod, step)
}

/// The pod was started from what another client had changed.
fn replace_altered(
    observed: &Observed,
    live: &StatefulSet,
    pod: &Pod,
    why: RestartCause,
    actions: &mut Vec<Action>,
    now: Timestamp,
) -> DatabaseWait {
    if let Some(wait) = tls::before_restart(observed) {
        return wait;
    }
    let step = match drift::settled(observed, now) {
        Ok(()) => end(observed, live, pod, why, actions),
        Err(moment) => RestartStep::Unsettled(moment),
    };
    DatabaseWait::PodAltered { pod: pod.name_any(), step }
}

/// Deletes the pod as soon as it comes back from the template that is there.
fn end(
    observed: &Observed,
    live: &StatefulSet,
    pod: &Pod,
    why: RestartCause,
    actions: &mut Vec<Action>,
) -> RestartStep {
    if pod.metadata.deletion_timestamp.is_some() {
        return RestartStep::Stopping;
    }
    match safety::may_replace_pod(live) {
        Ok(()) => {
            // One that starts after all is not ended by what rests on its not having started: a newer engine
            // may have changed the data.
            let rests_on_it = why == RestartCause::WentBack || !has_started(pod, observed.engine());
            let as_read = pod.resource_version().filter(|_| rests_on_it);
            let uid = pod.uid().unwrap_or_default();
            actions.push(Action::ReplacePod(pod.name_any(), uid, as_read, why.clone()));
            RestartStep::Deleting(why)
        }
        Err(blocker) => RestartStep::Blocked(blocker),
    }
}

fn restart_pending(pod: &Pod, step: RestartStep) -> DatabaseWait {
    DatabaseWait::RestartPending { pod: pod.name_any(), step }
}

/// What changes for the engine.
fn cause(observed: &Observed, live: &StatefulSet, pod: &Pod) -> RestartCause {
    if going_back::recorded(observed).is_some() || back_to_served::is_cause(observed, pod) {
        return RestartCause::WentBack;
    }
    let named = observed.engine();
    let template = live.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let new = template.and_then(|template| engine_of(&template.containers, named));
    let (Some(new), Some(old)) = (new, engine_container(pod, named)) else { return RestartCause::Template };
    if let (Some(new), Some(old)) = (&new.image, &old.image)
        && new != old
    {
        return RestartCause::Image { from: old.clone(), to: new.clone() };
    }
    let spec = &observed.database.spec;
    if build::asked_of(spec, new) != build::asked_of(spec, old) {
        return RestartCause::Resources;
    }
    RestartCause::Settings
}
