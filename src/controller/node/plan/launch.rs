//! The plan of a launch: what follows an attempt that has no instance yet, or whose instance ended before it joined. Pure.

use jiff::Timestamp;

use super::action::{Action, Plan};
use super::facts::{attempt_facts, is_own};
use super::offering::{self, NoChoice};

use crate::api::node::{NodeLaunch, Refusal};
use crate::api::{ConditionType, InstanceId, NodeStatus, Reason};
use crate::cloud::error::{self, Class};
use crate::cloud::{InstanceState, identity};
use crate::controller::conditions::{self, whole_second};
use crate::controller::creation::judge::{Doubt, Verdict, judge};
use crate::controller::node::observe::Observed;
use crate::controller::node::registration::{has_joined, is_live, unwanted};
use crate::time::{SHORTEST_PAUSE, later};

/// How often a machine that never joined is replaced before the Node stalls; the pauses are 1, 5 and 15 times the setting.
const REJOIN_PAUSES: [u32; 3] = [1, 5, 15];

/// Nothing was ever decided: the first attempt, unless EC2 has something under this UID already (the status was lost).
pub(super) fn unlaunched(observed: &Observed, now: Timestamp) -> Plan {
    // One that is being terminated counts, too: another attempt may follow only when it is seen terminated.
    let not_ended = observed.instances.instances.iter().filter(|instance| instance.state != InstanceState::Terminated);
    if let Some(instance) = not_ended.max_by_key(|instance| (is_live(instance), identity::attempt(&instance.tags))) {
        return Plan::act(
            vec![Action::RecordInstance(instance.id.clone())],
            Reason::Launching,
            format!("instance {} carries this Node's identity and is taken on", instance.id),
        );
    }
    let used = observed.instances.instances.iter().filter_map(|instance| identity::attempt(&instance.tags)).max().unwrap_or(0);
    next_attempt(observed, used + 1, 0, now)
}

/// An attempt was decided and has no id yet.
pub(super) fn unidentified(observed: &Observed, launch: &NodeLaunch, now: Timestamp) -> Plan {
    // The status is older than what was done (a restored etcd): the machine is the newest attempt's.
    let newer = observed
        .instances
        .instances
        .iter()
        .filter(|instance| is_live(instance) && is_own(observed, instance) && identity::attempt(&instance.tags) > Some(launch.attempt));
    if let Some(instance) = newer.max_by_key(|instance| identity::attempt(&instance.tags)) {
        let message = format!("instance {} is of a later attempt than the status knows, and is recorded", instance.id);
        return Plan::act(vec![Action::RecordInstance(instance.id.clone())], Reason::Launching, message).pending();
    }
    let facts = attempt_facts(observed, launch, false);
    match judge(facts, observed.timing.token_resend, now) {
        Verdict::Adopt(id) => Plan::act(
            vec![Action::RecordInstance(id.clone())],
            Reason::Launching,
            format!("instance {id} was launched by this attempt and is recorded"),
        )
        .pending(),
        Verdict::Refused => refused(observed, launch, now),
        // Pending, since the look-ups that are the proof are forgotten when nothing is awaited any more.
        Verdict::ProvenAbsent(_) => next_attempt(observed, launch.attempt + 1, launch.never_joined, now).pending(),
        Verdict::Resend => {
            if let Some(until) = observed.offerings.quota_closed_until {
                // Pending: what is in doubt is looked up all the while.
                return quota(until, now).pending();
            }
            match &observed.class {
                Some(class) => Plan::act(
                    vec![Action::Resend(class.spec.user_data.clone())],
                    Reason::InDoubt,
                    format!("attempt {} has no answer yet; the same call is sent again", launch.attempt),
                )
                .pending(),
                None => class_not_found(observed),
            }
        }
        Verdict::Wait(Doubt::Pause, Some(until)) if observed.sent.is_some_and(|sent| !sent.in_doubt) => {
            let patience =
                || Plan::wait(Reason::Throttled, "EC2 made nothing and asks for patience; the same call follows").until(until, now);
            observed.offerings.quota_closed_until.map_or_else(patience, |until| quota(until, now)).pending()
        }
        Verdict::Wait(doubt, until) => {
            let plan = Plan::wait(
                Reason::InDoubt,
                format!("it is not known whether EC2 carried out launch attempt {}: {}", launch.attempt, doubt.as_words()),
            )
            .pending();
            match until {
                Some(until) => plan.until(until, now),
                None => plan,
            }
        }
    }
}

