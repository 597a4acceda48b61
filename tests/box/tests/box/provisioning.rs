//! Claims of virtual machines' pods get their volumes as from the real driver and csi-provisioner, which
//! `csi.rs` has.

use ec2sim::VolumeView;
use freehold_box::account::SiteOptions;
use freehold_box::base::names::EBS_DRIVER;
use freehold_box::cluster::shared;
use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::world::{World, is_ready, until};

/// The finalizer of a PV whose volume the provisioner will delete.
const FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";

impl World {
    fn records(&self) -> Api<PersistentVolume> {
        Api::all(self.client.clone())
    }

    /// A claim of a class as EKS clusters have it, and a pod that uses it; gives the PV and the volume.
    async fn provisioned(&self) -> (PersistentVolume, VolumeView) {
        let class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": "dynamic"},
            "provisioner": EBS_DRIVER, "parameters": {"type": "gp3"}, "reclaimPolicy": "Delete",
            "volumeBindingMode": "WaitForFirstConsumer",
        });
        let classes = Api::<StorageClass>::all(self.client.clone());
        classes.patch("dynamic", &PatchParams::apply("test"), &Patch::Apply(class)).await.unwrap();
        let claim = json!({
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "dynamic",
                "resources": {"requests": {"storage": "3Gi"}},
            },
        });
        let claim = serde_json::from_value(claim).unwrap();
        self.claims().create(&PostParams::default(), &claim).await.unwrap();
        let instance = self.dedicated();
        let node = self.node_with_ready(&instance, "True").await;
        assert_eq!(self.calls("CreateVolume"), 0, "no pod asks for it");
        self.pod(&node, true).await;
        self.pod_is("ready", is_ready).await;

        let name = self.claims().get("data").await.unwrap().spec.unwrap().volume_name.unwrap();
        let record = self.records().get(&name).await.unwrap();
        let csi = record.spec.as_ref().unwrap().csi.as_ref().unwrap();
        let volume = self.site.simulator().volume(&csi.volume_handle).unwrap();
        assert_eq!(volume.zone, self.site.simulator().instance(&instance).unwrap().zone);
        assert_eq!(volume.attachment.as_ref().unwrap().instance_id, instance);
        (record, volume)
    }

    /// Deletes the pod, then the claim.
    async fn end(&self) {
        self.pods().delete("db", &DeleteParams::default()).await.unwrap();
        self.claims().delete("data", &DeleteParams::default()).await.unwrap();
    }
}

fn has_finalizer(record: &PersistentVolume) -> bool {
    record.finalizers().iter().any(|finalizer| finalizer == FINALIZER)
}

#[test]
fn a_claim_gets_a_volume_when_a_pod_asks_for_it_and_the_volume_goes_with_the_claim() {
    shared::run(async {
        let world = World::start("provisions", SiteOptions::fast()).await;
        let (record, volume) = world.provisioned().await;
        assert!(has_finalizer(&record));
        assert_eq!(record.annotations()["pv.kubernetes.io/provisioned-by"], EBS_DRIVER);
        let spec = record.spec.as_ref().unwrap();
        assert_eq!(spec.csi.as_ref().unwrap().fs_type.as_deref(), Some("ext4"));
        let terms = &spec.node_affinity.as_ref().unwrap().required.as_ref().unwrap().node_selector_terms;
        let zone = json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": [volume.zone]});
        assert_eq!(json!(terms), json!([{"matchExpressions": [zone]}]));
        assert_eq!((volume.shape.size, volume.shape.volume_type.as_str()), (3, "gp3"));
        assert_eq!(volume.tags.get("CSIVolumeName"), Some(&record.name_any()));

        world.end().await;
        until("the PV's end", || async {
            world.records().get_opt(&record.name_any()).await.unwrap().is_none().then_some(())
        })
        .await;
        until("the volume's end", || async {
            world.site.simulator().volume(&volume.id).is_none().then_some(())
        })
        .await;
        assert_eq!((world.calls("CreateVolume"), world.calls("DeleteVolume")), (1, 1));
        world.site.stop().await;
    });
}

#[test]
fn a_volume_that_is_to_be_retained_outlives_its_claim() {
    shared::run(async {
        let world = World::start("retains", SiteOptions::fast()).await;
        let (record, volume) = world.provisioned().await;
        let name = record.name_any();
        let retain = json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}});
        world.records().patch(&name, &PatchParams::default(), &Patch::Merge(retain)).await.unwrap();
        until("the provisioner's finalizer being gone", || async {
            (!has_finalizer(&world.records().get(&name).await.unwrap())).then_some(())
        })
        .await;
        world.end().await;
        until("the PV being released", || async {
            let status = world.records().get(&name).await.unwrap().status?;
            (status.phase.as_deref() == Some("Released")).then_some(())
        })
        .await;
        until("the volume's return", || async {
            world.site.simulator().volume(&volume.id).unwrap().attachment.is_none().then_some(())
        })
        .await;
        assert_eq!(world.calls("DeleteVolume"), 0);
        world.site.stop().await;
    });
}
