//! Reads at an interval how much is used of the file systems that grow by themselves, outside of the passes:
//! a kubelet that does not answer holds up no other object.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::{StreamExt, stream};
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::copies::Copies;
use super::memory::disk_usage::Reading;
use super::pass::context::Context;
use crate::api::Database;
use crate::api::database::Unmeasured;
use crate::api::names::{Names, VolumeNames};
use crate::cluster::controller_of;
use crate::cluster::kubelet::DiskUsage;

/// How many kubelets are asked at once.
const AT_ONCE: usize = 32;

/// Reads until it is stopped.
pub async fn run(ctx: Arc<Context>, copies: Arc<Copies>, scope: Option<String>, stop: CancellationToken) {
    let mut rounds = tokio::time::interval(ctx.timing.disk_usage_interval);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = rounds.tick() => {}
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = read_all(&ctx, &copies, scope.as_deref()) => {}
        }
    }
}

/// One reading of each of this namespace, or of all.
async fn read_all(ctx: &Context, copies: &Copies, scope: Option<&str>) {
    let databases: Vec<Arc<Database>> =
        copies.databases.store().state().into_iter().filter(|it| is_watched(it)).collect();
    let uids: HashSet<String> = databases.iter().filter_map(|it| it.uid()).collect();
    ctx.disk_readings.keep(scope, &uids);
    if databases.is_empty() {
        return;
    }
    let machines = machines(copies);
    stream::iter(&databases)
        .for_each_concurrent(AT_ONCE, |database| async {
            let uid = database.uid().unwrap_or_default();
            let machines = machines.get(&uid).map(Vec::as_slice).unwrap_or_default();
            read(database, &uid, machines, ctx, copies).await;
        })
        .await;
}

/// Whether the volume of this Database may grow by itself now.
fn is_watched(database: &Database) -> bool {
    let spec = &database.spec;
    spec.storage.auto_grow.is_some() && spec.running && database.metadata.deletion_timestamp.is_none()
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

/// Reads the file system of one database, and wakes its Database where that may change what is planned.
async fn read(database: &Database, uid: &str, machines: &[String], ctx: &Context, copies: &Copies) {
    let at = ctx.clock.now();
    let usage = ask(database, machines, ctx, copies).await;
    let namespace = database.namespace().unwrap_or_default();
    let before = ctx.disk_readings.note(&namespace, uid, Reading { at, usage });
    let trouble = usage.err();
    let is_new = before.map(|before| before.usage.err()) != Some(trouble);
    let threshold = database.spec.storage.auto_grow.as_ref().map(|policy| policy.threshold_percent);
    let is_full = usage.is_ok_and(|it| threshold.is_some_and(|most| it.used_percent() >= percent(most)));
    if is_new && let Some(trouble) = trouble {
        tracing::warn!(
            name = database.name_any(),
            namespace,
            ?trouble,
            "how much of the file system is used is not known"
        );
    }
    if is_new || is_full {
        ctx.disk_readings.wake(&ObjectRef::from_obj(database));
    }
}

fn percent(most: i32) -> u64 {
    u64::try_from(most).unwrap_or_default()
}

/// The file system of the claim, of whichever machine has it mounted.
async fn ask(
    database: &Database,
    machines: &[String],
    ctx: &Context,
    copies: &Copies,
) -> Result<DiskUsage, Unmeasured> {
    let (names, namespace) = (Names::of(database), database.namespace().unwrap_or_default());
    let volume = copies.volumes.get(&ObjectRef::new(&names.volume).within(&namespace));
    let claim = VolumeNames::of(&volume.ok_or(Unmeasured::NotMounted)?).claim;
    let mut usage = Err(Unmeasured::NotMounted);
    for name in machines {
        let Some(core_node) = ctx.core_nodes.get(&ObjectRef::new(name)) else { continue };
        usage = ctx.kubelets.disk_usage(&core_node, &namespace, &claim).await;
        if usage.is_ok() {
            break;
        }
    }
    usage
}
