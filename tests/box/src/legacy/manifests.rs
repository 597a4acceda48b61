//! The objects of a legacy database as a person would keep them in Git, byte for byte, for comparisons.

use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Secret, Service};
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Error, Legacy};

/// YAML by the object's kind and name.
pub type Manifests = BTreeMap<String, String>;

/// What changes by itself, or with every write.
const PASSING: [&str; 3] = ["generation", "managedFields", "resourceVersion"];

impl Legacy {
    /// Its StatefulSet, claim, PersistentVolume, Service and Secret, and the Kubernetes node of its machine.
    pub async fn manifests(&self) -> Result<Manifests, Error> {
        let (client, namespace) = (&self.client, &self.namespace);
        let claims = Api::<PersistentVolumeClaim>::namespaced(client.clone(), namespace);
        let claim = get(&claims, &self.claim()).await?;
        let record = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).unwrap_or_default();
        let records = Api::<PersistentVolume>::all(client.clone());
        let sets = Api::<StatefulSet>::namespaced(client.clone(), namespace);
        let services = Api::<Service>::namespaced(client.clone(), namespace);
        let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
        Ok(BTreeMap::from([
            manifest("StatefulSet", &get(&sets, &self.name).await?),
            manifest("PersistentVolumeClaim", &claim),
            manifest("PersistentVolume", &get(&records, &record).await?),
            manifest("Service", &get(&services, &self.name).await?),
            manifest("Secret", &get(&secrets, &self.secret()).await?),
            manifest("Kubernetes node", &self.node().await?),
        ]))
    }

    /// The Kubernetes node of its machine.
    async fn node(&self) -> Result<Node, Error> {
        let nodes = Api::<Node>::all(self.client.clone()).list(&ListParams::default()).await;
        let nodes =
            nodes.map_err(|source| Error::Read { what: "the Kubernetes nodes".to_owned(), source })?;
        let is_its = |node: &Node| {
            let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_ref());
            provider_id.is_some_and(|id| id.ends_with(&self.instance))
        };
        let node = nodes.items.into_iter().find(is_its);
        let mut node =
            node.ok_or_else(|| Error::Missing(format!("the Kubernetes node of {}", self.instance)))?;
        // Kubernetes adds these some time after the machine has joined.
        node.labels_mut().retain(|key, _| !key.starts_with("beta.kubernetes.io/"));
        Ok(node)
    }
}

async fn get<K>(api: &Api<K>, name: &str) -> Result<K, Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let read = api.get(name).await;
    read.map_err(|source| Error::Read { what: format!("{} {name}", K::kind(&())), source })
}

/// Kind and name, and the object without its status and what passes.
fn manifest<K: Resource<DynamicType = ()> + Serialize>(kind: &str, object: &K) -> (String, String) {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(parts) = value.as_object_mut() {
        parts.remove("status");
    }
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !PASSING.contains(&key.as_str()));
        if let Some(finalizers) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) {
            finalizers.sort_by_key(ToString::to_string);
        }
    }
    let name = object.meta().name.clone().unwrap_or_default();
    (format!("{kind} {name}"), serde_norway::to_string(&value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_passes_is_left_out_and_the_rest_is_text() {
        let service: Service = serde_json::from_value(json!({
            "metadata": {"name": "orders", "uid": "1", "resourceVersion": "7", "finalizers": ["b", "a"],
                "managedFields": []},
            "spec": {"clusterIP": "10.0.0.7"}, "status": {"loadBalancer": {}},
        }))
        .unwrap();
        let (name, text) = manifest("Service", &service);
        assert_eq!(name, "Service orders");
        let expected = "apiVersion: v1\nkind: Service\nmetadata:\n  finalizers:\n  - a\n  - b\n  name: orders\n  \
            uid: '1'\nspec:\n  clusterIP: 10.0.0.7\n";
        assert_eq!(text, expected);
    }
}
