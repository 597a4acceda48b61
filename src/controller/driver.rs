//! Drives passes: one time limit, one log line for a failure, per-object pauses, counters, one closing patch. The same for every
//! controller.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt::{self, Debug, Display};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::acting::{ActError, Acted};
use super::context::Context;
use super::waiting::HeldUp;
use crate::cluster::events::{Events, Happened};
use crate::cluster::{self, status::PatchError};

/// A pass that went wrong; trying again may help.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// Reading failed: nothing was decided.
    #[error("failed to observe")]
    Observe(#[source] Box<dyn StdError + Send + Sync>),
    /// A write failed: what was done before it stands.
    #[error("failed to act")]
    Act(#[source] Box<dyn StdError + Send + Sync>),
    /// The closing status patch failed.
    #[error("failed to write the status")]
    Status(#[source] Box<dyn StdError + Send + Sync>),
    /// Somebody else wrote the object first: this view was old.
    #[error("the object changed meanwhile")]
    Conflict,
    /// The pass took too long and was abandoned.
    #[error("the pass took longer than {0:?}")]
    TimedOut(Duration),
}

/// When the object is looked at again, if nothing wakes it before.
pub type Again = Duration;

/// Runs one pass with its time limit and turns the result into kube's terms. Never fails: the pause after a failure is the object's
/// own, and is computed here.
async fn drive<K, F>(controller: &'static str, object: Arc<K>, ctx: Arc<Context>, pass: F) -> Action
where
    K: Resource<DynamicType = ()>,
    F: Future<Output = Result<Again, PassError>>,
{
    let key = format!("{controller}/{}", ObjectRef::from_obj(object.as_ref()));
    let started = tokio::time::Instant::now();
    let limit = ctx.timing.pass_timeout;
    let result = tokio::time::timeout(limit, pass).await.unwrap_or(Err(PassError::TimedOut(limit)));
    ctx.metrics.pass(controller, outcome(&result), started.elapsed());
    match result {
        Ok(again) => {
            ctx.retry.succeeded(&key);
            Action::requeue(again)
        }
        Err(PassError::Conflict) => {
            // Normal: the fresh object is on its way through the watch; this is only in case it is not.
            tracing::debug!(controller, object = key, "the object changed meanwhile; observing again");
            Action::requeue(ctx.timing.recheck.min(Duration::from_secs(1)))
        }
        Err(error) => {
            let pause = ctx.retry.failed(&key);
            tracing::warn!(controller, object = %object.name_any(), namespace = object.namespace(), error = %Chain(&error),
                pause_seconds = pause.as_secs_f64(), "a pass failed and is tried again");
            Action::requeue(pause)
        }
    }
}

fn outcome(result: &Result<Again, PassError>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(PassError::Observe(_)) => "observe_failed",
        Err(PassError::Act(_)) => "act_failed",
        Err(PassError::Status(_)) => "status_failed",
        Err(PassError::Conflict) => "conflict",
        Err(PassError::TimedOut(_)) => "timed_out",
    }
}

/// Runs a controller until `stop`. Each trigger is one pass, driven by `drive`.
pub async fn run<K, P, F>(
    name: &'static str,
    controller: Controller<K>,
    ctx: Arc<Context>,
    concurrency: u16,
    stop: CancellationToken,
    pass: P,
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    P: Fn(Arc<K>, Arc<Context>, Events) -> F,
    F: Future<Output = Result<Again, PassError>> + Send + 'static,
{
    let events = Events::new(ctx.client.clone(), name);
    controller
        .with_config(kube::runtime::controller::Config::default().concurrency(concurrency))
        .graceful_shutdown_on(stop.cancelled_owned())
        .run(
            |object, ctx| {
                let pass = pass(Arc::clone(&object), Arc::clone(&ctx), events.clone());
                async move { Ok::<_, Infallible>(drive(name, object, ctx, pass).await) }
            },
            |_, never: &Infallible, _| match *never {},
            ctx,
        )
        .for_each(|result| async move {
            if let Err(error) = result {
                tracing::debug!(controller = name, %error, "a trigger came to nothing");
            }
        })
        .await;
}

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

/// When an object that has something in EC2 is looked at again: as its plan says, when EC2's answer is over, and soon while the first
/// complete look at EC2 is awaited, whose wake may have come before the object was known to anybody.
pub fn next_look(planned: Option<Duration>, held_up: Option<&HeldUp>, is_swept: bool, ctx: &Context) -> Again {
    let held_up = held_up.and_then(|held_up| held_up.until).map(|moment| until(moment, ctx.clock.now()));
    let first_look = (!is_swept).then_some(ctx.timing.recheck);
    sooner(sooner(sooner(ctx.timing.resync, planned), held_up), first_look)
}

/// The closing status patch of a pass: what differs, or no call. A conflict is no failure; an object that is gone needs no status.
pub async fn write_status<K, S>(api: &Api<K>, object: &K, old: &S, new: &S) -> Result<(), PassError>
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

/// How long it is from `now` to a moment, and never so short that a pass follows at once.
pub fn until(moment: jiff::Timestamp, now: jiff::Timestamp) -> Again {
    Again::try_from(moment.duration_since(now)).unwrap_or_default().max(Again::from_millis(100))
}

/// An error with all its causes, in one line.
pub struct Chain<'a>(pub &'a (dyn StdError + 'static));

impl Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.0.to_string();
        f.write_str(&said)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            // Some errors print their cause themselves.
            let text = match error.downcast_ref::<kube::Error>() {
                // The API server's own sentence, without the rest of its answer.
                Some(kube::Error::Api(status)) => status.message.clone(),
                Some(_) | None => error.to_string(),
            };
            if !said.contains(&text) {
                write!(f, ": {text}")?;
                said = text;
            }
            cause = error.source();
        }
        Ok(())
    }
}

/// The sooner of two moments to look again.
pub fn sooner(one: Again, other: Option<Again>) -> Again {
    other.map_or(one, |other| one.min(other))
}
