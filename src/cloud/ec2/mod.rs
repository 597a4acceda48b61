//! EC2 by the AWS SDK: makes the calls, reads the answers, and nothing else. Credentials and Region come from
//! the default chain, another endpoint from `AWS_ENDPOINT_URL_EC2`.

mod catalog;
mod convert;
mod counted;
mod failed;
mod in_term;
mod initializations;
mod lists;
mod requests;
mod whole;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_config::{AppName, BehaviorVersion, SdkConfig};
use aws_sdk_ec2::Client;
use aws_sdk_ec2::config::retry::RetryConfig;
use aws_sdk_ec2::config::timeout::TimeoutConfig;

use self::failed::{accepted, failed};
use self::whole::incomplete;
use super::call::Call;
use super::{
    Cloud, CloudError, CreateVolumeRequest, EbsVolume, Initialization, Instance, InstanceHealth,
    InstanceQuery, LaunchRequest, Modification, ModifyVolumeRequest, Snapshot, VolumeQuery,
};
use crate::api::{InstanceId, SnapshotId, VolumeId};
use crate::cloud::catalog::{Image, InstanceType, SecurityGroup, Subnet};
use crate::metrics::Metrics;
use crate::term::Term;

/// How long one request may take: EC2 answers within seconds or not at all.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a read may take with its retries; below the longest pass.
const READ_TIMEOUT: Duration = Duration::from_secs(40);

/// What the SDK names in its user agent.
const APP_NAME: &str = "freehold";

/// EC2 and EBS of one account and Region.
///
/// The rate limits are not applied here: every caller acquires its requests from [`super::limits::Limits`]
/// before.
#[derive(Clone)]
pub struct Ec2 {
    /// Repeats a read that failed for a passing reason.
    reads: Client,
    /// Sends once. A hidden second send could meet a refusal of its own and hide that the first one was
    /// carried out.
    writes: Client,
}

impl fmt::Debug for Ec2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ec2").finish_non_exhaustive()
    }
}

impl Ec2 {
    /// From the environment: credentials, Region, endpoint.
    pub async fn from_env(metrics: &Arc<Metrics>) -> Self {
        // A fixed version, so that a new release of the SDK changes no behaviour by itself.
        let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12());
        if let Ok(name) = AppName::new(APP_NAME) {
            loader = loader.app_name(name);
        }
        Self::new(&loader.load().await, metrics)
    }

    /// The same, but that it sends what changes anything within this term only.
    #[must_use]
    pub fn within(self, term: Arc<Term>) -> Self {
        let config = self.writes.config().to_builder().interceptor(in_term::InTerm(term)).build();
        Self { writes: Client::from_conf(config), ..self }
    }

    /// From a configuration of the SDK; retries and time-outs are set here. Every attempt on the wire is
    /// counted in `metrics`.
    pub fn new(config: &SdkConfig, metrics: &Arc<Metrics>) -> Self {
        let client = |retries: RetryConfig, timeout: Duration| {
            let timeouts = TimeoutConfig::builder()
                .operation_attempt_timeout(ATTEMPT_TIMEOUT)
                .operation_timeout(timeout)
                .build();
            let config = aws_sdk_ec2::config::Builder::from(config)
                .retry_config(retries)
                .timeout_config(timeouts)
                .interceptor(whole::WholeAnswer)
                .interceptor(counted::Counted(Arc::clone(metrics)))
                .build();
            Client::from_conf(config)
        };
        Self {
            reads: client(RetryConfig::standard(), READ_TIMEOUT),
            writes: client(RetryConfig::disabled(), ATTEMPT_TIMEOUT),
        }
    }
}

#[async_trait]
impl Cloud for Ec2 {
    async fn run_instance(&self, request: &LaunchRequest) -> Result<Instance, CloudError> {
        let call = Call::RunInstances;
        let answer = requests::run_instances(&self.writes, request)
            .send()
            .await
            .map_err(|error| failed(call, &error))?;
        let instance = answer
            .instances
            .unwrap_or_default()
            .into_iter()
            .next()
            .ok_or_else(|| incomplete(call, "instance"))?;
        convert::instance(call, instance)
    }

    async fn check_launch(&self, request: &LaunchRequest) -> Result<(), CloudError> {
        let answer = requests::run_instances(&self.writes, request).dry_run(true).send().await;
        accepted(Call::RunInstances, answer)
    }

    async fn stop_instances(&self, ids: &[InstanceId], force: bool) -> Result<(), CloudError> {
        let request = self
            .writes
            .stop_instances()
            .set_instance_ids(Some(ids.iter().map(|id| id.0.clone()).collect()))
            .force(force);
        request.send().await.map_err(|error| failed(Call::StopInstances, &error))?;
        Ok(())
    }

    async fn terminate_instances(&self, ids: &[InstanceId]) -> Result<(), CloudError> {
        let request = self
            .writes
            .terminate_instances()
            .set_instance_ids(Some(ids.iter().map(|id| id.0.clone()).collect()));
        request.send().await.map_err(|error| failed(Call::TerminateInstances, &error))?;
        Ok(())
    }

    async fn describe_instances(&self, query: &InstanceQuery) -> Result<Vec<Instance>, CloudError> {
        self.instances(query).await
    }

