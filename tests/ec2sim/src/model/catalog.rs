//! What never changes by a call: subnets, zones, instance types, images, security groups.

use super::{
    Effects, Model,
    dry_run::refuse_dry_run,
    lists::{Query, Sizes, TYPES, USUAL, page, tag_values},
};
use crate::{Page, Refusal, Response, Truth, params::Reader, response::SubnetView, view::Tags};

/// What a list of the catalog is about.
struct Kind {
    id_key: &'static str,
    filters: &'static [&'static str],
    sizes: Sizes,
    /// The refusal of an id that is not there.
    not_found: &'static str,
}

impl Model {
    pub(super) fn describe_subnets(&self, r: &mut Reader, effects: &Effects) -> Result<Response, Refusal> {
        let kind = Kind {
            id_key: "SubnetId",
            filters: &["availability-zone", "cidr-block", "state", "subnet-id", "tag-key", "tag:", "vpc-id"],
            sizes: USUAL,
            not_found: "InvalidSubnetID.NotFound",
        };
        let views = self.world.subnets.iter().map(|subnet| SubnetView {
            subnet: subnet.clone(),
            zone_id: self.zone_id(&subnet.zone),
            free: self.free_addresses(subnet),
        });
        let page = self.catalog(
            r,
            effects,
            &kind,
            views.collect(),
            |view| view.subnet.id.clone(),
            |view, name| match name {
                "availability-zone" => vec![view.subnet.zone.clone()],
                "cidr-block" => vec![view.subnet.cidr.clone()],
                "state" => vec!["available".to_owned()],
                "subnet-id" => vec![view.subnet.id.clone()],
                "vpc-id" => vec![view.subnet.vpc_id.clone()],
                tag => tag_values(tag, &Tags::new()),
            },
        )?;
        Ok(Response::Subnets(page))
    }

    pub(super) fn describe_availability_zones(&self, r: &mut Reader) -> Result<Response, Refusal> {
        // All zones of the account are opted in, so the wider list is the same.
        r.flag("AllAvailabilityZones")?;
        let kind = Kind {
            id_key: "ZoneName",
            filters: &["opt-in-status", "region-name", "state", "zone-id", "zone-name", "zone-type"],
            sizes: USUAL,
            not_found: "InvalidParameterValue",
        };
        let ids = r.list("ZoneId");
        let mut zones = self.world.zones.clone();
        zones.retain(|zone| ids.is_empty() || ids.contains(&zone.id));
        let page = self.catalog(
            r,
            &Effects::default(),
            &kind,
            zones,
            |zone| zone.name.clone(),
            |zone, name| match name {
                "opt-in-status" => vec!["opt-in-not-required".to_owned()],
                "region-name" => vec![self.world.region.clone()],
                "state" => vec!["available".to_owned()],
                "zone-id" => vec![zone.id.clone()],
                "zone-name" => vec![zone.name.clone()],
                "zone-type" => vec!["availability-zone".to_owned()],
                _ => Vec::new(),
            },
        )?;
        Ok(Response::Zones(page.items))
    }

    pub(super) fn describe_instance_types(
        &self,
        r: &mut Reader,
        effects: &Effects,
    ) -> Result<Response, Refusal> {
        let kind = Kind {
            id_key: "InstanceType",
            filters: &[
                "bare-metal",
                "current-generation",
                "hypervisor",
                "instance-type",
                "memory-info.size-in-mib",
                "processor-info.supported-architecture",
                "supported-usage-class",
                "vcpu-info.default-vcpus",
            ],
            sizes: TYPES,
            not_found: "InvalidInstanceType",
        };
        let types = self.world.instance_types.clone();
        let page = self.catalog(
            r,
            effects,
            &kind,
            types,
            |kind| kind.name.clone(),
            |kind, name| match name {
                "bare-metal" => vec!["false".to_owned()],
                "current-generation" => vec!["true".to_owned()],
                "hypervisor" => vec!["nitro".to_owned()],
                "instance-type" => vec![kind.name.clone()],
                "memory-info.size-in-mib" => vec![kind.memory.to_string()],
                "processor-info.supported-architecture" => vec![kind.architecture.clone()],
                "supported-usage-class" => vec!["on-demand".to_owned()],
                "vcpu-info.default-vcpus" => vec![kind.vcpus.to_string()],
                _ => Vec::new(),
            },
        )?;
        Ok(Response::InstanceTypes(page))
    }

