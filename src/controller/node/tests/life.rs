//! The life of a Node in a small model of EC2 and Kubernetes: its plans are carried out, time moves to what
//! they wait for, and whatever EC2 answers and whatever happens meanwhile, it comes to rest without a second
//! machine.

mod adopted;
mod carry_out;
mod passing;

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::api::ClientToken;
use crate::api::keys::NODE_UID_TAG;
use crate::controller::memory::issued_requests::IssuedRequest;
use crate::controller::memory::sends::Sends;
use crate::controller::node::plan::facts::{last_possible_send, may_have_an_instance};
use crate::controller::node::plan::unlisted;
use crate::controller::node::registration::{is_live, provider_id};
use crate::controller::node::status::status as status_of;
use crate::controller::pass::acted::Acted;
use crate::controller::tests::answers::{Answer, answers};
use crate::controller::tests::rest::Rest;
use crate::time::later;

/// More passes than any life of the model needs; a life that needs more goes round in a circle.
const MOST_PASSES: usize = 1000;

/// What happens from outside.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The Node is deleted.
    Delete,
    /// The operator starts anew, and remembers nothing.
    Restart,
    /// The status is lost.
    StatusLost,
    /// No kubelet registers.
    NeverRegister,
    /// The kubelet stops reporting.
    Silent,
    /// Another client stops the instance.
    Stop,
    /// Another client terminates the instance.
    Terminate,
    /// EC2 does not list the instance for a minute.
    Hide,
    /// The Kubernetes node is deleted.
    DeleteKubernetesNode,
    /// Label and taint of the Kubernetes node are taken off.
    Undedicate,
    /// A pod of another tenant, which a finalizer keeps, is on the machine.
    ForeignPod,
}

/// How the kubelets are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kubelets {
    Report,
    Silent,
    NeverRegister,
}

/// An instance as it is, whether EC2 lists it or not.
#[derive(Debug)]
struct Machine {
    instance: Instance,
    /// When its state changed.
    since: Timestamp,
    listed_from: Timestamp,
    has_registered: bool,
}

struct Life {
    node: Node,
    machines: Vec<Machine>,
    kubelets: Kubelets,
    core_node: Option<CoreNode>,
    pods: Vec<Pod>,
    foreign: Option<Pod>,
    attachments: Vec<String>,
    has_served: bool,
    offerings: OfferingsView,
    sends: Sends,
    terminations: BTreeMap<InstanceId, IssuedRequest>,
    stops: BTreeMap<InstanceId, IssuedRequest>,
    /// The last CreateTags and DeleteTags.
    tagged: Option<IssuedRequest>,
    untagged: Option<IssuedRequest>,
    /// What is looked up, since the last possible send.
    awaited: Option<(Option<ClientToken>, Timestamp)>,
    empty: EmptyRuns,
    answers: VecDeque<Answer>,
    leading_since: Timestamp,
    now: Timestamp,
    is_gone: bool,
}

impl Life {
    fn new(answers: Vec<Answer>) -> Self {
        let mut node = node(None);
        node.metadata.finalizers = None;
        Self {
            node,
            machines: Vec::new(),
            kubelets: Kubelets::Report,
            core_node: None,
            pods: Vec::new(),
            foreign: None,
            attachments: Vec::new(),
            has_served: false,
            offerings: OfferingsView::default(),
            sends: Sends::default(),
            terminations: BTreeMap::new(),
            stops: BTreeMap::new(),
            tagged: None,
            untagged: None,
            awaited: None,
            empty: EmptyRuns::default(),
            answers: answers.into(),
            leading_since: at(-100),
            now: at(0),
            is_gone: false,
        }
    }

    fn status(&mut self) -> &mut NodeStatus {
        self.node.status.get_or_insert_with(NodeStatus::default)
    }

    fn live(&mut self) -> Option<&mut Machine> {
        self.machines.iter_mut().find(|machine| is_live(&machine.instance))
    }

    fn listed(&self) -> impl Iterator<Item = &Instance> {
        let is_forgotten = |machine: &Machine| {
            machine.instance.state == InstanceState::Terminated
                && self.now >= later(machine.since, Duration::from_secs(3600))
        };
        self.machines
            .iter()
            .filter(move |machine| machine.listed_from <= self.now && !is_forgotten(machine))
            .map(|machine| &machine.instance)
    }

