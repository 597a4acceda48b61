//! Tests of the inventory against a small cloud, in virtual time: the test says when it is, and sweeps when one is due.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use jiff::SignedDuration;
use pretty_assertions::assert_eq;
use tokio::time::Instant;

use super::sweep::Rhythm;
use super::*;
use crate::api::{ClientToken, InstanceId, SnapshotId};
use crate::cloud::absence::{self, EmptyRun, TokenLookup};
use crate::cloud::identity;
use crate::cloud::{
    CloudError, CreateVolumeRequest, InstanceQuery, InstanceState, LaunchRequest, ModificationState, ModifyVolumeRequest, SnapshotState,
    VolumeQuery, VolumeState,
};

const CLUSTER: &str = "cluster";

/// A cloud that shows what it is told to, and counts what it is asked.
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
    unhealthy: Vec<InstanceHealth>,
    /// Answered to lists without ids.
    error: Option<CloudError>,
    /// A zone whose ids are not answered for either.
    zone_down: Option<String>,
    calls: Vec<&'static str>,
}

impl Small {
    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap()
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
                Ok(shown.instances.iter().filter(|i| tags.iter().all(|(key, value)| i.tags.get(key) == Some(value))).cloned().collect())
            }
            InstanceQuery::Tokens(tokens) => {
                assert!(tokens.len() <= 200);
                let shown = self.called("tokens")?;
                let all = shown.instances.iter().chain(&shown.by_token_only);
                Ok(all.filter(|i| i.token.as_ref().is_some_and(|token| tokens.contains(token))).cloned().collect())
            }
            InstanceQuery::Among(ids) => {
                let shown = self.called("among")?;
                Ok(shown.instances.iter().filter(|i| ids.contains(&i.id)).cloned().collect())
            }
            InstanceQuery::Ids(ids) => {
                let mut shown = self.lock();
                shown.calls.push("ids");
                let found: Vec<Instance> = shown.instances.iter().filter(|i| ids.contains(&i.id)).cloned().collect();
                match &shown.zone_down {
                    Some(zone) if found.iter().any(|i| i.zone == *zone) => Err(unavailable()),
                    Some(_) | None => Ok(found),
                }
            }
        }
    }

    async fn describe_unhealthy_instances(&self) -> Result<Vec<InstanceHealth>, CloudError> {
        Ok(self.called("health")?.unhealthy.clone())
    }

    async fn describe_volumes(&self, _query: &VolumeQuery) -> Result<Vec<EbsVolume>, CloudError> {
        Ok(self.called("volumes")?.volumes.clone())
    }

    async fn describe_modifications(&self, ids: &[VolumeId]) -> Result<Vec<Modification>, CloudError> {
        let shown = self.called("modifications")?;
        Ok(shown.modifications.iter().filter(|modification| ids.contains(&modification.volume)).cloned().collect())
    }

    async fn describe_snapshots(&self, _tags: &BTreeMap<String, String>) -> Result<Vec<Snapshot>, CloudError> {
        Ok(self.called("snapshots")?.snapshots.clone())
    }

    async fn run_instance(&self, _request: &LaunchRequest) -> Result<Instance, CloudError> {
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

    async fn tag_volume(&self, _id: &VolumeId, _tags: &BTreeMap<String, String>) -> Result<(), CloudError> {
        unreachable!("the inventory only reads")
    }

    async fn modify_volume(&self, _request: &ModifyVolumeRequest) -> Result<(), CloudError> {
        unreachable!("the inventory only reads")
    }

    async fn delete_volume(&self, _id: &VolumeId) -> Result<(), CloudError> {
        unreachable!("the inventory only reads")
    }

    async fn create_snapshot(&self, _volume: &VolumeId, _tags: &BTreeMap<String, String>) -> Result<Snapshot, CloudError> {
        unreachable!("the inventory only reads")
    }
}

