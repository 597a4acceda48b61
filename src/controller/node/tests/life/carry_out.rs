//! How the plans of a Node are carried out in the model: what each action changes, and what EC2 answers.

use super::*;
use crate::api::keys::OUT_OF_SERVICE_TAINT;
use crate::controller::memory::sends::resend_pause;
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
                self.found_at_start();
                return self.send();
            }
            Action::RecordInstance(id) => self.status().instance_id = Some(id.clone()),
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
            Action::EvictPod { at_once: true, .. } => self.pods.clear(),
            Action::EvictPod { .. } => self.pods = vec![pod("orders-0", true)],
            Action::ReleaseCoreNode(_) => self.core_node = None,
            Action::RemoveFinalizer => self.is_gone = true,
        }
        true
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

    /// An attempt that this process has not sent is in doubt.
    fn found_at_start(&mut self) {
        let at = self.process_started;
        let found = Sent { last: at, times: 0, in_doubt: true, refused_after_doubt: false, not_before: at };
        if let Some(creation) = self.status().creation.clone() {
            self.sends.entry(creation.client_token).or_insert(found);
        }
    }

    fn attempt(&mut self) -> Option<&mut Attempt> {
        self.status().creation.as_mut().map(|creation| &mut creation.attempt)
    }

    /// RunInstances with the recorded attempt, and what is recorded of its answer.
    fn send(&mut self) -> bool {
        let now = self.now;
        let Some(creation) = self.status().creation.clone() else { return true };
        let token = &creation.client_token;
        let recheck = Timing::default().requeue_interval;
        let first =
            Sent { last: now, times: 0, in_doubt: false, refused_after_doubt: false, not_before: now };
        let sent = self.sends.entry(token.clone()).or_insert(first);
        let was_in_doubt = sent.in_doubt || creation.attempt.in_doubt_since.is_some();
        (sent.last, sent.times, sent.in_doubt) = (now, sent.times + 1, true);
        sent.not_before = later(now, resend_pause(sent.times, recheck));
        let answer = self.answers.pop_front().unwrap_or(Answer::Made);
        let is_made = self.machines.iter().any(|it| it.instance.token.as_ref() == Some(token));
        match answer {
            Answer::Throttled => sent.in_doubt = was_in_doubt,
            Answer::Refused(_) if is_made => {}
            Answer::Refused(_) if was_in_doubt => sent.refused_after_doubt = true,
            Answer::Refused(code) => {
                let until = later(now, Timing::default().unavailable_offering_ttl);
                let offering = (creation.instance_type.clone(), creation.zone.clone());
                self.offerings.unavailable.insert(offering, until);
                let refusal = Refusal { code: code.to_owned(), message: "no".to_owned(), at: Time(now) };
                self.sends.remove(token);
                self.attempt().unwrap().refused = Some(refusal);
            }
            Answer::Made | Answer::MadeInDoubt | Answer::InDoubt => {
                let is_answered = matches!(answer, Answer::Made);
                if !is_made && !matches!(answer, Answer::InDoubt) {
                    self.make(&creation, if is_answered { now } else { later(now, Duration::from_secs(30)) });
                }
                let made = self.machines.iter().find(|it| it.instance.token.as_ref() == Some(token));
                let id = made.map(|machine| machine.instance.id.clone());
                if is_answered {
                    self.sends.remove(token);
                    self.status().instance_id = id;
                    return true;
                }
                self.attempt().unwrap().in_doubt_since.get_or_insert(Time(now));
            }
        }
        false
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
