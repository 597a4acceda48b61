//! Where a `Database` archives its write-ahead log, and what is known of that.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ids::VolumeId;

/// Where PostgreSQL archives its write-ahead log (WAL): in a bucket of S3, or of a service with its API. A
/// change restarts the database.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WalArchive {
    /// The bucket, with a path if need be: s3://backups/postgresql. Below it each volume has a folder of its
    /// own, by the id of its EBS volume. Freehold deletes nothing there: give the bucket a lifecycle rule.
    #[schemars(length(min = 8, max = 200))]
    #[x_kube(validation = Rule::new("self.matches('^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9._=-]+)*$')")
        .message("spec.walArchive.destination must be a bucket with a path if need be, for example \
            s3://backups/postgresql: without '/' at its end"))]
    pub destination: String,

    /// The URL of a service with the API of S3 that is not AWS'. Default: AWS.
    #[serde(rename = "endpointURL", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^https?://[A-Za-z0-9.-]+(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?$')")
        .message("spec.walArchive.endpointURL must be a URL without a path, for example \
            https://storage.example:9000"))]
    pub endpoint_url: Option<String>,

    /// The Region of the bucket. Default: S3 is asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9-]+$')")
        .message("spec.walArchive.region must be the name of a Region, for example eu-west-1"))]
    pub region: Option<String>,

    /// The Secret with the credentials, in the namespace of the Database: its keys AWS_ACCESS_KEY_ID and
    /// AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN if there is one. Changed ones are used without a restart.
    /// Default: what EKS Pod Identity gives to the ServiceAccount of the Database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')")
        .message("spec.walArchive.secretName must be the name of a Secret: a-z, 0-9, '-' and '.', with a \
            letter or a digit first and last"))]
    pub secret_name: Option<String>,

    /// After how many seconds at most what was written is archived, however little it is: the loss of the
    /// volume loses no more (PostgreSQL's archive_timeout). Default: 300.
    #[serde(default = "default_interval_seconds")]
    #[schemars(range(min = 10, max = 86_400))]
    pub interval_seconds: u32,
}

fn default_interval_seconds() -> u32 {
    300
}

/// Whether the engine archives its write-ahead log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WalArchiveStatus {
    /// The UID of the pod whose engine was asked.
    #[serde(rename = "podUID")]
    pub pod_uid: String,

    /// Where: spec.walArchive.destination, when its pod was started.
    pub destination: String,

    /// The EBS volume that the log is of, whose folder it is there.
    #[serde(rename = "volumeID")]
    pub volume_id: VolumeId,

    /// Whether it does.
    pub state: WalArchiveState,

    /// Since when it was seen so.
    pub since: Time,
}

impl WalArchiveStatus {
    /// The folder that the files of the log are in.
    pub fn folder(&self) -> String {
        format!("{}/{}", self.destination, self.volume_id.0)
    }
}

/// Whether an engine archives its write-ahead log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WalArchiveState {
    /// It does.
    Archiving,
    /// It has archived no file of this volume's log yet, and no try has failed.
    Starting,
    /// Its last try has failed, or takes long. It keeps what is not archived, and tries again.
    Failing,
    /// The image has no program that does.
    ProgramMissing,
    /// A newer version of Freehold recorded it, and this version does not know what it is.
    #[serde(other)]
    Unknown,
}
