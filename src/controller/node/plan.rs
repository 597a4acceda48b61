//! Plan, Node: what is, what should be, what to do about it. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as CoreNode;
use kube::ResourceExt;

use super::attempt;
use super::choose;
use super::fence;
use super::leaving;
use super::loss::{self, Judgement};
use super::observe::Observed;
use crate::api::node::{Fence, NodeLaunch};
use crate::api::node_class::NodeClassSpec;
use crate::api::{ConditionType, InstanceId, Node, NodeSpec, NodeStatus, Reason};
use crate::cloud::{Instance, InstanceState};
use crate::cluster::finalizer;
use crate::controller::conditions;
use crate::controller::context::later;
use crate::controller::safety::{self, Kubelet};
use crate::controller::waiting::{Again, Waiting, again};
use crate::settings::Timing;

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
    /// Write down that the machine is given up: before anything is done to it.
    GiveUp(Box<Fence>),
    /// Stop an instance; by force if so.
    Stop(InstanceId, bool),
    /// Taint the core Node as out of service: the machine is proven stopped.
    OutOfService(Box<CoreNode>),
    /// Put our finalizer on the core Node.
    HoldCoreNode(Box<CoreNode>),
    /// Mark the core Node unschedulable: name, UID.
    Cordon(String, String),
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

    pub(super) fn stalled(reason: Reason, message: impl Into<String>) -> Self {
        Self { actions: Vec::new(), waiting: Some(Waiting::stalled(reason, message)), again: None, pending: false }
    }

    pub(super) fn pending(self) -> Self {
        Self { pending: true, ..self }
    }

    /// Whether the machine is given up by it.
    pub(super) fn gives_up(&self) -> bool {
        self.actions.iter().any(|action| matches!(action, Action::GiveUp(_)))
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
        (Some(launch), None) => attempt::unidentified(observed, launch, now),
        (None, None) => attempt::unlaunched(observed, now),
    };
    let duplicates = duplicates(observed, &status, now);
    // Before anything is launched; and pending, until EC2 shows them terminated.
    plan.pending |= duplicates.are_leaving;
    plan.actions.splice(0..0, duplicates.actions);
    if let (Some(blocker), None) = (duplicates.blockers.first(), &plan.waiting) {
        plan.waiting = Some(Waiting::on(blocker.reason, blocker.message.clone()));
    }
    plan
}

/// The Node has an instance.
fn identified(observed: &Observed, status: &NodeStatus, id: &InstanceId, now: Timestamp) -> Plan {
    match loss::judge(observed, status, now) {
        Judgement::Well => shown(observed, status, id, now),
        Judgement::Suspected(loss) => {
            let plan = shown(observed, status, id, now);
            let waiting = plan.waiting.clone().unwrap_or_else(|| Waiting::on(loss.cause.reason(), loss.message.clone()));
            Plan { waiting: Some(waiting), ..plan }.until(loss.due, now)
        }
        Judgement::Due(loss) => fence::begin(observed, status, id, &loss, now),
        Judgement::Lost(fence) => fence::given_up(observed, status, id, &fence, now),
    }
}

