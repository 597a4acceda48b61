//! What a plan of the DatabaseUser controller is made of. Pure.

use std::time::Duration;

use serde_json::Value;

use crate::api::Database;
use crate::controller::database::observe::child::HeldSecret;
use crate::controller::database_user::wait::UserWait;
use crate::engine::Profile;
use crate::engine::client::Access;
use crate::engine::users::{Mark, WantedUser};

/// What one pass does and what it waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In this order.
    pub actions: Vec<Action>,
    /// What is waited for; `None` when the user is as it is to be.
    pub waiting: Option<UserWait>,
    /// The next reconcile starts at the latest after this time, even without a watch event.
    pub requeue: Option<Duration>,
}

impl Plan {
    /// Nothing is done, and nothing waited for.
    pub(super) fn done() -> Self {
        Self { actions: Vec::new(), waiting: None, requeue: None }
    }

    pub(super) fn act(actions: Vec<Action>, wait: UserWait) -> Self {
        Self { actions, waiting: Some(wait), requeue: None }
    }

    pub(super) fn after(self, requeue: Duration) -> Self {
        Self { requeue: Some(requeue), ..self }
    }
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put our finalizer on the DatabaseUser.
    AddFinalizer,
    /// Create the Secret with a new password.
    CreateSecret(Box<Database>, Box<Profile>),
    /// Change this Secret by this patch.
    WriteSecret(HeldSecret, Value),
    /// Put a next password of this generation beside the one in force.
    PrepareNext(Box<HeldSecret>, i64),
    /// Have the engine make the user what it is to be, with the password of this Secret.
    Put(Access, Box<WantedUser>, Box<HeldSecret>),
    /// Make the next password the one in force by this patch.
    PutNextInForce(HeldSecret, Value),
    /// Have the engine drop the user that has this comment.
    Drop(Access, Mark),
    /// Remove the owner of this Secret by this patch: it stays with the user in the engine.
    LeaveSecret(HeldSecret, Value),
    /// Take our finalizer off the DatabaseUser.
    RemoveFinalizer,
}
