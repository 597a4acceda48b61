//! Whether a Node or a Volume still belongs to a Database. Only reads.

use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt};

use super::mirror::{Mirror, Reads};
use super::{controller_of, if_served};
use crate::api::keys::{DATABASE_NAME_LABEL, DATABASE_UID_LABEL, ORPHAN_FINALIZER};
use crate::api::{Database, names};

/// Whether a Node or a Volume still belongs to a Database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// An owner reference names its Database.
    Owned,
    /// It has no owner reference any more, and its Database is still there: the Database is being deleted
    /// with the propagation policy Orphan.
    Unowned,
    /// It has no owner reference any more, and its Database is gone.
    Orphaned,
}

/// No object controls this one any more. What belongs to a Database is created with it as the owner, and
/// Kubernetes removes that reference only where the Database is deleted with the propagation policy Orphan; a
/// reference to a Database that is gone makes Kubernetes delete the object.
pub fn is_unowned<K: Resource>(object: &K) -> bool {
    controller_of(object).is_none()
}

/// The object is being deleted with the propagation policy Orphan, and Kubernetes has not removed the owner
/// references to it from all objects yet.
pub fn is_orphaning<K: Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some() && object.finalizers().iter().any(|it| it == ORPHAN_FINALIZER)
}

/// As `of`; but what is being deleted names an owner that may be gone, without its finalizer: then Kubernetes
/// deletes what that owned. That it is gone the API server says to a live look.
pub async fn of_existing<K>(
    object: &K,
    copy: &Mirror<Database>,
    reads: Reads,
    client: &Client,
) -> Result<Ownership, kube::Error>
where
    K: Resource<Scope = NamespaceResourceScope>,
{
    let is_deleted = object.meta().deletion_timestamp.is_some();
    let Some(owner) = controller_of(object).filter(|_| is_deleted) else { return of(object, client).await };
    let databases = Api::<Database>::namespaced(client.clone(), &object.namespace().unwrap_or_default());
    let database = if_served(copy.current(&databases, &owner.name, reads).await)?;
    let is_there = database.and_then(|database| database.uid()).as_ref() == Some(&owner.uid);
    Ok(if is_there { Ownership::Owned } else { Ownership::Orphaned })
}

/// Whether the Node or Volume still belongs to a Database. That its Database is gone the API server says, by
/// name and UID.
pub async fn of<K>(object: &K, client: &Client) -> Result<Ownership, kube::Error>
where
    K: Resource<Scope = NamespaceResourceScope>,
{
    if !is_unowned(object) {
        return Ok(Ownership::Owned);
    }
    let label = |key: &str| object.labels().get(key);
    let (Some(name), Some(uid)) = (label(DATABASE_NAME_LABEL), label(DATABASE_UID_LABEL)) else {
        return Ok(Ownership::Orphaned);
    };
    if !names::is_of_an_object(name) {
        return Ok(Ownership::Orphaned);
    }
    let databases = Api::<Database>::namespaced(client.clone(), &object.namespace().unwrap_or_default());
    let database = if_served(databases.get_opt(name).await)?;
    let is_there = database.and_then(|database| database.uid()).as_ref() == Some(uid);
    Ok(if is_there { Ownership::Unowned } else { Ownership::Orphaned })
}