/// The Node has an instance that is not given up.
fn shown(observed: &Observed, status: &NodeStatus, id: &InstanceId, now: Timestamp) -> Plan {
    let Some(instance) = observed.instances.by_id(id) else {
        return if attempt::proven_absent(observed, status.launch.as_ref()).is_some() {
            // Pending, since the look-ups that are the proof are forgotten when nothing is awaited any more.
            attempt::ended(observed, status, id, None, now).pending()
        } else {
            Plan::wait(Reason::Launching, format!("EC2 does not show instance {id} yet")).pending()
        };
    };
    match instance.state {
        InstanceState::Pending => Plan::wait(Reason::Launching, format!("instance {id} is starting")).pending(),
        InstanceState::Running => running(observed, status, instance, now),
        InstanceState::Terminated => attempt::ended(observed, status, id, instance.state_reason.as_deref(), now),
        InstanceState::ShuttingDown => Plan::wait(Reason::InstanceLost, format!("instance {id} is being terminated")).pending(),
        InstanceState::Stopping | InstanceState::Stopped => terminate(
            observed,
            id,
            "it was stopped before it joined the cluster".to_owned(),
            (Reason::InstanceLost, format!("instance {id} was stopped before it joined the cluster, and is terminated")),
            now,
        ),
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
        if let Some(why) = unwanted(&observed.node.spec, &instance.instance_type, &instance.zone) {
            let message = format!("instance {id} is terminated before it joined, since {why}");
            return terminate(observed, id, why, (Reason::Launching, message), now);
        }
        return joining(observed, status, instance, now);
    };
    if !finalizer::has(core_node) {
        if core_node.metadata.deletion_timestamp.is_some() {
            let message = format!("Kubernetes node {} is being deleted: its kubelet must register again", core_node.name_any());
            return Plan::wait(Reason::NodeNotReady, message);
        }
        return Plan::act(
            vec![Action::HoldCoreNode(Box::new(core_node.clone()))],
            Reason::AwaitingInitialization,
            format!("Kubernetes node {} has registered", core_node.name_any()),
        );
    }
    let name = core_node.name_any();
    if let Some(since) = &core_node.metadata.deletion_timestamp {
        // EC2 is being asked whether the machine has ended: then it is lost, and that is why its Node goes.
        let asked_until = later(since.0, observed.timing.lease_look.saturating_mul(2));
        if now < asked_until {
            let message = format!("Kubernetes node {name} is being deleted; EC2 is asked whether its machine has ended");
            return Plan::wait(Reason::NodeNotReady, message).until(asked_until, now);
        }
        let message = format!("somebody deletes Kubernetes node {name}, which cannot be undone: the machine must be replaced");
        return Plan::wait(Reason::KubernetesNodeDeleted, message);
    }
    match safety::kubelet(Some(core_node)) {
        Kubelet::Ready if observed.driver_registered => Plan { actions: Vec::new(), waiting: None, again: None, pending: false },
        Kubelet::Ready => {
            let plan = initializing(observed, status, &format!("the EBS CSI driver has not registered on Kubernetes node {name}"), now);
            // Its CSINode wakes it, unless it came before this Node's status had the name.
            Plan { again: Some(observed.timing.recheck.div_f64(5.0)), ..plan }
        }
        Kubelet::NotReady(_) | Kubelet::Absent => {
            let message = format!("Kubernetes node {name} is not Ready");
            if conditions::is_true(&status.conditions, ConditionType::Initialized) {
                return Plan::wait(Reason::NodeNotReady, message);
            }
            initializing(observed, status, &message, now)
        }
    }
}

/// The kubelet has registered, and this is missing until the machine is ready for the database. One that is not in the time that another
/// has to register needs a person: an image or a network that is wrong would do the same to every machine that followed.
fn initializing(observed: &Observed, status: &NodeStatus, missing: &str, now: Timestamp) -> Plan {
    let registered = conditions::since(&status.conditions, ConditionType::Registered, true);
    let deadline = registered.map(|since| later(since, observed.timing.registration));
    match deadline {
        Some(deadline) if now < deadline => Plan::wait(Reason::AwaitingInitialization, format!("{missing} yet")).until(deadline, now),
        Some(_) => {
            let (node, limit) = (observed.node.name_any(), observed.timing.registration);
            let message = format!(
                "{missing}, {limit:?} after its kubelet registered: look at the machine; to have another in its place, delete Node {node}"
            );
            Plan::stalled(Reason::AwaitingInitialization, message)
        }
        None => Plan::wait(Reason::AwaitingInitialization, format!("{missing} yet")),
    }
}

