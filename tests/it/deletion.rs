//! Deletions that are interrupted at every effect, under every policy; and a namespace or the definitions
//! that go: nothing is lost.

use ec2sim::VolumeState;
use freehold::api::Database;
use freehold::definitions;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::tap::{Point, Which};
use crate::kit::test_env::{Options, TestEnv, run};
use crate::kit::wait::{each, seen, until};
use crate::legacy::{as_found, found, permit, pod_run, spec};

const fn api(method: &'static str, path: &'static str, body: &'static [&'static str]) -> Which {
    Which { method, path, body }
}

const fn ec2(body: &'static [&'static str]) -> Which {
    Which { method: "POST", path: "/", body }
}

/// What every deletion does until its Volume is deleted.
const FIRST: [(&str, Which); 7] = [
    ("stop", api("PATCH", "/statefulsets/", &["\"replicas\":0"])),
    ("delete-node", api("DELETE", "/nodes/orders", &[])),
    ("terminate", ec2(&["Action=TerminateInstances"])),
    ("release-node", api("PATCH", "/nodes/orders", &["\"finalizers\""])),
    ("decide", api("PATCH", "/volumes/", &["deletionDecided"])),
    ("delete-volume-object", api("DELETE", "/volumes/", &[])),
    ("delete-claim", api("DELETE", "/persistentvolumeclaims/", &[])),
];

/// What every deletion does once the disk is dealt with.
const LAST: [(&str, Which); 3] = [
    ("delete-credentials", api("DELETE", "/secrets/", &[])),
    ("delete-service", api("DELETE", "/services/", &[])),
    ("release-database", api("PATCH", "/databases/", &["\"finalizers\""])),
];

const KEEP: (&str, Which) = ("keep-credentials", api("POST", "/secrets", &["freehold.dev/retained"]));
const MARK: (&str, Which) = ("mark", api("PATCH", "/persistentvolumes/", &["retained-at"]));
const ANNOUNCE: (&str, Which) =
    ("announce-snapshot", api("PATCH", "/volumes/", &["\"finalSnapshot\"", "startedAt"]));
const TAKE: (&str, Which) = ("create-snapshot", ec2(&["Action=CreateSnapshot"]));
const RECORD: (&str, Which) =
    ("record-snapshot", api("PATCH", "/volumes/", &["\"finalSnapshot\"", "snapshotID"]));
const DELETE: (&str, Which) = ("delete-volume", ec2(&["Action=DeleteVolume"]));
const NOTE: (&str, Which) = ("note-deleted", api("PATCH", "/volumes/", &["\"deletedAt\""]));
const FORGET: (&str, Which) = ("delete-record", api("DELETE", "/persistentvolumes/", &[]));
const RELEASE: (&str, Which) = ("release-volume", api("PATCH", "/volumes/", &["\"finalizers\""]));

/// The effects of a deletion under this policy, in their order. One that is killed at DeleteVolume does not
/// note it, so each of these two is in one list only.
fn effects(policy: &str) -> Vec<(&'static str, Which)> {
    let own = match policy {
        "Retain" => vec![MARK, RELEASE, KEEP],
        "Snapshot" => vec![ANNOUNCE, TAKE, RECORD, DELETE, FORGET, RELEASE, KEEP],
        _ => vec![NOTE, FORGET, RELEASE],
    };
    FIRST.into_iter().chain(own).chain(LAST).collect()
}

/// The records of the test environment's volumes.
async fn records(env: &TestEnv) -> Vec<PersistentVolume> {
    let all = Api::<PersistentVolume>::all(env.client.clone())
        .list(&ListParams::default().labels("freehold.dev/retained=true"))
        .await;
    let ours = format!("{}/orders", env.name);
    all.unwrap()
        .items
        .into_iter()
        .filter(|record| record.annotations().get("freehold.dev/database") == Some(&ours))
        .collect()
}

