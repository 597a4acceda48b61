//! The kubelet of all virtual machines: simulates the pods that are bound to Nodes which heartbeat.
//!
//! kwok's own pod stages make a pod Ready whatever its volumes do, and a marker that they could wait for
//! would have to be written into each pod, where a real cluster writes nothing. So the pods are simulated
//! here: a pod starts once every volume of it is attached to its Node and the Secrets and `ConfigMaps` that
//! it names are there, ends when it is deleted, and stays as it is while its machine is dead, as under a real
//! kubelet.

mod act;
mod plan;

use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use k8s_openapi::jiff::Timestamp;
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use plan::is_ready;

use crate::base::watching::Watching;

/// How long changes are collected before they are looked at together.
const COALESCE: Duration = Duration::from_millis(20);
/// How long until a look without any change, for a write that failed.
const RESYNC: Duration = Duration::from_secs(2);
/// How many writes are under way at once.
const CONCURRENCY: usize = 8;

/// Simulates pods until `stop`.
pub async fn run(client: Client, stop: CancellationToken) {
    let watching = Watching::new(TaskTracker::new(), stop.clone());
    let pods = watching.store(Api::<Pod>::all(client.clone()));
    let nodes = watching.store(Api::<Node>::all(client.clone()));
    let claims = watching.store(Api::<PersistentVolumeClaim>::all(client.clone()));
    let volumes = watching.store(Api::<PersistentVolume>::all(client.clone()));
    let secrets = watching.store(Api::<Secret>::all(client.clone()));
    let config_maps = watching.store(Api::<ConfigMap>::all(client.clone()));
    let attachments = watching.store(Api::<VolumeAttachment>::all(client.clone()));
    let mut addresses = plan::Addresses::default();
    while !stop.is_cancelled() {
        tokio::select! {
            () = watching.changed(RESYNC) => {}
            () = stop.cancelled() => return,
        }
        tokio::time::sleep(COALESCE).await;
        let world = plan::World {
            pods: pods.state(),
            nodes: nodes.state(),
            claims: claims.state(),
            volumes: volumes.state(),
            secrets: secrets.state(),
            config_maps: config_maps.state(),
            attachments: attachments.state(),
        };
        let actions = plan::plan(&world, Timestamp::now(), &mut addresses);
        futures::stream::iter(actions)
            .for_each_concurrent(CONCURRENCY, |action| act::act(&client, action))
            .await;
    }
}
