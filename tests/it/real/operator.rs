//! The operator as users install it: by helm, as a pod on a real node; upgraded, rolled back, uninstalled,
//! installed again.

use std::io::Write as _;
use std::path::PathBuf;

use freehold::api::{Database, Volume};
use freehold::definitions;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::json;

use super::release::{NAMESPACE, platform_machine, pods_are_of, prepare, release, roll_back, uninstall};
use crate::kit::chart::CHART;
use crate::kit::env::Env as _;
use crate::kit::process::binary;
use crate::kit::real::{RealEnv, on_real_machines, questdb};

/// A folder with the operator (`freehold`) and, if it had one, the chart (`chart`) of the commit before this
/// one. `.ci/run` sets it.
const PREVIOUS: &str = "FREEHOLD_PREVIOUS";

/// An operator and its chart.
struct Version {
    binary: PathBuf,
    chart: String,
}

/// Those of this commit and of the one before.
fn versions(env: &RealEnv) -> [(&'static str, Version); 2] {
    let now = || Version { binary: binary(env.control_plane.folder()), chart: CHART.to_owned() };
    let previous = std::env::var_os(PREVIOUS).map(PathBuf::from).map(|folder| {
        let chart = folder.join("chart");
        Version {
            binary: folder.join("freehold"),
            chart: if chart.exists() { chart.display().to_string() } else { CHART.to_owned() },
        }
    });
    if previous.is_none() {
        // Not by a macro: what those print is kept back when a test passes.
        let _ = writeln!(
            std::io::stderr(),
            "{PREVIOUS} is not set: the operator is upgraded to itself under another tag"
        );
    }
    [("before", previous.unwrap_or_else(now)), ("now", now())]
}

/// What nothing that is done to the operator may change: the database's pod with its restarts, its machine,
/// and every disk with its attachment.
async fn parts_of(env: &RealEnv, name: &str) -> impl PartialEq + std::fmt::Debug + use<> {
    let machines: Vec<String> = env.live_instances().into_iter().map(|machine| machine.id).collect();
    let disks: Vec<_> = env
        .data_volumes()
        .into_iter()
        .map(|disk| (disk.id, disk.attachment.map(|it| it.instance_id)))
        .collect();
    (env.run_of(name).await, machines, disks)
}

/// The operator's pods are of this tag, and one works on the database: a new generation of it becomes Ready.
async fn works(env: &RealEnv, tag: &str, policy: &str) {
    pods_are_of(env, &[tag]).await;
    env.edit("orders", &json!({"deletionPolicy": policy})).await;
    env.serves("orders").await;
}

#[test]
fn helm_installs_upgrades_rolls_back_and_uninstalls_the_operator_and_the_database_runs_on() {
    on_real_machines("by-helm", |mut env| async move {
        env.has_tap = false;
        let versions = versions(&env);
        let [(before, old), (now, new)] = &versions;
        platform_machine(&env, &[(before, &old.binary), (now, &new.binary)]).await;
        let values = prepare(&env).await.display().to_string();

        // Definitions of this commit were applied by hand, and may differ from those of the earlier chart.
        let by_hand = ["--take-ownership", "--force-conflicts"];
        let tag = format!("image.tag={before}");
        let install = ["install", "freehold", &old.chart, "--values", &values, "--set", &tag];
        release(&env, &[&install[..], &by_hand].concat()).await;
        env.create("orders", &questdb()).await;
        env.serves("orders").await;
        let made = parts_of(&env, "orders").await;

        let tag = format!("image.tag={now}");
        // A definition that the earlier chart did not have is one that was applied by hand, too.
        let upgrade = ["upgrade", "freehold", &new.chart, "--values", &values, "--set", &tag];
        release(&env, &[&upgrade[..], &by_hand].concat()).await;
        works(&env, now, "Snapshot").await;
        assert_eq!(parts_of(&env, "orders").await, made, "the upgrade changes nothing");

        roll_back(&env, before).await;
        works(&env, before, "Retain").await;
        assert_eq!(parts_of(&env, "orders").await, made, "the way back changes nothing");

        uninstall(&env).await;
        assert_eq!(
            Api::<Deployment>::namespaced(env.client.clone(), NAMESPACE)
                .list(&ListParams::default())
                .await
                .unwrap()
                .items
                .len(),
            0
        );
        let roles = Api::<ClusterRole>::all(env.client.clone());
        assert!(roles.get_opt("freehold-system-freehold").await.unwrap().is_none());
        let left = Api::<CustomResourceDefinition>::all(env.client.clone());
        for definition in definitions::all() {
            assert!(
                left.get_opt(&definition.name_any()).await.unwrap().is_some(),
                "{} stays",
                definition.name_any()
            );
        }
        assert_eq!((env.list::<Database>().await.len(), env.list::<Volume>().await.len()), (1, 1));
        assert_eq!(parts_of(&env, "orders").await, made, "the end of the operator changes nothing");

        release(&env, &["install", "freehold", &new.chart, "--values", &values, "--set", &tag]).await;
        works(&env, now, "Delete").await;
        assert_eq!(parts_of(&env, "orders").await, made, "a new operator takes over what it finds");
        env.env.delete("orders").await;
        env.is_gone("orders").await;
        uninstall(&env).await;
        env
    });
}
