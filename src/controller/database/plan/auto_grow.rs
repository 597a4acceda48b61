//! The part of the plan that gives a volume more size when its file system fills up. Pure.
//!
//! What was decided stands in the spec of the Volume: its size never becomes less. The rest of the plan is
//! made for a Database whose spec requests that size (`grown_world`), as if a person had raised it, so that
//! the modifications that EC2 allows and the growth of the file system are those of any other change. To grow
//! is added to whatever that plan does or waits for (`grown`): a full disk must not wait for a person's
//! mistake in another field.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::json;

use super::action::{Action, Plan};
use super::leaving::is_leaving;
use super::{permission, total_storage};
use crate::api::database::{AutoGrowState, AutoGrowStatus, Unmeasured};
use crate::api::{Size, Volume};
use crate::controller::database::growth::{Facts, Judgement, in_effect, judge};
use crate::controller::database::in_place::{is_wanted, underway};
use crate::controller::database::object_name::{ObjectKind, ObjectName};
use crate::controller::database::observe::Observed;
use crate::controller::database::wait::DatabaseWait;
use crate::controller::retention;
use crate::time::whole_second;

/// The part of the volume, as its divisor, that a growth must be at least where `limits.totalStorage` leaves
/// less room than it needs.
const LEAST_PART: i32 = 20;

/// What becomes of a file system that fills up.
enum Growth {
    /// The volume is to have so many GiB, which is more than it has.
    To(i32),
    /// EC2 was not listed yet, so that what the namespace has is not known.
    NotCounted,
    /// The NodeClass permits no more.
    NotPermitted,
}

/// The world in which the spec requests what the volume has grown to; `None` where it does so by itself.
pub(in crate::controller::database) fn grown_world(observed: &Observed) -> Option<Observed> {
    let size = size_in_effect(observed)?;
    let mut world = observed.clone();
    world.database.spec.storage.size = size;
    Some(world)
}

/// The plan, and with it what gives the volume more size. `observed` is the world that the plan was made for.
pub(super) fn grown(mut plan: Plan, observed: &Observed, now: Timestamp) -> Plan {
    // One that makes room for another has its size.
    let record = underway(&observed.database);
    let stays = |volume: &Volume| record.is_none_or(|record| is_wanted(record, volume));
    let Some(volume) = observed.volume.ours().filter(|it| !is_leaving(observed) && stays(it)) else {
        return plan;
    };
    let Judgement::Grow(to) = judge(&facts(observed), now) else { return plan };
    let Growth::To(size) = permitted(observed, to) else { return plan };
    let update = plan.actions.iter().position(|action| matches!(action, Action::UpdateVolume(..)));
    let mut patch = match update.map(|update| plan.actions.remove(update)) {
        Some(Action::UpdateVolume(_, patch)) => patch,
        Some(_) | None => json!({}),
    };
    // A person may have requested more at the same time.
    let requested = patch["size"].as_str().and_then(|size| Size(size.to_owned()).gib());
    patch["size"] = json!(Size::from_gib(size.max(requested.unwrap_or(0))));
    // First, as a later action may fail again and again: another object that the API server refuses.
    plan.actions.insert(0, Action::UpdateVolume(volume.uid().unwrap_or_default(), patch));
    let updating = ObjectName::new(ObjectKind::Volume, &observed.names.volume);
    plan.waiting.get_or_insert(DatabaseWait::UpdatingChild(updating));
    plan
}

/// What the status says of it; `before` is what it said.
pub(in crate::controller::database) fn shown(
    observed: &Observed,
    before: Option<AutoGrowStatus>,
    now: Timestamp,
) -> Option<AutoGrowStatus> {
    if is_leaving(observed) {
        return before;
    }
    let size = size_in_effect(observed);
    if observed.database.spec.storage.auto_grow.is_none() && size.is_none() {
        return None;
    }
    let (state, unmeasured) = state(observed, before.as_ref(), now);
    let is_same = before.as_ref().is_some_and(|before| before.size == size);
    let grown_at = if is_same {
        before.and_then(|before| before.grown_at)
    } else {
        size.as_ref().map(|_| Time(whole_second(now)))
    };
    Some(AutoGrowStatus { state, unmeasured, size, grown_at })
}

fn state(
    observed: &Observed,
    before: Option<&AutoGrowStatus>,
    now: Timestamp,
) -> (AutoGrowState, Option<Unmeasured>) {
    let as_before = || {
        let before = before.filter(|before| before.state != AutoGrowState::Off);
        (
            before.map_or(AutoGrowState::Unmeasured, |before| before.state),
            before.and_then(|before| before.unmeasured),
        )
    };
    let state = match judge(&facts(observed), now) {
        Judgement::Idle => AutoGrowState::Off,
        Judgement::Unread => return as_before(),
        Judgement::Unmeasured(why) => return (AutoGrowState::Unmeasured, Some(why)),
        Judgement::Enough => AutoGrowState::Watching,
        Judgement::Arriving => AutoGrowState::Growing,
        Judgement::AtMaximum => AutoGrowState::AtMaximum,
        Judgement::Grow(to) => match permitted(observed, to) {
            Growth::To(_) => AutoGrowState::Growing,
            Growth::NotPermitted => AutoGrowState::NotPermitted,
            Growth::NotCounted => return as_before(),
        },
    };
    (state, None)
}

pub(in crate::controller::database) fn facts(observed: &Observed) -> Facts<'_> {
    Facts {
        database: &observed.database,
        volume: observed.volume.ours(),
        reading: observed.disk.as_ref(),
        interval: observed.timing.disk_usage_interval,
    }
}

/// The size that the volume has, or that the Database begins with, where it is more than the spec requests
/// and Freehold may have given it.
fn size_in_effect(observed: &Observed) -> Option<Size> {
    let retained = || {
        let name = observed.database.spec.storage.adopt_retained.as_ref()?;
        let (record, namespace) = (observed.kept.record.as_ref(), observed.kept.namespace_uid.as_deref());
        retention::may_adopt(name, record, &observed.database, namespace).ok()?.size
    };
    let has = observed.volume.ours().map(|volume| volume.spec.size.clone()).or_else(retained);
    in_effect(&observed.database, has.as_ref())
}

/// How far the volume may grow on its way to so many GiB: all of it, or as far as the NodeClass permits.
fn permitted(observed: &Observed, to: i32) -> Growth {
    let (Some(class), None) = (&observed.class, permission::class(observed)) else {
        return Growth::NotPermitted;
    };
    let has = observed.volume.ours().and_then(|volume| volume.spec.size.gib()).unwrap_or_default();
    let most = class.spec.limits.storage.as_ref().map_or(i32::MAX, |most| most.gib().unwrap_or(0));
    let to = to.min(most);
    match total_storage::room(observed, to) {
        None => Growth::NotCounted,
        Some(room) if has < to && to - has <= room => Growth::To(to),
        // EC2 allows few modifications in a day: none is spent on a few GiB.
        Some(room) if has < to && room >= has / LEAST_PART => Growth::To(has.saturating_add(room)),
        Some(_) => Growth::NotPermitted,
    }
}
