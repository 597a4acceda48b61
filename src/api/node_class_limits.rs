//! The limits of a `NodeClass`: what a Database that names it may request.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::database_engine::EngineType;
use super::size::Size;

/// The most that a Database of this class may request. A limit that is absent allows everything. A database
/// that was created before a limit goes on as it is.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// How many Databases of one namespace may name this class. Those that were created first are the ones
    /// that may. A deleted Database counts as long as a Node or Volume of it is orphaned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000))]
    pub databases: Option<i32>,

    /// The largest volume of one Database: `2Ti`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self.matches('^[1-9][0-9]*(Gi|Ti)$')")
        .message("spec.limits.storage must be a whole number of GiB or TiB, for example 100Gi or 2Ti"))]
    pub storage: Option<Size>,

    /// The storage of all EBS volumes of one namespace together, whichever class they were made with: those
    /// of its Databases, those that were retained, and those of orphaned Volumes. A new Database or a growth
    /// that would lead beyond it is not carried out; the Databases that were created first have precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self.matches('^[1-9][0-9]*(Gi|Ti)$')")
        .message("spec.limits.totalStorage must be a whole number of GiB or TiB, for example 100Gi or 2Ti"))]
    pub total_storage: Option<Size>,

    /// The most IOPS of one volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub iops: Option<i32>,

    /// The most throughput of one volume, in MiB/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub throughput: Option<i32>,

    /// The EBS volume types; empty allows every type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), inner(length(min = 2, max = 16)))]
    pub volume_types: Vec<String>,

    /// The engines; empty allows every engine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub engines: Vec<EngineType>,
}
