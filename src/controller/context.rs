//! What every pass is given: clients, caches and settings.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node as CoreNode;
use k8s_openapi::api::storage::v1::{CSINode, VolumeAttachment};
use kube::Client;

use super::fleet::Fleet;
use super::launch::{Sent, resend_pause};
use super::retry::Retry;
use super::waiting::Asks;
use crate::api::{ClientToken, InstanceId};
use crate::clock::Clock;
use crate::cloud::Cloud;
use crate::cloud::inventory::Inventory;
use crate::cloud::limits::Limits;
use crate::cloud::offerings::Offerings;
use crate::cluster::mirror::Mirror;
use crate::metrics::Metrics;
use crate::settings::Timing;

/// What every pass is given. Nothing in it is state that a restart would miss: what it remembers is look-up tables and pauses.
pub struct Context {
    /// The API server.
    pub client: Client,
    /// EC2.
    pub cloud: Arc<dyn Cloud>,
    /// What EC2 has of ours.
    pub inventory: Arc<Inventory>,
    /// How fast EC2 may be called.
    pub limits: Arc<Limits>,
    /// Which types have no capacity where.
    pub offerings: Arc<Offerings>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The durations.
    pub timing: Timing,
    /// This cluster's identity in tags and tokens.
    pub cluster_id: String,
    /// When this process started: the last moment at which an earlier one may have sent a call.
    pub process_started: Timestamp,
    /// Pauses after failed passes.
    pub retry: Retry,
    /// This process' sends of creating calls.
    pub sends: Sends,
    /// What this process last asked EC2 to change or end.
    pub asks: Asks,
    /// Which object an EC2 resource or a UID belongs to.
    pub references: References,
    /// The core Nodes that are databases' machines, without their status.
    pub core_nodes: Arc<Mirror<CoreNode>>,
    /// Every VolumeAttachment, without its status: they know no label to select them by.
    pub attachments: Arc<Mirror<VolumeAttachment>>,
    /// Every CSINode: they know no label either.
    pub csi_nodes: Arc<Mirror<CSINode>>,
    /// All Nodes, and the repairs that are underway.
    pub fleet: Fleet,
    /// Counters.
    pub metrics: Arc<Metrics>,
}

/// This process' sends of creating calls, by token.
#[derive(Default)]
pub struct Sends {
    by_token: Mutex<HashMap<ClientToken, Sent>>,
}

impl Sends {
    /// What is known of this token's sends.
    pub fn of(&self, token: &ClientToken) -> Option<Sent> {
        self.by_token.lock().unwrap_or_else(PoisonError::into_inner).get(token).copied()
    }

    /// The call is about to be sent: until its answer is noted, it is in doubt, even if the pass is abandoned. Returns whether the
    /// attempt was in doubt before.
    pub fn starting(&self, token: &ClientToken, now: Timestamp) -> bool {
        let mut by_token = self.by_token.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = by_token.entry(token.clone()).or_insert(Sent {
            last: now,
            times: 0,
            in_doubt: false,
            refused_after_doubt: false,
            not_before: now,
        });
        let was_in_doubt = sent.in_doubt;
        sent.last = now;
        sent.times += 1;
        sent.in_doubt = true;
        was_in_doubt
    }

    /// An attempt that was found at start-up may have been sent by an earlier process: it is in doubt from the start.
    pub fn found_at_start(&self, token: &ClientToken, process_started: Timestamp) {
        self.by_token.lock().unwrap_or_else(PoisonError::into_inner).entry(token.clone()).or_insert(Sent {
            last: process_started,
            times: 0,
            in_doubt: true,
            refused_after_doubt: false,
            not_before: process_started,
        });
    }

    /// The answer left it open whether anything was made; the same call goes out again after a pause.
    pub fn in_doubt(&self, token: &ClientToken, recheck: std::time::Duration, now: Timestamp) {
        self.update(token, |sent| sent.not_before = later(now, resend_pause(sent.times, recheck)));
    }

