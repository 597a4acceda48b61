//! Lists of what the account has: every page, or an error.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::Filter;

use super::requests::{self, Gathered, Selection};
use super::whole::incomplete;
use super::{Ec2, convert, failed};
use crate::api::VolumeId;
use crate::cloud::call::Call;
use crate::cloud::{
    CloudError, EbsVolume, Instance, InstanceHealth, InstanceQuery, Modification, Snapshot, VolumeQuery,
};

impl Ec2 {
    pub(super) async fn instances(&self, query: &InstanceQuery) -> Result<Vec<Instance>, CloudError> {
        let call = Call::DescribeInstances;
        let mut instances = Vec::new();
        for selection in requests::instance_selections(query) {
            let mut gathered = Gathered::new(call);
            let mut pages = match selection {
                Selection::Filters(filters) => self
                    .reads
                    .describe_instances()
                    .set_filters(Some(filters))
                    .into_paginator()
                    .page_size(requests::INSTANCE_PAGE)
                    .send(),
                // EC2 takes no page size together with ids.
                Selection::Ids(ids) => {
                    self.reads.describe_instances().set_instance_ids(Some(ids)).into_paginator().send()
                }
            };
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| failed(call, &error))?;
                gathered.add(page.reservations, page.next_token)?;
            }
            for reservation in gathered.finish()? {
                for instance in
                    reservation.instances.ok_or_else(|| incomplete(call, "instances in a reservation"))?
                {
                    instances.push(convert::instance(call, instance)?);
                }
            }
        }
        Ok(instances)
    }

    pub(super) async fn unhealthy_instances(&self) -> Result<Vec<InstanceHealth>, CloudError> {
        let call = Call::DescribeInstanceStatus;
        let mut unhealthy = BTreeMap::new();
        for filter in requests::health_filters() {
            let mut gathered = Gathered::new(call);
            let mut pages = self
                .reads
                .describe_instance_status()
                .filters(filter)
                .into_paginator()
                .page_size(requests::INSTANCE_PAGE)
                .send();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| failed(call, &error))?;
                gathered.add(page.instance_statuses, page.next_token)?;
            }
            for status in gathered.finish()? {
                let (id, health) = convert::health(call, status)?;
                unhealthy.insert(id, health);
            }
        }
        Ok(unhealthy.into_values().flatten().collect())
    }

    pub(super) async fn tagged(&self, key: &str, value: &str) -> Result<Vec<String>, CloudError> {
        let call = Call::DescribeTags;
        let mut gathered = Gathered::new(call);
        let request = self.reads.describe_tags().set_filters(Some(requests::tagged_filters(key, value)));
        let mut pages = request.into_paginator().page_size(requests::INSTANCE_PAGE).send();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| failed(call, &error))?;
            gathered.add(page.tags, page.next_token)?;
        }
        gathered.finish()?.into_iter().map(|tag| convert::tagged(call, tag)).collect()
    }

    pub(super) async fn volumes(&self, query: &VolumeQuery) -> Result<Vec<EbsVolume>, CloudError> {
        let call = Call::DescribeVolumes;
        let mut volumes = Vec::new();
        for filters in requests::volume_filters(query) {
            let mut gathered = Gathered::new(call);
            let mut pages = self
                .reads
                .describe_volumes()
                .set_filters(Some(filters))
                .into_paginator()
                .page_size(requests::VOLUME_PAGE)
                .send();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| failed(call, &error))?;
                gathered.add(page.volumes, page.next_token)?;
            }
            for volume in gathered.finish()? {
                volumes.push(convert::volume(call, volume)?);
            }
        }
        Ok(volumes)
    }

    pub(super) async fn modifications(&self, ids: &[VolumeId]) -> Result<Vec<Modification>, CloudError> {
        let call = Call::DescribeVolumesModifications;
        let mut newest: BTreeMap<VolumeId, Modification> = BTreeMap::new();
        // By filter: a list of ids fails whole for one volume that was never modified.
        for filters in requests::volume_filters(&VolumeQuery::Ids(ids.to_vec())) {
            let mut gathered = Gathered::new(call);
            let request = self.reads.describe_volumes_modifications().set_filters(Some(filters));
            let mut pages = request.into_paginator().page_size(requests::VOLUME_PAGE).send();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| failed(call, &error))?;
                gathered.add(page.volumes_modifications, page.next_token)?;
            }
            for modification in gathered.finish()? {
                let modification = convert::modification(call, modification)?;
                let is_newer = newest
                    .get(&modification.volume)
                    .is_none_or(|known| modification.started_at >= known.started_at);
                if is_newer {
                    newest.insert(modification.volume.clone(), modification);
                }
            }
        }
        Ok(newest.into_values().collect())
    }

    pub(super) async fn snapshots(&self, filters: Vec<Filter>) -> Result<Vec<Snapshot>, CloudError> {
        let call = Call::DescribeSnapshots;
        let mut gathered = Gathered::new(call);
        // Without an owner EC2 searches the public snapshots of the whole Region, too.
        let request = self.reads.describe_snapshots().owner_ids("self").set_filters(Some(filters));
        let mut pages = request.into_paginator().page_size(requests::INSTANCE_PAGE).send();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| failed(call, &error))?;
            gathered.add(page.snapshots, page.next_token)?;
        }
        gathered.finish()?.into_iter().map(|snapshot| convert::snapshot(call, snapshot)).collect()
    }
}
