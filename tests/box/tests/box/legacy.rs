//! Databases that Freehold never made: they run, and nothing of them has a key of Freehold's.

use ec2sim::Fate;
use freehold_box::account::node_kind;
use freehold_box::account::{Real, Site, SiteOptions};
use freehold_box::base::cache::Cache;
use freehold_box::base::names::EBS_DRIVER;
use freehold_box::base::progress::Progress;
use freehold_box::cluster::control_plane::{ControlPlane, ControlPlaneOptions};
use freehold_box::cluster::shared;
use freehold_box::legacy::{Account, Disk, FileSystem, LABEL, Legacy, Order};
use freehold_box::writer::{Dialect, PACE, Target, Writer};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::storage::v1::{StorageClass, VolumeAttachment};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::world::{LIMIT, World, is_ready, node, turn, until};

const FILE_SYSTEM: FileSystem = FileSystem::Ext4;

const ENGINES: [Dialect; 2] = [Dialect::Questdb, Dialect::Postgresql];

/// The finalizer of a PV whose volume the provisioner will delete.
const PROVISIONER: &str = "external-provisioner.volume.kubernetes.io/finalizer";

/// A cluster and an account with a legacy database.
struct View<'a> {
    client: &'a Client,
    site: &'a Site,
    legacy: &'a Legacy,
}

impl View<'_> {
    fn claims(&self) -> Api<PersistentVolumeClaim> {
        Api::namespaced(self.client.clone(), &self.legacy.namespace)
    }

    fn volumes(&self) -> Api<PersistentVolume> {
        Api::all(self.client.clone())
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.legacy.namespace)
    }

    fn pod_name(&self) -> String {
        format!("{}-0", self.legacy.name)
    }

    /// The PV of its claim.
    async fn record(&self) -> PersistentVolume {
        let claim = self.claims().get(&self.legacy.claim()).await.unwrap();
        self.volumes().get(&claim.spec.unwrap().volume_name.unwrap()).await.unwrap()
    }

    /// Everything that Kubernetes and EC2 have of it.
    async fn everything(&self) -> Vec<Value> {
        let (client, namespace, name) = (self.client, &self.legacy.namespace, &self.legacy.name);
        let record = self.record().await;
        let attachments = Api::<VolumeAttachment>::all(client.clone());
        let attachments = attachments.list(&ListParams::default()).await.unwrap().items;
        let is_its = |attachment: &VolumeAttachment| {
            attachment.spec.source.persistent_volume_name.as_deref() == Some(&record.name_any())
        };
        let attachment = attachments.into_iter().find(is_its).unwrap();
        let classes = Api::<StorageClass>::all(client.clone());
        let sets = Api::<StatefulSet>::namespaced(client.clone(), namespace);
        let services = Api::<Service>::namespaced(client.clone(), namespace);
        let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
        let handle = &record.spec.as_ref().unwrap().csi.as_ref().unwrap().volume_handle;
        let simulator = self.site.simulator();
        vec![
            json!(classes.get(FILE_SYSTEM.storage_class()).await.unwrap()),
            json!(node(client, &self.legacy.instance).await.unwrap()),
            json!(secrets.get(&format!("{name}-credentials")).await.unwrap()),
            json!(services.get(name).await.unwrap()),
            json!(sets.get(name).await.unwrap()),
            json!(self.pods().get(&self.pod_name()).await.unwrap()),
            json!(self.claims().get(&self.legacy.claim()).await.unwrap()),
            json!(attachment),
            json!(simulator.instance(&self.legacy.instance).unwrap().tags),
            json!(simulator.volume(handle).unwrap().tags),
            json!(record),
        ]
    }

    /// Nothing has a key of Freehold's; the box's own keep a virtual machine alive.
    async fn has_no_key_of_freehold(&self) {
        for object in self.everything().await {
            let text = object.to_string();
            assert!(!text.replace("box.freehold.dev/", "").contains("freehold.dev"), "{text}");
        }
    }

    /// Its pod runs on its machine, on a volume that was made for its claim in the machine's zone.
    async fn is_as_eks_has_it(&self) {
        let simulator = self.site.simulator();
        let machine = simulator.instance(&self.legacy.instance).unwrap();
        assert_eq!(json!(machine.tags), json!({"Name": self.legacy.name}));
        let node = node(self.client, &machine.id).await.unwrap();
        assert_eq!(node.labels().get(LABEL), Some(&self.legacy.name));
        assert_eq!(node.spec.as_ref().and_then(|spec| spec.taints.as_ref()), None);
        let pod = self.pods().get(&self.pod_name()).await.unwrap();
        assert_eq!(pod.spec.and_then(|spec| spec.node_name), Some(node.name_any()));

        let record = self.record().await;
        assert!(record.finalizers().contains(&PROVISIONER.to_owned()), "{:?}", record.finalizers());
        assert_eq!(record.annotations()["pv.kubernetes.io/provisioned-by"], EBS_DRIVER);
        let spec = record.spec.as_ref().unwrap();
        assert_eq!(spec.persistent_volume_reclaim_policy.as_deref(), Some("Delete"));
        let csi = spec.csi.as_ref().unwrap();
        assert_eq!(csi.fs_type.as_deref(), Some("ext4"));
        let volume = simulator.volume(&csi.volume_handle).unwrap();
        assert_eq!((&volume.zone, volume.shape.size), (&machine.zone, 2));
        assert_eq!(volume.tags.get("CSIVolumeName"), Some(&record.name_any()));
        assert_eq!(volume.attachment.unwrap().instance_id, machine.id);
    }

    /// Deletes the StatefulSet and the claim, as a person ends such a database.
    async fn delete(&self) {
        let sets = Api::<StatefulSet>::namespaced(self.client.clone(), &self.legacy.namespace);
        sets.delete(&self.legacy.name, &DeleteParams::default()).await.unwrap();
        self.claims().delete(&self.legacy.claim(), &DeleteParams::default()).await.unwrap();
    }
}

