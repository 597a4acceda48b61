//! Reads what is being deleted around a Volume that is being deleted.

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, CustomResourceExt, ResourceExt};

use crate::api::{Database, Volume};
use crate::cluster::{recent, teardown};
use crate::controller::pass::context::Context;

/// What is being deleted around a Volume.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// The namespace or one of our resource definitions is.
    pub is_torn_down: bool,
    /// The UID of the namespace; not known where this was not read anew.
    pub namespace_uid: Option<String>,
}

/// As it was read within the last minute, if nothing was torn down then: enough to end the claim.
pub(super) async fn recently(volume: &Volume, ctx: &Context) -> Result<Around, kube::Error> {
    match ctx.standing.get(&key(volume)) {
        Some(()) => Ok(Around::default()),
        None => now(volume, ctx).await,
    }
}

/// As it is: what becomes of data is decided on this.
pub async fn now(volume: &Volume, ctx: &Context) -> Result<Around, kube::Error> {
    let namespace = volume.namespace().unwrap_or_default();
    let read = Api::<Namespace>::all(ctx.client.clone()).get_opt(&namespace).await?;
    let definitions = [Database::crd_name(), Volume::crd_name()];
    let is_torn_down = teardown::is_torn_down(&ctx.client, read.as_ref(), &definitions).await?;
    ctx.standing.put(&key(volume), (!is_torn_down).then_some(()));
    Ok(Around { is_torn_down, namespace_uid: read.and_then(|read| read.uid()) })
}

fn key(volume: &Volume) -> String {
    recent::key(Volume::crd_name(), &volume.namespace().unwrap_or_default())
}
