//! Tests of the inventory against a small cloud, in virtual time: the test says when it is, and syncs when
//! one is due.

mod health;
mod other_kinds;
mod proof;
mod reads;
mod schedule;
mod view;

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use jiff::SignedDuration;
use tokio::time::Instant;

use super::sync::Schedule;
use super::*;
use crate::api::{ClientToken, InstanceId, SnapshotId, VolumeId};
use crate::cloud::catalog::{Image, InstanceType, SecurityGroup, Subnet};
use crate::cloud::identity;
use crate::cloud::{
    CloudError, CreateVolumeRequest, EbsVolume, Initialization, Instance, InstanceHealth, InstanceQuery,
    InstanceState, LaunchRequest, Modification, ModifyVolumeRequest, Snapshot, VolumeQuery, VolumeState,
};

const CLUSTER: &str = "cluster";

/// A cloud that shows what the test sets, and counts the calls.
#[derive(Default)]
struct Small {
    shown: Mutex<Shown>,
}

#[derive(Default)]
struct Shown {
    instances: Vec<Instance>,
    /// Instances that only a look-up by token shows.
    by_token_only: Vec<Instance>,
    volumes: Vec<EbsVolume>,
    snapshots: Vec<Snapshot>,
    modifications: Vec<Modification>,
    initializations: Vec<Initialization>,
    /// Answered to reads of the initializations.
    initialization_error: Option<CloudError>,
    unhealthy: Vec<InstanceHealth>,
    /// Answered to lists without ids.
    error: Option<CloudError>,
    /// Answered to the list of the instances alone.
    list_error: Option<CloudError>,
    /// Answered to reads of the instances' health.
    health_error: Option<CloudError>,
    /// A zone whose instances are not listed by id either.
    zone_down: Option<String>,
    calls: Vec<&'static str>,
}

impl Small {
    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock()
    }

    fn called(&self, action: &'static str) -> Result<MutexGuard<'_, Shown>, CloudError> {
        let mut shown = self.lock();
        shown.calls.push(action);
        match &shown.error {
            Some(error) => Err(error.clone()),
            None => Ok(shown),
        }
    }

    fn count(&self, action: &str) -> usize {
        self.lock().calls.iter().filter(|call| **call == action).count()
    }
}

#[async_trait::async_trait]
impl Cloud for Small {
    async fn describe_instances(&self, query: &InstanceQuery) -> Result<Vec<Instance>, CloudError> {
        match query {
            InstanceQuery::Tags(tags) => {
                let shown = self.called("list")?;
                if let Some(error) = &shown.list_error {
                    return Err(error.clone());
                }
                Ok(shown
                    .instances
                    .iter()
                    .filter(|i| tags.iter().all(|(key, value)| i.tags.get(key) == Some(value)))
                    .cloned()
                    .collect())
            }
            InstanceQuery::Tokens(tokens) => {
                assert!(tokens.len() <= 200);
                let shown = self.called("tokens")?;
                let all = shown.instances.iter().chain(&shown.by_token_only);
                Ok(all
                    .filter(|i| i.token.as_ref().is_some_and(|token| tokens.contains(token)))
                    .cloned()
                    .collect())
            }
            InstanceQuery::Among(ids) => {
                let shown = self.called("among")?;
                Ok(shown.instances.iter().filter(|i| ids.contains(&i.id)).cloned().collect())
            }
            InstanceQuery::Ids(ids) => {
                let mut shown = self.lock();
                shown.calls.push("ids");
                let found: Vec<Instance> =
                    shown.instances.iter().filter(|i| ids.contains(&i.id)).cloned().collect();
                if ids.iter().any(|id| found.iter().all(|instance| instance.id != *id)) {
                    let code = Some("InvalidInstanceID.NotFound");
                    return Err(CloudError::new("DescribeInstances", code, "no such id", Some(400), None));
                }
                match &shown.zone_down {
                    Some(zone) if found.iter().any(|i| i.zone == *zone) => Err(unavailable()),
                    Some(_) | None => Ok(found),
                }
            }
        }
    }

