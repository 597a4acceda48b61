//! Volumes that are read from their snapshots: at which rate, and how far.
//!
//! Source: EBS user guide, "Initialize Amazon EBS volumes" and "Monitor the status of Amazon EBS volume
//! initialization"; `API_CreateVolume`; `API_InitializationStatusDetails`.

use std::time::Duration;

use super::{
    Effects, Model,
    dry_run::refuse_dry_run,
    lists::{Query, VOLUMES},
};
use crate::{
    Initialization, InitializationProgress, Page, Refusal, Response, Truth, VolumeStatusView, VolumeView,
    params::Reader,
};

/// The range of a provisioned rate, in MiB a second.
const RATES: std::ops::RangeInclusive<u32> = 100..=300;

/// The rate without a provisioned one, in MiB a second: AWS names none, and says that it fluctuates. This one
/// is lower than each that can be provisioned.
const DEFAULT_RATE: u32 = 50;

const MIB_A_GIB: u64 = 1024;

impl Model {
    /// How a volume that is created now is read from its snapshot of this size in GiB; none without one. EC2
    /// promises nothing of blocks that the snapshot does not have: all of them are read here.
    pub(super) fn read_initialization(
        &self,
        r: &mut Reader,
        snapshot: Option<u32>,
    ) -> Result<Option<Initialization>, Refusal> {
        let rate: Option<u32> = r.number("VolumeInitializationRate")?;
        if let Some(rate) = rate
            && self.holds(Truth::InitializationRateRange)
        {
            if snapshot.is_none() {
                return Err(Refusal::combination(
                    "VolumeInitializationRate is supported only for volumes created from snapshots",
                ));
            }
            if !RATES.contains(&rate) {
                return Err(Refusal::value(format!("The initialization rate {rate} is not 100 to 300")));
            }
        }
        let Some(size) = snapshot.map(u64::from) else { return Ok(None) };
        let seconds = (size * MIB_A_GIB).div_ceil(u64::from(rate.unwrap_or(DEFAULT_RATE)).max(1));
        let takes = if self.holds(Truth::InitializationTakesTime) { seconds } else { 0 };
        Ok(Some(Initialization { rate, ends_at: self.state.now + Duration::from_secs(takes) }))
    }

    pub(super) fn describe_volume_status(
        &self,
        r: &mut Reader,
        effects: &Effects,
    ) -> Result<Response, Refusal> {
        let known = ["availability-zone"];
        let query = Query::read(r, "VolumeId", &known, &VOLUMES, &self.rules.truths)?;
        let dry_run = r.flag("DryRun")?;
        r.finish()?;
        refuse_dry_run(dry_run)?;
        let Page { items, next_token } = self.volume_page(&query, effects)?;
        let items = items.into_iter().map(|volume| {
            let initialization = self.progress(&volume);
            VolumeStatusView { volume, initialization }
        });
        Ok(Response::VolumeStatuses(Page { items: items.collect(), next_token }))
    }

    fn progress(&self, volume: &VolumeView) -> Option<InitializationProgress> {
        let Initialization { rate, ends_at } = volume.initialization.as_ref()?;
        let seconds = |time: jiff::SignedDuration| u64::try_from(time.as_secs()).unwrap_or_default();
        let total = seconds(ends_at.duration_since(volume.created_at));
        let left = seconds(ends_at.duration_since(self.state.now));
        let read = (total.saturating_sub(left) * 100).checked_div(total).unwrap_or(100);
        Some(InitializationProgress {
            is_provisioned: rate.is_some(),
            progress: u8::try_from(read).unwrap_or(100),
            seconds_left: left,
        })
    }
}
