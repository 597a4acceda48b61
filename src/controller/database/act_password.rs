//! The part of the act step that rotates the administrator's password. No password leaves the Secret and the
//! connection to the engine.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::Value;

use super::act_stateful_set::scale;
use super::apply::written;
use super::build;
use super::cause::RestartCause;
use super::messages::events as notes;
use super::observe::child::HeldSecret;
use super::password::Password;
use super::plan::action::Action;
use super::written::{announce, of_namespace, report};
use crate::api::database::Occurrence;
use crate::api::names::Names;
use crate::api::{Database, EventReason};
use crate::cluster::events::Events;
use crate::cluster::recent;
use crate::controller::pass::acted::{ActError, Acted};
use crate::controller::pass::context::Context;
use crate::engine::Profile;
use crate::engine::client::Access;

/// Makes the next password, and puts it beside the one in force.
pub(super) async fn prepare_next(
    secret: &HeldSecret,
    generation: i64,
    ctx: &Context,
) -> Result<(), ActError> {
    let password = Password::generate().map_err(ActError::Randomness)?;
    change(&secret.0, &build::with_next(&secret.0, &password, generation), ctx).await?;
    Ok(())
}

/// Gives the engine the next password, and tries it.
pub(super) async fn give_next(access: &Access, secret: &HeldSecret, ctx: &Context) -> Result<(), ActError> {
    let next = build::next_password(&secret.0).unwrap_or_default();
    ctx.term.check()?;
    ctx.engines.change_password(access, &next).await?;
    Ok(())
}

/// Makes the next password the one that clients read.
pub(super) async fn put_next_in_force(
    profile: &Profile,
    secret: &HeldSecret,
    names: &Names,
    acted: &Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    let Some(patch) = build::with_next_in_force(names, profile, &secret.0) else { return Ok(()) };
    let changed = change(&secret.0, &patch, ctx).await?;
    let note = notes::password_rotated(&changed.name_any(), build::password_generation(&changed));
    report(EventReason::PasswordRotated, note, acted, events).await;
    Ok(())
}

/// Whether what follows is done though this failed: an engine that is stopped for the next password is
/// started with the one in force, if the API server has refused to change the Secret. Without its answer it
/// may change it later, when the engine has begun with the other one.
pub(super) fn starts_anyway(action: &Action, result: &Result<(), ActError>) -> bool {
    let Some(kube::Error::Api(status)) = result.as_ref().err().and_then(ActError::kube) else { return false };
    matches!(action, Action::PutNextPasswordInForce(..)) && matches!(status.code, 400 | 403 | 422)
}

/// Stops the engine, whose pod comes back once the next password is in force. Whether the API server will let
/// the Secret be changed is tried first.
pub(super) async fn stop_for_next(
    uid: &str,
    profile: &Profile,
    secret: &HeldSecret,
    names: &Names,
    acted: &mut Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    let Some(patch) = build::with_next_in_force(names, profile, &secret.0) else { return Ok(()) };
    let tried = PatchParams { dry_run: true, ..written() };
    of_namespace(&secret.0, ctx).patch(&secret.0.name_any(), &tried, &Patch::Merge(&patch)).await?;
    announce(Occurrence::Restarted, &RestartCause::Password.message(), acted, ctx, events).await?;
    scale(uid, 0, names, acted, ctx, events).await?;
    Ok(())
}

/// Changes the Secret, if it is still as it was read.
async fn change(secret: &Secret, patch: &Value, ctx: &Context) -> Result<Secret, kube::Error> {
    let name = secret.name_any();
    let changed = of_namespace(secret, ctx).patch(&name, &written(), &Patch::Merge(patch)).await;
    let key = recent::key(&secret.namespace().unwrap_or_default(), &name);
    // After an error it is not known what the Secret has: it is read again.
    ctx.secrets.put(&key, changed.as_ref().ok().map(|changed| Some(changed.clone())));
    changed
}
