//! Objects of a database that are deleted by hand: its Kubernetes node, its Node, its StatefulSet, its claim.

use ec2sim::{Effect, Fault};
use freehold::api::Node;
use freehold::api::keys::DATABASE_NODE_LABEL;
use freehold_rig::Verb;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Node as CoreNode, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::json;

use super::{attached_to, hold, running, serves_elsewhere, until_condition};
use crate::kit::env::Env as _;
use crate::kit::rig_env::{RigEnv, run};
use crate::kit::wait::{seen, within};
use crate::lives::life::CALM;

/// No machine can be launched until the fault is cleared: the conditions of that time stay.
fn no_machine(env: &RigEnv) -> String {
    let effect = Effect::CapacityOut { instance_type: None, zone: None };
    env.ec2().add_fault(Fault { action: Some("RunInstances".to_owned()), ..Fault::always(effect) })
}

/// Waits until the pod `orders-0` is another one than this and ready: the Database's condition may still
/// speak of the one before.
async fn other_pod(env: &RigEnv, old: &Pod) -> Pod {
    within(CALM, "another pod that is ready", || async {
        let pod = env.api::<Pod>().get_opt("orders-0").await.map_err(|error| error.to_string())?;
        let is_ready = |pod: &Pod| {
            let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
            conditions.any(|it| it.type_ == "Ready" && it.status == "True")
        };
        seen(pod.filter(|pod| pod.uid() != old.uid() && is_ready(pod)), || "it is not there".to_owned())
    })
    .await
}

#[test]
fn a_kubernetes_node_that_is_gone_under_a_running_machine_means_that_the_machine_is_lost_and_fenced() {
    run(|| async {
        let env = RigEnv::start().await;
        let old = running(&env, "orders").await;
        hold(&env, &old.node, true).await;
        let core_nodes = Api::<CoreNode>::all(env.client());
        // In this order: the operator gives its finalizer back to a Node that is not being deleted.
        core_nodes.delete(&old.core_node, &DeleteParams::default()).await.unwrap();
        let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        core_nodes.patch(&old.core_node, &PatchParams::default(), &free).await.unwrap();
        let message = until_condition(&env, &old.node, "Lost", "True", "NodeGone").await;
        assert!(message.contains(&old.core_node), "{message}");
        until_condition(&env, &old.node, "Fenced", "True", "AsExpected").await;
        assert!(env.mutations().contains_key("StopInstances"));
        serves_elsewhere(&env, "orders", &old).await;
        // The rules are not judged: Kubernetes detaches the volumes of a Kubernetes node that is gone, and
        // the person took off the finalizer by which Freehold holds it.
    });
}

#[test]
fn a_node_of_ours_that_is_deleted_by_hand_is_not_emptied_before_its_database_has_moved() {
    run(|| async {
        let env = RigEnv::start().await;
        let old = running(&env, "orders").await;
        let fault = no_machine(&env);
        env.api::<Node>().delete(&old.node.name_any(), &DeleteParams::default()).await.unwrap();
        let message = until_condition(&env, &old.node, "Ready", "False", "Deleting").await;
        assert!(message.contains(&old.core_node), "{message}");
        let core_node = Api::<CoreNode>::all(env.client()).get(&old.core_node).await.unwrap();
        let is_cordoned = core_node.spec.and_then(|spec| spec.unschedulable).unwrap_or_default();
        assert!(!is_cordoned, "its pod must be able to come back until the move");
        env.ec2().clear_fault(&fault);
        serves_elsewhere(&env, "orders", &old).await;
        let cordoned = env.wrote(Verb::Patch, "nodes", &old.core_node, "\"unschedulable\":true");
        let label = format!("\"{DATABASE_NODE_LABEL}\":null");
        let unlabelled = env.wrote(Verb::Patch, "nodes", &old.core_node, &label);
        assert!(unlabelled.is_some() && unlabelled <= cordoned, "{unlabelled:?} {cordoned:?}");
        env.close().await;
    });
}

#[test]
fn a_kubernetes_node_that_is_being_deleted_under_a_machine_that_is_well_leads_to_a_planned_replacement() {
    run(|| async {
        let env = RigEnv::start().await;
        let old = running(&env, "orders").await;
        let fault = no_machine(&env);
        Api::<CoreNode>::all(env.client()).delete(&old.core_node, &DeleteParams::default()).await.unwrap();
        let message = until_condition(&env, &old.node, "Ready", "False", "KubernetesNodeDeleted").await;
        assert!(message.contains(&old.core_node), "{message}");
        env.ec2().clear_fault(&fault);
        serves_elsewhere(&env, "orders", &old).await;
        assert!(!env.mutations().contains_key("StopInstances"), "in good order: nothing is fenced");
        env.close().await;
    });
}

#[test]
fn a_stateful_set_or_a_claim_that_is_deleted_by_hand_comes_back_on_the_same_machine_and_disk() {
    run(|| async {
        let env = RigEnv::start().await;
        let old = running(&env, "orders").await;
        let set = env.list::<StatefulSet>().await.remove(0);
        let first = env.list::<Pod>().await.remove(0);
        env.api::<StatefulSet>().delete(&set.name_any(), &DeleteParams::background()).await.unwrap();
        within(CALM, "another StatefulSet", || async {
            let now =
                env.api::<StatefulSet>().get_opt(&set.name_any()).await.map_err(|error| error.to_string())?;
            seen(now.filter(|now| now.uid() != set.uid()).map(|_| ()), || "it is not there".to_owned())
        })
        .await;
        let pod = other_pod(&env, &first).await;
        env.ready("orders").await;

        let claim = env.list::<PersistentVolumeClaim>().await.remove(0);
        env.api::<PersistentVolumeClaim>().delete(&claim.name_any(), &DeleteParams::default()).await.unwrap();
        env.api::<Pod>().delete(&pod.name_any(), &DeleteParams::default()).await.unwrap();
        within(CALM, "another claim", || async {
            let now = env
                .api::<PersistentVolumeClaim>()
                .get_opt(&claim.name_any())
                .await
                .map_err(|error| error.to_string())?;
            seen(now.filter(|now| now.uid() != claim.uid()).map(|_| ()), || "it is not there".to_owned())
        })
        .await;
        other_pod(&env, &pod).await;
        env.ready("orders").await;
        assert_eq!(
            (env.live_instances().remove(0).id, attached_to(&env, &old.instance)),
            (old.instance, vec![old.volume])
        );
        assert_eq!((env.ec2().instances().len(), env.data_volumes().len()), (1, 1));
        env.close().await;
    });
}
