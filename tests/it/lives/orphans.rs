//! A person removes finalizers, and lists what is left in EC2.

use clap::Parser as _;
use freehold::cloud::Cloud;
use freehold::orphans;
use freehold_rig::Hand;
use serde_json::{Value, json};

use super::house::House;
use super::lies::Lies;
use super::life::CALM;
use crate::model_cloud::ModelCloud;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    options: orphans::Options,
}

/// What `freehold orphans` prints with these arguments.
async fn printed(house: &House, arguments: &[&str]) -> String {
    let line = ["orphans", "--cluster-id", "rig"].iter().chain(arguments);
    let cloud: Box<dyn Cloud> = Box::new(ModelCloud::new(house.ec2.clone(), "AKIAPERSON"));
    let options = Line::parse_from(line).options;
    orphans::run(&options, &house.person, cloud.as_ref(), house.ec2.now()).await.unwrap()
}

impl House {
    /// Deletes every object of a kind, whatever finalizer it has.
    fn tear_off(&self, resource: &str) {
        for object in self.server.objects(resource) {
            let hand = Hand::of(&self.server, "person");
            hand.merge(resource, &object, "", &json!({"metadata": {"finalizers": null}}));
            hand.delete(resource, &object, &json!({}));
        }
    }
}

/// Lives it.
pub async fn listed() {
    let mut house = House::build(1, Lies::none()).await;
    house.start();
    house.create(&json!({"deletionPolicy": "Retain"})).await;
    house.until_ready(CALM).await;
    assert_eq!(printed(&house, &[]).await, "EC2 has nothing of this cluster that no object claims\n");
    let (instance, volume) = (house.ec2.instances()[0].clone(), house.ec2.volumes());
    let volume = volume.into_iter().find(|it| it.tags.contains_key("freehold.dev/volume-uid")).unwrap();

    // The Volume is still there: it waits for what the instance holds.
    let name = house.server.objects("volumes.freehold.dev")[0]["metadata"]["name"].clone();
    house.tear_off("nodes.freehold.dev");
    let text = printed(&house, &[]).await;
    let held = format!(
        "EBS volume {} is attached, and Volume team-a/{} waits for it",
        volume.id,
        name.as_str().unwrap()
    );
    let line = text.lines().find(|line| line.contains(&instance.id)).unwrap();
    assert!(line.starts_with("instance  ") && line.contains("team-a/orders  running"), "{text}");
    assert!(line.ends_with(&held), "{text}");
    let command = format!("aws ec2 terminate-instances --instance-ids {}", instance.id);
    assert!(text.lines().any(|line| line.trim() == command), "{text}");
    assert!(!text.contains(&format!("volume    {}", volume.id)), "{text}");

    house.tear_off("volumes.freehold.dev");
    let list: Value = serde_json::from_str(&printed(&house, &["-o", "json", "-n", "team-a"]).await).unwrap();
    let of = |id: &str| list.as_array().unwrap().iter().find(|it| it["id"] == id).cloned().unwrap();
    assert_eq!((&of(&volume.id)["kind"], &of(&volume.id)["size"]), (&json!("volume"), &json!("100 GiB")));
    assert_eq!(of(&volume.id)["holds"][0], format!("it is attached to instance {}", instance.id));
    let nowhere = printed(&house, &["-n", "team-b"]).await;
    assert_eq!(nowhere, "EC2 has nothing of namespace team-b that no object claims\n");

    // The operator says so by itself, once no object has claimed it for long.
    let is_reported = |house: &House| {
        house.server.objects("events.events.k8s.io").iter().any(|event| {
            let note = event["note"].as_str().unwrap_or_default();
            event["reason"] == "UnclaimedResource" && note.contains(&instance.id)
        })
    };
    house.until("the report of the instance", CALM, is_reported).await;

    // Nothing was changed by it.
    let calls = house.ec2.journal().into_iter().filter(|it| it.caller == "AKIAPERSON");
    assert!(calls.into_iter().all(|it| ec2sim::reads(&it.action)));
}
