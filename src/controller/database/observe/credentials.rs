//! Reads the Secrets of a Database, which no watch shows.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::Api;

use super::child::{Child, Credentials, HeldSecret, secret};
use crate::api::database::EngineType;
use crate::api::keys;
use crate::api::names::Names;
use crate::api::{ConditionType, Database};
use crate::cluster::mirror::Reads;
use crate::cluster::recent;
use crate::controller::conditions;
use crate::controller::pass::context::Context;

/// Whether the Secret counts as it was when the status was written: right after a start, of a database that
/// was Ready then. A start is no reason to read what no wake is for, once for each database.
pub(super) fn is_as_reported(database: &Database, names: &Names, ctx: &Context) -> bool {
    let Database { metadata, spec, status: Some(status) } = database else { return false };
    let is_current = status.observed_generation == metadata.generation;
    // A certificate that is not in force is looked at again.
    let is_certified = spec.tls.is_none()
        || spec.engine.kind != EngineType::Postgresql
        || conditions::is_true(&status.conditions, ConditionType::CertificateLoaded);
    metadata.deletion_timestamp.is_none()
        && spec.adopt.is_none()
        && spec.storage.adopt_retained.is_none()
        && ctx.has_just_begun()
        && is_current
        && is_certified
        && conditions::is_true(&status.conditions, ConditionType::Ready)
        && status.credentials_secret_name.as_ref() == Some(&names.credentials_secret)
}

/// A Secret of this Database, if it is to be read.
pub(super) async fn held(
    is_read: bool,
    name: &str,
    names: &Names,
    reads: Reads,
    ctx: &Context,
) -> Result<Credentials, kube::Error> {
    if !is_read {
        return Ok(Credentials::Read(Child::Absent));
    }
    let key = recent::key(&names.namespace, name);
    let is_ours = |secret: &Secret| secret.labels().get(keys::DATABASE_UID_LABEL) == Some(&names.uid);
    // An earlier Database of the name may have had one.
    let recent = ctx.secrets.get(&key).filter(|recent| recent.as_ref().is_none_or(is_ours));
    if let Some(recent) = recent.filter(|_| reads == Reads::Cached) {
        let ours = recent.map(|secret| Child::Ours(Box::new(HeldSecret(secret))));
        return Ok(Credentials::Read(ours.unwrap_or(Child::Absent)));
    }
    let secrets = Api::<Secret>::namespaced(ctx.client.clone(), &names.namespace);
    let read = secret(&secrets, name, is_ours).await?;
    let recent = match &read {
        Credentials::Read(Child::Ours(held)) => Some(Some(held.0.clone())),
        Credentials::Read(Child::Absent) => Some(None),
        Credentials::Read(Child::Foreign) | Credentials::Unreadable(_) => None,
    };
    ctx.secrets.put(&key, recent);
    Ok(read)
}
