//! Drives passes: one time limit, one log line for a failure, per-object pauses, counters. The same for every
//! controller.

use std::any::Any;
use std::convert::Infallible;
use std::fmt::Debug;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::future::ready;
use futures::{FutureExt, Stream, StreamExt, stream};
use kube::runtime::controller::{self, Action};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::result::{Again, PassError};
use super::triggers::Triggers;
use crate::cluster::events::Events;
use crate::error_chain::Chain;

/// Runs one pass with its time limit, and says when the next one follows. Never fails: the pause after a
/// failure is the object's own, and is computed here.
async fn drive<K, F>(
    controller: &'static str,
    object: Arc<K>,
    is_urgent: bool,
    ctx: Arc<Context>,
    pass: F,
) -> Again
where
    K: Resource<DynamicType = ()>,
    F: Future<Output = Result<Again, PassError>>,
{
    let key = format!("{controller}/{}", ObjectRef::from_obj(object.as_ref()));
    let started = Instant::now();
    let result = ended(pass, ctx.timing.reconcile_timeout).await;
    ctx.metrics.pass(controller, outcome(&result), started.elapsed());
    match result {
        Ok(again) => {
            ctx.retry.succeeded(&key);
            again
        }
        Err(PassError::Conflict) => {
            // Normal: the fresh object is on its way through the watch; this is only in case it is not.
            tracing::debug!(controller, object = key, "the object changed meanwhile; observing again");
            ctx.timing.requeue_interval.min(Duration::from_secs(1))
        }
        Err(error) => {
            let pause = ctx.retry.failed(&key, is_urgent);
            tracing::warn!(controller, object = %object.name_any(), namespace = object.namespace(),
            error = %Chain(&error),
                pause_seconds = pause.as_secs_f64(), "a pass failed and is tried again");
            pause
        }
    }
}

/// What becomes of a pass within this time. One that panics is a pass that has failed: otherwise the process
/// would end, and be started again to end at the same object, while no other one had a pass.
async fn ended(
    pass: impl Future<Output = Result<Again, PassError>>,
    limit: Duration,
) -> Result<Again, PassError> {
    let pass = AssertUnwindSafe(pass).catch_unwind();
    match tokio::time::timeout(limit, pass).await {
        Ok(Ok(result)) => result,
        Ok(Err(panicked)) => Err(PassError::Panicked(message(panicked.as_ref()))),
        Err(_) => Err(PassError::TimedOut(limit)),
    }
}

fn message(panicked: &(dyn Any + Send)) -> String {
    let text = panicked.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panicked.downcast_ref::<String>().cloned()).unwrap_or_default()
}

