//! Lives in which an operator is struck at one of its writes, or in which something is done meanwhile.

use std::time::Duration;

use ec2sim::{Effect, InstanceView, Visibility, VolumeState, VolumeView};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::blow::{Blow, Strike};
use super::house::{House, NAMESPACE, SLOW_HEARTBEATS};
use super::lies::Lies;
use super::life::Deed;
use crate::kit::env::live_instances;

/// Longer than an attempt in doubt takes to be proven absent.
const LONG: Duration = Duration::from_secs(3 * 3600);

/// The lives that are lived again and again with two operators, each time with a blow at another write.
#[derive(Clone, Copy, Debug, strum::EnumIter)]
pub enum Course {
    /// Created, grown, moved, its machine lost, paused, resumed, and deleted with its volume.
    Whole,
    /// Deleted, with the volume retained; adopted by the next, and deleted with a snapshot of the volume.
    Retained,
}

impl Course {
    /// Lives it. How many writes the operator made.
    pub async fn live(self, strike: Option<Strike>) -> usize {
        let house = house_of(2, strike).await;
        match self {
            Self::Whole => whole(&house).await,
            Self::Retained => retained(&house).await,
        }
        house.judge();
        house.chaos.effects()
    }
}

async fn house(strike: Option<Strike>) -> House {
    house_of(1, strike).await
}

async fn house_of(operators: usize, strike: Option<Strike>) -> House {
    let mut house = House::build(1, Lies { strike, ..Lies::none() }).await;
    house.start_with(operators, &SLOW_HEARTBEATS);
    house
}

async fn whole(house: &House) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    house.create(&json!({"deletionPolicy": "Delete"})).await;
    for deed in [Deed::Grow, Deed::Move, Deed::Terminate, Deed::Pause, Deed::Resume] {
        house.until_settled(deed).await;
        house.chaos.tell(&format!("{deed:?}"));
        house.carry_out(deed, &mut rng).await;
    }
    house.until_ready(LONG).await;
    house.end().await;
    assert_eq!(house.left(), Left::default(), "the policy is Delete");
}

async fn retained(house: &House) {
    let (volumes, secrets) = retain(house).await;
    house.adopt("Snapshot").await;
    house.until_ready(LONG).await;
    assert_eq!(house.left().volumes, volumes, "the same volume");
    assert_eq!(house.passwords(), secrets, "with the credentials of its data");
    house.end().await;
    assert_eq!(house.left(), Left { snapshots: 1, ..Left::default() }, "the policy is Snapshot");
}

/// A database was created and deleted, and its volume is retained: the volume's id, and the credentials.
async fn retain(house: &House) -> (Vec<String>, Vec<Value>) {
    house.create(&json!({"deletionPolicy": "Retain"})).await;
    house.until_ready(LONG).await;
    let secrets = house.passwords();
    house.end().await;
    let volumes = house.left().volumes;
    assert_eq!((volumes.len(), house.left().records), (1, 1), "the policy is Retain");
    house.until("the record is released", LONG, House::is_released).await;
    (volumes, secrets)
}

/// What is done to a database while no operator runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumIter)]
pub enum Meanwhile {
    /// Nothing, for half an hour.
    Minutes,
    /// Nothing, for half a day.
    HalfADay,
    /// Another type, a larger volume.
    Edited,
    /// Deleted; the volume is retained.
    Retained,
    /// Deleted, with its volume.
    Deleted,
}

/// A database is created, the operator is killed at this one of its writes, which is carried out, and this is
/// done before it is back.
pub async fn interrupted(number: usize, meanwhile: Meanwhile) {
    let seconds = match meanwhile {
        Meanwhile::Minutes => 30 * 60,
        Meanwhile::HalfADay => 13 * 3600,
        Meanwhile::Edited | Meanwhile::Retained | Meanwhile::Deleted => 60,
    };
    let house = house(Some(Strike { number, blow: Blow::Lost, away: Duration::from_secs(seconds) })).await;
    let policy = if meanwhile == Meanwhile::Deleted { "Delete" } else { "Retain" };
    house.create(&json!({"deletionPolicy": policy})).await;
    house.until("the operator is killed", LONG, |it| it.chaos.is_dead()).await;
    house.chaos.tell(&format!("{meanwhile:?}"));
    match meanwhile {
        Meanwhile::Minutes | Meanwhile::HalfADay => {}
        Meanwhile::Edited => {
            let spec = json!({"storage": {"size": "150Gi", "iops": 4000}, "instanceTypes": ["m7i.large"]});
            house.patch(&spec).await;
        }
        Meanwhile::Retained | Meanwhile::Deleted => house.delete().await,
    }
    // Ready may be older than what was done.
    tokio::time::sleep(Duration::from_secs(seconds + 60)).await;
    if matches!(meanwhile, Meanwhile::Retained | Meanwhile::Deleted) {
        house.until_gone(LONG).await;
        house.rest().await;
        house.judge();
        let left = house.left();
        let kept = if policy == "Retain" { left.volumes.len() } else { 0 };
        assert!(kept < 2, "{left:?}");
        assert_eq!((left.volumes.len(), left.snapshots, left.records), (kept, 0, kept));
        return;
    }
    house.until_ready(LONG).await;
    house.rest().await;
    house.judge();
    let is_edited = meanwhile == Meanwhile::Edited;
    let machines: Vec<String> = house.live().into_iter().map(|it| it.instance_type).collect();
    assert_eq!(machines, [if is_edited { "m7i.large" } else { "r7i.large" }]);
    let disks: Vec<u32> = house.data_volumes().iter().map(|it| it.shape.size).collect();
    assert_eq!(disks, [if is_edited { 150 } else { 100 }]);
    if !is_edited {
        assert_eq!(house.ec2.instances().len(), 1, "another was launched");
    }
}

