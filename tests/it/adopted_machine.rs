//! An instance that ran before: adopted by its id and a tag, made a database's machine without moving what
//! runs there, and released as it was.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use ec2sim::InstanceState;
use freehold::api::Node;
use k8s_openapi::api::core::v1::{Node as CoreNode, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Resource, ResourceExt as _};
use parking_lot::Mutex;
use pretty_assertions::assert_eq;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::kit::env::Env as _;
use crate::kit::objects::Told as _;
use crate::kit::rig_env::{self, RigEnv};
use crate::kit::wait::{seen, within};
use crate::lives::blow::Blow;
use crate::lives::life::CALM;

const NODE: &str = "orders-k3f9q-0";

const PLAIN: &str = "#!/bin/sh\n/opt/freehold-box/bootstrap --node-status-update-frequency 1s\n";

async fn make<K>(api: &Api<K>, object: Value) -> K
where
    K: Resource + Clone + DeserializeOwned + serde::Serialize + Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap()
}

/// Launches an instance by hand, with a name of its own and a disk that another adoption was permitted for.
fn launch(env: &RigEnv) -> String {
    let id = env.launch("a person", "m7i.large", "legacy", PLAIN);
    let disk = env.ec2().instance(&id).unwrap().attachments.remove(0).volume_id;
    tag(env, &disk, "another");
    id
}

fn tag(env: &RigEnv, id: &str, value: &str) {
    let call = [
        ("Action", "CreateTags"),
        ("ResourceId.1", id),
        ("Tag.1.Key", "freehold.dev/adopt"),
        ("Tag.1.Value", value),
    ];
    env.call("a person", &call);
}

async fn core_node(env: &RigEnv, id: &str) -> Result<CoreNode, String> {
    let nodes = Api::<CoreNode>::all(env.client()).list(&ListParams::default()).await;
    let is_it = |node: &CoreNode| {
        let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
        provider_id.is_some_and(|provider_id| provider_id.ends_with(id))
    };
    let nodes = nodes.map_err(|error| error.to_string())?.items;
    nodes.into_iter().find(is_it).ok_or_else(|| "no Kubernetes node".to_owned())
}

/// The effects of the taint of a database's machine.
fn effects(core_node: &CoreNode) -> Vec<String> {
    let taints = core_node.spec.clone().unwrap().taints.unwrap_or_default();
    taints.into_iter().filter(|it| it.key == "freehold.dev/dedicated").map(|it| it.effect).collect()
}

async fn until_ready(env: &RigEnv, status: &str, reason: &str) -> String {
    within(CALM, "the Node's condition Ready", || async {
        let node = env.api::<Node>().get(NODE).await.map_err(|error| error.to_string())?;
        let ready = node.condition("Ready");
        let is_it = ready.0 == status && (reason.is_empty() || ready.1 == reason);
        seen(is_it.then(|| ready.2.clone()), || format!("{ready:?}"))
    })
    .await
}

/// A machine that ran before, with a pod, as it was.
struct Legacy {
    id: String,
    tags: BTreeMap<String, String>,
    core_node: CoreNode,
    pod: Pod,
}

impl Legacy {
    async fn start(env: &RigEnv) -> Self {
        let id = launch(env);
        let core_node = within(CALM, "its Kubernetes node", || core_node(env, &id)).await;
        let pod = json!({
            "metadata": {"name": "legacy-db-0"},
            "spec": {
                "automountServiceAccountToken": false,
                "containers": [{"name": "db", "image": "db:1"}],
                "nodeName": core_node.name_any(),
            },
        });
        let pod = make(&env.api::<Pod>(), pod).await;
        let tags = env.ec2().instance(&id).unwrap().tags;
        Self { id, tags, core_node, pod }
    }

    /// What the message of the Node says to do.
    fn allow(&mut self, env: &RigEnv) {
        let value = env.proof("orders");
        tag(env, &self.id, &value);
        self.tags.insert("freehold.dev/adopt".to_owned(), value);
    }

    /// The Node that names it, and releases it with its own end.
    async fn name(&self, env: &RigEnv) {
        let node = json!({
            "metadata": {"name": NODE, "labels": {"freehold.dev/database": "orders"}},
            "spec": {"nodeClassName": env.class(), "instanceTypes": ["r7i.large"], "instanceID": self.id,
                "release": true},
        });
        make(&env.api::<Node>(), node).await;
    }

