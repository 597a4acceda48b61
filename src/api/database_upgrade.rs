//! How the engine of a `Database` changes behind a snapshot, and what is known of that.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::database_adoption::any_object;
use super::database_config::ConfigValue;
use super::database_engine::Engine;
use super::ids::{SnapshotId, VolumeId};

/// Puts each change of spec.engine behind a backup of the stopped database, to which it goes back where the
/// changed engine does not serve.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradePolicy {
    /// How long the changed engine may take, in minutes, until it accepts connections, counted from when it
    /// could be started. After that the database goes back to the engine, the settings and the data that it
    /// had. Default: 30.
    #[serde(default = "default_timeout_minutes")]
    #[schemars(range(min = 5, max = 10_080))]
    pub timeout_minutes: u32,
}

fn default_timeout_minutes() -> u32 {
    30
}

/// A change of the engine behind a backup: written before the engine is stopped for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// What the database goes back to.
    pub from: FormerEngine,

    /// What spec.engine requests.
    #[schemars(schema_with = "any_object")]
    pub to: Engine,

    /// The hash of engine, settings and resources of the spec: what went back is not tried again until one of
    /// them changes.
    #[schemars(length(max = 64))]
    pub inputs_hash: String,

    /// When it was decided.
    pub started_at: Time,

    /// The UID of the pod that is stopped. What a later one writes is not in the backup.
    #[serde(rename = "podUID")]
    pub pod_uid: String,

    /// The EBS volume that the Backup is of. Of what happens on another one, this record says nothing.
    #[serde(rename = "volumeID", default, skip_serializing_if = "Option::is_none")]
    pub volume_id: Option<VolumeId>,

    /// The Backup of the stopped database.
    pub backup_name: String,

    /// Its snapshot, once EC2 has started that: the changed engine is started after it.
    #[serde(rename = "snapshotID", default, skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<SnapshotId>,

    /// True where the change is tried a second time: it was in doubt whether the snapshot had started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,

    /// When the changed engine could first be started in the pod that it is tried in, or in one that this pod
    /// followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startable_at: Option<Time>,

    /// The pod that the changed engine is tried in. Not there before one was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<TriedPod>,

    /// Not there unless the database goes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub went_back: Option<UpgradeWentBack>,

    /// When the changed engine accepted connections, or the one before again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
}

impl Upgrade {
    /// Whether the database has not come to rest with either engine.
    pub fn is_underway(&self) -> bool {
        self.ended_at.is_none()
    }
}

/// The pod that a changed engine is tried in: the time of another one is not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TriedPod {
    /// Its UID.
    #[serde(rename = "podUID")]
    pub pod_uid: String,

    /// True once it was seen to end: the next pod goes on in its time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ending: bool,

    /// True if there was another one before it, which may have started a changed engine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub later: bool,
}

/// What a database served as before its engine was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FormerEngine {
    /// What spec.engine requested.
    #[schemars(schema_with = "any_object")]
    pub engine: Engine,

    /// The settings that were in force.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 100))]
    pub config: BTreeMap<String, ConfigValue>,
}

/// Why a database goes back to the engine that it had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeWentBack {
    /// When that was decided.
    pub at: Time,

    /// What was awaited then.
    pub message: String,

    /// True where the changed engine may have written to the volume: the data is that of the snapshot, and
    /// the EBS volume that it wrote to is retained. False where it was never started.
    #[serde(default)]
    pub data_restored: bool,

    /// True where the change is tried once more by itself: it was in doubt whether the snapshot had started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_doubt: bool,
}
