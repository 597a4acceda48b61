//! Lists: every page, or an error.

use std::collections::BTreeMap;

use ec2sim::Response;
use freehold::api::{InstanceId, VolumeId};
use freehold::cloud::{
    CloudError, EbsVolume, Instance, InstanceHealth, InstanceQuery, Modification, Snapshot, VolumeQuery,
};

use super::ModelCloud;
use super::convert::{health, instance, modification, snapshot, volume};
use super::params::{Params, filters, instance_ids, tag_filters};

impl ModelCloud {
    /// All pages of a list; `page` takes the items and the next page's token out of an answer.
    pub(super) async fn list<T>(
        &self,
        action: &'static str,
        params: &Params,
        page: impl Fn(Response) -> Option<ec2sim::Page<T>>,
    ) -> Result<Vec<T>, CloudError> {
        let mut items = Vec::new();
        let mut next_token: Option<String> = None;
        loop {
            let mut params = params.clone();
            params.extend(next_token.take().map(|token| ("NextToken".to_owned(), token)));
            let answer =
                page(self.call(action, &params).await?).expect("the answer to this action is a list");
            items.extend(answer.items);
            match answer.next_token {
                Some(token) => next_token = Some(token),
                None => return Ok(items),
            }
        }
    }

    pub(super) async fn instances(&self, query: &InstanceQuery) -> Result<Vec<Instance>, CloudError> {
        let params = match query {
            InstanceQuery::Tags(tags) => tag_filters(tags),
            InstanceQuery::Tokens(tokens) if tokens.is_empty() => return Ok(vec![]),
            InstanceQuery::Tokens(tokens) => {
                filters([("client-token".to_owned(), tokens.iter().map(|token| token.0.as_str()).collect())])
            }
            InstanceQuery::Among(ids) | InstanceQuery::Ids(ids) if ids.is_empty() => return Ok(vec![]),
            InstanceQuery::Among(ids) => {
                filters([("instance-id".to_owned(), ids.iter().map(|id| id.0.as_str()).collect())])
            }
            InstanceQuery::Ids(ids) => instance_ids(ids),
        };
        let reservations = self
            .list("DescribeInstances", &params, |answer| {
                if let Response::Instances(page) = answer { Some(page) } else { None }
            })
            .await?;
        Ok(reservations.into_iter().flat_map(|reservation| reservation.instances).map(instance).collect())
    }

    pub(super) async fn unhealthy(&self) -> Result<Vec<InstanceHealth>, CloudError> {
        let events = vec![
            "instance-reboot",
            "system-reboot",
            "system-maintenance",
            "instance-retirement",
            "instance-stop",
        ];
        let lists = [
            ("system-status.status", vec!["impaired"]),
            ("instance-status.status", vec!["impaired"]),
            ("event.code", events),
        ];
        let mut unhealthy = BTreeMap::new();
        for (name, values) in lists {
            let listed = self.statuses(&filters([(name.to_owned(), values)])).await?;
            unhealthy.extend(listed.into_iter().map(|health| (health.id.clone(), health)));
        }
        Ok(unhealthy.into_values().collect())
    }

    pub(super) async fn health(&self, ids: &[InstanceId]) -> Result<Vec<InstanceHealth>, CloudError> {
        let all = self.statuses(&instance_ids(ids)).await?.into_iter();
        Ok(all.filter(|health| health.impaired || !health.events.is_empty()).collect())
    }

    async fn statuses(&self, params: &Params) -> Result<Vec<InstanceHealth>, CloudError> {
        let statuses = self
            .list("DescribeInstanceStatus", params, |answer| {
                if let Response::InstanceStatuses(page) = answer { Some(page) } else { None }
            })
            .await?;
        Ok(statuses.into_iter().map(health).collect())
    }

    pub(super) async fn tagged(&self, key: &str, value: &str) -> Result<Vec<String>, CloudError> {
        let kinds = vec!["instance", "network-interface", "volume"];
        let names = ["key", "value", "resource-type"].map(str::to_owned);
        let mut params = filters(names.into_iter().zip([vec![key], vec![value], kinds]));
        params.extend([("MaxResults".to_owned(), "1000".to_owned())]);
        let tags =
            self.list("DescribeTags", &params, |answer| {
                if let Response::Tags(page) = answer { Some(page) } else { None }
            })
            .await?;
        Ok(tags.into_iter().map(|tag| tag.resource_id).collect())
    }

    pub(super) async fn volumes(&self, query: &VolumeQuery) -> Result<Vec<EbsVolume>, CloudError> {
        let params = match query {
            VolumeQuery::Tags(tags) => tag_filters(tags),
            VolumeQuery::Ids(ids) if ids.is_empty() => return Ok(vec![]),
            VolumeQuery::Ids(ids) => volume_filter(ids),
        };
        let volumes = self
            .list("DescribeVolumes", &params, |answer| {
                if let Response::Volumes(page) = answer { Some(page) } else { None }
            })
            .await?;
        Ok(volumes.into_iter().map(volume).collect())
    }

    pub(super) async fn modifications(&self, ids: &[VolumeId]) -> Result<Vec<Modification>, CloudError> {
        if ids.is_empty() {
            return Ok(vec![]);
        }
        let modifications = self
            .list("DescribeVolumesModifications", &volume_filter(ids), |answer| {
                if let Response::Modifications(page) = answer { Some(page) } else { None }
            })
            .await?;
        Ok(modifications.into_iter().map(modification).collect())
    }

    pub(super) async fn snapshots(&self, params: &Params) -> Result<Vec<Snapshot>, CloudError> {
        let snapshots = self
            .list("DescribeSnapshots", params, |answer| {
                if let Response::Snapshots(page) = answer { Some(page) } else { None }
            })
            .await?;
        Ok(snapshots.into_iter().map(snapshot).collect())
    }
}

fn volume_filter(ids: &[VolumeId]) -> Params {
    filters([("volume-id".to_owned(), ids.iter().map(|id| id.0.as_str()).collect())])
}
