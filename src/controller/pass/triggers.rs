//! What starts the passes of a controller, and which wakes a pass has seen: one that comes while its object
//! waits for a turn makes no second pass.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::Resource;
use kube::runtime::controller::Controller;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

/// The objects of a controller with what wakes them. No stream reaches kube's controller but through this.
pub struct Triggers<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + 'static,
{
    /// Kube's.
    pub(super) controller: Controller<K>,
    /// What woke each object.
    pub(super) wakes: Arc<Wakes<K>>,
}

impl<K> Triggers<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// The objects of this store, each woken by its own changes.
    pub fn of(
        changes: impl Stream<Item = Result<K, watcher::Error>> + Send + 'static,
        store: Store<K>,
    ) -> Self {
        let wakes = Arc::<Wakes<K>>::default();
        let noted = Arc::clone(&wakes);
        let changes = changes.inspect(move |change| {
            if let Ok(object) = change {
                noted.note(&ObjectRef::from_obj(object));
            }
        });
        Self { controller: Controller::for_stream(changes, store), wakes }
    }

    /// The same, and woken by this stream, too.
    #[must_use]
    pub fn woken_by(self, stream: impl Stream<Item = ObjectRef<K>> + Send + 'static) -> Self {
        let noted = Arc::clone(&self.wakes);
        let stream = stream.inspect(move |object| noted.note(object));
        Self { controller: self.controller.reconcile_on(stream), ..self }
    }

    /// The objects.
    pub fn store(&self) -> Store<K> {
        self.controller.store()
    }
}

/// What woke each object, and what its last pass has seen of that.
pub(super) struct Wakes<K: Resource<DynamicType = ()>> {
    /// By namespace and name: no two references differ by anything else.
    of: Mutex<HashMap<ObjectRef<K>, Woken>>,
}

impl<K: Resource<DynamicType = ()>> Default for Wakes<K> {
    fn default() -> Self {
        Self { of: Mutex::default() }
    }
}

#[derive(Default)]
struct Woken {
    /// How often it was woken.
    times: u64,
    /// How often it had been when its last pass began.
    seen: u64,
    /// The UID of the object that this pass was of: one that was deleted and made again has another.
    uid: Option<String>,
    /// When its next pass is due without a wake; none before its first pass has ended.
    due: Option<Instant>,
}

impl<K: Resource<DynamicType = ()>> Wakes<K> {
    /// The object is woken.
    pub(super) fn note(&self, object: &ObjectRef<K>) {
        self.of.lock().entry(object.clone()).or_default().times += 1;
    }

    /// A pass of the object begins, and sees all that has woken it before; or for how long none is needed:
    /// the last one has seen it all, and its time has not come.
    pub(super) fn begin(
        &self,
        object: &ObjectRef<K>,
        uid: Option<&str>,
        now: Instant,
    ) -> Result<(), Duration> {
        let mut of = self.of.lock();
        let woken = of.entry(object.clone()).or_default();
        let left = woken.due.take().map(|due| due.saturating_duration_since(now));
        let has_seen = woken.seen == woken.times && woken.uid.as_deref() == uid;
        if let Some(left) = left.filter(|left| has_seen && !left.is_zero()) {
            woken.due = Some(now + left);
            return Err(left);
        }
        woken.seen = woken.times;
        woken.uid = uid.map(str::to_owned);
        Ok(())
    }

    /// The pass has ended, and the next one is due then without a wake.
    pub(super) fn ended(&self, object: &ObjectRef<K>, due: Instant) {
        if let Some(woken) = self.of.lock().get_mut(object) {
            woken.due = Some(due);
        }
    }

    /// The object is gone.
    pub(super) fn forget(&self, object: &ObjectRef<K>) {
        self.of.lock().remove(object);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use pretty_assertions::assert_eq;

    use super::*;

    const AGAIN: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_pass_sees_what_came_before_it_and_another_follows_a_wake_or_its_time() {
        let (wakes, object) = (Wakes::<ConfigMap>::default(), ObjectRef::new("a"));
        let begin = || wakes.begin(&object, Some("one"), Instant::now());
        assert_eq!(begin(), Ok(()), "the first one");
        wakes.ended(&object, Instant::now() + AGAIN);
        assert_eq!(begin(), Err(AGAIN));
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(begin(), Err(Duration::from_secs(40)), "its time comes no later");
        wakes.note(&object);
        wakes.note(&object);
        assert_eq!(begin(), Ok(()));
        wakes.note(&object);
        wakes.ended(&object, Instant::now() + AGAIN);
        assert_eq!(begin(), Ok(()), "it was woken during the pass");
        wakes.ended(&object, Instant::now() + AGAIN);
        tokio::time::advance(AGAIN).await;
        assert_eq!(begin(), Ok(()), "its time has come");
        assert_eq!(begin(), Ok(()), "a pass that was abandoned says no time");
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_was_made_again_while_the_old_one_waited_has_a_pass_of_its_own() {
        let (wakes, object) = (Wakes::<ConfigMap>::default(), ObjectRef::new("a"));
        wakes.note(&object);
        assert_eq!(
            wakes.begin(&object, Some("old"), Instant::now()),
            Ok(()),
            "as kube had it before its turn"
        );
        wakes.ended(&object, Instant::now() + AGAIN);
        assert_eq!(wakes.begin(&object, Some("new"), Instant::now()), Ok(()));
        wakes.ended(&object, Instant::now() + AGAIN);
        assert_eq!(wakes.begin(&object, Some("new"), Instant::now()), Err(AGAIN));
    }

    #[test]
    fn nothing_is_kept_of_an_object_that_is_gone() {
        let (wakes, object) = (Wakes::<ConfigMap>::default(), ObjectRef::new("a"));
        wakes.note(&object);
        wakes.forget(&object);
        assert!(wakes.of.lock().is_empty());
    }
}
