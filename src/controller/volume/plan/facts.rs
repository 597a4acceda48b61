//! What the parts of the plan of the Volume controller share: questions about what was observed, and plans
//! that several parts make. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::ResourceExt;

use super::action::{Plan, Stage};
use crate::api::volume::VolumeCreation;
use crate::api::{Database, Volume, VolumeId};
use crate::cloud::EbsVolume;
use crate::cloud::absence::{self, AbsenceProven, TokenLookup};
use crate::cloud::call::Call;
use crate::cloud::identity::{self, Kind, Owner};
use crate::cloud::quota::Demand;
use crate::cluster::finalizer;
use crate::cluster::ownership::Ownership;
use crate::controller::call_blocked::CallBlocked;
use crate::controller::creation::judge::{Facts, last_possible_send};
use crate::controller::memory::issued_requests::{Again, again};
use crate::controller::volume::build;
use crate::controller::volume::observe::{ById, Observed};
use crate::controller::volume::wait::VolumeWait;

/// The facts that the protocol judges an attempt by. EC2 cannot list volumes by token: the attempt's tag
/// shows.
pub(super) fn attempt_facts(
    observed: &Observed,
    creation: &VolumeCreation,
    deleting: bool,
) -> Facts<VolumeId> {
    // A later attempt than the status knows: the status is older than what was done (a restored etcd).
    let made = observed
        .volumes
        .volumes
        .iter()
        .filter(|volume| identity::attempt(&volume.tags) >= Some(creation.attempt.number));
    let found = made.max_by_key(|volume| identity::attempt(&volume.tags));
    Facts {
        deleting,
        started_at: creation.attempt.started_at.0,
        refused: creation.attempt.refused.clone(),
        has_token: true,
        sent: observed.sent,
        found: found.map(|volume| volume.id.clone()),
        looked_up: observed.volumes.swept_at.is_some_and(|at| at >= observed.leading_since),
        absent: proven_absent(observed, Some(creation)),
        same_request: true,
    }
}

/// The proof that this attempt's volume does not exist. The attempt is unknown when the status was lost.
pub(super) fn proven_absent(observed: &Observed, creation: Option<&VolumeCreation>) -> Option<AbsenceProven> {
    let attempt = creation.map(|creation| &creation.attempt);
    let last = last_possible_send(attempt, observed.sent.as_ref(), observed.leading_since);
    absence::prove(last, observed.volumes.empty, TokenLookup::NotPossible, observed.timing.absence_window)
}

/// This plan, which rests on the absence of an EBS volume, once EC2 does not show it by its id either: the
/// absence is proven by tag, and tags can be taken off. `wait` is waited for until then.
pub(super) fn once_confirmed(
    observed: &Observed,
    id: &VolumeId,
    plan: Plan,
    wait: impl Into<VolumeWait>,
) -> Plan {
    let recheck = observed.timing.requeue_interval;
    match observed.by_id {
        ById::NotShown => plan,
        ById::Shown(_) => Plan::wait(Stage::Nothing, VolumeWait::WithoutTags(id.clone()))
            .pending()
            .after(recheck.saturating_mul(12)),
        ById::NotRead => {
            let plan = Plan::wait(Stage::Nothing, wait).pending().after(recheck);
            Plan { look_up: Some(id.clone()), ..plan }
        }
    }
}

/// What an EBS volume asks of the account's quotas.
pub(in crate::controller::volume) fn demand(creation: &VolumeCreation) -> Demand {
    Demand::volume(&creation.volume_type, creation.size, creation.iops)
}

/// Whether it is decided what becomes of the EBS volume: the Database has said so, or is gone. One that was
/// deleted and has lost our finalizer says nothing any more, and may wait for this Volume.
pub(super) fn is_decided(observed: &Observed) -> bool {
    let spec = &observed.volume.spec;
    let decides = |it: &Database| it.metadata.deletion_timestamp.is_none() || finalizer::has(it);
    let is_awaited = observed.owner.as_ref().is_some_and(decides);
    spec.release || spec.deletion_decided || !(is_awaited || observed.ownership == Ownership::Unowned)
}

/// Whom the EBS volume belongs to.
pub(in crate::controller::volume) fn owner_of(volume: &Volume, cluster_id: &str) -> Owner {
    Owner {
        cluster_id: cluster_id.to_owned(),
        kind: Kind::Volume,
        uid: volume.uid().unwrap_or_default(),
        database: build::database_of(volume),
        name: volume.name_any(),
    }
}

/// Whose the EBS volume is, but not its Name.
pub(super) fn ownership_tags(observed: &Observed) -> BTreeMap<String, String> {
    identity::ownership_tags(&owner_of(&observed.volume, &observed.cluster_id))
}

/// Whether it carries this Volume's tags.
pub(super) fn is_tagged(observed: &Observed, volume: &EbsVolume) -> bool {
    let owner = owner_of(&observed.volume, &observed.cluster_id);
    let tags = identity::owner_tags(&owner.cluster_id, owner.kind, &owner.uid);
    tags.iter().all(|(key, value)| volume.tags.get(key) == Some(value))
}

pub(super) fn class_not_found(observed: &Observed, stage: Stage) -> Plan {
    let name = observed.volume.spec.node_class_name.clone();
    Plan::wait(stage, VolumeWait::ClassNotFound(name)).after(observed.timing.instance_sync_interval)
}

/// What EC2 last answered to this call and when it may be made again, as long as it must not be made.
pub(super) fn last_refusal(
    observed: &Observed,
    call: Call,
    now: Timestamp,
) -> Option<(&CallBlocked, Timestamp)> {
    match again(observed.issued.get(&call), observed.volumes.swept_at, observed.timing.requeue_interval, now)
    {
        Again::Later(call_blocked, until) => Some((call_blocked, until)),
        Again::Now | Again::OnceShown => None,
    }
}

/// The plan of a Volume whose next call was not accepted by EC2 and must not be made again yet.
pub(super) fn blocked(observed: &Observed, call: Call, stage: Stage, now: Timestamp) -> Option<Plan> {
    let (call_blocked, until) = last_refusal(observed, call, now)?;
    Some(Plan::wait(stage, VolumeWait::Blocked(call_blocked.clone())).until(until, now).pending())
}
