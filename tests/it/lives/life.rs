//! One life: a database is created, a few things are done to it and to its machines, and at the end it stays
//! or is deleted; then the world calms down, and everything is judged.

use std::time::Duration;

use ec2sim::{Effect, Fault, InstanceState, JournalEntry, Outside, Sight};
use freehold_rig::{Hand, Write};
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::house::{House, NAMESPACE, SLOW_ELECTION, SLOW_HEARTBEATS};
use super::lies::Lies;
use crate::properties;
use crate::properties::facts::ebs_volume;
use crate::world::OPERATOR;

/// How long a life may take to come to rest once the world is calm: the longest pauses (an attempt in doubt
/// that is proven absent, a machine that never joined) one after the other.
pub const CALM: Duration = Duration::from_secs(6 * 3600);

/// How long what follows from the last step may be on its way: the longest pause between two passes of an
/// object (`--resync-interval`), and the longest pass.
const SETTLING: Duration = Duration::from_secs(1000);

/// How long nothing may happen then: so long that every object has a pass.
const REST: Duration = Duration::from_secs(900);

/// One thing that is done.
#[derive(Clone, Copy, Debug)]
pub enum Deed {
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
    Announce,
    Hide,
    ZoneOutage,
    DeletePod,
    DeleteKubernetesNode,
    DeleteNode,
}

const DEEDS: [Deed; 16] = [
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
    Deed::Announce,
    Deed::Hide,
    Deed::ZoneOutage,
    Deed::DeletePod,
    Deed::DeleteKubernetesNode,
    Deed::DeleteNode,
];

/// A life as its seed draws it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// How much is wrong with the world.
    pub lies: Lies,
    /// The database's deletion policy.
    pub policy: &'static str,
    /// Whether it is ready before something is done; else things are done to what is half made.
    pub waits: bool,
    /// What is done, with what decides its details, and for how many seconds nothing follows.
    pub deeds: Vec<(Deed, u64, u64)>,
    /// After how many seconds the database is left alone, if it is deleted.
    pub deleted: Option<u64>,
}

impl Plan {
    /// The life of a seed.
    pub fn of(seed: u64, lies: Lies) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let policy = *["Retain", "Retain", "Delete", "Snapshot"].choose(&mut rng).unwrap();
        let waits = rng.random_bool(0.7);
        let deeds = (0..rng.random_range(0..6)).map(|_| {
            let deed = *DEEDS.choose(&mut rng).unwrap();
            let pause = [1, 30, 300, 1800].choose(&mut rng).copied().unwrap();
            (deed, rng.random(), rng.random_range(0..pause) + 1)
        });
        let deeds = deeds.collect();
        let deleted = rng.random_bool(0.6).then(|| rng.random_range(0..300));
        Self { seed, lies, policy, waits, deeds, deleted }
    }

    /// The lives with one thing less: a deed, a kind of lie, the deletion.
    pub fn smaller(&self) -> Vec<Self> {
        let without = |number: usize| {
            let mut plan = self.clone();
            plan.deeds.remove(number);
            plan
        };
        let mut all: Vec<Self> = (0..self.deeds.len()).map(without).collect();
        all.extend(self.deleted.map(|_| Self { deleted: None, ..self.clone() }));
        all.extend(self.lies.fewer().into_iter().map(|lies| Self { lies, ..self.clone() }));
        all
    }
}

/// Lives it; fails if a rule was broken.
pub async fn live(plan: Plan) {
    let mut house = House::build(plan.seed, plan.lies).await;
    let flags: &[&str] = if plan.seed.is_multiple_of(4) { &SLOW_ELECTION } else { &SLOW_HEARTBEATS };
    house.start_with(2, flags);
    house.chaos.tell(&format!("{plan:?}"));
    house.create(&json!({"deletionPolicy": plan.policy})).await;
    if plan.waits {
        house.until_ready_or(Duration::from_secs(3600)).await;
    }
    for (deed, details, pause) in plan.deeds {
        house.chaos.tell(&format!("{deed:?}"));
        house.carry_out(deed, &mut ChaCha8Rng::seed_from_u64(details)).await;
        tokio::time::sleep(Duration::from_secs(pause)).await;
    }
    if let Some(pause) = plan.deleted {
        house.chaos.tell("delete");
        house.delete().await;
        tokio::time::sleep(Duration::from_secs(pause)).await;
    } else {
        house.patch(&json!({"running": true})).await;
    }
    house.chaos.calm();
    if plan.deleted.is_some() {
        house.until_gone(CALM).await;
    } else {
        house.until_ready(CALM).await;
    }
    house.rest().await;
    house.judge();
}

fn is_own_write(write: &Write) -> bool {
    // The leader renews its Lease for ever.
    let of_election = ["events.events.k8s.io", "leases.coordination.k8s.io"];
    write.caller.starts_with("operator") && !of_election.contains(&write.resource.as_str())
}

/// A dry run changes nothing.
fn is_own_change(entry: &JournalEntry) -> bool {
    entry.caller == OPERATOR && !ec2sim::reads(&entry.action) && !entry.dry_run
}

