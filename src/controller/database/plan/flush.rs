//! The part of the plan that has an engine write what it has in memory to its volume before Freehold stops it
//! by choice, so that clients are without it for as short as can be. Pure.
//!
//! It is the last word on a stop: whatever the plan stops a serving engine for, it does so a moment later. An
//! engine that does not serve, whose machine may be failing, or that cannot be reached is stopped at once,
//! and so is that of a Database that is deleted: no client waits for its return
//! (docs/decisions/0031-a-flush-before-a-planned-stop.md).

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::action::{Action, Flush, Plan};
use super::facts::{engine_waiting, is_named};
use super::leaving::is_leaving;
use super::machines::{self, is_lost};
use super::{drift, rotation};
use crate::api::Node;
use crate::controller::database::observe::Observed;
use crate::controller::database::pod::machine;
use crate::controller::database::wait::DatabaseWait;
use crate::controller::memory::flushes::FlushView;
use crate::controller::safety;
use crate::engine::postgresql::MAINTENANCE_DATABASE;
use crate::time::{later, sooner};

/// How long it may take, with the connection. A volume that writes 125 MB/s, the least of a gp3, writes 37 GB
/// in it, the server's own cache on a machine with 150 GB; and the machine that takes another one's place
/// took about as long to start. What is not written by then, the stop writes.
pub(in crate::controller::database) const LIMIT: Duration = Duration::from_secs(300);

/// For how long one that ended counts: twice the longest pause after a failed pass, so that a stop which the
/// API server refuses does not begin another one each time.
const COUNTS: Duration = Duration::from_secs(600);

/// What precedes a stop.
enum Step {
    /// To begin.
    Begin(Flush),
    /// To wait for its end.
    Await,
}

/// The plan, in which nothing stops an engine that is to be flushed before.
pub(super) fn before_stop(mut plan: Plan, observed: &Observed, now: Timestamp) -> Plan {
    if plan.actions.iter().any(stops)
        && let Some(step) = step(observed, now)
    {
        // The label goes with the pod: a database whose label is elsewhere has moved already.
        let is_of_move = |it: &Action| matches!(it, Action::Label(..) | Action::Unlabel(..));
        plan.actions.retain(|action| !stops(action) && !is_of_move(action));
        if let Step::Begin(flush) = step {
            // First: a NetworkPolicy that is refused must not keep the engine from being stopped.
            plan.actions.insert(0, Action::BeginFlush(Box::new(flush)));
        }
        let pod = observed.names.pod();
        plan.waiting = plan.waiting.map(|wait| {
            if wait.is_of_stop() { DatabaseWait::Flushing { pod, stop: Box::new(wait) } } else { wait }
        });
        return soon(plan, observed);
    }
    plan
}

/// Nothing in Kubernetes shows how far it is.
fn soon(plan: Plan, observed: &Observed) -> Plan {
    let requeue = sooner(observed.timing.requeue_interval / 5, plan.requeue);
    plan.requeue(requeue)
}

/// Whether this ends an engine that serves.
fn stops(action: &Action) -> bool {
    matches!(action, Action::Scale(_, 0) | Action::StopForNextPassword(..) | Action::ReplacePod(..))
}

/// What comes before the stop; nothing where that may be now.
fn step(observed: &Observed, now: Timestamp) -> Option<Step> {
    let pod = observed.pod.as_ref().filter(|pod| may_wait(observed, pod))?;
    match observed.flush {
        FlushView::Running(since) => (now < later(since, LIMIT)).then_some(Step::Await),
        FlushView::Ended(at) if now < later(at, COUNTS) => None,
        FlushView::NotBegun | FlushView::Ended(_) => flush(observed, pod).map(Step::Begin),
    }
}

/// Whether a stop of this pod may wait: its engine serves, on a machine that nothing is wrong with.
fn may_wait(observed: &Observed, pod: &Pod) -> bool {
    let is_host = |node: &&Node| machine(pod).is_some_and(|name| is_named(node, name));
    let host = observed.nodes.iter().find(is_host);
    // One that another client has altered is given no password.
    !is_leaving(observed)
        && drift::altered_pod(observed).is_none()
        && machines::of(observed).is_some_and(|machines| !is_lost(machines.host))
        && engine_waiting(observed).is_none()
        && host.is_some_and(|host| is_healthy(observed, host))
}

fn is_healthy(observed: &Observed, node: &Node) -> bool {
    let status = node.status.as_ref();
    let is_suspect =
        status.is_some_and(|status| status.impaired_since.is_some() || status.not_ready_since.is_some());
    let reports = observed.core_node_of(node).is_some_and(|it| !safety::is_silent(it));
    !is_lost(node) && !is_suspect && reports
}

/// How the engine is flushed; nothing where it has no statement for it, cannot be reached, or may have
/// another password than the one in force.
fn flush(observed: &Observed, pod: &Pod) -> Option<Flush> {
    let profile = observed.profile.as_ref().ok()?;
    let statement = profile.flush?;
    let secret = &rotation::usable(observed).filter(|_| !rotation::may_have_next(observed))?.0;
    let access = rotation::access(profile, secret, pod, MAINTENANCE_DATABASE)?;
    Some(Flush { pod_uid: pod.uid()?, access, statement })
}
