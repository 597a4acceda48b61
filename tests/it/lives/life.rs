//! One life: a database is created, a few things are done to it and to its machines, and at the end it stays
//! or is deleted; then the world calms down, and everything is judged.

use std::time::Duration;

use ec2sim::{InstanceState, JournalEntry, Outside};
use freehold_rig::{Hand, Write};
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::chaos::{Kill, Lies};
use super::house::{House, NAMESPACE};
use super::rules;
use crate::world::OPERATOR;

/// How long a life may take to come to rest once the world is calm: the longest pauses (an attempt in doubt
/// that is proven absent, a machine that never joined) one after the other.
const CALM: Duration = Duration::from_secs(6 * 3600);

/// How long nothing may happen then.
const REST: Duration = Duration::from_secs(900);

/// One thing that is done.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Grow,
    Move,
    Upgrade,
    Configure,
    Pause,
    Resume,
    Terminate,
    Stop,
    Impair,
    Silence,
    DeletePod,
    DeleteKubernetesNode,
    DeleteNode,
}

const DEEDS: [Deed; 13] = [
    Deed::Grow,
    Deed::Move,
    Deed::Upgrade,
    Deed::Configure,
    Deed::Pause,
    Deed::Resume,
    Deed::Terminate,
    Deed::Stop,
    Deed::Impair,
    Deed::Silence,
    Deed::DeletePod,
    Deed::DeleteKubernetesNode,
    Deed::DeleteNode,
];

/// Lives it; fails if a rule was broken.
pub async fn live(seed: u64, lies: Lies) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut house = House::build(seed, lies).await;
    house.start();
    let policy = *["Retain", "Retain", "Delete", "Snapshot"].choose(&mut rng).unwrap();
    house.create(&json!({"deletionPolicy": policy})).await;
    // Sometimes things are done to what is half made.
    if rng.random_bool(0.7) {
        house.until_ready_or(Duration::from_secs(3600)).await;
    }
    for _ in 0..rng.random_range(0..6) {
        let deed = *DEEDS.choose(&mut rng).unwrap();
        house.chaos.tell(&format!("{deed:?}"));
        house.carry_out(deed, &mut rng).await;
        let pause = [1, 30, 300, 1800].choose(&mut rng).copied().unwrap();
        tokio::time::sleep(Duration::from_secs(rng.random_range(0..pause) + 1)).await;
    }
    let is_deleted = rng.random_bool(0.6);
    if is_deleted {
        house.chaos.tell("delete");
        house.delete().await;
        tokio::time::sleep(Duration::from_secs(rng.random_range(0..300))).await;
    } else {
        house.carry_out(Deed::Resume, &mut rng).await;
    }
    house.chaos.calm();
    if is_deleted {
        house.until_gone(CALM).await;
    } else {
        house.until_ready(CALM).await;
    }
    house.rest().await;
    let broken = rules::check(&house.record()).and_then(|()| house.check_end());
    assert!(broken.is_ok(), "{}", broken.unwrap_err());
}

fn is_own_write(write: &Write) -> bool {
    write.caller.starts_with("operator") && write.resource != "events.events.k8s.io"
}

/// A dry run changes nothing.
fn is_own_change(entry: &JournalEntry) -> bool {
    entry.caller == OPERATOR && !ec2sim::reads(&entry.action) && !entry.dry_run
}

/// The life in which the operator is killed at each of its writes: created, grown, moved, its machine lost,
/// paused, resumed and deleted. How many writes there were.
pub async fn reference(kill: Option<(usize, Kill)>) -> usize {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut house = House::build(1, Lies { kill, ..Lies::none() }).await;
    house.start();
    house.create(&json!({"deletionPolicy": "Delete"})).await;
    for deed in [Deed::Grow, Deed::Move, Deed::Terminate, Deed::Pause, Deed::Resume] {
        house.until_settled(deed, LONG).await;
        house.chaos.tell(&format!("{deed:?}"));
        house.carry_out(deed, &mut rng).await;
    }
    house.until_ready(LONG).await;
    house.chaos.tell("delete");
    house.delete().await;
    house.until_gone(LONG).await;
    let broken = rules::check(&house.record()).and_then(|()| house.check_end());
    assert!(broken.is_ok(), "{}", broken.unwrap_err());
    assert!(house.ec2.volumes().is_empty(), "the policy is Delete: {:?}", house.ec2.volumes());
    house.chaos.effects()
}

/// Longer than an attempt in doubt takes to be proven absent.
const LONG: Duration = Duration::from_secs(3 * 3600);

