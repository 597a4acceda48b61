//! The Database controller: children in order, up and down again. It never talks to EC2.

pub mod act;
mod act_archive;
mod act_flush;
mod act_password;
mod act_reload;
mod act_stateful_set;
mod act_tls;
mod act_upgrade;
pub mod apply;
pub mod build;
pub mod cause;
pub mod child_kind;
pub mod child_state;
pub mod claim_fault;
mod ended;
pub mod growth;
mod history;
pub mod idle;
pub mod in_place;
mod in_place_record;
pub mod inputs;
mod invalid_spec;
pub mod legacy_refusal;
pub mod messages;
mod object_name;
pub mod observe;
mod ordinal;
pub mod password;
pub mod plan;
pub mod pod;
mod quantity;
mod reload_wait;
mod remember;
mod restart_step;
mod restore_wait;
mod rotation_wait;
pub mod status;
pub mod tls_wait;
pub mod unreleasable;
pub mod upgrade;
mod upgrade_wait;
mod wait;
mod wait_reason;
mod written;

use std::sync::Arc;

use futures::channel::mpsc::UnboundedReceiver;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Resource as _, ResourceExt as _};
use tokio_util::sync::CancellationToken;

use self::observe::{Observed, torn_down};
use self::plan::action::Plan;
use super::copies::Copies;
use super::pass::acted::Acted;
use super::pass::close::close;
use super::pass::context::Context;
use super::pass::drive;
use super::pass::enough::is_enough;
use super::pass::result::{Again, PassError};
use super::pass::triggers::Triggers;
use super::pass::woken::{of_changed_child, of_changed_class};
use crate::api::keys::VERIFICATION_LABEL;
use crate::api::{BackupSchedule, Database, DatabaseStatus, EventReason};
use crate::cluster::controller_of;
use crate::cluster::events::{Events, Happened};
use crate::cluster::mirror::Reads;
use crate::engine::archiver::Archiver;
use crate::error_chain::Chain;
use crate::time::sooner;

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "a json! reads best where it is used")]
mod tests;

/// Runs the controller until `stop`. It subscribes to what wakes its objects in this call, so that nothing is
/// missed of copies that are filled from then on. `filling` gives the Databases whose file systems fill up.
pub fn run(
    ctx: Arc<Context>,
    copies: Arc<Copies>,
    filling: UnboundedReceiver<ObjectRef<Database>>,
    concurrency: u16,
    stop: CancellationToken,
) -> impl Future<Output = ()> + Send {
    let triggers = Triggers::of(copies.databases.triggers(), copies.databases.store());
    let store = triggers.store();
    ctx.metrics.shown().conditions(triggers.store(), alerting);
    ctx.metrics.shown().databases(triggers.store());
    let archivers = Arc::clone(&ctx.archivers);
    let lag = move |pod_uid: &str| archivers.last(pod_uid)??.lag();
    ctx.metrics.shown().wal_archives(triggers.store(), lag);
    let triggers = triggers
        .woken_by(of_changed_class(&ctx, store, |it| &it.spec.node_class_name))
        .woken_by(of_changed_child(&copies.nodes))
        .woken_by(of_changed_child(&copies.volumes))
        .woken_by(of_changed_child(&copies.stateful_sets))
        .woken_by(of_changed_child(&copies.config_maps))
        .woken_by(of_changed_child(&copies.services))
        .woken_by(of_changed_child(&copies.service_accounts))
        .woken_by(of_changed_child(&copies.network_policies))
        .woken_by(of_changed_child(&copies.disruption_budgets))
        .woken_by(of_changed_child(&copies.users))
        .woken_by(copies.of_changed_pod())
        .woken_by(filling);
    drive::run(
        "database",
        triggers,
        ctx,
        concurrency,
        stop,
        |_| false,
        move |database, ctx, events| {
            let copies = Arc::clone(&copies);
            async move { pass(&database, &copies, &ctx, &events).await }
        },
    )
}

/// The plan of a first look and the status that follows if nothing is done, if they stand.
pub fn of_first_look(observed: &Observed, now: Timestamp) -> Option<(Plan, DatabaseStatus)> {
    if plan::reload::is_due(observed) {
        return None;
    }
    let plan = plan::plan(observed, now);
    let acted = Acted::new(observed.database.clone());
    let old = observed.database.status.clone().unwrap_or_default();
    let new = status::status(observed, &status::Decided::of(observed, &plan, &acted), &acted, now);
    is_enough(plan.acts(), observed.is_plainly_deleted(), &old, &new).then_some((plan, new))
}

