//! Plan, Database: what is, what should be, what to do about it. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::ResourceExt;
use serde_json::Value;

use super::machines::{self, is_initialized, is_lost, misplaced};
use super::observe::{Child, HeldSecret, Observed, next_ordinal};
use super::pod::{EngineState, attaching, engine_state};
use super::{access, adopting, build, invalid, leaving, pod, replacing, stopping, workload};
use crate::api::database::Replacement;
use crate::api::{ConditionType, Node, Reason, Volume};
use crate::cluster::{finalizer, status::difference};
use crate::controller::conditions;
use crate::controller::safety;
use crate::controller::waiting::Waiting;
use crate::engine::Profile;

/// What one pass does and what it waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// In this order.
    pub actions: Vec<Action>,
    /// What the Database waits for; `None` when it is as it should be.
    pub waiting: Option<Waiting>,
    /// Look again at the latest then, though nothing woke us.
    pub again: Option<Duration>,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Put our finalizer on the Database.
    AddFinalizer,
    /// Make a password and the Secret that holds it.
    CreateCredentials(Box<Profile>),
    /// Hold the record of a kept volume for this Database.
    TakeRecord(Box<PersistentVolume>),
    /// Give it back.
    ReleaseRecord(Box<PersistentVolume>),
    /// Make the Secret from the one that was kept with a volume.
    TakeCredentials(Box<Profile>, Box<HeldSecret>),
    /// Delete the Secret that was kept with a volume which this Database has taken over: name, UID.
    DeleteKept(String, String),
    /// Apply the ConfigMap; one that names a UID changes that very object, one without is new.
    ApplyConfigMap(Box<ConfigMap>),
    /// The same for the Service.
    ApplyService(Box<Service>),
    /// The same for the NetworkPolicy.
    ApplyNetworkPolicy(Box<NetworkPolicy>),
    /// The same for the StatefulSet.
    ApplyStatefulSet(Box<StatefulSet>),
    /// Set the number of pods: UID, replicas.
    Scale(String, i32),
    /// Write the ordinal down, and whose place the Node is to take, then create it: one compound action.
    CreateNode(i32, Box<Node>, Option<Replacement>),
    /// Change a Node's spec: name, UID, JSON merge patch of the spec.
    UpdateNode(String, String, Value),
    /// Delete a Node: name, UID, why.
    DeleteNode(String, String, String),
    /// Write down the zone that capacity has chosen.
    RecordZone(String),
    /// Create the Volume.
    CreateVolume(Box<Volume>),
    /// Change the Volume's spec: UID, JSON merge patch of the spec.
    UpdateVolume(String, Value),
    /// Delete the Volume: UID.
    DeleteVolume(String),
    /// Put the Database's label on a core Node: name, UID; what is told of it when the database moves there from another machine.
    Label(String, String, Option<String>),
    /// Take the Database's label off a core Node: name, UID.
    Unlabel(String, String),
    /// Delete the pod so that it comes back from the new template: name, UID, why.
    ReplacePod(String, String, String),
    /// Keep the credentials with the disk, under the name of what is retained.
    KeepCredentials(Box<HeldSecret>),
    /// Delete the Secret of the credentials: UID.
    DeleteCredentials(String),
    /// Delete a child that the API server's garbage collector would take its time for: kind, name, UID.
    DeleteChild(ChildKind, String, String),
    /// Take our finalizer off the Database: its house is down.
    RemoveFinalizer,
}

/// The kinds of a Database's children that are neither Node, Volume nor Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildKind {
    /// The StatefulSet.
    StatefulSet,
    /// The Service.
    Service,
    /// The ConfigMap.
    ConfigMap,
    /// The NetworkPolicy.
    NetworkPolicy,
}

impl Plan {
    pub(super) fn new(actions: Vec<Action>, waiting: Waiting) -> Self {
        Self { actions, waiting: Some(waiting), again: None }
    }

    pub(super) fn again(self, again: Duration) -> Self {
        Self { again: Some(again), ..self }
    }
}

/// Decides what to do about a Database.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    if observed.database.metadata.deletion_timestamp.is_some() {
        return leaving::plan(observed, now);
    }
    if !finalizer::has(&observed.database) {
        return Plan::new(vec![Action::AddFinalizer], Waiting::on(Reason::Progressing, "the Database is being taken on"));
    }
    if !observed.database.spec.running {
        return stopping::paused(observed, now);
    }
    let mut actions = Vec::new();
    let profile = match ground(observed, &mut actions) {
        Ok(profile) => profile,
        Err(plan) => return plan,
    };
    if let Some(lost) = volume_lost(observed) {
        return Plan::new(actions, lost);
    }
    running(observed, profile, actions, now)
}

