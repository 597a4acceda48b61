//! A life in which the retention record of a volume is cleaned up, and is written again from EC2's tags.

use std::time::Duration;

use clap::Parser;
use freehold::api::Volume;
use freehold::clock::SystemClock;
use freehold::retained;
use freehold_rig::Hand;
use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{Api, DeleteParams};
use serde_json::json;

use super::house::{House, NAMESPACE};
use super::lies::Lies;
use crate::model_cloud::ModelCloud;

const LONG: Duration = Duration::from_secs(3 * 3600);

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: retained::Options,
}

/// `freehold retained --from-ec2` with these arguments: what it prints, or why it does nothing.
async fn command(house: &House, arguments: &[&str]) -> Result<String, String> {
    let line = ["freehold", "--from-ec2", "--cluster-id", "rig", "--namespace", NAMESPACE];
    let options = Line::parse_from(line.iter().chain(arguments)).options;
    let cloud = ModelCloud::new(house.ec2.clone(), "person");
    let answer = retained::run_from_ec2(&options, &house.person, &cloud, &SystemClock).await;
    answer.map_err(|error| error.to_string())
}

/// How what is retained is cut off from its record.
#[derive(Clone, Copy, Debug, strum::EnumIter)]
pub enum CutOff {
    /// The PersistentVolume is deleted once it is Released.
    RecordDeleted,
    /// The Volume is deleted, and Freehold's finalizer removed from it.
    VolumeRemoved,
}

/// The volume is found by its tags, recorded anew, and adopted; nothing is written for one that is in use.
pub async fn found_again(cut: CutOff) {
    let mut house = House::build(1, Lies::none()).await;
    house.start();
    house.create(&json!({"deletionPolicy": "Retain"})).await;
    house.until_ready(LONG).await;
    let volume = house.volume_id();
    let write = ["--write", volume.as_str(), "--engine", "questdb", "--engine-version", "9.3.4"];
    assert!(command(&house, &write).await.unwrap_err().contains("is not among those that are listed"));
    match cut {
        CutOff::RecordDeleted => {
            house.delete().await;
            house.until_gone(LONG).await;
            house.until("the record is released", LONG, House::is_released).await;
            house.clean_up().await;
        }
        CutOff::VolumeRemoved => {
            house.lose_finalizer().await;
            house.delete().await;
            house.until_gone(LONG).await;
            house.until("the claim is gone", LONG, House::is_released).await;
        }
    }
    let listed = command(&house, &[]).await.unwrap();
    assert!(listed.contains(&volume), "{listed}");
    let answer = command(&house, &write).await.unwrap();
    assert!(answer.contains("is a retention record"), "{answer}");
    house.until("the record is released", LONG, House::is_released).await;
    assert!(!command(&house, &[]).await.unwrap().contains(&volume), "it has its record again");
    house.adopt("Delete").await;
    house.until_ready(LONG).await;
    assert_eq!(house.volume_id(), volume, "with its data");
    house.rest().await;
    house.judge();
}

const VOLUMES: &str = "volumes.freehold.dev";

impl House {
    /// The one EBS volume with data.
    fn volume_id(&self) -> String {
        let volumes = self.data_volumes();
        assert_eq!(volumes.len(), 1, "{volumes:?}");
        volumes[0].id.clone()
    }

    /// Deletes every PersistentVolume.
    async fn clean_up(&self) {
        self.chaos.tell("delete the PersistentVolumes");
        let records = Api::<PersistentVolume>::all(self.person.clone());
        for record in self.server.objects("persistentvolumes") {
            let name = record["metadata"]["name"].as_str().unwrap();
            records.delete(name, &DeleteParams::default()).await.unwrap();
        }
        let is_empty = |it: &Self| it.server.objects("persistentvolumes").is_empty();
        self.until("no PersistentVolume is there", LONG, is_empty).await;
    }

    /// Deletes every Volume, and removes its finalizers.
    async fn lose_finalizer(&self) {
        self.chaos.tell("delete the Volume, and remove its finalizer");
        for object in self.server.objects(VOLUMES) {
            let name = object["metadata"]["name"].as_str().unwrap();
            let volumes = Api::<Volume>::namespaced(self.person.clone(), NAMESPACE);
            volumes.delete(name, &DeleteParams::default()).await.unwrap();
            let none = json!({"metadata": {"finalizers": null}});
            Hand::of(&self.server, "person").merge(VOLUMES, &object, "", &none);
        }
        self.until("the Volume is gone", LONG, |it| it.server.objects(VOLUMES).is_empty()).await;
    }
}
