//! The real EBS CSI driver, csi-attacher, csi-provisioner and csi-resizer against the simulator. Whose
//! machine it is they can't see: an instance in EC2 and two objects in the API server are enough for them. It
//! needs no privileges.
//!
//! They act on every object of their driver, so each test has a control plane of its own.

use std::time::Duration;

use ec2sim::{AttachmentState, Delays, Fate, Options, Simulator, Subnet, VolumeView};
use freehold_box::base::cache::Cache;
use freehold_box::base::names::EBS_DRIVER;
use freehold_box::base::progress::Progress;
use freehold_box::cluster::control_plane::{ControlPlane, ControlPlaneOptions, STORAGE_CLASS};
use freehold_box::cluster::shared;
use freehold_box::cluster::tools::{Bundle, Tools};
use freehold_box::machines::csi::{CALLER, Controller, Setup};
use k8s_openapi::api::core::v1::{Event, Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass, VolumeAttachment};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::world::until;

const NAMESPACE: &str = "default";

/// The label of a zone, which is the driver's topology.
const ZONE: &str = "topology.kubernetes.io/zone";

/// An account, and what a kubelet would say of its instances.
struct Kit {
    simulator: Simulator,
    client: Client,
}

/// The same with one volume, which is a PV and a PVC.
struct VolumeKit {
    kit: Kit,
    volume: String,
}

impl std::ops::Deref for VolumeKit {
    type Target = Kit;

    fn deref(&self) -> &Kit {
        &self.kit
    }
}

impl VolumeKit {
    async fn new(kit: Kit) -> Self {
        let params = [
            ("Action", "CreateVolume"),
            ("AvailabilityZone", "us-east-1a"),
            ("Size", "1"),
            ("VolumeType", "gp3"),
        ];
        let volume = kit.simulator.call("test", &params).unwrap().resource_ids().remove(0);
        let kit = Self { kit, volume };
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

    fn truth(&self) -> VolumeView {
        self.simulator.volume(&self.volume).unwrap()
    }
}

impl Kit {
    /// An instance of EC2 that has joined, in the account's first zone.
    async fn machine(&self, name: &str) -> String {
        let subnet = self.simulator.world().subnets[0].clone();
        self.machine_in(name, &subnet).await
    }

    async fn machine_in(&self, name: &str, subnet: &Subnet) -> String {
        let params = [
            ("Action", "RunInstances"),
            ("ImageId", "ami-0000000000000000a"),
            ("InstanceType", "r7i.large"),
            ("MinCount", "1"),
            ("MaxCount", "1"),
            ("SubnetId", &subnet.id),
        ];
        let instance = self.simulator.call("test", &params).unwrap().resource_ids().remove(0);
        until("the instance running", || async {
            self.simulator.instance(&instance).filter(|view| view.state == ec2sim::InstanceState::Running)
        })
        .await;
        create(
            &self.nodes(),
            json!({"metadata": {"name": name, "labels": {ZONE: subnet.zone}},
        "spec": {"providerID": format!("aws:///{}/{instance}", subnet.zone)}}),
        )
        .await;
        let drivers = json!([{"name": EBS_DRIVER, "nodeID": instance, "topologyKeys": [ZONE]}]);
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

    fn volumes(&self) -> Api<PersistentVolume> {
        Api::all(self.client.clone())
    }

    /// A claim of a class as EKS clusters have it, for which the scheduler has chosen this Node.
    async fn claim_for(&self, node: &str) {
        let class = json!({
            "metadata": {"name": "gp3"},
            "provisioner": EBS_DRIVER, "parameters": {"type": "gp3"}, "reclaimPolicy": "Delete",
            "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": true,
        });
        create(&Api::<StorageClass>::all(self.client.clone()), class).await;
        let claim = json!({
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "gp3",
                "resources": {"requests": {"storage": "3Gi"}},
            },
        });
        create(&self.claims(), claim).await;
        // Kubernetes says this event of a claim for which no pod asks yet.
        until("the claim waiting for its first consumer", || async {
            let events = Api::<Event>::namespaced(self.client.clone(), NAMESPACE);
            let all = events.list(&ListParams::default()).await.unwrap().items;
            all.into_iter().find(|event| event.reason.as_deref() == Some("WaitForFirstConsumer"))
        })
        .await;
        assert_eq!(self.calls("CreateVolume"), 0);
        let chosen = json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": node}}});
        self.claims().patch("data", &PatchParams::default(), &Patch::Merge(chosen)).await.unwrap();
    }