/// What every database needs, running or paused: a spec that can be, names that are free, the volume that it asks to take over,
/// credentials, and the ways to the engine. Otherwise the whole plan.
pub(super) fn ground<'a>(observed: &'a Observed, actions: &mut Vec<Action>) -> Result<&'a Profile, Plan> {
    let profile = match (invalid::invalid(observed), &observed.profile) {
        (None, Ok(profile)) => profile,
        (Some(message), _) => return Err(Plan::new(Vec::new(), Waiting::stalled(Reason::InvalidSpec, message))),
        (None, Err(error)) => return Err(Plan::new(Vec::new(), Waiting::stalled(Reason::InvalidSpec, error.to_string()))),
    };
    if let Some(conflict) = access::conflict(observed, profile) {
        // What belongs to others wakes nobody when it goes.
        return Err(Plan::new(Vec::new(), conflict).again(slowly(observed)));
    }
    if let Some(adopting) = adopting::plan(observed, profile) {
        return Err(adopting);
    }
    if let Err(unusable) = access::credentials(observed, profile, actions) {
        // Secrets are never watched.
        return Err(Plan::new(std::mem::take(actions), unusable).again(slowly(observed)));
    }
    adopting::after(observed, actions);
    access::ways(observed, profile, actions);
    Ok(profile)
}

/// A Volume that was there once, and is gone or going: it is never replaced by an empty one.
pub(super) fn volume_lost(observed: &Observed) -> Option<Waiting> {
    let name = &observed.names.volume;
    let was_made = observed.database.status.as_ref().is_some_and(|status| status.volume_name.is_some());
    let message = match &observed.volume {
        Child::Ours(volume) if volume.metadata.deletion_timestamp.is_some() => {
            format!("Volume {name} was deleted by hand; what becomes of its EBS volume is in its deletionPolicy, and no empty one follows")
        }
        Child::Absent if was_made => format!("Volume {name} is gone, and no empty one follows: create a new Database from what was kept"),
        Child::Absent | Child::Ours(_) | Child::Foreign => return None,
    };
    Some(Waiting::stalled(Reason::VolumeLost, message))
}

/// The machine, then the disk in its zone, then the engine on both; another machine in its place when it must go.
fn running(observed: &Observed, profile: &Profile, mut actions: Vec<Action>, now: Timestamp) -> Plan {
    let Some(machines) = machines::of(observed) else {
        return create_node(observed, actions);
    };
    let host = machines.host;
    if let (Some(why), None) = (misplaced(observed, host), machines.successor) {
        let name = host.name_any();
        if host.metadata.deletion_timestamp.is_none() {
            actions.push(Action::DeleteNode(name.clone(), host.uid().unwrap_or_default(), why.clone()));
        }
        return Plan::new(actions, Waiting::on(Reason::AwaitingNode, format!("{why}; Node {name} is taken down, and another follows")));
    }
    let replacing = replacing::plan(observed, &machines, now, &mut actions);
    let Some(node) = replacing.serves_on else {
        let disk = disk(observed, next_zone(observed).as_deref(), &mut actions);
        return Plan { actions, waiting: replacing.waiting.or(disk), again: None };
    };
    let plan = serve(observed, profile, node, replacing.waiting.is_some(), actions);
    Plan { waiting: plan.waiting.or(replacing.waiting), ..plan }
}

/// Runs the engine on the machine of this Node.
fn serve(observed: &Observed, profile: &Profile, node: &Node, is_replaced: bool, mut actions: Vec<Action>) -> Plan {
    let name = node.name_any();
    let zone = zone(observed, node);
    let disk = disk(observed, zone.as_deref(), &mut actions);
    // One that is to go stays as it is until then.
    let machine = if is_replaced { node_awaited(node) } else { machine(observed, node, zone.as_deref(), &mut actions) };
    if !is_initialized(node) {
        let starting = || Waiting::on(Reason::AwaitingNode, format!("Node {name} is being made ready"));
        return Plan::new(actions, machine.unwrap_or_else(starting));
    }
    if !observed.carries_label(node)
        && let Some(waiting) = workload::before_move(observed, profile, &mut actions)
    {
        return Plan::new(actions, waiting);
    }
    if let Some(waiting) = label(observed, node, &mut actions) {
        return Plan::new(actions, waiting).again(observed.timing.recheck);
    }
    let is_bound = observed.volume.ours().is_some_and(|volume| conditions::is_true(volume.conditions(), ConditionType::Bound));
    if !is_bound {
        let binding = || Waiting::on(Reason::AwaitingVolume, format!("Volume {} is not bound yet", observed.names.volume));
        return Plan::new(actions, disk.unwrap_or_else(binding));
    }
    let engine = workload::plan(observed, profile, &mut actions);
    // A VolumeAttachment wakes nobody.
    let again = observed.pod.as_ref().filter(|pod| pod::machine(pod).is_some() && !pod::has_started(pod)).map(|_| observed.timing.recheck);
    Plan { actions, waiting: machine.or(disk).or(engine), again }
}

