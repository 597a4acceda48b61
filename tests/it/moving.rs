//! A database on another machine because a person wants it there, paused and resumed on the way.

use ec2sim::{Effect, Fault, InstanceState};
use freehold::api::{Database, Node};
use k8s_openapi::api::core::v1::{Node as CoreNode, Pod};
use kube::api::EvictParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::kit::env::Env;
use crate::kit::objects::Told as _;
use crate::kit::rig_env::{self, RigEnv};
use crate::kit::test_env::{OPERATOR, TestEnv, run};
use crate::kit::wait::{each, seen, within};
use crate::lives::life::CALM;

/// No capacity for this type, for the operator.
fn no_capacity(instance_type: &str) -> Fault {
    let effect = Effect::CapacityOut { instance_type: Some(instance_type.to_owned()), zone: None };
    Fault { action: None, caller: Some(OPERATOR.to_owned()), ..Fault::always(effect) }
}

/// Makes the database `orders` and waits until it runs; its machine and its disk.
async fn running(env: &impl Env) -> (String, String) {
    running_as(env, &json!({})).await
}

/// The same with this spec.
async fn running_as(env: &impl Env, spec: &Value) -> (String, String) {
    env.create("orders", spec).await;
    env.ready("orders").await;
    (env.live_instances().remove(0).id, env.data_volumes().remove(0).id)
}

/// Waits until the database runs on another machine of this type with the same disk, and the old machine is
/// over.
async fn moved(env: &impl Env, from: &str, disk: &str, to: &str) -> Database {
    within(env.limit(), "the database on another machine", || async {
        let live = env.live_instances();
        let holder = env.data_volumes().remove(0).attachment.map(|held| held.instance_id);
        let is_moved = live.len() == 1
            && live[0].id != from
            && live[0].instance_type == to
            && holder.as_ref() == Some(&live[0].id);
        seen(is_moved.then_some(()), || {
            format!("{:?} {holder:?}", live.iter().map(|it| (&it.id, &it.instance_type)).collect::<Vec<_>>())
        })
    })
    .await;
    let database = env.ready("orders").await;
    assert_eq!(env.data_volumes().into_iter().map(|volume| volume.id).collect::<Vec<_>>(), [disk]);
    within(env.limit(), "the old machine being over, and the record of the replacement with it", || async {
        let status =
            env.api::<Database>().get("orders").await.map_err(|error| error.to_string())?.status.unwrap();
        let nodes = env.list::<Node>().await.len();
        let state = env.ec2().instance(from).map(|view| view.state);
        let is_over = status.replacement.is_none() && nodes == 1 && state == Some(InstanceState::Terminated);
        seen(is_over.then_some(()), || format!("{nodes} Nodes, {state:?}, {:?}", status.replacement))
    })
    .await;
    database
}

async fn pod_uid(env: &impl Env) -> Option<String> {
    env.api::<Pod>().get_opt("orders-0").await.unwrap().and_then(|pod| pod.uid())
}

#[test]
fn a_type_that_leaves_the_list_is_replaced_and_the_old_machine_serves_until_the_new_one_is_proven() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        let (machine, disk) = running(&env).await;
        let pod = pod_uid(&env).await;
        env.ec2().add_fault(no_capacity("m7i.large"));
        env.edit("orders", &json!({"instanceTypes": ["m7i.large", "c7i.large"]})).await;
        // The first type has no capacity: the next one is taken.
        let database = moved(&env, &machine, &disk, "c7i.large").await;
        assert_ne!(pod_uid(&env).await, pod);
        let status = database.status.unwrap();
        let last = status.history.last().unwrap();
        assert!(
            last.cause.contains("its type r7i.large is no longer in spec.instanceTypes"),
            "{:?}",
            status.history
        );
        assert_eq!(status.instance_type.as_deref(), Some("c7i.large"));
        let launched = env.calls_since(0).into_iter().filter(|entry| entry.action == "RunInstances").count();
        assert_eq!((env.ec2().instances().len(), launched), (2, 3), "one refusal, two machines");
        env.close().await;
    });
}

#[test]
fn without_capacity_the_old_machine_serves_on_until_the_edit_is_taken_back() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        let (machine, disk) = running(&env).await;
        let pod = pod_uid(&env).await;
        env.ec2().add_fault(no_capacity("m7i.large"));
        env.ec2().add_fault(no_capacity("c7i.large"));
        env.edit("orders", &json!({"instanceTypes": ["m7i.large", "c7i.large"]})).await;
        let zone = env.data_volumes().remove(0).zone;
        within(CALM, "the condition naming every refusal and the time of the next try", || async {
            let message = env
                .api::<Database>()
                .get("orders")
                .await
                .map_err(|error| error.to_string())?
                .condition("Ready")
                .2;
            let parts = [
                "which serves until then",
                &format!("m7i.large in {zone}"),
                &format!("c7i.large in {zone}"),
                "is requested again at 2",
            ];
            seen(parts.iter().all(|part| message.contains(part)).then_some(()), || message.clone())
        })
        .await;
        let database = env.api::<Database>().get("orders").await.unwrap();
        assert_eq!(
            (database.condition("EngineReady").0, database.condition("NodeReady").0),
            ("True".to_owned(), "True".to_owned())
        );
        let replacement = database.status.unwrap().replacement.unwrap();
        assert_eq!(
            (replacement.from.ends_with("-1"), replacement.to.ends_with("-2")),
            (true, true),
            "{replacement:?}"
        );

        env.edit("orders", &json!({"instanceTypes": ["r7i.large"]})).await;
        env.ready("orders").await;
        within(CALM, "one Node again", || async {
            seen((env.list::<Node>().await.len() == 1).then_some(()), || "two".to_owned())
        })
        .await;
        assert_eq!(
            env.live_instances().into_iter().map(|it| it.id).collect::<Vec<_>>(),
            [machine],
            "the old machine stays"
        );
        assert_eq!(
            (pod_uid(&env).await, env.data_volumes().remove(0).id),
            (pod, disk),
            "and nothing was restarted"
        );
        env.close().await;
    });
}

