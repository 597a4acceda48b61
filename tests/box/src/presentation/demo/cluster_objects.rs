//! What an operator needs in the cluster, and the NodeClass of the box.

use std::path::Path;
use std::time::Duration;

use freehold::api::NodeClass;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt as _};

use super::common::Failure;
use crate::cluster::control_plane::OPERATOR_USER;

/// The administrator's client.
pub async fn client(kubeconfig: &Path) -> Result<Client, Failure> {
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig)?;
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// What an operator that is a process of its own needs: the resource definitions, the NodeClass of the box,
/// and all rights.
pub async fn install(client: &Client) -> Result<(), Failure> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let apply = apply();
    for definition in freehold::definitions::all() {
        let name = definition.name_any();
        definitions.patch(&name, &apply, &Patch::Apply(&definition)).await?;
        let established = kube::runtime::conditions::is_crd_established();
        let wait = kube::runtime::wait::await_condition(definitions.clone(), &name, established);
        tokio::time::timeout(Duration::from_secs(30), wait)
            .await
            .map_err(|_| format!("the API server did not establish {name} within 30 s"))??;
    }
    node_class(client, &example_class()?).await?;
    let rights = serde_json::json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": OPERATOR_USER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": OPERATOR_USER}],
    });
    Api::<ClusterRoleBinding>::all(client.clone())
        .patch(OPERATOR_USER, &apply, &Patch::Apply(&rights))
        .await?;
    Ok(())
}

/// The NodeClass of the box.
pub fn example_class() -> Result<NodeClass, Failure> {
    Ok(serde_norway::from_str(include_str!("../../../../../examples/nodeclass.yaml"))?)
}

/// Applies this NodeClass.
pub async fn node_class(client: &Client, class: &NodeClass) -> Result<(), Failure> {
    Api::<NodeClass>::all(client.clone()).patch(&class.name_any(), &apply(), &Patch::Apply(class)).await?;
    Ok(())
}

fn apply() -> PatchParams {
    PatchParams::apply("freehold-demo").force()
}
