//! A Node with its machine in the model of a Database's life: what its controller, EC2 and its kubelet do by
//! themselves.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::api::node::{NodeStatus, ReplacementCause, ReplacementNeeded};
use crate::api::{ConditionType, InstanceId, Reason};
use crate::controller::conditions::{self, Entry};

/// The zones that EC2 has capacity in, one after the other.
const ZONES: [&str; 2] = ["us-east-1a", ZONE];

/// What the machines have for pods, one after the other.
const MEMORY: [&str; 2] = ["64Gi", "16Gi"];

/// How far a machine is, each step after the one before.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) enum Stage {
    /// There is only the Node.
    Made,
    Launched,
    Registered,
    Ready,
    /// Its kubelet does not report, and what runs on it may run on.
    Silent,
    /// EC2 was requested to end it.
    Fencing,
    /// EC2 shows its end.
    Ended,
}

#[derive(Clone)]
pub(super) struct Machine {
    pub(super) node: Node,
    pub(super) core_node: Option<CoreNode>,
    pub(super) stage: Stage,
    /// The UID of the pod whose engine runs on it.
    pub(super) engine: Option<String>,
    /// The Node says that the machine is lost.
    pub(super) is_lost: bool,
    /// In how many steps EC2 shows its end, once that was requested.
    fence: usize,
    number: usize,
    launches: usize,
    /// What the status was made from.
    reported: Option<(Stage, Option<i64>, [bool; 3])>,
}

impl Machine {
    /// A new Node; `number` is what tells its machines from those of others.
    pub(super) fn new(node: Node, number: usize) -> Self {
        Self {
            node,
            core_node: None,
            stage: Stage::Made,
            engine: None,
            is_lost: false,
            fence: 0,
            number,
            launches: 0,
            reported: None,
        }
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.node.metadata.deletion_timestamp.is_some()
    }

    /// Whether its kubelet reports.
    pub(super) fn is_reporting(&self) -> bool {
        matches!(self.stage, Stage::Registered | Stage::Ready)
    }

    pub(super) fn is_labelled(&self) -> bool {
        self.core_node.as_ref().is_some_and(|node| node.labels().contains_key(DATABASE_NODE_LABEL))
    }

    /// The name of its Kubernetes node.
    pub(super) fn core_node_name(&self) -> Option<&str> {
        self.core_node.as_ref()?.metadata.name.as_deref()
    }

    pub(super) fn zone(&self) -> Option<&str> {
        self.node.status.as_ref()?.zone.as_deref()
    }

    /// Whether anything says that it must go: itself, its Node, or the wanted types.
    pub(super) fn is_leaving(&self, types: &[String]) -> bool {
        let in_use = self.node.status.as_ref().and_then(|status| status.instance_type.as_ref());
        let is_unwanted = in_use.is_some_and(|in_use| !types.contains(in_use));
        let is_needed = self.node.status.as_ref().is_some_and(|status| status.replacement_needed.is_some());
        self.is_deleting() || self.is_lost || is_needed || is_unwanted
    }

    fn is_losing_core_node(&self) -> bool {
        self.core_node.as_ref().is_some_and(|node| node.metadata.deletion_timestamp.is_some())
    }

    /// Whether a database keeps the machine of a deleted Node: its label does, while the machine is healthy,
    /// for as long as the move takes.
    pub(super) fn is_held(&self) -> bool {
        self.is_deleting() && self.is_labelled() && self.is_reporting()
    }

    /// Whether its pods are being ended, and none can be put on it.
    pub(super) fn is_drained(&self) -> bool {
        self.is_deleting() && !self.is_held()
    }

    /// Whether the Node goes now. `has_pod`: the pod is on it.
    pub(super) fn goes(&self, has_pod: bool) -> bool {
        self.is_drained()
            && match self.stage {
                Stage::Made | Stage::Launched => true,
                Stage::Registered | Stage::Ready | Stage::Ended => !has_pod,
                Stage::Silent | Stage::Fencing => false,
            }
    }

    /// The machine is lost. One that has not joined is launched again by its own Node.
    pub(super) fn lose(&mut self, fence: usize) {
        if self.stage < Stage::Registered {
            self.stage = Stage::Made;
        } else if self.stage < Stage::Silent {
            (self.stage, self.fence) = (Stage::Silent, fence);
        }
    }

    /// The machine is lost, and its Kubernetes node is gone.
    pub(super) fn lose_with_node(&mut self, fence: usize) {
        self.lose(fence);
        self.core_node = None;
    }

    /// The Node is deleted.
    pub(super) fn delete(&mut self, now: Timestamp) {
        self.node.metadata.deletion_timestamp.get_or_insert(Time(now));
    }

    /// Its Kubernetes node is deleted, and stays until the Node's controller removes its finalizer.
    pub(super) fn delete_core_node(&mut self, now: Timestamp) {
        if let Some(core_node) = &mut self.core_node {
            core_node.metadata.deletion_timestamp.get_or_insert(Time(now));
        }
    }

