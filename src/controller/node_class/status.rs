//! The status step of the NodeClass controller: computes the NodeClassStatus, its conditions, and the event
//! of their change. Pure.

use jiff::Timestamp;

use super::catalog::Catalog;
use super::fault::Fault;
use super::messages;
use super::observe::Observed;
use super::plan::Plan;
use super::wait::ClassWait;
use crate::api::ConditionType as Type;
use crate::api::node_class_status::{ImageStatus, SubnetStatus};
use crate::api::{EventReason, NodeClass, NodeClassStatus, Reason};
use crate::cluster::events::Happened;
use crate::controller::conditions::{self, Entry};
use crate::controller::pass::acted::{Acted, why};

/// What is compared, with the sentence of each if nothing is wrong with it.
const COMPARED: [(Type, &str); 6] = [
    (Type::ImageReady, messages::IMAGE_READY),
    (Type::NetworkReady, messages::NETWORK_READY),
    (Type::InstanceTypesReady, messages::INSTANCE_TYPES_READY),
    (Type::StorageClassReady, messages::STORAGE_CLASS_READY),
    (Type::UserDataReady, messages::USER_DATA_READY),
    (Type::LaunchAccepted, messages::LAUNCH_ACCEPTED),
];

/// The status to write.
pub fn status(observed: &Observed, plan: &Plan, acted: &Acted<NodeClass>, now: Timestamp) -> NodeClassStatus {
    let old = acted.object.status.clone().unwrap_or_default();
    let generation = observed.class.metadata.generation;
    // What EC2 showed of this spec stands until EC2 shows something else.
    let is_unread = matches!(plan.waiting, Some(ClassWait::Unread(_)));
    if is_unread && old.observed_generation == generation && !old.conditions.is_empty() {
        return old;
    }
    let catalog = observed.catalog.as_ref().ok();
    NodeClassStatus {
        observed_generation: generation,
        conditions: conditions::merge(&old.conditions, &entries(observed, plan, acted), generation, now),
        launchable: plan.launchable,
        dry_run: observed.launch_check.answer.clone(),
        ended_launch: plan.ended_launch.clone(),
        image: catalog.and_then(image),
        subnets: catalog.map(|catalog| subnets(observed, catalog)).unwrap_or_default(),
    }
}

/// What changed so that an event reports it.
pub fn changes(old: &NodeClassStatus, new: &NodeClassStatus) -> Option<Happened> {
    let ready = |status: &NodeClassStatus| conditions::find(&status.conditions, Type::Ready).cloned();
    let is_true = |status: &NodeClassStatus| conditions::is_true(&status.conditions, Type::Ready);
    let now = ready(new)?;
    if is_true(new) {
        return (!is_true(old)).then(|| Happened::normal(EventReason::NodeClassReady, now.message));
    }
    let is_new = ready(old).is_none_or(|before| before.message != now.message);
    // Without faults it only waits.
    let has_faults = new.launchable.is_some();
    (is_new && has_faults).then(|| Happened::warning(EventReason::NodeClassFaulty, now.message))
}

fn image(catalog: &Catalog) -> Option<ImageStatus> {
    let image = catalog.image.as_ref()?;
    Some(ImageStatus { name: image.name.clone(), architecture: image.architecture.clone() })
}

/// In the order of the spec: EC2's own may change from answer to answer.
fn subnets(observed: &Observed, catalog: &Catalog) -> Vec<SubnetStatus> {
    let ids = observed.class.spec.subnets.iter().map(|subnet| &subnet.id);
    let shown = ids.filter_map(|id| catalog.subnets.iter().find(|subnet| subnet.id == *id));
    let status = shown.map(|subnet| SubnetStatus {
        id: subnet.id.clone(),
        zone: subnet.zone.clone(),
        vpc_id: subnet.vpc_id.clone(),
    });
    status.collect()
}

fn entries(observed: &Observed, plan: &Plan, acted: &Acted<NodeClass>) -> Vec<Entry> {
    let waiting = plan.waiting.as_ref().map(|waiting| (waiting.reason(), waiting.message()));
    let found = plan.faults.first().map(|fault| (fault.reason(), messages::faults(&plan.faults)));
    let holds = waiting.is_none() && found.is_none() && acted.error.is_none();
    let (reason, message) = why(acted.error.as_ref(), None, waiting.or_else(|| found.clone()));
    let mut entries = vec![if holds {
        Entry::yes(Type::Ready, Reason::AsExpected, messages::READY)
    } else {
        Entry::no(Type::Ready, reason, message.clone())
    }];
    entries.extend(COMPARED.map(|(kind, sentence)| {
        let faults: Vec<Fault> =
            plan.faults.iter().filter(|fault| fault.condition() == kind).cloned().collect();
        match faults.first() {
            Some(first) => Entry::no(kind, first.reason(), messages::faults(&faults)),
            None if plan.launchable.is_none() => Entry::no(kind, reason, message.clone()),
            // The class may be ready all the same: EC2 is asked when no launch needs the request.
            None if kind == Type::LaunchAccepted && observed.launch_check.answer.is_none() => {
                Entry::no(kind, Reason::Progressing, messages::LAUNCH_NOT_CHECKED)
            }
            None => Entry::yes(kind, Reason::AsExpected, sentence),
        }
    }));
    entries.push(conditions::stalled(stalled(plan, found)));
    entries
}

/// What a person must end.
fn stalled(plan: &Plan, found: Option<(Reason, String)>) -> Option<(Reason, String)> {
    let waiting = plan.waiting.as_ref().filter(|waiting| waiting.is_stalled());
    let waiting = waiting.map(|waiting| (waiting.reason(), waiting.message()));
    waiting.or_else(|| found.filter(|_| plan.faults.iter().any(Fault::is_stalled)))
}
