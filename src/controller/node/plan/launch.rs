//! The plan of a launch: what follows an attempt that has no instance yet, or whose instance ended before it
//! joined. Pure.

use jiff::Timestamp;

use super::action::{Action, Plan};
use super::facts::{attempt_facts, is_own, may_have_forgotten_a_launch};
use super::offering::{self, NoChoice};
use crate::api::creation::Refusal;
use crate::api::node::NodeCreation;
use crate::api::{ConditionType, InstanceId, NodeClass, NodeStatus};
use crate::cloud::error::{self, Class};
use crate::cloud::{InstanceState, identity};
use crate::controller::conditions;
use crate::controller::creation::next::{AfterRefusal, Next, Pauses, Pending, after_refusal, next};
use crate::controller::node::observe::Observed;
use crate::controller::node::registration::{has_joined, is_live, unwanted};
use crate::controller::node::wait::join::JoinWait;
use crate::controller::node::wait::launch::LaunchWait;
use crate::controller::node::wait::loss::LossWait;
use crate::controller::recurrence::{PAUSES, slow};
use crate::time::{SHORTEST_PAUSE, later};

/// Nothing was ever decided: the first attempt, unless EC2 has something of an attempt of this Node already
/// (the status was lost). What has only its tags was launched outside Freehold: nothing is decided by it.
pub(super) fn unlaunched(observed: &Observed, now: Timestamp) -> Plan {
    // One that is being terminated counts, too: another attempt may follow only when it is seen terminated.
    let own = || observed.instances.instances.iter().filter(|instance| is_own(observed, instance));
    let not_ended = own().filter(|instance| instance.state != InstanceState::Terminated);
    if let Some(instance) =
        not_ended.max_by_key(|instance| (is_live(instance), identity::attempt(&instance.tags)))
    {
        return Plan::act(
            vec![Action::RecordInstance(instance.id.clone())],
            LaunchWait::Adopted(instance.id.clone()),
        );
    }
    if may_have_forgotten_a_launch(observed) {
        return Plan::wait(LaunchWait::StatusLost).pending();
    }
    let used = own().filter_map(|instance| identity::attempt(&instance.tags)).max().unwrap_or(0);
    next_attempt(observed, used + 1, 0, now)
}

/// An attempt was decided and has no id yet.
pub(super) fn unidentified(observed: &Observed, launch: &NodeCreation, now: Timestamp) -> Plan {
    // The status is older than what was done (a restored etcd): the machine is the newest attempt's.
    let newer = observed.instances.instances.iter().filter(|instance| {
        is_live(instance)
            && is_own(observed, instance)
            && identity::attempt(&instance.tags) > Some(launch.attempt.number)
    });
    if let Some(instance) = newer.max_by_key(|instance| identity::attempt(&instance.tags)) {
        let wait = LaunchWait::AdoptedLater(instance.id.clone());
        return Plan::act(vec![Action::RecordInstance(instance.id.clone())], wait).pending();
    }
    let facts = attempt_facts(observed, launch, false);
    let reached = observed.offerings.reached(&offering::demand(launch));
    match next(facts, reached, observed.timing.client_token_max_age, now) {
        Next::Adopt(id) => {
            Plan::act(vec![Action::RecordInstance(id.clone())], LaunchWait::Found(id)).pending()
        }
        Next::Refused(refusal) => refused(observed, launch, refusal, now),
        // Pending, since the look-ups that are the proof are forgotten when nothing is awaited any more.
        Next::Another => {
            next_attempt(observed, launch.attempt.number + 1, launch.never_joined, now).pending()
        }
        Next::Resend => match &observed.class {
            Some(class) => Plan::act(
                vec![Action::Resend(class.spec.user_data.clone())],
                LaunchWait::Resent(launch.attempt.number),
            )
            .pending(),
            None => class_not_found(observed),
        },
        // Pending: what is in doubt is looked up all the while.
        Next::Wait(pending, until) => {
            let plan = Plan::wait(match pending {
                Pending::Quota(quota) => LaunchWait::Quota(quota, vec![launch.instance_type.clone()]),
                Pending::Throttled => LaunchWait::Throttled,
                Pending::InDoubt(doubt) => LaunchWait::InDoubt(launch.attempt.number, doubt),
            })
            .pending();
            match until {
                Some(until) => plan.until(until, now),
                None => plan,
            }
        }
    }
}

