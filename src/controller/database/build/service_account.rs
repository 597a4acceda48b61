//! Builds the ServiceAccount that a database's pod runs as: without rights and without a token.

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::owned;
use crate::api::keys::CLOUD_IDENTITY_PREFIX;
use crate::api::names::Names;

/// The ServiceAccount.
pub fn service_account(names: &Names) -> ServiceAccount {
    ServiceAccount {
        metadata: owned(names, &names.service_account),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    }
}

/// What must change in the live one, as a JSON merge patch; `None` when nothing must. An annotation that
/// gives an AWS role is taken out: EKS would mount that role's credentials into the pod of a tenant.
pub fn service_account_patch(names: &Names, live: &ServiceAccount) -> Option<Value> {
    let mut metadata = Map::new();
    let roles = live.annotations().keys().filter(|key| key.starts_with(CLOUD_IDENTITY_PREFIX));
    let roles: Map<String, Value> = roles.map(|key| (key.clone(), Value::Null)).collect();
    if !roles.is_empty() {
        metadata.insert("annotations".to_owned(), Value::Object(roles));
    }
    if !names.labels.iter().all(|(key, value)| live.labels().get(key) == Some(value)) {
        metadata.insert("labels".to_owned(), json!(names.labels));
    }
    let mounts = live.automount_service_account_token != Some(false);
    if metadata.is_empty() && !mounts {
        return None;
    }
    metadata.insert("uid".to_owned(), json!(live.metadata.uid));
    Some(json!({"metadata": metadata, "automountServiceAccountToken": false}))
}
