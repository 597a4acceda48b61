//! A machine is its database's alone: another tenant's pods on it are deleted and hold nothing, and a machine
//! that joins without label and taint gets them.

use std::fmt::Debug;
use std::time::Duration;

use ec2sim::{Limits, Outside};
use freehold::api::{Database, Node};
use freehold_rig::Verb;
use k8s_openapi::api::core::v1::{Namespace, Node as CoreNode, Pod, ServiceAccount};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Resource, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::kit::env::Env;
use crate::kit::rig_env::{self, RigEnv};
use crate::kit::test_env::TestEnv;
use crate::kit::wait::{seen, within};
use crate::lives::house::NAMESPACE;
use crate::lives::life::CALM;

/// A second tenant: a namespace, and a client that may create pods there and do nothing else.
pub struct Intruder {
    pods: Api<Pod>,
    /// With the administrator's rights, to see and to tidy up.
    seen: Api<Pod>,
    /// How long one fact may take to come.
    limit: Duration,
}

async fn make<K>(api: &Api<K>, object: Value)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

fn in_namespace<K>(env: &TestEnv, namespace: &str) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    Api::namespaced(env.client.clone(), namespace)
}

fn in_cluster<K: Resource<Scope = ClusterResourceScope, DynamicType = ()>>(env: &impl Env) -> Api<K> {
    Api::all(env.client())
}

impl Intruder {
    /// On the rig, where rights are not looked at.
    async fn settle_on_rig(env: &RigEnv) -> Self {
        let namespace = format!("{}-b", env.namespace());
        env.house.namespace(&namespace).await;
        let pods = Api::namespaced(env.house.server.client("intruder"), &namespace);
        Self { pods, seen: Api::namespaced(env.client(), &namespace), limit: env.limit() }
    }

    /// On a real control plane.
    pub async fn settle(env: &TestEnv) -> Self {
        let namespace = format!("{}-b", env.name);
        make(&in_cluster::<Namespace>(env), json!({"metadata": {"name": namespace}})).await;
        let accounts = in_namespace::<ServiceAccount>(env, &namespace);
        make(&accounts, json!({"metadata": {"name": "intruder"}})).await;
        let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]);
        let role = json!({"metadata": {"name": "intruder"}, "rules": rules});
        make(&in_namespace::<Role>(env, &namespace), role).await;
        let binding = json!({
            "metadata": {"name": "intruder"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "intruder"},
            "subjects": [{"kind": "ServiceAccount", "name": "intruder", "namespace": namespace}],
        });
        make(&in_namespace::<RoleBinding>(env, &namespace), binding).await;
        let request = serde_json::from_value(json!({"spec": {"audiences": []}})).unwrap();
        let answer =
            accounts.create_token_request("intruder", &PostParams::default(), &request).await.unwrap();
        let mut kubeconfig = Kubeconfig::read_from(env.control_plane.operator_kubeconfig()).unwrap();
        let token = answer.status.unwrap().token;
        kubeconfig.auth_infos[0].auth_info = Some(serde_json::from_value(json!({"token": token})).unwrap());
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        let pods = Api::namespaced(client, &namespace);
        Self { pods, seen: in_namespace(env, &namespace), limit: env.limit() }
    }

    /// Puts a pod on a machine that tolerates everything, would end in a year, and is kept by a finalizer.
    pub async fn squat(&self, name: &str, machine: &str) {
        let pod = json!({
            "metadata": {"name": name, "finalizers": ["example.com/never"]},
            "spec": {
                "automountServiceAccountToken": false,
                "containers": [{"name": "stray", "image": "stray:1"}],
                "nodeSelector": {"kubernetes.io/hostname": machine},
                "terminationGracePeriodSeconds": 31_536_000,
                "tolerations": [{"operator": "Exists"}],
            },
        });
        make(&self.pods, pod).await;
        within(self.limit, "the stray pod being on the machine", || async {
            let pod = self.seen.get(name).await.map_err(|error| error.to_string())?;
            let place = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
            seen((place.as_deref() == Some(machine)).then_some(()), || format!("{:?}", pod.status))
        })
        .await;
    }

    /// Waits until the pod is deleted, though its finalizer holds it.
    pub async fn is_evicted(&self, name: &str) {
        within(self.limit, "the stray pod being deleted", || async {
            let pod = self.seen.get(name).await.map_err(|error| error.to_string())?;
            seen(pod.metadata.deletion_timestamp.map(|_| ()), || "it is not".to_owned())
        })
        .await;
    }

    /// Lets its pods go.
    pub async fn leave(self) {
        for pod in self.seen.list(&ListParams::default()).await.unwrap() {
            let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            let _ = self.seen.patch(&pod.name_any(), &PatchParams::default(), &free).await;
        }
    }
}

/// The Kubernetes node of the only machine.
pub async fn machine(env: &impl Env) -> String {
    let nodes: Vec<Node> = env.list().await;
    nodes.into_iter().find_map(|node| node.status?.core_node_name).unwrap()
}

