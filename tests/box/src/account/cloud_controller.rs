//! The cloud-controller's one job here: the Node of a machine that is gone is deleted.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ec2sim::InstanceState;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, ResourceExt as _};

use crate::account::context::Context;
use crate::account::membership;
use crate::base::watching::Watching;

/// How long until a look without any change.
const RESYNC: Duration = Duration::from_secs(1);

/// Runs until the site stops.
pub async fn run(context: Context, removal: Duration) {
    let watching = Watching::new(context.tasks.clone(), context.stop.clone());
    let api = Api::<Node>::all(context.client.clone());
    let nodes = watching.store(api.clone());
    // When each terminated instance was first seen so. Kept for ever: EC2 forgets an instance after an hour,
    // its Node may still be there.
    let mut terminated: HashMap<String, Instant> = HashMap::new();
    let mut changes = context.simulator.changes();
    while !context.stop.is_cancelled() {
        for instance in context.simulator.instances() {
            if instance.state == InstanceState::Terminated {
                terminated.entry(instance.id).or_insert_with(Instant::now);
            }
        }
        let mut next = RESYNC;
        for node in nodes.state() {
            let Some(since) = membership::instance_id(&node).and_then(|id| terminated.get(id)) else {
                continue;
            };
            let left = removal.saturating_sub(since.elapsed());
            if node.metadata.deletion_timestamp.is_some() {
                continue;
            }
            if left.is_zero() {
                delete(&api, &node).await;
            } else {
                next = next.min(left);
            }
        }
        tokio::select! {
            () = watching.changed(next) => {}
            _ = changes.changed() => {}
            () = context.stop.cancelled() => {}
        }
    }
}

/// Deletes exactly this object; finalizers keep it as long as they want.
async fn delete(api: &Api<Node>, node: &Node) {
    let preconditions = Preconditions { uid: node.uid(), resource_version: None };
    let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match api.delete(&node.name_any(), &parameters).await {
        Ok(_) => tracing::info!(node = node.name_any(), "deleted the Node of a terminated machine"),
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {}
        Err(error) => tracing::warn!(node = node.name_any(), %error,
        "could not delete the Node of a terminated machine"),
    }
}
