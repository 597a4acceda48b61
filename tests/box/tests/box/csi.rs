//! The real EBS CSI driver, csi-attacher and csi-resizer against the simulator. Whose machine it is they
//! can't see: an instance in EC2 and two objects in the API server are enough for them. It needs no
//! privileges.
//!
//! They act on every object of their driver, so the control plane is their own.

use std::time::Duration;

use ec2sim::{AttachmentState, Delays, Fate, Options, Simulator, VolumeView};
use freehold_box::base::cache::Cache;
use freehold_box::base::names::EBS_DRIVER;
use freehold_box::base::progress::Progress;
use freehold_box::cluster::control_plane::{ControlPlane, ControlPlaneOptions, STORAGE_CLASS};
use freehold_box::cluster::shared;
use freehold_box::cluster::tools::{Bundle, Tools};
use freehold_box::machines::csi::{CALLER, Controller, Setup};
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSINode, VolumeAttachment};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::world::until;

const NAMESPACE: &str = "default";

/// An account with one volume, which is a PV and a PVC, and what a kubelet would say of its instances.
struct Kit {
    simulator: Simulator,
    client: Client,
    volume: String,
}

impl Kit {
    async fn new(simulator: Simulator, client: Client) -> Self {
        let params = [
            ("Action", "CreateVolume"),
            ("AvailabilityZone", "us-east-1a"),
            ("Size", "1"),
            ("VolumeType", "gp3"),
        ];
        let volume = simulator.call("test", &params).unwrap().resource_ids().remove(0);
        let kit = Self { simulator, client, volume };
        let source = json!({
            "metadata": {"name": "data"},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOncePod"],
                "storageClassName": STORAGE_CLASS,
                "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": NAMESPACE,
                "name": "data"},
                "csi": {"driver": EBS_DRIVER, "volumeHandle": kit.volume, "fsType": "xfs"},
            },
        });
        let claim = json!({
            "metadata": {"name": "data"},
            "spec": {
                "volumeName": "data", "accessModes": ["ReadWriteOncePod"], "storageClassName": STORAGE_CLASS,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        });
        create(&Api::<PersistentVolume>::all(kit.client.clone()), source).await;
        create(&kit.claims(), claim).await;
        kit
    }

    /// An instance of EC2 that has joined.
    async fn machine(&self, name: &str) -> String {
        let params = [
            ("Action", "RunInstances"),
            ("ImageId", "ami-0000000000000000a"),
            ("InstanceType", "r7i.large"),
            ("MinCount", "1"),
            ("MaxCount", "1"),
            ("SubnetId", "subnet-0a000000000000000"),
        ];
        let instance = self.simulator.call("test", &params).unwrap().resource_ids().remove(0);
        until("the instance running", || async {
            self.simulator.instance(&instance).filter(|view| view.state == ec2sim::InstanceState::Running)
        })
        .await;
        create(
            &self.nodes(),
            json!({"metadata": {"name": name},
        "spec": {"providerID": format!("aws:///us-east-1a/{instance}")}}),
        )
        .await;
        let drivers = json!([{"name": EBS_DRIVER, "nodeID": instance,
        "topologyKeys": ["topology.kubernetes.io/zone"]}]);
        create(&self.csi_nodes(), json!({"metadata": {"name": name}, "spec": {"drivers": drivers}})).await;
        instance
    }

    /// What the attach/detach controller does when a pod is scheduled to this Node.
    async fn attach(&self, node: &str) {
        let spec = json!({"attacher": EBS_DRIVER, "nodeName": node,
        "source": {"persistentVolumeName": "data"}});
        create(&self.attachments(), json!({"metadata": {"name": "data"}, "spec": spec})).await;
        until("the VolumeAttachment being attached", || async {
            let attachment = self.attachments().get("data").await.unwrap();
            attachment.status.filter(|status| status.attached)
        })
        .await;
    }

    /// What the attach/detach controller does when the pod is gone.
    async fn detach(&self) {
        self.attachments().delete("data", &DeleteParams::default()).await.unwrap();
        until("the VolumeAttachment's end", || async {
            self.attachments().get_opt("data").await.unwrap().is_none().then_some(())
        })
        .await;
    }

    fn truth(&self) -> VolumeView {
        self.simulator.volume(&self.volume).unwrap()
    }

    /// How often the driver called this action with success.
    fn calls(&self, action: &str) -> usize {
        let journal = self.simulator.journal();
        let ours = journal.iter().filter(|entry| entry.caller == CALLER && entry.action == action);
        ours.filter(|entry| matches!(entry.fate, Fate::Committed | Fate::Read)).count()
    }

    async fn ask_for(&self, size: &str) {
        let patch = json!({"spec": {"resources": {"requests": {"storage": size}}}});
        self.claims().patch("data", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        until(&format!("the PV having {size}"), || async {
            let volume = Api::<PersistentVolume>::all(self.client.clone()).get("data").await.unwrap();
            let capacity = volume.spec.and_then(|spec| spec.capacity).unwrap_or_default();
            capacity.get("storage").filter(|quantity| quantity.0 == size).cloned()
        })
        .await;
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    fn csi_nodes(&self) -> Api<CSINode> {
        Api::all(self.client.clone())
    }

    fn attachments(&self) -> Api<VolumeAttachment> {
        Api::all(self.client.clone())
    }

    fn claims(&self) -> Api<PersistentVolumeClaim> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

#[test]
fn the_real_driver_attaches_grows_and_detaches_by_the_simulator_and_survives_what_goes_missing() {
    shared::run(async {
        let tools =
            Tools::ensure(&Cache::from_environment(), &[Bundle::Csi], &Progress::on_stderr()).await.unwrap();
        let control_plane = ControlPlane::start(ControlPlaneOptions::named("csi")).await.unwrap();
        let simulator = Simulator::new(Options { delays: Delays::fast(), ..Options::default() }).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let server = tokio::spawn({
            let (simulator, stop) = (simulator.clone(), stop.clone());
            async move { simulator.serve(listener, stop).await }
        });
        let setup = Setup {
            tools: &tools,
            folder: control_plane.folder(),
            kubeconfig: control_plane.kubeconfig(),
            endpoint: &endpoint,
            region: "us-east-1",
        };
        let controller = Controller::start(setup).await.unwrap();
        let running = tokio::spawn(controller.run(stop.clone()));
        let kit = Kit::new(simulator, control_plane.client()).await;

        let first = kit.machine("first").await;
        kit.attach("first").await;
        let attachment = kit.truth().attachment.unwrap();
        assert_eq!((attachment.instance_id, attachment.state), (first, AttachmentState::Attached));
        assert!(attachment.device.starts_with("/dev/xvd"), "{}", attachment.device);
        assert_eq!((kit.calls("AttachVolume"), kit.calls("DetachVolume")), (1, 0));

        // The size is there already: no call of the driver's changes anything.
        let grow = [("Action", "ModifyVolume"), ("VolumeId", kit.volume.as_str()), ("Size", "2")];
        kit.simulator.call("test", &grow).unwrap();
        until("the new size", || async { (kit.truth().shape.size == 2).then_some(()) }).await;
        kit.ask_for("2Gi").await;
        assert_eq!(kit.calls("ModifyVolume"), 0);

        kit.detach().await;
        assert!(kit.truth().attachment.is_none());
        assert_eq!(kit.calls("DetachVolume"), 1);

        // The Node goes before its volume is detached.
        kit.attach("first").await;
        kit.csi_nodes().delete("first", &DeleteParams::default()).await.unwrap();
        kit.nodes().delete("first", &DeleteParams::default()).await.unwrap();
        kit.detach().await;
        assert!(kit.truth().attachment.is_none());

        // The instance goes, and its volume with it.
        let second = kit.machine("second").await;
        kit.attach("second").await;
        kit.simulator.call("test", &[("Action", "TerminateInstances"), ("InstanceId.1", &second)]).unwrap();
        kit.detach().await;
        assert!(kit.truth().attachment.is_none());

        stop.cancel();
        tokio::time::timeout(Duration::from_secs(20), running).await.unwrap().unwrap();
        server.await.unwrap().unwrap();
        control_plane.stop().await;
    });
}
