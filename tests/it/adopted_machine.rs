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

use crate::kit::objects::Told as _;
use crate::kit::test_env::{TestEnv, run};
use crate::kit::wait::{seen, until};

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

/// What the message of the Node says to do.
fn allow(env: &TestEnv, id: &str) {
    let value = format!("{}/{}/orders", env.name, env.name);
    let tag = [("Tag.1.Key", "freehold.dev/adopt"), ("Tag.1.Value", value.as_str())];
    env.ec2()
        .call("a person", &[&[("Action", "CreateTags"), ("ResourceId.1", id)][..], &tag].concat())
        .unwrap();
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
        let node = env.api::<Node>().get("orders-k3f9q-0").await.map_err(|error| error.to_string())?;
        let ready = node.condition("Ready");
        let is_it = ready.0 == status && (reason.is_empty() || ready.1 == reason);
        seen(is_it.then(|| ready.2.clone()), || format!("{ready:?}"))
    })
    .await
}

#[test]
fn an_instance_that_ran_before_is_adopted_in_place_and_released_as_it_was() {
    run(async {
        let env = TestEnv::start("adopt-machine").await;
        let id = launch(&env);
        let before = until("its Kubernetes node", || core_node(&env, &id)).await;
        let pod = json!({
            "metadata": {"name": "legacy-db-0"},
            "spec": {
                "automountServiceAccountToken": false,
                "containers": [{"name": "db", "image": "db:1"}],
                "nodeName": before.name_any(),
            },
        });
        let pod = make(&env.api::<Pod>(), pod).await;

        let node = json!({
            "metadata": {"name": "orders-k3f9q-0", "labels": {"freehold.dev/database": "orders"}},
            "spec": {"nodeClassName": env.name, "instanceTypes": ["r7i.large"], "instanceID": id,
                "release": true},
        });
        make(&env.api::<Node>(), node).await;
        let message = until_ready(&env, "False", "AdoptionRefused").await;
        assert!(message.contains("aws ec2 create-tags"), "{message}");
        assert_eq!(env.mutations(), BTreeMap::new(), "an id alone changes nothing in EC2");

        allow(&env, &id);
        let tags = env.ec2().instance(&id).unwrap().tags;
        until_ready(&env, "True", "").await;
        let adopted = core_node(&env, &id).await.unwrap();
        assert_eq!(effects(&adopted), ["NoSchedule"]);
        assert_eq!(adopted.labels().get("freehold.dev/dedicated").map(String::as_str), Some("true"));
        assert_eq!(env.mutations(), BTreeMap::from([("CreateTags".to_owned(), 1)]));
        assert_eq!(env.ec2().instance(&id).unwrap().tags["Name"], "legacy");

        env.api::<Node>().delete("orders-k3f9q-0", &DeleteParams::default()).await.unwrap();
        until("the Node being gone", || async {
            let node =
                env.api::<Node>().get_opt("orders-k3f9q-0").await.map_err(|error| error.to_string())?;
            seen(node.is_none().then_some(()), || format!("{:?}", node.unwrap().condition("Ready")))
        })
        .await;
        let instance = env.ec2().instance(&id).unwrap();
        assert_eq!((instance.state, instance.tags), (InstanceState::Running, tags));
        let after = core_node(&env, &id).await.unwrap();
        assert_eq!((after.uid(), after.finalizers().len()), (before.uid(), 0));
        assert_eq!((after.labels(), effects(&after)), (before.labels(), Vec::new()));
        let calls = [("CreateTags".to_owned(), 1), ("DeleteTags".to_owned(), 1)];
        assert_eq!(env.mutations(), BTreeMap::from(calls));
        let pod_now = env.api::<Pod>().get("legacy-db-0").await.unwrap();
        assert_eq!((pod_now.uid(), pod_now.metadata.deletion_timestamp), (pod.uid(), None));
        env.close().await;
    });
}
