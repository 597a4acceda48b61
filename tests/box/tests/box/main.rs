//! The box as a whole: what its users rely on, seen on a real control plane.
//!
//! All tests share one control plane; each has a site, and so an EC2, of its own.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail a test as tests do")]

mod csi;
mod images;
mod legacy;
mod provisioning;
mod real;
mod storage;
mod world;
mod writer;

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use ec2sim::{InstanceState, Outside};
use freehold_box::account::{Site, SiteOptions};
use freehold_box::base::cache::Cache;
use freehold_box::base::names::EBS_DRIVER;
use freehold_box::base::process::Identity;
use freehold_box::cluster::audit;
use freehold_box::cluster::control_plane::{ControlPlane, ControlPlaneOptions};
use freehold_box::cluster::shared;
use freehold_box::presentation::daemon::Record;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::api::storage::v1::CSINode;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt as _};
use serde_json::json;
use world::{LIMIT, World, is_ready, restarts, until};

#[test]
fn a_machine_joins_as_its_user_data_says() {
    shared::run(async {
        let world = World::start("joins", SiteOptions::fast()).await;
        let instance = world.dedicated();
        let node = world.node_with_ready(&instance, "True").await;

        let truth = world.site.simulator().instance(&instance).unwrap();
        assert_eq!(node.name_any(), truth.private_dns);
        let spec = node.spec.as_ref().unwrap();
        assert_eq!(spec.provider_id, Some(format!("aws:///{}/{instance}", truth.zone)));
        let taints: Vec<_> =
            spec.taints.iter().flatten().map(|taint| (taint.key.as_str(), taint.effect.as_str())).collect();
        assert!(taints.contains(&("test/dedicated", "NoExecute")), "{taints:?}");
        for (label, value) in [
            ("test/dedicated", "true"),
            ("topology.kubernetes.io/zone", truth.zone.as_str()),
            ("topology.kubernetes.io/region", "us-east-1"),
            ("node.kubernetes.io/instance-type", "r7i.large"),
        ] {
            assert_eq!(node.labels().get(label).map(String::as_str), Some(value), "{label}");
        }
        let csi = Api::<CSINode>::all(world.client.clone());
        let drivers = until("the CSINode", || async { csi.get_opt(&node.name_any()).await.unwrap() })
            .await
            .spec
            .drivers;
        assert_eq!(
            drivers.iter().map(|driver| (driver.name.as_str(), driver.node_id.as_str())).collect::<Vec<_>>(),
            [(EBS_DRIVER, instance.as_str())]
        );
        world.site.stop().await;
    });
}

#[test]
fn a_machine_that_cannot_read_its_user_data_never_joins_and_its_console_says_why() {
    shared::run(async {
        let world = World::start("refuses", SiteOptions::fast()).await;
        let refused = world.launch("#!/bin/sh\nreboot\n");
        let good = world.dedicated();
        world.node_with_ready(&good, "True").await;
        let console = until("the console's line", || async {
            let console = world.site.simulator().instance(&refused)?.console;
            console.contains("does not join").then_some(console)
        })
        .await;
        assert!(console.contains("/opt/freehold-box/bootstrap"), "{console}");
        assert!(world.node(&refused).await.is_none());
        world.site.stop().await;
    });
}

