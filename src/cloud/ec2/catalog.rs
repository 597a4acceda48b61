//! Reads what EC2 offers to a `NodeClass`. By filters: an id that EC2 does not know is left out of the answer
//! instead of failing the call.

use aws_sdk_ec2::types as sdk;

use super::requests::{Gathered, chunked, filter};
use super::whole::incomplete;
use super::{Ec2, failed};
use crate::cloud::CloudError;
use crate::cloud::call::Call;
use crate::cloud::catalog::{Image, ImageDisk, InstanceType, SecurityGroup, Subnet};

/// How many items a page has: the most that these calls have in common (EC2 API reference, `MaxResults`).
const PAGE: i32 = 100;

impl Ec2 {
    pub(super) async fn image(&self, id: &str) -> Result<Option<Image>, CloudError> {
        let call = Call::DescribeImages;
        let mut gathered = Gathered::new(call);
        let mut pages = self
            .reads
            .describe_images()
            .filters(filter("image-id", [id.to_owned()]))
            // EC2 hides images that their owner has deprecated, from which instances can still be launched.
            .include_deprecated(true)
            .into_paginator()
            .page_size(PAGE)
            .send();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| failed(call, &error))?;
            gathered.add(page.images, page.next_token)?;
        }
        gathered.finish()?.into_iter().next().map(image).transpose()
    }

    pub(super) async fn subnets(&self, ids: &[String]) -> Result<Vec<Subnet>, CloudError> {
        let call = Call::DescribeSubnets;
        let mut subnets = Vec::new();
        for filters in chunked("subnet-id", ids) {
            let mut gathered = Gathered::new(call);
            let request = self.reads.describe_subnets().set_filters(Some(filters));
            let mut pages = request.into_paginator().page_size(PAGE).send();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| failed(call, &error))?;
                gathered.add(page.subnets, page.next_token)?;
            }
            subnets.extend(gathered.finish()?.into_iter().map(subnet).collect::<Result<Vec<_>, _>>()?);
        }
        Ok(subnets)
    }

    pub(super) async fn security_groups(&self, ids: &[String]) -> Result<Vec<SecurityGroup>, CloudError> {
        let call = Call::DescribeSecurityGroups;
        let mut groups = Vec::new();
        for filters in chunked("group-id", ids) {
            let mut gathered = Gathered::new(call);
            let request = self.reads.describe_security_groups().set_filters(Some(filters));
            let mut pages = request.into_paginator().page_size(PAGE).send();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| failed(call, &error))?;
                gathered.add(page.security_groups, page.next_token)?;
            }
            groups.extend(gathered.finish()?.into_iter().map(group).collect::<Result<Vec<_>, _>>()?);
        }
        Ok(groups)
    }

    pub(super) async fn instance_types(&self, patterns: &[String]) -> Result<Vec<InstanceType>, CloudError> {
        let call = Call::DescribeInstanceTypes;
        let mut types = Vec::new();
        for filters in chunked("instance-type", patterns) {
            let mut gathered = Gathered::new(call);
            let request = self.reads.describe_instance_types().set_filters(Some(filters));
            let mut pages = request.into_paginator().page_size(PAGE).send();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| failed(call, &error))?;
                gathered.add(page.instance_types, page.next_token)?;
            }
            types.extend(gathered.finish()?.into_iter().map(instance_type).collect::<Result<Vec<_>, _>>()?);
        }
        Ok(types)
    }
}

fn image(image: sdk::Image) -> Result<Image, CloudError> {
    let call = Call::DescribeImages;
    let disk = |mapping: sdk::BlockDeviceMapping| {
        let (device, ebs) = (mapping.device_name?, mapping.ebs?);
        Some(ImageDisk { device, size: ebs.volume_size })
    };
    Ok(Image {
        id: image.image_id.ok_or_else(|| incomplete(call, "image id"))?,
        name: image.name.unwrap_or_default(),
        is_available: image.state.is_some_and(|state| state == sdk::ImageState::Available),
        architecture: image
            .architecture
            .map(|architecture| architecture.as_str().to_owned())
            .ok_or_else(|| incomplete(call, "architecture"))?,
        root_device: image.root_device_name.unwrap_or_default(),
        disks: image.block_device_mappings.unwrap_or_default().into_iter().filter_map(disk).collect(),
    })
}

fn subnet(subnet: sdk::Subnet) -> Result<Subnet, CloudError> {
    let call = Call::DescribeSubnets;
    Ok(Subnet {
        id: subnet.subnet_id.ok_or_else(|| incomplete(call, "subnet id"))?,
        vpc_id: subnet.vpc_id.ok_or_else(|| incomplete(call, "VPC id"))?,
        zone: subnet.availability_zone.ok_or_else(|| incomplete(call, "availability zone"))?,
        free_addresses: subnet
            .available_ip_address_count
            .ok_or_else(|| incomplete(call, "number of free addresses"))?,
    })
}

fn group(group: sdk::SecurityGroup) -> Result<SecurityGroup, CloudError> {
    let call = Call::DescribeSecurityGroups;
    Ok(SecurityGroup {
        id: group.group_id.ok_or_else(|| incomplete(call, "security group id"))?,
        vpc_id: group.vpc_id.ok_or_else(|| incomplete(call, "VPC id"))?,
    })
}

fn instance_type(kind: sdk::InstanceTypeInfo) -> Result<InstanceType, CloudError> {
    let call = Call::DescribeInstanceTypes;
    let name = kind.instance_type.ok_or_else(|| incomplete(call, "instance type"))?;
    let architectures =
        kind.processor_info.and_then(|processor| processor.supported_architectures).unwrap_or_default();
    Ok(InstanceType {
        name: name.as_str().to_owned(),
        architectures: architectures.iter().map(|architecture| architecture.as_str().to_owned()).collect(),
    })
}
