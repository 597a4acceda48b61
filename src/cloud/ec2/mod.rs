//! EC2 by the AWS SDK: makes the calls, reads the answers, and nothing else. Credentials and Region come from
//! the default chain, another endpoint from `AWS_ENDPOINT_URL_EC2`.

mod catalog;
mod convert;
mod counted;
mod failed;
mod in_term;
mod initializations;
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
use aws_sdk_ec2::types::Filter;

use self::failed::{accepted, failed};
use self::requests::{Gathered, Selection};
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
    async fn snapshots(&self, filters: Vec<Filter>) -> Result<Vec<Snapshot>, CloudError> {
        let call = Call::DescribeSnapshots;
        let mut gathered = Gathered::new(call);
        // Without an owner EC2 searches the public snapshots of the whole Region, too.
        let request = self.reads.describe_snapshots().owner_ids("self").set_filters(Some(filters));
        let mut pages = request.into_paginator().page_size(requests::INSTANCE_PAGE).send();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| failed(call, &error))?;
            gathered.add(page.snapshots, page.next_token)?;
        }
        gathered.finish()?.into_iter().map(|snapshot| convert::snapshot(call, snapshot)).collect()
    }

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
        let call = Call::DescribeInstances;
        let mut instances = Vec::new();
        for selection in requests::instance_selections(query) {
            let mut gathered = Gathered::new(call);
            let mut pages = match selection {
                Selection::Filters(filters) => self
                    .reads
                    .describe_instances()
                    .set_filters(Some(filters))
                    .into_paginator()
                    .page_size(requests::INSTANCE_PAGE)
                    .send(),
                // EC2 takes no page size together with ids.
                Selection::Ids(ids) => {
                    self.reads.describe_instances().set_instance_ids(Some(ids)).into_paginator().send()
                }
            };
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| failed(call, &error))?;
                gathered.add(page.reservations, page.next_token)?;
            }
            for reservation in gathered.finish()? {
                for instance in
                    reservation.instances.ok_or_else(|| incomplete(call, "instances in a reservation"))?
                {
                    instances.push(convert::instance(call, instance)?);
                }
            }
        }
        Ok(instances)
    }

    async fn describe_unhealthy_instances(&self) -> Result<Vec<InstanceHealth>, CloudError> {
        let call = Call::DescribeInstanceStatus;
        let mut unhealthy = BTreeMap::new();
        for filter in requests::health_filters() {
            let mut gathered = Gathered::new(call);
            let mut pages = self
                .reads
                .describe_instance_status()
                .filters(filter)
                .into_paginator()
                .page_size(requests::INSTANCE_PAGE)
                .send();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| failed(call, &error))?;
                gathered.add(page.instance_statuses, page.next_token)?;
            }
            for status in gathered.finish()? {
                let (id, health) = convert::health(call, status)?;
                unhealthy.insert(id, health);
            }
        }
        Ok(unhealthy.into_values().flatten().collect())
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
        let call = Call::DescribeTags;
        let mut gathered = Gathered::new(call);
        let request = self.reads.describe_tags().set_filters(Some(requests::tagged_filters(key, value)));
        let mut pages = request.into_paginator().page_size(requests::INSTANCE_PAGE).send();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| failed(call, &error))?;
            gathered.add(page.tags, page.next_token)?;
        }
        gathered.finish()?.into_iter().map(|tag| convert::tagged(call, tag)).collect()
    }

    async fn describe_volumes(&self, query: &VolumeQuery) -> Result<Vec<EbsVolume>, CloudError> {
        let call = Call::DescribeVolumes;
        let mut volumes = Vec::new();
        for filters in requests::volume_filters(query) {
            let mut gathered = Gathered::new(call);
            let mut pages = self
                .reads
                .describe_volumes()
                .set_filters(Some(filters))
                .into_paginator()
                .page_size(requests::VOLUME_PAGE)
                .send();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| failed(call, &error))?;
                gathered.add(page.volumes, page.next_token)?;
            }
            for volume in gathered.finish()? {
                volumes.push(convert::volume(call, volume)?);
            }
        }
        Ok(volumes)
    }

    async fn describe_modifications(&self, ids: &[VolumeId]) -> Result<Vec<Modification>, CloudError> {
        let call = Call::DescribeVolumesModifications;
        let mut newest: BTreeMap<VolumeId, Modification> = BTreeMap::new();
        // By filter: a list of ids fails whole for one volume that was never modified.
        for filters in requests::volume_filters(&VolumeQuery::Ids(ids.to_vec())) {
            let mut gathered = Gathered::new(call);
            let request = self.reads.describe_volumes_modifications().set_filters(Some(filters));
            let mut pages = request.into_paginator().page_size(requests::VOLUME_PAGE).send();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| failed(call, &error))?;
                gathered.add(page.volumes_modifications, page.next_token)?;
            }
            for modification in gathered.finish()? {
                let modification = convert::modification(call, modification)?;
                let is_newer = newest
                    .get(&modification.volume)
                    .is_none_or(|known| modification.started_at >= known.started_at);
                if is_newer {
                    newest.insert(modification.volume.clone(), modification);
                }
            }
        }
        Ok(newest.into_values().collect())
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
