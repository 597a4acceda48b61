//! The operator as users install it: by helm, as a pod on a real node; upgraded, rolled back, uninstalled,
//! installed again.

use std::io::Write as _;
use std::path::PathBuf;

use aws_sdk_ec2::types::InstanceType;
use data_encoding::BASE64;
use freehold::api::{Database, Volume};
use freehold::definitions;
use freehold_box::account::platform;
use freehold_box::machines::images::{self, OperatorImage};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::kit::chart::{CHART, helm};
use crate::kit::process::{OPERATOR, binary};
use crate::kit::real::{RealEnv, on_real_machines, questdb};
use crate::kit::rights;
use crate::kit::wait::{seen, until};

/// Where the chart is installed.
const NAMESPACE: &str = "freehold-system";

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

/// Launches a machine for the platform's own pods, with the images of these operators.
async fn platform_machine(env: &RealEnv, versions: &[(&str, Version)]) {
    let mut archives = Vec::new();
    for (tag, version) in versions {
        let archive = env.control_plane.folder().join(format!("operator-{tag}.tar"));
        images::write_operator_image(&OperatorImage::new(&version.binary, tag), &archive).await.unwrap();
        archives.push(archive);
    }
    let world = env.site.world();
    let user_data = platform::user_data(&env.name, &archives);
    env.ec2_client()
        .run_instances()
        .image_id(&world.images[0].id)
        .instance_type(InstanceType::from("m7i.large"))
        .subnet_id(&world.subnets[0].id)
        .user_data(BASE64.encode(user_data.as_bytes()))
        .min_count(1)
        .max_count(1)
        .send()
        .await
        .unwrap();
}

/// What a user prepares: a namespace that admits restricted pods only, credentials, values.
async fn prepare(env: &RealEnv) -> PathBuf {
    let namespace = json!({"metadata": {"name": NAMESPACE,
    "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let namespaces = Api::<Namespace>::all(env.client.clone());
    namespaces.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
    let secret = json!({
        "metadata": {"name": "aws"}, "stringData": {"AWS_ACCESS_KEY_ID": OPERATOR,
        "AWS_SECRET_ACCESS_KEY": "of-nothing"},
    });
    let secrets = Api::<Secret>::namespaced(env.client.clone(), NAMESPACE);
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    let port = env.site.endpoint().rsplit(':').next().unwrap().to_owned();
    let values = json!({
        "image": {"repository": "docker.io/library/freehold", "pullPolicy": "Never"},
        "clusterId": env.name,
        "aws": {"endpoint": format!("http://{}:{port}", env.gateway()), "region": env.site.region()},
        "env": [{"name": "AWS_EC2_METADATA_DISABLED", "value": "true"}],
        "envFrom": [{"secretRef": {"name": "aws"}}],
        "nodeSelector": {platform::LABEL: env.name},
        "extraArgs": [format!("--time-scale={}", env.scale)],
    });
    let path = env.control_plane.folder().join("values.yaml");
    std::fs::write(&path, values.to_string()).unwrap();
    path
}

/// Runs helm on the release.
async fn release(env: &RealEnv, args: &[&str]) {
    let kubeconfig = env.control_plane.kubeconfig().display().to_string();
    let general = ["--kubeconfig", &kubeconfig, "--namespace", NAMESPACE, "--wait", "--timeout", "180s"];
    if let Err(said) = helm(&[args, &general].concat()).await {
        let mut kubectl = env.kubectl();
        let pods = kubectl.args(["describe", "pods", "--namespace", NAMESPACE]).output().unwrap();
        panic!("helm {}: {said}\n{}", args.join(" "), String::from_utf8_lossy(&pods.stdout));
    }
}

/// Uninstalls the operator, whose rights end before its pod does.
async fn uninstall(env: &RealEnv) {
    rights::note(&env.control_plane);
    release(env, &["uninstall", "freehold"]).await;
    let pods = Api::<Pod>::namespaced(env.client.clone(), NAMESPACE);
    until("the end of the operator's pod", || async {
        let left = pods.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items.len();
        seen((left == 0).then_some(()), || format!("{left} pods"))
    })
    .await;
    rights::leave_out(&env.control_plane);
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

/// The one pod of the operator has this image, and it works on the database: a new generation of it becomes
/// Ready.
async fn works(env: &RealEnv, tag: &str, policy: &str) {
    let pods = Api::<Pod>::namespaced(env.client.clone(), NAMESPACE);
    let pods = pods
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .into_iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let images: Vec<String> =
        pods.map(|pod| pod.spec.unwrap().containers[0].image.clone().unwrap()).collect();
    assert_eq!(images, [format!("docker.io/library/freehold:{tag}")]);
    env.edit("orders", &json!({"deletionPolicy": policy})).await;
    env.serves("orders").await;
}

#[test]
fn helm_installs_upgrades_rolls_back_and_uninstalls_the_operator_and_the_database_runs_on() {
    on_real_machines("by-helm", |mut env| async move {
        env.has_tap = false;
        let versions = versions(&env);
        platform_machine(&env, &versions).await;
        let [(before, old), (now, new)] = &versions;
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
        release(&env, &["upgrade", "freehold", &new.chart, "--values", &values, "--set", &tag]).await;
        works(&env, now, "Snapshot").await;
        assert_eq!(parts_of(&env, "orders").await, made, "the upgrade changes nothing");

        release(&env, &["rollback", "freehold", "1"]).await;
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
