//! The only place that names `aws_sdk_ec2`: the `Cloud` trait, its values, error classes, identity, inventory
//! and limits.

pub mod absence;
pub mod call;
pub mod catalog;
pub mod ec2;
pub mod error;
pub mod identity;
pub mod inventory;
pub mod limits;
pub mod offerings;
pub mod quota;
pub mod turns;
pub mod types;

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::api::{ClientToken, InstanceId, SnapshotId, VolumeId};
pub use call::Call;
use catalog::{Image, InstanceType, SecurityGroup, Subnet};
pub use error::{Class, CloudError};
pub use types::*;

/// EC2 and EBS as Freehold uses them. Implemented by the AWS SDK ([`ec2::Ec2`]) and, in the tests, by the EC2
/// model.
///
/// No method waits for a state and none retries a creating call: the controllers wait, and a hidden second
/// send would turn doubt into a false refusal. Lists are complete (every page) or an error.
#[async_trait]
pub trait Cloud: Send + Sync + 'static {
    /// Launches one instance (Min=Max=1), with every tag in the same call, IMDSv2 required, hop limit 1, the
    /// machine's own disks encrypted and deleted on termination, and no data disk. One attempt on the wire.
    async fn run_instance(&self, request: &LaunchRequest) -> Result<Instance, CloudError>;

    /// Whether EC2 would accept this launch: a dry run, which launches nothing and leaves its token unused.
    /// EC2 looks at the permissions and at what the request names, not at KMS keys, and at capacity and
    /// quotas at most in part; its refusal is the one that the launch would get. It counts against the rate
    /// limit of launches. One attempt on the wire.
    async fn check_launch(&self, request: &LaunchRequest) -> Result<(), CloudError>;

    /// Requests that EC2 stop these instances; with `force`, without the help of their operating systems.
    async fn stop_instances(&self, ids: &[InstanceId], force: bool) -> Result<(), CloudError>;

    /// Requests the termination of these instances.
    async fn terminate_instances(&self, ids: &[InstanceId]) -> Result<(), CloudError>;

    /// Every instance that matches: complete, or an error.
    async fn describe_instances(&self, query: &InstanceQuery) -> Result<Vec<Instance>, CloudError>;

    /// Every instance that EC2 reports as impaired or has scheduled an event for. EC2 cannot filter these
    /// lists by tag: the caller matches the ids. Three list calls, whatever the size of the fleet.
    async fn describe_unhealthy_instances(&self) -> Result<Vec<InstanceHealth>, CloudError>;

    /// The same of these running instances: one call, which takes at most a hundred. EC2 refuses it if it
    /// does not know one of them.
    async fn describe_health(&self, ids: &[InstanceId]) -> Result<Vec<InstanceHealth>, CloudError>;

    /// The tail of an instance's console, decoded; empty when there is none yet.
    async fn console_output(&self, id: &InstanceId) -> Result<String, CloudError>;

    /// Creates one encrypted volume, with every tag in the same call. One attempt on the wire.
    async fn create_volume(&self, request: &CreateVolumeRequest) -> Result<EbsVolume, CloudError>;

    /// Changes size, type, IOPS and throughput in one call. One attempt on the wire: a call that changes
    /// nothing still counts against the volume's four a day.
    async fn modify_volume(&self, request: &ModifyVolumeRequest) -> Result<(), CloudError>;

    /// Deletes an available volume.
    async fn delete_volume(&self, id: &VolumeId) -> Result<(), CloudError>;

    /// Puts these tags on an instance, a volume or a snapshot that exists; the others stay. The same call
    /// again changes nothing.
    async fn tag_resource(&self, id: &str, tags: &BTreeMap<String, String>) -> Result<(), CloudError>;

    /// Takes these tags off these resources, each only where it has this value; the others stay. Of all of
    /// them or of none: EC2 refuses the whole call for one. The same call again changes nothing.
    async fn untag_resources(
        &self,
        ids: &[String],
        tags: &BTreeMap<String, String>,
    ) -> Result<(), CloudError>;

    /// Whether EC2 would permit [`Cloud::untag_resources`] of these, by a dry run: it changes nothing.
    async fn check_untag(&self, ids: &[String], tags: &BTreeMap<String, String>) -> Result<(), CloudError>;

    /// The ids of the instances, volumes and network interfaces that carry the tag with this value: complete,
    /// or an error.
    async fn describe_tagged(&self, key: &str, value: &str) -> Result<Vec<String>, CloudError>;

    /// Every volume that matches: complete, or an error.
    async fn describe_volumes(&self, query: &VolumeQuery) -> Result<Vec<EbsVolume>, CloudError>;

    /// The newest modification of each of these volumes, where there is one.
    async fn describe_modifications(&self, ids: &[VolumeId]) -> Result<Vec<Modification>, CloudError>;

    /// How far EC2 has read these volumes from their snapshots; nothing of one that it says nothing of. All
    /// of them must be known to EC2, or the whole call fails. It may be five minutes old
    /// (`API_VolumeStatusItem`).
    async fn describe_initializations(&self, ids: &[VolumeId]) -> Result<Vec<Initialization>, CloudError>;

    /// Takes a snapshot, with its tags in the same call. EC2 has no token for it. One attempt on the wire.
    async fn create_snapshot(
        &self,
        volume: &VolumeId,
        tags: &BTreeMap<String, String>,
    ) -> Result<Snapshot, CloudError>;

    /// Deletes a snapshot. Volumes that were created from it stay.
    async fn delete_snapshot(&self, id: &SnapshotId) -> Result<(), CloudError>;

    /// Every snapshot of this account that matches all of these tags: complete, or an error.
    async fn describe_snapshots(&self, tags: &BTreeMap<String, String>) -> Result<Vec<Snapshot>, CloudError>;

    /// The snapshot of this id; `None` if this account has no such snapshot, whatever its tags.
    async fn describe_snapshot(&self, id: &SnapshotId) -> Result<Option<Snapshot>, CloudError>;

    /// The image of this id; `None` if EC2 shows this account no such image.
    async fn describe_image(&self, id: &str) -> Result<Option<Image>, CloudError>;

    /// Those of these subnets that EC2 shows this account.
    async fn describe_subnets(&self, ids: &[String]) -> Result<Vec<Subnet>, CloudError>;

    /// Those of these security groups that EC2 shows this account.
    async fn describe_security_groups(&self, ids: &[String]) -> Result<Vec<SecurityGroup>, CloudError>;

    /// The Region's instance types whose names match one of these patterns with `*`.
    async fn describe_instance_types(&self, patterns: &[String]) -> Result<Vec<InstanceType>, CloudError>;
}

/// The most values that one filter takes (EC2 API reference, "Filters").
const VALUES_PER_FILTER: usize = 200;

/// The most ids that one read of health takes (EC2 API reference, "DescribeInstanceStatus").
const IDS_PER_HEALTH: usize = 100;

/// Which instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceQuery {
    /// By tags, all of which must match: a paginated list.
    Tags(BTreeMap<String, String>),
    /// By the `client-token` filter (at most 200).
    Tokens(Vec<ClientToken>),
    /// By id, all of which must be known to EC2, or the whole call fails. The only query that EC2 answers
    /// while a zone is disrupted, for ids of other zones.
    Ids(Vec<InstanceId>),
    /// By the `instance-id` filter (at most 200 a call): those that EC2 does not know are left out of the
    /// answer.
    Among(Vec<InstanceId>),
}

/// Which volumes. EC2 has no token filter for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeQuery {
    /// By tags, all of which must match: a paginated list.
    Tags(BTreeMap<String, String>),
    /// By the `volume-id` filter (at most 200).
    Ids(Vec<VolumeId>),
}