/// What there is, and what is to be done.
struct Look {
    observed: Box<Observed>,
    plan: Plan,
    /// The status of a pass that does nothing, if it is known.
    status: Option<DatabaseStatus>,
}

/// Looks; `None` when the object is gone, or is another of its name.
async fn decide(database: &Database, copies: &Copies, ctx: &Context) -> Result<Option<Look>, PassError> {
    let failed = |error: kube::Error| PassError::Observe(error.into());
    // What ran before it was adopted lacks our labels, which the copies are selected by.
    if database.spec.adopt.is_none() {
        let observed = observe::observe(database, copies, Reads::Cached, ctx).await.map_err(failed)?;
        let Some(mut observed) = observed else { return Ok(None) };
        observed.answers.archiver = archiver(&observed, ctx).await;
        if let Some((plan, status)) = of_first_look(&observed, ctx.clock.now()) {
            return Ok(Some(Look { observed, plan, status: Some(status) }));
        }
    }
    let observed = observe::observe(database, copies, Reads::Live, ctx).await.map_err(failed)?;
    let Some(mut observed) = observed else { return Ok(None) };
    if let Some((access, change)) = plan::reload::question(&observed) {
        let answer = ctx.engines.judge_settings(&access, &change).await;
        observed.answers.settings = Some(answer.map_err(|error| Chain(&error).to_string()));
    }
    observed.answers.archiver = archiver(&observed, ctx).await;
    let mut plan = plan::plan(&observed, ctx.clock.now());
    if observed.database.metadata.deletion_timestamp.is_some() && plan.ends_data() {
        let now = torn_down::now(&observed.names.namespace, ctx).await.map_err(failed)?;
        observed.torn_down = observed.torn_down.or(now);
        plan = plan::plan(&observed, ctx.clock.now());
    }
    Ok(Some(Look { observed, plan, status: None }))
}

/// What the engine says of the archive of its log, at most a minute ago, or that it says nothing; `None`
/// while it is not to be asked.
async fn archiver(observed: &Observed, ctx: &Context) -> Option<Option<Archiver>> {
    let (pod_uid, access) = plan::wal_archive::question(observed)?;
    if let Some(recent) = ctx.archivers.get(&pod_uid) {
        return Some(recent);
    }
    let answer = ctx.engines.archiver(&access).await;
    if let Err(error) = &answer {
        let (database, error) = (observed.database.name_any(), Chain(error));
        tracing::warn!(database, %error, "whether the write-ahead log is archived is not known");
    }
    let answer = answer.ok();
    ctx.archivers.put(&pod_uid, Some(answer));
    Some(answer)
}

/// One pass: observe, plan, act, status.
async fn pass(
    database: &Database,
    copies: &Copies,
    ctx: &Context,
    events: &Events,
) -> Result<Again, PassError> {
    let Some(look) = Box::pin(decide(database, copies, ctx)).await? else {
        return Ok(ctx.timing.resync_interval);
    };
    let Look { observed, plan, status } = look;
    let (acted, answers) = act::act(&plan, observed.database.clone(), &observed.names, ctx, events).await;
    if acted.finished {
        let note = messages::events::DELETED.to_owned();
        events.publish(&acted.object, &Happened::normal(EventReason::DatabaseReleased, note)).await;
        return Ok(ctx.timing.resync_interval);
    }
    let decided = status::Decided { answers, ..status::Decided::of(&observed, &plan, &acted) };
    let new = match status.filter(|_| plan.actions.is_empty()) {
        Some(status) => status,
        None => status::status(&observed, &decided, &acted, ctx.clock.now()),
    };
    let old = acted.object.status.clone().unwrap_or_default();
    let changes = status::changes(&old, &new, &decided);
    let databases = Api::<Database>::namespaced(ctx.client.clone(), &observed.names.namespace);
    let waits = close(&databases, acted, &old, &new, changes, events, ctx).await?;
    remember::remember(&observed.database, &new, &ctx.metrics);
    Ok(sooner(sooner(ctx.timing.resync_interval, plan.requeue), waits))
}

/// The conditions that are shown as metrics: none of a Database that verifies a Backup, whose BackupSchedule
/// says what came of it. No alert is to call a person because a restore takes its time.
fn alerting(database: &Database) -> &[Condition] {
    let is_of_schedule = controller_of(database).is_some_and(|owner| owner.kind == BackupSchedule::kind(&()));
    if is_of_schedule && database.labels().contains_key(VERIFICATION_LABEL) {
        return &[];
    }
    database.conditions()
}
