//! The part of the plan that replaces a lost machine while something keeps the spec from being carried out:
//! repair needs nothing but what was decided before. Pure.

use jiff::Timestamp;

use super::action::{Action, Plan};
use super::machines::{self, Machines, can_serve, must_be_left};
use super::{access, placement, replacement, rollout};
use crate::controller::database::observe::Observed;
use crate::time::sooner;

/// The plan of a spec that is not carried out, and with it the steps of a repair. It waits for what keeps the
/// spec from being carried out, which a person must mend.
///
/// Nothing of the engine changes: the pod comes back from the template that is there. A machine that can
/// still serve is not left, since its pod may not be able to start anywhere else, as without its Secret.
pub(super) fn despite(mut plan: Plan, observed: &Observed, now: Timestamp) -> Plan {
    // Clients of an engine that goes on are not kept out for what a person must mend.
    if !plan.actions.iter().any(|action| matches!(action, Action::ApplyService(_))) {
        plan.actions.extend(access::selector_of_service(observed));
    }
    let is_known = observed.volume.ours().is_some() && observed.stateful_set.ours().is_some();
    let Some(decided) = machines::of(observed)
        .filter(|machines| is_known && observed.node_name_taken.is_none() && is_needed(observed, machines))
        .map(|machines| as_decided_before(observed, &machines))
    else {
        return plan;
    };
    let Some(machines) = machines::of(&decided) else { return plan };
    let replacing =
        must_be_left(machines.host).then(|| replacement::plan(&decided, &machines, now, &mut plan.actions));
    let serves_on = replacing.map_or(Some(machines.host), |replacing| replacing.serves_on);
    if let Some(node) = serves_on {
        placement::label(&decided, node, &mut plan.actions);
    }
    if let (Some(live), Some(pod)) = (decided.stateful_set.ours(), &decided.pod) {
        rollout::resized(&decided, live, pod, &mut plan.actions, now);
    }
    plan.requeue = Some(sooner(observed.timing.requeue_interval, plan.requeue));
    plan
}

/// A machine that cannot serve must be left, or the one that has taken its place has no label yet, or a pod
/// that is not on it.
fn is_needed(observed: &Observed, machines: &Machines<'_>) -> bool {
    let host = machines.host;
    if !can_serve(observed, host) {
        return must_be_left(host);
    }
    machines.successor.is_none() && !observed.carries_label(host)
}

/// The world in which the spec requests the machine that was decided before: the successor's, where there is
/// one, else that of the machine in use.
fn as_decided_before(observed: &Observed, machines: &Machines<'_>) -> Observed {
    let before = &machines.successor.unwrap_or(machines.host).spec;
    let mut world = observed.clone();
    let spec = &mut world.database.spec;
    spec.node_class_name.clone_from(&before.node_class_name);
    spec.instance_types.clone_from(&before.instance_types);
    spec.zones.clone_from(&before.zones);
    world
}
