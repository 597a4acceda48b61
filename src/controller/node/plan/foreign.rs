//! The plan for pods that have no business on the machine of a database: a machine is its database's alone.
//! Pure.

use kube::ResourceExt;

use super::action::{Action, Plan};
use crate::api::NodeStatus;
use crate::cloud::InstanceState;
use crate::controller::node::observe::Observed;
use crate::controller::node::pods;

/// The plan, and the deletion of each foreign pod after everything else: nothing waits for it, and one that
/// the API server refuses comes in the way of nothing. Pods are not watched, so where there was a foreign
/// pod, the next look is soon: what created it may create it anew.
pub(super) fn evicted(observed: &Observed, status: &NodeStatus, mut plan: Plan) -> Plan {
    let instance = status.instance_id.as_ref().and_then(|id| observed.instances.by_id(id));
    // The pods that ran on a machine before it was adopted stay: one of them is the database. On one that is
    // released nothing is ended.
    if observed.node.spec.instance_id.is_some() || observed.node.spec.release {
        return plan;
    }
    // What is left on a machine that has ended is deleted at once with everything else.
    if instance.is_none_or(|instance| instance.state != InstanceState::Running) {
        return plan;
    }
    let grace = observed.timing.foreign_pod_grace;
    let mut foreign = pods::foreign(&observed.pods, &observed.node).peekable();
    if foreign.peek().is_some() {
        let soon = observed.timing.instance_sync_interval;
        plan.requeue = Some(plan.requeue.map_or(soon, |requeue| requeue.min(soon)));
    }
    plan.actions.extend(foreign.filter_map(|pod| {
        Some(Action::EvictForeignPod {
            namespace: pod.namespace().unwrap_or_default(),
            name: pod.name_any(),
            uid: pod.uid().unwrap_or_default(),
            grace_seconds: pods::shortened_grace(pod, grace)?,
        })
    }));
    plan
}
