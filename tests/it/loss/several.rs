//! Several machines that are lost at once: the limit of repairs, and a zone that looks down.

use ec2sim::Outside;
use freehold::api::{Database, Node};
use kube::ResourceExt as _;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::{happens, hold};
use crate::kit::env::Env as _;
use crate::kit::objects::Told as _;
use crate::kit::rig_env::{RigEnv, run};
use crate::kit::wait::{seen, within};
use crate::lives::life::CALM;

/// Makes this many databases and waits until they run; their names.
async fn several(env: &RigEnv, count: usize) -> Vec<String> {
    let names: Vec<String> = (1..=count).map(|number| format!("db-{number}")).collect();
    for name in &names {
        env.create(name, &json!({})).await;
    }
    for name in &names {
        env.ready(name).await;
    }
    names
}

#[test]
fn of_seven_machines_lost_at_once_all_are_declared_lost_although_no_repair_ends() {
    run(|| async {
        let env = RigEnv::start().await;
        let names = several(&env, 7).await;
        // Held, so that no repair ends.
        let nodes: Vec<Node> = env.list().await;
        for node in &nodes {
            hold(&env, node, true).await;
        }
        for instance in env.live_instances() {
            happens(&env, Outside::Terminate, &instance.id);
        }
        let declared_lost = async || {
            let nodes: Vec<Node> = env.list().await;
            nodes
                .iter()
                .filter(|node| node.status.as_ref().is_some_and(|status| status.fence.is_some()))
                .count()
        };
        // A repair holds a place until its machine's end is shown, not until another machine serves.
        within(CALM, "every machine being declared lost", || async {
            let count = declared_lost().await;
            seen((count == 7).then_some(()), || format!("{count} of 7"))
        })
        .await;
        for node in &nodes {
            hold(&env, node, false).await;
        }
        for name in &names {
            within(CALM, &format!("{name} serving on another machine"), || async {
                let database = env.api::<Database>().get(name).await.map_err(|error| error.to_string())?;
                let is_new = database
                    .status
                    .as_ref()
                    .and_then(|status| status.node_name.as_ref())
                    .is_some_and(|now| nodes.iter().all(|node| node.name_any() != *now));
                seen((is_new && database.condition("Ready").0 == "True").then_some(()), || {
                    format!("{:?}", database.condition("Ready"))
                })
            })
            .await;
        }
        assert_eq!(env.data_volumes().len(), 7);
        env.close().await;
    });
}

#[test]
fn machines_of_a_zone_that_looks_down_are_left_alone_and_serve_again_when_it_is_back() {
    run(|| async {
        let env = RigEnv::start().await;
        // One goes on: where no kubelet reports at all, that is what the message says.
        let names = several(&env, 5).await;
        let before: Vec<String> = env.live_instances().into_iter().map(|instance| instance.id).collect();
        for instance in &before[1..] {
            happens(&env, Outside::Impair, instance);
        }
        within(CALM, "every repair being postponed", || async {
            let nodes: Vec<Node> = env.list().await;
            let held = nodes
                .iter()
                .map(|node| node.condition("Lost"))
                .filter(|lost| lost.1 == "RepairPostponed" && lost.2.contains("zone"));
            let count = held.count();
            seen((count == 4).then_some(()), || {
                format!("{:?}", nodes.iter().map(|node| node.condition("Lost")).collect::<Vec<_>>())
            })
        })
        .await;
        for instance in &before[1..] {
            happens(&env, Outside::Recover, instance);
        }
        for name in &names {
            env.ready(name).await;
        }
        let after: Vec<String> = env.live_instances().into_iter().map(|instance| instance.id).collect();
        assert_eq!((before, env.mutations().get("StopInstances")), (after, None));
        env.close().await;
    });
}
