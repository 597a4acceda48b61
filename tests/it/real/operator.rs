//! The operator as users run it: its image, in a pod on a real node, with no more rights than it needs.

use std::io::Write as _;
use std::process::{Command, Stdio};

use aws_sdk_ec2::types::InstanceType;
use data_encoding::BASE64;
use freehold_box::images;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use serde_json::json;

use crate::kit::process::binary;
use crate::kit::real::{LIMIT, RealHouse, on_real_machines, questdb};
use crate::kit::wait::{seen, within};

const MANIFEST: &str = include_str!("operator.yaml");

/// Launches a machine for the platform's own pods and puts the operator's image on it; the image's name.
async fn platform_machine(house: &RealHouse) -> String {
    let world = house.site.world();
    let user_data = format!("#!/bin/sh\n/opt/freehold-box/bootstrap --node-labels freehold.dev/platform={}\n", house.name);
    let launched = house
        .ec2_client()
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
    let id = launched.instances()[0].instance_id().unwrap().to_owned();
    let machines = house.site.machines().unwrap();
    let machine = within(LIMIT, "the platform's machine", || async { seen(machines.get(&id), || id.clone()) }).await;
    let archive = house.control_plane.folder().join("operator.tar");
    let image = images::write_operator_image(&binary(house.control_plane.folder()), &house.name, &archive).await.unwrap();
    within(LIMIT, "the operator's image on the machine", || async {
        let ctr = "/opt/freehold-box/bin/ctr";
        let import = images::import_arguments("/run/containerd/containerd.sock".as_ref(), &archive);
        let output = machine.enter(ctr).args(import).output().unwrap();
        seen(output.status.success().then_some(()), || String::from_utf8_lossy(&output.stderr).into_owned())
    })
    .await;
    image
}

/// Gives the manifest to kubectl.
fn kubectl(house: &RealHouse, verb: &str, manifest: &str) {
    // Its objects have a namespace of their own.
    let mut kubectl = Command::new(house.control_plane.kubectl());
    kubectl.arg("--kubeconfig").arg(house.control_plane.kubeconfig()).args([verb, "-f", "-"]);
    let mut child = kubectl.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "kubectl {verb}");
}

#[test]
fn the_operator_runs_as_a_pod_with_the_rights_it_needs_and_makes_a_database() {
    on_real_machines("as-a-pod", |mut house| async move {
        house.has_tap = false;
        let image = platform_machine(&house).await;
        let port = house.site.endpoint().rsplit(':').next().unwrap().to_owned();
        let manifest = MANIFEST
            .replace("@IMAGE@", &image)
            .replace("@ENDPOINT@", &format!("http://{}:{port}", house.gateway()))
            .replace("@REGION@", house.site.region())
            .replace("@HOUSE@", &house.name);
        kubectl(&house, "apply", &manifest);
        let deployments = Api::<Deployment>::namespaced(house.client.clone(), "freehold-system");
        within(LIMIT, "the operator being available", || async {
            let deployment = deployments.get("freehold").await.map_err(|error| error.to_string())?;
            let available = deployment.status.as_ref().and_then(|status| status.available_replicas).unwrap_or_default();
            seen((available == 1).then_some(()), || format!("{:?}", deployment.status))
        })
        .await;

        let mut spec = questdb();
        spec["deletionPolicy"] = json!("Delete");
        house.create("orders", &spec).await;
        house.serves("orders").await;
        house.house.delete("orders").await;
        house.is_gone("orders").await;
        kubectl(&house, "delete", &manifest);
        house
    });
}
