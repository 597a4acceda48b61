//! One task of this process beside the passes, and what it came to once it has ended. A restart ends it: what
//! each of them then costs is said where it is kept.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::JoinHandle;

/// A task; it is aborted when it is forgotten.
pub(super) struct Task<T> {
    task: JoinHandle<()>,
    outcome: Arc<Mutex<Option<T>>>,
}

/// How far a task is.
pub(super) enum TaskView<T> {
    /// It runs.
    Running,
    /// It has ended with this.
    Ended(T),
    /// It is no more, and came to nothing.
    Gone,
}

impl<T: Clone + Send + 'static> Task<T> {
    /// Begins it in the background.
    pub(super) fn begin(work: impl Future<Output = T> + Send + 'static) -> Self {
        let outcome = Arc::new(Mutex::new(None));
        let place = Arc::clone(&outcome);
        let task = tokio::spawn(async move {
            let ended = work.await;
            *place.lock() = Some(ended);
        });
        Self { task, outcome }
    }

    /// How far it is.
    pub(super) fn view(&self) -> TaskView<T> {
        match self.outcome.lock().clone() {
            Some(outcome) => TaskView::Ended(outcome),
            None if self.task.is_finished() => TaskView::Gone,
            None => TaskView::Running,
        }
    }

    /// Ends it from outside, as its runtime's end does.
    #[cfg(test)]
    pub(super) fn abort(&self) {
        self.task.abort();
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