    /// This send did nothing, and EC2 asks for patience: the attempt is in doubt only if it was before.
    pub fn not_made(&self, token: &ClientToken, was_in_doubt: bool, not_before: Timestamp) {
        self.update(token, |sent| {
            sent.in_doubt = was_in_doubt;
            sent.not_before = not_before;
        });
    }

    /// EC2 refused for certain after an answer in doubt.
    pub fn refused_after_doubt(&self, token: &ClientToken) {
        self.update(token, |sent| sent.refused_after_doubt = true);
    }

    /// The attempt has its id, or is over.
    pub fn forget(&self, token: &ClientToken) {
        self.by_token.lock().unwrap_or_else(PoisonError::into_inner).remove(token);
    }

    fn update(&self, token: &ClientToken, change: impl FnOnce(&mut Sent)) {
        if let Some(sent) = self.by_token.lock().unwrap_or_else(PoisonError::into_inner).get_mut(token) {
            change(sent);
        }
    }
}

/// Which object to wake when something of its own changes. Filled by the passes.
#[derive(Default)]
pub struct References {
    by_uid: Mutex<HashMap<String, (String, String)>>,
    by_instance: Mutex<HashMap<InstanceId, (String, String)>>,
}

impl References {
    /// Remembers the namespace and name of the object with this UID.
    pub fn remember(&self, uid: &str, namespace: &str, name: &str) {
        self.by_uid.lock().unwrap_or_else(PoisonError::into_inner).insert(uid.to_owned(), (namespace.to_owned(), name.to_owned()));
    }

    /// Remembers which Node an instance belongs to.
    pub fn remember_instance(&self, instance: &InstanceId, namespace: &str, name: &str) {
        self.by_instance.lock().unwrap_or_else(PoisonError::into_inner).insert(instance.clone(), (namespace.to_owned(), name.to_owned()));
    }

    /// The namespace and name of the object with this UID.
    pub fn by_uid(&self, uid: &str) -> Option<(String, String)> {
        self.by_uid.lock().unwrap_or_else(PoisonError::into_inner).get(uid).cloned()
    }

    /// The namespace and name of the Node that this instance belongs to.
    pub fn by_instance(&self, instance: &InstanceId) -> Option<(String, String)> {
        self.by_instance.lock().unwrap_or_else(PoisonError::into_inner).get(instance).cloned()
    }

    /// Forgets an object that is gone, and its instances.
    pub fn forget(&self, uid: &str) {
        let Some(place) = self.by_uid.lock().unwrap_or_else(PoisonError::into_inner).remove(uid) else { return };
        self.by_instance.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, other| *other != place);
    }
}

/// `now` plus a duration, or the end of time.
pub fn later(now: Timestamp, duration: std::time::Duration) -> Timestamp {
    SignedDuration::try_from(duration).ok().and_then(|duration| now.checked_add(duration).ok()).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_send_whose_answer_never_came_is_in_doubt_even_if_the_next_one_is_refused() {
        let (sends, token) = (Sends::default(), ClientToken("t".to_owned()));
        assert!(!sends.starting(&token, at(1)), "the first send of an attempt is not in doubt before it");
        assert!(sends.of(&token).unwrap().in_doubt, "an abandoned pass leaves doubt");
        assert!(sends.starting(&token, at(2)));
    }

    #[test]
    fn a_throttled_send_leaves_the_attempt_as_it_was() {
        let (sends, token) = (Sends::default(), ClientToken("t".to_owned()));
        let before = sends.starting(&token, at(1));
        sends.not_made(&token, before, at(9));
        let sent = sends.of(&token).unwrap();
        assert_eq!((sent.in_doubt, sent.not_before), (false, at(9)));
        let before = sends.starting(&token, at(10));
        sends.in_doubt(&token, Duration::from_secs(5), at(11));
        assert!(!before && sends.of(&token).unwrap().in_doubt);
    }

    #[test]
    fn an_attempt_found_at_start_up_is_in_doubt_from_the_start() {
        let (sends, token) = (Sends::default(), ClientToken("t".to_owned()));
        sends.found_at_start(&token, at(5));
        assert!(sends.starting(&token, at(6)));
    }
}