    /// The PV that the claim is bound to.
    async fn bound(&self) -> PersistentVolume {
        let name = until("the claim being bound", || async {
            let claim = self.claims().get("data").await.unwrap();
            let is_bound = claim.status.is_some_and(|status| status.phase.as_deref() == Some("Bound"));
            claim.spec.and_then(|spec| spec.volume_name).filter(|_| is_bound)
        })
        .await;
        self.volumes().get(&name).await.unwrap()
    }
}

/// Runs a test with the driver and its sidecars on a control plane of their own.
fn with_driver(name: &str, test: impl AsyncFnOnce(Kit)) {
    shared::run(async {
        let bundles = [Bundle::Csi, Bundle::Provisioner];
        let tools =
            Tools::ensure(&Cache::from_environment(), &bundles, &Progress::on_stderr()).await.unwrap();
        let control_plane = ControlPlane::start(ControlPlaneOptions::named(name)).await.unwrap();
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
        test(Kit { simulator, client: control_plane.client() }).await;
        stop.cancel();
        tokio::time::timeout(Duration::from_secs(20), running).await.unwrap().unwrap();
        server.await.unwrap().unwrap();
        control_plane.stop().await;
    });
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

#[test]
fn the_real_driver_attaches_grows_and_detaches_by_the_simulator_and_survives_what_goes_missing() {
    with_driver("csi", async |kit| {
        let kit = VolumeKit::new(kit).await;
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
    });
}

#[test]
fn a_claim_gets_a_volume_in_the_zone_of_its_first_consumer_and_the_volume_goes_with_the_claim() {
    with_driver("csi-dynamic", async |kit| {
        let subnets = kit.simulator.world().subnets;
        kit.machine_in("elsewhere", &subnets[0]).await;
        kit.machine_in("chosen", &subnets[1]).await;
        let zone = &subnets[1].zone;
        kit.claim_for("chosen").await;
        let record = kit.bound().await;

        let spec = record.spec.as_ref().unwrap();
        assert_eq!(spec.persistent_volume_reclaim_policy.as_deref(), Some("Delete"));
        let csi = spec.csi.as_ref().unwrap();
        assert_eq!((csi.driver.as_str(), csi.fs_type.as_deref()), (EBS_DRIVER, Some("ext4")));
        let terms = spec.node_affinity.as_ref().unwrap().required.as_ref().unwrap();
        assert_eq!(
            json!(terms.node_selector_terms),
            json!([{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}])
        );
        assert_eq!(record.annotations()["pv.kubernetes.io/provisioned-by"], EBS_DRIVER);
        assert!(
            record.finalizers().contains(&"external-provisioner.volume.kubernetes.io/finalizer".to_owned())
        );

        let truth = kit.simulator.volume(&csi.volume_handle).unwrap();
        assert_eq!((&truth.zone, truth.shape.size, truth.shape.volume_type.as_str()), (zone, 3, "gp3"));
        for (tag, value) in [
            ("CSIVolumeName", record.name_any().as_str()),
            ("ebs.csi.aws.com/cluster", "true"),
            ("kubernetes.io/created-for/pv/name", &record.name_any()),
            ("kubernetes.io/created-for/pvc/name", "data"),
            ("kubernetes.io/created-for/pvc/namespace", NAMESPACE),
        ] {
            assert_eq!(truth.tags.get(tag).map(String::as_str), Some(value), "{tag}");
        }

        kit.claims().delete("data", &DeleteParams::default()).await.unwrap();
        until("the PV's end", || async {
            kit.volumes().get_opt(&record.name_any()).await.unwrap().is_none().then_some(())
        })
        .await;
        until("the volume's end", || async {
            kit.simulator.volume(&csi.volume_handle).is_none().then_some(())
        })
        .await;
        // On a slow host the provisioner sends DeleteVolume again before EC2 has answered the first.
        assert_eq!(kit.calls("CreateVolume"), 1);
    });
}
