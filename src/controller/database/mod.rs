//! The Database controller: children in order, up and down again. It never talks to EC2.

mod access;
pub mod act;
pub mod build;
mod invalid;
mod leaving;
pub mod observe;
pub mod password;
pub mod plan;
mod pod;
pub mod status;
mod stopping;
mod workload;

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "a json! reads best where it is used")]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::core::NamespaceResourceScope;
use kube::runtime::controller::Controller;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::driver::{self, Again, PassError, sooner, write_status};
use crate::api::{Database, Node, Volume, names};
use crate::cluster::events::{Events, Happened};

/// Runs the controller until `stop`, on the Databases of one namespace or of all.
pub async fn run(ctx: Arc<Context>, namespace: Option<String>, concurrency: u16, stop: CancellationToken) {
    // Every object of ours carries it; others need not be watched.
    let ours = || watcher::Config::default().labels("app.kubernetes.io/managed-by=freehold");
    let namespace = namespace.as_deref();
    let controller = Controller::new(api::<Database>(&ctx, namespace), watcher::Config::default())
        .owns(api::<Node>(&ctx, namespace), watcher::Config::default())
        .owns(api::<Volume>(&ctx, namespace), watcher::Config::default())
        .owns(api::<StatefulSet>(&ctx, namespace), ours())
        .owns(api::<Service>(&ctx, namespace), ours())
        .owns(api::<ConfigMap>(&ctx, namespace), ours())
        .owns(api::<NetworkPolicy>(&ctx, namespace), ours())
        .watches(api::<Pod>(&ctx, namespace), ours(), |pod| {
            let name = pod.labels().get(names::DATABASE_NAME_LABEL)?;
            Some(ObjectRef::new(name).within(&pod.namespace()?))
        });
    driver::run(
        "database",
        controller,
        ctx,
        concurrency,
        stop,
        |database, ctx, events| async move { pass(&database, &ctx, &events).await },
    )
    .await;
}

fn api<K>(ctx: &Context, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned,
{
    match namespace {
        Some(namespace) => Api::namespaced(ctx.client.clone(), namespace),
        None => Api::all(ctx.client.clone()),
    }
}

/// One pass: observe, plan, act, status.
async fn pass(database: &Database, ctx: &Context, events: &Events) -> Result<Again, PassError> {
    let Some(observed) = observe::observe(database, ctx).await.map_err(|error| PassError::Observe(error.into()))? else {
        return Ok(ctx.timing.resync);
    };
    let plan = plan::plan(&observed, ctx.clock.now());
    let acted = act::act(&plan, observed.database.clone(), &observed.names, ctx, events).await;
    if acted.finished {
        events.publish(&acted.database, &Happened::normal("DatabaseReleased", "the house is down".to_owned())).await;
        return Ok(ctx.timing.resync);
    }
    if acted.error.as_ref().is_some_and(act::Failed::is_conflict) {
        return Err(PassError::Conflict);
    }
    close(&observed, &plan, acted, ctx, events).await?;
    Ok(sooner(ctx.timing.resync, plan.again))
}

/// The one closing status patch; reported even when acting failed.
async fn close(
    observed: &observe::Observed,
    plan: &plan::Plan,
    acted: act::Acted,
    ctx: &Context,
    events: &Events,
) -> Result<(), PassError> {
    let new = status::status(observed, plan, &acted, ctx.clock.now());
    let old = acted.database.status.clone().unwrap_or_default();
    let databases = Api::<Database>::namespaced(ctx.client.clone(), &observed.names.namespace);
    write_status(&databases, &acted.database, &old, &new).await?;
    for happened in status::changes(&old.conditions, &new.conditions) {
        events.publish(&acted.database, &happened).await;
    }
    match acted.error {
        Some(error) => Err(PassError::Act(error.into())),
        None => Ok(()),
    }
}
