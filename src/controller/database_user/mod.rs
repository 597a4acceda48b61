//! The DatabaseUser controller: keeps a user of a Database's engine, and the Secret with its password.

pub mod act;
pub mod build;
pub mod messages;
pub mod observe;
pub mod plan;
pub mod status;
pub mod wait;

use std::sync::Arc;

use futures::{Stream, StreamExt, stream};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use super::copies::{Copies, database_of_user};
use super::pass::close::close;
use super::pass::context::Context;
use super::pass::drive;
use super::pass::result::{Again, PassError};
use super::pass::triggers::Triggers;
use crate::api::DatabaseUser;
use crate::cluster::events::Events;
use crate::time::sooner;

#[cfg(test)]
mod tests;

/// Runs the controller until `stop`. It subscribes to the Databases in this call, so that nothing is missed
/// of copies that are filled from then on.
pub fn run(
    ctx: Arc<Context>,
    copies: &Copies,
    concurrency: u16,
    stop: CancellationToken,
) -> impl Future<Output = ()> + Send + use<> {
    let of_databases = of_databases(copies);
    let triggers = Triggers::of(copies.users.triggers(), copies.users.store());
    ctx.metrics.shown().conditions(triggers.store(), DatabaseUser::conditions);
    let triggers = triggers.woken_by(of_databases);
    drive::run(
        "database-user",
        triggers,
        ctx,
        concurrency,
        stop,
        |_| false,
        |user, ctx, events| async move { pass(&user, &ctx, &events).await },
    )
}

/// The DatabaseUsers of changed Databases.
fn of_databases(copies: &Copies) -> impl Stream<Item = ObjectRef<DatabaseUser>> + Send + use<> {
    let users = Arc::clone(&copies.users);
    copies.databases.changes().flat_map(move |database| {
        let namespace = database.namespace().unwrap_or_default();
        stream::iter(users.keys_of(&database_of_user(&namespace, &database.name_any())))
    })
}

/// One pass: observe, plan, act, status.
async fn pass(user: &DatabaseUser, ctx: &Context, events: &Events) -> Result<Again, PassError> {
    let observed = observe::observe(user, ctx).await.map_err(|error| PassError::Observe(error.into()))?;
    let Some(observed) = observed else { return Ok(ctx.timing.resync_interval) };
    let plan = plan::plan(&observed);
    let acted = act::act(&plan, observed.user.clone(), ctx, events).await;
    if acted.finished {
        return Ok(ctx.timing.resync_interval);
    }
    let new = status::status(&observed, &plan, &acted, ctx.clock.now());
    let old = acted.object.status.clone().unwrap_or_default();
    let users =
        Api::<DatabaseUser>::namespaced(ctx.client.clone(), &acted.object.namespace().unwrap_or_default());
    let waits = close(&users, acted, &old, &new, [], events, ctx).await?;
    Ok(sooner(sooner(ctx.timing.resync_interval, plan.requeue), waits))
}
