//! The NodeClass controller: compares what each `NodeClass` names with what EC2 and the cluster have, so that
//! a mistake shows before a machine is launched. It changes nothing in EC2.

pub mod act;
pub mod catalog;
pub mod fault;
pub mod launch_check;
pub mod launches;
pub mod messages;
pub mod observe;
pub mod plan;
mod remember;
pub mod status;
pub mod user_data;
pub mod wait;

use std::sync::Arc;

use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use super::pass::close::close;
use super::pass::context::Context;
use super::pass::drive;
use super::pass::result::{Again, PassError};
use super::pass::triggers::Triggers;
use crate::api::NodeClass;
use crate::cluster::events::Events;
use crate::time::sooner;

#[cfg(test)]
mod tests;

/// Runs the controller until `stop`. It subscribes to what wakes its objects in this call, so that nothing is
/// missed of the copy that is filled from then on.
pub fn run(ctx: Arc<Context>, concurrency: u16, stop: CancellationToken) -> impl Future<Output = ()> + Send {
    let triggers = Triggers::of(ctx.node_classes.triggers(), ctx.node_classes.store());
    ctx.metrics.shown().conditions(triggers.store(), NodeClass::conditions);
    drive::run(
        "node-class",
        triggers,
        ctx,
        concurrency,
        stop,
        |_| false,
        |class, ctx, events| async move { pass(&class, &ctx, &events).await },
    )
}

/// One pass: observe, plan, act, status, remember.
async fn pass(class: &NodeClass, ctx: &Context, events: &Events) -> Result<Again, PassError> {
    let Some(observed) =
        observe::observe(class, ctx).await.map_err(|error| PassError::Observe(error.into()))?
    else {
        remember::forget(&class.uid().unwrap_or_default(), ctx);
        return Ok(ctx.timing.resync_interval);
    };
    let plan = plan::plan(&observed);
    let acted = act::act(&plan, observed.class.clone(), ctx).await;
    // Before the status is written, which may fail.
    remember::remember(&observed, ctx);
    if acted.finished {
        remember::forget(&class.uid().unwrap_or_default(), ctx);
        return Ok(ctx.timing.resync_interval);
    }
    let new = status::status(&observed, &plan, &acted, ctx.clock.now());
    let old = acted.object.status.clone().unwrap_or_default();
    let classes = Api::<NodeClass>::all(ctx.client.clone());
    let waits = close(&classes, acted, &old, &new, status::changes(&old, &new), events, ctx).await?;
    // What a person mends in EC2 or the cluster wakes nothing.
    let is_as_wanted = plan.waiting.is_none() && plan.faults.is_empty() && !observed.launch_check.is_awaited;
    let again = if is_as_wanted { ctx.timing.resync_interval } else { ctx.timing.instance_sync_interval };
    Ok(sooner(again, waits))
}
