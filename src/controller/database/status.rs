//! The status step of the Database controller: computes the DatabaseStatus, its conditions, and the events of
//! their changes. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ServicePort;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;

use super::apply::Answers;
use super::build;
use super::ended::{restored_in_place, upgraded};
use super::history;
use super::messages;
use super::observe::Observed;
use super::plan::action::{Action, Plan};
use super::plan::comparison::Findings;
use super::plan::drift;
use super::plan::facts::{
    condition_message, engine_waiting, inputs_of_pod, node_awaited, volume_awaited, wanted_inputs,
};
use super::plan::machines::{self, can_serve, is_lost, lost_reason};
use super::plan::{
    access, adoption, application_user, auto_grow, back_to_served, in_effect, in_place, upgrade,
};
use super::plan::{going_back, leaving, next_start, permission, reload, rotation, started, tls, wal_archive};
use super::upgrade as upgrade_record;
use super::wait::{DatabaseWait, Idle};
use crate::api::ConditionType as Type;
use crate::api::database::{AutoGrowStatus, Endpoint, HistoryEntry, Initialization, Occurrence, Replacement};
use crate::api::{Database, DatabaseStatus, DeletionPolicy, EventReason, Reason};
use crate::cluster;
use crate::cluster::events::Happened;
use crate::controller::conditions::{self, Entry};
use crate::controller::pass::acted::Acted;
use crate::error_chain::Chain;

/// What a pass decided, for the status and for its events.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// The Database is being deleted.
    pub is_deleting: bool,
    /// What the Database waits for.
    pub waiting: Option<DatabaseWait>,
    /// It waits for nothing but the user of its application, whatever was answered to that.
    pub serves: bool,
    /// What is awaited of its engine.
    pub engine: Option<DatabaseWait>,
    /// The Node that this pass creates, or has tried to.
    pub new_node: Option<String>,
    /// The objects that the API server answered with.
    pub answers: Answers,
}

impl Decided {
    /// What this pass decided.
    pub fn of(observed: &Observed, plan: &Plan, acted: &Acted<Database>) -> Self {
        let carried_out = reload::carried_out(observed);
        Self {
            is_deleting: leaving::is_leaving(observed),
            waiting: waiting(plan, acted),
            serves: application_user::is_awaited_alone(plan, acted.error.is_some()),
            engine: engine(carried_out.as_ref().unwrap_or(observed), plan),
            new_node: plan.actions.iter().find_map(new_node),
            answers: Answers::default(),
        }
    }
}

/// The Node that an action creates.
fn new_node(action: &Action) -> Option<String> {
    if let Action::CreateNode(_, node, _) = action { Some(node.name_any()) } else { None }
}

/// What is waited for: what just failed, else what the plan says.
fn waiting(plan: &Plan, acted: &Acted<Database>) -> Option<DatabaseWait> {
    let Some(error) = &acted.error else { return plan.waiting.clone() };
    Some(match error.kube() {
        Some(kube::Error::Api(answer)) if error.kube().is_some_and(cluster::is_refused) => {
            let answer = answer.message.clone();
            match adopted_set_anew(plan, acted) {
                Some(set) => DatabaseWait::NotRecreatable(set, answer),
                None => DatabaseWait::ChildRefused { answer },
            }
        }
        Some(_) | None => DatabaseWait::StepFailed { error: Chain(error).to_string() },
    })
}

/// The StatefulSet of an adopted database, if this plan creates it anew: the chart's admission policies let
/// no operator create one that has the rights of a template from before Freehold.
fn adopted_set_anew(plan: &Plan, acted: &Acted<Database>) -> Option<String> {
    let is_new =
        |action: &Action| matches!(action, Action::ApplyStatefulSet(set) if set.metadata.uid.is_none());
    let adopt = acted.object.spec.adopt.as_ref().filter(|_| plan.actions.iter().any(is_new))?;
    Some(adopt.stateful_set_name.clone())
}

