//! What the parts of the plan of the Volume controller share: questions about what was observed, and plans that several parts make. Pure.

use jiff::Timestamp;
use kube::ResourceExt;

use super::action::{Plan, Stage};

use crate::api::volume::VolumeLaunch;
use crate::api::{Volume, VolumeId, keys};
use crate::cloud::absence::{self, AbsenceProven, TokenLookup};
use crate::cloud::call::Call;
use crate::cloud::identity::{self, Kind, Owner};
use crate::controller::creation::judge::{Facts, last_possible_send};
use crate::controller::memory::issued_requests::{Again, again};
use crate::controller::volume::observe::Observed;
use crate::controller::volume::wait::VolumeWait;
use crate::controller::waiting::HeldUp;

/// The facts that the protocol judges an attempt by. EC2 cannot be asked for volumes by token: the attempt's tag tells.
pub(super) fn attempt_facts(observed: &Observed, launch: &VolumeLaunch, deleting: bool) -> Facts<VolumeId> {
    // A later attempt than the status knows: the status is older than what was done (a restored etcd).
    let made = observed.volumes.volumes.iter().filter(|volume| identity::attempt(&volume.tags) >= Some(launch.attempt));
    let found = made.max_by_key(|volume| identity::attempt(&volume.tags));
    Facts {
        deleting,
        started_at: launch.started_at.0,
        refused: launch.refused.is_some(),
        sent: observed.sent,
        found: found.map(|volume| volume.id.clone()),
        looked_up: observed.volumes.swept_at.is_some_and(|at| at >= observed.process_started),
        absent: proven_absent(observed, Some(launch)),
        same_request: true,
    }
}

/// The proof that this attempt's volume does not exist. Without the attempt (the status was lost) nothing was sent later than by an
/// earlier process.
pub(super) fn proven_absent(observed: &Observed, launch: Option<&VolumeLaunch>) -> Option<AbsenceProven> {
    let last = launch.map_or(observed.process_started, |launch| {
        last_possible_send(observed.sent.as_ref(), launch.started_at.0, observed.process_started)
    });
    absence::prove(last, observed.volumes.empty, TokenLookup::NotPossible, observed.timing.absence_window)
}

/// Whom the EBS volume belongs to.
pub(in crate::controller::volume) fn owner_of(volume: &Volume, cluster_id: &str) -> Owner {
    let database = volume.labels().get(keys::DATABASE_NAME_LABEL).cloned().unwrap_or_default();
    Owner {
        cluster_id: cluster_id.to_owned(),
        kind: Kind::Volume,
        uid: volume.uid().unwrap_or_default(),
        database: format!("{}/{database}", volume.namespace().unwrap_or_default()),
        name: volume.name_any(),
    }
}

pub(super) fn class_not_found(observed: &Observed, stage: Stage) -> Plan {
    let name = observed.volume.spec.node_class_name.clone();
    Plan::wait(stage, VolumeWait::ClassNotFound(name)).after(observed.timing.sweep_instances)
}

/// What EC2 last answered to this call and when it may be made again, as long as it must not be made.
pub(super) fn last_refusal(observed: &Observed, call: Call, now: Timestamp) -> Option<(&HeldUp, Timestamp)> {
    match again(observed.asked.get(&call), observed.volumes.swept_at, observed.timing.recheck, now) {
        Again::Later(held_up, until) => Some((held_up, until)),
        Again::Now | Again::OnceShown => None,
    }
}

/// The plan of a Volume whose next call was not accepted by EC2 and must not be made again yet.
pub(super) fn blocked(observed: &Observed, call: Call, stage: Stage, now: Timestamp) -> Option<Plan> {
    let (held_up, until) = last_refusal(observed, call, now)?;
    Some(Plan::wait(stage, VolumeWait::Blocked(held_up.clone())).until(until, now).pending())
}
