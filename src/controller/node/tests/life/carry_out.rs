//! How the plans of a Node are carried out in the model: what each action changes, and what EC2 answers.

use super::*;
use crate::api::keys::{DEDICATED_LABEL, OUT_OF_SERVICE_TAINT};
use crate::controller::node::registration;
use crate::controller::safety::{Kubelet, kubelet};

impl Life {
    /// Whether the next action follows.
    pub(super) fn carry_out(&mut self, action: &Action) -> bool {
        let now = self.now;
        let issued = || IssuedRequest { at: now, call_blocked: None };
        match action {
            Action::AddFinalizer => self.node.metadata.finalizers = Some(vec![FINALIZER.to_owned()]),
            Action::Launch(creation, _) => {
                self.node.status = Some(NodeStatus {
                    creation: Some(creation.as_ref().clone()),
                    instance_id: None,
                    provider_id: None,
                    core_node_name: None,
                    instance_type: None,
                    zone: None,
                    ..self.status().clone()
                });
                return self.send();
            }
            Action::Resend(_) => {
                if let Some(creation) = self.status().creation.clone() {
                    self.sends.found_at_start(&creation.client_token, self.leading_since);
                }
                return self.send();
            }
            Action::RecordInstance(id) => self.status().instance_id = Some(id.clone()),
            Action::Adopt(id, tags) => {
                self.status().instance_id = Some(id.clone());
                self.tag(id, tags);
            }
            Action::Tag(id, tags) => self.tag(id, tags),
            Action::Untag(id, _, tags) => {
                let before = self.untagged.replace(issued());
                assert!(before.is_none_or(|before| before.at < now), "tags are taken off twice at once");
                for machine in self.machines.iter_mut().filter(|machine| machine.instance.id == *id) {
                    machine.instance.tags.retain(|key, value| tags.get(key) != Some(value));
                }
            }
            Action::RestoreCoreNode(_) => self.restore_core_node(),
            Action::MarkUnavailable(name, zone) => {
                let until = later(now, Timing::default().unavailable_offering_ttl);
                self.offerings.unavailable.insert((name.clone(), zone.clone()), until);
            }
            Action::LogConsole(_) => {}
            Action::Terminate(id, _) => {
                let before = self.terminations.insert(id.clone(), issued());
                assert!(before.is_none_or(|before| before.at < now), "{id} is terminated twice at once");
                self.change(id, InstanceState::ShuttingDown);
            }
            Action::DeclareLost(fence) => self.status().fence = Some(fence.as_ref().clone()),
            Action::Stop(id, _) => {
                let before = self.stops.insert(id.clone(), issued());
                assert!(before.is_none_or(|before| before.at < now), "{id} is stopped twice at once");
                self.change(id, InstanceState::Stopping);
            }
            Action::OutOfService(_) => self.taint(),
            Action::Dedicate(_) => {
                if let Some(core_node) = &mut self.core_node {
                    let dedicated = super::core_node();
                    let labels = core_node.metadata.labels.get_or_insert_default();
                    labels.extend(dedicated.metadata.labels.unwrap());
                    if let Some(effect) = registration::dedicated_effect(&self.node) {
                        let mut taint = dedicated.spec.and_then(|spec| spec.taints).unwrap().remove(0);
                        taint.effect = effect.to_owned();
                        let taints = &mut core_node.spec.get_or_insert_default().taints;
                        taints.get_or_insert_default().push(taint);
                    }
                }
            }
            Action::HoldCoreNode(_) => {
                if let Some(core_node) = &mut self.core_node {
                    core_node.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
                }
            }
            Action::Cordon(..) => {
                if let Some(core_node) = &mut self.core_node {
                    core_node.spec.get_or_insert_default().unschedulable = Some(true);
                }
            }
            Action::EvictPod { at_once: true, .. } => (self.pods, self.foreign) = (Vec::new(), None),
            Action::EvictPod { .. } => self.pods = vec![pod("orders-0", true)],
            Action::EvictForeignPod { grace_seconds, .. } => {
                if let Some(pod) = &mut self.foreign {
                    let grace = i64::from(*grace_seconds);
                    pod.metadata.deletion_timestamp = Some(Time(later(now, Duration::from_secs(30))));
                    pod.metadata.deletion_grace_period_seconds = Some(grace);
                }
            }
            Action::ReleaseCoreNode(_) => self.core_node = None,
            Action::RemoveFinalizer => self.is_gone = true,
        }
        true
    }

