//! What of a Database's ConfigMap and StatefulSet was changed outside Freehold: seen by comparing each live
//! object with what was applied last, reported, and restored. Pure.
//!
//! A difference to what is rendered now is none: an upgrade of the operator may render a template otherwise,
//! and changes nothing by itself. What was applied is known by its fingerprint only, so what is restored is
//! today's rendering. It is applied at once, since altered content that waits for the next restart would run
//! then; and to both objects, so that a pod finds a template and files of one version. No pod is restarted
//! for it: the StatefulSet's update strategy is OnDelete.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::{Resource, ResourceExt};

use super::access::{bound_set, rewritten};
use super::action::{Action, Plan};
use super::comparison::{Finding, Findings, applied_before, config_map, stateful_set};
use super::engine_in_effect::nothing_served;
use super::facts::{ebs_volume, replicas, template, wanted_inputs};
use super::leaving::is_leaving;
use super::{permission, reload, restore, validation};
use crate::api::database::{Applied, AppliedStatefulSet, EngineStart, HistoryEntry, Occurrence};
use crate::api::keys::{INPUTS_HASH_ANNOTATION, REVISION_LABEL};
use crate::api::{ConditionType, Reason};
use crate::cluster::finalizer;
use crate::controller::conditions::Entry;
use crate::controller::database::apply::Answers;
use crate::controller::database::build;
use crate::controller::database::cause::{Alteration, RestartCause};
use crate::controller::database::child_kind::ChildKind;
use crate::controller::database::object_name::{ObjectKind, ObjectName};
use crate::controller::database::observe::Observed;
use crate::controller::database::pod;
use crate::controller::safety;
use crate::engine::Profile;
use crate::time::{later, sooner, until};

/// After how many doublings the pause between two restorations grows no more: an hour and four minutes, if an
/// object is read again every 5 s.
const MOST_DOUBLINGS: u32 = 6;

/// The objects that are compared: the others that decide what runs are compared with what is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    ConfigMap,
    StatefulSet,
}

impl Compared {
    const ALL: [Self; 2] = [Self::ConfigMap, Self::StatefulSet];

    fn name(self, observed: &Observed) -> ObjectName {
        let names = &observed.names;
        match self {
            Self::ConfigMap => ObjectName::new(ObjectKind::ConfigMap, &names.config_map),
            Self::StatefulSet => ObjectName::new(ObjectKind::StatefulSet, &names.stateful_set),
        }
    }

    /// As what a change from outside is recorded.
    fn occurrence(self) -> Occurrence {
        match self {
            Self::ConfigMap => Occurrence::ConfigMapAltered,
            Self::StatefulSet => Occurrence::StatefulSetAltered,
        }
    }

    fn finding(self, findings: Findings) -> Finding {
        match self {
            Self::ConfigMap => findings.config_map,
            Self::StatefulSet => findings.stateful_set,
        }
    }

    /// Whether the live object is of other inputs than the spec's: a restart is to follow, and applies it.
    fn is_outdated(self, observed: &Observed) -> bool {
        let annotations = match self {
            Self::ConfigMap => observed.config_map.ours().map(ResourceExt::annotations),
            Self::StatefulSet => observed.stateful_set.ours().map(ResourceExt::annotations),
        };
        let inputs = annotations.and_then(|annotations| annotations.get(INPUTS_HASH_ANNOTATION));
        inputs.map(String::as_str) != Some(wanted_inputs(observed).as_str())
    }

    /// Whether this action writes the whole object, or makes room for that.
    fn is_applied_by(self, action: &Action) -> bool {
        match self {
            Self::ConfigMap => {
                matches!(action, Action::ApplyConfigMap(_) | Action::DeleteChild(ChildKind::ConfigMap, ..))
            }
            Self::StatefulSet => matches!(action, Action::ApplyStatefulSet(_)),
        }
    }

    /// What gives the object today's content; `None` where there is none of ours.
    fn restored(self, observed: &Observed, profile: &Profile) -> Option<Action> {
        match self {
            Self::ConfigMap => {
                let live = observed.config_map.ours()?;
                let files = build::config_map(&observed.database, &observed.names, profile)?;
                rewritten(live, files)
            }
            Self::StatefulSet => {
                let live = observed.stateful_set.ours()?;
                // A template that is made without the id of the volume has no archive.
                if observed.database.spec.wal_archive.is_some() {
                    ebs_volume(observed)?;
                }
                let mut wanted = template(observed, profile, observed.labelled.first());
                wanted.spec.get_or_insert_default().replicas = Some(replicas(live));
                Some(Action::RestoreStatefulSet(Box::new(bound_set(live, wanted))))
            }
        }
    }
}