/// The instance runs and its kubelet has not registered yet.
fn joining(observed: &Observed, status: &NodeStatus, instance: &Instance, now: Timestamp) -> Plan {
    let id = &instance.id;
    let deadline = registers_until(status, &observed.timing, now);
    if now < deadline {
        return Plan::wait(Reason::AwaitingRegistration, format!("instance {id} runs; its kubelet is awaited")).until(deadline, now);
    }
    let why = format!("its kubelet did not register within {:?}", observed.timing.registration);
    let message = format!("instance {id} never joined the cluster and is terminated; its console is in the operator's log");
    let mut plan = terminate(observed, id, why, (Reason::NeverJoined, message), now);
    if !plan.actions.is_empty() {
        plan.actions.insert(0, Action::LogConsole(id.clone()));
    }
    plan
}

/// When the kubelet must have registered.
fn registers_until(status: &NodeStatus, timing: &Timing, now: Timestamp) -> Timestamp {
    later(conditions::since(&status.conditions, ConditionType::Launched, true).unwrap_or(now), timing.registration)
}

/// Nothing is given up should this instance have no core Node now: its kubelet is only awaited.
pub(super) fn is_awaited(node: &Node, instance: &Instance, timing: &Timing, now: Timestamp) -> bool {
    let deadline = node.status.as_ref().map_or(now, |status| registers_until(status, timing, now));
    let is_wanted = unwanted(&node.spec, &instance.instance_type, &instance.zone).is_none();
    let has_joined = node.status.as_ref().is_some_and(has_joined);
    node.metadata.deletion_timestamp.is_none() && is_wanted && !has_joined && now < deadline
}

/// Asks EC2 once to terminate an instance, and says what it waits for until EC2 shows that.
pub(super) fn terminate(observed: &Observed, id: &InstanceId, why: String, waiting: (Reason, String), now: Timestamp) -> Plan {
    let (reason, message) = waiting;
    match again_to_terminate(observed, id, now) {
        Again::Now => Plan::act(vec![Action::Terminate(id.clone(), why)], reason, message).pending(),
        Again::OnceShown => Plan::wait(reason, message).pending(),
        Again::Later(held_up, until) => Plan::wait(held_up.reason, held_up.message.clone()).until(until, now).pending(),
    }
}

/// Whether EC2 may be asked (again) to terminate this instance.
pub(super) fn again_to_terminate<'a>(observed: &'a Observed, id: &InstanceId, now: Timestamp) -> Again<'a> {
    again(observed.asked.get(id), observed.instances.swept_at, observed.timing.recheck, now)
}

/// Why a machine of this type and zone that has not joined is not wanted any more.
pub(super) fn unwanted(spec: &NodeSpec, instance_type: &str, in_zone: &str) -> Option<String> {
    if !spec.instance_types.iter().any(|wanted| wanted == instance_type) {
        return Some(format!("its type {instance_type} is no longer in instanceTypes"));
    }
    match &spec.zone {
        Some(zone) if zone != in_zone => Some(format!("it is in {in_zone} and the volume is in {zone}")),
        Some(_) | None => None,
    }
}

/// Other live instances with this Node's UID.
#[derive(Default)]
struct Duplicates {
    /// They are terminated where that is safe.
    actions: Vec<Action>,
    /// Some are not seen terminated yet.
    are_leaving: bool,
    /// Some are left alone.
    blockers: Vec<safety::Blocker>,
}

fn duplicates(observed: &Observed, status: &NodeStatus, now: Timestamp) -> Duplicates {
    let mut found = Duplicates::default();
    let Some(kept) = &status.instance_id else { return found };
    for instance in observed.instances.instances.iter().filter(|instance| is_live(instance) && instance.id != *kept) {
        if let Err(blocker) =
            safety::may_terminate_duplicate(instance, attempt::is_own(observed, instance), observed.core_node_of(instance))
        {
            found.blockers.push(blocker);
            continue;
        }
        found.are_leaving = true;
        if again_to_terminate(observed, &instance.id, now) == Again::Now {
            let why = format!("a second instance of this Node beside {kept}, which its status names");
            found.actions.push(Action::Terminate(instance.id.clone(), why));
        }
    }
    found
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
