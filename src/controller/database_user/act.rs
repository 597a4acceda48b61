//! The act step of the DatabaseUser controller: carries the plan out. Only writes; it makes no choice. No
//! password leaves the Secret and the connection to the engine.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::Value;

use super::plan::action::{Action, Plan};
use super::{build, messages};
use crate::api::{DatabaseUser, EventReason};
use crate::cluster::events::{Events, Happened};
use crate::cluster::finalizer;
use crate::controller::database::build as of_database;
use crate::controller::database::password::Password;
use crate::controller::pass::acted::{ActError, Acted};
use crate::controller::pass::context::Context;
use crate::engine::client::Access;
use crate::engine::users::WantedUser;

/// Carries every action out in order, up to the first that fails.
pub async fn act(plan: &Plan, user: DatabaseUser, ctx: &Context, events: &Events) -> Acted<DatabaseUser> {
    let mut acted = Acted::new(user);
    for action in &plan.actions {
        let result = one(action, &mut acted, ctx, events).await;
        if !acted.goes_on(result) {
            break;
        }
    }
    acted
}

async fn one(
    action: &Action,
    acted: &mut Acted<DatabaseUser>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    ctx.term.check()?;
    let namespace = acted.object.namespace().unwrap_or_default();
    let users = Api::<DatabaseUser>::namespaced(ctx.client.clone(), &namespace);
    match action {
        Action::AddFinalizer => acted.object = finalizer::add(&users, &acted.object).await?,
        Action::CreateSecret(database, profile) => {
            let password = Password::generate().map_err(ActError::Randomness)?;
            let secret = build::secret(&acted.object, database, profile, &password);
            secrets(&namespace, ctx).create(&PostParams::default(), &secret).await?;
        }
        Action::WriteSecret(secret, patch) | Action::LeaveSecret(secret, patch) => {
            change(&secret.0, patch, &namespace, ctx).await?;
        }
        Action::PrepareNext(secret, generation) => {
            let password = Password::generate().map_err(ActError::Randomness)?;
            let patch = of_database::with_next(&secret.0, &password, *generation);
            change(&secret.0, &patch, &namespace, ctx).await?;
        }
        Action::Put(access, wanted, secret) => put(access, wanted, &secret.0, acted, ctx, events).await?,
        Action::PutNextInForce(secret, patch) => {
            let changed = change(&secret.0, patch, &namespace, ctx).await?;
            let generation = of_database::password_generation(&changed);
            let note = messages::events::rotated(&changed.name_any(), generation);
            events.publish(&acted.object, &Happened::normal(EventReason::PasswordRotated, note)).await;
        }
        Action::Drop(access, mark) => {
            let username = &acted.object.spec.username;
            ctx.engines.drop_user(access, username, mark).await?;
            let note = messages::events::dropped(username);
            events.publish(&acted.object, &Happened::normal(EventReason::UserDropped, note)).await;
        }
        Action::RemoveFinalizer => {
            finalizer::remove(&users, &acted.object).await?;
            acted.finished = true;
        }
    }
    Ok(())
}

async fn put(
    access: &Access,
    wanted: &WantedUser,
    secret: &Secret,
    acted: &Acted<DatabaseUser>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    let password = of_database::next_password(secret).or_else(|| of_database::value(secret, "password"));
    ctx.engines.put_user(access, wanted, &password.unwrap_or_default()).await?;
    let rights = &wanted.mark.rights;
    let (name, role) = (&wanted.username, rights.role.into());
    let databases: Vec<&str> = rights.databases.iter().map(String::as_str).collect();
    let happened = match &wanted.before {
        None => {
            let note = messages::events::created(name, role, &databases);
            Happened::normal(EventReason::UserCreated, note)
        }
        Some(before) if before.rights != *rights => {
            let note = messages::events::changed(name, role, &databases);
            Happened::normal(EventReason::UserChanged, note)
        }
        // The event of a password follows it into the Secret.
        Some(_) => return Ok(()),
    };
    events.publish(&acted.object, &happened).await;
    Ok(())
}

fn secrets(namespace: &str, ctx: &Context) -> Api<Secret> {
    Api::namespaced(ctx.client.clone(), namespace)
}

/// Changes the Secret, if it is still as it was read.
async fn change(
    secret: &Secret,
    patch: &Value,
    namespace: &str,
    ctx: &Context,
) -> Result<Secret, kube::Error> {
    secrets(namespace, ctx).patch(&secret.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await
}