/// A clock that the test sets.
struct Hands(Mutex<Timestamp>);

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// An inventory with its cloud, and the time.
struct World {
    cloud: Arc<Small>,
    clock: Arc<Hands>,
    inventory: Arc<Inventory>,
    rhythm: Rhythm,
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

impl World {
    fn new(kind: Kind) -> Self {
        let cloud = Arc::new(Small::default());
        let clock = Arc::new(Hands(Mutex::new(at(0))));
        let inventory = Inventory::new(cloud.clone(), Arc::new(Limits::new(1.0, 1.0)), clock.clone(), Timing::default(), CLUSTER);
        Self { cloud, clock, inventory, rhythm: Rhythm::new(kind, Instant::now()) }
    }

    /// Moves both clocks on.
    fn advance(&mut self, elapsed: Duration) {
        self.rhythm.started += elapsed;
        *self.clock.0.lock().unwrap() += SignedDuration::try_from(elapsed).unwrap();
    }

    async fn sweep(&mut self) {
        self.inventory.sweep(&mut self.rhythm).await;
    }

    /// A sweep a second after the last one.
    async fn next_sweep(&mut self) {
        self.advance(Duration::from_secs(1));
        self.sweep().await;
    }

    /// Sweeps whenever one is due for this long.
    async fn live(&mut self, length: Duration) {
        let end = self.rhythm.started + length;
        while let Some(due) = self.inventory.due(&self.rhythm).filter(|due| *due < end) {
            self.advance(due.duration_since(self.rhythm.started));
            self.sweep().await;
        }
    }
}

/// The owners that were woken since the last time.
fn woken(wakes: &mut (impl Stream<Item = Wake> + Unpin)) -> BTreeSet<String> {
    std::iter::from_fn(|| futures::FutureExt::now_or_never(wakes.next()).flatten()).map(|wake| wake.uid).collect()
}

fn instance(id: &str, node_uid: &str, token: &str, state: InstanceState) -> Instance {
    Instance {
        id: InstanceId(id.into()),
        state,
        state_reason: None,
        token: Some(ClientToken(token.into())),
        zone: "us-east-1a".into(),
        instance_type: "r7i.large".into(),
        tags: identity::owner_tags(CLUSTER, Kind::Node, node_uid),
        volumes: vec![],
        root_volume: None,
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
    Interest::Pending(Awaited { token: Some(ClientToken(token.into())), last_possible_send: Some(at(last_possible_send)), modifying: None })
}

#[tokio::test]
async fn an_empty_view_before_the_first_sweep_says_that_nothing_was_looked_at() {
    let mut world = World::new(Kind::Node);
    assert_eq!(world.inventory.instances_of("node").swept_at, None);
    assert_eq!(world.inventory.last_complete(Kind::Node), None);
    world.sweep().await;
    assert_eq!(world.inventory.instances_of("node").swept_at, Some(at(0)));
    assert_eq!(world.inventory.last_complete(Kind::Node), Some(at(0)));
}

#[tokio::test]
async fn a_sweep_gives_each_owner_its_own_and_wakes_those_whose_view_changed() {
    let mut world = World::new(Kind::Node);
    let mut wakes = world.inventory.wakes();
    let (one, two) = (instance("i-1", "one", "t1", InstanceState::Pending), instance("i-2", "two", "t2", InstanceState::Running));
    world.cloud.lock().instances = vec![one.clone(), two.clone()];
    world.sweep().await;
    assert_eq!(world.inventory.instances_of("one").instances, vec![one.clone()]);
    assert_eq!(woken(&mut wakes), uids(&["one", "two"]));

    world.next_sweep().await;
    assert_eq!(woken(&mut wakes), uids(&[]), "nothing changed");

    let running = Instance { state: InstanceState::Running, ..one };
    world.cloud.lock().instances = vec![running.clone(), two];
    world.next_sweep().await;
    assert_eq!(world.inventory.instances_of("one").instances, [running]);
    assert_eq!(woken(&mut wakes), uids(&["one"]));

    world.cloud.lock().instances.clear();
    world.next_sweep().await;
    assert_eq!(woken(&mut wakes), uids(&["one", "two"]), "what is no longer shown changed, too");
}

#[tokio::test]
async fn the_first_sweep_wakes_everyone_who_waits_for_one() {
    let mut world = World::new(Kind::Node);
    let mut wakes = world.inventory.wakes();
    world.inventory.set_interest(Kind::Node, "waits", Interest::Settled);
    world.sweep().await;
    assert_eq!(woken(&mut wakes), uids(&["waits"]));
    world.next_sweep().await;
    assert_eq!(woken(&mut wakes), uids(&[]));
}

#[tokio::test]
async fn a_failed_sweep_changes_nothing_but_what_is_said_of_it() {
    let mut world = World::new(Kind::Node);
    world.cloud.lock().instances = vec![instance("i-1", "one", "t1", InstanceState::Running)];
    world.sweep().await;
    let mut wakes = world.inventory.wakes();
    let before = world.inventory.instances_of("one");
    world.cloud.lock().error = Some(CloudError::in_doubt("DescribeInstances", "no answer"));
    world.next_sweep().await;
    assert_eq!(world.inventory.instances_of("one"), before);
    assert_eq!(woken(&mut wakes), uids(&[]));
    let stats = world.inventory.stats(Kind::Node);
    assert_eq!(stats.last_complete, Some(at(0)));
    assert!(stats.last_error.unwrap().contains("no answer"));
    assert_eq!(world.cloud.count("ids"), 0, "without a way to EC2 no further calls are made");
}

#[tokio::test]
async fn at_the_default_rhythm_a_settled_fleet_costs_no_more_than_four_calls_and_a_fifth_a_minute() {
    let mut world = World::new(Kind::Node);
    for n in 0..100 {
        let uid = format!("node-{n}");
        world.cloud.lock().instances.push(instance(&format!("i-{n}"), &uid, &uid, InstanceState::Running));
        world.inventory.set_interest(Kind::Node, &uid, Interest::Settled);
    }
    world.sweep().await;
    world.live(Duration::from_secs(600)).await;
    // In ten minutes at 0, 60, … 540 s; `health` stands for three calls.
    assert_eq!((world.cloud.count("list"), world.cloud.count("health"), world.cloud.count("tokens")), (10, 10, 0));

    let mut world = World::new(Kind::Volume);
    world.inventory.set_interest(Kind::Volume, "volume", Interest::Settled);
    world.sweep().await;
    world.live(Duration::from_secs(600)).await;
    assert_eq!((world.cloud.count("volumes"), world.cloud.count("modifications")), (2, 0));
}

#[tokio::test]
async fn while_something_is_pending_sweeps_come_every_few_seconds_but_health_does_not() {
    let mut world = World::new(Kind::Node);
    world.cloud.lock().instances = vec![instance("i-1", "one", "t1", InstanceState::Pending)];
    world.inventory.set_interest(Kind::Node, "one", Interest::changes());
    world.sweep().await;
    world.live(Duration::from_secs(60)).await;
    assert_eq!((world.cloud.count("list"), world.cloud.count("health"), world.cloud.count("tokens")), (15, 1, 0));

    world.inventory.set_interest(Kind::Node, "one", Interest::Settled);
    assert_eq!(world.inventory.due(&world.rhythm), Some(world.rhythm.started + Duration::from_secs(60)));
    world.inventory.set_interest(Kind::Node, "one", Interest::changes());
    world.inventory.forget(Kind::Node, "one");
    assert_eq!(world.inventory.due(&world.rhythm), Some(world.rhythm.started + Duration::from_secs(60)), "who is gone awaits nothing");
}

#[tokio::test]
async fn a_pending_volume_makes_no_instance_sweeps_faster_and_the_other_way_round() {
    let nodes = World::new(Kind::Node);
    nodes.inventory.set_interest(Kind::Volume, "volume", Interest::changes());
    assert_eq!(nodes.inventory.due(&nodes.rhythm), Some(nodes.rhythm.started + Duration::from_secs(60)));
    let volumes = World::new(Kind::Volume);
    volumes.inventory.set_interest(Kind::Node, "node", Interest::changes());
    assert_eq!(volumes.inventory.due(&volumes.rhythm), Some(volumes.rhythm.started + Duration::from_secs(300)));
}

#[tokio::test]
async fn an_account_without_instances_is_not_asked_for_their_health() {
    let mut world = World::new(Kind::Node);
    world.sweep().await;
    assert_eq!(world.cloud.count("health"), 0);
}

#[tokio::test]
async fn many_pokes_make_one_sweep_soon_and_no_sooner() {
    let mut world = World::new(Kind::Node);
    world.sweep().await;
    for _ in 0..100 {
        world.inventory.poke(Kind::Node);
    }
    assert_eq!(world.inventory.due(&world.rhythm), Some(world.rhythm.started + Duration::from_secs(1)));
    world.next_sweep().await;
    assert_eq!(world.inventory.due(&world.rhythm), Some(world.rhythm.started + Duration::from_secs(60)));
}

#[tokio::test]
async fn failing_sweeps_are_tried_again_soon_and_then_ever_more_calmly() {
    let mut world = World::new(Kind::Volume);
    world.cloud.lock().error = Some(CloudError::in_doubt("DescribeVolumes", "no answer"));
    let mut pauses = Vec::new();
    for _ in 0..6 {
        world.next_sweep().await;
        pauses.push(world.inventory.due(&world.rhythm).unwrap().duration_since(world.rhythm.started).as_secs());
    }
    assert_eq!(pauses, [8, 16, 32, 60, 60, 60]);
    world.cloud.lock().error = None;
    world.next_sweep().await;
    assert_eq!(world.inventory.due(&world.rhythm), Some(world.rhythm.started + Duration::from_secs(300)));
}

#[tokio::test]
async fn a_throttled_sweep_slows_the_bucket_of_its_call() {
    let mut world = World::new(Kind::Node);
    world.cloud.lock().error = Some(CloudError::new("DescribeInstances", Some("RequestLimitExceeded"), "", Some(503), None));
    world.sweep().await;
    let answer = world.inventory.limits.try_take(crate::cloud::Call::DescribeInstances, crate::cloud::limits::Priority::Repair, at(0));
    assert!(answer.is_err());
}

#[tokio::test]
async fn an_instance_whose_tags_lag_is_found_by_its_token_and_the_newer_look_counts() {
    let mut world = World::new(Kind::Node);
    let mut wakes = world.inventory.wakes();
    let found = instance("i-1", "one", "t1", InstanceState::Pending);
    world.cloud.lock().by_token_only = vec![Instance { tags: BTreeMap::new(), ..found.clone() }];
    world.inventory.set_interest(Kind::Node, "one", awaiting("t1", 0));
    world.next_sweep().await;
    let view = world.inventory.instances_of("one");
    assert_eq!(view.instances.iter().map(|i| i.id.0.as_str()).collect::<Vec<_>>(), ["i-1"]);
    assert_eq!(view.token_looked_up_at, Some(at(1)));
    assert_eq!(view.empty.by_token, None, "a hit proves nothing absent");
    assert_eq!(woken(&mut wakes), uids(&["one"]));

    // Now the tags are there, too: one instance, as the sweep shows it.
    let running = Instance { state: InstanceState::Running, ..found };
    *world.cloud.lock() = Shown { instances: vec![running.clone()], ..Shown::default() };
    world.inventory.set_interest(Kind::Node, "one", Interest::Settled);
    world.next_sweep().await;
    assert_eq!(world.inventory.instances_of("one").instances, [running]);
}

#[tokio::test]
async fn tokens_are_looked_up_in_calls_of_at_most_two_hundred() {
    let mut world = World::new(Kind::Node);
    for n in 0..401 {
        world.inventory.set_interest(Kind::Node, &format!("node-{n}"), awaiting(&format!("t{n}"), 0));
    }
    world.next_sweep().await;
    assert_eq!(world.cloud.count("tokens"), 3);
}

#[tokio::test]
async fn empty_sweeps_and_look_ups_after_the_last_send_prove_absence_after_the_whole_window_and_not_before() {
    let mut world = World::new(Kind::Node);
    let mut wakes = world.inventory.wakes();
    world.inventory.set_interest(Kind::Node, "one", awaiting("t1", 0));
    let window = Timing::default().absence_window;
    let proof = |world: &World| {
        let empty = world.inventory.instances_of("one").empty;
        absence::prove(at(0), empty.by_tag, TokenLookup::Required(empty.by_token), window)
    };
    world.sweep().await;
    assert_eq!(world.inventory.instances_of("one").empty, EmptyRuns::default(), "a look-up that started with the send does not count");
    world.live(window).await;
    assert_eq!(proof(&world), None, "the first empty look-up was not before 4 s");
    assert_eq!(woken(&mut wakes), uids(&["one"]), "who awaits a proof is woken by each look-up");
    world.live(Duration::from_secs(9)).await;
    assert!(proof(&world).is_some());
    let empty = world.inventory.instances_of("one").empty;
    assert_eq!(empty.by_tag, Some(EmptyRun { first: at(4), last: at(1204) }));
    assert_eq!(empty.by_token, empty.by_tag);
}

#[tokio::test]
async fn another_send_begins_the_proof_anew_and_the_same_interest_does_not() {
    let mut world = World::new(Kind::Node);
    world.inventory.set_interest(Kind::Node, "one", awaiting("t1", 0));
    world.next_sweep().await;
    world.inventory.set_interest(Kind::Node, "one", awaiting("t1", 0));
    assert_eq!(world.inventory.instances_of("one").empty.by_tag, Some(EmptyRun { first: at(1), last: at(1) }));
    world.inventory.set_interest(Kind::Node, "one", awaiting("t1", 1));
    assert_eq!(world.inventory.instances_of("one").empty, EmptyRuns::default());
    world.next_sweep().await;
    world.inventory.set_interest(Kind::Node, "one", awaiting("t2", 1));
    assert_eq!(world.inventory.instances_of("one").empty, EmptyRuns::default());
}

#[tokio::test]
async fn a_hit_ends_the_proof_but_a_terminated_instance_of_an_earlier_attempt_is_none() {
    let mut world = World::new(Kind::Node);
    world.inventory.set_interest(Kind::Node, "one", awaiting("t2", 0));
    let former = instance("i-1", "one", "t1", InstanceState::Terminated);
    world.cloud.lock().instances = vec![former.clone()];
    world.next_sweep().await;
    assert!(world.inventory.instances_of("one").empty.by_tag.is_some());
    assert_eq!(world.inventory.instances_of("one").instances, vec![former.clone()], "it is shown all the same");

    for hit in [
        instance("i-1", "one", "t1", InstanceState::ShuttingDown),
        instance("i-1", "one", "t2", InstanceState::Terminated),
        Instance { token: None, ..former },
    ] {
        world.cloud.lock().instances = vec![hit.clone()];
        world.next_sweep().await;
        assert_eq!(world.inventory.instances_of("one").empty.by_tag, None, "{hit:?}");
        world.cloud.lock().instances.clear();
        world.next_sweep().await;
        assert!(world.inventory.instances_of("one").empty.by_tag.is_some());
    }
}

#[tokio::test]
async fn a_failed_sweep_neither_ends_a_run_nor_counts_in_it() {
    let mut world = World::new(Kind::Node);
    world.inventory.set_interest(Kind::Node, "one", awaiting("t1", 0));
    world.next_sweep().await;
    world.cloud.lock().error = Some(CloudError::in_doubt("DescribeInstances", "no answer"));
    world.next_sweep().await;
    assert_eq!(world.inventory.instances_of("one").empty.by_tag, Some(EmptyRun { first: at(1), last: at(1) }));
    world.cloud.lock().error = None;
    world.next_sweep().await;
    assert_eq!(world.inventory.instances_of("one").empty.by_tag, Some(EmptyRun { first: at(1), last: at(3) }));
}

#[tokio::test]
async fn an_impaired_instance_wakes_its_owner_when_it_falls_ill_and_when_it_is_well_again() {
    let mut world = World::new(Kind::Node);
    world.cloud.lock().instances =
        vec![instance("i-1", "one", "t1", InstanceState::Running), instance("i-2", "two", "t2", InstanceState::Running)];
    world.sweep().await;
    let mut wakes = world.inventory.wakes();
    let ill = InstanceHealth { id: InstanceId("i-1".into()), impaired: true };
    let foreign = InstanceHealth { id: InstanceId("i-9".into()), impaired: true };
    world.cloud.lock().unhealthy = vec![ill.clone(), foreign];
    world.advance(Duration::from_secs(60));
    world.sweep().await;
    assert_eq!(world.inventory.instances_of("one").unhealthy, [ill]);
    assert_eq!(world.inventory.instances_of("two").unhealthy, []);
    assert_eq!(woken(&mut wakes), uids(&["one"]));
    world.cloud.lock().unhealthy.clear();
    world.advance(Duration::from_secs(60));
    world.sweep().await;
    assert_eq!(world.inventory.instances_of("one").unhealthy, []);
    assert_eq!(woken(&mut wakes), uids(&["one"]));
}

#[tokio::test]
async fn what_ec2_said_of_a_machines_health_long_ago_is_not_believed() {
    let mut world = World::new(Kind::Node);
    world.cloud.lock().instances = vec![instance("i-1", "one", "t1", InstanceState::Running)];
    let ill = InstanceHealth { id: InstanceId("i-1".into()), impaired: true };
    world.cloud.lock().unhealthy = vec![ill.clone()];
    world.sweep().await;
    let mut wakes = world.inventory.wakes();
    let known = |inventory: &Inventory| inventory.instances_of("one").unhealthy;
    assert_eq!(known(&world.inventory), std::slice::from_ref(&ill));
    *world.inventory.health_at.lock().unwrap() = Some(Instant::now().checked_sub(Duration::from_secs(180)).unwrap());
    assert_eq!(known(&world.inventory), []);
    world.advance(Duration::from_secs(180));
    world.sweep().await;
    assert_eq!(known(&world.inventory), [ill]);
    assert_eq!(woken(&mut wakes), uids(&["one"]), "the same answer is news");
}

#[tokio::test]
async fn while_a_zone_is_disrupted_the_instances_of_the_others_are_still_seen_but_no_age_gets_younger() {
    let mut world = World::new(Kind::Node);
    let healthy = Instance { zone: "us-east-1b".into(), ..instance("i-2", "two", "t2", InstanceState::Pending) };
    world.cloud.lock().instances = vec![instance("i-1", "one", "t1", InstanceState::Pending), healthy.clone()];
    world.sweep().await;
    {
        let mut shown = world.cloud.lock();
        shown.error = Some(unavailable());
        shown.zone_down = Some("us-east-1a".into());
        for instance in &mut shown.instances {
            instance.state = InstanceState::Running;
        }
    }
    let mut wakes = world.inventory.wakes();
    world.next_sweep().await;
    assert_eq!(world.inventory.instances_of("one").instances[0].state, InstanceState::Pending);
    assert_eq!(world.inventory.instances_of("two").instances, [Instance { state: InstanceState::Running, ..healthy }]);
    assert_eq!(world.inventory.instances_of("two").swept_at, Some(at(0)));
    assert_eq!(woken(&mut wakes), uids(&["two"]));
}

#[tokio::test]
async fn a_look_at_some_instances_is_one_call_wakes_whom_it_concerns_and_leaves_out_what_ec2_does_not_know() {
    let mut world = World::new(Kind::Node);
    let (one, two) = (instance("i-1", "one", "t1", InstanceState::Running), instance("i-2", "two", "t2", InstanceState::Running));
    world.cloud.lock().instances = vec![one.clone(), two.clone()];
    world.sweep().await;
    let mut wakes = world.inventory.wakes();
    world.cloud.lock().instances[0].state = InstanceState::Terminated;
    world.inventory.look_at(&[one.id.clone(), two.id.clone(), InstanceId("i-9".into())]).await.unwrap();
    assert_eq!((world.cloud.count("list"), world.cloud.count("among")), (1, 1));
    assert_eq!(world.inventory.instances_of("one").instances[0].state, InstanceState::Terminated);
    assert_eq!(woken(&mut wakes), uids(&["one"]));
    assert!(world.inventory.has_ended("one", &one.id) && !world.inventory.has_ended("two", &two.id));
}

#[tokio::test]
async fn health_is_asked_for_soon_while_a_late_machine_still_runs_and_not_at_every_look() {
    let mut world = World::new(Kind::Node);
    world.cloud.lock().instances = vec![instance("i-1", "one", "t1", InstanceState::Running)];
    world.sweep().await;
    world.inventory.look_at(&[InstanceId("i-1".into())]).await.unwrap();
    assert_eq!(world.cloud.count("health"), 1, "asked a moment ago");
    *world.inventory.health_at.lock().unwrap() = Some(Instant::now().checked_sub(super::sweep::SOON).unwrap());
    world.inventory.look_at(&[InstanceId("i-1".into())]).await.unwrap();
    world.inventory.look_at(&[InstanceId("i-1".into())]).await.unwrap();
    assert_eq!(world.cloud.count("health"), 2);
    *world.inventory.health_at.lock().unwrap() = None;
    world.cloud.lock().instances[0].state = InstanceState::Terminated;
    world.inventory.look_at(&[InstanceId("i-1".into())]).await.unwrap();
    assert_eq!(world.cloud.count("health"), 2, "what has ended is not ill");
}

#[test]
fn a_sweep_that_began_before_a_point_read_does_not_overwrite_it() {
    let mut store = super::store::Store::<Instance>::default();
    let running = instance("i-1", "one", "t1", InstanceState::Running);
    let ended = Instance { state: InstanceState::Terminated, ..running.clone() };
    store.apply_sweep(at(0), vec![running.clone()]);
    assert_eq!(store.refresh(at(11), vec![ended.clone()]), uids(&["one"]));
    assert_eq!(store.apply_sweep(at(10), vec![running.clone()]).len(), 0, "nothing changed");
    assert_eq!(store.of("one"), [ended]);
    store.apply_sweep(at(12), vec![running.clone()]);
    assert_eq!(store.of("one"), [running]);
}

#[tokio::test]
async fn a_zone_that_ec2_does_not_answer_for_is_known_until_a_sweep_is_complete() {
    let mut world = World::new(Kind::Node);
    let healthy = Instance { zone: "us-east-1b".into(), ..instance("i-2", "two", "t2", InstanceState::Running) };
    world.cloud.lock().instances = vec![instance("i-1", "one", "t1", InstanceState::Running), healthy];
    world.sweep().await;
    world.cloud.lock().error = Some(unavailable());
    world.cloud.lock().zone_down = Some("us-east-1a".into());
    world.next_sweep().await;
    assert!(world.inventory.refuses_zone("us-east-1a") && !world.inventory.refuses_zone("us-east-1b"));
    world.cloud.lock().error = None;
    world.next_sweep().await;
    assert!(!world.inventory.refuses_zone("us-east-1a"));
}

#[tokio::test]
async fn a_modification_is_looked_up_only_while_a_pass_awaits_it() {
    let mut world = World::new(Kind::Volume);
    world.cloud.lock().volumes = vec![volume("vol-1", "one"), volume("vol-2", "two")];
    let modification = Modification { volume: VolumeId("vol-1".into()), state: ModificationState::Modifying, started_at: None };
    world.cloud.lock().modifications = vec![modification.clone()];
    world.sweep().await;
    assert_eq!(world.cloud.count("modifications"), 0);

    let mut wakes = world.inventory.wakes();
    let awaited = Awaited { modifying: Some(VolumeId("vol-1".into())), ..Awaited::default() };
    world.inventory.set_interest(Kind::Volume, "one", Interest::Pending(awaited));
    world.next_sweep().await;
    assert_eq!(world.inventory.volumes_of("one").modification, Some(modification));
    assert_eq!(world.inventory.volumes_of("two").modification, None);
    assert!(!world.inventory.volumes_of("two").modification_is_known, "nobody asked");
    assert_eq!(woken(&mut wakes), uids(&["one"]));
    world.next_sweep().await;
    assert_eq!(woken(&mut wakes), uids(&[]), "it did not change");

    world.inventory.set_interest(Kind::Volume, "one", Interest::Settled);
    assert_eq!(world.inventory.volumes_of("one").modification, None, "the next modification does not begin with the last one's end");
    let before = world.cloud.count("modifications");
    world.next_sweep().await;
    assert_eq!(world.cloud.count("modifications"), before);

    let awaited = Awaited { modifying: Some(VolumeId("vol-2".into())), ..Awaited::default() };
    world.inventory.set_interest(Kind::Volume, "two", Interest::Pending(awaited));
    world.next_sweep().await;
    assert_eq!(woken(&mut wakes), uids(&["two"]), "that there is none is an answer, too");
    let two = world.inventory.volumes_of("two");
    assert_eq!((two.modification, two.modification_is_known), (None, true));
}

#[tokio::test]
async fn snapshots_are_listed_only_while_a_pass_asks_for_one() {
    let mut world = World::new(Kind::Snapshot);
    assert_eq!(world.inventory.due(&world.rhythm), None);
    let snapshot = Snapshot {
        id: SnapshotId("snap-1".into()),
        volume: VolumeId("vol-1".into()),
        state: SnapshotState::Pending,
        started_at: None,
        tags: identity::owner_tags(CLUSTER, Kind::Snapshot, "one"),
    };
    world.cloud.lock().snapshots = vec![snapshot.clone()];
    world.inventory.set_interest(Kind::Snapshot, "one", Interest::changes());
    assert_eq!(world.inventory.due(&world.rhythm), Some(world.rhythm.started + Duration::from_secs(4)));
    world.next_sweep().await;
    assert_eq!(world.inventory.snapshots_of("one").snapshots, [snapshot]);
}

#[tokio::test]
async fn the_loops_sweep_at_once_answer_a_nudge_and_end_when_told_to() {
    let cloud = Arc::new(Small::default());
    cloud.lock().instances = vec![instance("i-1", "one", "t1", InstanceState::Pending)];
    // So long that only the first sweep and a poke can be the reason of a call.
    let day = Duration::from_secs(86_400);
    let timing = Timing { sweep_instances: day, sweep_volumes: day, sweep_pending: Duration::from_millis(4), ..Timing::default() };
    let inventory = Inventory::new(cloud.clone(), Arc::new(Limits::new(1.0, 1.0)), Arc::new(crate::clock::SystemClock), timing, CLUSTER);
    let mut wakes = inventory.wakes();
    let stop = CancellationToken::new();
    let running = tokio::spawn(Arc::clone(&inventory).run(stop.clone()));
    let patience = Duration::from_secs(30);
    let first = tokio::time::timeout(patience, wakes.next()).await.unwrap();
    assert_eq!(first, Some(Wake { kind: Kind::Node, uid: "one".into() }));
    cloud.lock().instances[0].state = InstanceState::Running;
    inventory.poke(Kind::Node);
    let second = tokio::time::timeout(patience, wakes.next()).await.unwrap();
    assert_eq!(second, Some(Wake { kind: Kind::Node, uid: "one".into() }));
    assert_eq!(inventory.instances_of("one").instances[0].state, InstanceState::Running);
    stop.cancel();
    tokio::time::timeout(patience, running).await.unwrap().unwrap();
}
