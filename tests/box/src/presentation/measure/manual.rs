//! What a person would do by hand, as fast as can be: launch a machine, say where the pod may run, declare a
//! machine dead.

use std::time::{Duration, Instant};

use aws_sdk_ec2::types::InstanceType;
use data_encoding::BASE64;
use ec2sim::{InstanceState, InstanceView};
use freehold::api::keys::{DATABASE_NODE_LABEL, EBS_CSI_DRIVER, FINALIZER};
use k8s_openapi::api::core::v1::{Node as CoreNode, Pod};
use k8s_openapi::api::storage::v1::CSINode;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::log::OUT_OF_SERVICE;
use crate::account::cloud;
use crate::presentation::demo::common::Failure;
use crate::presentation::demo::observer::{NAMESPACE, Observer};

/// The name in EC2's journal.
const CALLER: &str = "by-hand";

/// How often is looked for something that is awaited.
const POLL: Duration = Duration::from_millis(50);

/// A person with all rights.
pub struct Manual<'a> {
    /// The cluster.
    pub client: &'a Client,
    /// EC2's truth.
    pub observer: &'a Observer,
    /// EC2's URL.
    pub endpoint: &'a str,
    /// EC2's region.
    pub region: &'a str,
}

impl Manual<'_> {
    fn machines(&self) -> Api<CoreNode> {
        Api::all(self.client.clone())
    }

    /// A machine like this one, in its zone; gives the name of its Kubernetes node, once pods with volumes
    /// can run on it.
    pub async fn launch_like(&self, like: &InstanceView) -> Result<String, Failure> {
        let cloud = cloud::client_of(CALLER, self.endpoint, self.region);
        let launched = cloud
            .run_instances()
            .image_id(&like.image_id)
            .instance_type(InstanceType::from(like.instance_type.as_str()))
            .subnet_id(&like.subnet_id)
            .set_security_group_ids(Some(like.security_groups.clone()))
            .user_data(BASE64.encode(like.user_data.clone().unwrap_or_default().as_bytes()))
            .min_count(1)
            .max_count(1)
            .send()
            .await
            .map_err(cloud::failed("launch a machine by hand".to_owned()))?;
        let id = launched
            .instances()
            .first()
            .and_then(|instance| instance.instance_id())
            .ok_or(
                "EC2 names \
            no instance",
            )?
            .to_owned();
        loop {
            if let Some(name) = self.joined(&id).await? {
                // As the operator does: without it the cloud-controller deletes the Node of a dead machine at
                // once.
                self.patch(&name, &json!({"metadata": {"finalizers": [FINALIZER]}})).await?;
                return Ok(name);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// The Kubernetes node of an instance, if it is Ready and has the CSI driver.
    async fn joined(&self, instance: &str) -> Result<Option<String>, Failure> {
        let nodes = self.machines().list(&ListParams::default()).await?;
        let is_its = |node: &&CoreNode| {
            let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_ref());
            provider_id.is_some_and(|id| id.ends_with(instance))
        };
        let Some(node) = nodes.items.iter().find(is_its) else { return Ok(None) };
        let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let is_ready = conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True");
        let drivers = Api::<CSINode>::all(self.client.clone()).get_opt(&node.name_any()).await?;
        let has_driver = drivers
            .is_some_and(|drivers| drivers.spec.drivers.iter().any(|driver| driver.name == EBS_CSI_DRIVER));
        Ok((is_ready && has_driver).then(|| node.name_any()))
    }

    async fn patch(&self, machine: &str, patch: &serde_json::Value) -> Result<(), Failure> {
        self.machines().patch(machine, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// The database's pod may run on `to` from now on, and no more on `from`.
    pub async fn open(&self, from: &str, to: &str, database_uid: &str) -> Result<(), Failure> {
        self.patch(to, &json!({"metadata": {"labels": {DATABASE_NODE_LABEL: database_uid}}})).await?;
        self.patch(from, &json!({"metadata": {"labels": {DATABASE_NODE_LABEL: null}}})).await
    }

    /// Kubernetes may take the machine for down, and the pod is deleted without a word from its kubelet: at
    /// once, both.
    pub async fn declare_dead(&self, machine: &str, pod: &str) -> Result<(), Failure> {
        let taints =
            self.machines().get(machine).await?.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let mut taints: Vec<serde_json::Value> =
            taints.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
        taints.push(json!({"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}));
        self.patch(machine, &json!({"spec": {"taints": taints}})).await?;
        let pods = Api::<Pod>::namespaced(self.client.clone(), NAMESPACE);
        pods.delete(pod, &DeleteParams::default().grace_period(0)).await?;
        Ok(())
    }

    /// Lets go of the Kubernetes node of a dead machine: the next machine may have its address, and so its
    /// name.
    pub async fn forget(&self, machine: &str) -> Result<(), Failure> {
        self.patch(machine, &json!({"metadata": {"finalizers": null}})).await?;
        match self.machines().delete(machine, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            deleted => Ok(deleted.map(drop)?),
        }
    }

    /// Waits until EC2 shows the instance as terminated, and says when that was seen.
    pub async fn terminated(&self, instance: &str) -> Result<Instant, Failure> {
        loop {
            let ec2 = self.observer.ec2().await?;
            if ec2.instances.iter().all(|it| it.id != instance || it.state == InstanceState::Terminated) {
                return Ok(Instant::now());
            }
            tokio::time::sleep(POLL).await;
        }
    }
}
