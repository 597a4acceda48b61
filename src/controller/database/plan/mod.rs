//! The plan step of the Database controller: compares what is with what should be, and decides the actions.
//! Pure.

pub(super) mod adoption;
mod check;
pub(super) mod comparison;
pub(super) mod drift;
pub(super) mod facts;
pub(super) mod going_back;
mod gone_back;
pub mod leaving;
pub(super) mod machines;
pub(super) mod next_start;

pub(super) mod access;
pub(super) mod application_user;
pub(super) mod auto_grow;
pub(super) mod back_to_served;
mod claim;
mod data;
mod deletion;
mod engine_in_effect;
mod failing;
pub(super) mod flush;
pub(super) mod in_effect;
pub(super) mod in_place;
mod pause;
mod placement;
mod prerequisites;
mod release;
pub mod reload;
mod repair;
mod replacement;
mod restore;
mod rollout;
mod room;
pub(super) mod rotation;
mod sizing;
mod startable;
pub(super) mod started;
pub(super) mod tls;
mod total_storage;
pub(super) mod upgrade;
pub(super) mod validation;
mod wakes;
pub(super) mod wal_archive;

pub mod action;
pub mod adopt_running;
pub mod permission;

use jiff::Timestamp;
use kube::ResourceExt;

use self::action::{Action, Plan};
use self::facts::{next_zone, node_awaited};
use self::leaving::is_leaving;
use self::machines::{departs_in_time, is_initialized, misplaced};
use super::cause::NodeDeletion;
use super::observe::Observed;
use super::ordinal::next_ordinal;
use super::wait::DatabaseWait;
use super::{build, pod};
use crate::api::{ConditionType, Node};
use crate::cluster::finalizer;
use crate::controller::conditions;
use crate::engine::Profile;
use crate::time::sooner;

/// Decides what to do about a Database. A debug build checks each plan by the rules of `check.rs`.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let grown = auto_grow::grown_world(observed);
    let requested = grown.as_ref().unwrap_or(observed);
    let carried_out = in_effect::of(observed);
    let observed = carried_out.as_ref().unwrap_or(observed);
    let rejected = reload::in_effect(observed);
    let decided = match &rejected {
        Some(world) => reload::with_rejection(decide(world, now), world),
        None => decide(observed, now),
    };
    let observed = rejected.as_ref().unwrap_or(observed);
    let decided = upgrade::told(upgrade::prepared(decided, requested, now), requested);
    let decided = in_place::told(back_to_served::told(decided, requested), observed, now);
    let decided = release::kept(permission::requeued(decided, observed), observed);
    let guarded = claim::freed(claim::guarded(decided, observed), observed);
    let flushed = flush::before_stop(guarded, observed, now);
    let grown = auto_grow::grown(drift::mended(flushed, observed, now), observed, now);
    let mut plan = application_user::told(grown, observed);
    if observed.is_orphaning() {
        // What lost its owner reference wakes its Database no more.
        plan.requeue = Some(sooner(observed.timing.requeue_interval, plan.requeue));
    }
    debug_assert_eq!(
        check::violations(observed, &plan),
        Vec::<String>::new(),
        "the plan of {}",
        observed.database.name_any()
    );
    plan
}

fn decide(observed: &Observed, now: Timestamp) -> Plan {
    if let Some(plan) = adopt_running::remembered(observed) {
        return plan;
    }
    if let Some(cause) = leaving::postponed(observed) {
        let plan = lasting(observed, now);
        let requeue = sooner(observed.timing.requeue_interval, plan.requeue);
        return Plan { waiting: Some(DatabaseWait::NotReleasable(cause)), ..plan.requeue(requeue) };
    }
    if is_leaving(observed) {
        return deletion::plan(observed, now);
    }
    lasting(observed, now)
}

/// The plan of a Database that stays.
fn lasting(observed: &Observed, now: Timestamp) -> Plan {
    if !finalizer::has(&observed.database) {
        return Plan::act(vec![Action::AddFinalizer], DatabaseWait::AddingFinalizer);
    }
    if let Some(plan) = adopt_running::plan(observed, now) {
        return plan;
    }
    match permission::as_decided_before(observed) {
        Some((permitted, refusal)) => permission::with_refusal(carry_out(&permitted, now), refusal),
        None => carry_out(observed, now),
    }
}

/// What the spec says, on the volume that has the data which the database is to have.
fn carry_out(observed: &Observed, now: Timestamp) -> Plan {
    let running = || in_place::considered(paused_or_running(observed, now), observed, now);
    in_place::plan(observed, now)
        .or_else(|| upgrade::plan(observed, now))
        .unwrap_or_else(|| upgrade::considered(running(), observed, now))
}

