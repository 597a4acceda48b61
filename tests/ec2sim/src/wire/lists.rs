//! Pages, and the parts of the catalog, as XML.

use super::xml::{Written, Xml};
use crate::{Image, InstanceType, Page, SecurityGroup, SubnetView, TagView, Zone};

/// A page: its items, and the token of the next one.
pub(super) fn page<T>(
    xml: &mut Xml,
    name: &str,
    page: &Page<T>,
    item: fn(&mut Xml, &T) -> Written,
) -> Written {
    xml.list(name, &page.items, item)?;
    xml.optional("nextToken", page.next_token.as_deref())
}

pub(super) fn tag(xml: &mut Xml, tag: &TagView) -> Written {
    xml.text("resourceId", &tag.resource_id)?;
    xml.text("resourceType", tag.resource_type)?;
    xml.text("key", &tag.key)?;
    xml.text("value", &tag.value)
}

pub(super) fn subnet(xml: &mut Xml, view: &SubnetView) -> Written {
    let account = xml.account.clone();
    xml.text("subnetId", &view.subnet.id)?;
    xml.text("state", "available")?;
    xml.text("ownerId", &account)?;
    xml.text("vpcId", &view.subnet.vpc_id)?;
    xml.text("cidrBlock", &view.subnet.cidr)?;
    xml.number("availableIpAddressCount", view.free)?;
    xml.text("availabilityZone", &view.subnet.zone)?;
    xml.text("availabilityZoneId", &view.zone_id)?;
    xml.flag("defaultForAz", false)?;
    xml.flag("mapPublicIpOnLaunch", false)
}

pub(super) fn zone(xml: &mut Xml, zone: &Zone) -> Written {
    xml.text("zoneName", &zone.name)?;
    xml.text("zoneId", &zone.id)?;
    xml.text("zoneState", "available")?;
    xml.text("zoneType", "availability-zone")?;
    xml.text("regionName", zone.name.trim_end_matches(|letter: char| letter.is_ascii_lowercase()))?;
    xml.text("optInStatus", "opt-in-not-required")
}

pub(super) fn instance_type(xml: &mut Xml, kind: &InstanceType) -> Written {
    xml.text("instanceType", &kind.name)?;
    xml.flag("currentGeneration", true)?;
    xml.flag("freeTierEligible", false)?;
    xml.flag("bareMetal", false)?;
    xml.text("hypervisor", "nitro")?;
    xml.list("supportedUsageClasses", ["on-demand"], Xml::item)?;
    xml.list("supportedRootDeviceTypes", ["ebs"], Xml::item)?;
    xml.node("processorInfo", |xml| {
        xml.list("supportedArchitectures", [kind.architecture.as_str()], Xml::item)
    })?;
    xml.node("vCpuInfo", |xml| xml.number("defaultVCpus", kind.vcpus))?;
    xml.node("memoryInfo", |xml| xml.number("sizeInMiB", kind.memory))?;
    xml.flag("instanceStorageSupported", false)?;
    xml.node("ebsInfo", |xml| {
        xml.text("ebsOptimizedSupport", "default")?;
        xml.text("encryptionSupport", "supported")?;
        xml.text("nvmeSupport", "required")?;
        // The limit is shared with network interfaces, of which one is always there.
        xml.text("attachmentLimitType", "shared")?;
        xml.number("maximumEbsAttachments", u64::try_from(kind.volumes).unwrap_or(u64::MAX) + 1)
    })
}

pub(super) fn image(xml: &mut Xml, image: &Image) -> Written {
    let account = xml.account.clone();
    xml.text("imageId", &image.id)?;
    xml.text("imageLocation", &format!("{account}/{}", image.name))?;
    xml.text("imageState", "available")?;
    xml.text("imageOwnerId", &account)?;
    xml.flag("isPublic", false)?;
    xml.text("architecture", &image.architecture)?;
    xml.text("imageType", "machine")?;
    xml.text("name", &image.name)?;
    xml.text("rootDeviceType", "ebs")?;
    xml.text("rootDeviceName", &image.root_device)?;
    xml.list("blockDeviceMapping", [image], |xml, image| {
        xml.text("deviceName", &image.root_device)?;
        xml.node("ebs", |xml| {
            xml.number("volumeSize", image.root_size)?;
            xml.flag("deleteOnTermination", true)?;
            xml.text("volumeType", "gp3")?;
            xml.flag("encrypted", false)
        })
    })?;
    xml.text("virtualizationType", "hvm")?;
    xml.text("hypervisor", "xen")
}

pub(super) fn security_group(xml: &mut Xml, group: &SecurityGroup) -> Written {
    let account = xml.account.clone();
    xml.text("ownerId", &account)?;
    xml.text("groupId", &group.id)?;
    xml.text("groupName", &group.name)?;
    xml.text("groupDescription", &group.name)?;
    xml.text("vpcId", &group.vpc_id)
}