/// The plan, with what was changed outside Freehold reported and restored first, since an action that fails
/// keeps those after it from being done. What is not known is applied last: it may be what the API server
/// refused before.
pub(super) fn mended(mut plan: Plan, observed: &Observed, now: Timestamp) -> Plan {
    if is_leaving(observed) || !finalizer::has(&observed.database) {
        return plan;
    }
    let findings = Findings::of(observed);
    let is_applied = |object: Compared| plan.actions.iter().any(|action| object.is_applied_by(action));
    let (altered, pending): (Vec<Compared>, Vec<Compared>) = Compared::ALL
        .into_iter()
        .filter(|object| object.finding(findings) == Finding::Altered)
        .partition(|object| is_applied(*object) || held_until(observed, *object, now).is_none());
    let profile = rendered(observed);
    let reported = |object: &Compared| is_applied(*object) || profile.is_some();
    let reports: Vec<Action> = altered
        .iter()
        .filter(|object| reported(object))
        .map(|object| Action::ReportAltered(object.occurrence(), object.name(observed)))
        .collect();
    let is_needed = |object: &Compared| match object.finding(findings) {
        Finding::Same => false,
        Finding::Unknown => !object.is_outdated(observed),
        Finding::Altered => altered.contains(object),
    };
    // Files and template are of one version: what is as it was goes with what was altered. It does not go
    // with what is not known: a write that is refused each time would be repeated with both, without an end.
    let is_one_altered = altered.iter().any(|object| !is_applied(*object));
    // The number of pods is another write's in this pass.
    let scales = |action: &Action| matches!(action, Action::Scale(..) | Action::StopForNextPassword(..));
    let is_scaled = plan.actions.iter().any(scales);
    let (first, last): (Vec<Compared>, Vec<Compared>) = Compared::ALL
        .into_iter()
        .filter(|object| !is_applied(*object) && !pending.contains(object))
        .filter(|object| is_needed(object) || (is_one_altered && !object.is_outdated(observed)))
        .filter(|object| *object != Compared::StatefulSet || !is_scaled)
        .partition(|object| object.finding(findings) != Finding::Unknown);
    let restored = |objects: Vec<Compared>| {
        objects.into_iter().filter_map(|object| object.restored(observed, profile?)).collect::<Vec<_>>()
    };
    let before = [reports, restored(first)].concat();
    plan.actions.splice(0..0, before);
    plan.actions.extend(restored(last));
    let moments = pending.into_iter().filter_map(|object| held_until(observed, object, now));
    let settles = altered_pod(observed).and_then(|_| settled(observed, now).err().flatten());
    for moment in moments.chain(settles) {
        plan.requeue = Some(sooner(until(moment, now), plan.requeue));
    }
    plan
}

/// What the objects are rendered from; `None` when the spec cannot be carried out or is not permitted, or
/// while it is not known again which backup the engine recovers from.
fn rendered(observed: &Observed) -> Option<&Profile> {
    let is_refused = validation::invalid(observed).is_some()
        || restore::known_again(observed).is_some()
        || permission::engine(observed).is_some()
        || nothing_served(observed).is_some()
        || reload::refused(observed).is_some();
    if is_refused { None } else { observed.profile.as_ref().ok() }
}

/// Until when an object that was altered is not restored again, so that two clients do not write against each
/// other without end: the more often it was restored, the longer.
fn held_until(observed: &Observed, object: Compared, now: Timestamp) -> Option<Timestamp> {
    let history = &observed.database.status.as_ref()?.history;
    let of_object: Vec<&HistoryEntry> =
        history.iter().filter(|entry| entry.what == object.occurrence()).collect();
    let times = of_object.iter().map(|entry| u32::try_from(entry.count).unwrap_or(1)).sum::<u32>();
    let moment = later(of_object.last()?.at.0, pause(times, observed.timing.requeue_interval));
    (now < moment).then_some(moment)
}

/// A minute with the default interval, doubled with each time.
fn pause(times: u32, unit: Duration) -> Duration {
    unit.saturating_mul(12).saturating_mul(1 << times.saturating_sub(1).min(MOST_DOUBLINGS))
}

/// From what the pod was started that Freehold has not applied; `None` where it was not.
pub(super) fn altered_pod(observed: &Observed) -> Option<RestartCause> {
    if is_template_altered(observed) {
        return Some(RestartCause::AlteredTemplate);
    }
    let before = applied_before(observed)?.altered_start.as_ref();
    altered_start(observed, before).map(|_| RestartCause::AlteredFiles)
}

fn is_template_altered(observed: &Observed) -> bool {
    let Some(revision) = revision_of_pod(observed) else { return false };
    let Some(applied) = applied_before(observed).filter(|applied| !applied.revisions.is_empty()) else {
        return false;
    };
    let is_applied = |known: &String| known == revision;
    !applied.revisions.iter().any(is_applied) && current_revision(observed) != Some(revision)
}

/// The start of the pod's engine, if it may have read a changed ConfigMap: one that is first seen, or still
/// to come, while the ConfigMap is altered. One that was seen before was no start from it.
fn altered_start(observed: &Observed, before: Option<&EngineStart>) -> Option<EngineStart> {
    let pod = observed.pod.as_ref()?;
    let run = pod::run(pod, observed.engine());
    let start = EngineStart { pod_uid: pod.uid()?, restarts: run.as_ref().map_or(0, |run| run.restarts) };
    let known = observed.database.status.as_ref().and_then(|status| status.run.as_ref());
    let was_seen = run.is_some()
        && known.is_some_and(|run| (&run.pod_uid, run.restarts) == (&start.pod_uid, start.restarts));
    let is_altered = !was_seen && config_map(observed) == Finding::Altered;
    (is_altered || before == Some(&start)).then_some(start)
}