/// The status to write: the ordinal and the zone as their own writes left them, everything else from what was
/// seen.
pub fn status(
    observed: &Observed,
    decided: &Decided,
    acted: &Acted<Database>,
    now: Timestamp,
) -> DatabaseStatus {
    let old = acted.object.status.clone().unwrap_or_default();
    // The generation that was observed: the object of the last write may have a newer spec, which this pass
    // has not seen.
    let generation = observed.database.metadata.generation;
    let carried_out = in_effect::of(observed);
    let world = carried_out.as_ref().unwrap_or(observed);
    let findings = Findings::of(world);
    let wal_archive = wal_archive::shown(world, old.wal_archive, now);
    let mut entries = entries(world, findings, decided, now);
    entries.extend(wal_archive::reported(world, wal_archive.as_ref()).filter(|_| !decided.is_deleting));
    let node = machines::of(observed).map(|machines| machines.host);
    let administrator = access::administrator_secret(observed, old.credentials_secret_name);
    let conditions = conditions::merge(&old.conditions, &entries, generation, now);
    let of_settings = reload::in_effect(world);
    let carried_out = of_settings.as_ref().unwrap_or(world);
    let served = back_to_served::recorded(observed, carried_out, old.served);
    let in_place = in_place::shown(observed, old.restored_in_place, now);
    let (last, back) = (served.as_deref(), in_place.as_deref());
    DatabaseStatus {
        observed_generation: generation,
        first_ready_at: old.first_ready_at.or_else(|| first_ready_at(&conditions, decided.serves)),
        conditions,
        instance_type: node.and_then(|node| node.status.as_ref()?.instance_type.clone()),
        // The last name stays after the deletion: the next ordinal is derived from it.
        node_name: node.map(ResourceExt::name_any).or(old.node_name),
        volume_name: observed.volume.ours().map(ResourceExt::name_any).or(old.volume_name),
        endpoint: endpoint(world).or(old.endpoint),
        binding: application_user::binding(observed, old.binding, administrator.as_ref()),
        credentials_secret_name: administrator,
        password_generation: rotation::shown(observed, old.password_generation),
        config: reload::shown(world, old.config),
        tls: tls::shown(world, old.tls),
        wal_archive,
        auto_grow: auto_grow::shown(observed, old.auto_grow, now),
        upgrade: upgrade::shown(observed, carried_out, old.upgrade, last, back, now),
        served,
        adoption: going_back::record(observed, old.adoption),
        release: old.release,
        restored: old.restored,
        restored_in_place: in_place,
        initialization: initialization(observed).or(old.initialization),
        zone: old.zone,
        node_ordinal: old.node_ordinal,
        replacement: replacement(observed, decided.new_node.as_ref(), old.replacement),
        run: history::run(observed, now),
        not_starting: old.not_starting,
        volume_deletion_policy: volume_deletion_policy(decided).or(old.volume_deletion_policy),
        engine_version: started::newest(observed, old.engine_version),
        applied: drift::record(world, findings, old.applied, &decided.answers, acted.error.is_some()),
        history: history::extended(&old.history, history::occurred(observed).as_ref(), now),
    }
}

/// How far EC2 has read the volume.
fn initialization(observed: &Observed) -> Option<Initialization> {
    observed.volume.ours()?.status.as_ref()?.initialization.clone()
}

/// What becomes of the data, while the Volume is being deleted.
fn volume_deletion_policy(decided: &Decided) -> Option<DeletionPolicy> {
    let waiting = decided.waiting.as_ref()?;
    if let DatabaseWait::DeletingVolume { policy, .. } = waiting { Some(*policy) } else { None }
}

/// Since when the database is Ready, or serves and awaits only the user of its application.
fn first_ready_at(conditions: &[Condition], serves: bool) -> Option<Time> {
    let ready = conditions::find(conditions, if serves { Type::EngineReady } else { Type::Ready })?;
    (ready.status == "True").then(|| ready.last_transition_time.clone())
}

/// The replacement, until the replaced Node is gone, or the other that was to take its place. One whose
/// record got no answer is in the object before the pass that creates the Node.
fn replacement(
    observed: &Observed,
    new_node: Option<&String>,
    recorded: Option<Replacement>,
) -> Option<Replacement> {
    let recorded = recorded?;
    let is_new = new_node == Some(&recorded.to);
    let is_there = |name: &str| observed.nodes.iter().any(|node| node.name_any() == name);
    (is_new || (is_there(&recorded.from) && is_there(&recorded.to))).then_some(recorded)
}

/// Where clients connect to, once the Service is there.
fn endpoint(observed: &Observed) -> Option<Endpoint> {
    if let Some(legacy) = &observed.legacy {
        let ports = legacy.service.as_ref()?.spec.as_ref()?.ports.iter().flatten();
        let named =
            |port: &ServicePort| (port.name.clone().unwrap_or_else(|| port.port.to_string()), port.port);
        return Some(Endpoint { host: build::host(&observed.names), ports: ports.map(named).collect() });
    }
    observed.service.ours()?;
    let profile = observed.profile.as_ref().ok()?;
    Some(Endpoint { host: build::host(&observed.names), ports: profile.service_ports() })
}

