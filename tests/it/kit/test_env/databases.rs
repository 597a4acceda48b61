//! The deletion of a test environment's Databases.

use freehold::api::keys::FINALIZER;
use freehold::api::{Database, Node, Volume};
use k8s_openapi::api::core::v1::Node as CoreNode;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt as _};

use super::TestEnv;
use crate::kit::env::Env as _;
use crate::kit::objects::Told as _;
use crate::kit::wait::until;

impl TestEnv {
    /// Deletes a Database. From here on nothing may be launched for those of its Nodes that have their
    /// machine; another one may be on its way where that has ended.
    pub async fn delete(&mut self, name: &str) {
        let nodes: Vec<Node> = self.list().await;
        self.api::<Database>().delete(name, &DeleteParams::default()).await.unwrap();
        let last = self.ec2().journal().last().map_or(0, |entry| entry.seq);
        let live: Vec<String> = self.live_instances().into_iter().map(|instance| instance.id).collect();
        let launched = |node: &&Node| {
            let id = node.status.as_ref().and_then(|status| status.instance_id.as_ref());
            id.is_some_and(|id| live.contains(&id.0))
        };
        self.deleted.extend(nodes.iter().filter(launched).filter_map(|node| Some((node.uid()?, last))));
    }

    /// Waits until a Database and its children are gone.
    pub async fn gone(&self, name: &str) {
        until(&format!("Database {name} being gone"), || async {
            let left = self.api::<Database>().get_opt(name).await.map_err(|error| error.to_string())?;
            match left {
                Some(database) => Err(format!("{:?}", database.condition("Ready"))),
                None => Ok(()),
            }
        })
        .await;
        assert!(
            self.list::<Node>().await.is_empty() && self.list::<Volume>().await.is_empty(),
            "a child outlives its Database"
        );
        let machines: Vec<String> = self
            .ec2()
            .instances()
            .iter()
            .map(|machine| format!("aws:///{}/{}", machine.zone, machine.id))
            .collect();
        let core_nodes =
            Api::<CoreNode>::all(self.client.clone()).list(&ListParams::default()).await.unwrap();
        let is_held = |node: &&CoreNode| {
            let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_ref());
            provider_id.is_some_and(|id| machines.contains(id))
                && node.finalizers().iter().any(|it| it == FINALIZER)
        };
        let held: Vec<String> =
            core_nodes.items.iter().filter(is_held).map(kube::ResourceExt::name_any).collect();
        assert!(
            held.is_empty(),
            "the machines are gone, and our finalizer still holds the core Nodes {held:?}"
        );
    }
}
