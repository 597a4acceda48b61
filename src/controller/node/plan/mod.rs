//! The plan step of the Node controller: compares what is with what should be, and decides the actions. Pure.

mod check;
mod duplicates;
mod initialization;
mod launch;
mod termination;

pub mod action;
pub(super) mod facts;
pub mod fence;
pub mod loss;
pub mod offering;

use jiff::Timestamp;
use kube::ResourceExt;

use self::action::{Action, Plan};
use self::duplicates::duplicates;
use self::facts::{proven_absent, terminate};
use self::loss::Judgement;
use super::messages;
use super::observe::Observed;
use super::wait::{LaunchWait, LossWait, NodeWait};

use crate::api::{InstanceId, NodeStatus};
use crate::cloud::InstanceState;
use crate::cluster::finalizer;

/// Decides what to do about a Node. A debug build checks each plan by the rules of `check.rs`.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let plan = decide(observed, now);
    debug_assert_eq!(check::violations(observed, &plan), Vec::<String>::new(), "the plan of {}", observed.node.name_any());
    plan
}

fn decide(observed: &Observed, now: Timestamp) -> Plan {
    if observed.node.metadata.deletion_timestamp.is_some() {
        return termination::plan(observed, now);
    }
    if !finalizer::has(&observed.node) {
        return Plan::act(vec![Action::AddFinalizer], NodeWait::Finalizer);
    }
    if observed.instances.swept_at.is_none() {
        return Plan::wait(NodeWait::FirstSync);
    }
    let status = observed.node.status.clone().unwrap_or_default();
    let mut plan = match (&status.launch, &status.instance_id) {
        (_, Some(id)) => identified(observed, &status, id, now),
        (Some(launch), None) => launch::unidentified(observed, launch, now),
        (None, None) => launch::unlaunched(observed, now),
    };
    let duplicates = duplicates(observed, &status, now);
    // Before anything is launched; and pending, until EC2 shows them terminated.
    plan.pending |= duplicates.are_leaving;
    plan.actions.splice(0..0, duplicates.actions);
    if let (Some(blocker), None) = (duplicates.blockers.first(), &plan.waiting) {
        plan.waiting = Some(NodeWait::Blocked(blocker.clone()));
    }
    plan
}

/// The Node has an instance.
fn identified(observed: &Observed, status: &NodeStatus, id: &InstanceId, now: Timestamp) -> Plan {
    match loss::judge(observed, status, now) {
        Judgement::Well => shown(observed, status, id, now),
        Judgement::Suspected(loss) => {
            let plan = shown(observed, status, id, now);
            let waiting = plan.waiting.clone().unwrap_or_else(|| LossWait::Suspected(loss.cause, loss.signs.clone()).into());
            Plan { waiting: Some(waiting), ..plan }.until(loss.due, now)
        }
        Judgement::Due(loss) => fence::begin(observed, status, id, &loss, now),
        Judgement::Lost(fence) => fence::given_up(observed, status, id, &fence, now),
    }
}

/// The Node has an instance that is not given up.
fn shown(observed: &Observed, status: &NodeStatus, id: &InstanceId, now: Timestamp) -> Plan {
    let Some(instance) = observed.instances.by_id(id) else {
        return if proven_absent(observed, status.launch.as_ref()).is_some() {
            // Pending, since the look-ups that are the proof are forgotten when nothing is awaited any more.
            launch::ended(observed, status, id, None, now).pending()
        } else {
            Plan::wait(LaunchWait::NotListed(id.clone())).pending()
        };
    };
    match instance.state {
        InstanceState::Pending => Plan::wait(LaunchWait::Starting(id.clone())).pending(),
        InstanceState::Running => initialization::running(observed, status, instance, now),
        InstanceState::Terminated => launch::ended(observed, status, id, instance.state_reason.as_deref(), now),
        InstanceState::ShuttingDown => Plan::wait(LossWait::ShuttingDown(id.clone())).pending(),
        InstanceState::Stopping | InstanceState::Stopped => {
            terminate(observed, id, messages::STOPPED_BEFORE_JOIN.to_owned(), LossWait::StoppedBeforeJoin(id.clone()), now)
        }
        InstanceState::Unknown => Plan::wait(LaunchWait::UnknownState(id.clone())),
    }
}
