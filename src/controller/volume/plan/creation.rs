//! The plan of a creation: what follows an attempt that has no EBS volume yet. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::action::{Action, Plan, Stage};
use super::adoption;
use super::facts::{attempt_facts, class_not_found, demand, owner_of};
use crate::api::VolumeId;
use crate::api::creation::{Attempt, Refusal};
use crate::api::node_class::NodeClassSpec;
use crate::api::volume::VolumeCreation;
use crate::cloud::identity::{self, Kind};
use crate::controller::creation::next::{AfterRefusal, Next, Pauses, Pending, after_refusal, next};
use crate::controller::volume::observe::Observed;
use crate::controller::volume::wait::creation::{CreationWait, Found};
use crate::time::whole_second;

/// Nothing was ever decided: the first attempt, unless EC2 has something under this UID already (the status
/// was lost).
pub(super) fn uncreated(observed: &Observed, size: i32, now: Timestamp) -> Plan {
    match observed.volumes.volumes.as_slice() {
        [] => match observed.recorded_volume() {
            // A PersistentVolume of ours is proof that there was a volume, and names it.
            Some(id) => record(id, Found::ByPersistentVolume),
            None => match observed.volume.spec.adopt_retained.as_deref() {
                Some(record) => adoption::take(observed, record, size),
                None => next_attempt(observed, 1, size, now),
            },
        },
        [one] => record(one.id.clone(), Found::ByTags),
        several => Plan::wait(
            Stage::Nothing,
            CreationWait::Several(several.iter().map(|volume| volume.id.clone()).collect()),
        ),
    }
}

fn record(id: VolumeId, found: Found) -> Plan {
    Plan::act(Stage::Nothing, vec![Action::RecordVolume(id.clone())], CreationWait::Recording(id, found))
}

/// An attempt was decided and has no id yet.
pub(super) fn unidentified(
    observed: &Observed,
    creation: &VolumeCreation,
    size: i32,
    now: Timestamp,
) -> Plan {
    let attempt = creation.attempt.number;
    let facts = attempt_facts(observed, creation, false);
    let reached = observed.offerings.reached(&demand(creation));
    match next(facts, reached, observed.timing.client_token_max_age, now) {
        Next::Adopt(id) => record(id, Found::ByAttempt).pending(),
        Next::Refused(refusal) => refused(observed, creation, refusal, size, now),
        // Pending, since the look-ups that are the proof are forgotten when nothing is awaited any more.
        Next::Another => next_attempt(observed, attempt + 1, size, now).pending(),
        Next::Resend => {
            Plan::act(Stage::Nothing, vec![Action::Resend], CreationWait::Resending(attempt)).pending()
        }
        // Pending: what is in doubt is looked up all the while.
        Next::Wait(pending, until) => {
            let wait = match pending {
                Pending::Quota(quota) => CreationWait::Quota(quota),
                Pending::Throttled => CreationWait::Throttled,
                Pending::InDoubt(doubt) => CreationWait::InDoubt { attempt, doubt },
            };
            let plan = Plan::wait(Stage::Nothing, wait).pending();
            match until {
                Some(until) => plan.until(until, now),
                None => plan,
            }
        }
    }
}

/// EC2 refused an attempt for certain.
fn refused(
    observed: &Observed,
    creation: &VolumeCreation,
    refusal: Refusal,
    size: i32,
    now: Timestamp,
) -> Plan {
    let pauses = Pauses {
        forbidden: observed.timing.forbidden_retry_interval,
        no_capacity: Some(observed.timing.unavailable_offering_ttl),
    };
    let waits = |wait: CreationWait| Plan::wait(Stage::Nothing, wait);
    match after_refusal(&refusal, pauses, now, || asks_the_same_again(observed, creation, size, now)) {
        AfterRefusal::Another => next_attempt(observed, creation.attempt.number + 1, size, now),
        AfterRefusal::Forbidden(until) => waits(CreationWait::Forbidden(refusal)).until(until, now),
        AfterRefusal::NoCapacity(until) => waits(CreationWait::NoCapacity(refusal)).until(until, now),
        AfterRefusal::Invalid => waits(CreationWait::Invalid(refusal)),
    }
}

fn asks_the_same_again(observed: &Observed, creation: &VolumeCreation, size: i32, now: Timestamp) -> bool {
    let Some(class) = &observed.class else { return true };
    let next = request(observed, &class.spec, creation.attempt.number, size, now);
    next == VolumeCreation { attempt: next.attempt.clone(), ..creation.clone() }
}

pub(super) fn next_attempt(observed: &Observed, attempt: i32, size: i32, now: Timestamp) -> Plan {
    let Some(class) = &observed.class else { return class_not_found(observed, Stage::Nothing) };
    let creation = request(observed, &class.spec, attempt, size, now);
    if let Some((quota, until)) = observed.offerings.reached(&demand(&creation)) {
        return Plan::wait(Stage::Nothing, CreationWait::Quota(quota)).until(until, now);
    }
    let wait = CreationWait::Requesting {
        volume_type: creation.volume_type.clone(),
        size,
        zone: creation.zone.clone(),
    };
    Plan::act(Stage::Nothing, vec![Action::Create(Box::new(creation))], wait).pending()
}

/// The whole request of an attempt.
fn request(
    observed: &Observed,
    class: &NodeClassSpec,
    attempt: i32,
    size: i32,
    now: Timestamp,
) -> VolumeCreation {
    let volume = &observed.volume;
    let uid = volume.uid().unwrap_or_default();
    let spec = &volume.spec;
    let class_tags = class.tags.iter().map(|(key, value)| (key.clone(), value.0.clone())).collect();
    VolumeCreation {
        attempt: Attempt::new(attempt, Time(whole_second(now))),
        client_token: identity::token(&observed.cluster_id, Kind::Volume, &uid, attempt),
        zone: spec.zone.clone(),
        size,
        volume_type: spec.volume_type.clone(),
        iops: spec.iops,
        throughput: spec.throughput,
        snapshot_id: spec.snapshot_id.clone(),
        initialization_rate: spec.initialization_rate,
        kms_key_id: class.kms_key_id.clone(),
        tags: identity::tags(&owner_of(volume, &observed.cluster_id), attempt, &class_tags),
    }
}
