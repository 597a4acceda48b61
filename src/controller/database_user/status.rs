//! The status step of the DatabaseUser controller: computes its status and its conditions. Pure.

use jiff::Timestamp;

use super::messages;
use super::observe::Observed;
use super::plan::action::Plan;
use super::wait::UserWait;
use crate::api::database_user::Binding;
use crate::api::{DatabaseUser, DatabaseUserStatus};
use crate::controller::conditions::{self, Entry};
use crate::controller::database::build;
use crate::controller::database::observe::child::{Child, Credentials};
use crate::controller::pass::acted::{Acted, ready_and_stalled};

/// The status to write.
pub fn status(
    observed: &Observed,
    plan: &Plan,
    acted: &Acted<DatabaseUser>,
    now: Timestamp,
) -> DatabaseUserStatus {
    let old = acted.object.status.clone().unwrap_or_default();
    let generation = observed.user.metadata.generation;
    let secret = match &observed.secret {
        Credentials::Read(Child::Ours(secret)) => Some(&secret.0),
        Credentials::Read(Child::Absent | Child::Foreign) | Credentials::Unreadable(_) => None,
    };
    DatabaseUserStatus {
        observed_generation: generation,
        conditions: conditions::merge(&old.conditions, &entries(plan, acted), generation, now),
        binding: secret.map(|_| Binding { name: observed.user.secret_name() }),
        role: plan.waiting.is_none().then_some(observed.user.spec.role).or(old.role),
        password_generation: secret.map(build::password_generation),
    }
}

fn entries(plan: &Plan, acted: &Acted<DatabaseUser>) -> Vec<Entry> {
    let waiting = plan.waiting.as_ref();
    let why = waiting.map(|waiting| (waiting.reason(), waiting.message()));
    let is_stalled = waiting.is_some_and(UserWait::is_stalled);
    ready_and_stalled(acted.error.as_ref(), why, is_stalled, messages::READY)
}