    /// What EC2 lists with this Node's tags.
    fn inventory(&self) -> impl Iterator<Item = &Instance> {
        self.listed().filter(|instance| instance.tags.contains_key(NODE_UID_TAG))
    }

    /// What a pass reads.
    fn observed(&self) -> Observed {
        let status = self.node.status.clone().unwrap_or_default();
        let instances: Vec<Instance> = self.inventory().cloned().collect();
        let own = status.instance_id.as_ref().or(self.node.spec.instance_id.as_ref());
        let seen = instances.iter().find(|instance| Some(&instance.id) == own);
        let name = status.provider_id.clone().or_else(|| seen.map(provider_id));
        let is_it = |node: &&CoreNode| node.spec.as_ref().and_then(|spec| spec.provider_id.clone()) == name;
        let core_node = self.core_node.as_ref().filter(is_it).cloned();
        let is_running = |it: &Instance| matches!(it.state, InstanceState::Pending | InstanceState::Running);
        let is_leaving = self.node.metadata.deletion_timestamp.is_some() || !seen.is_some_and(is_running);
        let reads_pods = is_leaving && core_node.is_some();
        let created = core_node.as_ref().and_then(|node| node.metadata.creation_timestamp.clone());
        let mut offerings = self.offerings.clone();
        offerings.unavailable.retain(|_, until| *until > self.now);
        let mut observed = Observed {
            node: self.node.clone(),
            issued_tags: self.tagged.clone(),
            issued_untags: self.untagged.clone(),
            offerings,
            has_sent: self.sends.has_sent_for("node-uid"),
            sent: status.creation.as_ref().and_then(|it| self.sends.of(&it.client_token)),
            issued_terminations: self.terminations.clone(),
            issued_stop: status.instance_id.as_ref().and_then(|id| self.stops.get(id).cloned()),
            driver_registered: created.is_some_and(|at| self.now >= later(at.0, Duration::from_secs(10))),
            pods: self.pods.iter().chain(&self.foreign).filter(|_| core_node.is_some()).cloned().collect(),
            core_node,
            attachments: if reads_pods { self.attachments.clone() } else { Vec::new() },
            instances: InstanceView {
                instances,
                swept_at: Some(self.now),
                token_looked_up_at: self.awaited.as_ref().map(|_| self.now),
                unhealthy: Vec::new(),
                is_health_known: true,
                empty: self.empty,
            },
            leading_since: self.leading_since,
            ..world()
        };
        observed.shown_by_id =
            unlisted(&observed).map(|id| self.listed().filter(|it| it.id == id).cloned().collect());
        observed
    }

    /// One pass, as the controller makes it.
    fn pass(&mut self) -> Plan {
        let observed = self.observed();
        let plan = plan(&observed, self.now);
        for action in &plan.actions {
            if !self.carry_out(action) {
                break;
            }
        }
        let status = status_of(&observed, &plan, &Acted::new(self.node.clone()), self.now);
        let creation = status.creation.as_ref().filter(|creation| creation.attempt.refused.is_none());
        let awaited = if let Some(NodeCreation { attempt, client_token, .. }) = creation {
            let sent = self.sends.of(client_token);
            let last = last_possible_send(Some(&status), Some(attempt), sent.as_ref(), self.leading_since);
            Some((Some(client_token.clone()), last))
        } else {
            may_have_an_instance(&status)
                .then(|| (None, last_possible_send(Some(&status), None, None, self.leading_since)))
        };
        let awaited = awaited.filter(|_| plan.pending);
        if awaited != self.awaited {
            (self.awaited, self.empty) = (awaited, EmptyRuns::default());
        }
        self.node.status = Some(status);
        plan
    }

    fn is_ready(&self) -> bool {
        conditions::is_true(self.node.conditions(), ConditionType::Ready)
    }