#[test]
fn a_deletion_that_is_killed_at_each_of_its_effects_finishes_as_its_policy_says() {
    let mut cases = Vec::new();
    for policy in ["Retain", "Snapshot", "Delete"] {
        for (at, point) in [("before", Point::Before), ("lost", Point::AnswerLost), ("after", Point::After)] {
            cases.push((format!("gone-{}-{at}", policy.to_lowercase()), (policy, point)));
        }
    }
    run(each(cases, |name, (policy, point)| async move {
        let mut env = TestEnv::start_with(&name, Options { tapped_ec2: true, ..Options::default() }).await;
        env.create("orders", &json!({"deletionPolicy": policy})).await;
        env.ready("orders").await;
        env.kill_operator();
        env.delete("orders").await;
        let databases = env.api::<Database>();
        let is_gone = || {
            let databases = databases.clone();
            async move { databases.get_opt("orders").await.is_ok_and(|database| database.is_none()) }
        };
        let missed = env.kill_at_each(&effects(policy), point, is_gone).await;
        assert_eq!(missed, [] as [&str; 0], "{name}: the operator never came to these");
        env.start_operator();
        env.gone("orders").await;
        assert_eq!(env.live_instances().len(), 0, "{name}");
        let (volumes, snapshots, secrets) = match policy {
            "Retain" => (1, 0, 1),
            "Snapshot" => (0, 1, 1),
            _ => (0, 0, 0),
        };
        until("the disk being as the policy says", || async {
            let disks = env.data_volumes();
            let is_so =
                disks.len() == volumes && disks.iter().all(|disk| disk.state == VolumeState::Available);
            seen(is_so.then_some(()), || format!("{disks:?}"))
        })
        .await;
        assert_eq!(env.ec2().snapshots().len(), snapshots, "{name}");
        assert_eq!(env.list::<Secret>().await.len(), secrets, "{name}");
        assert_eq!(records(&env).await.len(), volumes, "{name}: one record for each volume that is kept");
        env.close().await;
    }));
}

/// The volume of `orders`, which was to be deleted with it, is kept, and its record says why.
async fn keeps_the_volume(env: &TestEnv) {
    let record = until("the record of what was kept", || async {
        let mut records = records(env).await;
        seen(records.pop(), || "none".to_owned())
    })
    .await;
    assert!(
        record.annotations()["freehold.dev/retained-because"].contains("were deleted"),
        "{:?}",
        record.annotations()
    );
    assert_eq!(
        (record.annotations()["freehold.dev/engine"].as_str(), env.data_volumes().len()),
        ("questdb", 1)
    );
    until("the volume being available and its record Released", || async {
        let state = env.data_volumes().remove(0).state;
        let phase = records(env).await.remove(0).status.and_then(|status| status.phase);
        let is_so = state == VolumeState::Available && phase.as_deref() == Some("Released");
        seen(is_so.then_some(()), || format!("{state:?} {phase:?}"))
    })
    .await;
    assert_eq!(env.live_instances().len(), 0);
    assert_eq!(env.mutations().get("DeleteVolume"), None);
}

#[test]
fn a_namespace_that_is_deleted_keeps_the_volumes_of_its_databases() {
    run(async {
        let env = TestEnv::start("namespace-goes").await;
        env.create("orders", &json!({"deletionPolicy": "Delete"})).await;
        env.ready("orders").await;
        let namespaces = Api::<Namespace>::all(env.client.clone());
        namespaces.delete(&env.name, &DeleteParams::default()).await.unwrap();
        until("the namespace being gone", || async {
            let left = namespaces.get_opt(&env.name).await.map_err(|error| error.to_string())?;
            seen(left.is_none().then_some(()), || {
                format!("{:?}", left.and_then(|namespace| namespace.status))
            })
        })
        .await;
        keeps_the_volume(&env).await;
        env.close().await;
    });
}

#[test]
fn definitions_that_are_deleted_keep_the_volumes_of_all_databases() {
    run(async {
        // Nobody else's definitions go with them.
        let mut env = TestEnv::build_alone("definitions-go", Options::default()).await;
        env.start_operator();
        env.create("orders", &json!({"deletionPolicy": "Delete"})).await;
        env.ready("orders").await;
        all_gone(&env).await;
        keeps_the_volume(&env).await;
        env.close_unchecked().await;
    });
}

/// Database, Volume and Node are deleted at once, in any order.
#[test]
fn definitions_that_are_deleted_release_an_adopted_database_that_is_to_be_released() {
    run(async {
        let mut env = TestEnv::build_alone("definitions-release", Options::default()).await;
        env.start_operator();
        let found = found(&env).await;
        permit(&env, &found, "orders");
        env.create("orders", &spec(&found)).await;
        env.ready("orders").await;
        env.edit("orders", &json!({"release": true})).await;
        all_gone(&env).await;
        as_found(&env, &found).await;
        assert_eq!(pod_run(&env, &found.legacy).await, found.run);
        env.close_unchecked().await;
    });
}

/// Deletes the definitions, and waits until they are gone.
async fn all_gone(env: &TestEnv) {
    let installed = Api::<CustomResourceDefinition>::all(env.client.clone());
    for definition in definitions::all() {
        installed.delete(&definition.name_any(), &DeleteParams::default()).await.unwrap();
    }
    until("the definitions being gone", || async {
        let left = installed.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let names: Vec<String> = left.items.iter().map(kube::ResourceExt::name_any).collect();
        seen(names.is_empty().then_some(()), || format!("{names:?}"))
    })
    .await;
}
