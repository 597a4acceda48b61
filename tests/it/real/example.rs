//! The way of a new user (docs/install-eks.md): what Terraform's example renders is installed in a box, and
//! its NodeClass gives the first Database its machine, by the user data of Amazon Linux 2023.
//!
//! `.ci/terraform` applies the example and compares what it renders with the files that are read here.

use std::io::Write as _;
use std::process::Stdio;

use ec2sim::{SecurityGroup, Subnet, World, Zone};
use freehold::api::NodeClass;
use freehold::api::keys::{DEDICATED_LABEL, DEDICATED_TAINT};
use k8s_openapi::api::core::v1::Node as CoreNode;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::release::{platform_machine, prepare, release, uninstall};
use crate::kit::chart::{CHART, documents};
use crate::kit::env::Env as _;
use crate::kit::process::{OPERATOR, binary};
use crate::kit::real::{RealEnv, on_real_machines_of};

const RENDERED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/terraform/tests/example/rendered");

/// The first Database of the page.
const DATABASE: &str = include_str!("../../../examples/database.yaml");

fn rendered(name: &str) -> String {
    std::fs::read_to_string(format!("{RENDERED}/{name}.yaml")).unwrap()
}

/// An account that has what the NodeClass names, and nothing else of its kind.
fn account_of(class: &NodeClass, region: &str) -> World {
    let usual = World::default();
    let spec = &class.spec;
    let mut image = usual.images[0].clone();
    image.id.clone_from(&spec.image_id);
    let vpc_id = &usual.subnets[0].vpc_id;
    let zone = |(number, zone): (usize, &String)| Zone { name: zone.clone(), id: format!("az{number}") };
    let subnets = spec.subnets.iter().zip(&usual.subnets).map(|(named, usual)| Subnet {
        id: named.id.clone(),
        zone: named.zone.clone(),
        ..usual.clone()
    });
    let group =
        |id: &String| SecurityGroup { id: id.clone(), name: "cluster".to_owned(), vpc_id: vpc_id.clone() };
    World {
        region: region.to_owned(),
        zones: spec.subnets.iter().map(|subnet| &subnet.zone).enumerate().map(zone).collect(),
        subnets: subnets.collect(),
        images: vec![image],
        security_groups: spec.security_group_ids.iter().map(group).collect(),
        instance_profiles: spec.instance_profile.iter().cloned().collect(),
        kms_keys: usual.kms_keys.iter().map(|key| key.replace(&usual.region, region)).collect(),
        ..usual
    }
}

/// `kubectl apply` of a manifest.
fn apply(env: &RealEnv, manifest: &str) {
    let mut kubectl = env.kubectl();
    let mut child = kubectl
        .args(["apply", "--filename", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// `kubectl` with these arguments; what it printed.
fn kubectl(env: &RealEnv, args: &[&str]) -> String {
    let output = env.kubectl().args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_the_terraform_example_renders_gives_the_first_database_its_machine() {
    let manifests = rendered("manifests");
    let values = documents(&rendered("helm_values")).remove(0);
    let class: NodeClass = serde_json::from_value(documents(&manifests).remove(0)).unwrap();
    let world = account_of(&class, values["aws"]["region"].as_str().unwrap());
    on_real_machines_of("example", world, |mut env| async move {
        env.has_tap = false;
        let operator = binary(env.control_plane.folder());
        let tag = values["image"]["tag"].as_str().unwrap();
        platform_machine(&env, &[(tag, &operator)]).await;
        let of_the_box = prepare(&env).await.display().to_string();
        let example = format!("{RENDERED}/helm_values.yaml");
        let install = ["install", "freehold", CHART, "--values", &example, "--values", &of_the_box];
        // The definitions are there already.
        release(&env, &[&install[..], &["--take-ownership", "--force-conflicts"]].concat()).await;

        apply(&env, &manifests);
        let class = format!("nodeclass/{}", class.name_any());
        kubectl(&env, &["wait", "--for", "condition=Ready", &class, "--timeout", "120s"]);
        kubectl(&env, &["get", "storageclass", values["storageClass"]["name"].as_str().unwrap()]);
        apply(&env, &DATABASE.replace("namespace: default", &format!("namespace: {}", env.name)));
        env.serves("orders").await;

        // nodeadm's flags and its configuration reached the kubelet.
        let label = ListParams::default().labels(&format!("{DEDICATED_LABEL}=true"));
        let nodes = Api::<CoreNode>::all(env.client.clone()).list(&label).await.unwrap().items;
        let [node] = nodes.as_slice() else { panic!("not one Kubernetes node: {nodes:?}") };
        let taints = node.spec.as_ref().unwrap().taints.clone().unwrap_or_default();
        let taint = taints.iter().find(|taint| taint.key == DEDICATED_TAINT).unwrap();
        assert_eq!((taint.value.as_deref(), taint.effect.as_str()), (Some("true"), "NoExecute"));
        let path = format!("/api/v1/nodes/{}/proxy/configz", node.name_any());
        let kubelet: Value = serde_json::from_str(&kubectl(&env, &["get", "--raw", &path])).unwrap();
        assert_eq!(kubelet["kubeletconfig"]["podPidsLimit"], 4096);

        assert!(env.ec2().used_statements(OPERATOR).iter().any(|statement| statement == "LaunchInstances"));
        env.edit("orders", &json!({"deletionPolicy": "Delete"})).await;
        env.env.delete("orders").await;
        env.is_gone("orders").await;
        kubectl(&env, &["delete", &class, "--timeout", "120s"]);
        uninstall(&env).await;
        env
    });
}
