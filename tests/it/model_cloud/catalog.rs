//! What the model's EC2 offers: images, subnets, security groups, instance types.

use ec2sim::Response;
use freehold::cloud::CloudError;
use freehold::cloud::catalog::{Image, ImageDisk, InstanceType, SecurityGroup, Subnet};

use super::ModelCloud;
use super::convert::number;
use super::params::{Params, filters};

impl ModelCloud {
    pub(super) async fn image(&self, id: &str) -> Result<Option<Image>, CloudError> {
        let images = self
            .list("DescribeImages", &named("image-id", &[id.to_owned()]), |answer| {
                if let Response::Images(page) = answer { Some(page) } else { None }
            })
            .await?;
        Ok(images.into_iter().next().map(|image| Image {
            id: image.id,
            name: image.name,
            is_available: true,
            architecture: image.architecture,
            disks: vec![ImageDisk { device: image.root_device.clone(), size: Some(number(image.root_size)) }],
            root_device: image.root_device,
        }))
    }

    pub(super) async fn subnets(&self, ids: &[String]) -> Result<Vec<Subnet>, CloudError> {
        let subnets = self
            .list("DescribeSubnets", &named("subnet-id", ids), |answer| {
                if let Response::Subnets(page) = answer { Some(page) } else { None }
            })
            .await?;
        let subnet = |view: ec2sim::SubnetView| Subnet {
            id: view.subnet.id,
            vpc_id: view.subnet.vpc_id,
            zone: view.subnet.zone,
            free_addresses: number(view.free),
        };
        Ok(subnets.into_iter().map(subnet).collect())
    }

    pub(super) async fn security_groups(&self, ids: &[String]) -> Result<Vec<SecurityGroup>, CloudError> {
        let groups = self
            .list("DescribeSecurityGroups", &named("group-id", ids), |answer| {
                if let Response::SecurityGroups(page) = answer { Some(page) } else { None }
            })
            .await?;
        Ok(groups.into_iter().map(|group| SecurityGroup { id: group.id, vpc_id: group.vpc_id }).collect())
    }

    pub(super) async fn instance_types(&self, patterns: &[String]) -> Result<Vec<InstanceType>, CloudError> {
        let types = self
            .list("DescribeInstanceTypes", &named("instance-type", patterns), |answer| {
                if let Response::InstanceTypes(page) = answer { Some(page) } else { None }
            })
            .await?;
        Ok(types
            .into_iter()
            .map(|kind| InstanceType { name: kind.name, architectures: vec![kind.architecture] })
            .collect())
    }
}

fn named(filter: &str, values: &[String]) -> Params {
    filters([(filter.to_owned(), values.iter().map(String::as_str).collect())])
}