    async fn describe_unhealthy_instances(&self) -> Result<Vec<InstanceHealth>, CloudError> {
        self.unhealthy_instances().await
    }

    async fn describe_health(&self, ids: &[InstanceId]) -> Result<Vec<InstanceHealth>, CloudError> {
        let call = Call::DescribeInstanceStatus;
        let ids = ids.iter().map(|id| id.0.clone()).collect();
        let request = self.reads.describe_instance_status().set_instance_ids(Some(ids));
        let answer = request.send().await.map_err(|error| failed(call, &error))?;
        convert::unhealthy(call, answer.instance_statuses.unwrap_or_default())
    }

    async fn console_output(&self, id: &InstanceId) -> Result<String, CloudError> {
        let call = Call::GetConsoleOutput;
        let answer = self
            .reads
            .get_console_output()
            .instance_id(&id.0)
            .send()
            .await
            .map_err(|error| failed(call, &error))?;
        convert::console(call, answer.output.as_deref().unwrap_or_default())
    }

    async fn create_volume(&self, request: &CreateVolumeRequest) -> Result<EbsVolume, CloudError> {
        let call = Call::CreateVolume;
        let answer = requests::create_volume(&self.writes, request)
            .send()
            .await
            .map_err(|error| failed(call, &error))?;
        convert::created_volume(call, answer)
    }

    async fn modify_volume(&self, request: &ModifyVolumeRequest) -> Result<(), CloudError> {
        requests::modify_volume(&self.writes, request)
            .send()
            .await
            .map_err(|error| failed(Call::ModifyVolume, &error))?;
        Ok(())
    }

    async fn delete_volume(&self, id: &VolumeId) -> Result<(), CloudError> {
        self.writes
            .delete_volume()
            .volume_id(&id.0)
            .send()
            .await
            .map_err(|error| failed(Call::DeleteVolume, &error))?;
        Ok(())
    }

    async fn tag_resource(&self, id: &str, tags: &BTreeMap<String, String>) -> Result<(), CloudError> {
        requests::create_tags(&self.writes, id, tags)
            .send()
            .await
            .map_err(|error| failed(Call::CreateTags, &error))?;
        Ok(())
    }

    async fn untag_resources(
        &self,
        ids: &[String],
        tags: &BTreeMap<String, String>,
    ) -> Result<(), CloudError> {
        requests::delete_tags(&self.writes, ids, tags)
            .send()
            .await
            .map_err(|error| failed(Call::DeleteTags, &error))?;
        Ok(())
    }

    async fn check_untag(&self, ids: &[String], tags: &BTreeMap<String, String>) -> Result<(), CloudError> {
        let answer = requests::delete_tags(&self.writes, ids, tags).dry_run(true).send().await;
        accepted(Call::DeleteTags, answer)
    }

    async fn describe_tagged(&self, key: &str, value: &str) -> Result<Vec<String>, CloudError> {
        self.tagged(key, value).await
    }

    async fn describe_volumes(&self, query: &VolumeQuery) -> Result<Vec<EbsVolume>, CloudError> {
        self.volumes(query).await
    }

    async fn describe_modifications(&self, ids: &[VolumeId]) -> Result<Vec<Modification>, CloudError> {
        self.modifications(ids).await
    }

    async fn describe_initializations(&self, ids: &[VolumeId]) -> Result<Vec<Initialization>, CloudError> {
        self.initializations(ids).await
    }

    async fn create_snapshot(
        &self,
        volume: &VolumeId,
        tags: &BTreeMap<String, String>,
    ) -> Result<Snapshot, CloudError> {
        let call = Call::CreateSnapshot;
        let answer = requests::create_snapshot(&self.writes, volume, tags)
            .send()
            .await
            .map_err(|error| failed(call, &error))?;
        convert::created_snapshot(call, answer)
    }

    async fn delete_snapshot(&self, id: &SnapshotId) -> Result<(), CloudError> {
        self.writes
            .delete_snapshot()
            .snapshot_id(&id.0)
            .send()
            .await
            .map_err(|error| failed(Call::DeleteSnapshot, &error))?;
        Ok(())
    }

    async fn describe_snapshots(&self, tags: &BTreeMap<String, String>) -> Result<Vec<Snapshot>, CloudError> {
        self.snapshots(requests::tag_filters(tags)).await
    }

    async fn describe_snapshot(&self, id: &SnapshotId) -> Result<Option<Snapshot>, CloudError> {
        Ok(self.snapshots(requests::snapshot_filters(id)).await?.into_iter().next())
    }

    async fn describe_image(&self, id: &str) -> Result<Option<Image>, CloudError> {
        self.image(id).await
    }

    async fn describe_subnets(&self, ids: &[String]) -> Result<Vec<Subnet>, CloudError> {
        self.subnets(ids).await
    }

    async fn describe_security_groups(&self, ids: &[String]) -> Result<Vec<SecurityGroup>, CloudError> {
        self.security_groups(ids).await
    }

    async fn describe_instance_types(&self, patterns: &[String]) -> Result<Vec<InstanceType>, CloudError> {
        self.instance_types(patterns).await
    }
}
