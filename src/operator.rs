//! Wires the operator together and runs it until it is stopped.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Node as CoreNode};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::runtime::watcher;
use kube::{Api, Client, CustomResourceExt, ResourceExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::api::keys::{DEDICATED_LABEL, VOLUME_UID_LABEL};
use crate::api::{Backup, BackupSchedule, Database, DatabaseUser, Node, NodeClass, Volume};
use crate::clock::{Clock, SystemClock};
use crate::cloud::Cloud;
use crate::cloud::inventory::Inventory;
use crate::cloud::limits::Limits;
use crate::cloud::offerings::Offerings;
use crate::cluster::kubelet::Https;
use crate::cluster::mirror::Mirror;
use crate::cluster::own_writes;
use crate::cluster::recent::Recent;
use crate::controller::copies::{CopiedApis, Copies};
use crate::controller::memory::backup_turns::BackupTurns;
use crate::controller::memory::checks::Checks;
use crate::controller::memory::disk_usage::DiskReadings;
use crate::controller::memory::flushes::Flushes;
use crate::controller::memory::issued_requests::IssuedRequests;
use crate::controller::memory::launch_checks::LaunchChecks;
use crate::controller::memory::references::References;
use crate::controller::memory::repairs::Fleet;
use crate::controller::memory::sends::Sends;
use crate::controller::pass::context::Context;
use crate::controller::pass::pulse::Pulse;
use crate::controller::pass::retry::Retry;
use crate::controller::pass::settling::Settling;
use crate::controller::{
    backup, backup_schedule, database, database_user, disk_usage, node, node_class, unclaimed, volume,
};
use crate::engine::client::PgWire;
use crate::leadership::decision::Lost;
use crate::leadership::scope::Scope;
use crate::leadership::{Held, Leadership, gate};
use crate::metrics::Metrics;
use crate::server::{self, Health};
use crate::settings::Settings;
use crate::term::Term;

/// How long running passes may take to end after the signal to stop.
const GRACE: Duration = Duration::from_secs(20);

/// Why the operator did not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// A setting makes no sense.
    #[error("{0}")]
    Settings(String),
    /// The API server.
    #[error("failed to reach the API server")]
    Kube(#[from] kube::Error),
    /// A resource definition is missing.
    #[error("the resource definition {0} is not installed: apply the files of crds/ first")]
    MissingDefinition(&'static str),
    /// Another operator may act from now on.
    #[error("this operator does not lead any more, and ends: {0}")]
    Lost(#[from] Lost),
    /// The address for metrics and health is taken, or not ours.
    #[error("failed to listen on {address}: choose another address with --listen")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Waits until this operator leads, then runs the controllers until `stop`, and lets running passes end. When
/// its term is lost before, passes end at once, and with an error: a process that leads again has nothing of
/// before.
pub async fn run(
    settings: Settings,
    client: Client,
    cloud: Arc<dyn Cloud>,
    metrics: Arc<Metrics>,
    term: Arc<Term>,
    stop: CancellationToken,
) -> Result<(), OperatorError> {
    check(&settings)?;
    installed(&client).await?;
    let listener = TcpListener::bind(settings.listen)
        .await
        .map_err(|source| OperatorError::Listen { address: settings.listen, source })?;
    let address = listener.local_addr().ok();
    let cluster_id = cluster_id(&settings, &client).await?;
    tracing::info!(cluster_id, settings = %serde_json::to_string(&settings).unwrap_or_default(), ?address,
        version = env!("CARGO_PKG_VERSION"), "freehold starts");
    let scope = Scope::new(settings.namespace.iter().map(String::as_str));
    let (election, ours) = (&settings.election, Arc::clone(&metrics));
    let mut leadership =
        Leadership::new(client.clone(), election, &cluster_id, scope, Arc::clone(&term), ours);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let health = Health {
        metrics: Arc::clone(&metrics),
        acting: Arc::default(),
        standing: leadership.standing(),
        clock: Arc::clone(&clock),
    };
    let acting = Arc::clone(&health.acting);
    let mut endpoints = JoinSet::new();
    endpoints.spawn(serve(listener, health, stop.clone()));
    let taken = tokio::select! {
        () = stop.cancelled() => None,
        _ = endpoints.join_next() => None,
        held = leadership.take() => Some(held),
    };
    if let Some(held) = taken {
        let client = gate::within(Arc::clone(&term), &client);
        let ctx = Arc::new(context(&settings, client, cloud, clock, cluster_id, metrics, term));
        let _ = acting.set(Arc::clone(&ctx));
        let mut tasks = start(&ctx, &settings, &stop);
        tasks.spawn(async move { while endpoints.join_next().await.is_some() {} });
        lead(&leadership, held, tasks, stop).await?;
    }
    tracing::info!("freehold has stopped");
    Ok(())
}

/// Keeps the term while the tasks run, and releases it once all of them have ended; without a term they end
/// at once.
pub async fn lead(
    leadership: &Leadership,
    mut held: Held,
    mut tasks: JoinSet<()>,
    stop: CancellationToken,
) -> Result<(), Lost> {
    let have_ended = tokio::select! {
        lost = leadership.keep(&mut held) => {
            tracing::error!(why = %lost, "lost the Lease: every pass ends here");
            return Err(lost);
        }
        have_ended = run_until(&mut tasks, stop) => have_ended,
    };
    // Passes that go on may still be sending: the Lease ends by itself then.
    if have_ended {
        leadership.release(&held).await;
    }
    Ok(())
}

/// Starts everything but the endpoints for metrics and health. The tasks end with `stop`, or with the value.
pub fn start(ctx: &Arc<Context>, settings: &Settings, stop: &CancellationToken) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    spawn_controllers(&mut tasks, ctx, settings, stop);
    spawn_mirrors(&mut tasks, ctx, stop);
    tasks.spawn(unclaimed::run(Arc::clone(ctx), stop.clone()));
    tasks.spawn(node::lease_monitor::run(Arc::clone(ctx), stop.clone()));
    // The controllers subscribe to the inventory's wakes when they are built: it starts after them.
    tasks.spawn(Arc::clone(&ctx.inventory).run(stop.clone()));
    tasks
}

/// This cluster's identity: the setting, else the UID of the namespace kube-system.
async fn cluster_id(settings: &Settings, client: &Client) -> Result<String, OperatorError> {
    match &settings.cluster_id {
        Some(id) => Ok(id.clone()),
        None => Ok(Api::<Namespace>::all(client.clone()).get("kube-system").await?.uid().unwrap_or_default()),
    }
}

/// What every pass is given from the moment at which this operator leads, with empty caches.
pub fn context(
    settings: &Settings,
    client: Client,
    cloud: Arc<dyn Cloud>,
    clock: Arc<dyn Clock>,
    cluster_id: String,
    metrics: Arc<Metrics>,
    term: Arc<Term>,
) -> Context {
    let timing = settings.timing.scaled(settings.time_scale);
    let limits = Arc::new(Limits::new(settings.ec2_share, settings.time_scale));
    let inventory = Inventory::new(
        Arc::clone(&cloud),
        Arc::clone(&limits),
        Arc::clone(&clock),
        timing.clone(),
        cluster_id.clone(),
    );
    inventory.expect_only(settings.namespace.iter().cloned());
    let authority = settings.kubelets.kubelet_certificate_authority.clone();
    let kubelets = Arc::new(Https::new(
        client.clone(),
        settings.kubelets.kubelet_account.as_ref(),
        authority,
        Arc::clone(&clock),
    ));
    let own_writes = Arc::default();
    Context {
        client: own_writes::noted(Arc::clone(&own_writes), client),
        cloud,
        engines: Arc::new(PgWire),
        kubelets,
        inventory,
        limits,
        offerings: Arc::new(Offerings::new(
            timing.unavailable_offering_ttl,
            timing.quota_retry_interval,
            timing.requeue_interval,
        )),
        leading_since: clock.now(),
        term,
        clock,
        retry: Retry::new(timing.retry_initial_backoff, timing.retry_max_backoff),
        settling: Settling::new(settings.time_scale),
        network: settings.network.clone(),
        timing,
        cluster_id,
        priority_class: settings.database_priority_class.clone(),
        sends: Sends::default(),
        issued: IssuedRequests::default(),
        backup_turns: BackupTurns::default(),
        checks: Checks::default(),
        disk_readings: DiskReadings::default(),
        flushes: Flushes::default(),
        launch_checks: LaunchChecks::default(),
        references: References::default(),
        core_nodes: Arc::new(Mirror::empty(&own_writes, None)),
        node_classes: Arc::new(Mirror::empty(&own_writes, None)),
        persistent_volumes: Arc::new(Mirror::empty(&own_writes, None)),
        attachments: Arc::new(Mirror::empty(&own_writes, None)),
        csi_nodes: Arc::new(Mirror::empty(&own_writes, None)),
        own_writes,
        secrets: Recent::new(settings.time_scale),
        pods: Recent::new(settings.time_scale),
        archivers: Arc::new(Recent::new(settings.time_scale)),
        standing: Recent::new(settings.time_scale),
        fleet: Fleet::of(scopes(settings).len()),
        pulse: Pulse::default(),
        metrics,
    }
}

/// Starts the controllers: those of each namespace, or of all.
fn spawn_controllers(
    tasks: &mut JoinSet<()>,
    ctx: &Arc<Context>,
    settings: &Settings,
    stop: &CancellationToken,
) {
    for scope in scopes(settings) {
        spawn_of(tasks, ctx, scope, settings.concurrency, stop);
    }
    if settings.namespace.is_empty() {
        // A NodeClass is of the whole cluster: an operator of some namespaces does not see what else uses it.
        tasks.spawn(node_class::run(Arc::clone(ctx), settings.concurrency, stop.clone()));
    }
}

/// What is watched: each of the namespaces that were named, or all at once (`None`).
fn scopes(settings: &Settings) -> BTreeSet<Option<&str>> {
    if settings.namespace.is_empty() {
        return BTreeSet::from([None]);
    }
    settings.namespace.iter().map(|namespace| Some(namespace.as_str())).collect()
}

/// Starts the controllers of one namespace, or of all. The API server has no watch of some namespaces.
fn spawn_of(
    tasks: &mut JoinSet<()>,
    ctx: &Arc<Context>,
    scope: Option<&str>,
    concurrency: u16,
    stop: &CancellationToken,
) {
    let client = &ctx.client;
    let copies = Arc::new(Copies::empty(&ctx.own_writes, scope));
    tasks.spawn(node::run(Arc::clone(ctx), Arc::clone(&copies), concurrency, stop.clone()));
    let scope_name = scope.map(str::to_owned);
    let (wakes, filling) = futures::channel::mpsc::unbounded();
    tasks.spawn(disk_usage::run(
        Arc::clone(ctx),
        Arc::clone(&copies),
        scope_name.clone(),
        wakes,
        stop.clone(),
    ));
    tasks.spawn(volume::run(Arc::clone(ctx), Arc::clone(&copies), scope_name, concurrency, stop.clone()));
    tasks.spawn(database::run(Arc::clone(ctx), Arc::clone(&copies), filling, concurrency, stop.clone()));
    tasks.spawn(backup::run(Arc::clone(ctx), &copies, concurrency, stop.clone()));
    tasks.spawn(backup_schedule::run(Arc::clone(ctx), &copies, concurrency, stop.clone()));
    tasks.spawn(database_user::run(Arc::clone(ctx), &copies, concurrency, stop.clone()));
    tasks.spawn(copies.run(CopiedApis::of(client, scope), stop.clone()));
}

/// Starts the caches that the controllers share.
pub fn spawn_mirrors(tasks: &mut JoinSet<()>, ctx: &Arc<Context>, stop: &CancellationToken) {
    let client = || ctx.client.clone();
    let dedicated = watcher::Config::default().labels(&format!("{DEDICATED_LABEL}=true"));
    let core_nodes = Arc::clone(&ctx.core_nodes);
    tasks.spawn(core_nodes.run(Api::all(client()), dedicated, without_images, stop.clone()));
    let ours = watcher::Config::default().labels(VOLUME_UID_LABEL);
    let persistent_volumes = Arc::clone(&ctx.persistent_volumes);
    tasks.spawn(persistent_volumes.run(Api::all(client()), ours, |_| (), stop.clone()));
    let node_classes = Arc::clone(&ctx.node_classes);
    tasks.spawn(node_classes.run(Api::all(client()), watcher::Config::default(), |_| (), stop.clone()));
    let attachments = Arc::clone(&ctx.attachments);
    tasks.spawn(attachments.run(Api::all(client()), watcher::Config::default(), |_| (), stop.clone()));
    let csi_nodes = Arc::clone(&ctx.csi_nodes);
    tasks.spawn(csi_nodes.run(Api::all(client()), watcher::Config::default(), |_| (), stop.clone()));
}

/// A kubelet lists up to 50 images, which are most of what it reports.
fn without_images(core_node: &mut CoreNode) {
    if let Some(status) = &mut core_node.status {
        status.images = None;
    }
}

/// Serves metrics and health until `stop`.
async fn serve(listener: TcpListener, health: Health, stop: CancellationToken) {
    if let Err(error) = server::serve(listener, health, stop).await {
        tracing::error!(%error, "the metrics and health endpoints failed");
    }
}

/// Waits for `stop`, and then for the tasks to end; whether all of them have.
async fn run_until(tasks: &mut JoinSet<()>, stop: CancellationToken) -> bool {
    // A task that ends by itself takes the process down: an operator without one of its tasks is of no use,
    // and Kubernetes starts a whole one.
    tokio::select! {
        () = stop.cancelled() => {}
        _ = tasks.join_next() => stop.cancel(),
    }
    let have_ended =
        tokio::time::timeout(GRACE, async { while tasks.join_next().await.is_some() {} }).await.is_ok();
    if !have_ended {
        tracing::warn!("some passes did not end in time and are abandoned: the next start takes them up");
    }
    have_ended
}

fn check(settings: &Settings) -> Result<(), OperatorError> {
    if !(settings.ec2_share > 0.0 && settings.ec2_share <= 1.0) {
        return Err(OperatorError::Settings(format!(
            "--ec2-share is {}: it must be above 0 and at most 1",
            settings.ec2_share
        )));
    }
    if !(settings.time_scale.is_finite() && settings.time_scale > 0.0) {
        return Err(OperatorError::Settings(format!(
            "--time-scale is {}: it must be above 0",
            settings.time_scale
        )));
    }
    settings.election.fault().map_or(Ok(()), |fault| Err(OperatorError::Settings(fault)))
}

/// Every resource definition is there; the error names the first that is not.
async fn installed(client: &Client) -> Result<(), OperatorError> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let names = [
        Database::crd_name(),
        Node::crd_name(),
        Volume::crd_name(),
        NodeClass::crd_name(),
        Backup::crd_name(),
        BackupSchedule::crd_name(),
        DatabaseUser::crd_name(),
    ];
    for name in names {
        if definitions.get_opt(name).await?.is_none() {
            return Err(OperatorError::MissingDefinition(name));
        }
    }
    Ok(())
}