/// A client to which a refused eviction (429) is an answer, and not repeated.
async fn drainer(env: &TestEnv) -> Client {
    let kubeconfig = Kubeconfig::read_from(env.control_plane.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

/// One eviction as `kubectl drain` sends it, by the pod's name: whether the drain is over with it. What is
/// refused is repeated; a pod that is Pending or being deleted may always be evicted.
async fn evicted(drainer: &Client, env: &TestEnv) -> Result<(), String> {
    let pods = Api::<Pod>::namespaced(drainer.clone(), &env.name);
    match pods.evict("orders-0", &EvictParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 429 => Err(status.message.clone()),
        Err(other) => panic!("kubectl drain fails: {other}"),
    }
}

#[test]
fn a_drain_waits_until_another_machine_is_ready_and_ends_when_the_pod_leaves() {
    run(async {
        let env = TestEnv::start("drained").await;
        let (machine, disk) = running_as(&env, &json!({"instanceTypes": ["r7i.large"]})).await;
        let old = pod_uid(&env).await;
        let effect = Effect::CapacityOut { instance_type: None, zone: None };
        let fault =
            env.ec2().add_fault(Fault { action: Some("RunInstances".to_owned()), ..Fault::always(effect) });
        let core_nodes = Api::<CoreNode>::all(env.client.clone());
        let pod = env.api::<Pod>().get("orders-0").await.unwrap();
        core_nodes.cordon(&pod.spec.unwrap().node_name.unwrap()).await.unwrap();
        let message = within(env.limit(), "the message of what the cordon does", || async {
            let node = env.list::<Node>().await.remove(0);
            let needed = node.status.and_then(|status| status.replacement_needed);
            seen(needed.map(|needed| needed.message), || "nothing is needed yet".to_owned())
        })
        .await;
        assert!(message.contains("cordoned"), "{message}");
        let drainer = drainer(&env).await;
        let refused = evicted(&drainer, &env).await.unwrap_err();
        assert!(refused.contains("disruption budget"), "{refused}");
        assert_eq!(pod_uid(&env).await, old, "it serves on while there is no other machine");
        env.ec2().clear_fault(&fault);
        within(env.limit(), "the drain being over", || async {
            // On a slow host no eviction may fall into the moments in which the pod is stopped or Pending.
            let is_another = pod_uid(&env).await.is_some_and(|uid| Some(uid) != old);
            if is_another { Ok(()) } else { evicted(&drainer, &env).await }
        })
        .await;
        moved(&env, &machine, &disk, "r7i.large").await;
        assert_ne!(pod_uid(&env).await, old);
        env.close().await;
    });
}

#[test]
fn a_pause_is_reached_from_every_phase_and_the_disk_is_the_same_after_it() {
    let phases = ["launching", "replacing", "lost", "node-deleted"];
    let cases = phases.map(|phase| (format!("pause-{phase}"), phase)).to_vec();
    rig_env::run(|| {
        each(cases, |_, phase| async move {
            let env = RigEnv::start().await;
            let mut disk = None;
            if phase == "launching" {
                let fault = env.ec2().add_fault(Fault {
                    caller: Some(OPERATOR.to_owned()),
                    ..Fault::always(Effect::CapacityOut { instance_type: None, zone: None })
                });
                env.create("orders", &json!({})).await;
                env.until_condition("orders", "Ready", "False", "InsufficientCapacity").await;
                env.edit("orders", &json!({"running": false})).await;
                env.until_condition("orders", "Ready", "False", "Paused").await;
                env.ec2().clear_fault(&fault);
            } else {
                let (machine, id) = running(&env).await;
                disk = Some(id);
                match phase {
                    "replacing" => {
                        env.ec2().add_fault(no_capacity("m7i.large"));
                        env.edit("orders", &json!({"instanceTypes": ["m7i.large"]})).await;
                        env.until_condition("orders", "Ready", "False", "InsufficientCapacity").await;
                        env.ec2().clear_faults();
                    }
                    "lost" => env.ec2().outside(&ec2sim::Outside::Terminate.to(&machine)).unwrap(),
                    _ => {
                        let node = env.list::<Node>().await.remove(0).name_any();
                        env.api::<Node>().delete(&node, &kube::api::DeleteParams::default()).await.unwrap();
                    }
                }
                env.edit("orders", &json!({"running": false})).await;
                env.until_condition("orders", "Ready", "False", "Paused").await;
            }
            assert_eq!((env.live_instances().len(), env.list::<Node>().await.len()), (0, 0));
            env.edit("orders", &json!({"running": true})).await;
            env.ready("orders").await;
            let disks: Vec<String> = env.data_volumes().into_iter().map(|volume| volume.id).collect();
            assert_eq!((env.live_instances().len(), disks.len()), (1, 1));
            assert!(disk.is_none_or(|disk| disks == [disk]), "the volume keeps its identity");
            env.close().await;
        })
    });
}
