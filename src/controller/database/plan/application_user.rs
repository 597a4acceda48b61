//! The plan of the user that the application connects as: its DatabaseUser, what is awaited of it, and what
//! the status says. Pure.

use kube::ResourceExt;
use serde_json::json;

use super::action::{Action, Plan};
use super::facts::{slowly, state_of_user};
use super::leaving::is_leaving;
use crate::api::DatabaseUser;
use crate::api::database_user::Binding;
use crate::api::names::Names;
use crate::cluster::finalizer;
use crate::controller::database::build;
use crate::controller::database::child_kind::ChildKind;
use crate::controller::database::child_state::ChildState;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::Child;
use crate::controller::database::wait::DatabaseWait;

/// The plan, and last what the DatabaseUser needs: a refusal of it holds nothing else up. The plan waits for
/// the user only where it waits for nothing else.
pub(super) fn told(mut plan: Plan, observed: &Observed) -> Plan {
    let is_kept = finalizer::has(&observed.database) && !is_leaving(observed);
    if !is_kept || observed.legacy.is_some() {
        return plan;
    }
    plan.actions.extend(kept(observed));
    if plan.waiting.is_none() {
        plan.waiting = awaited(observed);
    }
    match plan.waiting {
        // One of another owner is not watched.
        Some(DatabaseWait::ApplicationUser { state: None, .. }) if plan.requeue.is_none() => {
            plan.requeue(slowly(observed))
        }
        _ => plan,
    }
}

/// Creates the DatabaseUser, keeps its role, and deletes the one that is not requested any more: admission
/// permits that only before its Secret is the binding.
fn kept(observed: &Observed) -> Option<Action> {
    let live = observed.application_user.ours();
    let Some(wanted) = &observed.database.spec.application_user else {
        return Action::delete(ChildKind::DatabaseUser, live.map(|it| &it.metadata));
    };
    match &observed.application_user {
        Child::Absent => {
            let user = build::application_user(&observed.names, wanted);
            Some(Action::CreateApplicationUser(Box::new(user)))
        }
        Child::Ours(live) if live.spec.username != wanted.username => {
            Action::delete(ChildKind::DatabaseUser, Some(&live.metadata))
        }
        Child::Ours(live) if live.spec.role != wanted.role => {
            let uid = live.uid().unwrap_or_default();
            Some(Action::UpdateApplicationUser(uid, json!({"role": wanted.role})))
        }
        Child::Ours(_) | Child::Foreign => None,
    }
}

/// What is awaited: that the engine lets the user in for the first time, and has given it its role. Whatever
/// else becomes of it later is its DatabaseUser's to say, and the database serves.
fn awaited(observed: &Observed) -> Option<DatabaseWait> {
    let wanted = observed.database.spec.application_user.as_ref()?;
    let wait = |state| DatabaseWait::ApplicationUser { user: observed.names.application_user.clone(), state };
    let user = match &observed.application_user {
        Child::Ours(user) if user.spec.username == wanted.username => user,
        Child::Ours(_) => return Some(wait(Some(ChildState::Outdated))),
        Child::Absent => return Some(wait(Some(ChildState::New))),
        Child::Foreign => return Some(wait(None)),
    };
    let bound = observed.database.status.as_ref().and_then(|status| status.binding.as_ref());
    let has_role = user.status.as_ref().and_then(|status| status.role) == Some(wanted.role);
    if bound == Some(&of_application(&observed.names)) && has_role {
        return None;
    }
    let state = state_of_user(user).or_else(|| (!has_role).then_some(ChildState::Outdated));
    state.map(|state| wait(Some(state)))
}

/// Whether the plan waits for the user alone, and only what is done for the user can have failed.
pub(in crate::controller::database) fn is_awaited_alone(plan: &Plan, has_failed: bool) -> bool {
    let is_for_user = |action: &Action| {
        matches!(
            action,
            Action::CreateApplicationUser(_)
                | Action::UpdateApplicationUser(..)
                | Action::DeleteChild(ChildKind::DatabaseUser, ..)
        )
    };
    let is_awaited = matches!(plan.waiting, Some(DatabaseWait::ApplicationUser { .. }));
    is_awaited && (!has_failed || plan.actions.iter().all(is_for_user))
}

/// What is awaited of a DatabaseUser that ends.
pub(super) fn ending(user: &DatabaseUser) -> DatabaseWait {
    let state = state_of_user(user).unwrap_or(ChildState::Outdated);
    DatabaseWait::ApplicationUser { user: user.name_any(), state: Some(state) }
}

/// The Secret that an application connects with: the one before until the engine lets the user in.
pub(in crate::controller::database) fn binding(
    observed: &Observed,
    before: Option<Binding>,
    administrator: Option<&String>,
) -> Option<Binding> {
    if observed.database.spec.application_user.is_none() {
        return administrator.map(|name| Binding { name: name.clone() });
    }
    if awaited(observed).is_none() { Some(of_application(&observed.names)) } else { before }
}

fn of_application(names: &Names) -> Binding {
    Binding { name: DatabaseUser::secret_of(&names.application_user) }
}