/// EC2 refused an attempt for certain.
fn refused(observed: &Observed, launch: &NodeCreation, refusal: Refusal, now: Timestamp) -> Plan {
    // Without capacity another offering is chosen.
    let pauses = Pauses { forbidden: observed.timing.forbidden_retry_interval, no_capacity: None };
    match after_refusal(&refusal, pauses, now, || asks_the_same_again(observed, launch, now)) {
        AfterRefusal::Forbidden(until) => Plan::wait(LaunchWait::Forbidden(refusal)).until(until, now),
        AfterRefusal::Invalid => {
            // What the class names may be there by now: then EC2 is asked soon, and else slowly.
            let pause = if observed.class.as_ref().is_some_and(NodeClass::is_launchable) {
                observed.timing.forbidden_retry_interval
            } else {
                slow(&observed.timing)
            };
            let due = later(refusal.at.0, pause);
            if now < due {
                let wait = LaunchWait::Invalid { refusal, class: class_name(observed) };
                return Plan::wait(wait).until(due, now);
            }
            next_attempt(observed, launch.attempt.number + 1, launch.never_joined, now)
        }
        AfterRefusal::Another | AfterRefusal::NoCapacity(_) => {
            next_attempt(observed, launch.attempt.number + 1, launch.never_joined, now)
        }
    }
}

/// Whether another attempt would ask for exactly what was refused.
fn asks_the_same_again(observed: &Observed, launch: &NodeCreation, now: Timestamp) -> bool {
    let Some(class) = &observed.class else { return true };
    let Ok((instance_type, subnet)) = offering::choose(observed, class, now) else {
        return !was_changed(observed, launch, now);
    };
    let next = offering::launch(
        observed,
        &class.spec,
        instance_type,
        subnet,
        launch.attempt.number,
        launch.never_joined,
        now,
    );
    next == as_decided_at(launch, &next)
}

/// Decides another attempt, if there is one to make.
fn next_attempt(observed: &Observed, attempt: i32, never_joined: i32, now: Timestamp) -> Plan {
    let Some(class) = &observed.class else { return class_not_found(observed) };
    if class.prevents_launches() {
        let faults = conditions::find(class.conditions(), ConditionType::Ready);
        return Plan::wait(LaunchWait::ClassNotReady {
            class: class_name(observed),
            faults: faults.map(|ready| ready.message.clone()).unwrap_or_default(),
        });
    }
    if let Some(device) = offering::shared_device(&class.spec) {
        return Plan::wait(LaunchWait::SharedDevice {
            class: class_name(observed),
            device: device.to_owned(),
        });
    }
    match offering::choose(observed, class, now) {
        Ok((instance_type, subnet)) => {
            let launch =
                offering::launch(observed, &class.spec, instance_type, subnet, attempt, never_joined, now);
            let wait =
                LaunchWait::Requested { instance_type: instance_type.to_owned(), zone: subnet.zone.clone() };
            Plan::act(vec![Action::Launch(Box::new(launch), class.spec.user_data.clone())], wait).pending()
        }
        Err(NoChoice::NoSubnet { zones }) => {
            Plan::wait(LaunchWait::NoSubnet { class: class_name(observed), zones })
        }
        Err(NoChoice::Elsewhere { subnet, zone, until }) => {
            let class = class_name(observed);
            let wait = LaunchWait::SubnetElsewhere { class, subnet: subnet.id, declared: subnet.zone, zone };
            Plan::wait(wait).until(until, now)
        }
        Err(NoChoice::NoAllowedType) => {
            let (wanted, allowed) =
                (observed.node.spec.instance_types.clone(), class.spec.instance_types.clone());
            Plan::wait(LaunchWait::NoAllowedType { class: class_name(observed), wanted, allowed })
        }
        Err(NoChoice::NoCapacity { refused, until }) => {
            Plan::wait(LaunchWait::NoCapacity { refused, until }).until(until, now)
        }
        Err(NoChoice::Quota { quota, types, until }) => {
            Plan::wait(LaunchWait::Quota(quota, types)).until(until, now)
        }
    }
}

fn class_not_found(observed: &Observed) -> Plan {
    let plan = Plan::wait(LaunchWait::ClassNotFound(class_name(observed)));
    Plan { requeue: Some(observed.timing.instance_sync_interval), ..plan }
}

fn class_name(observed: &Observed) -> String {
    observed.node.spec.node_class_name.clone()
}