/// How often an action was carried out, whoever called it.
fn calls(site: &Site, action: &str) -> usize {
    let journal = site.simulator().journal();
    journal.iter().filter(|entry| entry.action == action && entry.fate == Fate::Committed).count()
}

#[test]
fn a_legacy_database_of_each_engine_runs_on_a_virtual_machine_and_its_volume_goes_with_its_claim() {
    shared::run(async {
        let world = World::start("legacy", SiteOptions::fast()).await;
        let (client, site) = (&world.client, &world.site);
        for engine in ENGINES {
            let order = Order {
                engine,
                namespace: world.namespace,
                name: engine.as_str(),
                file_system: FILE_SYSTEM,
                disk: Disk::Claimed,
            };
            let legacy = Legacy::create(client, &Account::of(site), order).await.unwrap();
            legacy.serves(LIMIT).await.unwrap();
            let view = View { client, site, legacy: &legacy };
            view.is_as_eks_has_it().await;
            view.has_no_key_of_freehold().await;
            let record = view.record().await;
            view.delete().await;
            until("the PV's end", || async {
                view.volumes().get_opt(&record.name_any()).await.unwrap().is_none().then_some(())
            })
            .await;
            let handle = record.spec.unwrap().csi.unwrap().volume_handle;
            until("the volume's end", || async { site.simulator().volume(&handle).is_none().then_some(()) })
                .await;
        }
        assert_eq!((calls(site, "CreateVolume"), calls(site, "DeleteVolume")), (2, 2));
        world.site.stop().await;
    });
}

#[test]
fn a_legacy_database_of_each_engine_serves_rows_on_a_real_machine_and_keeps_them_when_its_pod_goes() {
    if !node_kind::can_be_real("legacy databases") {
        return;
    }
    shared::run(async {
        let _turn = turn().await;
        let real = Real::ensure(&Cache::from_environment(), &Progress::on_stderr()).await.unwrap();
        let control_plane = ControlPlane::start(ControlPlaneOptions::named("legacy")).await.unwrap();
        let site = Site::start(&control_plane, SiteOptions { real: Some(real), ..SiteOptions::fast() })
            .await
            .unwrap();
        let client = control_plane.client();
        let mut databases = Vec::new();
        for engine in ENGINES {
            let order = Order {
                engine,
                namespace: "default",
                name: engine.as_str(),
                file_system: FILE_SYSTEM,
                disk: Disk::Claimed,
            };
            databases.push(Legacy::create(&client, &Account::of(&site), order).await.unwrap());
        }
        for legacy in &databases {
            let view = View { client: &client, site: &site, legacy };
            legacy.serves(LIMIT).await.unwrap();
            view.is_as_eks_has_it().await;
            let target = Target { dialect: legacy.engine, source: legacy.source(), table: "numbered" };
            let writer = Writer::start(target, PACE);
            writer.is_served(LIMIT).await.unwrap();

            let before = view.pods().get(&view.pod_name()).await.unwrap().uid();
            view.pods().delete(&view.pod_name(), &DeleteParams::default()).await.unwrap();
            until("another pod being ready", || async {
                let pod = view.pods().get_opt(&view.pod_name()).await.unwrap();
                pod.filter(|pod| pod.uid() != before && is_ready(pod))
            })
            .await;
            writer.is_served(LIMIT).await.unwrap();
            writer.verify(LIMIT).await.unwrap().check().unwrap();
            writer.stop().await;
            view.has_no_key_of_freehold().await;
        }
        for legacy in &databases {
            let view = View { client: &client, site: &site, legacy };
            let handle = view.record().await.spec.unwrap().csi.unwrap().volume_handle;
            view.delete().await;
            until("the volume's end", || async { site.simulator().volume(&handle).is_none().then_some(()) })
                .await;
        }
        assert_eq!(site.violations(), []);
        site.stop().await;
        control_plane.stop().await;
    });
}
