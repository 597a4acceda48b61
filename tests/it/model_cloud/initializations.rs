//! How far volumes are read from their snapshots, by DescribeVolumeStatus.

use std::time::Duration;

use ec2sim::{InitializationProgress, Response, VolumeStatusView};
use freehold::api::VolumeId;
use freehold::cloud::{CloudError, Initialization};

use super::ModelCloud;
use super::params::param;

impl ModelCloud {
    pub(super) async fn initializations(&self, ids: &[VolumeId]) -> Result<Vec<Initialization>, CloudError> {
        if ids.is_empty() {
            return Ok(vec![]);
        }
        let params = ids.iter().enumerate().map(|(n, id)| param(format!("VolumeId.{}", n + 1), id));
        let statuses = self
            .list("DescribeVolumeStatus", &params.collect(), |answer| {
                if let Response::VolumeStatuses(page) = answer { Some(page) } else { None }
            })
            .await?;
        Ok(statuses.into_iter().filter_map(initialization).collect())
    }
}

fn initialization(view: VolumeStatusView) -> Option<Initialization> {
    let InitializationProgress { is_provisioned, progress, seconds_left } = view.initialization?;
    Some(Initialization {
        volume: VolumeId(view.volume.id),
        progress: i32::from(progress),
        left: is_provisioned.then(|| Duration::from_secs(seconds_left)),
    })
}
