//! The part of the plan that gives a volume more size when its file system fills up. Pure.
//!
//! What was decided stands in the spec of the Volume and nowhere else: its size never becomes less. The rest
//! of the plan is made for a Database whose spec requests that size, as if a person had raised it, so that
//! the limits of the NodeClass, the modifications that EC2 allows and the growth of the file system are those
//! of any other change of the size.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::leaving::is_leaving;
use super::permission;
use crate::api::Size;
use crate::api::database::{AutoGrowState, AutoGrowStatus};
use crate::controller::database::growth::{Facts, Judgement, judge, wanted};
use crate::controller::database::observe::Observed;
use crate::time::whole_second;

fn facts(observed: &Observed) -> Facts<'_> {
    Facts {
        database: &observed.database,
        class: observed.class.as_ref(),
        volume: observed.volume.ours(),
        reading: observed.disk.as_ref(),
        interval: observed.timing.disk_usage_interval,
    }
}

/// The world in which the spec requests the size that is wanted; `None` where it does so by itself.
pub(super) fn in_effect(observed: &Observed, now: Timestamp) -> Option<Observed> {
    let size = wanted(&facts(observed), now)?;
    let with = |size: i32| {
        let mut world = observed.clone();
        world.database.spec.storage.size = Size::from_gib(size);
        world
    };
    let grown = with(size);
    let has = observed.volume.ours()?.spec.size.gib()?;
    if size > has && permission::storage(&grown).is_some() {
        let spec = observed.database.spec.storage.size.gib()?;
        return (has > spec).then(|| with(has));
    }
    Some(grown)
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
    let size = grown_to(observed);
    let judgement = judge(&facts(observed), now);
    let state = match judgement {
        _ if observed.database.spec.storage.auto_grow.is_none() => {
            size.as_ref()?;
            AutoGrowState::Off
        }
        Judgement::Idle | Judgement::Enough => AutoGrowState::Watching,
        Judgement::Unmeasured => AutoGrowState::Unmeasured,
        Judgement::AtMaximum if is_limited_by_class(observed) => AutoGrowState::NotPermitted,
        Judgement::AtMaximum => AutoGrowState::AtMaximum,
        Judgement::Waiting => AutoGrowState::Growing,
        Judgement::Grow(size) if in_effect(observed, now).is_none_or(|world| !requests(&world, size)) => {
            AutoGrowState::NotPermitted
        }
        Judgement::Grow(_) => AutoGrowState::Growing,
    };
    let unmeasured = observed.disk.as_ref().and_then(|reading| reading.usage.err());
    let was = before.as_ref().and_then(|before| before.size.as_ref());
    let grown_at = if size.as_ref() == was {
        before.and_then(|before| before.grown_at)
    } else {
        size.as_ref().map(|_| Time(whole_second(now)))
    };
    let unmeasured = unmeasured.filter(|_| state == AutoGrowState::Unmeasured);
    Some(AutoGrowStatus { state, unmeasured, size, grown_at })
}

fn requests(world: &Observed, size: i32) -> bool {
    world.database.spec.storage.size.gib() == Some(size)
}

/// Whether the NodeClass is what permits no more.
fn is_limited_by_class(observed: &Observed) -> bool {
    let policy = observed.database.spec.storage.auto_grow.as_ref();
    let has = observed.volume.ours().and_then(|volume| volume.spec.size.gib());
    policy.and_then(|policy| policy.max_size.gib()) > has
}

/// The size of the Volume, where it is more than the spec's and Freehold may have given it.
fn grown_to(observed: &Observed) -> Option<Size> {
    let storage = &observed.database.spec.storage;
    let volume = &observed.volume.ours()?.spec;
    let may_have_grown = storage.auto_grow.is_some() || volume.auto_grown;
    (may_have_grown && volume.size.gib() > storage.size.gib()).then(|| volume.size.clone())
}