    pub(super) fn describe_images(&self, r: &mut Reader, effects: &Effects) -> Result<Response, Refusal> {
        let kind = Kind {
            id_key: "ImageId",
            filters: &[
                "architecture",
                "image-id",
                "image-type",
                "is-public",
                "name",
                "owner-id",
                "state",
                "tag-key",
                "tag:",
            ],
            sizes: USUAL,
            not_found: "InvalidAMIID.NotFound",
        };
        let owners = r.list("Owner");
        // No image here is deprecated.
        r.flag("IncludeDeprecated")?;
        let is_ours =
            owners.is_empty() || owners.iter().any(|owner| *owner == "self" || *owner == self.world.account);
        let images = if is_ours { self.world.images.clone() } else { Vec::new() };
        let page = self.catalog(
            r,
            effects,
            &kind,
            images,
            |image| image.id.clone(),
            |image, name| match name {
                "architecture" => vec![image.architecture.clone()],
                "image-id" => vec![image.id.clone()],
                "image-type" => vec!["machine".to_owned()],
                "is-public" => vec!["false".to_owned()],
                "name" => vec![image.name.clone()],
                "owner-id" => vec![self.world.account.clone()],
                "state" => vec!["available".to_owned()],
                tag => tag_values(tag, &Tags::new()),
            },
        )?;
        Ok(Response::Images(page))
    }

    pub(super) fn describe_security_groups(
        &self,
        r: &mut Reader,
        effects: &Effects,
    ) -> Result<Response, Refusal> {
        let kind = Kind {
            id_key: "GroupId",
            filters: &["group-id", "group-name", "owner-id", "tag-key", "tag:", "vpc-id"],
            sizes: USUAL,
            not_found: "InvalidGroup.NotFound",
        };
        let groups = self.world.security_groups.clone();
        let page = self.catalog(
            r,
            effects,
            &kind,
            groups,
            |group| group.id.clone(),
            |group, name| match name {
                "group-id" => vec![group.id.clone()],
                "group-name" => vec![group.name.clone()],
                "owner-id" => vec![self.world.account.clone()],
                "vpc-id" => vec![group.vpc_id.clone()],
                tag => tag_values(tag, &Tags::new()),
            },
        )?;
        Ok(Response::SecurityGroups(page))
    }

    fn catalog<T>(
        &self,
        r: &mut Reader,
        effects: &Effects,
        kind: &Kind,
        all: Vec<T>,
        id_of: impl Fn(&T) -> String,
        values: impl Fn(&T, &str) -> Vec<String>,
    ) -> Result<Page<T>, Refusal> {
        let query = Query::read(r, kind.id_key, kind.filters, &kind.sizes, &self.rules.truths)?;
        let dry_run = r.flag("DryRun")?;
        r.finish()?;
        refuse_dry_run(dry_run)?;
        if let Some(unknown) = query.ids.iter().find(|id| !all.iter().any(|item| id_of(item) == **id))
            && self.holds(Truth::UnknownIdFailsWhole)
        {
            return Err(Refusal::new(
                kind.not_found,
                format!("The {} '{unknown}' does not exist", kind.id_key),
            ));
        }
        let named =
            (1u64..).zip(all).filter(|(_, item)| query.ids.is_empty() || query.ids.contains(&id_of(item)));
        Ok(page(&query, named.collect(), &self.rules.truths, effects, |item| {
            query.matches(|name| values(item, name))
        }))
    }

    fn zone_id(&self, name: &str) -> String {
        self.world.zones.iter().find(|zone| zone.name == name).map(|zone| zone.id.clone()).unwrap_or_default()
    }
}
