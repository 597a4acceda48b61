//! One moment of the API server and of EC2, and the answers to questions about it.

use ec2sim::{InstanceState, InstanceView, SnapshotView, VolumeState, VolumeView};
use freehold::api::keys::{self, DATABASE_NODE_LABEL};
use freehold::api::{Database, Node, Volume};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Node as CoreNode, PersistentVolume, PersistentVolumeClaim, Pod, Secret};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::ResourceExt;
use serde::Deserialize;

/// What EC2 has, in truth.
#[derive(Clone, Debug, Deserialize)]
pub struct Ec2 {
    pub instances: Vec<InstanceView>,
    pub volumes: Vec<VolumeView>,
    pub snapshots: Vec<SnapshotView>,
}

/// Everything at one moment.
#[derive(Clone, Debug)]
pub struct World {
    pub databases: Vec<Database>,
    pub nodes: Vec<Node>,
    pub volumes: Vec<Volume>,
    pub core_nodes: Vec<CoreNode>,
    pub records: Vec<PersistentVolume>,
    pub claims: Vec<PersistentVolumeClaim>,
    pub stateful_sets: Vec<StatefulSet>,
    pub pods: Vec<Pod>,
    pub attachments: Vec<VolumeAttachment>,
    pub secrets: Vec<Secret>,
    pub others: Vec<String>,
    pub ec2: Ec2,
}

impl World {
    /// The one Database.
    pub fn database(&self) -> Option<&Database> {
        self.databases.first()
    }

    /// The Node that the database is on: the one whose machine carries its label; before any does, the
    /// newest.
    pub fn node(&self) -> Option<&Node> {
        let is_labelled = |node: &&Node| {
            let name = node.status.as_ref().and_then(|status| status.core_node_name.as_ref());
            let its = self.core_nodes.iter().find(|core_node| core_node.metadata.name.as_ref() == name);
            name.is_some()
                && its.is_some_and(|core_node| core_node.labels().contains_key(DATABASE_NODE_LABEL))
        };
        self.nodes
            .iter()
            .find(is_labelled)
            .or_else(|| self.nodes.iter().max_by_key(|node| node.creation_timestamp().map(|time| time.0)))
    }

    /// A Node's instance that is not this one, as EC2 shows it.
    pub fn other_instance(&self, than: &str) -> Option<&InstanceView> {
        let ids = self.nodes.iter().filter_map(|node| node.status.as_ref()?.instance_id.as_ref());
        let other = ids.map(|id| &id.0).find(|id| *id != than)?;
        self.ec2.instances.iter().find(|instance| instance.id == *other)
    }

    /// Whether EC2 shows this instance as terminated, or no more.
    pub fn is_terminated(&self, instance: &str) -> bool {
        self.ec2.instances.iter().all(|it| it.id != instance || it.state == InstanceState::Terminated)
    }

    /// The one Volume.
    pub fn volume(&self) -> Option<&Volume> {
        self.volumes.first()
    }

    /// The instance that the Node names, if EC2 shows it.
    pub fn instance(&self) -> Option<&InstanceView> {
        let id = self.node()?.status.as_ref()?.instance_id.as_ref()?;
        self.ec2.instances.iter().find(|instance| instance.id == id.0)
    }

    /// That instance, if it is running.
    pub fn running_instance(&self) -> Option<&InstanceView> {
        self.instance().filter(|instance| instance.state == InstanceState::Running)
    }

    /// The Kubernetes node of the running instance.
    pub fn core_node(&self) -> Option<&CoreNode> {
        let instance = self.running_instance()?;
        let provider_id = format!("aws:///{}/{}", instance.zone, instance.id);
        self.core_nodes
            .iter()
            .find(|node| node.spec.as_ref().and_then(|spec| spec.provider_id.as_ref()) == Some(&provider_id))
    }

    /// The same, if it is Ready.
    pub fn ready_core_node(&self) -> Option<&CoreNode> {
        self.core_node().filter(|node| {
            let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
            conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
        })
    }

    /// The EBS volume that the Volume names.
    pub fn ebs_volume(&self) -> Option<&VolumeView> {
        let id = self.volume()?.status.as_ref()?.volume_id.as_ref()?;
        self.ec2.volumes.iter().find(|volume| volume.id == id.0)
    }

