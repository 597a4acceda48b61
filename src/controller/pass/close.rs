//! The end of a pass: one closing status patch, the events, and when the next pass follows.

use std::time::Duration;

use kube::{Api, Resource};
use serde::Serialize;

use super::acted::{ActError, Acted};
use super::context::Context;
use super::result::{Again, PassError};
use super::settling::differ_in_words;
use crate::cluster::events::{Events, Happened};
use crate::cluster::{self, status::PatchError};
use crate::controller::call_blocked::CallBlocked;
use crate::time::{sooner, until};

/// The one closing status patch of a pass, then what it tells people; reported even when acting failed.
/// Gives how long words wait that were not written: another pass must follow then.
pub async fn close<K, S>(
    api: &Api<K>,
    acted: Acted<K>,
    old: &S,
    new: &S,
    happened: impl IntoIterator<Item = Happened>,
    events: &Events,
    ctx: &Context,
) -> Result<Option<Duration>, PassError>
where
    K: Resource<DynamicType = ()> + Clone,
    S: Serialize + PartialEq,
{
    if acted.error.as_ref().is_some_and(ActError::is_conflict) {
        return Err(PassError::Conflict);
    }
    let waits = write_status(api, &acted.object, old, new, ctx).await?;
    for happened in happened.into_iter().filter(|_| waits.is_none()) {
        events.publish(&acted.object, &happened).await;
    }
    match acted.error {
        Some(error) => Err(PassError::Act(error.into())),
        None => Ok(waits),
    }
}

/// The closing status patch of a pass: what differs, or no call; or how long words wait. A conflict is no
/// failure; an object that is gone needs no status.
async fn write_status<K, S>(
    api: &Api<K>,
    object: &K,
    old: &S,
    new: &S,
    ctx: &Context,
) -> Result<Option<Duration>, PassError>
where
    K: Resource<DynamicType = ()> + Clone,
    S: Serialize + PartialEq,
{
    let uid = object.meta().uid.as_deref().unwrap_or_default();
    if old == new {
        ctx.settling.settled(uid);
        return Ok(None);
    }
    let json = |status| serde_json::to_value(status).map_err(|error| PassError::Status(error.into()));
    let (old, new) = (json(old)?, json(new)?);
    if differ_in_words(&old, &new)
        && let Some(waits) = ctx.settling.wait(uid)
    {
        return Ok(Some(waits));
    }
    ctx.settling.settled(uid);
    let Some(difference) = cluster::status::difference(&old, &new) else { return Ok(None) };
    match cluster::status::write(api, object, &difference).await {
        Ok(()) => Ok(None),
        Err(PatchError::Kube(error)) if cluster::is_conflict(&error) => Err(PassError::Conflict),
        Err(PatchError::Kube(error)) if cluster::is_not_found(&error) => Ok(None),
        Err(error) => Err(PassError::Status(error.into())),
    }
}

/// When an object that has something in EC2 is looked at again: as its plan says, when EC2's answer is over,
/// and soon while the first complete look at EC2 is awaited, whose wake may have come before the object was
/// known to anybody.
pub fn next_look(
    planned: Option<Duration>,
    call_blocked: Option<&CallBlocked>,
    is_swept: bool,
    ctx: &Context,
) -> Again {
    let call_blocked = call_blocked.and_then(CallBlocked::until).map(|moment| until(moment, ctx.clock.now()));
    let first_look = (!is_swept).then_some(ctx.timing.requeue_interval);
    sooner(sooner(sooner(ctx.timing.resync_interval, planned), call_blocked), first_look)
}
