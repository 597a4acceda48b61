//! What holds where a life of the model is at rest.

use super::*;
use crate::api::ConditionType;
use crate::api::keys::REVISION_LABEL;
use crate::controller::conditions;
use crate::controller::database::plan::facts::inputs_of_pod;
use crate::controller::database::pod::machine as host_of;

impl Life {
    /// The Database is as its spec says, or says what a person must do.
    pub(super) fn check_rest(&self, waiting: Option<&DatabaseWait>) {
        if self.is_deleting() {
            assert!(self.is_gone, "a deleted Database stays, and waits for {waiting:?}");
            self.check_gone();
        } else if !self.database.spec.running {
            self.check_paused(waiting);
        } else if self.is_broken {
            assert!(waiting.is_some_and(DatabaseWait::is_stalled), "{waiting:?}");
        } else if self.claim != Claim::Leaving {
            self.check_ready(waiting);
        }
    }

    /// The Database is ready, on one machine of a wanted type, with one volume and with a current pod.
    pub(super) fn check_ready(&self, waiting: Option<&DatabaseWait>) {
        assert_eq!(waiting, None);
        assert!(conditions::is_true(self.database.conditions(), ConditionType::Ready));
        let status = self.database.status.as_ref().unwrap();
        assert_eq!(status.observed_generation, self.database.metadata.generation);
        let [machine] = self.machines.as_slice() else { panic!("{} machines", self.machines.len()) };
        assert!(machine.is_reporting() && !machine.is_leaving(&self.database.spec.instance_types));
        assert_eq!(status.node_name.as_deref(), machine.node.metadata.name.as_deref());
        assert_eq!(status.replacement, None);
        let pod = self.pod.as_ref().unwrap();
        assert!(self.is_serving());
        assert_eq!(host_of(pod), machine.core_node_name());
        assert_eq!(machine.engine, pod.metadata.uid);
        let inputs = inputs_of_pod(&self.observed(), pod);
        assert_eq!(inputs, Some(build::inputs_hash(&self.database.spec)));
        self.check_in_force();
        let volume = self.volume.as_ref().unwrap();
        assert_eq!(Some(volume.spec.zone.as_str()), machine.zone());
        assert_eq!(volume.spec.size, self.database.spec.storage.size);
        assert!(self.service_account.is_some());
        assert!(self.service.is_some() && self.config_map.is_some() && self.network_policy.is_some());
        assert!(self.disruption_budget.is_some());
        self.check_rotated();
    }

    /// The ConfigMap and the StatefulSet are as they are rendered, and the pod is of that template.
    pub(super) fn check_as_applied(&self) {
        let profile = self.profile.as_ref().unwrap();
        let files = build::config_map(&self.database, &self.names, profile).unwrap();
        let mut set = build::stateful_set(&self.database, &self.names, profile, 1);
        let memory = self.labelled().next().and_then(|it| build::memory_on(&self.database.spec, it));
        set.spec = build::with_memory(&set, memory.unwrap()).unwrap().spec;
        assert_eq!(self.config_map.as_ref().unwrap().data, files.data);
        assert_eq!(self.stateful_set.as_ref().unwrap().spec, set.spec);
        let revision = self.pod.as_ref().and_then(|pod| pod.labels().get(REVISION_LABEL));
        assert_eq!(revision, Some(&build::of_stateful_set(&set)));
    }

    /// The Database is paused: it has no machine, and keeps its volume.
    fn check_paused(&self, waiting: Option<&DatabaseWait>) {
        let is_stalled = waiting.is_some_and(DatabaseWait::is_stalled);
        assert!(waiting == Some(&DatabaseWait::Paused) || (self.is_broken && is_stalled), "{waiting:?}");
        assert!(self.machines.is_empty() && self.pod.is_none());
        assert_eq!(self.volume.is_some(), self.volumes_made == 1);
    }

    /// Nothing is left of the Database but what its policy keeps.
    pub(super) fn check_gone(&self) {
        assert!(self.machines.is_empty() && self.volume.is_none() && self.credentials.is_none());
        assert!(self.stateful_set.is_none() && self.service.is_none());
        assert!(self.config_map.is_none() && self.network_policy.is_none());
        assert!(self.disruption_budget.is_none());
        assert!(self.service_account.is_none());
        if let Some(policy) = self.volume_ended.filter(|_| !self.is_broken) {
            assert_eq!(self.retained.is_some(), policy != DeletionPolicy::Delete, "{policy:?}");
        }
    }
}
