//! A release of the chart on a real machine: the machine for the platform's pods, what a user prepares, helm.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use aws_sdk_ec2::types::InstanceType;
use data_encoding::BASE64;
use freehold_box::account::platform;
use freehold_box::machines::images::{self, OperatorImage};
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;

use crate::kit::chart::helm;
use crate::kit::process::OPERATOR;
use crate::kit::real::RealEnv;
use crate::kit::rights;
use crate::kit::wait::{seen, until};

/// Where the chart is installed.
pub const NAMESPACE: &str = "freehold-system";

/// The repository of the operator's image on the platform's machine.
const REPOSITORY: &str = "docker.io/library/freehold";

/// Launches a machine for the platform's own pods, with an image of each of these programs under its tag.
pub async fn platform_machine(env: &RealEnv, operators: &[(&str, &Path)]) {
    let mut archives = Vec::new();
    for (tag, binary) in operators {
        let archive = env.control_plane.folder().join(format!("operator-{tag}.tar"));
        images::write_operator_image(&OperatorImage::new(binary, tag), &archive).await.unwrap();
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

/// What a user prepares: a namespace that admits restricted pods only, credentials, and a file with the
/// values of this box.
pub async fn prepare(env: &RealEnv) -> PathBuf {
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
        "image": {"repository": REPOSITORY, "pullPolicy": "Never"},
        "clusterId": env.name,
        "aws": {"endpoint": format!("http://{}:{port}", env.gateway()), "region": env.site.region()},
        "envFrom": [{"secretRef": {"name": "aws"}}],
        "nodeSelector": {platform::LABEL: env.name},
        "extraArgs": [format!("--time-scale={}", env.scale)],
    });
    let path = env.control_plane.folder().join("values.yaml");
    std::fs::write(&path, values.to_string()).unwrap();
    path
}

/// Runs helm on the release.
pub async fn release(env: &RealEnv, args: &[&str]) {
    let kubeconfig = env.control_plane.kubeconfig().display().to_string();
    let general = ["--kubeconfig", &kubeconfig, "--namespace", NAMESPACE, "--wait", "--timeout", "180s"];
    if let Err(said) = helm(&[args, &general].concat()).await {
        let mut kubectl = env.kubectl();
        let pods = kubectl.args(["describe", "pods", "--namespace", NAMESPACE]).output().unwrap();
        panic!("helm {}: {said}\n{}", args.join(" "), String::from_utf8_lossy(&pods.stdout));
    }
}

/// Uninstalls the operator, whose rights end before its pods do.
pub async fn uninstall(env: &RealEnv) {
    with_fewer_rights(env, &["uninstall", "freehold"], &[]).await;
}

/// Rolls the operator back to the first revision, of this tag; the newer operator has its rights no longer
/// while its pods are still being stopped.
pub async fn roll_back(env: &RealEnv, tag: &str) {
    with_fewer_rights(env, &["rollback", "freehold", "1"], &[tag]).await;
}

/// Runs helm on the release, and leaves out what the former operator is refused before it is gone.
async fn with_fewer_rights(env: &RealEnv, args: &[&str], tags: &[&str]) {
    rights::note(&env.control_plane);
    release(env, args).await;
    pods_are_of(env, tags).await;
    rights::leave_out(&env.control_plane);
}

/// Waits until the operator's pods, with those that are being stopped, are of these tags and no others.
pub async fn pods_are_of(env: &RealEnv, tags: &[&str]) {
    let pods = Api::<Pod>::namespaced(env.client.clone(), NAMESPACE);
    let awaited: BTreeSet<String> = tags.iter().map(|tag| format!("{REPOSITORY}:{tag}")).collect();
    until("the operator's pods", || async {
        let pods = pods.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
        let images: BTreeSet<String> =
            pods.into_iter().map(|pod| pod.spec.unwrap().containers[0].image.clone().unwrap()).collect();
        seen((images == awaited).then_some(()), || format!("{images:?}"))
    })
    .await;
}
