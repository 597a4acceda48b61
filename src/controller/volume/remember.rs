//! The last step of a pass of the Volume controller: what this process remembers of a Volume until its next
//! pass, and what it forgets of one that is gone. What a restart costs: `controller/memory`.

use kube::ResourceExt;

use super::initialization;
use super::observe::Observed;
use super::plan::action::{Plan, VolumeInterest};
use super::wait::VolumeWait;
use crate::api::{Volume, VolumeStatus};
use crate::cloud::identity::Kind;
use crate::cloud::inventory::{Awaited, Interest};
use crate::controller::creation::judge::last_possible_send;
use crate::controller::pass::acted::Acted;
use crate::controller::pass::context::Context;

/// What a pass has planned and done, as far as later passes need it. `new` is the status that it writes.
pub(super) fn remember(plan: &Plan, acted: &Acted<Volume>, new: &VolumeStatus, ctx: &Context) {
    let volume = &acted.object;
    let uid = volume.uid().unwrap_or_default();
    ctx.references.remember(&uid, &volume.namespace().unwrap_or_default(), &volume.name_any());
    interest(&uid, volume, plan, ctx);
    ctx.inventory.set_initializing(&uid, initialization::awaited(volume, new, ctx.clock.now()));
    let id = volume.status.as_ref().and_then(|status| status.volume_id.as_ref());
    ctx.inventory.set_named(Kind::Volume, &uid, id.filter(|_| !volume.spec.release).map(|id| id.0.as_str()));
}

/// The Volume is gone.
pub(super) fn forget(uid: &str, ctx: &Context) {
    ctx.inventory.forget(Kind::Volume, uid);
    ctx.inventory.forget(Kind::Snapshot, uid);
    ctx.limits.forget(uid);
    ctx.references.forget(uid);
    ctx.sends.forget_object(uid);
}

/// The Volume has lost its finalizer, and its EBS volume is gone, retained or released.
pub(super) fn forget_released(observed: &Observed, ctx: &Context) {
    forget(&observed.volume.uid().unwrap_or_default(), ctx);
    let adopted = observed.volume.spec.adopt.iter().map(|adopt| &adopt.volume_id);
    let recorded = observed.volume.status.iter().filter_map(|status| status.volume_id.as_ref());
    for id in observed.volumes.volumes.iter().map(|volume| &volume.id).chain(adopted).chain(recorded) {
        ctx.issued.forget(&id.0);
    }
}

/// How often EC2 is searched for what belongs to the Volume, and what is to be proven absent.
fn interest(uid: &str, volume: &Volume, plan: &Plan, ctx: &Context) {
    let status = volume.status.clone().unwrap_or_default();
    if plan.interest == VolumeInterest::Settled {
        ctx.inventory.set_interest(Kind::Volume, uid, Interest::Settled);
        ctx.inventory.set_interest(Kind::Snapshot, uid, Interest::Settled);
        return;
    }
    let creation = status.creation.as_ref().filter(|creation| creation.attempt.refused.is_none());
    let last_send = match creation {
        Some(creation) => Some(last_possible_send(
            Some(&creation.attempt),
            ctx.sends.of(&creation.client_token).as_ref(),
            ctx.leading_since,
        )),
        // The status was lost but for the id: its absence can be proven all the same.
        None => status.volume_id.as_ref().map(|_| ctx.leading_since),
    };
    let modifying =
        if plan.interest == VolumeInterest::Modification { status.volume_id.clone() } else { None };
    ctx.inventory.set_interest(
        Kind::Volume,
        uid,
        awaits(plan, Awaited { token: None, last_possible_send: last_send, modifying }),
    );
    if plan.interest == VolumeInterest::Snapshot {
        let attempt = status.final_snapshot.as_ref().map(|snapshot| &snapshot.attempt);
        let last_send = attempt
            .filter(|attempt| attempt.refused.is_none())
            .map(|attempt| last_possible_send(Some(attempt), None, ctx.leading_since));
        let awaited = Awaited { token: None, last_possible_send: last_send, modifying: None };
        ctx.inventory.set_interest(Kind::Snapshot, uid, awaits(plan, awaited));
    }
}

/// How soon a change must be seen.
fn awaits(plan: &Plan, awaited: Awaited) -> Interest {
    if plan.waiting.as_ref().is_some_and(VolumeWait::takes_long) {
        Interest::Slow(awaited)
    } else {
        Interest::Pending(awaited)
    }
}
