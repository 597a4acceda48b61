//! How Freehold talks to the API server: status patches, finalizers, deletions and events. Besides the
//! wiring, the only place that does.

pub mod delete;
pub mod events;
pub mod finalizer;
pub mod kubelet;
pub mod leases;
pub mod mirror;
pub mod own_writes;
pub mod ownership;
pub mod persistent_volume;
pub mod recent;
pub mod status;
pub mod teardown;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Resource, ResourceExt};

use self::mirror::Mirror;
use crate::api::{NodeClass, names};

/// The owner that controls an object; the API server allows one at most.
pub fn controller_of<K: Resource>(object: &K) -> Option<&OwnerReference> {
    object.owner_references().iter().find(|owner| owner.controller == Some(true))
}

/// The same, if it is of the kind `O`.
pub fn controller_of_kind<O, K>(object: &K) -> Option<&OwnerReference>
where
    O: Resource<DynamicType = ()>,
    K: Resource,
{
    controller_of(object)
        .filter(|owner| owner.kind == O::kind(&()) && owner.api_version == O::api_version(&()))
}

/// The API server's error of this call means "another client wrote first": observe again.
pub fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409 && status.reason != "AlreadyExists")
}

/// The object does not exist.
pub fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// What was read, or nothing where its very kind is not served any more: the API server answers that with a
/// bare 404.
pub fn if_served<T: Default>(read: Result<T, kube::Error>) -> Result<T, kube::Error> {
    match read {
        Err(error) if is_not_found(&error) => Ok(T::default()),
        read => read,
    }
}

/// The NodeClass of this name: from the copy, or from the API server if the copy does not show it. A text
/// that cannot be the name of an object is the name of none: it is not sent, since a name is a part of the
/// request's path.
pub async fn node_class(
    classes: &Mirror<NodeClass>,
    client: &Client,
    name: &str,
) -> Result<Option<NodeClass>, kube::Error> {
    if !names::is_of_an_object(name) {
        return Ok(None);
    }
    if let Some(class) = classes.get(&ObjectRef::new(name)) {
        return Ok(Some(class));
    }
    if_served(Api::<NodeClass>::all(client.clone()).get_opt(name).await)
}

/// An object of this name exists already.
pub fn is_already_exists(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409 && status.reason == "AlreadyExists")
}

/// The API server refused the object itself: admission, quota, policy or validation. The same call will not
/// help.
pub fn is_refused(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 400 | 403 | 422))
}