/// The events of this reason on Freehold's Nodes.
pub async fn events(env: &impl Env, reason: &str) -> Vec<String> {
    let all: Vec<Event> = env.list().await;
    all.into_iter().filter(|it| it.reason.as_deref() == Some(reason)).filter_map(|it| it.note).collect()
}

#[test]
fn a_machine_whose_user_data_forgets_label_and_taint_gets_them_before_it_counts_as_ready() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        let plain = "#!/bin/sh\n/opt/freehold-box/bootstrap --node-status-update-frequency 1s\n";
        env.edit_class(&json!({"userData": plain})).await;
        env.create("orders", &json!({})).await;
        env.ready("orders").await;
        let node = in_cluster::<CoreNode>(&env).get(&machine(&env).await).await.unwrap();
        let taints = node.spec.clone().unwrap().taints.unwrap_or_default();
        let taint = taints.iter().find(|taint| taint.key == "freehold.dev/dedicated");
        assert_eq!(taint.map(|taint| taint.effect.as_str()), Some("NoExecute"));
        assert_eq!(node.labels().get("freehold.dev/dedicated").map(String::as_str), Some("true"));
        let events = events(&env, "KubernetesNodeNotDedicated").await;
        assert!(events.iter().any(|note| note.contains("NodeClass default")), "{events:?}");

        // What a person takes off is put back, and nothing is restarted.
        let pod = env.api::<Pod>().get("orders-0").await.unwrap().uid();
        let bare =
            json!({"metadata": {"labels": {"freehold.dev/dedicated": null}}, "spec": {"taints": null}});
        let nodes = in_cluster::<CoreNode>(&env);
        nodes.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(bare)).await.unwrap();
        within(CALM, "label and taint being there again", || async {
            let node = nodes.get(&node.name_any()).await.map_err(|error| error.to_string())?;
            let is_tainted = node.spec.as_ref().is_some_and(|spec| spec.taints.is_some());
            let is_back = is_tainted && node.labels().contains_key("freehold.dev/dedicated");
            seen(is_back.then_some(()), || format!("{:?}", node.metadata.labels))
        })
        .await;
        assert_eq!(env.api::<Pod>().get("orders-0").await.unwrap().uid(), pod);
        env.close().await;
    });
}

#[test]
fn another_tenants_pod_is_deleted_from_the_machine_and_holds_no_pause_move_deletion_or_repair() {
    for case in ["pause", "move", "deletion", "repair"] {
        rig_env::run(|| holds_nothing(case));
    }
}

async fn holds_nothing(case: &str) {
    let flags = ["--namespace", NAMESPACE, "--foreign-pod-grace", "2"];
    let env = RigEnv::start_with(&flags, Limits::NONE).await;
    env.create("orders", &json!({})).await;
    env.ready("orders").await;
    let intruder = Intruder::settle_on_rig(&env).await;
    let (host, instance) = (machine(&env).await, env.live_instances().remove(0).id);
    intruder.squat("stray", &host).await;
    intruder.is_evicted("stray").await;
    within(CALM, "the event about it", || async {
        let events = events(&env, "ForeignPodEvicted").await;
        let names = events.iter().any(|note| note.contains(&format!("pod {NAMESPACE}-b/stray is deleted")));
        seen(names.then_some(()), || format!("{events:?}"))
    })
    .await;
    let is_short = env.wrote(Verb::Delete, "pods", "stray", "\"gracePeriodSeconds\":2").is_some();
    assert!(is_short, "its year of grace is cut short");
    assert_eq!(env.live_instances().len(), 1, "the database serves on");
    // Another one comes just before, and the finalizer still holds the first.
    intruder.squat("stray-2", &host).await;
    match case {
        "pause" => {
            env.edit("orders", &json!({"running": false})).await;
            env.until_condition("orders", "Ready", "False", "Paused").await;
            assert_eq!((env.live_instances().len(), env.list::<Node>().await.len()), (0, 0));
        }
        "move" => {
            env.edit("orders", &json!({"instanceTypes": ["m7i.large"]})).await;
            env.moved_to("m7i.large").await;
            env.ready("orders").await;
        }
        "deletion" => {
            env.delete("orders").await;
            env.gone("orders").await;
            assert_eq!(env.live_instances().len(), 0);
        }
        _ => {
            env.ec2().outside(&Outside::Terminate.to(&instance)).unwrap();
            within(CALM, "the database on another machine", || async {
                let live = env.live_instances();
                let database = env.api::<Database>().get("orders").await.unwrap();
                let nodes = env.list::<Node>().await.len();
                let is_repaired = live.len() == 1 && live[0].id != instance && nodes == 1;
                seen(is_repaired.then_some(()), || format!("{live:?} {nodes} {:?}", database.status))
            })
            .await;
            env.ready("orders").await;
        }
    }
    intruder.is_evicted("stray-2").await;
    intruder.leave().await;
    env.close().await;
}