/// EC2 refused an attempt for certain.
fn refused(observed: &Observed, launch: &NodeLaunch, now: Timestamp) -> Plan {
    let Some(refusal) = &launch.refused else {
        return next_attempt(observed, launch.attempt + 1, launch.never_joined, now);
    };
    let said = said(refusal);
    match error::classify(Some(&refusal.code), &refusal.message, None) {
        Class::Forbidden | Class::NotYetUsable => {
            let until = later(refusal.at.0, observed.timing.forbidden_pause);
            if now < until {
                return Plan::wait(Reason::Forbidden, format!("EC2 does not allow the launch: {said}; tried again by itself"))
                    .until(until, now);
            }
            next_attempt(observed, launch.attempt + 1, launch.never_joined, now)
        }
        Class::Invalid if asks_the_same_again(observed, launch, now) => Plan::stalled(
            Reason::InvalidRequest,
            format!("EC2 refuses the launch as invalid: {said}; change NodeClass {} or the spec", observed.node.spec.node_class_name),
        ),
        Class::Invalid
        | Class::Capacity
        | Class::InDoubt
        | Class::Throttled
        | Class::Quota
        | Class::Token
        | Class::NotFound
        | Class::State
        | Class::ModificationBudget => next_attempt(observed, launch.attempt + 1, launch.never_joined, now),
    }
}

fn said(refusal: &Refusal) -> String {
    format!("{} ({})", refusal.code, refusal.message)
}

/// Whether another attempt would ask for exactly what was refused.
fn asks_the_same_again(observed: &Observed, launch: &NodeLaunch, now: Timestamp) -> bool {
    let Some(class) = &observed.class else { return true };
    let Ok((instance_type, subnet)) = offering::choose(observed, &class.spec, now) else { return true };
    let next = offering::launch(observed, &class.spec, instance_type, subnet, launch.attempt, launch.never_joined, now);
    next == as_decided_at(launch, &next)
}

/// Decides another attempt, if there is one to make.
fn next_attempt(observed: &Observed, attempt: i32, never_joined: i32, now: Timestamp) -> Plan {
    let Some(class) = &observed.class else { return class_not_found(observed) };
    if let Some(until) = observed.offerings.quota_closed_until {
        return quota(until, now);
    }
    match offering::choose(observed, &class.spec, now) {
        Ok((instance_type, subnet)) => {
            let launch = offering::launch(observed, &class.spec, instance_type, subnet, attempt, never_joined, now);
            let message = format!("{instance_type} is asked for in {}", subnet.zone);
            Plan::act(vec![Action::Launch(Box::new(launch), class.spec.user_data.clone())], Reason::Launching, message).pending()
        }
        Err(NoChoice::Mismatch(message)) => Plan::stalled(Reason::NodeClassMismatch, message),
        Err(NoChoice::NoCapacity { refused, until }) => {
            let message = format!("EC2 has no capacity for {refused}; the first of them is tried again at {}", whole_second(until));
            Plan::wait(Reason::InsufficientCapacity, message).until(until, now)
        }
    }
}

fn class_not_found(observed: &Observed) -> Plan {
    let name = &observed.node.spec.node_class_name;
    let mut plan = Plan::stalled(Reason::NodeClassNotFound, format!("NodeClass {name} does not exist: create it, or name another one"));
    plan.again = Some(observed.timing.sweep_instances);
    plan
}

fn quota(until: Timestamp, now: Timestamp) -> Plan {
    Plan::wait(Reason::QuotaExceeded, "a quota of the AWS account is used up: ask AWS to raise it; tried again every few minutes")
        .until(until, now)
}

