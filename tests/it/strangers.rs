//! Objects of others that have a name that a database's object would have: neither adopted nor deleted nor
//! changed.

use std::fmt::Debug;

use freehold::api::names::Names;
use freehold::api::{Database, Node};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use kube::api::PostParams;
use kube::{Resource, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::kit::env::Env as _;
use crate::kit::rig_env::{self, RigEnv};
use crate::kit::wait::{seen, within};
use crate::lives::life::CALM;

/// Puts a stranger there; gives its resourceVersion once the control plane has done its own part on it.
async fn stranger<K>(env: &RigEnv, object: Value, is_settled: impl Fn(&K) -> bool) -> (String, String)
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    let api = env.api::<K>();
    let name = api
        .create(&PostParams::default(), &serde_json::from_value(object).unwrap())
        .await
        .unwrap()
        .name_any();
    let version = within(CALM, "the stranger being settled", || async {
        let object = api.get(&name).await.map_err(|error| error.to_string())?;
        seen(is_settled(&object).then(|| object.resource_version().unwrap()), || format!("{object:?}"))
    })
    .await;
    (name, version)
}

async fn is_untouched<K>(env: &RigEnv, (name, version): (String, String))
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let now = env.api::<K>().get(&name).await.unwrap();
    assert_eq!(now.resource_version(), Some(version), "{now:?}");
}

#[test]
fn a_stranger_of_a_derived_name_is_reported_and_left_alone() {
    rig_env::run(|| async {
        let mut env = RigEnv::build().await;
        let mut names = std::collections::BTreeMap::new();
        for kind in ["secret", "set", "node", "claim"] {
            let database: Database = env.create(&format!("of-{kind}"), &json!({})).await;
            names.insert(kind, Names::of(&database));
        }
        let secret = json!({"metadata": {"name": names["secret"].credentials_secret},
        "stringData": {"theirs": "yes"}});
        let secret = stranger::<Secret>(&env, secret, |_| true).await;
        let set = json!({
            "metadata": {"name": names["set"].stateful_set},
            "spec": {
                "serviceName": "theirs", "replicas": 0, "selector": {"matchLabels": {"app": "theirs"}},
                "template": {"metadata": {"labels": {"app": "theirs"}}, "spec": {"containers": [{"name": "c",
                "image": "theirs:1"}]}},
            },
        });
        let is_seen = |set: &StatefulSet| {
            set.status.as_ref().is_some_and(|status| status.observed_generation == set.metadata.generation)
        };
        let set = stranger::<StatefulSet>(&env, set, is_seen).await;
        let node = json!({
            "metadata": {"name": names["node"].node(1)},
            "spec": {"nodeClassName": "theirs", "instanceTypes": ["r7i.large"]},
        });
        // Whoever makes a Node, the Node controller looks after it: what must not change is whose it is and
        // what it asks for.
        let node = env
            .api::<Node>()
            .create(&PostParams::default(), &serde_json::from_value(node).unwrap())
            .await
            .unwrap();
        let claim = json!({
            "metadata": {"name": names["claim"].volume},
            "spec": {
                "volumeName": "theirs", "storageClassName": "theirs", "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        });
        let has_phase = |claim: &PersistentVolumeClaim| {
            claim.status.as_ref().is_some_and(|status| status.phase.is_some())
        };
        let claim = stranger::<PersistentVolumeClaim>(&env, claim, has_phase).await;

        env.start_operator();
        for (kind, name) in
            [("secret", &secret.0), ("set", &set.0), ("node", &node.name_any()), ("claim", &claim.0)]
        {
            let message = env.until_condition(&format!("of-{kind}"), "Stalled", "True", "NameConflict").await;
            assert!(message.contains(name), "{kind}: {message}");
        }
        for kind in ["secret", "set", "node"] {
            let launched =
                env.ec2().instances().into_iter().any(|view| {
                    view.tags["freehold.dev/database"] == format!("{}/of-{kind}", env.namespace())
                });
            assert!(!launched, "a machine was paid for although of-{kind} cannot be made");
        }
        is_untouched::<Secret>(&env, secret).await;
        is_untouched::<StatefulSet>(&env, set).await;
        let now = env.api::<Node>().get(&node.name_any()).await.unwrap();
        assert_eq!(
            (now.spec, now.metadata.uid, now.metadata.owner_references),
            (node.spec, node.metadata.uid, None)
        );
        is_untouched::<PersistentVolumeClaim>(&env, claim).await;
        env.close().await;
    });
}