fn entries(observed: &Observed, findings: Findings, decided: &Decided, now: Timestamp) -> Vec<Entry> {
    let Decided { is_deleting, waiting, serves: _, engine, new_node: _, answers: _ } = decided;
    let machine = entry(Type::NodeReady, machine(observed), messages::MACHINE_READY);
    let disk = entry(Type::VolumeReady, disk(observed), messages::VOLUME_READY);
    let engine = entry(Type::EngineReady, engine.clone(), messages::ENGINE_READY);
    let stalled = waiting.as_ref().filter(|waiting| waiting.is_stalled());
    let stalled = conditions::stalled(stalled.map(|waiting| (waiting.reason(), waiting.message())));
    let mut entries = vec![
        ready(*is_deleting, waiting.as_ref(), [&machine, &disk, &engine]),
        available(observed),
        machine,
        disk,
        engine,
        stalled,
    ];
    entries.extend(adoption::found(observed));
    entries.extend(permission::reported(observed));
    entries.extend(drift::reported(observed, findings, now));
    entries.extend(next_start::reported(observed));
    entries.extend(rotation::reported(observed, waiting.as_ref()).filter(|_| !is_deleting));
    entries.extend(tls::reported(observed, now).filter(|_| !is_deleting));
    if observed.is_protected() && !is_deleting {
        let message = messages::DELETION_PROTECTED;
        entries.push(Entry::yes(Type::DeletionProtected, Reason::DeletionProtected, message));
    }
    entries
}

/// Ready, from all the others: the only place that decides it.
fn ready(is_deleting: bool, waiting: Option<&DatabaseWait>, parts: [&Entry; 3]) -> Entry {
    let call_blocked = waiting.map(|waiting| (waiting.reason(), waiting.message()));
    if is_deleting {
        let message = call_blocked.map_or_else(|| messages::BEING_DELETED.to_owned(), |(_, message)| message);
        return Entry::no(Type::Ready, Reason::Deleting, message);
    }
    let part =
        || parts.into_iter().find(|part| !part.is_true()).map(|part| (part.reason, part.message.clone()));
    match call_blocked.or_else(part) {
        Some((reason, message)) => Entry::no(Type::Ready, reason, message),
        None => Entry::yes(Type::Ready, Reason::AsExpected, messages::DATABASE_READY),
    }
}

fn entry(kind: Type, waiting: Option<DatabaseWait>, good: &str) -> Entry {
    match waiting {
        None => Entry::yes(kind, Reason::AsExpected, good),
        Some(waiting) => Entry::no(kind, waiting.reason(), waiting.message()),
    }
}

/// What is awaited of the machine: of the one in use, else of the one that takes its place.
fn machine(observed: &Observed) -> Option<DatabaseWait> {
    let Some(machines) = machines::of(observed) else {
        return Some(DatabaseWait::NoMachine(idle(observed)));
    };
    let host = machines.host;
    if is_lost(host) {
        return Some(DatabaseWait::MachineLost {
            reason: lost_reason(host),
            message: condition_message(host.conditions(), Type::Lost),
        });
    }
    let in_use = machines.successor.filter(|_| !can_serve(observed, host)).unwrap_or(host);
    node_awaited(in_use)
}

/// What is awaited of the disk.
fn disk(observed: &Observed) -> Option<DatabaseWait> {
    match observed.volume.ours() {
        Some(volume) => volume_awaited(volume),
        None => Some(DatabaseWait::NoVolume),
    }
}

/// What is awaited of the engine, of this generation's inputs.
fn engine(observed: &Observed, plan: &Plan) -> Option<DatabaseWait> {
    running_engine(observed).or_else(|| {
        let inputs = observed.pod.as_ref().and_then(|pod| inputs_of_pod(observed, pod));
        let is_current = inputs == Some(wanted_inputs(observed));
        // What is not permitted restarts nothing.
        let restarts = !is_current && permission::engine(observed).is_none();
        // Nor does what the engine takes while it runs.
        let waiting = plan.waiting.clone().filter(|wait| matches!(wait, DatabaseWait::Reload(_)));
        restarts.then(|| waiting.unwrap_or(DatabaseWait::EngineOutdated))
    })
}

/// What is awaited of the engine, of whichever inputs.
fn running_engine(observed: &Observed) -> Option<DatabaseWait> {
    if let Some(host) = machines::of(observed).map(|machines| machines.host).filter(|host| is_lost(host)) {
        // The state of its pod is older than that.
        return Some(DatabaseWait::EngineMachineLost(lost_reason(host)));
    }
    match &observed.pod {
        None => Some(DatabaseWait::NoEngine(idle(observed))),
        Some(_) => engine_waiting(observed),
    }
}

/// Whether clients can use the database now, whatever of its spec is not carried out yet.
fn available(observed: &Observed) -> Entry {
    let service = match &observed.legacy {
        Some(legacy) => legacy.service.is_some(),
        None => observed.service.ours().is_some(),
    };
    match running_engine(observed) {
        None if !service => Entry::no(Type::Available, Reason::Pending, messages::NO_SERVICE),
        None if is_closed(observed) => Entry::no(Type::Available, Reason::Pending, messages::SERVICE_CLOSED),
        waiting => entry(Type::Available, waiting, messages::AVAILABLE),
    }
}

