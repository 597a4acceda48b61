//! How far volumes are read from their snapshots, by DescribeVolumeStatus.

use super::requests::Gathered;
use super::{Ec2, convert, failed};
use crate::api::VolumeId;
use crate::cloud::call::Call;
use crate::cloud::{CloudError, Initialization, VALUES_PER_FILTER};

impl Ec2 {
    /// By id: this call has no filter for volumes, and takes no page size together with ids.
    pub(super) async fn initializations(&self, ids: &[VolumeId]) -> Result<Vec<Initialization>, CloudError> {
        let call = Call::DescribeVolumeStatus;
        let mut found = Vec::new();
        for ids in ids.chunks(VALUES_PER_FILTER) {
            let mut gathered = Gathered::new(call);
            let ids = ids.iter().map(|id| id.0.clone()).collect();
            let mut pages =
                self.reads.describe_volume_status().set_volume_ids(Some(ids)).into_paginator().send();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| failed(call, &error))?;
                gathered.add(page.volume_statuses, page.next_token)?;
            }
            for status in gathered.finish()? {
                found.extend(convert::initialization(call, status)?);
            }
        }
        Ok(found)
    }
}