fn outcome(result: &Result<Again, PassError>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(PassError::Observe(_)) => "observe_failed",
        Err(PassError::Act(_)) => "act_failed",
        Err(PassError::Status(_)) => "status_failed",
        Err(PassError::Conflict) => "conflict",
        Err(PassError::Panicked(_)) => "panicked",
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

/// What a controller comes to: a pass, or a trigger that came to nothing.
type CameTo<K> = Result<(ObjectRef<K>, Action), controller::Error<Infallible, watcher::Error>>;

/// Runs a controller until `stop`, as many passes at once as there are turns, each in the order in which its
/// object was woken.
///
/// kube's own limit takes any of the objects that wait (`Scheduler::poll_pop_queue_message` of kube-runtime
/// 5.0 takes the first of a `HashSet`), so that one may be overtaken by others for as long as those are woken
/// again. So kube has no limit here: each object has a place in the queue of a semaphore, and what its pass
/// needs is made when its turn comes. For kube the wait is a part of the pass, so that a wake in it makes
/// another one: that one is left out where the pass began after the wake.
fn in_turn<K, C, P, F>(
    triggers: Triggers<K>,
    ctx: Arc<C>,
    turns: Arc<Semaphore>,
    stop: CancellationToken,
    pass: P,
) -> impl Stream<Item = CameTo<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    C: Send + Sync + 'static,
    P: Fn(Arc<K>, Arc<C>) -> F + Send + Sync + 'static,
    F: Future<Output = Again> + Send + 'static,
{
    let pass = Arc::new(pass);
    let Triggers { controller, wakes } = triggers;
    let known = Arc::clone(&wakes);
    controller
        .reconcile_on(heartbeats())
        .with_config(controller::Config::default().debounce(DEBOUNCE))
        .graceful_shutdown_on(stop.clone().cancelled_owned())
        .run(
            move |object, ctx| {
                let (turns, pass, stop) = (Arc::clone(&turns), Arc::clone(&pass), stop.clone());
                let wakes = Arc::clone(&wakes);
                async move {
                    let turn = turns.acquire_owned().await;
                    if turn.is_err() || stop.is_cancelled() {
                        return Ok::<_, Infallible>(Action::await_change());
                    }
                    let key = ObjectRef::from_obj(object.as_ref());
                    if let Err(left) = wakes.begin(&key, object.meta().uid.as_deref(), Instant::now()) {
                        return Ok(Action::requeue(left));
                    }
                    let again = pass(object, ctx).await;
                    wakes.ended(&key, Instant::now() + again);
                    Ok(Action::requeue(again))
                }
            },
            |_, never: &Infallible, _| match *never {},
            ctx,
        )
        .inspect(move |came_to| {
            if let Err(controller::Error::ObjectNotFound(object)) = came_to {
                known.forget(&object.clone().into_kind_unchecked(()));
            }
        })
}

/// Runs a controller until `stop`. Each trigger is one pass, driven by `drive`. `is_urgent` says for which
/// objects a failed pass is repeated sooner.
pub async fn run<K, P, F>(
    name: &'static str,
    triggers: Triggers<K>,
    ctx: Arc<Context>,
    concurrency: u16,
    stop: CancellationToken,
    is_urgent: fn(&K) -> bool,
    pass: P,
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    P: Fn(Arc<K>, Arc<Context>, Events) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Again, PassError>> + Send + 'static,
{
    let events = Events::new(ctx.client.clone(), name);
    let beat = ctx.pulse.of(name);
    let one = move |object: Arc<K>, ctx: Arc<Context>| {
        // A pass' future has tens of KiB, which would be copied into each future around it.
        let pass = Box::pin(pass(Arc::clone(&object), Arc::clone(&ctx), events.clone()));
        let is_urgent = is_urgent(&object);
        drive(name, object, is_urgent, ctx, pass)
    };
    let turns = Arc::new(Semaphore::new(usize::from(concurrency)));
    let inventory = Arc::clone(&ctx.inventory);
    in_turn(triggers, ctx, Arc::clone(&turns), stop, one)
        .for_each(|result| {
            // A heartbeat takes no turn: where passes that never end have them all, it says nothing.
            if result.is_ok() || turns.available_permits() > 0 {
                beat.beat(Instant::now());
            }
            match result {
                Ok(_) => {}
                Err(controller::Error::ObjectNotFound(object)) if object.name == NO_OBJECT => {}
                Err(error) => {
                    // One that lost its finalizer by force has no last pass: what EC2 has of it is awaited by
                    // no object any more.
                    if let controller::Error::ObjectNotFound(object) = &error {
                        object.extra.uid.iter().for_each(|uid| inventory.forget_gone(uid));
                    }
                    tracing::debug!(controller = name, %error, "a trigger came to nothing");
                }
            }
            ready(())
        })
        .await;
}

#[cfg(test)]
mod tests {
    use futures::channel::mpsc::unbounded;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::runtime::WatchStreamExt;
    use kube::runtime::reflector::store::Writer;
    use kube::runtime::watcher::Event;
    use parking_lot::Mutex;
    use serde_json::{from_value, json};

    use super::*;

    #[tokio::test]
    async fn a_pass_that_panics_has_failed_and_ends_no_process() {
        let number = |text: &'static str| async move { Ok(Duration::from_secs(text.parse().unwrap())) };
        assert_eq!(ended(number("7"), Duration::from_secs(60)).await.ok(), Some(Duration::from_secs(7)));
        let failed = ended(number("many"), Duration::from_secs(60)).await;
        let Err(PassError::Panicked(message)) = failed else { panic!("{failed:?}") };
        assert!(message.contains("InvalidDigit"), "{message}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_is_not_overtaken_by_those_that_are_woken_again_and_again() {
        const OBJECTS: usize = 40;
        let (sender, events) = unbounded::<Result<Event<ConfigMap>, watcher::Error>>();
        let writer = Writer::default();
        let store = writer.as_reader();
        sender.unbounded_send(Ok(Event::Init)).unwrap();
        for number in 0..OBJECTS {
            let metadata = json!({"name": format!("it-{number}"), "namespace": "a"});
            let object = from_value(json!({"metadata": metadata})).unwrap();
            sender.unbounded_send(Ok(Event::InitApply(object))).unwrap();
        }
        sender.unbounded_send(Ok(Event::InitDone)).unwrap();
        let triggers = events.reflect(writer).applied_objects();
        let triggers = Triggers::of(triggers, store);
        let begun = Arc::new(Mutex::new(Vec::new()));
        let (noted, start) = (Arc::clone(&begun), Instant::now());
        let turns = Arc::new(Semaphore::new(2));
        let passes = in_turn(triggers, Arc::new(()), turns, CancellationToken::new(), move |it, _| {
            noted.lock().push((it.name_any(), start.elapsed()));
            async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Duration::ZERO
            }
        });
        let _ = tokio::time::timeout(Duration::from_secs(200), passes.for_each(|_| ready(()))).await;
        let begun = begun.lock();
        for number in 0..OBJECTS {
            let its = begun.iter().filter(|(name, _)| *name == format!("it-{number}")).map(|(_, at)| *at);
            let its: Vec<Duration> = its.collect();
            let first = its.first().copied().unwrap_or(Duration::MAX);
            assert!(first < Duration::from_secs(21), "it-{number} waits for {first:?}");
            // 200 s of two passes at once are 400, and each has its part of them.
            assert!((8..=12).contains(&its.len()), "it-{number} has {} passes", its.len());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_wake_before_the_pass_begins_makes_no_second_one() {
        const SECOND: Duration = Duration::from_secs(1);
        let (sender, events) = unbounded::<Result<Event<ConfigMap>, watcher::Error>>();
        let (waker, woken) = unbounded();
        let writer = Writer::default();
        let store = writer.as_reader();
        let named = |name: &str| from_value(json!({"metadata": {"name": name, "namespace": "a"}})).unwrap();
        for event in
            [Event::Init, Event::InitApply(named("one")), Event::InitApply(named("two")), Event::InitDone]
        {
            sender.unbounded_send(Ok(event)).unwrap();
        }
        let triggers = Triggers::of(events.reflect(writer).applied_objects(), store).woken_by(woken);
        let begun = Arc::new(Mutex::new(Vec::new()));
        let (noted, turns) = (Arc::clone(&begun), Arc::new(Semaphore::new(1)));
        let passes = in_turn(triggers, Arc::new(()), turns, CancellationToken::new(), move |it, _| {
            noted.lock().push(it.name_any());
            async {
                tokio::time::sleep(4 * SECOND).await;
                20 * SECOND
            }
        });
        let calls = async {
            // While one of both has its pass, and the other one waits.
            tokio::time::sleep(2 * SECOND).await;
            for name in ["one", "two"] {
                waker.unbounded_send(ObjectRef::new(name).within("a")).unwrap();
            }
            tokio::time::sleep(16 * SECOND).await;
        };
        tokio::select! {
            () = passes.for_each(|_| ready(())) => {}
            () = calls => {}
        }
        let begun = begun.lock().clone();
        let (first, second) = (begun[0].clone(), begun[1].clone());
        assert_ne!(first, second);
        assert_eq!(begun[2..], [first], "only what was woken during its pass has another one");
    }
}
