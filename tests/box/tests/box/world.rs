//! What the tests do again and again: a site of their own, machines, volumes, pods, and waiting for a fact.

use std::future::Future;
use std::time::{Duration, Instant};

use ec2sim::Fate;
use freehold_box::account::{Site, SiteOptions};
use freehold_box::base::cache::Cache;
use freehold_box::base::names::EBS_DRIVER;
use freehold_box::cluster::control_plane::STORAGE_CLASS;
use freehold_box::cluster::shared;
use freehold_box::machines::turns::{self, Turn};
use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

/// Nothing here takes longer, even on a machine that compiles meanwhile.
pub const LIMIT: Duration = Duration::from_mins(5);

/// Held by a test that has real machines: all tests start at once.
pub async fn turn() -> Turn {
    turns::take(&Cache::from_environment()).await.unwrap()
}

/// Waits for a fact, looking ten times a second.
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, fact: impl Fn() -> F) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = fact().await {
            return value;
        }
        assert!(started.elapsed() < LIMIT, "{what}: not within {} s", LIMIT.as_secs());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A site on the shared control plane, with shorthands for what the tests do.
pub struct World {
    pub site: Site,
    pub client: Client,
    pub namespace: &'static str,
}

impl World {
    pub async fn start(namespace: &'static str, options: SiteOptions) -> Self {
        let control_plane = shared::control_plane().await.unwrap();
        let site = Site::start(control_plane, options).await.unwrap();
        let client = control_plane.client();
        let object = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
        Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &object).await.unwrap();
        Self { site, client, namespace }
    }

    /// Launches a machine with this user data and gives its instance id.
    pub fn launch(&self, user_data: &str) -> String {
        launch(&self.site, user_data)
    }

    pub fn dedicated(&self) -> String {
        self.launch(
            "#!/bin/sh\n/opt/freehold-box/bootstrap --node-labels test/dedicated=true --register-with-taints \
                test/dedicated=:NoExecute\n",
        )
    }

    pub async fn node(&self, instance: &str) -> Option<Node> {
        node(&self.client, instance).await
    }

    pub async fn node_with_ready(&self, instance: &str, status: &str) -> Node {
        node_with_ready(&self.client, instance, status).await
    }

    /// A volume of 10 GiB in EC2 with its PV and PVC; gives the volume's id.
    pub async fn volume(&self) -> String {
        let zone = &self.site.world().subnets[0].zone;
        let params =
            [("Action", "CreateVolume"), ("AvailabilityZone", zone), ("Size", "10"), ("VolumeType", "gp3")];
        let id = self.site.simulator().call("test", &params).unwrap().resource_ids().remove(0);
        let (name, namespace) = (self.namespace, self.namespace);
        let volume = json!({
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOncePod"],
                "storageClassName": STORAGE_CLASS,
                "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": namespace,
                "name": "data"},
                "csi": {"driver": EBS_DRIVER, "volumeHandle": id, "fsType": "xfs"},
            },
        });
        let claim = json!({
            "metadata": {"name": "data"},
            "spec": {
                "volumeName": name, "accessModes": ["ReadWriteOncePod"], "storageClassName": STORAGE_CLASS,
                "resources": {"requests": {"storage": "10Gi"}},
            },
        });
        let volumes = Api::<PersistentVolume>::all(self.client.clone());
        volumes.create(&PostParams::default(), &serde_json::from_value(volume).unwrap()).await.unwrap();
        self.claims().create(&PostParams::default(), &serde_json::from_value(claim).unwrap()).await.unwrap();
        id
    }

    pub fn claims(&self) -> Api<PersistentVolumeClaim> {
        Api::namespaced(self.client.clone(), self.namespace)
    }

    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), self.namespace)
    }

    /// A pod on this Node, with the PVC if it is asked for.
    pub async fn pod(&self, node: &Node, with_volume: bool) {
        let volumes = if with_volume {
            json!([{"name": "data",
        "persistentVolumeClaim": {"claimName": "data"}}])
        } else {
            json!([])
        };
        let pod = json!({
            "metadata": {"name": "db"},
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": node.name_any()},
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "engine", "image": "engine"}], "volumes": volumes,
            },
        });
        // The service account of a new namespace comes a moment after it.
        until("the pod being accepted", || async {
            self.pods()
                .create(&PostParams::default(), &serde_json::from_value(pod.clone()).unwrap())
                .await
                .ok()
        })
        .await;
    }

    pub async fn pod_is(&self, what: &str, is_so: impl Fn(&Pod) -> bool) -> Pod {
        until(&format!("the pod being {what}"), || async {
            self.pods().get_opt("db").await.unwrap().filter(|pod| is_so(pod))
        })
        .await
    }

    pub async fn attachment(&self) -> Option<VolumeAttachment> {
        let all =
            Api::<VolumeAttachment>::all(self.client.clone()).list(&ListParams::default()).await.unwrap();
        all.items.into_iter().find(|attachment| {
            attachment.spec.source.persistent_volume_name.as_deref() == Some(self.namespace)
        })
    }

    /// How often the CSI driver's part called this action with success.
    pub fn calls(&self, action: &str) -> usize {
        let journal = self.site.simulator().journal();
        journal
            .iter()
            .filter(|entry| {
                (entry.caller.as_str(), entry.action.as_str()) == ("csi-driver", action)
                    && entry.fate == Fate::Committed
            })
            .count()
    }

    pub async fn claim_has(&self, size: &str) {
        until(&format!("the PVC having {size}"), || async {
            let claim = self.claims().get("data").await.unwrap();
            let capacity = claim.status.and_then(|status| status.capacity).unwrap_or_default();
            capacity.get("storage").filter(|quantity| quantity.0 == size).cloned()
        })
        .await;
    }

    pub async fn ask_for(&self, size: &str) {
        let patch = json!({"spec": {"resources": {"requests": {"storage": size}}}});
        self.claims().patch("data", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
}

/// Launches a machine of a site with this user data and gives its instance id.
pub fn launch(site: &Site, user_data: &str) -> String {
    let world = site.world();
    let encoded = data_encoding::BASE64.encode(user_data.as_bytes());
    let response = site.simulator().call(
        "test",
        &[
            ("Action", "RunInstances"),
            ("ImageId", &world.images[0].id),
            ("InstanceType", "r7i.large"),
            ("SubnetId", &world.subnets[0].id),
            ("MinCount", "1"),
            ("MaxCount", "1"),
            ("UserData", &encoded),
        ],
    );
    response.unwrap().resource_ids().remove(0)
}

pub async fn node(client: &Client, instance: &str) -> Option<Node> {
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await.unwrap();
    nodes.items.into_iter().find(|node| {
        node.spec
            .as_ref()
            .and_then(|spec| spec.provider_id.as_deref())
            .is_some_and(|id| id.ends_with(&format!("/{instance}")))
    })
}

pub async fn node_with_ready(client: &Client, instance: &str, status: &str) -> Node {
    until(&format!("the Node of {instance} being Ready={status}"), || async {
        node(client, instance).await.filter(|node| ready(node) == status)
    })
    .await
}

pub fn ready(node: &Node) -> &str {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().find(|condition| condition.type_ == "Ready").map_or("", |condition| &condition.status)
}

pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

pub fn restarts(pod: &Pod) -> i32 {
    pod.status
        .as_ref()
        .and_then(|status| status.container_statuses.as_ref())
        .map_or(0, |all| all.iter().map(|one| one.restart_count).sum())
}
