//! What a record of a trial is about: one EBS volume, to which no client was let in, and one pod with those
//! that follow it. Pure.
//!
//! A status may be older than what was done: another client has written it, or restored it from a backup.
//! What it says of the time of one pod is not true of another one, and a database whose clients have written
//! since goes back to nothing.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt;

use crate::api::database::{TriedPod, Upgrade};
use crate::controller::database::build;
use crate::controller::database::in_place;
use crate::controller::database::observe::Observed;
use crate::controller::database::plan::facts::inputs_of_pod;
use crate::controller::database::plan::startable::startable_since;
use crate::controller::database::upgrade::is_of_volume;

/// Whether the record is older than what was done: the EBS volume is another one, as after a way back, or the
/// Service lets clients in, which it does not from before the stop of the engine until the record has ended.
pub(super) fn is_of_before(observed: &Observed, upgrade: &Upgrade) -> bool {
    let is_open = |live: &Service| !build::is_closed_service(&observed.names, live);
    let is_other = observed.volume.ours().is_some_and(|volume| !is_of_volume(upgrade, volume));
    !in_place::has_begun(&observed.database) && (is_other || observed.service.ours().is_some_and(is_open))
}

/// Whether the time on record is that of the pod that is there, or of the one that is awaited.
pub(super) fn is_judged(observed: &Observed, upgrade: &Upgrade) -> bool {
    match (&upgrade.tried, &observed.pod) {
        (Some(tried), Some(pod)) => is_it(tried, pod),
        (Some(tried), None) => tried.ending,
        (None, Some(_)) => false,
        (None, None) => true,
    }
}

fn is_it(tried: &TriedPod, pod: &Pod) -> bool {
    pod.metadata.uid.as_ref() == Some(&tried.pod_uid)
}

/// Follows the trial to the pod that is there, and counts its time: on from that of the pod before if that
/// one was seen to end, else anew.
pub(super) fn followed(observed: &Observed, record: &mut Upgrade, now: Timestamp) {
    let inputs = record.inputs_hash.clone();
    // A pod that is to be replaced says nothing of the next one.
    let is_wanted = |pod: &Pod| inputs_of_pod(observed, pod).as_ref() == Some(&inputs);
    let is_ending = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    let goes_on = match (&mut record.tried, &observed.pod) {
        (Some(tried), Some(pod)) if is_it(tried, pod) => {
            tried.ending |= is_ending(pod);
            true
        }
        (tried, Some(pod)) if is_wanted(pod) => {
            let had_ended = tried.as_ref().is_some_and(|before| before.ending);
            *tried = Some(TriedPod {
                pod_uid: pod.uid().unwrap_or_default(),
                ending: is_ending(pod),
                later: tried.is_some(),
            });
            had_ended
        }
        // How it ended was not seen.
        (Some(tried), None) => std::mem::replace(&mut tried.ending, true),
        (Some(_) | None, Some(_)) | (None, None) => true,
    };
    let known = record.startable_at.take().filter(|_| goes_on);
    record.startable_at = startable_since(observed, known, is_wanted, now);
}
