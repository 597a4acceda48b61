//! Plan, Node: what is, what should be, what to do about it. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as CoreNode;
use kube::ResourceExt;

use super::choose::{self, NoChoice};
use super::leaving;
use super::observe::Observed;
use crate::api::node::{NodeLaunch, Refusal};
use crate::api::node_class::NodeClassSpec;
use crate::api::{ConditionType, InstanceId, NodeStatus, Reason};
use crate::cloud::absence::{self, AbsenceProven};
use crate::cloud::error::{self, Class};
use crate::cloud::identity;
use crate::cloud::{Instance, InstanceState};
use crate::cluster::finalizer;
use crate::controller::conditions;
use crate::controller::context::later;
use crate::controller::launch::{Facts, Verdict, judge, last_possible_send};
use crate::controller::safety::{self, Kubelet};
use crate::controller::waiting::Waiting;

/// How often a machine that never joined is replaced before the Node stalls; the pauses are 1, 5 and 15 times the setting.
const REJOIN_PAUSES: [u32; 3] = [1, 5, 15];

/// What one pass does and what it waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In this order.
    pub actions: Vec<Action>,
    /// What the Node waits for; `None` when it is as it should be.
    pub waiting: Option<Waiting>,
    /// Look again at the latest then, though nothing woke us.
    pub again: Option<Duration>,
    /// EC2 is about to change: look often.
    pub pending: bool,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put our finalizer on the Node.
    AddFinalizer,
    /// Intent, RunInstances, id: one compound action.
    Launch(Box<NodeLaunch>, String),
    /// RunInstances again, identical, with the user data of the recorded hash.
    Resend(String),
    /// Record the instance that a look-up found.
    RecordInstance(InstanceId),
    /// Note that EC2 has no capacity for this type in this zone.
    MarkUnavailable(String, String),
    /// Write the console's tail to the operator's log.
    LogConsole(InstanceId),
    /// Terminate an instance, for this reason.
    Terminate(InstanceId, String),
    /// Put our finalizer on the core Node.
    HoldCoreNode(Box<CoreNode>),
    /// Mark the core Node unschedulable.
    Cordon(String),
    /// Ask a pod to end: namespace, name, UID; at once when nothing can run it any more.
    EvictPod {
        /// Namespace.
        namespace: String,
        /// Name.
        name: String,
        /// UID.
        uid: String,
        /// Grace 0: the machine is proven stopped or gone.
        at_once: bool,
    },
    /// Delete the core Node and take our finalizer off it.
    ReleaseCoreNode(Box<CoreNode>),
    /// Take our finalizer off the Node: its machine is gone.
    RemoveFinalizer,
}

impl Plan {
    pub(super) fn act(actions: Vec<Action>, reason: Reason, message: impl Into<String>) -> Self {
        Self { actions, ..Self::wait(reason, message) }
    }

    pub(super) fn wait(reason: Reason, message: impl Into<String>) -> Self {
        Self { actions: Vec::new(), waiting: Some(Waiting::on(reason, message)), again: None, pending: false }
    }

    fn stalled(reason: Reason, message: impl Into<String>) -> Self {
        Self { actions: Vec::new(), waiting: Some(Waiting::stalled(reason, message)), again: None, pending: false }
    }

    pub(super) fn pending(self) -> Self {
        Self { pending: true, ..self }
    }

    pub(super) fn until(self, when: Timestamp, now: Timestamp) -> Self {
        let wait = Duration::try_from(when.duration_since(now)).unwrap_or_default();
        Self { again: Some(wait.max(Duration::from_millis(100))), ..self }
    }
}

/// Decides what to do about a Node.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    if observed.node.metadata.deletion_timestamp.is_some() {
        return leaving::plan(observed, now);
    }
    if !finalizer::has(&observed.node) {
        return Plan::act(vec![Action::AddFinalizer], Reason::Progressing, "the Node is being taken on");
    }
    if observed.instances.swept_at.is_none() {
        return Plan::wait(Reason::AwaitingInventory, "the first complete look at EC2 since the operator's start is awaited");
    }
    let status = observed.node.status.clone().unwrap_or_default();
    let mut plan = match (&status.launch, &status.instance_id) {
        (_, Some(id)) => identified(observed, &status, id, now),
        (Some(launch), None) => unidentified(observed, launch, now),
        (None, None) => unlaunched(observed, now),
    };
    let (actions, blockers) = duplicates(observed, &status);
    plan.actions.extend(actions);
    if let (Some(blocker), None) = (blockers.first(), &plan.waiting) {
        plan.waiting = Some(Waiting::on(blocker.reason, blocker.message.clone()));
    }
    plan
}

