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
    if namespace.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_some()) {
        return Ok(true);
    }
    let all = Api::<CustomResourceDefinition>::all(client.clone());
    for name in definitions {
        let definition = all.get_opt(name).await?;
        if definition.is_none_or(|definition| definition.metadata.deletion_timestamp.is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}
