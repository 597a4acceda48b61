//! What differs between the pod of an adopted database and the next one. Pure.
//!
//! The pod of any other database is replaced as soon as its template changes, which Ready says. An adopted
//! one goes on as it was found, and differs from its StatefulSet until it is started the next time.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use kube::ResourceExt;

use super::facts::{adoption, inputs_of_pod, inputs_of_set, wanted_inputs};
use super::leaving::is_leaving;
use super::{going_back, permission};
use crate::api::{ConditionType, Reason};
use crate::controller::conditions::Entry;
use crate::controller::database::build;
use crate::controller::database::messages::next_start as sentences;
use crate::controller::database::observe::Observed;

/// Says what changes for the pod when it is started the next time, and whether that is soon.
pub(in crate::controller::database) fn reported(observed: &Observed) -> Option<Entry> {
    let adoption = adoption(observed).filter(|_| !is_leaving(observed))?;
    let (live, pod) = (observed.stateful_set.ours()?, observed.pod.as_ref()?);
    let kind = ConditionType::RestartPending;
    let is_outdated = inputs_of_pod(observed, pod) != Some(wanted_inputs(observed));
    // What is not permitted restarts nothing.
    let restarts = is_outdated && observed.database.spec.running && permission::engine(observed).is_none();
    if let Some(back) = going_back::recorded(observed).filter(|_| !is_outdated) {
        return Some(Entry::no(kind, Reason::WentBack, going_back::went_back(back).message()));
    }
    let before = if pod.metadata.uid.as_ref() == Some(&adoption.pod_uid) {
        adoption.found_set().and_then(|found| found.spec).map(|spec| spec.template)
    } else {
        made_from(observed, live, pod)
    };
    let after = live.spec.as_ref().map(|spec| &spec.template);
    let fields = before.as_ref().zip(after).map(|(before, after)| build::changed_fields(before, after));
    let fields = fields.unwrap_or_default();
    let name = pod.name_any();
    Some(if restarts {
        Entry::yes(kind, Reason::RestartPending, sentences::restarts(&name, &fields))
    } else if fields.is_empty() {
        Entry::no(kind, Reason::UpToDate, sentences::same(&name))
    } else {
        Entry::yes(kind, Reason::AtNextStart, sentences::at_next_start(&name, &fields))
    })
}

/// The template that a later pod was made from: all that the spec changes in it are images and resources.
/// What admission has changed in the pod is no difference, so the pod of the newest template has none.
fn made_from(observed: &Observed, live: &StatefulSet, pod: &Pod) -> Option<PodTemplateSpec> {
    let mut template = live.spec.as_ref()?.template.clone();
    if inputs_of_pod(observed, pod).as_deref() == inputs_of_set(live) {
        return Some(template);
    }
    let ran = &pod.spec.as_ref()?.containers;
    for container in template.spec.iter_mut().flat_map(|spec| &mut spec.containers) {
        if let Some(ran) = ran.iter().find(|ran| ran.name == container.name) {
            container.image.clone_from(&ran.image);
            container.resources.clone_from(&ran.resources);
        }
    }
    Some(template)
}
