//! The pod that pulls the engine's next image is created and deleted.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;

use super::apply::created;
use super::written::{of_namespace, write_down};
use crate::api::Database;
use crate::api::database::{ImagePull, PullOutcome};
use crate::api::names::Names;
use crate::cluster::{delete, is_already_exists, is_refused};
use crate::controller::pass::acted::{ActError, Acted};
use crate::controller::pass::context::Context;

/// Writes down since when the image is pulled, and creates the pod. One that is there already is found by the
/// next pass. Where the API server refuses it (a quota, an admission policy), nothing is awaited of it.
pub(super) async fn pull_image(
    puller: &Pod,
    record: &ImagePull,
    acted: &mut Acted<Database>,
    ctx: &Context,
) -> Result<(), ActError> {
    let written = acted.object.status.as_ref().and_then(|status| status.image_pull.as_ref());
    if written != Some(record) {
        write_down(acted, ctx, |status| status.image_pull = Some(record.clone())).await?;
    }
    match of_namespace(puller, ctx).create(&created(), puller).await {
        Err(error) if is_already_exists(&error) => Ok(()),
        Err(error) if is_refused(&error) => {
            tracing::warn!(%error, image = record.image, "the image is not pulled before the restart");
            let refused = ImagePull { outcome: Some(PullOutcome::NotTried), ..record.clone() };
            write_down(acted, ctx, |status| status.image_pull = Some(refused)).await
        }
        other => other.map(drop).map_err(ActError::from),
    }
}

/// Deletes it.
pub(super) async fn end_pull(uid: &str, names: &Names, ctx: &Context) -> Result<(), ActError> {
    let pods = Api::<Pod>::namespaced(ctx.client.clone(), &names.namespace);
    Ok(delete::delete(&pods, &names.pull_pod(), uid).await?)
}