    async fn describe_unhealthy_instances(&self) -> Result<Vec<InstanceHealth>, CloudError> {
        let shown = self.called("health")?;
        shown.health_error.clone().map_or_else(|| Ok(shown.unhealthy.clone()), Err)
    }

    async fn describe_health(&self, ids: &[InstanceId]) -> Result<Vec<InstanceHealth>, CloudError> {
        let mut shown = self.lock();
        shown.calls.push("health of");
        let is_down = |it: &Instance| ids.contains(&it.id) && Some(&it.zone) == shown.zone_down.as_ref();
        if shown.instances.iter().any(is_down) {
            return Err(unavailable());
        }
        Ok(shown.unhealthy.iter().filter(|health| ids.contains(&health.id)).cloned().collect())
    }

    async fn describe_volumes(&self, _query: &VolumeQuery) -> Result<Vec<EbsVolume>, CloudError> {
        Ok(self.called("volumes")?.volumes.clone())
    }

    async fn describe_modifications(&self, ids: &[VolumeId]) -> Result<Vec<Modification>, CloudError> {
        let shown = self.called("modifications")?;
        Ok(shown
            .modifications
            .iter()
            .filter(|modification| ids.contains(&modification.volume))
            .cloned()
            .collect())
    }

    async fn describe_initializations(&self, ids: &[VolumeId]) -> Result<Vec<Initialization>, CloudError> {
        let shown = self.called("initializations")?;
        if let Some(error) = &shown.initialization_error {
            return Err(error.clone());
        }
        Ok(shown.initializations.iter().filter(|it| ids.contains(&it.volume)).cloned().collect())
    }

    async fn describe_snapshots(
        &self,
        _tags: &BTreeMap<String, String>,
    ) -> Result<Vec<Snapshot>, CloudError> {
        Ok(self.called("snapshots")?.snapshots.clone())
    }

    async fn describe_snapshot(&self, _id: &SnapshotId) -> Result<Option<Snapshot>, CloudError> {
        unreachable!("the inventory reads no snapshot by its id")
    }

    async fn describe_image(&self, _id: &str) -> Result<Option<Image>, CloudError> {
        unreachable!("the inventory reads no catalog")
    }

    async fn describe_subnets(&self, _ids: &[String]) -> Result<Vec<Subnet>, CloudError> {
        unreachable!("the inventory reads no catalog")
    }

    async fn describe_security_groups(&self, _ids: &[String]) -> Result<Vec<SecurityGroup>, CloudError> {
        unreachable!("the inventory reads no catalog")
    }

    async fn describe_instance_types(&self, _: &[String]) -> Result<Vec<InstanceType>, CloudError> {
        unreachable!("the inventory reads no catalog")
    }

    async fn run_instance(&self, _request: &LaunchRequest) -> Result<Instance, CloudError> {
        unreachable!("the inventory only reads")
    }

    async fn check_launch(&self, _request: &LaunchRequest) -> Result<(), CloudError> {
        unreachable!("the inventory only reads")
    }

    async fn stop_instances(&self, _: &[InstanceId], _: bool) -> Result<(), CloudError> {
        unreachable!("the inventory only reads")
    }

    async fn terminate_instances(&self, _ids: &[InstanceId]) -> Result<(), CloudError> {
        unreachable!("the inventory only reads")
    }

    async fn console_output(&self, _id: &InstanceId) -> Result<String, CloudError> {
        unreachable!("the inventory reads no console")
    }

    async fn create_volume(&self, _request: &CreateVolumeRequest) -> Result<EbsVolume, CloudError> {
        unreachable!("the inventory only reads")
    }

    async fn tag_resource(&self, _id: &str, _tags: &BTreeMap<String, String>) -> Result<(), CloudError> {
        unreachable!("the inventory only reads")
    }

    async fn untag_resources(
        &self,
        _ids: &[String],
        _tags: &BTreeMap<String, String>,
    ) -> Result<(), CloudError> {
        unreachable!("the inventory only reads")
    }

    async fn check_untag(&self, _: &[String], _: &BTreeMap<String, String>) -> Result<(), CloudError> {
        unreachable!("the inventory only reads")
    }