    /// It is a database's machine, and its pod is still there. It has no taint before its database is
    /// adopted: a new pod of it must find its machine.
    async fn is_adopted(&self, env: &RigEnv) {
        let core_node = core_node(env, &self.id).await.unwrap();
        assert_eq!(effects(&core_node), Vec::<String>::new());
        assert_eq!(core_node.labels().get("freehold.dev/dedicated").map(String::as_str), Some("true"));
        assert_eq!(env.ec2().instance(&self.id).unwrap().tags["Name"], "legacy");
        self.has_its_pod(env).await;
    }

    /// It runs as it did before.
    async fn is_released(&self, env: &RigEnv) {
        within(CALM, "the Node being gone", || async {
            let node = env.api::<Node>().get_opt(NODE).await.map_err(|error| error.to_string())?;
            seen(node.is_none().then_some(()), || format!("{:?}", node.unwrap().condition("Ready")))
        })
        .await;
        let instance = env.ec2().instance(&self.id).unwrap();
        assert_eq!((instance.state, &instance.tags), (InstanceState::Running, &self.tags));
        let after = core_node(env, &self.id).await.unwrap();
        assert_eq!((after.uid(), after.finalizers().len()), (self.core_node.uid(), 0));
        assert_eq!(effects(&after), Vec::<String>::new());
        // Kubernetes itself puts more labels on a new Kubernetes node.
        let of_before = |(label, value)| after.labels().get(label) == Some(value);
        assert!(self.core_node.labels().iter().all(of_before), "{:?}", after.labels());
        assert!(!after.labels().contains_key("freehold.dev/dedicated"), "{:?}", after.labels());
        self.has_its_pod(env).await;
    }

    async fn has_its_pod(&self, env: &RigEnv) {
        let pod = env.api::<Pod>().get("legacy-db-0").await.unwrap();
        assert_eq!((pod.uid(), pod.metadata.deletion_timestamp), (self.pod.uid(), None));
    }
}

#[test]
fn an_instance_that_ran_before_is_adopted_in_place_and_released_as_it_was() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        let mut legacy = Legacy::start(&env).await;
        legacy.name(&env).await;
        let message = until_ready(&env, "False", "AdoptionRefused").await;
        assert!(message.contains("aws ec2 create-tags"), "{message}");
        assert_eq!(env.mutations(), BTreeMap::new(), "an id alone changes nothing in EC2");

        legacy.allow(&env);
        until_ready(&env, "True", "").await;
        legacy.is_adopted(&env).await;
        assert_eq!(env.mutations(), BTreeMap::from([("CreateTags".to_owned(), 1)]));

        env.api::<Node>().delete(NODE, &DeleteParams::default()).await.unwrap();
        legacy.is_released(&env).await;
        let calls = [("CreateTags".to_owned(), 1), ("DeleteTags".to_owned(), 1)];
        assert_eq!(env.mutations(), BTreeMap::from(calls));
        env.close().await;
    });
}

/// The fewest writes of an adoption and a release: each has its effects at the Node, in EC2, and at the
/// Kubernetes node.
const FEWEST: usize = 7;

/// Adopts and releases a machine while the operator is struck so at this one of its writes; how many it made.
async fn struck(strike: Option<(usize, Blow)>) -> usize {
    let env = RigEnv::start().await;
    let mut legacy = Legacy::start(&env).await;
    let before = env.house.chaos.effects();
    if let Some((writes, blow)) = strike {
        env.house.chaos.strike_later(writes, blow, Duration::from_secs(60));
    }
    legacy.allow(&env);
    legacy.name(&env).await;
    until_ready(&env, "True", "").await;
    legacy.is_adopted(&env).await;
    env.api::<Node>().delete(NODE, &DeleteParams::default()).await.unwrap();
    legacy.is_released(&env).await;
    assert_eq!(env.mutations().get("RunInstances"), None);
    let effects = env.house.chaos.effects() - before;
    assert_eq!(env.house.chaos.struck_first().is_some(), strike.is_some(), "what was to be struck");
    env.close().await;
    effects
}

#[test]
fn an_adoption_and_a_release_that_are_killed_at_each_of_their_writes_leave_the_machine_as_it_was() {
    let writes = Mutex::new(0);
    rig_env::run(|| async { *writes.lock() = struck(None).await });
    let writes = writes.into_inner();
    assert!(writes >= FEWEST, "{writes}");
    for write in 0..writes {
        for blow in [Blow::Before, Blow::Lost, Blow::After] {
            rig_env::run(|| async move {
                struck(Some((write, blow))).await;
            });
        }
    }
}