impl House {
    pub async fn carry_out(&self, deed: Deed, rng: &mut ChaCha8Rng) {
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
            Deed::Pause => self.patch(&json!({"running": false})).await,
            Deed::Resume => self.patch(&json!({"running": true})).await,
            Deed::Terminate => self.strike(&Outside::Terminate),
            Deed::Stop => self.strike(&Outside::Stop),
            Deed::Impair => self.strike(&Outside::Impair),
            Deed::Silence => self.silence(rng),
            Deed::Announce => {
                let not_before = self.ec2.now() + Duration::from_secs(7200);
                self.strike(&Outside::Schedule { code: "instance-retirement".to_owned(), not_before });
            }
            Deed::Hide => self.hide(rng),
            Deed::ZoneOutage => self.zone_outage(rng),
            Deed::DeletePod => self.remove("pods", rng),
            Deed::DeleteKubernetesNode => self.remove("nodes", rng),
            Deed::DeleteNode => self.remove("nodes.freehold.dev", rng),
        }
    }

    /// Something happens to every instance that runs.
    pub fn strike(&self, what: &Outside) {
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

    /// What there is cannot be seen for less than the time after which EC2 is believed.
    fn hide(&self, rng: &mut ChaCha8Rng) {
        let sight = [Sight::Id, Sight::Filter, Sight::Tags, Sight::All].choose(rng).copied().unwrap();
        let instances = self.ec2.instances().into_iter().map(|it| it.id);
        for id in instances.chain(self.ec2.volumes().into_iter().map(|it| it.id)) {
            let _ = self.ec2.outside(&Outside::Hide { sight, seconds: 300.0 }.to(&id));
        }
    }

    /// For a while lists fail, and so does what is asked of the machines of a zone.
    fn zone_outage(&self, rng: &mut ChaCha8Rng) {
        let all = self.ec2.instances();
        let Some(zone) = all.choose(rng).map(|it| it.zone.clone()) else { return };
        let unavailable = || Effect::Error { code: "Unavailable".to_owned(), message: String::new() };
        let of = |id: &str| Fault { resource: Some(id.to_owned()), ..Fault::always(unavailable()) };
        let mut faults: Vec<Fault> = all.iter().filter(|it| it.zone == zone).map(|it| of(&it.id)).collect();
        faults.push(Fault::always(Effect::ZoneDown { zone }));
        let ids: Vec<String> = faults.into_iter().map(|fault| self.ec2.add_fault(fault)).collect();
        let (ec2, seconds) = (self.ec2.clone(), [120, 1200, 3000].choose(rng).copied().unwrap());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            for id in &ids {
                ec2.clear_fault(id);
            }
        });
    }

    /// A person deletes an object of this kind.
    fn remove(&self, resource: &str, rng: &mut ChaCha8Rng) {
        let all = self.server.objects(resource);
        if let Some(object) = all.choose(rng) {
            Hand::of(&self.server, "person").delete(resource, object, &json!({}));
        }
    }

    /// Nothing is written and nothing called any more.
    pub async fn rest(&self) {
        let goes_on = |it: &Self| it.chaos.is_any_up() && !it.chaos.is_any_stopped();
        self.until("every process goes on", CALM, goes_on).await;
        tokio::time::sleep(SETTLING).await;
        let (writes, since) = (self.server.journal_length(), self.ec2.now());
        tokio::time::sleep(REST).await;
        let late = self.server.journal_after(writes).into_iter().find(is_own_write);
        assert!(late.is_none(), "it does not come to rest: {late:?}");
        let late = self.ec2.journal().into_iter().find(|it| it.time > since && is_own_change(it));
        assert!(late.is_none(), "it does not come to rest: {late:?}");
    }

    /// Deletes the database when all is at rest, and judges what is left of it.
    pub async fn end_at_rest(&self, limit: Duration) {
        self.rest().await;
        self.delete().await;
        self.until_gone(limit).await;
        self.rest().await;
        self.judge();
    }

    /// Fails if a rule was broken on the way, or something is left at the end.
    pub fn judge(&self) {
        let broken = properties::check(&self.record()).and_then(|()| self.check_end());
        assert!(broken.is_ok(), "{}", broken.unwrap_err());
    }

    /// Everything in EC2 belongs to an object, or is kept.
    pub fn check_end(&self) -> Result<(), String> {
        let uid = |resource: &str| -> Vec<String> {
            let all = self.server.objects(resource);
            all.iter().filter_map(|it| it["metadata"]["uid"].as_str().map(str::to_owned)).collect()
        };
        let nodes = uid("nodes.freehold.dev");
        // What was found and is adopted, or is released, was launched by others or has no owner any more.
        for instance in self.live().into_iter().filter(|it| it.tags.contains_key("freehold.dev/attempt")) {
            let owner = instance.tags.get("freehold.dev/node-uid");
            if !owner.is_some_and(|owner| nodes.contains(owner)) {
                return Err(format!("{} belongs to no Node", instance.id));
            }
        }
        let volumes = uid("volumes.freehold.dev");
        let retained = self.server.objects("persistentvolumes");
        for volume in self.ec2.volumes().iter().filter(|it| it.tags.contains_key("freehold.dev/volume-uid")) {
            let is_owned = volumes.contains(&volume.tags["freehold.dev/volume-uid"]);
            let is_kept = retained.iter().any(|it| ebs_volume(it) == Some(&volume.id));
            if !is_owned && !is_kept {
                return Err(format!("{} belongs to no Volume, and no PersistentVolume keeps it", volume.id));
            }
        }
        let leftovers = ["pods", "statefulsets.apps", "services", "configmaps"];
        let is_left = |it: &&std::sync::Arc<Value>| it["metadata"]["namespace"] == NAMESPACE;
        // What is released goes on without its Database.
        let is_released = self.server.journal().iter().any(|it| it.body["spec"]["release"] == true);
        if !is_released && self.server.objects("databases.freehold.dev").is_empty() {
            for resource in leftovers {
                if let Some(left) = self.server.objects(resource).iter().find(is_left) {
                    return Err(format!("{resource} {} is left", left["metadata"]["name"]));
                }
            }
        }
        Ok(())
    }
}
