//! The plan of a Volume that is deleted, and whose EBS volume stays in use without Freehold: what Freehold
//! has put on claim, PersistentVolume and EBS volume is taken off. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::action::{Action, Plan, Stage};
use super::facts::{is_tagged, ownership_tags};
use crate::api::VolumeId;
use crate::api::keys::ATTEMPT_TAG;
use crate::cloud::EbsVolume;
use crate::cloud::call::Call;
use crate::controller::memory::issued_requests::{Again, again};
use crate::controller::volume::adopted;
use crate::controller::volume::observe::{ById, Observed};
use crate::controller::volume::wait::VolumeWait;
use crate::controller::volume::wait::adopted::AdoptedWait;
use crate::time::later;

/// The claim is not owned any more before the PersistentVolume may have its former reclaim policy back, and
/// the tags are seen to be gone last.
pub(super) fn plan(observed: &Observed, id: &VolumeId, now: Timestamp) -> Plan {
    let volume = &observed.volume;
    let claim = observed.claim.as_ref();
    let mut actions = Vec::new();
    actions.extend(claim.and_then(|claim| adopted::disown(claim, volume)).map(Action::DisownClaim));
    let record = observed.persistent_volume.as_ref();
    let given_back = record.and_then(|record| adopted::give_back(record, claim, volume));
    actions.extend(given_back.map(Action::GiveBackRecord));
    let shown = match &observed.by_id {
        ById::NotRead => return reads(observed, id, actions),
        ById::NotShown => None,
        ById::Shown(shown) => Some(shown),
    };
    let recheck = observed.timing.requeue_interval;
    let Some(shown) = shown.filter(|shown| is_tagged(observed, shown)) else {
        let tagged = observed.issued.get(&Call::CreateTags).map(|tagged| later(tagged.at, recheck));
        // What was tagged a moment ago may not be shown yet.
        if let Some(shown_from) = tagged.filter(|shown_from| now < *shown_from) {
            let wait = AdoptedWait::GivingBack(id.clone());
            return Plan::act(Stage::Nothing, actions, wait).until(shown_from, now);
        }
        actions.push(Action::RemoveFinalizer);
        return Plan::act(Stage::Nothing, actions, AdoptedWait::GivenBack(id.clone()));
    };
    // EC2 was just read.
    match again(observed.issued.get(&Call::DeleteTags), Some(now), recheck, now) {
        Again::Now => actions.push(Action::Untag(id.clone(), tags(observed, shown))),
        Again::OnceShown => {}
        Again::Later(call_blocked, until) => {
            let wait = VolumeWait::Blocked(call_blocked.clone());
            return Plan::act(Stage::Nothing, actions, wait).until(until, now);
        }
    }
    Plan::act(Stage::Nothing, actions, AdoptedWait::GivingBack(id.clone())).after(recheck)
}

/// EC2 is to be read first; this much can be done before.
pub(super) fn reads(observed: &Observed, id: &VolumeId, actions: Vec<Action>) -> Plan {
    let plan = Plan::act(Stage::Nothing, actions, AdoptedWait::Reading(id.clone()));
    Plan { look_up: Some(id.clone()), ..plan.after(observed.timing.requeue_interval) }
}

/// The tags to take off: whose it is, and of one that Freehold has created the attempt. Its Name stays.
fn tags(observed: &Observed, shown: &EbsVolume) -> BTreeMap<String, String> {
    let attempt = shown.tags.get(ATTEMPT_TAG).filter(|_| observed.volume.spec.adopt.is_none());
    let mut tags = ownership_tags(observed);
    tags.extend(attempt.map(|attempt| (ATTEMPT_TAG.to_owned(), attempt.clone())));
    tags
}
