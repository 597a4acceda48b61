//! The plan of a creation: what follows an attempt that has no EBS volume yet. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::action::{Action, Plan, Stage};
use super::adoption;
use super::facts::{attempt_facts, class_not_found, owner_of};

use crate::api::Reason;
use crate::api::keys;
use crate::api::node_class::NodeClassSpec;
use crate::api::volume::VolumeLaunch;
use crate::cloud::error::{self, Class};
use crate::cloud::identity::{self, Kind};
use crate::controller::conditions::whole_second;
use crate::controller::creation::judge::{Doubt, Verdict, judge};
use crate::controller::volume::observe::Observed;
use crate::time::later;

/// Nothing was ever decided: the first attempt, unless EC2 has something under this UID already (the status was lost).
pub(super) fn uncreated(observed: &Observed, size: i32, now: Timestamp) -> Plan {
    match observed.volumes.volumes.as_slice() {
        [] => match observed.recorded_volume() {
            // A PersistentVolume of ours is proof that there was a volume, and names it.
            Some(id) => Plan::act(
                Stage::Nothing,
                vec![Action::RecordVolume(id.clone())],
                Reason::Creating,
                format!("EBS volume {id} is named by this Volume's PersistentVolume and is taken on"),
            ),
            None => match observed.volume.spec.adopt_retained.as_deref() {
                Some(record) => adoption::take(observed, record, size),
                None => next_attempt(observed, 1, size, now),
            },
        },
        [one] => Plan::act(
            Stage::Nothing,
            vec![Action::RecordVolume(one.id.clone())],
            Reason::Creating,
            format!("EBS volume {} carries this Volume's identity and is taken on", one.id),
        ),
        several => {
            let ids: Vec<&str> = several.iter().map(|volume| volume.id.0.as_str()).collect();
            Plan::stalled(
                Stage::Nothing,
                Reason::InDoubt,
                format!(
                    "several EBS volumes carry this Volume's identity ({}): set status.volumeID to the one with the data, or remove the tag {} from the others",
                    ids.join(", "),
                    keys::VOLUME_UID_TAG
                ),
            )
        }
    }
}

/// An attempt was decided and has no id yet.
pub(super) fn unidentified(observed: &Observed, launch: &VolumeLaunch, size: i32, now: Timestamp) -> Plan {
    match judge(attempt_facts(observed, launch, false), observed.timing.token_resend, now) {
        Verdict::Adopt(id) => {
            let message = format!("EBS volume {id} was made by this attempt and is recorded");
            Plan::act(Stage::Nothing, vec![Action::RecordVolume(id)], Reason::Creating, message).pending()
        }
        Verdict::Refused => refused(observed, launch, size, now),
        // Pending, since the look-ups that are the proof are forgotten when nothing is awaited any more.
        Verdict::ProvenAbsent(_) => next_attempt(observed, launch.attempt + 1, size, now).pending(),
        Verdict::Resend => match observed.offerings.quota_closed_until {
            // Pending: what is in doubt is looked up all the while.
            Some(until) => quota(until, now).pending(),
            None => Plan::act(
                Stage::Nothing,
                vec![Action::Resend],
                Reason::InDoubt,
                format!("attempt {} has no answer yet; the same call is sent again", launch.attempt),
            )
            .pending(),
        },
        Verdict::Wait(Doubt::Pause, Some(until)) if observed.sent.is_some_and(|sent| !sent.in_doubt) => {
            let message = "EC2 made nothing and asks for patience; the same call follows";
            let patience = || Plan::wait(Stage::Nothing, Reason::Throttled, message).until(until, now);
            observed.offerings.quota_closed_until.map_or_else(patience, |until| quota(until, now)).pending()
        }
        Verdict::Wait(doubt, until) => {
            let message = format!("it is not known whether EC2 carried out creation attempt {}: {}", launch.attempt, doubt.as_words());
            let plan = Plan::wait(Stage::Nothing, Reason::InDoubt, message).pending();
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
    let said = format!("{} ({})", refusal.code, refusal.message);
    let pause = |reason: Reason, pause: Duration, message: String| {
        let until = later(refusal.at.0, pause);
        if now < until {
            return Plan::wait(Stage::Nothing, reason, message).until(until, now);
        }
        next_attempt(observed, launch.attempt + 1, size, now)
    };
    match error::classify(Some(&refusal.code), &refusal.message, None) {
        Class::Forbidden => pause(
            Reason::Forbidden,
            observed.timing.forbidden_pause,
            format!("EC2 forbids making the volume: {said}; tried again by itself"),
        ),
        Class::Capacity => pause(
            Reason::InsufficientCapacity,
            observed.timing.offering_pause,
            format!("EC2 has no capacity for the volume: {said}; tried again by itself"),
        ),
        Class::Invalid if asks_the_same_again(observed, launch, size, now) => {
            Plan::stalled(Stage::Nothing, Reason::InvalidRequest, format!("EC2 refuses the volume as invalid: {said}; change spec.storage"))
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
    let message = format!("a {} volume of {size} GiB is asked for in {}", launch.volume_type, launch.zone);
    Plan::act(Stage::Nothing, vec![Action::Create(Box::new(launch))], Reason::Creating, message).pending()
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
    Plan::wait(
        Stage::Nothing,
        Reason::QuotaExceeded,
        "a quota of the AWS account is used up: ask AWS to raise it; tried again every few minutes",
    )
    .until(until, now)
}
