//! How a change of the engine begins: with a complete Backup while the database serves, and a second one of
//! the stopped database. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::recording::recording;
use crate::api::database::{FormerEngine, Served, Upgrade, UpgradeWentBack};
use crate::api::{Backup, ConditionType, Volume, VolumeId};
use crate::controller::database::build;
use crate::controller::database::in_place::restored_unrecorded;
use crate::controller::database::inputs::inputs_hash;
use crate::controller::database::messages::upgrade::not_backed_up;
use crate::controller::database::observe::Observed;
use crate::controller::database::plan::action::{Action, Plan};
use crate::controller::database::plan::engine_in_effect::{due, in_force};
use crate::controller::database::plan::facts::{condition_message, slowly};
use crate::controller::database::plan::in_place::emptied;
use crate::controller::database::plan::leaving::is_leaving;
use crate::controller::database::plan::machines::{self, is_lost};
use crate::controller::database::plan::{access, flush, tls};
use crate::controller::database::pod::EngineWait;
use crate::controller::database::upgrade::{is_tried_again, name_of_running};
use crate::controller::database::wait::{DatabaseWait, UpgradeWait};
use crate::time::{later, sooner, whole_second};

/// How old a Backup may be that spares another one before the engine is stopped: EBS copies only the blocks
/// that have changed since the last snapshot (EBS user guide, "How snapshots work"), so that the one of the
/// stopped database is complete soon.
const FRESH: Duration = Duration::from_secs(24 * 3600);

/// How long EC2 may take to detach the volume and to start the snapshot, once the engine has stopped.
const LIMIT: Duration = Duration::from_secs(600);

/// The plan, with the next step towards a change of the engine: once everything else of the database is as it
/// should be. An engine that fails is perhaps what the change is to mend: it is waited for no longer.
pub(in crate::controller::database::plan) fn prepared(
    mut plan: Plan,
    requested: &Observed,
    now: Timestamp,
) -> Plan {
    let Some(served) = due(requested).filter(|_| !is_leaving(requested)) else { return plan };
    // What the Volume was created from is read first: it may be the data that is gone back to.
    let is_unknown = |volume: &Volume| restored_unrecorded(&requested.database, volume).is_some();
    if requested.volume.ours().is_none_or(is_unknown) {
        return plan;
    }
    let is_serving = match &plan.waiting {
        None => true,
        Some(DatabaseWait::Engine(EngineWait::Failing { .. })) => false,
        Some(_) => return plan,
    };
    if let Some(wait) = tls::before_restart(requested) {
        return Plan { waiting: Some(wait), ..plan.requeue(slowly(requested)) };
    }
    let step = if is_serving { before_stop(requested, served, now) } else { None };
    let (wait, action) = step.unwrap_or_else(|| begin(requested, served, now));
    plan.actions.extend(action);
    plan.waiting = Some(DatabaseWait::Upgrade(wait));
    let soon = if plan.actions.is_empty() { slowly(requested) } else { requested.timing.requeue_interval };
    plan.requeue = Some(sooner(soon, plan.requeue));
    plan
}

/// What is awaited before the engine is stopped: a complete Backup of its volume, and none that is not.
fn before_stop(
    requested: &Observed,
    served: &Served,
    now: Timestamp,
) -> Option<(UpgradeWait, Option<Action>)> {
    let name = name_of_running(&requested.database, served);
    let Some(backups) = &requested.kept.backups else {
        return Some((UpgradeWait::AwaitingBackup(name), None));
    };
    if let Some(other) = backups.iter().find(|backup| !backup.is_over()) {
        return Some((UpgradeWait::AwaitingBackup(other.name_any()), None));
    }
    if backups.iter().any(|backup| is_fresh(requested, backup, now)) {
        return None;
    }
    match requested.kept.backup(&name) {
        // It was complete, and other things took a day.
        Some(backup) if backup.can_be_restored() => return None,
        Some(_) => return Some((UpgradeWait::BackupFailed(name), None)),
        None => {}
    }
    let backup = build::backup(&requested.database, &requested.names, &name);
    Some((UpgradeWait::AwaitingBackup(name), Some(Action::CreateBackup(Box::new(backup)))))
}

/// The EBS volume that the database has.
fn volume_id(observed: &Observed) -> Option<&VolumeId> {
    observed.volume.ours()?.status.as_ref()?.volume_id.as_ref()
}

/// Whether this is a complete Backup of the EBS volume that the database has, and not old.
fn is_fresh(requested: &Observed, backup: &Backup, now: Timestamp) -> bool {
    let Some(status) = backup.status.as_ref().filter(|_| backup.can_be_restored()) else { return false };
    let of_volume = status.source.as_ref().map(|source| &source.volume_id);
    let is_new = |at: &Time| now < later(at.0, FRESH);
    of_volume.is_some()
        && of_volume == volume_id(requested)
        && status.completed_at.as_ref().is_some_and(is_new)
}

