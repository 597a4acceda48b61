//! A person takes a part of a status away, or all of it: nothing is launched or created for that.

use std::time::Duration;

use ec2sim::{Effect, Outside, Sight};
use freehold_rig::Hand;
use serde_json::{Map, Value, json};

use super::house::House;
use super::lies::Lies;
use super::life::CALM;

const NODES: &str = "nodes.freehold.dev";
const VOLUMES: &str = "volumes.freehold.dev";

/// What is taken away: of which kind, and which fields of the status.
const PARTS: [(&str, &[&str]); 14] = [
    (NODES, &["instanceID"]),
    (NODES, &["creation"]),
    (NODES, &["creation", "instanceID"]),
    (NODES, &["conditions"]),
    (NODES, &["conditions", "instanceID"]),
    (NODES, &["coreNodeName", "providerID", "zone", "instanceType"]),
    (NODES, &["conditions", "coreNodeName", "creation", "instanceID", "providerID", "zone"]),
    (VOLUMES, &["volumeID"]),
    (VOLUMES, &["creation"]),
    (VOLUMES, &["creation", "volumeID"]),
    (VOLUMES, &["conditions"]),
    (VOLUMES, &["everHeld", "persistentVolumeName"]),
    (VOLUMES, &["creation", "everHeld", "persistentVolumeName", "volumeID"]),
    (VOLUMES, &["conditions", "creation", "everHeld", "persistentVolumeName", "size", "volumeID"]),
];

/// When it is taken away.
#[derive(Clone, Copy, Debug, strum::EnumIter)]
pub enum When {
    /// As soon as there is an instance, or an EBS volume.
    JustMade,
    /// Once the database serves.
    Serving,
    /// Then, and EC2 does not show what there is for a while.
    Hidden,
    /// As soon as there is one, by a second attempt, and EC2 does not show it for a while.
    SecondAttempt,
}

/// One life.
#[derive(Clone, Copy, Debug)]
pub struct Wiped {
    resource: &'static str,
    fields: &'static [&'static str],
    when: When,
}

/// All of them.
pub fn all() -> impl Iterator<Item = Wiped> {
    use strum::IntoEnumIterator as _;
    let at = |(resource, fields)| When::iter().map(move |when| Wiped { resource, fields, when });
    PARTS.into_iter().flat_map(at)
}

/// What there is in EC2, for good.
fn made(house: &House) -> (Vec<String>, Vec<String>) {
    let is_data = |it: &ec2sim::VolumeView| it.tags.contains_key("freehold.dev/volume-uid");
    let volumes = house.ec2.volumes().into_iter().filter(is_data).map(|it| it.id).collect();
    (house.ec2.instances().into_iter().map(|it| it.id).collect(), volumes)
}

impl Wiped {
    fn is_made(self, house: &House) -> bool {
        let (instances, volumes) = made(house);
        !(if self.resource == NODES { instances } else { volumes }).is_empty()
    }

    fn take_away(self, house: &House) {
        let fields: Map<String, Value> =
            self.fields.iter().map(|field| ((*field).to_owned(), Value::Null)).collect();
        for object in house.server.objects(self.resource) {
            Hand::of(&house.server, "person").merge(
                self.resource,
                &object,
                "/status",
                &json!({"status": fields}),
            );
        }
    }

    fn refuse_first(self, house: &House) {
        let full = Effect::Error { code: "InsufficientInstanceCapacity".to_owned(), message: String::new() };
        let gone = Effect::Error { code: "InsufficientVolumeCapacity".to_owned(), message: String::new() };
        let (action, effect) =
            if self.resource == NODES { ("RunInstances", full) } else { ("CreateVolume", gone) };
        house.lie(action, effect, 1);
    }

    fn hide(house: &House) {
        let (instances, volumes) = made(house);
        for id in instances.into_iter().chain(volumes) {
            let _ = house.ec2.outside(&Outside::Hide { sight: Sight::All, seconds: 240.0 }.to(&id));
        }
    }

    /// Lives it.
    pub async fn live(self) {
        let mut house = House::build(1, Lies::none()).await;
        house.start();
        house.chaos.tell(&format!("{self:?}"));
        if matches!(self.when, When::SecondAttempt) {
            self.refuse_first(&house);
        }
        house.create(&json!({"deletionPolicy": "Retain"})).await;
        match self.when {
            When::JustMade | When::SecondAttempt => {
                house.until("it is made", CALM, |house| self.is_made(house)).await;
            }
            When::Serving | When::Hidden => house.until_ready(CALM).await,
        }
        let before = made(&house);
        if matches!(self.when, When::Hidden | When::SecondAttempt) {
            Self::hide(&house);
        }
        self.take_away(&house);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        house.until_ready(CALM).await;
        house.rest().await;
        let after = made(&house);
        assert_eq!((&before.0, after.1.len()), (&after.0, 1), "another one was made");
        assert!(before.1.iter().all(|id| after.1.contains(id)), "another volume was made");
        house.judge();
    }
}
