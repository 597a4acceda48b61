//! How the tables write a plan of a Node: as one line.

use kube::ResourceExt as _;

use super::adopted::own_tags;
use super::*;
use crate::api::node::Fence;
use crate::controller::tests::plan_line::{PlanLine, otherwise};

/// A plan that is made at this moment of this world in one line: its actions, then what it waits for. A
/// Kubernetes node stands there as it is in the world, a request as the fixtures make it; what is otherwise
/// follows in braces.
pub(super) fn line(observed: &Observed, now: Timestamp, plan: &Plan) -> String {
    let word = |action: &Action| word(observed, now, action);
    let waiting = plan.waiting.as_ref().map(|waiting| (waiting.reason(), waiting.is_stalled()));
    let shown = PlanLine {
        pending: plan.pending,
        again: plan.requeue,
        ..PlanLine::of(plan.actions.iter().map(word).collect(), waiting)
    };
    shown.text()
}

fn word(observed: &Observed, now: Timestamp, action: &Action) -> String {
    let core_node = |verb: &str, found: &CoreNode| {
        let expected = observed.core_node.as_ref().expect("one that is changed is there");
        format!("{verb} {}{}", found.name_any(), otherwise(expected, found))
    };
    match action {
        Action::AddFinalizer => "add finalizer".to_owned(),
        Action::Launch(launch, user_data) => launched(now, launch, user_data),
        Action::Resend(user_data) => format!("launch again{}", unless_boot(user_data)),
        Action::RecordInstance(id) => format!("record {id}"),
        Action::Adopt(id, tags) => format!("adopt {id}{}", otherwise(&own_tags(), tags)),
        Action::Tag(id, tags) => format!("tag {id}{}", otherwise(&own_tags(), tags)),
        Action::Untag(id, resources, tags) => {
            let with = match resources.split_first() {
                Some((first, [])) if *first == id.0 => String::new(),
                Some((first, others)) if *first == id.0 => format!(" with {}", others.join(" and ")),
                _ => format!(" by {}", resources.join(" and ")),
            };
            format!("untag {id}{with}{}", otherwise(&own_tags(), tags))
        }
        Action::MarkUnavailable(name, zone) => format!("mark {name} unavailable in {zone}"),
        Action::LogConsole(id) => format!("log console of {id}"),
        Action::Terminate(id, why) => format!("terminate {id}: {why}"),
        Action::DeclareLost(fence) => {
            let Fence { cause, since, message, .. } = &**fence;
            let expected = Fence { started_at: Time(now), ..(**fence).clone() };
            let since = since.0.as_second() - at(0).as_second();
            format!("declare lost: {cause} since {since} s: {message}{}", otherwise(&expected, fence))
        }
        Action::Stop(id, false) => format!("stop {id}"),
        Action::Stop(id, true) => format!("stop {id} by force"),
        Action::OutOfService(found) => core_node("taint out of service", found),
        Action::Dedicate(found) => core_node("dedicate", found),
        Action::HoldCoreNode(found) => core_node("hold", found),
        Action::Cordon(name, uid) => format!("cordon {name} {uid}"),
        Action::EvictPod { namespace, name, uid, at_once } => {
            format!("evict {namespace}/{name} {uid}{}", if *at_once { " at once" } else { "" })
        }
        Action::EvictForeignPod { namespace, name, uid, grace_seconds } => {
            format!("evict foreign {namespace}/{name} {uid} within {grace_seconds} s")
        }
        Action::ReleaseCoreNode(found) => core_node("release", found),
        Action::RestoreCoreNode(found) => core_node("restore", found),
        Action::RemoveFinalizer => "remove finalizer".to_owned(),
    }
}

/// A launch. Expected is what the fixtures make of this type in the first subnet of this zone, with no
/// machine before that never joined.
fn launched(now: Timestamp, launch: &NodeCreation, user_data: &str) -> String {
    let NodeCreation { instance_type, zone, attempt, .. } = launch;
    let subnet = class().spec.subnets.iter().position(|subnet| subnet.zone == *zone).unwrap_or_default();
    let expected = launch_of(attempt.number, instance_type, subnet, 0, now);
    let (number, differs) = (attempt.number, otherwise(&expected, launch));
    format!("launch attempt {number}, {instance_type} in {zone}{differs}{}", unless_boot(user_data))
}

/// The user data, where it is not that of the fixtures.
fn unless_boot(user_data: &str) -> String {
    if user_data == "boot" { String::new() } else { format!(" with user data {user_data}") }
}
