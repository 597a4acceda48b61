//! An instance that ran before: adopted by its id and a tag, made a database's machine without moving what
//! runs there, and released as it was.

use std::collections::BTreeMap;
use std::fmt::Debug;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ec2sim::InstanceState;
use freehold::api::Node;
use k8s_openapi::api::core::v1::{Node as CoreNode, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Resource, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::kit::env::Env as _;
use crate::kit::objects::Told as _;
use crate::kit::tap::{Point, Which};
use crate::kit::test_env::{Options, TestEnv, run};
use crate::kit::wait::{each, seen, until};

const NODE: &str = "orders-k3f9q-0";

const PLAIN: &str = "#!/bin/sh\n/opt/freehold-box/bootstrap --node-status-update-frequency 1s\n";

async fn make<K>(api: &Api<K>, object: Value) -> K
where
    K: Resource + Clone + DeserializeOwned + serde::Serialize + Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap()
}

/// Launches an instance by hand, with a tag that Freehold knows nothing of.
fn launch(env: &TestEnv) -> String {
    let user_data = STANDARD.encode(PLAIN);
    let call = [
        ("Action", "RunInstances"),
        ("ImageId", "ami-0000000000000000a"),
        ("InstanceType", "m7i.large"),
        ("SubnetId", "subnet-0a000000000000000"),
        ("MinCount", "1"),
        ("MaxCount", "1"),
        ("UserData", &user_data),
        ("TagSpecification.1.ResourceType", "instance"),
        ("TagSpecification.1.Tag.1.Key", "Name"),
        ("TagSpecification.1.Tag.1.Value", "legacy"),
        ("TagSpecification.2.ResourceType", "volume"),
        ("TagSpecification.2.Tag.1.Key", "freehold.dev/adopt"),
        ("TagSpecification.2.Tag.1.Value", "another"),
    ];
    let ids = env.ec2().call("a person", &call).unwrap().resource_ids();
    ids.into_iter().find(|id| id.starts_with("i-")).unwrap()
}

async fn core_node(env: &TestEnv, id: &str) -> Result<CoreNode, String> {
    let nodes = Api::<CoreNode>::all(env.client.clone()).list(&ListParams::default()).await;
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

async fn until_ready(env: &TestEnv, status: &str, reason: &str) -> String {
    until("the Node's condition Ready", || async {
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
    async fn start(env: &TestEnv) -> Self {
        let id = launch(env);
        let core_node = until("its Kubernetes node", || core_node(env, &id)).await;
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
    fn allow(&mut self, env: &TestEnv) {
        let value = format!("{}/{}/orders", env.name, env.name);
        let call = [
            ("Action", "CreateTags"),
            ("ResourceId.1", &self.id),
            ("Tag.1.Key", "freehold.dev/adopt"),
            ("Tag.1.Value", &value),
        ];
        env.ec2().call("a person", &call).unwrap();
        self.tags.insert("freehold.dev/adopt".to_owned(), value);
    }

    /// The Node that names it, and releases it with its own end.
    async fn name(&self, env: &TestEnv) {
        let node = json!({
            "metadata": {"name": NODE, "labels": {"freehold.dev/database": "orders"}},
            "spec": {"nodeClassName": env.name, "instanceTypes": ["r7i.large"], "instanceID": self.id,
                "release": true},
        });
        make(&env.api::<Node>(), node).await;
    }

    /// It is a database's machine, and its pod is still there. It has no taint before its database is
    /// adopted: a new pod of it must find its machine.
    async fn is_adopted(&self, env: &TestEnv) {
        let core_node = core_node(env, &self.id).await.unwrap();
        assert_eq!(effects(&core_node), Vec::<String>::new());
        assert_eq!(core_node.labels().get("freehold.dev/dedicated").map(String::as_str), Some("true"));
        assert_eq!(env.ec2().instance(&self.id).unwrap().tags["Name"], "legacy");
        self.has_its_pod(env).await;
    }

    /// It runs as it did before.
    async fn is_released(&self, env: &TestEnv) {
        until("the Node being gone", || async {
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

    async fn has_its_pod(&self, env: &TestEnv) {
        let pod = env.api::<Pod>().get("legacy-db-0").await.unwrap();
        assert_eq!((pod.uid(), pod.metadata.deletion_timestamp), (self.pod.uid(), None));
    }
}

#[test]
fn an_instance_that_ran_before_is_adopted_in_place_and_released_as_it_was() {
    run(async {
        let env = TestEnv::start("adopt-machine").await;
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

/// The effects of an adoption, in their order.
const ADOPTION: [(&str, Which); 4] = [
    ("record", Which { method: "PATCH", path: "/nodes/", body: &["\"instanceID\":\"i-"] }),
    ("create-tags", Which { method: "POST", path: "/", body: &["Action=CreateTags"] }),
    ("hold", Which { method: "PATCH", path: "/api/v1/nodes/", body: &["finalizers"] }),
    (
        "dedicate",
        Which { method: "PATCH", path: "/api/v1/nodes/", body: &["freehold.dev/dedicated\":\"true"] },
    ),
];

/// The effects of a release, in their order.
const RELEASE: [(&str, Which); 3] = [
    ("restore", Which { method: "PATCH", path: "/api/v1/nodes/", body: &["finalizers", "labels"] }),
    ("delete-tags", Which { method: "POST", path: "/", body: &["Action=DeleteTags"] }),
    ("finalizer", Which { method: "PATCH", path: "/nodes/orders", body: &["finalizers"] }),
];

#[test]
fn an_adoption_and_a_release_that_are_killed_at_each_of_their_effects_leave_the_machine_as_it_was() {
    let points = [("before", Point::Before), ("lost", Point::AnswerLost), ("after", Point::After)];
    let cases = points.map(|(at, point)| (format!("adopt-machine-{at}"), point)).to_vec();
    run(each(cases, |name, point| async move {
        let mut env = TestEnv::build(&name, Options { tapped_ec2: true, ..Options::default() }).await;
        let mut legacy = Legacy::start(&env).await;
        legacy.allow(&env);
        legacy.name(&env).await;
        let missed = env.kill_at_each(&ADOPTION, point, || async { false }).await;
        assert_eq!(missed, [] as [&str; 0]);
        env.start_operator();
        until_ready(&env, "True", "").await;
        legacy.is_adopted(&env).await;
        env.kill_operator();
        env.api::<Node>().delete(NODE, &DeleteParams::default()).await.unwrap();
        let nodes = env.api::<Node>();
        let is_gone = || {
            let nodes = nodes.clone();
            async move { nodes.get_opt(NODE).await.is_ok_and(|node| node.is_none()) }
        };
        let missed = env.kill_at_each(&RELEASE, point, is_gone).await;
        assert_eq!(missed, [] as [&str; 0]);
        env.start_operator();
        legacy.is_released(&env).await;
        assert_eq!(env.mutations().get("RunInstances"), None);
        env.close().await;
    }));
}
