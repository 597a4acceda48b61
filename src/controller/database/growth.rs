//! How large the volume of a database is to be that grows by itself. Pure.

use std::time::Duration;

use jiff::Timestamp;

use crate::api::database::{AutoGrow, Unmeasured, largest_size};
use crate::api::{Database, Size, Volume};
use crate::cluster::kubelet::DiskUsage;
use crate::controller::memory::disk_usage::Reading;
use crate::time::later;

/// How old a reading may be, in so many intervals and at least: the task that reads has ended otherwise.
const FRESH: (u32, Duration) = (5, Duration::from_secs(300));

/// By how many percentage points of the volume's size less than the threshold is used after a growth. A
/// kubelet says for minutes what it saw before the volume grew: of the new size that is less than this, so
/// that one need is answered once.
const LEFT: u64 = 5;

/// What is judged.
pub struct Facts<'a> {
    /// The Database.
    pub database: &'a Database,
    /// Its Volume.
    pub volume: Option<&'a Volume>,
    /// What the kubelet said last.
    pub reading: Option<&'a Reading>,
    /// The interval between two readings.
    pub interval: Duration,
}

/// What is known of the file system, and what follows. Sizes in GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// There is nothing to watch: the database has no policy, no volume, or is not running.
    Idle,
    /// Nothing was read yet.
    Unread,
    /// It is not known how much is used.
    Unmeasured(Unmeasured),
    /// Less is used than the threshold.
    Enough,
    /// Much of the file system is used, and little of the size that the Volume requests: the growth has not
    /// arrived, or the reading is from before it.
    Arriving,
    /// Much is used, and the volume has as much as the policy or EBS permits.
    AtMaximum,
    /// Much is used: the volume is to have so many GiB.
    Grow(i32),
}

/// What follows from what is known.
pub fn judge(facts: &Facts, now: Timestamp) -> Judgement {
    let Facts { database, volume, reading, interval } = facts;
    let (Some(policy), Some(volume)) = (&database.spec.storage.auto_grow, volume) else {
        return Judgement::Idle;
    };
    let is_ending = volume.metadata.deletion_timestamp.is_some() || volume.spec.release;
    let (Some(has), true, false) = (volume.spec.size.gib(), database.spec.running, is_ending) else {
        return Judgement::Idle;
    };
    let Some(reading) = reading else { return Judgement::Unread };
    let usage = match reading.usage {
        Ok(_) if now >= later(reading.at, interval.saturating_mul(FRESH.0).max(FRESH.1)) => {
            return Judgement::Unmeasured(Unmeasured::Unreachable);
        }
        Ok(usage) if usage.capacity > bytes(largest_known(volume)) => {
            return Judgement::Unmeasured(Unmeasured::Unreadable);
        }
        Ok(usage) => usage,
        Err(why) => return Judgement::Unmeasured(why),
    };
    if usage.used_percent() < within(policy.threshold_percent, 50, 95) {
        return Judgement::Enough;
    }
    let size = next(policy, has, usage);
    let most = policy.max_size.gib().unwrap_or(0).min(largest_size(&volume.spec.volume_type));
    if size == has {
        Judgement::Arriving
    } else if has >= most {
        Judgement::AtMaximum
    } else {
        Judgement::Grow(size.min(most))
    }
}

/// The size that a volume has, or that a Database without one begins with, where it is more than the spec
/// requests and Freehold may have given it: there is a policy, or it is recorded.
pub fn in_effect(database: &Database, has: Option<&Size>) -> Option<Size> {
    let (storage, status) = (&database.spec.storage, database.status.as_ref());
    let has = has.or_else(|| status?.restored.as_ref()?.size.as_ref())?;
    let recorded = status.and_then(|status| status.auto_grow.as_ref()?.size.as_ref());
    let is_grown = storage.auto_grow.is_some() || recorded == Some(has);
    (is_grown && has.gib() > Some(storage.size.gib()?)).then(|| has.clone())
}

/// The size that the volume has or is to have: no file system on it is larger.
fn largest_known(volume: &Volume) -> i32 {
    let shown = volume.status.as_ref().and_then(|status| status.size.as_ref()?.gib());
    shown.max(volume.spec.size.gib()).unwrap_or_default()
}

fn bytes(gib: i32) -> u64 {
    u64::try_from(gib).unwrap_or_default() << 30
}

/// The size, in GiB, after as many steps as leave what is used well below the threshold; the most that EC2's
/// field holds where that is more.
fn next(policy: &AutoGrow, has: i32, usage: DiskUsage) -> i32 {
    let (threshold, step) = (within(policy.threshold_percent, 50, 95), within(policy.step_percent, 10, 100));
    let mut size = u64::try_from(has).unwrap_or_default();
    while u128::from(usage.used()) * 100 >= (u128::from(size) << 30) * u128::from(threshold - LEFT) {
        size += (size * step).div_ceil(100);
    }
    i32::try_from(size).unwrap_or(i32::MAX)
}

fn within(value: i32, least: i32, most: i32) -> u64 {
    u64::try_from(value.clamp(least, most)).unwrap_or_default()
}
