//! An object of a derived name, and whose it is. Only reads.

use std::fmt;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Resource, ResourceExt};

use crate::api::Database;
use crate::api::keys::DATABASE_UID_LABEL;
use crate::cluster::controller_of;

/// An object of a derived name.
#[derive(Clone, Debug, PartialEq)]
pub enum Child<T> {
    /// There is none.
    Absent,
    /// It belongs to this Database.
    Ours(Box<T>),
    /// It is a foreign object: neither adopted nor deleted.
    Foreign,
}

impl<T> Child<T> {
    /// The object, if it is ours.
    pub fn ours(&self) -> Option<&T> {
        match self {
            Self::Ours(object) => Some(object),
            Self::Absent | Self::Foreign => None,
        }
    }
}

/// The Secret of the credentials.
#[derive(Clone, Debug, PartialEq)]
pub enum Credentials {
    /// The API server does not let us read it, and says this.
    Unreadable(String),
    /// It could be read.
    Read(Child<HeldSecret>),
}

impl Credentials {
    /// The Secret, or that it is not there; none if that could not be read.
    pub fn read(self) -> Option<Child<HeldSecret>> {
        match self {
            Self::Read(secret) => Some(secret),
            Self::Unreadable(_) => None,
        }
    }
}

/// A Secret whose content is never printed.
#[derive(Clone, PartialEq)]
pub struct HeldSecret(pub Secret);

impl fmt::Debug for HeldSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeldSecret").field(&self.0.metadata.name).finish_non_exhaustive()
    }
}

/// Whose the object is.
pub(in crate::controller::database) fn child<K: Resource>(
    object: Option<K>,
    database: &Database,
) -> Child<K> {
    match object {
        None => Child::Absent,
        Some(object) if is_of(&object, database) => Child::Ours(Box::new(object)),
        Some(_) => Child::Foreign,
    }
}

/// Whether the object is this Database's: its controller's UID decides. While a Database is deleted with the
/// propagation policy Orphan, Kubernetes removes the owner references to it (Kubernetes docs, "Garbage
/// Collection"): the label with its UID decides then.
pub(super) fn is_of<K: Resource>(object: &K, database: &Database) -> bool {
    let uid = database.metadata.uid.as_ref();
    if let Some(owner) = controller_of(object) {
        return Some(&owner.uid) == uid;
    }
    let is_deleted = database.metadata.deletion_timestamp.is_some();
    is_deleted && uid.is_some() && object.labels().get(DATABASE_UID_LABEL) == uid
}

/// The Secret of this name; `is_ours` says whose it is, since it has no owner.
pub(in crate::controller) async fn secret(
    secrets: &Api<Secret>,
    name: &str,
    is_ours: impl Fn(&Secret) -> bool,
) -> Result<Credentials, kube::Error> {
    let secret = match secrets.get_opt(name).await {
        Ok(secret) => secret,
        Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403) => {
            return Ok(Credentials::Unreadable(status.message.clone()));
        }
        Err(error) => return Err(error),
    };
    Ok(Credentials::Read(match secret {
        None => Child::Absent,
        Some(secret) if is_ours(&secret) => Child::Ours(Box::new(HeldSecret(secret))),
        Some(_) => Child::Foreign,
    }))
}
