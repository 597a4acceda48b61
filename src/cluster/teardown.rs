//! Whether objects are deleted since everything around them is: their namespace, or their resource
//! definitions. Only reads.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};

/// A teardown, and no decision to delete this very object: its namespace goes, or one of these resource
/// definitions goes (and every object with it).
pub async fn is_torn_down(
    client: &Client,
    namespace: Option<&Namespace>,
    definitions: &[&str],
) -> Result<bool, kube::Error> {
    Ok(is_ending(namespace) || are_ending(client, definitions).await?)
}

/// Whether the namespace is being deleted, or is gone.
pub fn is_ending(namespace: Option<&Namespace>) -> bool {
    namespace.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_some())
}

/// Whether one of these resource definitions is being deleted, or is gone. Their metadata alone is read: the
/// schemas of a definition have tens of kilobytes.
pub async fn are_ending(client: &Client, definitions: &[&str]) -> Result<bool, kube::Error> {
    let all = Api::<CustomResourceDefinition>::all(client.clone());
    for name in definitions {
        let definition = all.get_metadata_opt(name).await?;
        if definition.is_none_or(|definition| definition.metadata.deletion_timestamp.is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}
