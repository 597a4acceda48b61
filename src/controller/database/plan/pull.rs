//! The engine's next image is pulled onto its machine before anything else changes: an engine that runs is
//! not ended for an image that its machine cannot get, and pulls nothing while it is down. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::action::{Action, Plan};
use super::facts::is_outdated;
use super::leaving::is_leaving;
use crate::api::database::{ImagePull, PullOutcome};
use crate::controller::database::build;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::Child;
use crate::controller::database::pod::{Pulled, engine_container, is_running, machine, pulled};
use crate::controller::database::wait::RestartStep;
use crate::engine::Profile;
use crate::time::{later, whole_second};

/// How long a pull is awaited that neither succeeds nor fails: the registry is slow, the pod is not started,
/// or another client deletes it. Images of engines have some hundred MiB.
const LONGEST: Duration = Duration::from_secs(300);

/// What is to be pulled, and where.
struct Target<'a> {
    profile: &'a Profile,
    pod: &'a Pod,
    machine: &'a str,
}

/// What is to be pulled: the image of the template that is to be applied, onto the machine of the pod that is
/// to be replaced. An adopted database has its own way back (`going_back.rs`).
fn target(observed: &Observed) -> Option<Target<'_>> {
    let (live, pod) = (observed.stateful_set.ours()?, observed.pod.as_ref()?);
    let profile = observed.profile.as_ref().ok()?;
    let is_to_change = observed.database.spec.running
        && observed.database.spec.adopt.is_none()
        && !is_leaving(observed)
        && is_outdated(observed, live);
    let before = engine_container(pod, observed.engine())?.image.as_ref()?;
    let machine = machine(pod).filter(|_| pod.metadata.deletion_timestamp.is_none())?;
    (is_to_change && *before != profile.image).then_some(Target { profile, pod, machine })
}

impl Target<'_> {
    /// Whether this pod pulls that.
    fn is_of(&self, puller: &Pod) -> bool {
        let image = puller.spec.as_ref().and_then(|spec| spec.containers.first()?.image.as_ref());
        image == Some(&self.profile.image) && machine(puller) == Some(self.machine)
    }

    /// What is recorded of it.
    fn record<'a>(&self, observed: &'a Observed) -> Option<&'a ImagePull> {
        let record = observed.database.status.as_ref()?.image_pull.as_ref()?;
        (record.image == self.profile.image).then_some(record)
    }
}

/// The pod that pulls what is to be pulled, if it is there to stay.
fn puller<'a>(observed: &'a Observed, target: &Target<'_>) -> Option<&'a Pod> {
    let stays = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
    observed.puller.ours().filter(stays).filter(|pod| target.is_of(pod))
}

/// What is awaited of the next image before the template is applied. A pod whose engine does not run is
/// replaced at once, but for an image that cannot be pulled: it would start from that no better.
pub(super) fn before_restart(
    observed: &Observed,
    actions: &mut Vec<Action>,
    now: Timestamp,
) -> Option<RestartStep> {
    let target = target(observed)?;
    let image = target.profile.image.clone();
    let record = target.record(observed);
    let outcome = record.and_then(|record| record.outcome);
    let there = puller(observed, &target);
    match there.and_then(pulled) {
        Some(Pulled::Yes) => return None,
        Some(Pulled::No(said)) => return Some(RestartStep::NotPulled { image, said: Some(said) }),
        // A kubelet that was started anew has not tried again yet.
        None if outcome == Some(PullOutcome::NotPulled) && there.is_some() => {
            return Some(RestartStep::NotPulled { image, said: None });
        }
        Some(Pulled::Unknown) | None => {}
    }
    let since = record.map(|record| record.since.0);
    let since = since.or_else(|| Some(there?.metadata.creation_timestamp.as_ref()?.0));
    let is_overdue = since.is_some_and(|since| now >= later(since, LONGEST));
    let has_ended = there.and_then(pulled).is_some();
    let is_awaited = !is_overdue && !has_ended && outcome != Some(PullOutcome::NotTried);
    if !is_awaited || !is_running(target.pod, observed.engine()) || observed.puller == Child::Foreign {
        return None;
    }
    if observed.puller == Child::Absent {
        let since = Time(since.unwrap_or_else(|| whole_second(now)));
        let record = ImagePull { image: image.clone(), since, outcome };
        let puller = build::pull_pod(&observed.names, target.profile, target.machine);
        actions.push(Action::PullImage(Box::new(puller), record));
    }
    Some(RestartStep::Pulling { image })
}

/// Whether the kubelet cannot pull the next image: an engine that moves meanwhile runs as before.
pub(super) fn is_refused(observed: &Observed) -> bool {
    let Some(target) = target(observed) else { return false };
    let is_recorded = || target.record(observed).and_then(|it| it.outcome) == Some(PullOutcome::NotPulled);
    match puller(observed, &target).map(pulled) {
        Some(Some(Pulled::No(_))) => true,
        Some(None) => is_recorded(),
        Some(Some(Pulled::Yes | Pulled::Unknown)) | None => false,
    }
}

/// The plan, with the end of a pod that pulls what is not to be pulled any more.
pub(super) fn ended(mut plan: Plan, observed: &Observed) -> Plan {
    let is_of_target = |pod: &Pod| target(observed).is_some_and(|target| target.is_of(pod));
    let former = observed.puller.ours().filter(|pod| !is_of_target(pod));
    if let Some(former) = former.filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
        // Nothing waits for it, and the Database goes last.
        let is_last = |action: &Action| *action == Action::RemoveFinalizer;
        let place = plan.actions.iter().position(is_last).unwrap_or(plan.actions.len());
        plan.actions.insert(place, Action::EndPull(former.uid().unwrap_or_default()));
    }
    plan
}

/// The record of the pull, as long as there is one.
pub(in crate::controller::database) fn shown(
    observed: &Observed,
    recorded: Option<ImagePull>,
) -> Option<ImagePull> {
    let target = target(observed)?;
    let record = recorded.filter(|record| record.image == target.profile.image)?;
    let is_refused = matches!(puller(observed, &target).and_then(pulled), Some(Pulled::No(_)));
    let outcome = if is_refused { Some(PullOutcome::NotPulled) } else { record.outcome };
    Some(ImagePull { outcome, ..record })
}