fn create_node(observed: &Observed, mut actions: Vec<Action>) -> Plan {
    let ordinal = next_ordinal(&observed.database, &observed.names, &observed.nodes);
    let node = build::node(&observed.database, &observed.names, ordinal, next_zone(observed).as_deref());
    let message = format!("a machine is asked for: Node {}", node.name_any());
    actions.push(Action::CreateNode(ordinal, Box::new(node), None));
    Plan::new(actions, Waiting::on(Reason::AwaitingNode, message))
}

/// The zone of the next machine, if it is decided.
pub(super) fn next_zone(observed: &Observed) -> Option<String> {
    disk_zone(observed).or_else(|| recorded_zone(observed))
}

/// Where the disk is. It cannot leave, so it decides against any record: one that was restored from a backup of the cluster may lie.
pub(super) fn disk_zone(observed: &Observed) -> Option<String> {
    observed.volume.ours().map(|volume| volume.spec.zone.clone())
}

fn recorded_zone(observed: &Observed) -> Option<String> {
    observed.database.status.as_ref().and_then(|status| status.zone.clone())
}

/// The zone: a fact once the Volume exists or it is recorded; before that, where the first machine was seen to run.
fn zone(observed: &Observed, node: &Node) -> Option<String> {
    let of_machine = || {
        let is_running = conditions::is_true(node.conditions(), ConditionType::Launched);
        node.status.as_ref().filter(|_| is_running).and_then(|status| status.zone.clone())
    };
    disk_zone(observed).or_else(|| recorded_zone(observed)).or_else(|| node.spec.zone.clone()).or_else(of_machine)
}

/// Records the zone, makes the disk in it, keeps the disk as the spec says; what is awaited of it.
fn disk(observed: &Observed, zone: Option<&str>, actions: &mut Vec<Action>) -> Option<Waiting> {
    let name = &observed.names.volume;
    let Some(zone) = zone else {
        return Some(Waiting::on(
            Reason::AwaitingNode,
            "the volume follows the machine: its zone is chosen once an instance runs".to_owned(),
        ));
    };
    if recorded_zone(observed).as_deref() != Some(zone) {
        actions.push(Action::RecordZone(zone.to_owned()));
    }
    match &observed.volume {
        Child::Ours(volume) => {
            if let Some(update) = volume_update(observed, volume) {
                actions.push(update);
                return Some(Waiting::on(Reason::Progressing, format!("Volume {name} is being changed")));
            }
            let is_current = volume.status.as_ref().is_some_and(|status| status.observed_generation == volume.metadata.generation);
            awaited(&format!("Volume {name}"), volume.conditions(), is_current, Reason::AwaitingVolume)
        }
        Child::Absent | Child::Foreign => {
            actions.push(Action::CreateVolume(Box::new(build::volume(&observed.database, &observed.names, zone))));
            Some(Waiting::on(Reason::AwaitingVolume, format!("Volume {name} is asked for in {zone}")))
        }
    }
}

/// What of the Volume's spec must follow the Database's; what is decided once stays as it is.
pub(super) fn volume_update(observed: &Observed, volume: &Volume) -> Option<Action> {
    let mut wanted = build::volume_spec(&observed.database, &volume.spec.zone, observed.database.spec.deletion_policy);
    wanted.snapshot_id.clone_from(&volume.spec.snapshot_id);
    wanted.adopt_retained.clone_from(&volume.spec.adopt_retained);
    let patch = patch(&volume.spec, &wanted)?;
    Some(Action::UpdateVolume(volume.uid().unwrap_or_default(), patch))
}

/// Keeps the machine as the spec says; what is awaited of it.
pub(super) fn machine(observed: &Observed, node: &Node, zone: Option<&str>, actions: &mut Vec<Action>) -> Option<Waiting> {
    let name = node.name_any();
    let mut changed = None;
    if let Some(patch) = patch(&node.spec, &build::node_spec(&observed.database, zone)) {
        actions.push(Action::UpdateNode(name.clone(), node.uid().unwrap_or_default(), patch));
        changed = Some(Waiting::on(Reason::Progressing, format!("Node {name} is being changed")));
    }
    node_awaited(node).or(changed)
}

/// What is awaited of a machine, in its own words.
pub(super) fn node_awaited(node: &Node) -> Option<Waiting> {
    let is_current = node.status.as_ref().is_some_and(|status| status.observed_generation == node.metadata.generation);
    awaited(&format!("Node {}", node.name_any()), node.conditions(), is_current, Reason::AwaitingNode)
}

