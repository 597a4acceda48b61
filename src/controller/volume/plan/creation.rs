//! The plan of a creation: what follows an attempt that has no EBS volume yet. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::action::{Action, Plan, Stage};
use super::adoption;
use super::facts::{attempt_facts, class_not_found, owner_of};

use crate::api::VolumeId;
use crate::api::node_class::NodeClassSpec;
use crate::api::volume::VolumeLaunch;
use crate::cloud::error::{self, Class};
use crate::cloud::identity::{self, Kind};
use crate::controller::conditions::whole_second;
use crate::controller::creation::judge::{Doubt, Verdict, judge};
use crate::controller::volume::observe::Observed;
use crate::controller::volume::wait::creation::{CreationWait, Found};
use crate::time::later;

/// Nothing was ever decided: the first attempt, unless EC2 has something under this UID already (the status was lost).
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
        several => Plan::wait(Stage::Nothing, CreationWait::Several(several.iter().map(|volume| volume.id.clone()).collect())),
    }
}

fn record(id: VolumeId, found: Found) -> Plan {
    Plan::act(Stage::Nothing, vec![Action::RecordVolume(id.clone())], CreationWait::Recording(id, found))
}

/// An attempt was decided and has no id yet.
pub(super) fn unidentified(observed: &Observed, launch: &VolumeLaunch, size: i32, now: Timestamp) -> Plan {
    match judge(attempt_facts(observed, launch, false), observed.timing.token_resend, now) {
        Verdict::Adopt(id) => record(id, Found::ByAttempt).pending(),
        Verdict::Refused => refused(observed, launch, size, now),
        // Pending, since the look-ups that are the proof are forgotten when nothing is awaited any more.
        Verdict::ProvenAbsent(_) => next_attempt(observed, launch.attempt + 1, size, now).pending(),
        Verdict::Resend => match observed.offerings.quota_closed_until {
            // Pending: what is in doubt is looked up all the while.
            Some(until) => quota(until, now).pending(),
            None => Plan::act(Stage::Nothing, vec![Action::Resend], CreationWait::Resending(launch.attempt)).pending(),
        },
        Verdict::Wait(Doubt::Pause, Some(until)) if observed.sent.is_some_and(|sent| !sent.in_doubt) => {
            let throttled = || Plan::wait(Stage::Nothing, CreationWait::Throttled).until(until, now);
            observed.offerings.quota_closed_until.map_or_else(throttled, |until| quota(until, now)).pending()
        }
        Verdict::Wait(doubt, until) => {
            let plan = Plan::wait(Stage::Nothing, CreationWait::InDoubt { attempt: launch.attempt, doubt }).pending();
            match until {
                Some(until) => plan.until(until, now),
                None => plan,
            }
        }
    }
}

/// EC2 refused an attempt for certain.
fn refused(observed: &Observed, launch: &VolumeLaunch, size: i32, now: Timestamp) -> Plan {
    let Some(refusal) = &launch.refused else { return next_attempt(observed, launch.attempt + 1, size, now) };
    let pause = |wait: CreationWait, pause: Duration| {
        let until = later(refusal.at.0, pause);
        if now < until {
            return Plan::wait(Stage::Nothing, wait).until(until, now);
        }
        next_attempt(observed, launch.attempt + 1, size, now)
    };
    match error::classify(Some(&refusal.code), &refusal.message, None) {
        Class::Forbidden => pause(CreationWait::Forbidden(refusal.clone()), observed.timing.forbidden_pause),
        Class::Capacity => pause(CreationWait::NoCapacity(refusal.clone()), observed.timing.offering_pause),
        Class::Invalid if asks_the_same_again(observed, launch, size, now) => {
            Plan::wait(Stage::Nothing, CreationWait::Invalid(refusal.clone()))
        }
        Class::Invalid
        | Class::InDoubt
        | Class::Throttled
        | Class::Quota
        | Class::NotYetUsable
        | Class::Token
        | Class::NotFound
        | Class::State
        | Class::ModificationBudget => next_attempt(observed, launch.attempt + 1, size, now),
    }
}

fn asks_the_same_again(observed: &Observed, launch: &VolumeLaunch, size: i32, now: Timestamp) -> bool {
    let Some(class) = &observed.class else { return true };
    let next = request(observed, &class.spec, launch.attempt, size, now);
    let same = VolumeLaunch { started_at: next.started_at.clone(), in_doubt_since: None, refused: None, ..launch.clone() };
    next == same
}

pub(super) fn next_attempt(observed: &Observed, attempt: i32, size: i32, now: Timestamp) -> Plan {
    let Some(class) = &observed.class else { return class_not_found(observed, Stage::Nothing) };
    if let Some(until) = observed.offerings.quota_closed_until {
        return quota(until, now);
    }
    let launch = request(observed, &class.spec, attempt, size, now);
    let wait = CreationWait::Requesting { volume_type: launch.volume_type.clone(), size, zone: launch.zone.clone() };
    Plan::act(Stage::Nothing, vec![Action::Create(Box::new(launch))], wait).pending()
}

/// The whole request of an attempt.
fn request(observed: &Observed, class: &NodeClassSpec, attempt: i32, size: i32, now: Timestamp) -> VolumeLaunch {
    let volume = &observed.volume;
    let uid = volume.uid().unwrap_or_default();
    let spec = &volume.spec;
    let class_tags = class.tags.iter().map(|(key, value)| (key.clone(), value.0.clone())).collect();
    VolumeLaunch {
        attempt,
        token: identity::token(&observed.cluster_id, Kind::Volume, &uid, attempt),
        zone: spec.zone.clone(),
        size,
        volume_type: spec.volume_type.clone(),
        iops: spec.iops,
        throughput: spec.throughput,
        snapshot_id: spec.snapshot_id.clone(),
        kms_key_id: class.kms_key_id.clone(),
        tags: identity::tags(&owner_of(volume, &observed.cluster_id), attempt, &class_tags),
        started_at: Time(whole_second(now)),
        in_doubt_since: None,
        refused: None,
    }
}

fn quota(until: Timestamp, now: Timestamp) -> Plan {
    Plan::wait(Stage::Nothing, CreationWait::Quota).until(until, now)
}
