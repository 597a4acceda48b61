//! The status step of the DatabaseUser controller: computes its status and its conditions. Pure.

use jiff::Timestamp;

use super::messages;
use super::observe::Observed;
use super::plan::action::Plan;
use crate::api::ConditionType as Type;
use crate::api::database_user::UserBinding;
use crate::api::{DatabaseUser, DatabaseUserStatus, Reason};
use crate::controller::conditions::{self, Entry};
use crate::controller::database::build;
use crate::controller::database::observe::child::{Child, Credentials};
use crate::controller::pass::acted::{Acted, why};

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
        binding: secret.map(|_| UserBinding { name: observed.user.secret_name() }),
        password_generation: secret.map(build::password_generation),
    }
}

fn entries(plan: &Plan, acted: &Acted<DatabaseUser>) -> Vec<Entry> {
    let waiting = plan.waiting.as_ref().map(|waiting| (waiting.reason(), waiting.message()));
    let is_ready = waiting.is_none() && acted.error.is_none();
    let (reason, message) = why(acted.error.as_ref(), None, waiting);
    let ready = if is_ready {
        Entry::yes(Type::Ready, Reason::AsExpected, messages::READY)
    } else {
        Entry::no(Type::Ready, reason, message)
    };
    let stalled = plan.waiting.as_ref().filter(|waiting| waiting.is_stalled());
    vec![ready, conditions::stalled(stalled.map(|waiting| (waiting.reason(), waiting.message())))]
}
