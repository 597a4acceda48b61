//! Drives passes: one time limit, one log line for a failure, per-object pauses, counters. The same for every
//! controller.

use std::convert::Infallible;
use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::ready;
use futures::{Stream, StreamExt, stream};
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::result::{Again, PassError};
use crate::cluster::events::Events;
use crate::error_chain::Chain;

/// Runs one pass with its time limit and turns the result into kube's terms. Never fails: the pause after a
/// failure is the object's own, and is computed here.
async fn drive<K, F>(
    controller: &'static str,
    object: Arc<K>,
    is_urgent: bool,
    ctx: Arc<Context>,
    pass: F,
) -> Action
where
    K: Resource<DynamicType = ()>,
    F: Future<Output = Result<Again, PassError>>,
{
    let key = format!("{controller}/{}", ObjectRef::from_obj(object.as_ref()));
    let started = tokio::time::Instant::now();
    let limit = ctx.timing.reconcile_timeout;
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
            Action::requeue(ctx.timing.requeue_interval.min(Duration::from_secs(1)))
        }
        Err(error) => {
            let pause = ctx.retry.failed(&key, is_urgent);
            tracing::warn!(controller, object = %object.name_any(), namespace = object.namespace(),
            error = %Chain(&error),
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

/// What wakes an object within this time is one wake: a step of one object changes several that wake
/// another. Each wake begins the time anew (`kube::runtime::controller::Config::debounce`), so it is far
/// below the time between two changes of anything that goes on changing.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// How often a controller is triggered for nothing, so that one without objects shows that it goes on.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// No object can have this name: the trigger passes through the whole controller, and comes to nothing.
const NO_OBJECT: &str = "-";

fn heartbeats<K>() -> impl Stream<Item = ObjectRef<K>> + Send + 'static
where
    K: Resource<DynamicType = ()> + 'static,
{
    stream::unfold((), |()| async {
        tokio::time::sleep(HEARTBEAT).await;
        Some((ObjectRef::new(NO_OBJECT), ()))
    })
}

/// Runs a controller until `stop`. Each trigger is one pass, driven by `drive`. `is_urgent` says for which
/// objects a failed pass is repeated sooner.
pub async fn run<K, P, F>(
    name: &'static str,
    controller: Controller<K>,
    ctx: Arc<Context>,
    concurrency: u16,
    stop: CancellationToken,
    is_urgent: fn(&K) -> bool,
    pass: P,
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    P: Fn(Arc<K>, Arc<Context>, Events) -> F,
    F: Future<Output = Result<Again, PassError>> + Send + 'static,
{
    let events = Events::new(ctx.client.clone(), name);
    let beat = ctx.pulse.of(name);
    controller
        .reconcile_on(heartbeats())
        .with_config(controller::Config::default().concurrency(concurrency).debounce(DEBOUNCE))
        .graceful_shutdown_on(stop.cancelled_owned())
        .run(
            |object, ctx| {
                let pass = pass(Arc::clone(&object), Arc::clone(&ctx), events.clone());
                let is_urgent = is_urgent(&object);
                async move { Ok::<_, Infallible>(drive(name, object, is_urgent, ctx, pass).await) }
            },
            |_, never: &Infallible, _| match *never {},
            ctx,
        )
        .for_each(|result| {
            beat.beat(tokio::time::Instant::now());
            match result {
                Ok(_) => {}
                Err(controller::Error::ObjectNotFound(object)) if object.name == NO_OBJECT => {}
                Err(error) => tracing::debug!(controller = name, %error, "a trigger came to nothing"),
            }
            ready(())
        })
        .await;
}
