//! The checks of restored databases that run in this process, and what those came to that have ended: one may
//! take hours, and a pass may not.
//!
//! A restart forgets them: a check that is not recorded yet begins anew. One whose BackupSchedule is deleted
//! meanwhile ends by itself, as its database is deleted.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::task::{Task, TaskView};
use crate::engine::verify::Verified;

/// What a check came to, or why it has no answer.
pub type Outcome = Result<Verified, String>;

/// What is known of the check of one database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CheckView {
    /// None has begun.
    #[default]
    NotBegun,
    /// It runs.
    Running,
    /// It has ended.
    Ended(Outcome),
}

/// The checks, by the UIDs of the restored Databases.
#[derive(Default)]
pub struct Checks {
    checks: Mutex<HashMap<String, Task<Outcome>>>,
}

impl Checks {
    /// What is known of the check of this Database.
    pub fn of(&self, uid: &str) -> CheckView {
        let checks = self.checks.lock();
        let Some(check) = checks.get(uid) else { return CheckView::NotBegun };
        match check.view() {
            TaskView::Ended(outcome) => CheckView::Ended(outcome),
            TaskView::Gone => CheckView::NotBegun,
            TaskView::Running => CheckView::Running,
        }
    }

    /// Begins a check in the background, in place of an earlier one of this Database.
    pub fn begin(&self, uid: &str, check: impl Future<Output = Outcome> + Send + 'static) {
        self.checks.lock().insert(uid.to_owned(), Task::begin(check));
    }

    /// Ends the check of this Database, and forgets it.
    pub fn forget(&self, uid: &str) {
        self.checks.lock().remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_check_runs_beside_the_passes_and_is_forgotten_with_what_it_came_to() {
        let checks = Checks::default();
        let (sender, receiver) = tokio::sync::oneshot::channel::<Outcome>();
        assert_eq!(checks.of("uid"), CheckView::NotBegun);
        checks.begin("uid", async { receiver.await.unwrap() });
        assert_eq!(checks.of("uid"), CheckView::Running);
        let outcome = Err("no answer".to_owned());
        sender.send(outcome.clone()).unwrap();
        while checks.of("uid") == CheckView::Running {
            tokio::task::yield_now().await;
        }
        assert_eq!(checks.of("uid"), CheckView::Ended(outcome));
        assert_eq!(checks.of("other"), CheckView::NotBegun);
        checks.forget("uid");
        assert_eq!(checks.of("uid"), CheckView::NotBegun);
    }
}