/// The instance is terminated, or proven absent.
pub(super) fn ended(
    observed: &Observed,
    status: &NodeStatus,
    id: &InstanceId,
    reason: Option<&str>,
    now: Timestamp,
) -> Plan {
    let why = reason.map(str::to_owned);
    let is_adopted = observed.node.spec.instance_id.is_some();
    if is_adopted || has_joined(status) || observed.core_node.is_some() {
        // Judged elsewhere: no attempt may follow one that has joined, or that was adopted.
        return Plan::wait(LossWait::Terminated(id.clone(), why));
    }
    let (attempt, never_joined) = last_attempt(observed, status);
    if let Some(launch) = &status.creation
        && unwanted(&observed.node.spec, &launch.instance_type, &launch.zone).is_some()
    {
        // A person changed what is wanted: the count begins anew.
        return next_attempt(observed, attempt + 1, 0, now);
    }
    let failure = reason.and_then(error::launch_failure);
    let found_no_capacity = failure == Some(Class::Capacity);
    if let Some(launch) = &status.creation
        && found_no_capacity
        && observed.offerings.is_available(&launch.instance_type, &launch.zone)
        // It is one refusal, however long EC2 shows it: once its pause is over the type may be tried again.
        && now < later(launch.attempt.started_at.0, observed.timing.unavailable_offering_ttl)
    {
        let action = Action::MarkUnavailable(launch.instance_type.clone(), launch.zone.clone());
        let plan = Plan::act(vec![action], LaunchWait::NoCapacityFor(id.clone(), why));
        return Plan { requeue: Some(SHORTEST_PAUSE), ..plan };
    }
    if found_no_capacity {
        return next_attempt(observed, attempt + 1, never_joined, now);
    }
    // A machine that never ran has not changed Launched: its pause counts from its launch.
    let ended_at = conditions::since(&status.conditions, ConditionType::Launched, false).unwrap_or(now);
    let ended_at =
        status.creation.as_ref().map_or(ended_at, |launch| ended_at.max(launch.attempt.started_at.0));
    let due = |pause: u32| later(ended_at, observed.timing.relaunch_backoff.saturating_mul(pause));
    let ended = |due: Timestamp| Plan::wait(JoinWait::Ended(id.clone(), why)).until(due, now);
    let count = usize::try_from(never_joined).unwrap_or(usize::MAX);
    // EC2 itself ended it while it was launched: that says nothing of the class, and is not counted.
    if matches!(failure, Some(Class::InDoubt | Class::Quota)) {
        let due = due(PAUSES[count.min(PAUSES.len() - 1)]);
        return if now < due { ended(due) } else { next_attempt(observed, attempt + 1, never_joined, now) };
    }
    let Some(pause) = PAUSES.get(count) else {
        let due = later(ended_at, slow(&observed.timing));
        return never_joins(observed, status, attempt, due, now);
    };
    let due = due(*pause);
    if now < due { ended(due) } else { next_attempt(observed, attempt + 1, never_joined + 1, now) }
}

/// The number of the last attempt, and how many machines before it never joined.
fn last_attempt(observed: &Observed, status: &NodeStatus) -> (i32, i32) {
    if let Some(launch) = &status.creation {
        return (launch.attempt.number, launch.never_joined);
    }
    let own = observed.instances.instances.iter().filter(|other| is_own(observed, other));
    let attempts = own.filter_map(|other| identity::attempt(&other.tags));
    (attempts.max().unwrap_or(1), 0)
}

/// Machine after machine ended before it joined: another follows a change of the class or the spec, or when
/// so long has passed.
fn never_joins(
    observed: &Observed,
    status: &NodeStatus,
    attempt: i32,
    due: Timestamp,
    now: Timestamp,
) -> Plan {
    let Some(launch) = &status.creation else { return next_attempt(observed, attempt + 1, 0, now) };
    if was_changed(observed, launch, now) {
        return next_attempt(observed, attempt + 1, 0, now);
    }
    if now >= due {
        return next_attempt(observed, attempt + 1, launch.never_joined, now);
    }
    let wait = JoinWait::NeverJoins { machines: PAUSES.len() + 1, class: class_name(observed) };
    Plan::wait(wait).until(due, now)
}

/// Whether a person changed what the machine of this attempt is made of. Capacity does not count: it comes
/// and goes by itself.
fn was_changed(observed: &Observed, launch: &NodeCreation, now: Timestamp) -> bool {
    let Some(class) = &observed.class else { return false };
    if unwanted(&observed.node.spec, &launch.instance_type, &launch.zone).is_some() {
        return true;
    }
    let subnet = offering::subnets(&observed.node.spec, class)
        .into_iter()
        .find(|subnet| subnet.id == launch.subnet_id);
    let Some(subnet) =
        subnet.filter(|_| offering::is_allowed(&launch.instance_type, &class.spec.instance_types))
    else {
        return true;
    };
    let like = offering::launch(
        observed,
        &class.spec,
        &launch.instance_type,
        subnet,
        launch.attempt.number,
        launch.never_joined,
        now,
    );
    like != as_decided_at(launch, &like)
}

/// The attempt without what became of it: for a comparison of requests.
fn as_decided_at(launch: &NodeCreation, like: &NodeCreation) -> NodeCreation {
    NodeCreation { attempt: like.attempt.clone(), shape: like.shape, ..launch.clone() }
}
