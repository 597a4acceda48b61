//! The end of a pass: one closing status patch, the events, and when the next pass follows.

use std::fmt::Debug;
use std::time::Duration;

use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::acted::{ActError, Acted};
use super::context::Context;
use super::result::{Again, PassError};
use crate::cluster::events::{Events, Happened};
use crate::cluster::{self, status::PatchError};
use crate::controller::call_blocked::CallBlocked;
use crate::time::{sooner, until};

/// The one closing status patch of a pass, then what it tells people; reported even when acting failed.
pub async fn close<K, S>(
    api: &Api<K>,
    acted: Acted<K>,
    old: &S,
    new: &S,
    happened: impl IntoIterator<Item = Happened>,
    events: &Events,
) -> Result<(), PassError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    S: Serialize,
{
    if acted.error.as_ref().is_some_and(ActError::is_conflict) {
        return Err(PassError::Conflict);
    }
    write_status(api, &acted.object, old, new).await?;
    for happened in happened {
        events.publish(&acted.object, &happened).await;
    }
    match acted.error {
        Some(error) => Err(PassError::Act(error.into())),
        None => Ok(()),
    }
}

/// The closing status patch of a pass: what differs, or no call. A conflict is no failure; an object that is
/// gone needs no status.
async fn write_status<K, S>(api: &Api<K>, object: &K, old: &S, new: &S) -> Result<(), PassError>
where
    K: Resource + Clone + DeserializeOwned + Debug,
    S: Serialize,
{
    match cluster::status::patch(api, object, old, new).await {
        Ok(_) => Ok(()),
        Err(PatchError::Kube(error)) if cluster::is_conflict(&error) => Err(PassError::Conflict),
        Err(PatchError::Kube(error)) if cluster::is_not_found(&error) => Ok(()),
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
