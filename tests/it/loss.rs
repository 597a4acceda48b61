//! Machines that are lost, each in its own way: which conditions show it, which EC2 calls are made and in
//! which order, and the database afterwards.

mod deleted_by_hand;
mod not_fenced;
mod several;

use ec2sim::{Effect, Fault, InstanceState, Limits, Outside};
use freehold::api::{Database, Node};
use freehold_rig::Verb;
use k8s_openapi::api::core::v1::Node as CoreNode;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::env::Env;
use crate::kit::objects::Told as _;
use crate::kit::rig_env::{RigEnv, run};
use crate::kit::wait::{each, seen, within};
use crate::world::OPERATOR;

/// A taint of Kubernetes' for machines that are stopped for certain.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// What a test environment has while one database runs in it.
struct Running {
    node: Node,
    core_node: String,
    instance: String,
    volume: String,
}

/// Makes the database `name` and waits until it runs.
async fn running(env: &impl Env, name: &str) -> Running {
    env.create(name, &json!({})).await;
    env.ready(name).await;
    let database = env.api::<Database>().get(name).await.unwrap();
    let node = env.api::<Node>().get(&database.status.unwrap().node_name.unwrap()).await.unwrap();
    let status = node.status.clone().unwrap();
    let instance = status.instance_id.unwrap().0;
    let volume = attached_to(env, &instance).remove(0);
    Running { core_node: status.core_node_name.unwrap(), instance, volume, node }
}

/// The data volumes at this machine.
fn attached_to(env: &impl Env, instance: &str) -> Vec<String> {
    let is_there = |volume: &ec2sim::VolumeView| {
        volume.attachment.as_ref().is_some_and(|held| held.instance_id == instance)
    };
    env.data_volumes().into_iter().filter(is_there).map(|volume| volume.id).collect()
}

/// Something happens to a machine behind our backs.
fn happens(env: &impl Env, what: Outside, instance: &str) {
    env.ec2().outside(&what.to(instance)).unwrap();
}

/// Waits until this very Node's condition has this status and reason; gives its message.
async fn until_condition(env: &impl Env, node: &Node, kind: &str, status: &str, reason: &str) -> String {
    within(env.limit(), &format!("Node {} having {kind}={status} for {reason}", node.name_any()), || async {
        let now = env.api::<Node>().get_opt(&node.name_any()).await.map_err(|error| error.to_string())?;
        let Some(now) = now else { return Err("it is gone".to_owned()) };
        let condition = now.condition(kind);
        let is_so = condition.0 == status && condition.1 == reason;
        seen(is_so.then(|| condition.2.clone()), || format!("{:?}", now.conditions()))
    })
    .await
}

/// Holds a Node after our finalizer is gone, so that its last conditions can be read. The operator writes
/// finalizers, too: of two at once one is refused, and looks again.
async fn hold(env: &impl Env, node: &Node, on: bool) {
    let nodes = env.api::<Node>();
    within(env.limit(), "the finalizers as the test wants them", || async {
        let Some(now) = nodes.get_opt(&node.name_any()).await.map_err(|error| error.to_string())? else {
            return Ok(());
        };
        let mut finalizers: Vec<String> = now.finalizers().to_vec();
        finalizers.retain(|finalizer| finalizer != "test.freehold.dev/hold");
        if on {
            finalizers.push("test.freehold.dev/hold".to_owned());
        }
        let patch = json!({"metadata": {"resourceVersion": now.resource_version(),
        "finalizers": finalizers}});
        let patched = nodes.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map(drop).map_err(|error| error.to_string())
    })
    .await;
}

/// The end of each story of a loss: another machine serves with the same volume, the old one is over, and its
/// Kubernetes node is gone.
async fn serves_elsewhere(env: &impl Env, name: &str, old: &Running) {
    hold(env, &old.node, false).await;
    within(env.limit(), "another machine serving", || async {
        let live = env.live_instances();
        let is_other = live.len() == 1
            && live[0].id != old.instance
            && attached_to(env, &live[0].id) == [old.volume.clone()];
        seen(is_other.then_some(()), || {
            format!("{:?}", live.iter().map(|it| (&it.id, it.state)).collect::<Vec<_>>())
        })
    })
    .await;
    env.ready(name).await;
    within(env.limit(), "the lost Node and its Kubernetes node being gone", || async {
        let node =
            env.api::<Node>().get_opt(&old.node.name_any()).await.map_err(|error| error.to_string())?;
        let core_node = Api::<CoreNode>::all(env.client())
            .get_opt(&old.core_node)
            .await
            .map_err(|error| error.to_string())?;
        let node = node.filter(|node| node.uid() == old.node.uid());
        // EC2 gives its address, and so its name, to another machine.
        let is_old = |it: &CoreNode| {
            it.spec
                .as_ref()
                .and_then(|spec| spec.provider_id.as_ref())
                .is_some_and(|id| id.ends_with(&old.instance))
        };
        let core_node = core_node.filter(is_old).map(|it| it.name_any());
        let node = node.map(|it| it.name_any());
        seen((node.is_none() && core_node.is_none()).then_some(()), || format!("{node:?} {core_node:?}"))
    })
    .await;
    assert_eq!(env.data_volumes().len(), 1, "no second volume");
    assert_eq!(env.ec2().instance(&old.instance).map(|view| view.state), Some(InstanceState::Terminated));
}