impl House {
    async fn carry_out(&self, deed: Deed, rng: &mut ChaCha8Rng) {
        match deed {
            Deed::Grow => {
                let size = self.database().map(|it| it["spec"]["storage"]["size"].clone());
                let now = size.as_ref().and_then(Value::as_str).unwrap_or("100Gi");
                let next = now.trim_end_matches("Gi").parse::<u32>().unwrap_or(100) + 10;
                self.patch(&json!({"storage": {"size": format!("{next}Gi")}})).await;
            }
            Deed::Move => {
                let kind = ["r7i.large", "r7i.xlarge", "m7i.large"].choose(rng).unwrap();
                self.patch(&json!({"instanceTypes": [kind]})).await;
            }
            Deed::Upgrade => self.patch(&json!({"engine": {"version": "9.3.5"}})).await,
            Deed::Configure => {
                let size = rng.random_range(1..1000).to_string();
                self.patch(&json!({"config": {"cairo.max.uncommitted.rows": size}})).await;
            }
            Deed::Pause => self.patch(&json!({"paused": true})).await,
            Deed::Resume => self.patch(&json!({"paused": false})).await,
            Deed::Terminate => self.strike(&Outside::Terminate),
            Deed::Stop => self.strike(&Outside::Stop),
            Deed::Impair => self.strike(&Outside::Impair),
            Deed::Silence => self.silence(rng),
            Deed::DeletePod => self.remove("pods", rng),
            Deed::DeleteKubernetesNode => self.remove("nodes", rng),
            Deed::DeleteNode => self.remove("nodes.freehold.dev", rng),
        }
    }

    /// Waits until the database is as it should be before this deed.
    async fn until_settled(&self, next: Deed, limit: Duration) {
        if matches!(next, Deed::Resume) {
            let is_paused = |house: &Self| {
                let ended = [InstanceState::Terminated, InstanceState::ShuttingDown];
                house.ec2.instances().iter().all(|it| ended.contains(&it.state))
            };
            self.until("the database is paused", limit, is_paused).await;
        } else {
            self.until_ready(limit).await;
        }
    }

    /// Something happens to every instance that runs.
    fn strike(&self, what: &Outside) {
        for instance in self.ec2.instances().iter().filter(|it| it.state == InstanceState::Running) {
            let _ = self.ec2.outside(&what.clone().to(&instance.id));
        }
    }

    /// The kubelets hang, for a while or for ever.
    fn silence(&self, rng: &mut ChaCha8Rng) {
        let seconds = [20, 90, 600, 100_000].choose(rng).copied().unwrap();
        for instance in self.ec2.instances().iter().filter(|it| it.state == InstanceState::Running) {
            let (controls, id) = (self.controls.clone(), instance.id.clone());
            controls.silence(&id, true);
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                controls.silence(&id, false);
            });
        }
    }

    /// A person deletes an object of this kind.
    fn remove(&self, resource: &str, rng: &mut ChaCha8Rng) {
        let all = self.server.objects(resource);
        if let Some(object) = all.choose(rng) {
            Hand::of(&self.server, "person").delete(resource, object, &json!({}));
        }
    }

    /// Nothing is written and nothing called any more.
    async fn rest(&self) {
        // What follows from the last step may still be on its way.
        tokio::time::sleep(REST).await;
        let (writes, calls) = (self.server.journal().len(), self.ec2.journal().len());
        tokio::time::sleep(REST).await;
        let journal = self.server.journal();
        let late = journal[writes..].iter().find(|write| is_own_write(write));
        assert!(late.is_none(), "it does not come to rest: {late:?}");
        let journal = self.ec2.journal();
        let late = journal[calls..].iter().find(|entry| is_own_change(entry));
        assert!(late.is_none(), "it does not come to rest: {late:?}");
    }

    /// Everything in EC2 belongs to an object, or is kept.
    fn check_end(&self) -> Result<(), String> {
        let uid = |resource: &str| -> Vec<String> {
            let all = self.server.objects(resource);
            all.iter().filter_map(|it| it["metadata"]["uid"].as_str().map(str::to_owned)).collect()
        };
        let ended = [InstanceState::ShuttingDown, InstanceState::Terminated];
        let nodes = uid("nodes.freehold.dev");
        for instance in self.ec2.instances().iter().filter(|it| !ended.contains(&it.state)) {
            let owner = instance.tags.get("freehold.dev/node-uid");
            if !owner.is_some_and(|owner| nodes.contains(owner)) {
                return Err(format!("{} belongs to no Node", instance.id));
            }
        }
        let volumes = uid("volumes.freehold.dev");
        let retained = self.server.objects("persistentvolumes");
        for volume in self.ec2.volumes().iter().filter(|it| it.tags.contains_key("freehold.dev/volume-uid")) {
            let is_owned = volumes.contains(&volume.tags["freehold.dev/volume-uid"]);
            let is_kept = retained.iter().any(|it| it["spec"]["csi"]["volumeHandle"] == volume.id.as_str());
            if !is_owned && !is_kept {
                return Err(format!("{} belongs to no Volume, and no PersistentVolume keeps it", volume.id));
            }
        }
        let leftovers = ["pods", "statefulsets.apps", "services", "configmaps"];
        let is_left = |it: &&std::sync::Arc<Value>| it["metadata"]["namespace"] == NAMESPACE;
        if self.database().is_none() {
            for resource in leftovers {
                if let Some(left) = self.server.objects(resource).iter().find(is_left) {
                    return Err(format!("{resource} {} is left", left["metadata"]["name"]));
                }
            }
        }
        Ok(())
    }
}
