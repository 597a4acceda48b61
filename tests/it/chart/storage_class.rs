//! The StorageClass of the chart: what it allows, and when it is created.

use freehold::api::keys::EBS_CSI_DRIVER;
use freehold::definitions;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Api;
use kube::api::PostParams;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::rendered;
use crate::kit::chart::{CHART, documents, helm, of_kind};
use crate::kit::test_env::{self, run};

#[test]
fn the_class_that_node_classes_name_allows_growth_and_stays() {
    run(async {
        let rendered = rendered(&[]).await;
        let class = of_kind(&rendered, "StorageClass")[0];
        let typed: StorageClass = serde_json::from_value(class.clone()).unwrap();
        assert_eq!(&serde_json::to_value(&typed).unwrap(), class, "Kubernetes knows every field");
        assert_eq!(typed.metadata.name.map(Value::String), default_name());
        assert_eq!(typed.provisioner, EBS_CSI_DRIVER);
        assert_eq!(typed.allow_volume_expansion, Some(true));
        assert_eq!(typed.reclaim_policy.as_deref(), Some("Retain"));
        assert_eq!(class["metadata"]["annotations"], json!({"helm.sh/resource-policy": "keep"}));
    });
}

/// What a NodeClass names if it names none.
fn default_name() -> Option<Value> {
    let mut definitions = definitions::all().into_iter();
    let definition = definitions.find(|definition| definition.spec.names.kind == "NodeClass").unwrap();
    let version = serde_json::to_value(&definition.spec.versions[0]).unwrap();
    let path = "/schema/openAPIV3Schema/properties/spec/properties/storageClassName/default";
    version.pointer(path).cloned()
}

/// How many classes of this name the release `freehold` of this namespace would have in this cluster.
async fn classes(namespace: &str, name: &str) -> usize {
    let kubeconfig = test_env::control_plane().await.kubeconfig().display().to_string();
    let values = format!("crds.install=false,storageClass.name={name}");
    let release = ["template", "freehold", CHART, "--namespace", namespace, "--set", &values];
    let rendered = helm(&[&release[..], &["--dry-run=server", "--kubeconfig", &kubeconfig]].concat()).await;
    of_kind(&documents(&rendered.unwrap()), "StorageClass").len()
}

/// Helm refuses a release with an object that exists and is no part of it.
#[test]
fn a_class_that_is_not_the_releases_own_stays_as_it_is() {
    run(async {
        let client = test_env::control_plane().await.client();
        let create = async |metadata: Value| {
            let class = json!({"metadata": metadata, "provisioner": EBS_CSI_DRIVER});
            let api = Api::<StorageClass>::all(client.clone());
            api.create(&PostParams::default(), &serde_json::from_value(class).unwrap()).await.unwrap();
        };
        create(json!({"name": "class-by-hand"})).await;
        let labels = json!({"app.kubernetes.io/managed-by": "Helm"});
        let release = json!({"meta.helm.sh/release-name": "freehold",
            "meta.helm.sh/release-namespace": "here"});
        create(json!({"name": "class-of-here", "labels": labels, "annotations": release})).await;
        assert_eq!(classes("here", "class-of-none").await, 1, "the first installation creates it");
        assert_eq!(classes("here", "class-by-hand").await, 0, "the platform team has created it");
        assert_eq!(classes("here", "class-of-here").await, 1, "an upgrade keeps it in the release");
        assert_eq!(classes("there", "class-of-here").await, 0, "another release has it");
    });
}