/// How many writes the creation of a database takes.
pub async fn creation() -> usize {
    let house = house(None).await;
    house.create(&json!({})).await;
    house.until_ready(LONG).await;
    house.chaos.effects()
}

/// How many writes there are until an adoption of retained data begins.
pub async fn retention() -> usize {
    let house = house(None).await;
    retain(&house).await;
    house.chaos.effects()
}

/// How many writes there are until it has ended.
pub async fn adoption() -> usize {
    let house = house(None).await;
    retain(&house).await;
    house.adopt("Retain").await;
    house.until_ready(LONG).await;
    house.chaos.effects()
}

/// The operator is killed at this write, which is one of an adoption, and the database is deleted before it
/// is back: the volume is retained anew, once, and can be adopted again.
pub async fn left_in_adoption(number: usize) {
    let away = Duration::from_secs(60);
    let house = house(Some(Strike { number, blow: Blow::Lost, away })).await;
    let (volumes, secrets) = retain(&house).await;
    house.adopt("Retain").await;
    house.until("the operator is killed", LONG, |it| it.chaos.is_dead()).await;
    house.end().await;
    house.until("the record is released", LONG, House::is_released).await;
    let left = house.left();
    assert_eq!((&left.volumes, left.records, left.snapshots), (&volumes, 1, 0));
    let record = &house.server.objects("persistentvolumes")[0]["metadata"]["annotations"];
    assert!(record["freehold.dev/adopted-by"].is_null(), "nothing holds it: {record}");
    assert_eq!(house.passwords().len(), 1, "the credentials are retained once");
    house.adopt("Delete").await;
    house.until_ready(LONG).await;
    assert_eq!((house.left().volumes, house.passwords()), (volumes, secrets));
    house.rest().await;
    house.judge();
}

/// Two databases adopt the same retained volume; the tags of the one that wins are written and not answered,
/// and shown late. The other one, whose policy is Delete, is deleted.
pub async fn two_adopters() {
    let seconds = Duration::from_secs;
    let visibility = Visibility { by_id: seconds(2), by_filter: seconds(60), tags: seconds(120) };
    let mut house = House::build(1, Lies { visibility, ..Lies::none() }).await;
    house.start();
    let (volumes, _) = retain(&house).await;
    house.lie("CreateTags", Effect::ApplyThenDrop, 2);
    let record = house.server.objects("persistentvolumes")[0]["metadata"]["name"].clone();
    let spec = json!({"deletionPolicy": "Delete", "storage": {"adoptRetained": record}});
    let names = ["orders", "ledger"];
    for name in names {
        house.create_in(NAMESPACE, name, &spec).await;
    }
    let is_ready = |house: &House, name: &str| house.is_ready_in(NAMESPACE, name);
    house.until("one has adopted it", LONG, |it| names.iter().any(|name| is_ready(it, name))).await;
    let (winner, loser) =
        if is_ready(&house, "orders") { ("orders", "ledger") } else { ("ledger", "orders") };
    house.chaos.tell(&format!("delete {loser}"));
    house.delete_in(NAMESPACE, loser).await;
    let databases = |house: &House| house.server.objects("databases.freehold.dev").len();
    house.until("the other is gone", LONG, |it| databases(it) == 1).await;
    house.rest().await;
    assert!(is_ready(&house, winner));
    assert_eq!(house.left().volumes, volumes, "the same volume");
    house.judge();
}

/// What is there once a database is gone.
#[derive(Debug, Default, PartialEq, Eq)]
struct Left {
    /// The ids of the EBS volumes.
    volumes: Vec<String>,
    snapshots: usize,
    /// PersistentVolumes.
    records: usize,
}

impl House {
    /// Waits until the database is as it should be before this deed.
    async fn until_settled(&self, next: Deed) {
        if matches!(next, Deed::Resume) {
            self.until("the database is paused", LONG, |house| house.live().is_empty()).await;
        } else {
            self.until_ready(LONG).await;
        }
    }

    /// Deletes the database, and waits until it is gone and nothing runs any more.
    async fn end(&self) {
        self.chaos.tell("delete");
        self.delete().await;
        self.until_gone(LONG).await;
        self.until("its machine is ended", LONG, |house| house.live().is_empty()).await;
    }

    /// The instances that are neither terminated nor about to be.
    pub fn live(&self) -> Vec<InstanceView> {
        live_instances(&self.ec2)
    }

    /// The EBS volumes of Volumes.
    pub fn data_volumes(&self) -> Vec<VolumeView> {
        let is_there = |it: &VolumeView| {
            it.state != VolumeState::Deleting && it.tags.contains_key("freehold.dev/volume-uid")
        };
        self.ec2.volumes().into_iter().filter(is_there).collect()
    }

    fn left(&self) -> Left {
        Left {
            volumes: self.data_volumes().into_iter().map(|it| it.id).collect(),
            snapshots: self.ec2.snapshots().len(),
            records: self.server.objects("persistentvolumes").len(),
        }
    }

    /// Creates a database that adopts what is retained.
    pub async fn adopt(&self, policy: &str) {
        self.chaos.tell("adopt what is retained");
        let record = self.server.objects("persistentvolumes")[0]["metadata"]["name"].clone();
        self.create(&json!({"deletionPolicy": policy, "storage": {"adoptRetained": record}})).await;
    }

    /// The one PersistentVolume that is left has no claim any more.
    pub fn is_released(&self) -> bool {
        matches!(self.server.objects("persistentvolumes").as_slice(), [one] if one["status"]["phase"] == "Released")
    }

    pub fn passwords(&self) -> Vec<Value> {
        self.server.objects("secrets").iter().map(|it| it["data"].clone()).collect()
    }
}
