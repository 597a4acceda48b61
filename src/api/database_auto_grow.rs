//! How the volume of a `Database` grows by itself, and how far that is.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::size::Size;

/// When the volume of a database grows by itself, and how far.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoGrow {
    /// The volume grows when this percentage of its file system is used: 50 to 95. Default: 80.
    #[serde(default = "default_threshold")]
    #[schemars(range(min = 50, max = 95))]
    pub threshold_percent: i32,

    /// By what percentage of its size the volume grows, 10 to 100, or by as many such steps as leave 5
    /// percentage points less used than thresholdPercent, since EC2 allows four modifications of a volume a
    /// day. Default: 20.
    #[serde(default = "default_step")]
    #[schemars(range(min = 10, max = 100))]
    pub step_percent: i32,

    /// The size up to which the volume grows by itself, for example 500Gi: EBS charges for the size, and a
    /// volume never shrinks.
    #[x_kube(validation = Rule::new("self.matches('^[1-9][0-9]*(Gi|Ti)$')")
        .message("spec.storage.autoGrow.maxSize must be a whole number of GiB or TiB, for example 500Gi or \
            2Ti"))]
    pub max_size: Size,
}

fn default_threshold() -> i32 {
    80
}

fn default_step() -> i32 {
    20
}

/// How far a volume is that grows by itself. What moves all the time, such as what is used, is not here: the
/// kubelet's metrics have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AutoGrowStatus {
    /// What Freehold is doing about it.
    pub state: AutoGrowState,

    /// Why it is not known how much is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmeasured: Option<Unmeasured>,

    /// The size of the volume, where it is more than spec.storage.size. It stays, also without
    /// spec.storage.autoGrow: a volume never shrinks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,

    /// When that size became what it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grown_at: Option<Time>,
}

/// What Freehold does about a volume that grows by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AutoGrowState {
    /// Less is used than spec.storage.autoGrow.thresholdPercent.
    Watching,
    /// As much is used: the volume grows, as soon as EC2 lets the next modification begin.
    Growing,
    /// As much is used, and the volume has the size of spec.storage.autoGrow.maxSize, or the largest one of
    /// its type: raise maxSize, or free space in the database.
    AtMaximum,
    /// As much is used, and the NodeClass permits no more storage (spec.limits.storage,
    /// spec.limits.totalStorage), or is not there.
    NotPermitted,
    /// It is not known how much is used.
    Unmeasured,
    /// Nothing is watched: the database is paused, its Volume is being deleted or released, or the Database
    /// has no spec.storage.autoGrow any more.
    Off,
}

/// Why it is not known how much of a file system is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Unmeasured {
    /// The kubelet of the machine does not answer the operator, at its internal address and port (10250), or
    /// not with a certificate of the cluster's certificate authority.
    Unreachable,
    /// The operator has no account as which it asks kubelets (`--kubelet-account`, which the chart sets), or
    /// may not request a token of it.
    NoAccount,
    /// The kubelet does not let that account read its statistics: the right nodes/stats is missing.
    Forbidden,
    /// No pod has the volume mounted there.
    NotMounted,
    /// The kubelet does not say how large the file system is, as in the first minute after a mount, or names
    /// a size that is larger than the volume.
    Unreadable,
}