#[test]
fn a_stopped_machine_stops_heartbeating_and_comes_back_under_its_name() {
    shared::run(async {
        let world = World::start("stops", SiteOptions::fast()).await;
        let instance = world.dedicated();
        let node = world.node_with_ready(&instance, "True").await;
        world.pod(&node, false).await;
        world.pod_is("ready", is_ready).await;

        world.site.simulator().outside(&Outside::Stop.to(&instance)).unwrap();
        world.node_with_ready(&instance, "Unknown").await;
        let pod = world.pod_is("unready", |pod| !is_ready(pod)).await;
        assert_eq!(pod.status.unwrap().phase.unwrap(), "Running");
        // On a dead machine no kubelet ends a pod.
        world.pods().delete("db", &DeleteParams::default()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(
            world
                .pods()
                .get_opt("db")
                .await
                .unwrap()
                .is_some_and(|pod| pod.metadata.deletion_timestamp.is_some())
        );

        world.site.simulator().outside(&Outside::Start.to(&instance)).unwrap();
        let again = world.node_with_ready(&instance, "True").await;
        assert_eq!((again.name_any(), again.uid()), (node.name_any(), node.uid()));
        until("the pod's end", || async {
            world.pods().get_opt("db").await.unwrap().is_none().then_some(())
        })
        .await;
        world.site.stop().await;
    });
}

#[test]
fn a_rebooted_machine_has_restarted_its_pods() {
    shared::run(async {
        let world = World::start("reboots", SiteOptions::fast()).await;
        let instance = world.dedicated();
        let node = world.node_with_ready(&instance, "True").await;
        world.pod(&node, false).await;
        assert_eq!(restarts(&world.pod_is("ready", is_ready).await), 0);
        world.site.simulator().outside(&Outside::Reboot.to(&instance)).unwrap();
        world.pod_is("restarted and ready", |pod| restarts(pod) == 1 && is_ready(pod)).await;
        world.site.stop().await;
    });
}

#[test]
fn the_node_of_a_terminated_machine_is_deleted() {
    shared::run(async {
        let world = World::start("terminates", SiteOptions::fast()).await;
        let instance = world.dedicated();
        world.node_with_ready(&instance, "True").await;
        world.site.simulator().outside(&Outside::Terminate.to(&instance)).unwrap();
        until("the Node's end", || async { world.node(&instance).await.is_none().then_some(()) }).await;
        assert_eq!(world.site.simulator().instance(&instance).unwrap().state, InstanceState::Terminated);
        world.site.stop().await;
    });
}

#[test]
fn a_volume_is_attached_over_http_before_its_pod_runs_and_detached_after_it() {
    shared::run(async {
        let mut options = SiteOptions::fast();
        let attaching = Duration::from_hours(1);
        options.simulator.delays.attaching = attaching;
        let world = World::start("attaches", options).await;
        let volume = world.volume().await;
        let instance = world.dedicated();
        let node = world.node_with_ready(&instance, "True").await;
        world.pod(&node, true).await;

        let truth = || world.site.simulator().volume(&volume).unwrap().attachment;
        let waits = |pod: &Pod| {
            let statuses = pod
                .status
                .as_ref()
                .and_then(|status| status.container_statuses.as_deref())
                .unwrap_or_default();
            statuses.iter().any(|status| status.state.as_ref().is_some_and(|state| state.waiting.is_some()))
        };
        world.pod_is("waiting for its volume", waits).await;
        until("the volume being attached", || async { truth().map(drop) }).await;
        world.site.simulator().advance(attaching);
        world.pod_is("ready", is_ready).await;
        assert_eq!(truth().unwrap().instance_id, instance);
        let attachment = world.attachment().await.unwrap();
        assert!(attachment.status.as_ref().unwrap().attached);
        assert_eq!(attachment.finalizers(), ["external-attacher/ebs-csi-aws-com"]);
        let node_now = world.node(&instance).await.unwrap();
        assert_eq!(
            node_now.status.unwrap().volumes_in_use,
            Some(vec![format!("kubernetes.io/csi/{EBS_DRIVER}^{volume}")]),
            "a mounted volume is in use"
        );

        world.pods().delete("db", &DeleteParams::default()).await.unwrap();
        until("the volume's return", || async { truth().is_none().then_some(()) }).await;
        until("the VolumeAttachment's end", || async { world.attachment().await.is_none().then_some(()) })
            .await;
        assert_eq!((world.calls("AttachVolume"), world.calls("DetachVolume")), (1, 1));
        world.site.stop().await;
    });
}

#[test]
fn a_dead_machine_keeps_its_volume_until_it_is_declared_out_of_service() {
    shared::run(async {
        let world = World::start("fences", SiteOptions::fast()).await;
        let volume = world.volume().await;
        let instance = world.dedicated();
        let node = world.node_with_ready(&instance, "True").await;
        world.pod(&node, true).await;
        world.pod_is("ready", is_ready).await;

        world.site.simulator().outside(&Outside::Stop.to(&instance)).unwrap();
        world.node_with_ready(&instance, "Unknown").await;
        world.pods().delete("db", &DeleteParams::default().grace_period(0)).await.unwrap();
        // The Node says that the volume is mounted, and no kubelet unmounts it: Kubernetes waits 6 minutes.
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(world.attachment().await.unwrap().metadata.deletion_timestamp.is_none());

        let taints = json!({"spec": {"taints": [{"key": "node.kubernetes.io/out-of-service",
        "value": "nodeshutdown",
            "effect": "NoExecute"}]}});
        let nodes = Api::<Node>::all(world.client.clone());
        nodes.patch(&node.name_any(), &PatchParams::default(), &Patch::Strategic(taints)).await.unwrap();
        until("the VolumeAttachment's end", || async { world.attachment().await.is_none().then_some(()) })
            .await;
        assert!(world.site.simulator().volume(&volume).unwrap().attachment.is_none());
        world.site.stop().await;
    });
}

#[test]
fn a_claim_that_asks_for_more_gets_it_with_as_few_calls_as_the_driver_makes() {
    shared::run(async {
        let world = World::start("grows", SiteOptions::fast()).await;
        let volume = world.volume().await;
        let instance = world.dedicated();
        let node = world.node_with_ready(&instance, "True").await;
        world.pod(&node, true).await;
        world.pod_is("ready", is_ready).await;

        // Grown in EC2 before the PVC asks: no second call.
        let params = [("Action", "ModifyVolume"), ("VolumeId", volume.as_str()), ("Size", "20")];
        world.site.simulator().call("test", &params).unwrap();
        world.ask_for("20Gi").await;
        world.claim_has("20Gi").await;
        assert_eq!(world.calls("ModifyVolume"), 0);

        // Not grown: the driver does it itself, once.
        world.ask_for("30Gi").await;
        world.claim_has("30Gi").await;
        assert_eq!(world.calls("ModifyVolume"), 1);
        assert_eq!(world.site.simulator().volume(&volume).unwrap().shape.size, 30);
        world.site.stop().await;
    });
}

#[test]
fn the_audit_log_names_the_user_of_the_operator() {
    shared::run(async {
        let control_plane = shared::control_plane().await.unwrap();
        let kubeconfig = Kubeconfig::read_from(control_plane.operator_kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let maps = Api::<ConfigMap>::namespaced(Client::try_from(config).unwrap(), "default");
        // No role is bound to it.
        let map = serde_json::from_value(json!({"metadata": {"name": "audited"}})).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap_err();
        maps.get("audited").await.unwrap_err();
        let seen = until("both requests in the log", || async {
            let requests = audit::requests(&control_plane.audit_log()).unwrap();
            let mine: Vec<_> = requests.into_iter().filter(|request| request.user == "freehold").collect();
            (mine.len() >= 2).then_some(mine)
        })
        .await;
        let seen: Vec<_> = seen
            .iter()
            .map(|request| {
                (request.verb.as_str(), request.resource.as_str(), request.is_write(), request.is_forbidden)
            })
            .collect();
        assert_eq!(seen, [("create", "configmaps", true, true), ("get", "configmaps", false, true)]);
    });
}

#[test]
fn two_boxes_run_side_by_side_and_a_stopped_one_leaves_nothing() {
    shared::run(async {
        let first = shared::control_plane().await.unwrap();
        let second = ControlPlane::start(ControlPlaneOptions::named("second")).await.unwrap();
        let site = Site::start(&second, SiteOptions::fast()).await.unwrap();
        assert_ne!(first.server(), second.server());
        for client in [first.client(), second.client()] {
            client.apiserver_version().await.unwrap();
        }
        let processes: Vec<Identity> =
            second.components().iter().filter_map(|part| Identity::of(part.id)).collect();
        assert_eq!(processes.len(), 5);
        let folder = second.folder().to_owned();
        site.stop().await;
        second.stop().await;
        assert!(processes.iter().all(|process| !process.lives()));
        assert!(!folder.exists());
        first.client().apiserver_version().await.unwrap();
    });
}

/// A cache of its own, with the programs of the usual one.
fn own_cache() -> tempfile::TempDir {
    shared::run(async { shared::control_plane().await.map(drop) }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(Cache::from_environment().tools(), folder.path().join("tools")).unwrap();
    folder
}

fn cargo_box(cache: &tempfile::TempDir, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_freehold-box"))
        .args(args)
        .env("FREEHOLD_CACHE", cache.path())
        .output()
        .unwrap()
}

fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn runs(cache: &tempfile::TempDir) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(cache.path().join("run")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

fn record(cache: &tempfile::TempDir) -> Record {
    serde_json::from_slice(&std::fs::read(cache.path().join("boxes/box/record.json")).unwrap()).unwrap()
}

#[test]
fn a_killed_box_is_cleaned_up_by_the_next() {
    let cache = own_cache();
    succeeded(&cargo_box(&cache, &["up"]));
    let killed = record(&cache);
    let processes: Vec<Identity> =
        killed.components.iter().filter_map(|part| Identity::of(part.id)).collect();
    assert_eq!(processes.len(), 5);
    killed.identity.signal(nix::sys::signal::Signal::SIGKILL);
    let started = Instant::now();
    while processes.iter().any(|process| process.lives()) {
        assert!(started.elapsed() < LIMIT, "the processes of a killed box go on");
        std::thread::sleep(Duration::from_millis(100));
    }
    let left = runs(&cache);
    assert_eq!(left.len(), 1);

    let exports = succeeded(&cargo_box(&cache, &["up"]));
    assert!(
        exports.contains("export KUBECONFIG=")
            && exports.contains(
                "export \
        AWS_ENDPOINT_URL_EC2=http://127.0.0.1:"
            ),
        "{exports}"
    );
    assert!(!left[0].exists());
    assert_eq!(succeeded(&cargo_box(&cache, &["env"])), exports);
    let status = succeeded(&cargo_box(&cache, &["status"]));
    for part in ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "ec2"] {
        assert!(status.contains(part), "{status}");
    }

    let second = record(&cache);
    let said = succeeded(&cargo_box(&cache, &["down"]));
    assert!(said.contains("stopped: kube-apiserver"), "{said}");
    assert!(!second.identity.lives());
    assert_eq!(runs(&cache), Vec::<PathBuf>::new());
    assert!(succeeded(&cargo_box(&cache, &["down"])).contains("no box `box` is running"));
    assert!(!cargo_box(&cache, &["env"]).status.success());
}
