//! What Kubernetes does by itself in the model of a Database's life: the StatefulSet's controller, the
//! scheduler, the kubelets and the CSI driver.

use k8s_openapi::api::storage::v1::VolumeAttachment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::api::keys::{EBS_CSI_DRIVER, REVISION_LABEL};
use crate::controller::database::pod::{has_started, machine as host_of};

/// How long a pod may take to stop.
const GRACE: Duration = Duration::from_secs(60);

impl Life {
    /// The Kubernetes nodes that have the Database's label.
    pub(super) fn labelled(&self) -> impl Iterator<Item = &CoreNode> {
        self.machines.iter().filter(|machine| machine.is_labelled()).filter_map(|it| it.core_node.as_ref())
    }

    /// The machine that the pod is on.
    pub(super) fn host(&self) -> Option<&Machine> {
        let name = self.pod.as_ref().and_then(host_of)?;
        self.machines.iter().find(|machine| machine.core_node_name() == Some(name))
    }

    /// Whether a pod uses the claim: only one that is on a machine does.
    pub(super) fn is_claim_used(&self) -> bool {
        self.pod.as_ref().and_then(host_of).is_some()
    }

    /// Whether the pod's engine is running and accepts connections.
    pub(super) fn is_serving(&self) -> bool {
        let conditions = self.pod.as_ref().and_then(|pod| pod.status.as_ref()?.conditions.as_ref());
        conditions.into_iter().flatten().any(|it| it.type_ == "Ready" && it.status == "True")
    }

    /// The attachment of a pod that is on a machine and has not started.
    pub(super) fn attachment(&self) -> Option<VolumeAttachment> {
        let pod = self.pod.as_ref().filter(|pod| !has_started(pod, None))?;
        let attachment = json!({
            "metadata": {"name": "csi-1"},
            "spec": {"attacher": EBS_CSI_DRIVER, "nodeName": host_of(pod)?, "source": {}},
            "status": {"attached": false},
        });
        Some(serde_json::from_value(attachment).unwrap())
    }

    /// The pod is deleted, and has its grace to end. Returns whether it was not deleted before.
    pub(super) fn end_pod(&mut self) -> bool {
        let ends = Time(later(self.now, GRACE));
        let pod = self.pod.as_mut().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        pod.map(|pod| pod.metadata.deletion_timestamp = Some(ends)).is_some()
    }

    /// Takes the next step of the pod. Returns whether there is one.
    pub(super) fn settle_pod(&mut self) -> bool {
        let Some(pod) = &self.pod else { return false };
        let is_deleting = pod.metadata.deletion_timestamp.is_some();
        let Some(name) = host_of(pod).map(str::to_owned) else {
            if is_deleting {
                self.pod = None;
            }
            return is_deleting || self.schedule();
        };
        let host = self.machines.iter_mut().find(|machine| machine.core_node_name() == Some(name.as_str()));
        let Some(host) = host.filter(|host| host.stage != machine::Stage::Ended) else {
            // The pods of a Kubernetes node that is gone are deleted by Kubernetes, and those of a machine
            // that EC2 shows ended by its Node's controller.
            self.pod = None;
            return true;
        };
        if !host.is_reporting() {
            let was_serving = self.is_serving();
            if was_serving {
                self.show(false, 0);
            }
            return was_serving;
        }
        if is_deleting {
            (host.engine, self.pod) = (None, None);
            return true;
        }
        if host.is_drained() {
            return self.end_pod();
        }
        self.start()
    }

    /// The scheduler puts the pod on the one machine that qualifies.
    fn schedule(&mut self) -> bool {
        let zone = self.volume.as_ref().map(|volume| volume.spec.zone.clone());
        let qualifies = |machine: &&Machine| {
            machine.is_labelled()
                && machine.is_reporting()
                && !machine.is_drained()
                && machine.zone() == zone.as_deref()
        };
        let found = self.machines.iter().find(qualifies).filter(|_| self.claim == Claim::Bound);
        let Some(name) = found.and_then(Machine::core_node_name).map(str::to_owned) else { return false };
        let pod = self.pod.as_mut().unwrap();
        pod.spec.get_or_insert_default().node_name = Some(name);
        true
    }

