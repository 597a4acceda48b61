//! The plan step of the DatabaseUser controller: what the Secret and the engine are given next. Pure.
//!
//! The Secret has a password before the engine is given it, and the comment of the user in the engine says
//! what the user was made from, its password included: so each step is found again, also in restored data.

pub mod action;

use kube::ResourceExt;

use self::action::{Action, Plan};
use super::build;
use super::observe::{EngineView, Observed, has_users, tried_in};
use super::wait::UserWait;
use crate::api::database_user::UserDeletionPolicy;
use crate::api::{Database, DatabaseUser};
use crate::cluster::{controller_of_kind, finalizer};
use crate::controller::database::build as of_database;
use crate::controller::database::observe::child::{Child, Credentials, HeldSecret};
use crate::controller::engine_access::EnginePod;
use crate::engine::client::Access;
use crate::engine::users::{Login, ShownUser, WantedUser};
use crate::engine::{self, Profile};

/// Decides what to do about a DatabaseUser.
pub fn plan(observed: &Observed) -> Plan {
    let plan = match &observed.user.metadata.deletion_timestamp {
        Some(_) => deletion(observed),
        None => kept(observed),
    };
    let recheck = observed.timing.requeue_interval;
    match &plan.waiting {
        Some(_) if !plan.actions.is_empty() => plan.after(recheck / 5),
        // Nothing but time shows what an engine says.
        Some(UserWait::EngineUnreadable(_)) => plan.after(recheck),
        // What a person changes, or what wakes the DatabaseUser by itself.
        Some(_) => plan.after(recheck.saturating_mul(12)),
        None => plan,
    }
}

fn kept(observed: &Observed) -> Plan {
    let spec = &observed.user.spec;
    let wait = |wait: UserWait| Plan::act(Vec::new(), wait);
    let Some(database) = &observed.database else {
        return wait(UserWait::NoDatabase(spec.database_name.clone()));
    };
    if database.metadata.deletion_timestamp.is_some() && !is_ready(observed) {
        return wait(UserWait::DatabaseDeleting(database.name_any()));
    }
    if !has_users(database) {
        return wait(UserWait::NoUsers(database.spec.engine.kind.as_str()));
    }
    let Ok(profile) = engine::profile(&database.spec.engine, &database.spec.config) else {
        return wait(UserWait::EngineNotReady(database.name_any()));
    };
    let mut actions = Vec::new();
    if !finalizer::has(&observed.user) {
        actions.push(Action::AddFinalizer);
    }
    let secret = match secret(observed, database, &profile, &mut actions) {
        Ok(secret) => secret,
        Err(wait) => return Plan::act(actions, wait),
    };
    let (given, waiting) = match given(observed, database, &profile, secret) {
        Ok(given) => given,
        Err(wait) => return Plan::act(actions, wait),
    };
    actions.extend(given);
    if actions.is_empty() && waiting.is_none() {
        return Plan::done();
    }
    Plan::act(actions, waiting.unwrap_or_else(|| UserWait::Giving(spec.username.clone())))
}

fn is_ready(observed: &Observed) -> bool {
    matches!(observed.pod, EnginePod::Running { is_ready: true, .. })
}

/// The Secret, if it is as it is to be and has the password that the engine is to have; else it is made so.
fn secret<'a>(
    observed: &'a Observed,
    database: &Database,
    profile: &Profile,
    actions: &mut Vec<Action>,
) -> Result<&'a HeldSecret, UserWait> {
    let user = &observed.user;
    let name = user.secret_name();
    let secret = match &observed.secret {
        Credentials::Unreadable(why) => return Err(UserWait::SecretUnreadable(name, why.clone())),
        Credentials::Read(Child::Foreign) => return Err(UserWait::SecretTaken(name)),
        Credentials::Read(Child::Absent) => {
            actions.push(Action::CreateSecret(Box::new(database.clone()), Box::new(profile.clone())));
            return Err(UserWait::WritingSecret);
        }
        Credentials::Read(Child::Ours(secret)) => &**secret,
    };
    if let Err(why) = of_database::check_credentials(&secret.0) {
        return Err(UserWait::SecretDamaged(name, why.to_string()));
    }
    let generation = user.spec.password_generation;
    let has_next = of_database::next_password(&secret.0).is_some();
    if generation > of_database::password_generation(&secret.0) && !has_next {
        actions.push(Action::PrepareNext(Box::new(secret.clone()), generation));
        return Err(UserWait::Rotating);
    }
    Ok(secret)
}