    fn happens(&mut self, event: Event) {
        let now = self.now;
        let live = self.live().map(|machine| machine.instance.id.clone());
        match event {
            Event::Delete => {
                self.is_gone |= self.node.metadata.finalizers.is_none();
                self.node.metadata.deletion_timestamp.get_or_insert(Time(now));
            }
            Event::Restart => {
                self.sends = Sends::default();
                self.terminations.clear();
                self.stops.clear();
                (self.tagged, self.untagged) = (None, None);
                (self.awaited, self.empty, self.leading_since) = (None, EmptyRuns::default(), now);
            }
            Event::StatusLost => self.node.status = None,
            Event::NeverRegister => self.kubelets = Kubelets::NeverRegister,
            Event::Silent => {
                self.kubelets = Kubelets::Silent;
                self.silence();
            }
            Event::Stop => live.iter().for_each(|id| self.change(id, InstanceState::Stopping)),
            Event::Terminate => live.iter().for_each(|id| self.change(id, InstanceState::ShuttingDown)),
            Event::Hide => {
                if let Some(machine) = self.live() {
                    machine.listed_from = later(now, Duration::from_secs(60));
                }
            }
            Event::DeleteKubernetesNode => {
                let is_held =
                    |node: &CoreNode| node.metadata.finalizers.as_ref().is_some_and(|it| !it.is_empty());
                self.core_node = self.core_node.take().filter(is_held);
                if let Some(core_node) = &mut self.core_node {
                    core_node.metadata.deletion_timestamp.get_or_insert(Time(now));
                }
            }
            Event::Undedicate => {
                if let Some(core_node) = &mut self.core_node {
                    core_node.metadata.labels = None;
                    core_node.spec.get_or_insert_default().taints = None;
                }
            }
            Event::ForeignPod => self.foreign = Some(foreign_pod("stray", 31_536_000)),
        }
    }

    /// Passes follow each other until nothing happens any more. Returns what the last plan waits for.
    fn come_to_rest(&mut self, events: &[(usize, Event)]) -> Option<NodeWait> {
        let mut rest = Rest::new();
        for number in 0..MOST_PASSES {
            for (_, event) in events.iter().filter(|(when, _)| *when == number) {
                self.happens(*event);
            }
            let fence = self.status().fence.clone();
            let plan = self.pass();
            let live = self.machines.iter().filter(|machine| is_live(&machine.instance)).count();
            assert!(live <= 1, "{live} machines live at once");
            if self.is_gone {
                let is_left = self.node.spec.instance_id.is_some();
                assert!(live == 0 || is_left, "the Node is gone, and its machine is not");
                return plan.waiting;
            }
            assert!(fence.is_none() || self.status().fence == fence, "what is declared lost stays lost");
            // A proof begins anew with what happens.
            let has_happened = events.iter().all(|(when, _)| *when < number);
            let is_quiet = plan.actions.is_empty() && !self.is_moving() && has_happened;
            if rest.is_reached(plan.waiting.as_ref(), is_quiet) {
                return plan.waiting;
            }
            self.wait_for(&plan);
        }
        panic!("no rest after {MOST_PASSES} passes");
    }
}

fn events() -> impl Strategy<Value = Vec<(usize, Event)>> {
    let events = vec![
        Event::Delete,
        Event::Restart,
        Event::StatusLost,
        Event::NeverRegister,
        Event::Silent,
        Event::Stop,
        Event::Terminate,
        Event::Hide,
        Event::DeleteKubernetesNode,
        Event::Undedicate,
        Event::ForeignPod,
    ];
    prop::collection::vec((0..40usize, prop::sample::select(events)), 0..5)
}

proptest! {
    #[test]
    fn whatever_happens_a_node_comes_to_rest_with_one_machine_at_most(
        answers in answers("InsufficientInstanceCapacity"),
        events in events(),
    ) {
        Life::new(answers).come_to_rest(&events);
    }

    #[test]
    fn a_node_becomes_ready_whatever_ec2_answers_first(answers in answers("InsufficientInstanceCapacity"), restart in 0..40usize) {
        let waiting = Life::new(answers).come_to_rest(&[(restart, Event::Restart)]);
        prop_assert_eq!(waiting, None);
    }

    #[test]
    fn a_deleted_node_ends_with_its_machine(answers in answers("InsufficientInstanceCapacity"), events in events(), when in 0..60usize) {
        let mut life = Life::new(answers);
        let deleted = [events, vec![(when, Event::Delete)]].concat();
        let waiting = life.come_to_rest(&deleted);
        prop_assert!(life.is_gone, "{:?}", waiting);
    }
}