/// Whether the Service keeps clients out, or is about to.
fn is_closed(observed: &Observed) -> bool {
    let live = observed.service.ours();
    upgrade_record::is_closed(&observed.database)
        || live.is_some_and(|live| build::is_closed_service(&observed.names, live))
}

/// Why something is not there: because it is not wanted now, or because it is awaited.
fn idle(observed: &Observed) -> Idle {
    if leaving::is_leaving(observed) {
        Idle::Deleting
    } else if observed.database.spec.running {
        Idle::Awaited
    } else {
        Idle::Paused
    }
}

/// The changes to report as events.
pub fn changes(old: &DatabaseStatus, new: &DatabaseStatus, decided: &Decided) -> Vec<Happened> {
    let mut happened: Vec<Happened> = occurred(&old.history, &new.history).into_iter().collect();
    happened.extend(not_growing(old.auto_grow.as_ref(), new.auto_grow.as_ref()));
    happened.extend(restored_in_place(old, new));
    happened.extend(upgraded(old, new));
    let (old, new) = (old.conditions.as_slice(), new.conditions.as_slice());
    if let Some(ready) = conditions::find(new, Type::Ready) {
        let was_ready = conditions::is_true(old, Type::Ready);
        let has_new_reason =
            conditions::find(old, Type::Ready).is_none_or(|before| before.reason != ready.reason);
        if ready.status == "True" && !was_ready {
            happened.push(Happened::normal(EventReason::Ready, ready.message.clone()));
        } else if decided.waiting == Some(DatabaseWait::Paused) && has_new_reason {
            happened.push(Happened::normal(EventReason::MachineReleased, ready.message.clone()));
        } else if ready.status != "True" && was_ready && !decided.is_deleting {
            happened.push(Happened::normal(
                EventReason::NotReady,
                messages::events::condition(&ready.reason, &ready.message),
            ));
        }
    }
    if let Some(found) = conditions::find(new, Type::RetainedVolumeFound)
        .filter(|_| !conditions::is_true(old, Type::RetainedVolumeFound))
    {
        happened.push(Happened::normal(EventReason::RetainedVolumeFound, found.message.clone()));
    }
    let is_kept = conditions::is_true(new, Type::DeletionProtected);
    happened.extend(worsened(old, new, Type::DeletionProtected, EventReason::DeletionProtected, is_kept));
    let is_stalled = conditions::is_true(new, Type::Stalled);
    let is_refused = conditions::is_true(new, Type::NotPermitted) && !is_stalled;
    happened.extend(worsened(old, new, Type::NotPermitted, EventReason::NotPermitted, is_refused));
    happened.extend(worsened(old, new, Type::Stalled, EventReason::Stalled, is_stalled));
    let is_failing = decided.engine.as_ref().is_some_and(DatabaseWait::is_engine_failing);
    happened.extend(worsened(old, new, Type::EngineReady, EventReason::EngineFailing, is_failing));
    happened
}

/// A volume that is to grow by itself, and does not any more for a reason that was not there before.
fn not_growing(old: Option<&AutoGrowStatus>, new: Option<&AutoGrowStatus>) -> Option<Happened> {
    let of = |status: &AutoGrowStatus| (status.state, status.unmeasured);
    let new = new.filter(|new| old.map(of) != Some(of(new)))?;
    let (reason, note) = messages::events::not_growing(new)?;
    Some(Happened::warning(reason, note.to_owned()))
}

/// What the history has more than before.
fn occurred(old: &[HistoryEntry], new: &[HistoryEntry]) -> Option<Happened> {
    let last = new.last().filter(|last| old.last() != Some(last))?;
    let note = last.cause.clone();
    let is_unasked = matches!(last.what, Occurrence::EngineRestarted | Occurrence::PodReplaced);
    let event = last.what.event()?;
    Some(if is_unasked { Happened::warning(event, note) } else { Happened::normal(event, note) })
}

/// A warning when a condition is bad that was not so before with the same status and the same shown reason.
fn worsened(
    old: &[Condition],
    new: &[Condition],
    kind: Type,
    event: EventReason,
    is_bad: bool,
) -> Option<Happened> {
    let condition = conditions::find(new, kind).filter(|_| is_bad)?;
    let is_same = |before: &Condition| before.status == condition.status && before.reason == condition.reason;
    let is_new = !conditions::find(old, kind).is_some_and(is_same);
    is_new
        .then(|| Happened::warning(event, messages::events::condition(&condition.reason, &condition.message)))
}