    /// The claim, if it is bound to the PersistentVolume of the EBS volume.
    pub fn bound_claim(&self) -> Option<&PersistentVolumeClaim> {
        let id = &self.ebs_volume()?.id;
        let record = self.records.iter().find(|record| handle(record) == Some(id))?;
        self.claims.iter().find(|claim| {
            claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()) == Some(record.name_any())
                && claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
        })
    }

    /// The VolumeAttachment by which the CSI driver attached the volume to the machine.
    pub fn attached(&self) -> Option<&VolumeAttachment> {
        let record = self.bound_claim()?.spec.as_ref()?.volume_name.clone()?;
        let node = self.core_node()?.name_any();
        self.attachments.iter().find(|attachment| {
            attachment.spec.source.persistent_volume_name.as_ref() == Some(&record)
                && attachment.spec.node_name == node
                && attachment.status.as_ref().is_some_and(|status| status.attached)
        })
    }

    /// The pod on the database's machine for which this condition is true.
    pub fn pod_with(&self, condition: &str) -> Option<&Pod> {
        let node = self.core_node()?.name_any();
        self.pods.iter().find(|pod| {
            let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
            pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()) == Some(&node)
                && conditions.any(|it| it.type_ == condition && it.status == "True")
        })
    }

    /// The database's pod, if it is Ready on the machine of the database with the volume attached to it.
    pub fn serving_pod(&self) -> Option<&Pod> {
        self.ready_core_node()?;
        let instance = self.running_instance()?;
        let attached = self
            .ebs_volume()?
            .attachment
            .as_ref()
            .is_some_and(|attachment| attachment.instance_id == instance.id);
        self.pod_with("Ready").filter(|_| attached)
    }

    /// The UID of the database's pod.
    pub fn pod_uid(&self) -> Option<String> {
        self.serving_pod().and_then(ResourceExt::uid)
    }

    /// Whether the Database is Ready in its present generation.
    pub fn is_ready(&self) -> bool {
        self.database().is_some_and(|database| {
            let generation = database.metadata.generation;
            let status = database.status.as_ref();
            status.is_some_and(|status| {
                status.observed_generation == generation
                    && status.conditions.iter().any(|it| {
                        it.type_ == "Ready" && it.status == "True" && it.observed_generation == generation
                    })
            })
        })
    }

    /// The Database's condition Ready, if it is not true: its reason and its message.
    pub fn unready(&self) -> Option<(&str, &str)> {
        let status = self.database()?.status.as_ref()?;
        let ready = status.conditions.iter().find(|it| it.type_ == "Ready" && it.status != "True")?;
        Some((&ready.reason, &ready.message))
    }

    /// The conditions of Freehold's objects, for the error of a step that was not observed.
    pub fn conditions(&self) -> String {
        let mut lines = Vec::new();
        let mut add =
            |kind: &str,
             name: String,
             conditions: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition]| {
                for condition in conditions {
                    lines.push(format!(
                        "  {kind} {name}: {}={} {}: {}",
                        condition.type_, condition.status, condition.reason, condition.message
                    ));
                }
            };
        for database in &self.databases {
            add("Database", database.name_any(), database.conditions());
        }
        for node in &self.nodes {
            add("Node", node.name_any(), node.conditions());
        }
        for volume in &self.volumes {
            add("Volume", volume.name_any(), volume.conditions());
        }
        lines.join("\n")
    }

    /// Everything of the database's that is still there, a line each.
    pub fn left_over(&self) -> Vec<String> {
        let mut left: Vec<String> = Vec::new();
        left.extend(self.databases.iter().map(|it| format!("Database {}", it.name_any())));
        left.extend(self.nodes.iter().map(|it| format!("Node {}", it.name_any())));
        left.extend(self.volumes.iter().map(|it| format!("Volume {}", it.name_any())));
        left.extend(self.stateful_sets.iter().map(|it| format!("StatefulSet {}", it.name_any())));
        left.extend(self.pods.iter().map(|it| format!("Pod {}", it.name_any())));
        left.extend(self.claims.iter().map(|it| format!("PersistentVolumeClaim {}", it.name_any())));
        left.extend(self.others.iter().cloned());
        let machines =
            self.core_nodes.iter().filter(|node| node.labels().contains_key(keys::DEDICATED_LABEL));
        left.extend(machines.map(|node| format!("Kubernetes node {}", node.name_any())));
        let live = self.ec2.instances.iter().filter(|instance| instance.state != InstanceState::Terminated);
        left.extend(live.map(|instance| format!("EC2 instance {}", instance.id)));
        left.extend(self.ec2.snapshots.iter().map(|snapshot| format!("EBS snapshot {}", snapshot.id)));
        left.extend(
            self.ec2
                .volumes
                .iter()
                .map(|it| format!("EBS volume {} ({} GiB, {:?})", it.id, it.shape.size, it.state)),
        );
        left.extend(
            self.records.iter().map(|it| format!("PersistentVolume {} ({})", it.name_any(), phase(it))),
        );
        left.extend(self.secrets.iter().map(|it| format!("Secret {}", it.name_any())));
        left
    }

    /// Whether nothing is left but the EBS volume, free, its PersistentVolume, Released, and the kept Secret.
    pub fn only_the_volume_is_kept(&self, id: &str) -> bool {
        let kept_volume = matches!(self.ec2.volumes.as_slice(),
        [volume] if volume.id == id && volume.state == VolumeState::Available);
        let record = matches!(self.records.as_slice(),
            [record] if handle(record).is_some_and(|it| it == id) && phase(record) == "Released");
        let secret = matches!(self.secrets.as_slice(),
            [secret] if secret.labels().get(keys::RETAINED_LABEL).is_some_and(|it| it == "true"));
        kept_volume && record && secret && self.left_over().len() == 3
    }
}

/// How often the containers of a pod were started again.
pub fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    statuses.map(|status| status.restart_count).sum()
}

fn handle(record: &PersistentVolume) -> Option<&String> {
    Some(&record.spec.as_ref()?.csi.as_ref()?.volume_handle)
}

fn phase(record: &PersistentVolume) -> String {
    record.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default()
}
