//! What is known of a `Database`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::database::DeletionPolicy;
use super::database_adoption::Adoption;
use super::database_auto_grow::AutoGrowStatus;
use super::database_config::ConfigStatus;
use super::database_restore::{Initialization, Restored, RestoredInPlace};
use super::database_served::Served;
use super::database_tls::TlsStatus;
use super::database_upgrade::Upgrade;
use super::database_user::Binding;
use super::database_wal_archive::WalArchiveStatus;
use super::event::EventReason;

/// What is known of a database.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Ready, Available, NodeReady, VolumeReady, EngineReady and Stalled, each with a reason and a message.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// The zone of the database: decided once, by capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,

    /// The instance type in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,

    /// The ordinal of the newest Node: written before that Node is created, so that a lost answer cannot
    /// create a second one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_ordinal: Option<i32>,

    /// The Node (`nodes.freehold.dev`) that the database runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,

    /// One Node replacing another: there are two only while this names both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<Replacement>,

    /// The Volume (`volumes.freehold.dev`) that holds the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_name: Option<String>,

    /// Where clients connect to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,

    /// The Secret with the administrator's credentials, laid out as the Service Binding specification says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_name: Option<String>,

    /// The Secret that an application connects with, laid out as the Service Binding specification says
    /// ("Provisioned Service"): that of spec.applicationUser once the engine lets it in, and without one the
    /// administrator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Binding>,

    /// Which password the engine and the Secret have, where spec.access.passwordGeneration asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_generation: Option<i64>,

    /// Which settings of spec.config the engine runs with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<ConfigStatus>,

    /// Which certificate the engine shows (spec.tls), and when that expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsStatus>,

    /// Whether the engine archives its write-ahead log (spec.walArchive).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wal_archive: Option<WalArchiveStatus>,

    /// The engine's current run: a restart is recognised by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<EngineRun>,

    /// The pods that Freehold replaced because their engine kept ending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_starting: Option<NotStarting>,

    /// The newest version of QuestDB that was started on the data. No older one is started on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_version: Option<String>,

    /// What the engine last accepted connections as, and what the database went back from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<Box<Served>>,

    /// The deletion policy that the Volume was being deleted under when it was seen last. Credentials of data
    /// that may have been retained are retained, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_deletion_policy: Option<DeletionPolicy>,

    /// When the database was Ready for the first time, or would have been but for the user of its
    /// application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_ready_at: Option<Time>,

    /// What Freehold applied last, as the API server answered: a ConfigMap or StatefulSet that differs from
    /// it was changed outside Freehold, and is restored. What a newer version of Freehold renders differently
    /// is no difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<Applied>,

    /// How far the volume is that grows by itself (spec.storage.autoGrow).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_grow: Option<AutoGrowStatus>,

    /// What the data was restored from (spec.restore, spec.restoreInPlace): decided before anything is
    /// created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Restored>,

    /// The last restore in place (spec.restoreInPlace): how far it is, and the EBS volume with the data that
    /// the database had before, which is retained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_in_place: Option<Box<RestoredInPlace>>,

    /// The last change of the engine behind a snapshot (spec.upgrade): how far it is, and what the database
    /// went back from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Box<Upgrade>>,

    /// How far EC2 has read the volume of a database that was restored. The database serves meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,

    /// How the database was found when it was adopted (spec.adopt); there once it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption: Option<Adoption>,

    /// The release of the database (spec.release), once it has begun. From the moment at which the
    /// StatefulSet is released it is completed, whatever the spec says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,

    /// What interrupted the database or was done to it, with its cause: the last ten, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub history: Vec<HistoryEntry>,
}

/// A release that has begun: written before anything is released.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Release {
    /// When it began.
    pub started_at: Time,

    /// True for an adopted database that becomes what it was before; false for one that goes on as it runs
    /// now.
    pub as_found: bool,
}

/// One Node replacing another. Written before the second Node is created, kept until one of both is gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Replacement {
    /// The Node that is replaced.
    pub from: String,

    /// The Node that takes its place.
    pub to: String,

    /// Why, as a sentence.
    pub cause: String,

    /// When it was decided.
    pub started_at: Time,

    /// Nodes that the database does not use any more, and that were still going when it was decided: the
    /// repair of a lost machine waits for none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaving: Vec<String>,
}

