//! A volume on a real machine: attached, mounted, grown and detached by the real driver, and what it holds
//! after a power cut.
//!
//! The driver acts on every object of its name, so the control plane is this test's own.

use std::time::{Duration, Instant};

use ec2sim::Fate;
use freehold_box::account::node_kind;
use freehold_box::account::{Real, Site, SiteOptions, user_data};
use freehold_box::base::cache::Cache;
use freehold_box::base::names::EBS_DRIVER;
use freehold_box::base::progress::Progress;
use freehold_box::cluster::control_plane::{ControlPlane, ControlPlaneOptions, STORAGE_CLASS};
use freehold_box::cluster::shared;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::world::{is_ready, launch, node_with_ready, restarts, turn, until};

async fn create<K>(api: &Api<K>, object: Value)
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    let object: K = serde_json::from_value(object).unwrap();
    until("the object being accepted", || async { api.create(&PostParams::default(), &object).await.ok() })
        .await;
}

fn pods(client: &Client) -> Api<Pod> {
    Api::namespaced(client.clone(), "default")
}

/// What a shell says in the pod.
async fn says(control_plane: &ControlPlane, command: &str) -> String {
    let mut kubectl = tokio::process::Command::new(control_plane.kubectl());
    kubectl
        .arg("--kubeconfig")
        .arg(control_plane.kubeconfig())
        .args(["exec", "writer", "--", "sh", "-c", command]);
    let output = tokio::time::timeout(Duration::from_secs(30), kubectl.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

async fn pod(client: &Client, node: &str, image: &str) {
    create(
        &pods(client),
        json!({
            "metadata": {"name": "writer"},
            "spec": {
                "nodeName": node, "tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": "writer", "image": image, "imagePullPolicy": "IfNotPresent",
                    "command": ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait; done"],
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                }],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            },
        }),
    )
    .await;
    let started = Instant::now();
    until("the pod being ready", || async { pods(client).get("writer").await.ok().filter(is_ready) }).await;
    eprintln!("pod ready after {} ms", started.elapsed().as_millis());
}

#[test]
fn a_volume_is_mounted_grows_under_its_pod_survives_a_power_cut_and_is_detached() {
    if !node_kind::can_be_real("a volume on a real machine") {
        return;
    }
    shared::run(async {
        let _turn = turn().await;
        let (cache, progress) = (Cache::from_environment(), Progress::on_stderr());
        let real = Real::ensure(&cache, &progress).await.unwrap();
        let image = real.template.names().iter().find(|name| name.contains("/postgres:")).unwrap().clone();
        let control_plane = ControlPlane::start(ControlPlaneOptions::named("storage")).await.unwrap();
        let site = Site::start(&control_plane, SiteOptions { real: Some(real), ..SiteOptions::fast() })
            .await
            .unwrap();
        let (client, simulator) = (control_plane.client(), site.simulator().clone());

        let instance = launch(&site, user_data::DEDICATED);
        let node = node_with_ready(&client, &instance, "True").await.name_any();
        let zone = &site.world().subnets[0].zone;
        let params =
            [("Action", "CreateVolume"), ("AvailabilityZone", zone), ("Size", "1"), ("VolumeType", "gp3")];
        let volume = simulator.call("test", &params).unwrap().resource_ids().remove(0);
        let capacity = json!({"storage": "1Gi"});
        create(
            &Api::<PersistentVolume>::all(client.clone()),
            json!({"metadata": {"name": "data"}, "spec": {
                "capacity": capacity, "accessModes": ["ReadWriteOncePod"], "storageClassName": STORAGE_CLASS,
                "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": "default",
                "name": "data"},
                "csi": {"driver": EBS_DRIVER, "volumeHandle": volume, "fsType": "xfs"},
            }}),
        )
        .await;
        let claims = Api::<PersistentVolumeClaim>::namespaced(client.clone(), "default");
        create(
            &claims,
            json!({"metadata": {"name": "data"}, "spec": {
                "volumeName": "data", "accessModes": ["ReadWriteOncePod"], "storageClassName": STORAGE_CLASS,
                "resources": {"requests": capacity},
            }}),
        )
        .await;
        pod(&client, &node, &image).await;
        let before = says(&control_plane, "grep ' /data ' /proc/mounts").await;
        assert!(before.contains("xfs"), "{before}");

        // Growth, as the operator does it: the volume first, then the claim.
        simulator.call("test", &[("Action", "ModifyVolume"), ("VolumeId", &volume), ("Size", "2")]).unwrap();
        until("the new size", || async { simulator.volume(&volume).filter(|view| view.shape.size == 2) })
            .await;
        let patch = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
        claims.patch("data", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        let started = Instant::now();
        loop {
            let mebibytes: u64 = says(&control_plane, "df --output=size --block-size=1M /data | tail -1")
                .await
                .parse()
                .unwrap();
            if mebibytes > 1500 {
                eprintln!("{mebibytes} MiB in the pod after {} s", started.elapsed().as_secs());
                break;
            }
            assert!(started.elapsed() < Duration::from_secs(300), "{mebibytes} MiB in the pod after 300 s");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(restarts(&pods(&client).get("writer").await.unwrap()), 0);
        let driver = |action: &str| {
            let journal = simulator.journal();
            journal
                .iter()
                .filter(|entry| {
                    entry.caller == "csi-driver" && entry.action == action && entry.fate == Fate::Committed
                })
                .count()
        };
        assert_eq!((driver("AttachVolume"), driver("ModifyVolume")), (1, 0));

        says(&control_plane, "echo kept > /data/kept; sync /data/kept /data; echo lost > /data/lost").await;
        assert!(site.machines().unwrap().cut_power(&instance).await);
        simulator.call("test", &[("Action", "RebootInstances"), ("InstanceId.1", &instance)]).unwrap();
        until("the pod running again", || async {
            pods(&client).get("writer").await.ok().filter(|pod| restarts(pod) > 0 && is_ready(pod))
        })
        .await;
        assert_eq!(says(&control_plane, "cat /data/*").await, "kept");

        pods(&client).delete("writer", &DeleteParams::default()).await.unwrap();
        until("the volume's return", || async {
            simulator.volume(&volume).unwrap().attachment.is_none().then_some(())
        })
        .await;
        assert_eq!(site.violations(), []);
        site.stop().await;
        control_plane.stop().await;
    });
}