/// What the engine is given, and the Secret then; nothing where they have everything. What is waited for
/// besides.
fn given(
    observed: &Observed,
    database: &Database,
    profile: &Profile,
    secret: &HeldSecret,
) -> Result<(Vec<Action>, Option<UserWait>), UserWait> {
    let user = &observed.user;
    let (access, shown) = asked(observed, database)?;
    refused(observed, shown)?;
    let mark = build::mark(user, &secret.0, &shown.missing);
    let before = shown.role.as_ref().and_then(|role| role.mark.clone());
    let is_as_made = before.as_ref() == Some(&mark) && shown.lacking.is_empty();
    let mut actions = Vec::new();
    let next = build::with_next_in_force(user, database, profile, &secret.0);
    let next = next.map(|patch| Action::PutNextInForce(secret.clone(), patch));
    // Whatever else is to be done: clients read a password that the engine does not take any more.
    if let Some(action) =
        next.clone().filter(|_| before.as_ref().is_some_and(|it| it.password == mark.password))
    {
        return Ok((vec![action], Some(UserWait::Rotating)));
    }
    if !is_as_made || observed.login == Some(Login::WrongPassword) {
        let wanted = WantedUser {
            username: user.spec.username.clone(),
            mark,
            to_grant: shown.lacking.clone(),
            tried_in: tried_in(user, shown).to_owned(),
            before,
        };
        actions.push(Action::Put(access.clone(), Box::new(wanted), Box::new(secret.clone())));
    }
    if let Some(action) = next {
        actions.push(action);
        return Ok((actions, Some(UserWait::Rotating)));
    }
    // Clients are led to a database once the user may be there.
    let is_first = user.databases().first().is_some_and(|first| *first == tried_in(user, shown));
    if let Some(patch) = build::rewritten(user, database, profile, &secret.0).filter(|_| is_first) {
        actions.push(Action::WriteSecret(secret.clone(), patch));
        return Ok((actions, Some(UserWait::WritingSecret)));
    }
    let waiting = match &observed.login {
        _ if !shown.missing.is_empty() => Some(UserWait::NoSuchDatabases(shown.missing.clone())),
        Some(Login::Refused(why)) => Some(UserWait::NotLetIn(user.spec.username.clone(), why.clone())),
        Some(Login::In | Login::WrongPassword) | None => None,
    };
    Ok((actions, waiting))
}

/// What the engine says, if it could be asked.
fn asked<'a>(observed: &'a Observed, database: &Database) -> Result<(&'a Access, &'a ShownUser), UserWait> {
    match &observed.engine {
        EngineView::NotRead => Err(UserWait::EngineNotReady(database.name_any())),
        EngineView::Unreadable(why) => Err(UserWait::EngineUnreadable(why.clone())),
        EngineView::Shown(access, shown) => Ok((access, shown)),
    }
}

/// A role that is not this DatabaseUser's is not touched.
fn refused(observed: &Observed, shown: &ShownUser) -> Result<(), UserWait> {
    let username = || observed.user.spec.username.clone();
    let Some(role) = &shown.role else { return Ok(()) };
    if role.mark.is_none() {
        return Err(UserWait::Foreign(username()));
    }
    if let Some(by) = &observed.rival {
        return Err(UserWait::Taken { username: username(), by: by.clone() });
    }
    if role.is_privileged {
        return Err(UserWait::Privileged(username()));
    }
    Ok(())
}

/// The user goes with the DatabaseUser, unless the policy keeps it; with its Database it goes or stays.
fn deletion(observed: &Observed) -> Plan {
    let user = &observed.user;
    let ends = || Plan { actions: vec![Action::RemoveFinalizer], ..Plan::done() };
    if user.spec.deletion_policy == UserDeletionPolicy::Retain {
        let mut plan = ends();
        match &observed.secret {
            // It would go with the DatabaseUser.
            Credentials::Unreadable(why) => {
                let wait = UserWait::SecretUnreadable(user.secret_name(), why.clone());
                return Plan::act(Vec::new(), UserWait::Kept(Box::new(wait)));
            }
            Credentials::Read(Child::Ours(secret)) => {
                let patch = build::without_owner(&secret.0);
                plan.actions.insert(0, Action::LeaveSecret((**secret).clone(), patch));
            }
            Credentials::Read(Child::Absent | Child::Foreign) => {}
        }
        return plan;
    }
    let is_its = |it: &&Database| has_users(it) && !is_of_former(user, it);
    let Some(database) = observed.database.as_ref().filter(is_its) else { return ends() };
    if database.metadata.deletion_timestamp.is_some() && !is_ready(observed) {
        return ends();
    }
    let (access, shown) = match asked(observed, database) {
        Ok(asked) => asked,
        Err(wait) => return Plan::act(Vec::new(), UserWait::Kept(Box::new(wait))),
    };
    let mark = shown.role.as_ref().and_then(|role| role.mark.clone());
    let Some(mark) = mark.filter(|mark| Some(&mark.uid) == user.metadata.uid.as_ref()) else { return ends() };
    let actions = vec![Action::Drop(access.clone(), mark), Action::RemoveFinalizer];
    Plan::act(actions, UserWait::Dropping(user.spec.username.clone()))
}

/// Whether this is the user of the application of a Database that is gone, and whose name this one has.
fn is_of_former(user: &DatabaseUser, database: &Database) -> bool {
    let owner = controller_of_kind::<Database, _>(user);
    owner.is_some_and(|owner| {
        owner.name == user.spec.database_name && Some(&owner.uid) != database.metadata.uid.as_ref()
    })
}
