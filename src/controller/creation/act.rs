//! The act of a creation: the intent, the call, the id, with nothing between. No other file has a creating
//! call sent.

use std::fmt::Debug;
use std::future::Future;

use kube::core::NamespaceResourceScope;
use kube::core::object::HasStatus;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::answer::{Outcome, outcome, outcome_without_token};
use crate::api::ClientToken;
use crate::api::creation::Attempt;
use crate::cloud::CloudError;
use crate::cloud::call::Call;
use crate::cloud::identity::Kind;
use crate::cloud::turns::Priority;
use crate::cluster::events::{Events, Happened};
use crate::cluster::status::{self, PatchError};
use crate::controller::call_blocked::CallBlocked;
use crate::controller::pass::acted::{ActError, Acted};
use crate::controller::pass::call_blocked::call_blocked;
use crate::controller::pass::context::Context;
use crate::time::later;

/// How one kind of resource is created in EC2: the request of one attempt, and its place in a status.
pub trait Creation: Sync {
    /// The object whose status has the intent and the id.
    type Object: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + HasStatus<Status = Self::Status>
        + Clone
        + DeserializeOwned
        + Debug;
    /// Its status.
    type Status: Serialize + Clone + Default;
    /// The id that EC2 gives.
    type Id: Debug;

    /// The creating call.
    const CALL: Call;
    /// What is looked up in EC2 after the call.
    const KIND: Kind;

    /// How urgent the call is.
    fn priority(&self) -> Priority;

    /// The attempt that this is.
    fn attempt(&self) -> &Attempt;

    /// Its token; `None` when EC2 has none for the call, which is then sent once for each attempt.
    fn token(&self) -> Option<&ClientToken>;

    /// Writes the intent.
    fn announce(&self, status: &mut Self::Status);

    /// The attempt that a status has.
    fn attempt_in(status: &mut Self::Status) -> Option<&mut Attempt>;

    /// Writes the id.
    fn identify(status: &mut Self::Status, id: &Self::Id);

    /// Sends the call once.
    fn send(&self, ctx: &Context) -> impl Future<Output = Result<Self::Id, CloudError>> + Send;

    /// Whether what EC2 does not know yet has had the time to become known.
    fn is_old(&self, ctx: &Context) -> bool;

    /// Remembers what an error says of other attempts. `acted` has what it blocks.
    fn remember(&self, error: &CloudError, acted: &Acted<Self::Object>, ctx: &Context);

    /// The event of the creation.
    fn created(&self, id: &Self::Id) -> Happened;

    /// The event of a definite refusal.
    fn refused(&self, error: &CloudError) -> Happened;
}

/// Begins an attempt: its intent, then the call, then the id.
pub async fn begin<C: Creation>(
    creation: &C,
    acted: &mut Acted<C::Object>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    // Before the intent: an intent that is not sent at once would look like doubt.
    if !acted.may_call(C::CALL, creation.priority(), ctx) {
        return Ok(());
    }
    let old = acted.object.status().cloned().unwrap_or_default();
    let mut new = old.clone();
    creation.announce(&mut new);
    // With the resourceVersion of this pass' read: the check that this view is not old.
    acted.object = status::patch(&api(&acted.object, ctx), &acted.object, &old, &new).await?;
    send(creation, acted, ctx, events).await
}

/// Sends the identical call of an attempt that has its intent in the status.
pub async fn resend<C: Creation>(
    creation: &C,
    acted: &mut Acted<C::Object>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    if let Some(token) = creation.token() {
        ctx.sends.found_at_start(token, ctx.leading_since);
    }
    if acted.may_call(C::CALL, creation.priority(), ctx) {
        send(creation, acted, ctx, events).await?;
    }
    Ok(())
}

/// Records an id that EC2 answered, or that a look-up found: the attempt with this token is over.
pub async fn record<C: Creation>(
    id: &C::Id,
    token: Option<&ClientToken>,
    acted: &mut Acted<C::Object>,
    ctx: &Context,
) -> Result<(), PatchError> {
    let note = |status: &mut C::Status| C::identify(status, id);
    acted.object = status::record(&api(&acted.object, ctx), &acted.object, note).await?;
    if let Some(token) = token {
        ctx.sends.forget(token);
    }
    Ok(())
}

/// Sends the call and records at once what came of it.
async fn send<C: Creation>(
    creation: &C,
    acted: &mut Acted<C::Object>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    let token = creation.token();
    ctx.sends.note_object(&acted.object.uid().unwrap_or_default(), token);
    let was_sent_in_doubt = token.is_some_and(|token| ctx.sends.starting(token, ctx.clock.now()));
    let answer = creation.send(ctx).await;
    ctx.inventory.request_sync(C::KIND);
    match answer {
        Ok(id) => {
            record::<C>(&id, token, acted, ctx).await?;
            events.publish(&acted.object, &creation.created(&id)).await;
        }
        Err(error) => {
            acted.call_blocked = Some(call_blocked(C::CALL, &error, ctx));
            creation.remember(&error, acted, ctx);
            let was_in_doubt = was_sent_in_doubt || creation.attempt().in_doubt_since.is_some();
            let outcome = match token {
                Some(_) => outcome(&error, creation.is_old(ctx), was_in_doubt),
                None => outcome_without_token(&error),
            };
            let now = ctx.clock.now();
            if let Some(token) = token {
                let blocked_until = acted.call_blocked.as_ref().and_then(CallBlocked::until);
                let recheck = ctx.timing.requeue_interval;
                let not_before = blocked_until.unwrap_or_else(|| later(now, recheck));
                outcome.note(token, &ctx.sends, not_before, recheck, now);
            }
            let write = |status: &mut C::Status| {
                if let Some(attempt) = C::attempt_in(status) {
                    outcome.write(&error, attempt, now);
                }
            };
            acted.object = status::record(&api(&acted.object, ctx), &acted.object, write).await?;
            if outcome == Outcome::Refused {
                if let Some(token) = token {
                    ctx.sends.forget(token);
                }
                events.publish(&acted.object, &creation.refused(&error)).await;
            }
        }
    }
    Ok(())
}

fn api<K>(object: &K, ctx: &Context) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::namespaced(ctx.client.clone(), &object.namespace().unwrap_or_default())
}