#[test]
fn a_machine_that_ends_or_falls_ill_is_declared_lost_and_its_database_serves_elsewhere_with_the_same_volume()
{
    let cases = [
        ("lost-terminated", (Outside::Terminate, "InstanceTerminated", false)),
        ("lost-stopped", (Outside::Stop, "InstanceStopped", false)),
        ("lost-impaired", (Outside::Impair, "InstanceImpaired", true)),
    ];
    let cases = cases.map(|(name, case)| (name.to_owned(), case)).to_vec();
    run(|| {
        each(cases, |_, (what, reason, is_fenced)| async move {
            let env = RigEnv::start().await;
            let old = running(&env, "orders").await;
            hold(&env, &old.node, true).await;
            happens(&env, what, &old.instance);
            let message = until_condition(&env, &old.node, "Lost", "True", reason).await;
            assert!(message.contains(&old.instance) && message.contains("since"), "{message}");
            let message = until_condition(&env, &old.node, "Fenced", "True", "AsExpected").await;
            assert!(message.contains("nothing on it can write any more"), "{message}");
            serves_elsewhere(&env, "orders", &old).await;

            let stops = env
                .calls_since(0)
                .into_iter()
                .filter(|entry| entry.action == "StopInstances")
                .collect::<Vec<_>>();
            assert_eq!(!stops.is_empty(), is_fenced, "{stops:?}");
            let declared_lost =
                env.wrote(Verb::Patch, "nodes.freehold.dev", &old.node.name_any(), "\"fence\"").unwrap();
            assert!(
                stops.iter().all(|stop| stop.time > declared_lost),
                "the decision is written down before EC2 is asked"
            );
            let tainted = env.wrote(Verb::Patch, "nodes", &old.core_node, OUT_OF_SERVICE).unwrap();
            assert!(stops.iter().all(|stop| stop.time <= tainted), "and the taint follows the proof");
            let deleted = env.wrote(Verb::Delete, "pods", "orders-0", "\"gracePeriodSeconds\":0");
            assert!(deleted.unwrap() >= tainted);
            env.close().await;
        })
    });
}

#[test]
fn a_machine_whose_kubelet_stays_silent_while_it_runs_is_fenced_first() {
    run(|| async {
        let env = RigEnv::start().await;
        let old = running(&env, "orders").await;
        hold(&env, &old.node, true).await;
        // It hangs, and EC2 does not say so: all that the operator hears of it is that it runs.
        let error = Effect::Error { code: "InternalError".to_owned(), message: "no status today".to_owned() };
        let fault = Fault {
            action: Some("DescribeInstanceStatus".to_owned()),
            caller: Some(OPERATOR.to_owned()),
            ..Fault::always(error)
        };
        env.ec2().add_fault(fault);
        happens(&env, Outside::Impair, &old.instance);
        let message = until_condition(&env, &old.node, "Lost", "True", "NodeNotReady").await;
        assert!(message.contains(&old.core_node), "{message}");
        until_condition(&env, &old.node, "Fenced", "True", "AsExpected").await;
        assert!(env.mutations().contains_key("StopInstances"));
        serves_elsewhere(&env, "orders", &old).await;
        env.close().await;
    });
}

#[test]
fn a_machine_that_is_well_again_within_the_grace_stays() {
    run(|| async {
        let env = RigEnv::start().await;
        let old = running(&env, "orders").await;
        happens(&env, Outside::Impair, &old.instance);
        let message = until_condition(&env, &old.node, "Lost", "False", "InstanceImpaired").await;
        assert!(message.contains("declared lost at"), "{message}");
        happens(&env, Outside::Recover, &old.instance);
        until_condition(&env, &old.node, "Lost", "False", "Progressing").await;
        env.ready("orders").await;
        assert_eq!(env.live_instances().remove(0).id, old.instance);
        assert!(!env.mutations().contains_key("StopInstances"));
        env.close().await;
    });
}

#[test]
fn a_late_kubelet_has_ec2_asked_about_its_machine_long_before_a_sweep() {
    run(|| async {
        // No list of all machines is due.
        let flags = ["--instance-sync-interval", "36000"];
        let env = RigEnv::start_with(&flags, Limits::NONE).await;
        let old = running(&env, "orders").await;
        hold(&env, &old.node, true).await;
        let by_id = |env: &RigEnv| {
            let reads = env.calls_since(0).into_iter().filter(|entry| entry.action == "DescribeInstances");
            reads.filter(|entry| entry.parameters.values().any(|value| value == "instance-id")).count()
        };
        let before = by_id(&env);
        happens(&env, Outside::Terminate, &old.instance);
        until_condition(&env, &old.node, "Fenced", "True", "AsExpected").await;
        assert!(by_id(&env) > before, "EC2 was asked about it, and no sweep was due");
        serves_elsewhere(&env, "orders", &old).await;
        env.close().await;
    });
}
