//! Reads a Database and what it has. Only reads: what a person may not do is found out by a dry run.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::{PersistentVolume, Pod};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use serde_json::json;

use super::error::ReleaseError;
use super::found::Found;
use crate::api::keys::DATABASE_UID_LABEL;
use crate::api::names::{Names, VolumeNames};
use crate::api::{Database, Node, Volume};
use crate::command::target::Target;

/// What there is.
pub async fn inspect(client: &Client, target: &Target) -> Result<Found, ReleaseError> {
    let Target { namespace, name } = target;
    let databases = Api::<Database>::namespaced(client.clone(), namespace);
    let database = databases
        .get_opt(name)
        .await?
        .ok_or_else(|| ReleaseError::NoDatabase { namespace: namespace.clone(), name: name.clone() })?;
    let names = Names::of(&database);
    let of_database = ListParams::default().labels(&format!("{DATABASE_UID_LABEL}={}", names.uid));
    let nodes = Api::<Node>::namespaced(client.clone(), namespace).list(&of_database).await?.items;
    let volume = Api::<Volume>::namespaced(client.clone(), namespace).get_opt(&names.volume).await?;
    let persistent_volume = match volume.as_ref().map(VolumeNames::of) {
        Some(names) => Api::<PersistentVolume>::all(client.clone()).get_opt(&names.persistent_volume).await?,
        None => None,
    };
    let sets = Api::<StatefulSet>::namespaced(client.clone(), namespace);
    let stateful_set = sets.get_opt(&names.stateful_set).await?;
    let pod = Api::<Pod>::namespaced(client.clone(), namespace).get_opt(&names.pod()).await?;
    let may_release = may_release(client, target).await?;
    Ok(Found { database, names, nodes, volume, persistent_volume, stateful_set, pod, may_release })
}

/// Whether the person may release this Database: by the verb that the chart's policy requires, or because no
/// policy is there that does. Policies are not for everybody to read, and judge a dry run as they judge the
/// write. Review and dry run are answered, and stored nowhere.
async fn may_release(client: &Client, target: &Target) -> Result<bool, ReleaseError> {
    let attributes = ResourceAttributes {
        group: Some(Database::group(&()).into_owned()),
        resource: Some(Database::plural(&()).into_owned()),
        verb: Some("release".to_owned()),
        namespace: Some(target.namespace.clone()),
        name: Some(target.name.clone()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..Default::default() };
    let reviews = Api::<SelfSubjectAccessReview>::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await?;
    if answer.status.is_some_and(|status| status.allowed) {
        return Ok(true);
    }
    let databases = Api::<Database>::namespaced(client.clone(), &target.namespace);
    let params = PatchParams { dry_run: true, ..PatchParams::default() };
    let patch = Patch::Merge(json!({"spec": {"release": true}}));
    match databases.patch(&target.name, &params, &patch).await {
        Ok(_) => Ok(true),
        // By the rights, or by a policy.
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 422) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