fn paused_or_running(observed: &Observed, now: Timestamp) -> Plan {
    if !observed.database.spec.running {
        return pause::plan(observed, now);
    }
    let mut actions = Vec::new();
    let profile = match prerequisites::check(observed, &mut actions) {
        Ok(profile) => profile,
        Err(plan) => return repair::despite(rotation::started_again(plan, observed), observed, now),
    };
    if let Some(lost) = placement::volume_lost(observed) {
        return repair::despite(Plan::act(actions, lost), observed, now);
    }
    running(observed, profile, actions, now)
}

/// The machine, then the disk in its zone, then the engine on both; another machine in its place when it must
/// go.
fn running(observed: &Observed, profile: &Profile, mut actions: Vec<Action>, now: Timestamp) -> Plan {
    let Some(machines) = machines::of(observed) else {
        return create_node(observed, actions);
    };
    let host = machines.host;
    if let (Some(cause), None) = (misplaced(observed, host), machines.successor) {
        let name = host.name_any();
        if host.metadata.deletion_timestamp.is_none() {
            actions.push(Action::DeleteNode(
                name.clone(),
                host.uid().unwrap_or_default(),
                NodeDeletion::Unfit(cause.clone()),
            ));
        }
        return Plan::act(actions, DatabaseWait::NodeUnusable { node: name, cause });
    }
    let replacing = replacement::plan(observed, &machines, now, &mut actions);
    let Some(node) = replacing.serves_on else {
        let disk = placement::disk(observed, next_zone(observed).as_deref(), &mut actions);
        let waiting = replacing.waiting.clone().or(disk);
        return replacing.requeued(Plan { actions, waiting, requeue: None });
    };
    let plan = serve(observed, profile, node, replacing.waiting.is_some(), actions, now);
    let plan = replacing.requeued(plan);
    Plan { waiting: plan.waiting.or(replacing.waiting), ..plan }
}

/// Runs the engine on the machine of this Node.
fn serve(
    observed: &Observed,
    profile: &Profile,
    node: &Node,
    is_replaced: bool,
    mut actions: Vec<Action>,
    now: Timestamp,
) -> Plan {
    let zone = placement::zone(observed, node);
    let disk = placement::disk(observed, zone.as_deref(), &mut actions);
    // One that is to go stays as it is until then.
    let machine = if is_replaced {
        node_awaited(node).filter(|_| !departs_in_time(node))
    } else {
        placement::machine(observed, node, zone.as_deref(), &mut actions)
    };
    if !is_initialized(node) {
        return Plan::act(
            actions,
            machine.unwrap_or_else(|| DatabaseWait::NodeNotInitialized(node.name_any())),
        );
    }
    if !observed.carries_label(node)
        && let Some(waiting) = rollout::before_move(observed, profile, node, &mut actions, now)
    {
        return Plan::act(actions, waiting);
    }
    if let Some(waiting) = placement::label(observed, node, &mut actions) {
        return Plan::act(actions, waiting).requeue(observed.timing.requeue_interval);
    }
    let is_bound = observed
        .volume
        .ours()
        .is_some_and(|volume| conditions::is_true(volume.conditions(), ConditionType::Bound));
    if !is_bound {
        return Plan::act(
            actions,
            disk.unwrap_or_else(|| DatabaseWait::VolumeNotBound(observed.names.volume.clone())),
        );
    }
    let engine = rollout::plan(observed, profile, node, is_replaced, &mut actions, now);
    tls::load(observed, profile, &mut actions);
    wal_archive::begin(observed, &mut actions);
    // A VolumeAttachment is not watched, and no event says that a pod has waited long; nor is what a kubelet
    // reports of its machine.
    let is_asked = engine.as_ref().is_some_and(DatabaseWait::is_of_running_engine);
    let is_starting = || observed.pod.as_ref().is_some_and(|pod| !pod::has_started(pod, observed.engine()));
    let requeue = if is_asked || is_starting() {
        Some(observed.timing.requeue_interval)
    } else if engine.as_ref().is_some_and(DatabaseWait::is_for_room) {
        Some(observed.timing.instance_sync_interval)
    } else {
        [tls::again(observed), wal_archive::again(observed)].into_iter().flatten().min()
    };
    let plan = Plan { actions, waiting: machine.or(disk).or(engine), requeue };
    let plan = if is_replaced { plan } else { going_back::considered(plan, observed, now) };
    back_to_served::considered(plan, observed, now)
}

fn create_node(observed: &Observed, mut actions: Vec<Action>) -> Plan {
    let ordinal = next_ordinal(&observed.database, &observed.names, &observed.nodes);
    let node = build::node(&observed.database, &observed.names, ordinal, next_zone(observed).as_deref());
    let wait = DatabaseWait::CreatingNode(node.name_any());
    actions.push(Action::CreateNode(ordinal, Box::new(node), None));
    Plan::act(actions, wait)
}