    /// What happens to it by itself until the next pass. Returns whether anything does.
    pub(super) fn step(&mut self, has_capacity: bool, now: Timestamp) -> bool {
        let before = (self.stage, self.fence);
        match self.stage {
            Stage::Made if !self.is_deleting() && has_capacity => self.launch(),
            Stage::Launched if !self.is_deleting() => self.register(),
            Stage::Registered if !self.is_deleting() => self.stage = Stage::Ready,
            // A Node that is deleted is not declared lost: its termination is the fence.
            Stage::Silent => (self.stage, self.is_lost) = (Stage::Fencing, !self.is_deleting()),
            Stage::Fencing if self.fence > 0 => self.fence -= 1,
            Stage::Fencing => (self.stage, self.engine) = (Stage::Ended, None),
            Stage::Made | Stage::Launched | Stage::Registered | Stage::Ready | Stage::Ended => {}
        }
        self.report(now) || before != (self.stage, self.fence)
    }

    fn launch(&mut self) {
        self.launches += 1;
        let spec = &self.node.spec;
        let zone = spec.zone.clone().unwrap_or_else(|| ZONES[(self.number + self.launches) % 2].to_owned());
        let id = format!("i-{}-{}", self.number, self.launches);
        self.node.status = Some(NodeStatus {
            provider_id: Some(format!("aws:///{zone}/{id}")),
            instance_id: Some(InstanceId(id)),
            instance_type: spec.instance_types.first().cloned(),
            zone: Some(zone),
            ..NodeStatus::default()
        });
        self.stage = Stage::Launched;
    }

    fn register(&mut self) {
        let name = format!("ip-{}-{}", self.number, self.launches);
        let mut core_node = core_node(&name, false);
        // The next machine is smaller, or larger.
        let allocatable = json!({"allocatable": {"cpu": "4", "memory": MEMORY[self.number % 2]}});
        core_node.status = serde_json::from_value(allocatable).ok();
        self.core_node = Some(core_node);
        self.node.status.get_or_insert_default().core_node_name = Some(name);
        self.stage = Stage::Registered;
    }

    /// The status that its controller writes. Returns whether it says anything new.
    fn report(&mut self, now: Timestamp) -> bool {
        let facts = [self.is_deleting(), self.is_losing_core_node(), self.is_lost];
        let reported = Some((self.stage, self.node.metadata.generation, facts));
        if self.reported == reported {
            return false;
        }
        self.reported = reported;
        let (entries, generation) = (self.entries(), self.node.metadata.generation);
        let needed = self.is_losing_core_node() && self.is_reporting() && !self.is_deleting();
        let status = self.node.status.get_or_insert_default();
        status.conditions = conditions::merge(&status.conditions, &entries, generation, now);
        status.observed_generation = generation;
        status.replacement_needed = needed.then(|| ReplacementNeeded {
            cause: ReplacementCause::KubernetesNodeDeleted,
            message: "its Kubernetes node is being deleted".to_owned(),
        });
        true
    }

    fn entries(&self) -> Vec<Entry> {
        let entry = |kind: ConditionType, holds: bool, reason: Reason| {
            let reason = if holds { Reason::AsExpected } else { reason };
            Entry { kind, holds, reason, message: kind.as_str().to_owned() }
        };
        let was_initialized = conditions::is_true(self.node.conditions(), ConditionType::Initialized);
        let is_healthy = self.stage == Stage::Ready && !self.is_losing_core_node();
        let is_running = self.stage >= Stage::Launched && self.stage < Stage::Ended;
        let why = if self.is_deleting() { Reason::Deleting } else { Reason::Pending };
        let mut entries = vec![
            entry(ConditionType::Ready, is_healthy && !self.is_deleting(), why),
            entry(ConditionType::Launched, is_running, Reason::Pending),
            entry(ConditionType::Registered, self.core_node.is_some(), Reason::Pending),
            entry(ConditionType::Initialized, was_initialized || self.stage == Stage::Ready, Reason::Pending),
            entry(ConditionType::Stalled, false, Reason::Progressing),
            Entry {
                reason: Reason::InstanceLost,
                ..entry(ConditionType::Lost, self.is_lost, Reason::Progressing)
            },
        ];
        if self.stage >= Stage::Fencing {
            entries.push(entry(ConditionType::Fenced, self.stage == Stage::Ended, Reason::Fencing));
        }
        entries
    }
}

/// Found by `whatever_happens_a_database_comes_to_rest_as_its_spec_says`: no machine has the label any more.
#[test]
fn a_database_does_not_go_back_while_the_engine_on_a_machine_that_lost_its_kubernetes_node_may_run() {
    for taken_back in [vec![], vec![(10, Event::Types(&["r7i.large"]))]] {
        for steps in 0..20 {
            let lost = vec![(10, Event::LoseWithNode(Which::Newest, steps))];
            let events = [vec![(4, Event::Types(&["m7i.large"]))], lost, taken_back.clone()].concat();
            let mut life = Life::begun(true, DeletionPolicy::Retain);
            let waiting = life.come_to_rest(&events);
            life.check_ready(waiting.as_ref());
        }
    }
}
