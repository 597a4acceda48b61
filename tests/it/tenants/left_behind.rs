//! What a tenant leaves behind counts as its own: volumes that are retained, and machines and volumes that
//! are orphaned, again and again.

use freehold::api::{Database, Node, Volume};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PropagationPolicy};
use pretty_assertions::assert_eq;
use serde_json::json;

use super::quota::Tenant;
use crate::kit::env::Env as _;
use crate::kit::objects::Told as _;
use crate::kit::rig_env::{self, RigEnv};
use crate::kit::wait::{seen, within};
use crate::lives::life::CALM;

impl Tenant<'_, RigEnv> {
    async fn delete(&self, name: &str, params: &DeleteParams) {
        self.api::<Database>().delete(name, params).await.unwrap();
    }

    async fn gone(&self, name: &str) {
        within(CALM, &format!("Database {name} being gone"), || async {
            let left = self.api::<Database>().get_opt(name).await.map_err(|error| error.to_string())?;
            left.map_or(Ok(()), |database| Err(format!("{:?}", database.condition("Ready"))))
        })
        .await;
    }

    async fn grow(&self, name: &str, size: &str) {
        let grown = Patch::Merge(json!({"spec": {"storage": {"size": size}}}));
        self.api::<Database>().patch(name, &PatchParams::default(), &grown).await.unwrap();
        within(CALM, &format!("the volume of {name} having {size}"), || async {
            let (_, volumes) = self.nodes_and_volumes().await;
            let sizes: Vec<String> = volumes
                .iter()
                .filter_map(|volume| Some(volume.status.as_ref()?.size.as_ref()?.0.clone()))
                .collect();
            seen(sizes.iter().any(|it| it == size).then_some(()), || format!("{sizes:?}"))
        })
        .await;
    }

    /// Waits until a Database is refused, with these parts in the message.
    async fn refused(&self, name: &str, parts: &[&str]) {
        within(CALM, &format!("Database {name} being refused for {parts:?}"), || async {
            let stalled = self.database(name).await.condition("Stalled");
            let is_so = stalled.1 == "NotPermitted" && parts.iter().all(|part| stalled.2.contains(part));
            seen(is_so.then_some(()), || format!("{stalled:?}"))
        })
        .await;
    }

    async fn nodes_and_volumes(&self) -> (Vec<Node>, Vec<Volume>) {
        let all = ListParams::default();
        let nodes = self.api::<Node>().list(&all).await.unwrap().items;
        (nodes, self.api::<Volume>().list(&all).await.unwrap().items)
    }
}

/// Deletes a Database as `kubectl delete --cascade=orphan` does.
fn orphan() -> DeleteParams {
    DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() }
}

fn first(env: &RigEnv) -> Tenant<'_, RigEnv> {
    Tenant::of(env, "first")
}

fn second(env: &RigEnv) -> Tenant<'_, RigEnv> {
    Tenant::of(env, "second")
}

/// Waits until this line is among the operator's metrics.
async fn until_measured(env: &RigEnv, line: &str) {
    within(CALM, line, || async {
        let text = env.metrics();
        seen(text.lines().any(|it| it == line).then_some(()), || text)
    })
    .await;
}

/// The tenant deletes with the propagation policy Orphan, once while the operator runs and once without its
/// finalizer. The first leaves nothing but a retained volume, the second a Node and a Volume.
async fn orphan_two(env: &RigEnv) {
    let delete = json!({"deletionPolicy": "Delete"});
    second(env).create("one", &delete).await;
    second(env).ready("one").await;
    second(env).delete("one", &orphan()).await;
    second(env).gone("one").await;
    let (nodes, volumes) = second(env).nodes_and_volumes().await;
    assert!(nodes.is_empty() && volumes.is_empty(), "{nodes:?} {volumes:?}");

    second(env).create("two", &delete).await;
    second(env).ready("two").await;
    env.kill_operator();
    let bare = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    second(env).api::<Database>().patch("two", &PatchParams::default(), &bare).await.unwrap();
    second(env).delete("two", &orphan()).await;
    second(env).gone("two").await;
    // It is back after an hour.
    within(CALM, "both orphans reporting it", || async {
        let (nodes, volumes) = second(env).nodes_and_volumes().await;
        let says = (nodes[0].condition("Orphaned"), volumes[0].condition("Orphaned"));
        seen((says.0.0 == "True" && says.1.0 == "True").then_some(()), || format!("{says:?}"))
    })
    .await;
}

#[test]
fn volumes_that_are_retained_and_orphaned_again_and_again_stop_their_own_tenant_and_no_other() {
    rig_env::run(|| async {
        let env = RigEnv::start_of_all().await;
        env.edit_class(&json!({"limits": {"databases": 2, "totalStorage": "350Gi"}})).await;
        Tenant::new(&env, "first").await.create("orders", &json!({})).await;
        Tenant::new(&env, "second").await;
        orphan_two(&env).await;

        let second = second(&env);
        second.create("three", &json!({})).await;
        second.ready("three").await;
        second.create("four", &json!({"storage": {"size": "10Gi"}})).await;
        second.refused("four", &["permits 2 Databases", "1 left orphaned Nodes or Volumes"]).await;
        second.delete("three", &DeleteParams::default()).await;
        second.gone("three").await;
        second.ready("four").await;
        second.create("five", &json!({})).await;
        let has = "has 10Gi of Databases, 100Gi of orphaned Volumes and 200Gi of 2 retained volumes";
        second.refused("five", &[has, "requests 100Gi more"]).await;
        until_measured(&env, "freehold_retained_volumes{namespace=\"second\"} 2").await;

        let first = first(&env);
        first.ready("orders").await;
        first.grow("orders", "200Gi").await;
        first.create("events", &json!({})).await;
        first.ready("events").await;
        first.ready("orders").await;

        // The way out of the platform team.
        let (nodes, volumes) = second.nodes_and_volumes().await;
        let now = DeleteParams::default();
        for orphan in nodes.iter().filter(|node| node.owner_references().is_empty()) {
            second.api::<Node>().delete(&orphan.name_any(), &now).await.unwrap();
        }
        for orphan in volumes.iter().filter(|volume| volume.owner_references().is_empty()) {
            second.api::<Volume>().delete(&orphan.name_any(), &now).await.unwrap();
        }
        second.ready("five").await;
        assert_eq!(env.live_instances().len(), 4, "those of four, five, orders and events");
        env.close().await;
    });
}