/// What Freehold applied last. It is in the status, which who may edit only the objects cannot forge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Applied {
    /// The SHA-256 of the ConfigMap's content. Not there while it is not known, as during a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<String>,

    /// The StatefulSet. Not there while it is not known, as during a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stateful_set: Option<AppliedStatefulSet>,

    /// The StatefulSet's revisions that Freehold applied: the newest one, and the one of the pod. A pod of
    /// another revision was started from a template that was changed outside Freehold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<String>,

    /// The start of the engine that may have read a changed ConfigMap: that pod is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub altered_start: Option<EngineStart>,
}

impl DatabaseStatus {
    /// What was applied to the object of this occurrence is not known any more: it is about to be written.
    pub fn forget_applied(&mut self, altered: Occurrence) {
        let Some(applied) = &mut self.applied else { return };
        if altered == Occurrence::ConfigMapAltered {
            applied.config_map = None;
        } else {
            applied.stateful_set = None;
        }
    }
}

/// A StatefulSet as Freehold applied it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedStatefulSet {
    /// Its UID.
    pub uid: String,

    /// Its generation: the API server counts every change of the spec, and what a newer API server adds to a
    /// spec by itself is no change.
    pub generation: i64,

    /// The SHA-256 of its spec, without the number of replicas.
    pub spec: String,
}

/// One start of the engine's container in one pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EngineStart {
    /// The UID of the pod.
    #[serde(rename = "podUID")]
    pub pod_uid: String,

    /// How often Kubernetes had started the container again in this pod.
    pub restarts: i32,
}

/// One run of the engine: one start of its container in one pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EngineRun {
    /// The UID of the pod.
    #[serde(rename = "podUID")]
    pub pod_uid: String,

    /// How often Kubernetes has started the container again in this pod.
    pub restarts: i32,

    /// When this run was first seen.
    pub since: Time,
}

/// Pods that were replaced because their engine kept ending: the more, the longer the next one is left as it
/// is. Written before a pod is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotStarting {
    /// How many, each within a day of the one before.
    pub pods: i32,

    /// The UID of the last one.
    #[serde(rename = "podUID")]
    pub pod_uid: String,

    /// When the last one was replaced.
    pub at: Time,
}

/// Something that interrupted the database, or was done to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// When: the last time, of what happened several times in a row.
    pub at: Time,

    /// What happened.
    pub what: Occurrence,

    /// Why, as a sentence.
    pub cause: String,

    /// How many times in a row.
    pub count: i32,
}

/// What can interrupt a database, or be done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
pub enum Occurrence {
    /// Freehold replaced the pod, for a changed spec.
    Restarted,
    /// The database moved to another machine.
    Moved,
    /// It was paused: `spec.running` became false.
    Paused,
    /// It was resumed: `spec.running` became true.
    Resumed,
    /// The engine ended by itself, and Kubernetes started it again.
    EngineRestarted,
    /// The pod was deleted outside Freehold, and Kubernetes created another.
    PodReplaced,
    /// The ConfigMap was changed outside Freehold, which restored it.
    ConfigMapAltered,
    /// The StatefulSet was changed outside Freehold, which restored it.
    StatefulSetAltered,
    /// A newer version of Freehold recorded it, and this version does not know what it is.
    #[serde(other)]
    Unknown,
}

impl Occurrence {
    /// The event that reports it: of the same name.
    pub fn event(self) -> Option<EventReason> {
        Some(match self {
            Self::Restarted => EventReason::Restarted,
            Self::Moved => EventReason::Moved,
            Self::Paused => EventReason::Paused,
            Self::Resumed => EventReason::Resumed,
            Self::EngineRestarted => EventReason::EngineRestarted,
            Self::PodReplaced => EventReason::PodReplaced,
            Self::ConfigMapAltered => EventReason::ConfigMapAltered,
            Self::StatefulSetAltered => EventReason::StatefulSetAltered,
            Self::Unknown => return None,
        })
    }
}

/// Where clients connect to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// The Service's name in the cluster's DNS.
    pub host: String,

    /// The ports by protocol name.
    pub ports: BTreeMap<String, i32>,
}