/// The JSON merge patch of a spec; `None` when nothing differs.
fn patch<S: serde::Serialize>(live: &S, wanted: &S) -> Option<Value> {
    difference(&serde_json::to_value(live).ok()?, &serde_json::to_value(wanted).ok()?)
}

/// What is awaited of a child, in its own words; `None` when it is ready as its newest spec says.
pub(super) fn awaited(
    what: &str,
    conditions: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition],
    is_current: bool,
    otherwise: Reason,
) -> Option<Waiting> {
    if let Some(stalled) = conditions::find(conditions, ConditionType::Stalled).filter(|stalled| stalled.status == "True") {
        let reason = Reason::named(&stalled.reason).unwrap_or(otherwise);
        return Some(Waiting::stalled(reason, format!("{what}: {}", stalled.message)));
    }
    match conditions::find(conditions, ConditionType::Ready) {
        Some(ready) if ready.status == "True" && is_current => None,
        Some(ready) if ready.status == "True" => Some(Waiting::on(otherwise, format!("{what}: its change is being looked at"))),
        Some(ready) => Some(Waiting::on(Reason::named(&ready.reason).unwrap_or(otherwise), format!("{what}: {}", ready.message))),
        None => Some(Waiting::on(otherwise, format!("{what} is new"))),
    }
}

/// The label that the pod selects, on the one core Node of this Node; a pod that runs elsewhere is ended there, so that it comes back here.
fn label(observed: &Observed, node: &Node, actions: &mut Vec<Action>) -> Option<Waiting> {
    let Some(core_node) = observed.core_node_of(node) else {
        return Some(Waiting::on(Reason::NodeNotReady, format!("the Kubernetes node of Node {} is gone", node.name_any())));
    };
    for other in observed.labelled.iter().filter(|other| other.metadata.uid != core_node.metadata.uid) {
        actions.push(Action::Unlabel(other.name_any(), other.uid().unwrap_or_default()));
    }
    let moved = cause_of_move(observed, node);
    if !observed.carries_label(node) {
        let told = moved.as_ref().map(|(from, cause)| format!("from Node {from} to Node {}: {cause}", node.name_any()));
        actions.push(Action::Label(core_node.name_any(), core_node.uid().unwrap_or_default(), told));
    }
    let pod = observed.pod.as_ref()?;
    let elsewhere = observed.runs_on().filter(|name| *name != core_node.name_any())?;
    let cause = moved.map_or_else(|| "the database has another machine".to_owned(), |(_, cause)| cause);
    let message = format!("pod {} moves from Kubernetes node {elsewhere} to {}: {cause}", pod.name_any(), core_node.name_any());
    // A pod on a machine that is lost is taken away by the Node controller, which knows when that is safe.
    let is_on_lost = observed.nodes.iter().any(|node| is_lost(node) && is_named(node, elsewhere));
    let blocker = observed.stateful_set.ours().and_then(|live| safety::may_replace_pod(live).err());
    if pod.metadata.deletion_timestamp.is_none() && !is_on_lost && blocker.is_none() {
        actions.push(Action::ReplacePod(pod.name_any(), pod.uid().unwrap_or_default(), message.clone()));
    }
    Some(Waiting::on(Reason::Moving, message))
}

/// From which Node the database moves to this one, and why, if it does.
fn cause_of_move(observed: &Observed, node: &Node) -> Option<(String, String)> {
    let replacement = observed.database.status.as_ref()?.replacement.as_ref()?;
    (replacement.to == node.name_any()).then(|| (replacement.from.clone(), replacement.cause.clone()))
}

fn is_named(node: &Node, core_node: &str) -> bool {
    node.status.as_ref().and_then(|status| status.core_node_name.as_deref()) == Some(core_node)
}

/// What a condition says, as the end of a sentence.
pub(super) fn said(conditions: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition], kind: ConditionType) -> String {
    conditions::find(conditions, kind).map_or_else(|| "nothing is known of it yet".to_owned(), |condition| condition.message.clone())
}

/// The engine's state as a thing that is waited for.
pub(super) fn engine_waiting(observed: &Observed) -> Option<Waiting> {
    if let Some(message) = observed.attachment.as_ref().and_then(attaching) {
        return Some(Waiting::on(Reason::AwaitingAttach, message));
    }
    match engine_state(observed.pod.as_ref()) {
        EngineState::Ready => None,
        EngineState::AwaitingPod(message) | EngineState::Stopping(message) => Some(Waiting::on(Reason::AwaitingPod, message)),
        EngineState::Starting(message) => Some(Waiting::on(Reason::EngineStarting, message)),
        EngineState::Failing(message) => Some(Waiting::on(Reason::EngineFailing, message)),
    }
}

/// How long until the next look at something that wakes nobody.
fn slowly(observed: &Observed) -> Duration {
    observed.timing.recheck.saturating_mul(12)
}
