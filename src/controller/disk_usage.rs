//! Reads at an interval how much is used of the file systems that grow by themselves, outside of the passes:
//! a kubelet that does not answer holds up no other object.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::channel::mpsc::UnboundedSender;
use futures::{StreamExt, stream};
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::copies::Copies;
use super::database::growth::{Facts, Judgement, judge};
use super::memory::disk_usage::Reading;
use super::pass::context::Context;
use crate::api::database::{AutoGrowState, Unmeasured};
use crate::api::names::{Names, VolumeNames};
use crate::api::{Database, Volume};
use crate::cluster::controller_of;
use crate::cluster::kubelet::{DiskUsage, Failure};

/// How many kubelets are asked at once.
const AT_ONCE: usize = 32;

/// Reads until it is stopped. `wakes` takes the Databases whose readings may change what is planned.
pub async fn run(
    ctx: Arc<Context>,
    copies: Arc<Copies>,
    scope: Option<String>,
    wakes: UnboundedSender<ObjectRef<Database>>,
    stop: CancellationToken,
) {
    let mut rounds = tokio::time::interval(ctx.timing.disk_usage_interval);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = rounds.tick() => {}
        }
        let woken = tokio::select! {
            () = stop.cancelled() => return,
            woken = read_all(&ctx, &copies, scope.as_deref()) => woken,
        };
        // After the whole round: what several databases of a namespace need at once is known to each of them.
        for database in woken {
            // It fails where the controller has ended, and with it this task is about to.
            let _ = wakes.unbounded_send(database);
        }
    }
}

/// One reading of each of this namespace, or of all; which Databases it concerns.
async fn read_all(ctx: &Context, copies: &Copies, scope: Option<&str>) -> Vec<ObjectRef<Database>> {
    let databases: Vec<Arc<Database>> =
        copies.databases.store().state().into_iter().filter(|it| is_watched(it)).collect();
    let uids: HashSet<String> = databases.iter().filter_map(|it| it.uid()).collect();
    ctx.disk_readings.keep(scope, &uids);
    if databases.is_empty() {
        return Vec::new();
    }
    let machines = &machines(copies);
    stream::iter(databases)
        .map(|database| async move { read(&database, machines, ctx, copies).await })
        .buffer_unordered(AT_ONCE)
        .filter_map(std::future::ready)
        .collect()
        .await
}

/// Whether the volume of this Database may grow by itself now.
fn is_watched(database: &Database) -> bool {
    database.spec.storage.auto_grow.is_some() && database.spec.running
}

/// The Kubernetes nodes of each Database, by its UID.
fn machines(copies: &Copies) -> HashMap<String, Vec<String>> {
    let mut machines = HashMap::<String, Vec<String>>::new();
    for node in copies.nodes.store().state() {
        let core_node = node.status.as_ref().and_then(|status| status.core_node_name.clone());
        if let (Some(owner), Some(core_node)) = (controller_of(node.as_ref()), core_node) {
            machines.entry(owner.uid.clone()).or_default().push(core_node);
        }
    }
    machines
}

/// Reads the file system of one database; its Database where that may change what is planned.
async fn read(
    database: &Database,
    machines: &HashMap<String, Vec<String>>,
    ctx: &Context,
    copies: &Copies,
) -> Option<ObjectRef<Database>> {
    let (uid, namespace) = (database.uid()?, database.namespace()?);
    let machines = machines.get(&uid).map(Vec::as_slice).unwrap_or_default();
    let volume = copies.volumes.get(&ObjectRef::new(&Names::of(database).volume).within(&namespace));
    let said = ask(volume.as_ref(), machines, &namespace, ctx).await;
    let usage = said.as_ref().map(|usage| *usage).map_err(|failure| failure.unmeasured);
    let reading = Reading { at: ctx.clock.now(), usage };
    let before = ctx.disk_readings.note(&namespace, &uid, reading.clone());
    let is_new = before.map(|before| before.usage.err()) != Some(usage.err());
    if is_new && let Err(failure) = said {
        tracing::warn!(
            name = database.name_any(),
            namespace,
            why = failure.why,
            "how much of the file system is used is not known"
        );
    }
    let interval = ctx.timing.disk_usage_interval;
    let facts = Facts { database, volume: volume.as_ref(), reading: Some(&reading), interval };
    let is_concerned = is_new || changes(database, judge(&facts, ctx.clock.now()));
    is_concerned.then(|| ObjectRef::from_obj(database))
}

/// Whether this is to be acted on, or is not what the status says.
fn changes(database: &Database, judgement: Judgement) -> bool {
    let shown = database.status.as_ref().and_then(|status| status.auto_grow.as_ref()).map(|it| it.state);
    let is_shown_enough = shown == Some(AutoGrowState::Watching);
    matches!(judgement, Judgement::Grow(_)) || (judgement == Judgement::Enough) != is_shown_enough
}

/// The file system of the Volume's claim, of whichever machine has it mounted.
async fn ask(
    volume: Option<&Volume>,
    machines: &[String],
    namespace: &str,
    ctx: &Context,
) -> Result<DiskUsage, Failure> {
    let not_mounted = |why: &str| Failure { unmeasured: Unmeasured::NotMounted, why: why.to_owned() };
    let claim = VolumeNames::of(volume.ok_or_else(|| not_mounted("it has no Volume yet"))?).claim;
    let mut failure = not_mounted("it has no machine that has joined");
    for name in machines {
        let Some(core_node) = ctx.core_nodes.get(&ObjectRef::new(name)) else { continue };
        match ctx.kubelets.disk_usage(&core_node, namespace, &claim).await {
            Ok(usage) => return Ok(usage),
            // What one that answers does not have mounted may be on one that does not answer.
            Err(next) if failure.unmeasured == Unmeasured::NotMounted => failure = next,
            Err(_) => {}
        }
    }
    Err(failure)
}