    /// The kubelet starts the engine, and then its probe succeeds.
    fn start(&mut self) -> bool {
        if self.is_serving() {
            return false;
        }
        let Some(pod) = self.pod.as_ref().filter(|pod| !has_started(pod, None)) else {
            let accepts = self.accepts_data() && self.is_good();
            if accepts {
                self.check_rows();
                self.show(true, 0);
            }
            return accepts;
        };
        self.check_recovery(pod);
        let others: Vec<&Machine> = self.machines.iter().filter(|it| it.engine.is_some()).collect();
        if !others.is_empty() {
            // Kubernetes forgets the pod of a Kubernetes node that is gone while its engine runs on. Then
            // only EBS keeps the data from two engines: it attaches a volume to one machine.
            let is_forgotten = others.iter().all(|other| other.core_node.is_none());
            assert!(is_forgotten, "an engine starts while another one runs");
            return false;
        }
        let (uid, host) = (pod.metadata.uid.clone(), host_of(pod));
        let host = self.machines.iter_mut().find(|machine| machine.core_node_name() == host);
        host.unwrap().engine = uid;
        self.begins_with_data();
        self.begins_with_password();
        self.mounts_files();
        self.show(false, 0);
        true
    }

    /// The pod's status: whether the probe succeeds, and this many more starts of the container.
    pub(super) fn show(&mut self, is_ready: bool, more_starts: i32) {
        let Some(pod) = self.pod.take() else { return };
        let shown = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref()?.first());
        let starts = shown.map_or(0, |container| container.restart_count) + more_starts;
        let mut container = container_status(json!({"running": {}}));
        container["restartCount"] = json!(starts);
        let is_ready = if is_ready { "True" } else { "False" };
        let conditions = json!([{"type": "Ready", "status": is_ready}]);
        let status = json!({"phase": "Running", "podIP": "10.0.0.1", "conditions": conditions,
            "containerStatuses": [container]});
        self.pod = Some(pod_with(pod, status));
    }

    /// The StatefulSet's controller acts on what it saw last, then sees what is there. Returns whether it did
    /// anything.
    pub(super) fn settle_stateful_set(&mut self) -> bool {
        if self.slow > 0 {
            self.slow -= 1;
            return true;
        }
        let Some(live) = &self.stateful_set else {
            // What it owned is deleted with it.
            self.seen = None;
            return self.end_pod();
        };
        let version = |set: &StatefulSet| (set.metadata.uid.clone(), set.metadata.generation);
        let is_new = self.seen.as_ref().map(version) != Some(version(live));
        let seen = self.seen.as_ref().filter(|seen| seen.metadata.uid == live.metadata.uid);
        let replicas = seen.and_then(|seen| seen.spec.as_ref()?.replicas);
        let has_acted = match (replicas, &self.pod) {
            (Some(0), Some(_)) => self.end_pod(),
            (Some(1), None) => {
                self.create_pod();
                true
            }
            _ => false,
        };
        if let Some(live) = self.stateful_set.as_mut().filter(|_| is_new) {
            let revision = build::of_stateful_set(live);
            let status = live.status.get_or_insert_default();
            (status.observed_generation, status.update_revision) = (live.metadata.generation, Some(revision));
            self.seen = Some(live.clone());
        }
        has_acted || is_new
    }

    /// A pod from the template that the StatefulSet's controller has seen.
    fn create_pod(&mut self) {
        self.flush = FlushView::NotBegun;
        let Some(seen) = &self.seen else { return };
        let Some(template) = seen.spec.as_ref().map(|spec| spec.template.clone()) else { return };
        let revision = build::of_stateful_set(seen);
        let mut pod =
            Pod { metadata: template.metadata.unwrap_or_default(), spec: template.spec, status: None };
        pod.metadata.name = Some(self.names.pod());
        pod.labels_mut().insert(REVISION_LABEL.to_owned(), revision);
        pod.metadata.uid = Some(self.new_uid());
        pod.metadata.creation_timestamp = Some(Time(self.now));
        self.pods_made += 1;
        self.pod = Some(pod);
    }
}