    async fn describe_tagged(&self, _key: &str, _value: &str) -> Result<Vec<String>, CloudError> {
        unreachable!("the inventory searches for no single tag")
    }

    async fn modify_volume(&self, _request: &ModifyVolumeRequest) -> Result<(), CloudError> {
        unreachable!("the inventory only reads")
    }

    async fn delete_volume(&self, _id: &VolumeId) -> Result<(), CloudError> {
        unreachable!("the inventory only reads")
    }

    async fn create_snapshot(
        &self,
        _volume: &VolumeId,
        _tags: &BTreeMap<String, String>,
    ) -> Result<Snapshot, CloudError> {
        unreachable!("the inventory only reads")
    }

    async fn delete_snapshot(&self, _id: &SnapshotId) -> Result<(), CloudError> {
        unreachable!("the inventory only reads")
    }
}

/// A clock that the test sets.
struct Hands(Mutex<Timestamp>);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        *self.0.lock()
    }
}

/// An inventory with its cloud, and the time.
struct World {
    cloud: Arc<Small>,
    clock: Arc<Hands>,
    inventory: Arc<Inventory>,
    schedule: Schedule,
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

impl World {
    fn new(kind: Kind) -> Self {
        let cloud = Arc::new(Small::default());
        let clock = Arc::new(Hands(Mutex::new(at(0))));
        let inventory = Inventory::new(
            cloud.clone(),
            Arc::new(Limits::new(1.0, 1.0)),
            clock.clone(),
            Timing::default(),
            CLUSTER,
        );
        Self { cloud, clock, inventory, schedule: Schedule::new(kind, Instant::now()) }
    }

    /// Moves both clocks on.
    fn advance(&mut self, elapsed: Duration) {
        self.schedule.started += elapsed;
        *self.clock.0.lock() += SignedDuration::try_from(elapsed).unwrap();
    }

    async fn sync(&mut self) {
        self.inventory.sync(&mut self.schedule).await;
    }

    /// A sync a second after the last one.
    async fn next_sync(&mut self) {
        self.advance(Duration::from_secs(1));
        self.sync().await;
    }

    /// Syncs whenever one is due for this long.
    async fn live(&mut self, length: Duration) {
        let end = self.schedule.started + length;
        while let Some(due) = self.inventory.due(&self.schedule).filter(|due| *due < end) {
            self.advance(due.duration_since(self.schedule.started));
            self.sync().await;
        }
    }
}

/// The owners that were woken since the last time.
fn woken(wakes: &mut (impl Stream<Item = Wake> + Unpin)) -> BTreeSet<String> {
    std::iter::from_fn(|| futures::FutureExt::now_or_never(wakes.next()).flatten())
        .map(|wake| wake.uid)
        .collect()
}

fn instance(id: &str, node_uid: &str, token: &str, state: InstanceState) -> Instance {
    Instance {
        id: InstanceId(id.into()),
        state,
        state_reason: None,
        token: Some(ClientToken(token.into())),
        zone: "us-east-1a".into(),
        instance_type: "r7i.large".into(),
        launched_at: None,
        tags: identity::owner_tags(CLUSTER, Kind::Node, node_uid),
        volumes: vec![],
    }
}

fn volume(id: &str, volume_uid: &str) -> EbsVolume {
    EbsVolume {
        id: VolumeId(id.into()),
        state: VolumeState::Available,
        zone: "us-east-1a".into(),
        size: 100,
        volume_type: "gp3".into(),
        iops: None,
        throughput: None,
        encrypted: true,
        created_at: None,
        multi_attach: false,
        attachments: vec![],
        tags: identity::owner_tags(CLUSTER, Kind::Volume, volume_uid),
    }
}

fn unavailable() -> CloudError {
    CloudError::new("DescribeInstances", Some("Unavailable"), "the service is unavailable", Some(503), None)
}

fn uids(uids: &[&str]) -> BTreeSet<String> {
    uids.iter().map(|uid| (*uid).to_owned()).collect()
}

fn awaiting(token: &str, last_possible_send: i64) -> Interest {
    Interest::Pending(Awaited {
        token: Some(ClientToken(token.into())),
        last_possible_send: Some(at(last_possible_send)),
        modifying: None,
    })
}