/// Nothing was ever decided: the first attempt, unless EC2 has something under this UID already (the status was lost).
fn unlaunched(observed: &Observed, now: Timestamp) -> Plan {
    let live = observed.instances.instances.iter().filter(|instance| is_live(instance));
    if let Some(instance) = live.max_by_key(|instance| identity::attempt(&instance.tags)) {
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
fn unidentified(observed: &Observed, launch: &NodeLaunch, now: Timestamp) -> Plan {
    let facts = attempt_facts(observed, launch, false);
    match judge(facts, observed.timing.token_resend, now) {
        Verdict::Adopt(id) => Plan::act(
            vec![Action::RecordInstance(id.clone())],
            Reason::Launching,
            format!("instance {id} was launched by this attempt and is recorded"),
        )
        .pending(),
        Verdict::Refused => refused(observed, launch, now),
        Verdict::ProvenAbsent(_) => next_attempt(observed, launch.attempt + 1, launch.never_joined, now),
        Verdict::Resend => {
            if let Some(until) = observed.offerings.quota_closed_until {
                return quota(until, now);
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

/// The facts that the protocol judges an attempt by.
pub(super) fn attempt_facts(observed: &Observed, launch: &NodeLaunch, deleting: bool) -> Facts<InstanceId> {
    let found = observed.instances.instances.iter().find(|instance| instance.token.as_ref() == Some(&launch.token));
    Facts {
        deleting,
        started_at: launch.started_at.0,
        refused: launch.refused.is_some(),
        sent: observed.sent,
        found: found.map(|instance| instance.id.clone()),
        looked_up: looked_up(observed),
        absent: proven_absent(observed, launch),
        same_request: observed.class.as_ref().is_some_and(|class| identity::user_data_hash(&class.spec.user_data) == launch.user_data_hash),
    }
}

/// Whether EC2 was asked by tag and by token since this process started.
fn looked_up(observed: &Observed) -> bool {
    let since_start = |at: Option<Timestamp>| at.is_some_and(|at| at >= observed.process_started);
    since_start(observed.instances.swept_at) && since_start(observed.instances.token_looked_up_at)
}

/// The proof that this attempt's instance does not exist.
pub(super) fn proven_absent(observed: &Observed, launch: &NodeLaunch) -> Option<AbsenceProven> {
    let last = last_possible_send(observed.sent.as_ref(), launch.started_at.0, observed.process_started);
    absence::prove(
        last,
        observed.instances.empty.by_tag,
        absence::TokenLookup::Required(observed.instances.empty.by_token),
        observed.timing.absence_window,
    )
}

/// EC2 refused an attempt for certain.
fn refused(observed: &Observed, launch: &NodeLaunch, now: Timestamp) -> Plan {
    let Some(refusal) = &launch.refused else {
        return next_attempt(observed, launch.attempt + 1, launch.never_joined, now);
    };
    let said = said(refusal);
    match error::classify(Some(&refusal.code), &refusal.message, None) {
        Class::Forbidden => {
            let until = later(refusal.at.0, observed.timing.forbidden_pause);
            if now < until {
                return Plan::wait(Reason::Forbidden, format!("EC2 forbids the launch: {said}; tried again by itself")).until(until, now);
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
        | Class::NotYetUsable
        | Class::Token
        | Class::NotFound
        | Class::State
        | Class::ModificationBudget
        | Class::DryRun => next_attempt(observed, launch.attempt + 1, launch.never_joined, now),
    }
}

fn said(refusal: &Refusal) -> String {
    format!("{} ({})", refusal.code, refusal.message)
}

/// Whether another attempt would ask for exactly what was refused.
fn asks_the_same_again(observed: &Observed, launch: &NodeLaunch, now: Timestamp) -> bool {
    let Some(class) = &observed.class else { return true };
    let Ok((instance_type, subnet)) = choose::choose(observed, &class.spec, now) else { return true };
    let next = choose::launch(observed, &class.spec, instance_type, subnet, launch.attempt, launch.never_joined, now);
    let same = NodeLaunch { started_at: next.started_at.clone(), in_doubt_since: None, refused: None, ..launch.clone() };
    next == same
}

/// Decides another attempt, if there is one to make.
fn next_attempt(observed: &Observed, attempt: i32, never_joined: i32, now: Timestamp) -> Plan {
    let Some(class) = &observed.class else { return class_not_found(observed) };
    if let Some(until) = observed.offerings.quota_closed_until {
        return quota(until, now);
    }
    match choose::choose(observed, &class.spec, now) {
        Ok((instance_type, subnet)) => {
            let launch = choose::launch(observed, &class.spec, instance_type, subnet, attempt, never_joined, now);
            let message = format!("{instance_type} is asked for in {}", subnet.zone);
            Plan::act(vec![Action::Launch(Box::new(launch), class.spec.user_data.clone())], Reason::Launching, message).pending()
        }
        Err(NoChoice::Mismatch(message)) => Plan::stalled(Reason::NodeClassMismatch, message),
        Err(NoChoice::NoCapacity { refused, until }) => {
            Plan::wait(Reason::InsufficientCapacity, format!("EC2 has no capacity for {refused}; each is tried again within minutes"))
                .until(until, now)
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

/// The Node has an instance.
fn identified(observed: &Observed, status: &NodeStatus, id: &InstanceId, now: Timestamp) -> Plan {
    let Some(instance) = observed.instances.instances.iter().find(|instance| instance.id == *id) else {
        let gone = status.launch.as_ref().is_some_and(|launch| proven_absent(observed, launch).is_some());
        return if gone {
            ended(observed, status, id, None, now)
        } else {
            Plan::wait(Reason::Launching, format!("EC2 does not show instance {id} yet")).pending()
        };
    };
    match instance.state {
        InstanceState::Pending => Plan::wait(Reason::Launching, format!("instance {id} is starting")).pending(),
        InstanceState::Running => running(observed, status, instance, now),
        InstanceState::Terminated => ended(observed, status, id, instance.state_reason.as_deref(), now),
        InstanceState::ShuttingDown => Plan::wait(Reason::InstanceLost, format!("instance {id} is being terminated")).pending(),
        InstanceState::Stopping | InstanceState::Stopped if !has_joined(status) => Plan::act(
            vec![Action::Terminate(id.clone(), "it was stopped before it joined the cluster".to_owned())],
            Reason::InstanceLost,
            format!("instance {id} was stopped before it joined the cluster, and is terminated"),
        )
        .pending(),
        InstanceState::Stopping | InstanceState::Stopped => {
            Plan::wait(Reason::InstanceLost, format!("instance {id} was stopped from outside: start it again in EC2"))
        }
        InstanceState::Unknown => Plan::wait(Reason::Launching, format!("EC2 shows instance {id} in a state that is not known here")),
    }
}

/// The instance runs: it joins, and is made ready for the database.
fn running(observed: &Observed, status: &NodeStatus, instance: &Instance, now: Timestamp) -> Plan {
    let id = &instance.id;
    let Some(core_node) = &observed.core_node else {
        if has_joined(status) {
            return Plan::wait(
                Reason::NodeNotReady,
                format!("instance {id} runs, but its Kubernetes node is gone: its kubelet must register again"),
            );
        }
        if let Some(why) = unwanted(observed, instance) {
            return Plan::act(
                vec![Action::Terminate(id.clone(), why.clone())],
                Reason::Launching,
                format!("instance {id} is terminated before it joined, since {why}"),
            )
            .pending();
        }
        return joining(observed, status, instance, now);
    };
    if !finalizer::has(core_node) && core_node.metadata.deletion_timestamp.is_none() {
        return Plan::act(
            vec![Action::HoldCoreNode(Box::new(core_node.clone()))],
            Reason::AwaitingInitialization,
            format!("Kubernetes node {} has registered", core_node.name_any()),
        );
    }
    let name = core_node.name_any();
    match safety::kubelet(Some(core_node)) {
        Kubelet::Ready if observed.driver_registered => Plan { actions: Vec::new(), waiting: None, again: None, pending: false },
        Kubelet::Ready => {
            let plan =
                Plan::wait(Reason::AwaitingInitialization, format!("the EBS CSI driver has not registered on Kubernetes node {name} yet"));
            // CSINode objects are not watched.
            Plan { again: Some(observed.timing.recheck.div_f64(5.0)), ..plan }
        }
        Kubelet::NotReady(_) | Kubelet::Absent => {
            let initialized = conditions::is_true(&status.conditions, ConditionType::Initialized);
            let reason = if initialized { Reason::NodeNotReady } else { Reason::AwaitingInitialization };
            Plan::wait(reason, format!("Kubernetes node {name} is not Ready"))
        }
    }
}

/// The instance runs and its kubelet has not registered yet.
fn joining(observed: &Observed, status: &NodeStatus, instance: &Instance, now: Timestamp) -> Plan {
    let id = &instance.id;
    let running_since = conditions::find(&status.conditions, ConditionType::Launched)
        .filter(|condition| condition.status == "True")
        .map_or(now, |condition| condition.last_transition_time.0);
    let deadline = later(running_since, observed.timing.registration);
    if now < deadline {
        return Plan::wait(Reason::AwaitingRegistration, format!("instance {id} runs; its kubelet is awaited")).until(deadline, now);
    }
    Plan::act(
        vec![
            Action::LogConsole(id.clone()),
            Action::Terminate(id.clone(), format!("its kubelet did not register within {:?}", observed.timing.registration)),
        ],
        Reason::NeverJoined,
        format!("instance {id} never joined the cluster and is terminated; its console is in the operator's log"),
    )
    .pending()
}

/// Why an instance that has not joined is not wanted any more.
fn unwanted(observed: &Observed, instance: &Instance) -> Option<String> {
    let spec = &observed.node.spec;
    if !spec.instance_types.contains(&instance.instance_type) {
        return Some(format!("its type {} is no longer in instanceTypes", instance.instance_type));
    }
    match &spec.zone {
        Some(zone) if *zone != instance.zone => Some(format!("it is in {} and the volume is in {zone}", instance.zone)),
        Some(_) | None => None,
    }
}

/// The instance is terminated, or proven absent.
fn ended(observed: &Observed, status: &NodeStatus, id: &InstanceId, reason: Option<&str>, now: Timestamp) -> Plan {
    let why = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    if has_joined(status) {
        return Plan::wait(Reason::InstanceLost, format!("instance {id} is terminated{why}: this machine is lost"));
    }
    let (attempt, never_joined) = status.launch.as_ref().map_or_else(
        || (observed.instances.instances.iter().filter_map(|other| identity::attempt(&other.tags)).max().unwrap_or(1), 0),
        |launch| (launch.attempt, launch.never_joined),
    );
    if let (Some(reason), Some(launch)) = (reason, &status.launch)
        && reason.starts_with("Server.InsufficientInstanceCapacity")
        && observed.offerings.is_available(&launch.instance_type, &launch.zone)
    {
        let action = Action::MarkUnavailable(launch.instance_type.clone(), launch.zone.clone());
        let message = format!("instance {id} found no capacity{why}; the next type or zone is tried");
        return Plan { again: Some(Duration::from_millis(100)), ..Plan::act(vec![action], Reason::InsufficientCapacity, message) };
    }
    if reason.is_some_and(|reason| reason.starts_with("Server.InsufficientInstanceCapacity")) {
        return next_attempt(observed, attempt + 1, never_joined, now);
    }
    let Some(pause) = usize::try_from(never_joined).ok().and_then(|count| REJOIN_PAUSES.get(count)) else {
        return never_joins(observed, status, attempt, now);
    };
    let ended_at = conditions::find(&status.conditions, ConditionType::Launched)
        .filter(|condition| condition.status == "False" && condition.reason != Reason::Launching.as_str())
        .map_or(now, |condition| condition.last_transition_time.0);
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
        Some(launch) if !asks_the_same_again(observed, launch, now) => next_attempt(observed, attempt + 1, 0, now),
        Some(_) | None => Plan::stalled(
            Reason::NeverJoined,
            format!(
                "{} machines ended before they joined the cluster: look at the console output in the operator's log and at NodeClass {}",
                REJOIN_PAUSES.len() + 1,
                observed.node.spec.node_class_name
            ),
        ),
    }
}

/// Other live instances with this Node's UID: terminated where that is safe.
fn duplicates(observed: &Observed, status: &NodeStatus) -> (Vec<Action>, Vec<safety::Blocker>) {
    let Some(kept) = &status.instance_id else { return (Vec::new(), Vec::new()) };
    let (mut actions, mut blockers) = (Vec::new(), Vec::new());
    for instance in observed.instances.instances.iter().filter(|instance| is_live(instance) && instance.id != *kept) {
        match safety::may_terminate_duplicate(instance, observed.core_node_of(instance)) {
            Ok(()) => actions.push(Action::Terminate(
                instance.id.clone(),
                format!("a second instance of this Node beside {kept}, which its status names"),
            )),
            Err(blocker) => blockers.push(blocker),
        }
    }
    (actions, blockers)
}

/// Whether the machine ever registered.
pub(super) fn has_joined(status: &NodeStatus) -> bool {
    status.core_node_name.is_some()
}

/// Neither terminated nor about to be.
pub(super) fn is_live(instance: &Instance) -> bool {
    match instance.state {
        InstanceState::Pending | InstanceState::Running | InstanceState::Stopping | InstanceState::Stopped | InstanceState::Unknown => true,
        InstanceState::ShuttingDown | InstanceState::Terminated => false,
    }
}

/// What the launch would be made of now: for the condition Drifted.
pub fn drift(launch: &NodeLaunch, class: &NodeClassSpec) -> Option<String> {
    choose::drift(launch, class)
}