fn revision_of_pod(observed: &Observed) -> Option<&str> {
    observed.pod.as_ref()?.labels().get(REVISION_LABEL).map(String::as_str)
}

/// The revision of the template that was applied last, once the StatefulSet's controller has seen it.
fn current_revision(observed: &Observed) -> Option<&str> {
    let live = observed.stateful_set.ours()?;
    let is_known = stateful_set(observed) == Finding::Same && safety::is_observed(live);
    live.status.as_ref().filter(|_| is_known)?.update_revision.as_deref()
}

/// Whether a pod that is deleted now comes back from what Freehold applied; otherwise from when on, if that
/// is known. Another client that alters an object at once, each time, restarts no database.
pub(super) fn settled(observed: &Observed, now: Timestamp) -> Result<(), Option<Timestamp>> {
    let moment = Compared::ALL.into_iter().filter_map(|object| held_until(observed, object, now)).max();
    let findings = Findings::of(observed);
    let is_same = |object: Compared| object.finding(findings) == Finding::Same;
    if moment.is_none() && Compared::ALL.into_iter().all(is_same) { Ok(()) } else { Err(moment) }
}

/// Whether a pod that is deleted now comes back from a template that no other client has changed; otherwise
/// from when on the template is restored, if that is not now.
pub(super) fn template_settled(observed: &Observed, now: Timestamp) -> Result<(), Option<Timestamp>> {
    match stateful_set(observed) {
        Finding::Altered => Err(held_until(observed, Compared::StatefulSet, now)),
        Finding::Same | Finding::Unknown => Ok(()),
    }
}

/// Says what was changed outside Freehold and is not as it should be.
pub(in crate::controller::database) fn reported(
    observed: &Observed,
    findings: Findings,
    now: Timestamp,
) -> Option<Entry> {
    if is_leaving(observed) {
        return None;
    }
    let is_refused = rendered(observed).is_none();
    let of_object = |object: Compared| {
        if object.finding(findings) != Finding::Altered {
            return None;
        }
        let name = object.name(observed);
        if is_refused {
            return Some(Alteration::SpecRefused { object: name });
        }
        held_until(observed, object, now).map(|until| Alteration::Repeated { object: name, until })
    };
    let pod = observed.pod.as_ref().zip(altered_pod(observed));
    let alterations: Vec<String> = Compared::ALL
        .into_iter()
        .filter_map(of_object)
        .chain(pod.map(|(pod, cause)| Alteration::Pod { pod: pod.name_any(), cause }))
        .map(|alteration| alteration.message())
        .collect();
    let kind = ConditionType::Altered;
    (!alterations.is_empty()).then(|| Entry::yes(kind, Reason::Altered, alterations.join("; ")))
}

/// The record of what was applied, after a pass: `before` is the record as its writes left it, and without
/// failure what was the same at its beginning still is.
pub(in crate::controller::database) fn record(
    observed: &Observed,
    findings: Findings,
    before: Option<Applied>,
    answers: &Answers,
    has_failed: bool,
) -> Option<Applied> {
    if is_leaving(observed) {
        return before;
    }
    let before = before.unwrap_or_default();
    let is_same = |object: Compared| !has_failed && object.finding(findings) == Finding::Same;
    // One that is the same has the fingerprint by which it was compared.
    let config_map = observed.config_map.ours().filter(|_| is_same(Compared::ConfigMap));
    let known = config_map.and_then(|_| applied_before(observed)?.config_map.clone());
    let stateful_set = observed.stateful_set.ours().filter(|_| is_same(Compared::StatefulSet));
    let applied = Applied {
        config_map: answers.config_map.as_ref().map(build::of_config_map).or(known).or(before.config_map),
        stateful_set: answers.stateful_set.as_ref().or(stateful_set).and_then(set).or(before.stateful_set),
        revisions: revisions(observed, before.revisions),
        altered_start: altered_start(observed, before.altered_start.as_ref()),
    };
    (applied != Applied::default()).then_some(applied)
}

/// A StatefulSet as the API server showed it.
fn set(live: &StatefulSet) -> Option<AppliedStatefulSet> {
    Some(AppliedStatefulSet {
        uid: live.meta().uid.clone()?,
        generation: live.meta().generation?,
        spec: build::of_stateful_set(live),
    })
}

/// The revisions that Freehold applied, as far as a pod may be of them. The pod that is there when the first
/// is recorded was created by an operator that recorded none.
fn revisions(observed: &Observed, before: Vec<String>) -> Vec<String> {
    let Some(current) = current_revision(observed) else { return before };
    let of_pod = revision_of_pod(observed).filter(|revision| *revision != current);
    let is_known = |revision: &&str| before.is_empty() || before.iter().any(|known| known == revision);
    let mut revisions = vec![current.to_owned()];
    revisions.extend(of_pod.filter(is_known).map(str::to_owned));
    revisions
}