    fn tag(&mut self, id: &InstanceId, tags: &BTreeMap<String, String>) {
        let before = self.tagged.replace(IssuedRequest { at: self.now, call_blocked: None });
        assert!(before.is_none_or(|before| before.at < self.now), "{id} is tagged twice at once");
        for machine in self.machines.iter_mut().filter(|machine| machine.instance.id == *id) {
            machine.instance.tags.extend(tags.clone());
        }
    }

    fn restore_core_node(&mut self) {
        let Some(core_node) = &mut self.core_node else { return };
        core_node.metadata.finalizers = None;
        let labels = core_node.metadata.labels.get_or_insert_default();
        labels.remove(DEDICATED_LABEL);
        let taints = &mut core_node.spec.get_or_insert_default().taints;
        taints.get_or_insert_default().retain(|taint| !registration::is_mark(taint));
        self.core_node = self.core_node.take().filter(|it| it.metadata.deletion_timestamp.is_none());
    }

    fn taint(&mut self) {
        let taint = json!({"key": OUT_OF_SERVICE_TAINT, "value": "nodeshutdown", "effect": "NoExecute"});
        if let Some(core_node) = &mut self.core_node {
            core_node.spec.get_or_insert_default().taints = serde_json::from_value(json!([taint])).unwrap();
        }
    }

    /// Another state of an instance that has not ended, and the end of what runs on it.
    pub(super) fn change(&mut self, id: &InstanceId, state: InstanceState) {
        let now = self.now;
        let has_not_ended = |machine: &&mut Machine| {
            if state == InstanceState::Stopping {
                machine.instance.state == InstanceState::Running
            } else {
                is_live(&machine.instance)
            }
        };
        let machine = self.machines.iter_mut().find(|machine| machine.instance.id == *id);
        if let Some(machine) = machine.filter(has_not_ended) {
            (machine.instance.state, machine.since) = (state, now);
            self.silence();
        }
    }

    /// The Kubernetes node is not Ready from now on.
    pub(super) fn silence(&mut self) {
        if let Some(core_node) = &mut self.core_node
            && kubelet(Some(core_node)) == Kubelet::Ready
        {
            core_node.status = core_node_with(&[], &ready("Unknown", self.now)).status;
        }
    }

    /// RunInstances with the recorded attempt, and what is recorded of its answer.
    fn send(&mut self) -> bool {
        let (now, answer) = (self.now, self.answers.pop_front().unwrap_or(Answer::Made));
        let Some(mut creation) = self.status().creation.clone() else { return true };
        let token = creation.client_token.clone();
        self.sends.note_object("node-uid", None);
        let made = |life: &Self| {
            let machine = life.machines.iter().find(|it| it.instance.token.as_ref() == Some(&token));
            machine.map(|machine| machine.instance.id.clone())
        };
        if let Some(listed_from) = answer.listed_from(now).filter(|_| made(self).is_none()) {
            self.make(&creation, listed_from);
        }
        let is_recorded = answer.note(&token, &mut creation.attempt, &self.sends, now);
        if is_recorded {
            self.status().instance_id = made(self);
        } else if creation.attempt.refused.is_some() {
            let until = later(now, Timing::default().unavailable_offering_ttl);
            let offering = (creation.instance_type.clone(), creation.zone.clone());
            self.offerings.unavailable.insert(offering, until);
        }
        self.status().creation = Some(creation);
        is_recorded
    }

    fn make(&mut self, creation: &NodeCreation, listed_from: Timestamp) {
        let instance = Instance {
            token: Some(creation.client_token.clone()),
            tags: creation.tags.clone(),
            zone: creation.zone.clone(),
            instance_type: creation.instance_type.clone(),
            ..instance(&format!("i-{}", self.machines.len() + 1), InstanceState::Pending)
        };
        self.machines.push(Machine { instance, since: self.now, listed_from, has_registered: false });
    }
}
