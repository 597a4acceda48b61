//! The life of a database: made, grown, deleted under each policy; and what each step costs in EC2.

use std::collections::BTreeMap;

use ec2sim::{InstanceState, VolumeState};
use freehold::api::Volume;
use freehold::api::keys::DATABASE_UID_LABEL;
use freehold_box::writer::Source;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    Node as CoreNode, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::env::Env;
use crate::kit::rig_env::{self, RigEnv};
use crate::kit::test_env::TestEnv;
use crate::kit::wait::{seen, until, within};
use crate::lives::life::CALM;

fn costs(pairs: &[(&str, usize)]) -> BTreeMap<String, usize> {
    pairs.iter().map(|(action, count)| ((*action).to_owned(), *count)).collect()
}

/// How many ServiceAccounts of Databases there are; Kubernetes makes one of its own in each namespace.
async fn accounts(env: &impl Env) -> usize {
    let accounts = env.list::<ServiceAccount>().await;
    accounts.iter().filter(|account| account.labels().contains_key(DATABASE_UID_LABEL)).count()
}

#[test]
fn a_database_becomes_ready_with_one_launch_and_one_volume_and_grows_with_one_modification() {
    rig_env::run(|| async {
        let env = RigEnv::start().await;
        env.create("orders", &json!({"storage": {"iops": 3000, "throughput": 125}})).await;
        let database = env.ready("orders").await;
        assert_eq!(env.mutations(), costs(&[("RunInstances", 1), ("CreateVolume", 1)]));
        let status = database.status.unwrap();
        let instance = env.live_instances().remove(0);
        assert_eq!(status.zone.as_ref(), Some(&instance.zone));
        assert_eq!(status.instance_type.as_deref(), Some("r7i.large"));
        let volume = env.data_volumes().remove(0);
        assert_eq!(
            (volume.zone.as_str(), volume.shape.size, volume.state),
            (instance.zone.as_str(), 100, VolumeState::InUse)
        );
        assert!(volume.encrypted);

        env.edit("orders", &json!({"storage": {"size": "200Gi", "iops": 6000, "throughput": 500}})).await;
        env.ready("orders").await;
        assert_eq!(env.mutations(), costs(&[("RunInstances", 1), ("CreateVolume", 1), ("ModifyVolume", 1)]));
        let shape = env.data_volumes().remove(0).shape;
        assert_eq!((shape.size, shape.iops, shape.throughput), (200, Some(6000), Some(500)));
        let claim = env.list::<PersistentVolumeClaim>().await.remove(0);
        let capacity = claim.status.unwrap().capacity.unwrap();
        assert_eq!(capacity["storage"].0, "200Gi");
        env.close().await;
    });
}

fn source(env: &TestEnv) -> Source {
    Source::Database { client: env.client.clone(), namespace: env.name.clone(), name: "orders".to_owned() }
}

/// A client does not find a database that is not there.
pub async fn is_not_found(env: &TestEnv) {
    let nothing = source(env).access().await.err().unwrap().to_string();
    assert_eq!(nothing, "failed to read the Secret orders-admin from the API server");
}

/// A client finds a ready database by its Secret and its Service.
pub async fn is_found(env: &TestEnv) {
    let source = source(env);
    let access = until("a ready address behind the Service", || async {
        source.access().await.map_err(|error| error.to_string())
    })
    .await;
    let pod = env.list::<Pod>().await.remove(0);
    assert_eq!(Some(access.address.ip().to_string()), pod.status.unwrap().pod_ip);
    assert_eq!(
        (access.address.port(), access.username.as_str(), access.database.as_str()),
        (8812, "admin", "qdb")
    );
    assert!(access.password.len() >= 16);
}

#[test]
fn a_deleted_database_leaves_what_its_policy_says_and_nothing_else() {
    let cases = [("Retain", 1, 0, 1), ("Snapshot", 0, 1, 1), ("Delete", 0, 0, 0)];
    for (policy, kept_volumes, snapshots, kept_secrets) in cases {
        rig_env::run(|| leaves(policy, kept_volumes, snapshots, kept_secrets));
    }
}

async fn leaves(policy: &str, kept_volumes: usize, snapshots: usize, kept_secrets: usize) {
    let env = RigEnv::start().await;
    env.create("orders", &json!({"deletionPolicy": policy})).await;
    env.ready("orders").await;
    let record = env.list::<Volume>().await.remove(0).status.unwrap().persistent_volume_name.unwrap();
    env.delete("orders").await;
    env.gone("orders").await;

    assert_eq!(env.live_instances().len(), 0, "{policy}");
    within(CALM, "the EBS volume being as the policy says", || async {
        let left = env.data_volumes();
        seen((left.len() == kept_volumes).then_some(()), || format!("{left:?}"))
    })
    .await;
    assert!(env.data_volumes().iter().all(|volume| volume.state == VolumeState::Available), "{policy}");
    assert_eq!(env.ec2().snapshots().len(), snapshots, "{policy}");
    assert_eq!(
        env.list::<Secret>().await.len(),
        kept_secrets,
        "{policy}: the credentials stay with the data"
    );
    let records = Api::<PersistentVolume>::all(env.client());
    within(CALM, "the PersistentVolume being kept with its disk only", || async {
        let left = records.get_opt(&record).await.map_err(|error| error.to_string())?;
        let phase = left.and_then(|record| record.status?.phase);
        let wanted = (kept_volumes == 1).then_some("Released");
        seen((phase.as_deref() == wanted).then_some(()), || format!("{policy}: {phase:?}"))
    })
    .await;
    within(CALM, "everything that it owned being collected", || async {
        let left = [
            env.list::<StatefulSet>().await.len(),
            env.list::<Service>().await.len(),
            env.list::<NetworkPolicy>().await.len(),
            env.list::<PodDisruptionBudget>().await.len(),
            env.list::<PersistentVolumeClaim>().await.len(),
            env.list::<Pod>().await.len(),
            accounts(&env).await,
        ];
        seen((left == [0; 7]).then_some(()), || {
            format!("StatefulSets, Services, NetworkPolicies, budgets, claims, pods, accounts: {left:?}")
        })
    })
    .await;
    let nodes = Api::<CoreNode>::all(env.client()).list(&ListParams::default()).await.unwrap();
    let gone = env.ec2().instances();
    assert!(gone.iter().all(|instance| instance.state == InstanceState::Terminated), "{policy}");
    assert!(
        nodes.iter().all(|node| gone.iter().all(|instance| node.name_any() != instance.private_dns)),
        "{policy}"
    );
    env.close().await;
}
