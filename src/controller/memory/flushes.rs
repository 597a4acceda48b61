//! The flushes of engines that run in this process before a planned stop, and when those ended that have
//! ended: one may take minutes, and a pass may not.
//!
//! A restart forgets them: an engine that is not stopped yet is flushed once more, which is harmless.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::task::{Task, TaskView};
use crate::time::later;

/// For how long one is known: longer than it is asked for by any plan.
const KNOWN: Duration = Duration::from_secs(3600);

/// What is known of the flush of the engine in one pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlushView {
    /// None has begun.
    #[default]
    NotBegun,
    /// It runs, since then.
    Running(Timestamp),
    /// It ended then, whatever came of it.
    Ended(Timestamp),
}

impl FlushView {
    /// Whether it runs: the engine must be reachable for it.
    pub fn is_running(self) -> bool {
        matches!(self, Self::Running(_))
    }
}

/// The flushes, by the UIDs of the pods.
#[derive(Default)]
pub struct Flushes {
    flushes: Mutex<HashMap<String, Flush>>,
}

struct Flush {
    since: Timestamp,
    /// It gives the time at its end.
    task: Task<Timestamp>,
}

impl Flushes {
    /// What is known of the flush of the engine in this pod.
    pub fn of(&self, pod_uid: &str) -> FlushView {
        let flushes = self.flushes.lock();
        let Some(flush) = flushes.get(pod_uid) else { return FlushView::NotBegun };
        match flush.task.view() {
            TaskView::Ended(ended_at) => FlushView::Ended(ended_at),
            // It ended somehow: it is not begun again and again.
            TaskView::Gone => FlushView::Ended(flush.since),
            TaskView::Running => FlushView::Running(flush.since),
        }
    }

    /// Begins one in the background, in place of an earlier one of this pod. It gives the time at its end.
    pub fn begin(
        &self,
        pod_uid: &str,
        since: Timestamp,
        flush: impl Future<Output = Timestamp> + Send + 'static,
    ) {
        let task = Task::begin(flush);
        let mut flushes = self.flushes.lock();
        flushes.retain(|_, flush| since < later(flush.since, KNOWN));
        flushes.insert(pod_uid.to_owned(), Flush { since, task });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[tokio::test]
    async fn a_flush_runs_beside_the_passes_and_is_known_for_an_hour() {
        let flushes = Flushes::default();
        let (sender, receiver) = tokio::sync::oneshot::channel::<Timestamp>();
        assert_eq!(flushes.of("pod"), FlushView::NotBegun);
        flushes.begin("pod", at(10), async { receiver.await.unwrap() });
        assert_eq!(flushes.of("pod"), FlushView::Running(at(10)));
        sender.send(at(12)).unwrap();
        while flushes.of("pod") == FlushView::Running(at(10)) {
            tokio::task::yield_now().await;
        }
        assert_eq!(flushes.of("pod"), FlushView::Ended(at(12)));
        flushes.begin("other", at(3609), std::future::pending());
        assert_eq!(flushes.of("pod"), FlushView::Ended(at(12)));
        flushes.begin("other", at(3610), std::future::pending());
        assert_eq!(flushes.of("pod"), FlushView::NotBegun);
    }

    #[tokio::test]
    async fn a_task_that_is_no_more_has_ended() {
        let flushes = Flushes::default();
        flushes.begin("pod", at(10), async { std::future::pending().await });
        flushes.flushes.lock().get("pod").unwrap().task.abort();
        while flushes.of("pod") == FlushView::Running(at(10)) {
            tokio::task::yield_now().await;
        }
        assert_eq!(flushes.of("pod"), FlushView::Ended(at(10)));
    }
}
