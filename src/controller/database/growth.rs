//! How large the volume of a database is to be that grows by itself. Pure.

use std::time::Duration;

use jiff::Timestamp;

use crate::api::database::AutoGrow;
use crate::api::{ConditionType, Database, NodeClass, Volume};
use crate::cluster::kubelet::DiskUsage;
use crate::controller::conditions;
use crate::controller::memory::disk_usage::Reading;
use crate::time::later;

/// How old a reading may be, in so many intervals: the task that reads has ended otherwise.
const FRESH: u32 = 5;

/// How long after the last change of the volume a reading counts, in so many intervals: the kubelet looks
/// once a minute, too, and says until then what it saw before the change.
const SETTLED: u32 = 3;

/// What the plan is made from: values that are known before everything else is read.
pub(super) struct Facts<'a> {
    /// The Database.
    pub database: &'a Database,
    /// Its NodeClass.
    pub class: Option<&'a NodeClass>,
    /// Its Volume.
    pub volume: Option<&'a Volume>,
    /// What the kubelet said last.
    pub reading: Option<&'a Reading>,
    /// The interval between two readings.
    pub interval: Duration,
}

/// What is known of the file system, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// There is nothing to watch: the database has no policy, no volume, or is not running.
    Idle,
    /// Nothing is known.
    Unmeasured,
    /// Little is used.
    Enough,
    /// Much is used, and the volume has as much as the policy or the NodeClass permits.
    AtMaximum,
    /// Much is used, and the last change of the volume is not complete, or has not been measured yet.
    Waiting,
    /// Much is used: the volume is to have so many GiB.
    Grow(i32),
}

/// The size that is wanted where it is more than the spec's, in GiB: what the volume has, where Freehold may
/// have grown it, or what it is to have.
pub(super) fn wanted(facts: &Facts, now: Timestamp) -> Option<i32> {
    let storage = &facts.database.spec.storage;
    let volume = &facts.volume?.spec;
    if storage.auto_grow.is_none() && !volume.auto_grown {
        return None;
    }
    let (spec, has) = (storage.size.gib()?, volume.size.gib()?);
    let to = if let Judgement::Grow(size) = judge(facts, now) { size } else { has };
    Some(to).filter(|to| *to > spec)
}

/// What follows from what is known.
pub(super) fn judge(facts: &Facts, now: Timestamp) -> Judgement {
    let Facts { database, class, volume, reading, interval } = facts;
    let (Some(policy), Some(volume)) = (&database.spec.storage.auto_grow, volume) else {
        return Judgement::Idle;
    };
    let is_leaving = volume.metadata.deletion_timestamp.is_some() || volume.spec.release;
    if !database.spec.running || is_leaving {
        return Judgement::Idle;
    }
    let (Some(spec), Some(has)) = (database.spec.storage.size.gib(), volume.spec.size.gib()) else {
        return Judgement::Idle;
    };
    let fresh = reading.filter(|it| now < later(it.at, interval.saturating_mul(FRESH)));
    let Some((at, Ok(usage))) = fresh.map(|it| (it.at, it.usage)) else { return Judgement::Unmeasured };
    if usage.used_percent() < within(policy.threshold_percent, 50, 95) {
        return Judgement::Enough;
    }
    let of_class = class.and_then(|class| class.spec.limits.storage.as_ref()?.gib());
    let most = policy.max_size.gib().unwrap_or(0).min(of_class.unwrap_or(i32::MAX));
    let ready = conditions::since(volume.conditions(), ConditionType::Ready, true);
    let is_measured = ready.is_some_and(|since| at >= later(since, interval.saturating_mul(SETTLED)));
    if has.max(spec) >= most {
        Judgement::AtMaximum
    } else if spec > has || !is_settled(volume) || !is_measured || !fills(usage, has) {
        Judgement::Waiting
    } else {
        Judgement::Grow(next(policy, has, usage.used_percent()).min(most))
    }
}

/// Whether the file system is as large as a volume of so many GiB, but for what it keeps for itself: the growth
/// before has arrived in what was read, and it is this volume's. Without that one need would be answered
/// again and again, up to the largest size.
fn fills(usage: DiskUsage, gib: i32) -> bool {
    let volume = u128::from(u64::try_from(gib).unwrap_or_default()) << 30;
    u128::from(usage.capacity) * 10 >= volume * 9
}

/// The size, in GiB, after as many steps as leave less used than the threshold; the most that EC2's field
/// holds where that is more.
fn next(policy: &AutoGrow, has: i32, used_percent: u64) -> i32 {
    let (threshold, step) = (within(policy.threshold_percent, 50, 95), within(policy.step_percent, 10, 100));
    let has = u64::try_from(has).unwrap_or_default();
    let mut size = has;
    loop {
        size += (size * step).div_ceil(100);
        if used_percent * has < threshold * size {
            return i32::try_from(size).unwrap_or(i32::MAX);
        }
    }
}

fn within(value: i32, least: i32, most: i32) -> u64 {
    u64::try_from(value.clamp(least, most)).unwrap_or_default()
}

/// Whether the volume is as its newest spec says.
fn is_settled(volume: &Volume) -> bool {
    let seen = volume.status.as_ref().and_then(|status| status.observed_generation);
    seen == volume.metadata.generation && conditions::is_true(volume.conditions(), ConditionType::Ready)
}
