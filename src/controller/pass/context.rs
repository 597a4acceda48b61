//! What every pass is given: clients, caches and settings.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node as CoreNode, PersistentVolume, Pod, Secret};
use k8s_openapi::api::storage::v1::{CSINode, VolumeAttachment};
use kube::{Client, Resource};

use super::pulse::Pulse;
use super::retry::Retry;
use super::settling::Settling;
use crate::api::NodeClass;
use crate::clock::Clock;
use crate::cloud::Cloud;
use crate::cloud::call::Call;
use crate::cloud::inventory::Inventory;
use crate::cloud::limits::{Limits, Wait};
use crate::cloud::offerings::Offerings;
use crate::cloud::turns::{Caller, Priority};
use crate::cluster::kubelet::Kubelets;
use crate::cluster::mirror::Mirror;
use crate::cluster::own_writes::OwnWrites;
use crate::cluster::recent::Recent;
use crate::controller::memory::backup_turns::BackupTurns;
use crate::controller::memory::checks::Checks;
use crate::controller::memory::disk_usage::DiskReadings;
use crate::controller::memory::flushes::Flushes;
use crate::controller::memory::issued_requests::IssuedRequests;
use crate::controller::memory::launch_checks::LaunchChecks;
use crate::controller::memory::references::References;
use crate::controller::memory::repairs::Fleet;
use crate::controller::memory::sends::Sends;
use crate::engine::archiver::Archiver;
use crate::engine::client::Engines;
use crate::metrics::Metrics;
use crate::settings::{Network, Timing};
use crate::term::Term;
use crate::time::later;

/// What every pass is given. Nothing in it is state that a restart would miss: what it remembers is look-up
/// tables and pauses.
pub struct Context {
    /// The API server.
    pub client: Client,
    /// EC2.
    pub cloud: Arc<dyn Cloud>,
    /// The engines of the databases.
    pub engines: Arc<dyn Engines>,
    /// The kubelets of the databases' machines.
    pub kubelets: Arc<dyn Kubelets>,
    /// What EC2 has of ours.
    pub inventory: Arc<Inventory>,
    /// How fast EC2 may be called.
    pub limits: Arc<Limits>,
    /// Which types have no capacity where.
    pub offerings: Arc<Offerings>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Who scrapes the databases' metrics, and where the DNS is.
    pub network: Network,
    /// The durations.
    pub timing: Timing,
    /// This cluster's identity in tags and tokens.
    pub cluster_id: String,
    /// The PriorityClass of databases' pods, if they have one.
    pub priority_class: Option<String>,
    /// Since when this operator leads: the last moment at which an earlier one may have sent a call.
    pub leading_since: Timestamp,
    /// Until when it may write.
    pub term: Arc<Term>,
    /// Pauses after failed passes.
    pub retry: Retry,
    /// Statuses that wait to be written.
    pub settling: Settling,
    /// This process' sends of creating calls.
    pub sends: Sends,
    /// What this process last asked EC2 to change or end.
    pub issued: IssuedRequests,
    /// Which Backup of each Database has its turn.
    pub backup_turns: BackupTurns,
    /// The checks of restored databases.
    pub checks: Checks,
    /// What kubelets last said of the file systems that grow by themselves.
    pub disk_readings: DiskReadings,
    /// The flushes of engines that are about to be stopped.
    pub flushes: Flushes,
    /// When a dry run of each NodeClass was last sent.
    pub launch_checks: LaunchChecks,
    /// Which object an EC2 resource or a UID belongs to.
    pub references: References,
    /// What this process wrote last of the objects that it has copies of.
    pub own_writes: Arc<OwnWrites>,
    /// The core Nodes that are databases' machines, without the list of their images.
    pub core_nodes: Arc<Mirror<CoreNode>>,
    /// Every NodeClass.
    pub node_classes: Arc<Mirror<NodeClass>>,
    /// The PersistentVolumes of our Volumes, and those that were retained.
    pub persistent_volumes: Arc<Mirror<PersistentVolume>>,
    /// Every VolumeAttachment: they know no label to select them by.
    pub attachments: Arc<Mirror<VolumeAttachment>>,
    /// Every CSINode: they know no label either.
    pub csi_nodes: Arc<Mirror<CSINode>>,
    /// The Secrets of databases, as they were last read, or that there was none: they are not watched.
    pub secrets: Recent<Option<Secret>>,
    /// The pods of each machine, as they were last listed: those of others are not watched.
    pub pods: Recent<Vec<Pod>>,
    /// What each engine said of the archive of its log, by the UID of its pod; `None` where it said nothing.
    pub archivers: Arc<Recent<Option<Archiver>>>,
    /// For which objects nothing was torn down around them when that was last read.
    pub standing: Recent<()>,
    /// All Nodes, and the repairs that are underway.
    pub fleet: Fleet,
    /// Whether the controllers go on.
    pub pulse: Pulse,
    /// Counters.
    pub metrics: Arc<Metrics>,
}

impl Context {
    /// Whether this process began to lead only a moment ago: what the status of an object says then was read
    /// by the process before it, as recently as this one would use an answer of its own again.
    pub fn has_just_begun(&self) -> bool {
        self.clock.now() < later(self.leading_since, self.secrets.moment())
    }

    /// Takes what EC2's rate limits allow for a call about this object, or says how long it waits for that.
    pub fn try_take<K: Resource>(&self, call: Call, object: &K, priority: Priority) -> Result<(), Wait> {
        let meta = object.meta();
        let (namespace, object) = (meta.namespace.as_deref(), meta.uid.as_deref());
        let caller =
            Caller { namespace: namespace.unwrap_or_default(), object: object.unwrap_or_default(), priority };
        self.limits.try_take(call, &caller, self.clock.now())
    }
}
