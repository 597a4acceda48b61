//! How time passes in the model of a Node's life: what EC2, kubelets and the CSI driver do by themselves, and
//! what look-ups show of it.

use super::*;
use crate::api::keys::OUT_OF_SERVICE_TAINT;

impl Life {
    /// Time moves to what the plan waits for, or to what moves by itself before that.
    pub(super) fn wait_for(&mut self, plan: &Plan) {
        let mut pause = plan.requeue.unwrap_or(Duration::from_secs(900));
        if self.is_moving() {
            pause = pause.min(Duration::from_secs(10));
        }
        if plan.pending {
            pause = pause.min(Duration::from_secs(300));
        }
        self.now = later(self.now, pause);
        self.settle();
        self.look_up();
    }

    /// Whether something changes by itself.
    pub(super) fn is_moving(&self) -> bool {
        let is_on_its_way = |machine: &Machine| {
            machine.listed_from > self.now
                || matches!(
                    machine.instance.state,
                    InstanceState::Pending | InstanceState::Stopping | InstanceState::ShuttingDown
                )
                || (machine.instance.state == InstanceState::Running
                    && !machine.has_registered
                    && self.kubelets == Kubelets::Report)
        };
        self.machines.iter().any(is_on_its_way)
            || self.pods.iter().any(|pod| pod.metadata.deletion_timestamp.is_some())
            || self.foreign.iter().any(|pod| self.is_in_grace(pod))
            || (self.pods.is_empty() && !self.attachments.is_empty())
    }

    fn is_in_grace(&self, pod: &Pod) -> bool {
        pod.metadata.deletion_timestamp.as_ref().is_some_and(|ends| self.now < ends.0)
    }

    /// What EC2, the kubelets and the CSI driver have done by now.
    fn settle(&mut self) {
        let now = self.now;
        for machine in &mut self.machines {
            let state = match machine.instance.state {
                InstanceState::Pending => InstanceState::Running,
                InstanceState::Stopping => InstanceState::Stopped,
                InstanceState::ShuttingDown => InstanceState::Terminated,
                InstanceState::Running if !machine.has_registered && self.kubelets == Kubelets::Report => {
                    machine.has_registered = true;
                    let mut core_node = core_node_with(&[], &ready("True", now));
                    core_node.metadata.creation_timestamp = Some(Time(now));
                    core_node.spec.get_or_insert_default().provider_id = Some(provider_id(&machine.instance));
                    self.core_node = Some(core_node);
                    continue;
                }
                InstanceState::Running
                | InstanceState::Stopped
                | InstanceState::Terminated
                | InstanceState::Unknown => continue,
            };
            (machine.instance.state, machine.since) = (state, now);
        }
        let is_reporting = self.kubelets != Kubelets::Silent
            && self.machines.iter().any(|machine| machine.instance.state == InstanceState::Running);
        let taints = self.core_node.iter().filter_map(|node| node.spec.as_ref()?.taints.as_ref()).flatten();
        let is_tainted = taints.into_iter().any(|taint| taint.key == OUT_OF_SERVICE_TAINT);
        if is_reporting {
            self.pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
        }
        if self.pods.is_empty() && (is_reporting || is_tainted) {
            self.attachments.clear();
        }
        let (has_data, is_ready) = (!self.attachments.is_empty(), self.is_ready());
        let is_wanted = self.node.metadata.deletion_timestamp.is_none() && !self.has_served;
        if let Some(machine) = self.machines.iter_mut().find(|machine| is_live(&machine.instance)) {
            machine.instance.volumes.truncate(2);
            if is_ready && is_wanted {
                self.pods = vec![pod("orders-0", false)];
                self.attachments = vec!["csi-1".to_owned()];
                self.has_served = true;
            }
            // A volume is attached for a pod, and that runs where a kubelet has registered: what hangs on an
            // ended machine does not come to its successor.
            if machine.has_registered && (has_data || (is_ready && is_wanted)) {
                machine.instance.volumes.push(VolumeId("vol-data".to_owned()));
            }
        }
    }

    /// The look-ups of a proof of absence.
    fn look_up(&mut self) {
        let Some((token, last)) = &self.awaited else { return };
        let is_remains =
            |it: &Instance| it.state == InstanceState::Terminated && (token.is_none() || it.token != *token);
        let by_tag = self.inventory().any(|instance| !is_remains(instance));
        let by_token = self.listed().any(|instance| instance.token == *token);
        self.empty = EmptyRuns {
            by_tag: EmptyRun::after(self.empty.by_tag, *last, self.now, by_tag),
            by_token: EmptyRun::after(self.empty.by_token, *last, self.now, by_token),
        };
    }
}
