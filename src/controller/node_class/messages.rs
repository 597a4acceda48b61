//! The sentences of a NodeClass. Pure.

use super::fault::Fault;
use super::wait::ClassWait;
use crate::api::keys::EBS_CSI_DRIVER;

/// Condition Ready, when it is true.
pub const READY: &str = "everything that the NodeClass names is there and fits";
/// Condition `ImageReady`, when it is true.
pub const IMAGE_READY: &str = "the image is available, and its disks are those of the NodeClass";
/// Condition `NetworkReady`, when it is true.
pub const NETWORK_READY: &str = "the subnets are in their zones, and in one VPC with the security groups";
/// Condition `InstanceTypesReady`, when it is true.
pub const INSTANCE_TYPES_READY: &str = "every pattern of spec.instanceTypes names a type that runs the image";
/// Condition `StorageClassReady`, when it is true.
pub const STORAGE_CLASS_READY: &str = "the StorageClass is the EBS CSI driver's, and its volumes can grow";

/// How many users of a class are named.
const NAMED_USERS: usize = 5;

/// Every fault, one after the other.
pub fn faults(faults: &[Fault]) -> String {
    faults.iter().map(Fault::message).collect::<Vec<_>>().join("; ")
}

impl Fault {
    /// For the conditions.
    pub fn message(&self) -> String {
        match self {
            Self::ImageNotFound(image) => format!(
                "EC2 shows this account no image {image} in this Region: correct spec.imageID, or have the \
                 image's owner share it"
            ),
            Self::ImageNotAvailable(image) => format!(
                "image {image} is not available: wait until it is, or name another one in spec.imageID"
            ),
            Self::RootDevice { image, class } => format!(
                "the image's root disk is {image}, but spec.rootVolume.deviceName is {class}: correct it, or \
                 the root disk would not be encrypted with the NodeClass' key"
            ),
            Self::DiskTooSmall { device, image, class } => format!(
                "the image's disk {device} has {image} GiB, but the NodeClass gives it {class}: set its size \
                 in spec.rootVolume or spec.additionalVolumes to {image} or more"
            ),
            Self::DiskNotNamed(device) => format!(
                "the image has a disk {device} that is not in spec.additionalVolumes: add it, or it is \
                 encrypted only as the image or the account's default says"
            ),
            Self::SubnetNotFound(subnet) => {
                format!("EC2 shows this account no subnet {subnet} in this Region: correct spec.subnets")
            }
            Self::SubnetZone { subnet, zone, class } => {
                format!("subnet {subnet} is in zone {zone}, but spec.subnets says {class}: correct its zone")
            }
            Self::SubnetVpc { one, other } => format!(
                "subnet {} is in VPC {} and subnet {} in VPC {}: name subnets of one VPC",
                one.0, one.1, other.0, other.1
            ),
            Self::NoFreeAddresses(subnets) => format!(
                "every address of subnet {} is in use: add a subnet of the zone, or free addresses",
                subnets.join(", ")
            ),
            Self::SecurityGroupNotFound(group) => format!(
                "EC2 shows this account no security group {group} in this Region: correct \
                 spec.securityGroupIDs"
            ),
            Self::SecurityGroupVpc { group, vpc, subnets } => format!(
                "security group {group} is in VPC {vpc}, but the subnets are in VPC {subnets}: name a group \
                 of that VPC"
            ),
            Self::NoSuchType(pattern) => {
                format!("this Region has no instance type {pattern}: correct spec.instanceTypes")
            }
            Self::Architecture { image, patterns } => format!(
                "the image is for {image}, and no instance type of {} is: name types or an image of the same \
                 architecture",
                patterns.join(", ")
            ),
            Self::StorageClassNotFound(name) => format!(
                "StorageClass {name} does not exist, so no volume can grow: create it (provisioner \
                 {EBS_CSI_DRIVER}, allowVolumeExpansion: true), or name another one in \
                 spec.storageClassName"
            ),
            Self::StorageClassDriver { name, provisioner } => format!(
                "StorageClass {name} is of {provisioner}, not of {EBS_CSI_DRIVER}: name one of the EBS CSI \
                 driver in spec.storageClassName"
            ),
            Self::StorageClassFixed(name) => format!(
                "StorageClass {name} does not allow volume expansion, so no volume can grow: set its \
                 allowVolumeExpansion to true"
            ),
        }
    }
}

impl ClassWait {
    /// For the conditions.
    pub fn message(&self) -> String {
        match self {
            Self::AddingFinalizer => "adding the finalizer".to_owned(),
            Self::Unread(blocked) => {
                format!("what the NodeClass names could not be read from EC2: {}", blocked.message())
            }
            Self::InUse(users) => {
                let more = users.len().saturating_sub(NAMED_USERS);
                let named = users.iter().take(NAMED_USERS).cloned().collect::<Vec<_>>().join(", ");
                let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
                format!(
                    "the NodeClass is being deleted and is still used by {named}{rest}: delete them, or name \
                     another NodeClass in them"
                )
            }
            Self::Unused => "the NodeClass is not used any more".to_owned(),
        }
    }
}