/// The instance is terminated, or proven absent.
pub(super) fn ended(observed: &Observed, status: &NodeStatus, id: &InstanceId, reason: Option<&str>, now: Timestamp) -> Plan {
    let why = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    if has_joined(status) || observed.core_node.is_some() {
        // Judged elsewhere: no attempt may follow one that has joined.
        return Plan::wait(Reason::InstanceLost, format!("instance {id} is terminated{why}: this machine is lost"));
    }
    let (attempt, never_joined) = status.launch.as_ref().map_or_else(
        || (observed.instances.instances.iter().filter_map(|other| identity::attempt(&other.tags)).max().unwrap_or(1), 0),
        |launch| (launch.attempt, launch.never_joined),
    );
    if let Some(launch) = &status.launch
        && unwanted(&observed.node.spec, &launch.instance_type, &launch.zone).is_some()
    {
        // A person changed what is wanted: the count begins anew.
        return next_attempt(observed, attempt + 1, 0, now);
    }
    let found_no_capacity = reason.and_then(error::launch_failure) == Some(Class::Capacity);
    if let Some(launch) = &status.launch
        && found_no_capacity
        && observed.offerings.is_available(&launch.instance_type, &launch.zone)
        // It is one refusal, however long EC2 shows it: once its pause is over the type may be tried again.
        && now < later(launch.started_at.0, observed.timing.offering_pause)
    {
        let action = Action::MarkUnavailable(launch.instance_type.clone(), launch.zone.clone());
        let message = format!("instance {id} found no capacity{why}; the next type or zone is tried");
        return Plan { again: Some(SHORTEST_PAUSE), ..Plan::act(vec![action], Reason::InsufficientCapacity, message) };
    }
    if found_no_capacity {
        return next_attempt(observed, attempt + 1, never_joined, now);
    }
    let Some(pause) = usize::try_from(never_joined).ok().and_then(|count| REJOIN_PAUSES.get(count)) else {
        return never_joins(observed, status, attempt, now);
    };
    // A machine that never ran has not changed Launched: its pause counts from its launch.
    let ended_at = conditions::since(&status.conditions, ConditionType::Launched, false).unwrap_or(now);
    let ended_at = status.launch.as_ref().map_or(ended_at, |launch| ended_at.max(launch.started_at.0));
    let due = later(ended_at, observed.timing.rejoin_pause.saturating_mul(*pause));
    if now < due {
        return Plan::wait(Reason::NeverJoined, format!("instance {id} ended{why} before it joined the cluster; another follows"))
            .until(due, now);
    }
    next_attempt(observed, attempt + 1, never_joined + 1, now)
}

/// Machine after machine ended before it joined: only a change of the class or the spec helps.
fn never_joins(observed: &Observed, status: &NodeStatus, attempt: i32, now: Timestamp) -> Plan {
    match &status.launch {
        Some(launch) if was_changed(observed, launch, now) => next_attempt(observed, attempt + 1, 0, now),
        Some(_) | None => Plan::stalled(
            Reason::NeverJoined,
            format!(
                "{} machines ended before they joined the cluster: look at the console output in the operator's log, and change NodeClass {} or instanceTypes",
                REJOIN_PAUSES.len() + 1,
                observed.node.spec.node_class_name
            ),
        ),
    }
}

/// Whether a person changed what the machine of this attempt is made of. Capacity does not count: it comes and goes by itself.
fn was_changed(observed: &Observed, launch: &NodeLaunch, now: Timestamp) -> bool {
    let Some(class) = &observed.class else { return false };
    if unwanted(&observed.node.spec, &launch.instance_type, &launch.zone).is_some() {
        return true;
    }
    let subnet = offering::subnets(&observed.node.spec, &class.spec).into_iter().find(|subnet| subnet.id == launch.subnet_id);
    let Some(subnet) = subnet.filter(|_| offering::is_allowed(&launch.instance_type, &class.spec.instance_types)) else { return true };
    let like = offering::launch(observed, &class.spec, &launch.instance_type, subnet, launch.attempt, launch.never_joined, now);
    like != as_decided_at(launch, &like)
}

/// The attempt without what became of it: for a comparison of requests.
fn as_decided_at(launch: &NodeLaunch, like: &NodeLaunch) -> NodeLaunch {
    NodeLaunch { started_at: like.started_at.clone(), in_doubt_since: None, refused: None, ..launch.clone() }
}
