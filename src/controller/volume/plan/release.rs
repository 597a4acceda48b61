//! The plan of a Volume that is deleted, and whose EBS volume stays in use without Freehold: what Freehold
//! has put on claim, PersistentVolume and EBS volume is taken off. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::action::{Action, Plan, Stage};
use super::facts::{is_tagged, ownership_tags, proven_absent};
use crate::api::VolumeId;
use crate::api::keys::ATTEMPT_TAG;
use crate::cloud::EbsVolume;
use crate::cloud::call::Call;
use crate::controller::memory::issued_requests::{Again, again};
use crate::controller::volume::adopted;
use crate::controller::volume::observe::{ById, Observed};
use crate::controller::volume::wait::VolumeWait;
use crate::controller::volume::wait::adopted::AdoptedWait;
use crate::controller::volume::wait::deletion::DeletionWait;
use crate::time::later;

/// The claim is not owned any more before the PersistentVolume may have its former reclaim policy back, and
/// the tags are seen to be gone last.
pub(super) fn plan(observed: &Observed, id: &VolumeId, now: Timestamp) -> Plan {
    let volume = &observed.volume;
    let claim = observed.claim.as_ref();
    let mut actions = Vec::new();
    let record = observed.persistent_volume.as_ref();
    let freed = claim.and_then(|claim| adopted::release_claim(claim, record, volume));
    actions.extend(freed.map(Action::DisownClaim));
    let given_back = record.and_then(|record| adopted::give_back(record, claim, volume));
    actions.extend(given_back.map(Action::GiveBackRecord));
    let recheck = observed.timing.requeue_interval;
    let shown = match &observed.by_id {
        // Pending, since a proof of absence would be forgotten otherwise.
        ById::NotRead => return reads(observed, id, actions).pending(),
        ById::NotShown if is_awaited(observed) => {
            let plan = Plan::act(Stage::Nothing, actions, DeletionWait::ProvingAbsence(id.clone()));
            return plan.pending().after(recheck.saturating_mul(12));
        }
        ById::NotShown => None,
        ById::Shown(shown) => Some(shown),
    };
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

/// Whether EC2 must still show the EBS volume: one that it does not show for a moment would keep its tags.
/// One that was never recorded has none.
fn is_awaited(observed: &Observed) -> bool {
    let status = observed.volume.status.as_ref();
    let is_recorded = status.is_some_and(|status| status.volume_id.is_some());
    let creation = status.and_then(|status| status.creation.as_ref());
    is_recorded && proven_absent(observed, creation).is_none()
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