fn begin(requested: &Observed, served: &Served, now: Timestamp) -> (UpgradeWait, Option<Action>) {
    let spec = &requested.database.spec;
    let record = Upgrade {
        from: FormerEngine { engine: served.engine.clone(), config: in_force(requested) },
        to: spec.engine.clone(),
        inputs_hash: inputs_hash(spec),
        started_at: Time(whole_second(now)),
        pod_uid: requested.pod.as_ref().and_then(ResourceExt::uid).unwrap_or_default(),
        volume_id: volume_id(requested).cloned(),
        backup_name: format!("{}-upgrade-{}-stopped", requested.database.name_any(), now.as_second()),
        snapshot_id: None,
        again: is_tried_again(&requested.database),
        startable_at: None,
        tried: None,
        went_back: None,
        ended_at: None,
    };
    (UpgradeWait::Recording, Some(Action::RecordUpgrade(Box::new(record))))
}

/// The Backup of the stopped database: it is there before the engine is stopped, and what it lacks is said.
/// `None` while the machine is lost, which is mended first.
pub(super) fn backing_up(observed: &Observed, upgrade: &Upgrade, now: Timestamp) -> Option<Plan> {
    machines::of(observed).filter(|machines| !is_lost(machines.host))?;
    let name = &upgrade.backup_name;
    let soon = observed.timing.requeue_interval;
    let waits = |message| DatabaseWait::Upgrade(UpgradeWait::BackingUp(name.clone(), message));
    if observed.kept.backups.is_none() {
        return Some(Plan::wait(waits(None)).requeue(soon));
    }
    let backup = observed.kept.backup(name);
    let message = backup.and_then(|it| condition_message(it.conditions(), ConditionType::Complete));
    let snapshot_id = backup.and_then(|it| it.status.as_ref()?.snapshot_id.as_ref());
    if snapshot_id.is_none() && now >= deadline(observed, upgrade) {
        return Some(given_up(observed, upgrade, message.as_deref(), now));
    }
    let Some(backup) = backup else {
        let backup = build::backup(&observed.database, &observed.names, name);
        let actions = vec![Action::CreateBackup(Box::new(backup))];
        return Some(Plan::act(actions, waits(None)).requeue(soon));
    };
    let status = backup.status.clone().unwrap_or_default();
    // The volume may have been exchanged meanwhile.
    let is_of_other = status.source.as_ref().is_some_and(|it| Some(&it.volume_id) != volume_id(observed));
    if status.failure.is_some() || backup.metadata.deletion_timestamp.is_some() || is_of_other {
        return Some(given_up(observed, upgrade, message.as_deref(), now));
    }
    // What is acknowledged from here on would not be gone back to.
    if let Some(closing) =
        observed.profile.as_ref().ok().and_then(|profile| access::service(observed, profile))
    {
        return Some(Plan::act(vec![closing], waits(None)).requeue(soon));
    }
    let mut actions = Vec::new();
    if let Some(waiting) = emptied(observed, &mut actions, now) {
        return Some(Plan::act(actions, waiting).requeue(soon));
    }
    Some(match status.snapshot_id {
        Some(id) => recording(observed, Upgrade { snapshot_id: Some(id), ..upgrade.clone() }),
        None => Plan::wait(waits(message)).requeue(soon),
    })
}

/// Until when the snapshot must have started: the database is down.
fn deadline(observed: &Observed, upgrade: &Upgrade) -> Timestamp {
    let grace = observed.profile.as_ref().map(|profile| profile.termination_grace).unwrap_or_default();
    later(upgrade.started_at.0, grace.saturating_add(flush::LIMIT).saturating_add(LIMIT))
}

/// Whether the snapshot was requested, and it is not known whether EC2 has started it. CreateSnapshot has no
/// token: the call is not sent again before it is proven to have made nothing.
fn is_in_doubt(backup: &Backup) -> bool {
    let status = backup.status.as_ref().filter(|it| it.snapshot_id.is_none() && it.failure.is_none());
    let creation = status.and_then(|status| status.creation.as_ref());
    creation.is_some_and(|creation| creation.attempt.refused.is_none())
}

/// The engine of before is started again, on its data.
fn given_up(observed: &Observed, upgrade: &Upgrade, message: Option<&str>, now: Timestamp) -> Plan {
    let at = Time(whole_second(now));
    let message = not_backed_up(&upgrade.backup_name, message);
    // Once: a call that is in doubt each time is answered by nothing that a further outage would change.
    let in_doubt = !upgrade.again && observed.kept.backup(&upgrade.backup_name).is_some_and(is_in_doubt);
    let went_back = UpgradeWentBack { at: at.clone(), message, data_restored: false, in_doubt };
    let record = Upgrade { went_back: Some(went_back), ended_at: Some(at), ..upgrade.clone() };
    recording(observed, record)
}
