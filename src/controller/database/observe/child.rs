//! An object of a derived name, and whose it is. Only reads.

use std::fmt;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Resource};

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

/// A Secret whose content is never printed.
#[derive(Clone, PartialEq)]
pub struct HeldSecret(pub Secret);

impl fmt::Debug for HeldSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeldSecret").field(&self.0.metadata.name).finish_non_exhaustive()
    }
}

/// Whose the object is: its controller's UID decides.
pub(super) fn child<K: Resource>(object: Option<K>, uid: &str) -> Child<K> {
    match object {
        None => Child::Absent,
        Some(object) if is_controlled_by(&object, uid) => Child::Ours(Box::new(object)),
        Some(_) => Child::Foreign,
    }
}

pub(super) fn is_controlled_by<K: Resource>(object: &K, uid: &str) -> bool {
    controller_of(object).is_some_and(|owner| owner.uid == uid)
}

/// The Secret of this name; `is_ours` says whose it is, since it has no owner.
pub(super) async fn secret(
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
