//! What is wrong with a NodeClass: a value with its reason, its condition, and what it prevents. Pure.
//!
//! The sentences are in `messages`.

use crate::api::{ConditionType, Reason};

/// Something that a NodeClass names and that is not there, or does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum Fault {
    /// EC2 shows this account no such image.
    ImageNotFound(String),
    /// The image is not available.
    ImageNotAvailable(String),
    /// The image's root disk has another device name than the class says.
    RootDevice {
        /// The image's root device.
        image: String,
        /// The class' `rootVolume.deviceName`.
        class: String,
    },
    /// A volume of the class is smaller than the image's disk, GiB.
    DiskTooSmall {
        /// The device name.
        device: String,
        /// The image's size.
        image: i32,
        /// The class' size.
        class: i32,
    },
    /// The image has a disk of this device name, which the class does not have.
    DiskNotNamed(String),
    /// EC2 shows this account no such subnet.
    SubnetNotFound(String),
    /// The subnet is in another zone than the class says.
    SubnetZone {
        /// The subnet.
        subnet: String,
        /// Its zone.
        zone: String,
        /// The zone in the class.
        class: String,
    },
    /// Two subnets are in different VPCs.
    SubnetVpc {
        /// A subnet, and its VPC.
        one: (String, String),
        /// Another subnet, and its VPC.
        other: (String, String),
    },
    /// Every address of these subnets is in use.
    NoFreeAddresses(Vec<String>),
    /// EC2 shows this account no such security group.
    SecurityGroupNotFound(String),
    /// The security group is in another VPC than the subnets.
    SecurityGroupVpc {
        /// The security group.
        group: String,
        /// Its VPC.
        vpc: String,
        /// The subnets' VPC.
        subnets: String,
    },
    /// The Region has no instance type of this pattern.
    NoSuchType(String),
    /// Instance types do not run the image's architecture.
    Architecture {
        /// The image's architecture.
        image: String,
        /// The patterns of the class that match no type of this architecture.
        patterns: Vec<String>,
    },
    /// The StorageClass does not exist.
    StorageClassNotFound(String),
    /// The StorageClass belongs to another driver than EBS'.
    StorageClassDriver {
        /// The StorageClass.
        name: String,
        /// Its provisioner.
        provisioner: String,
    },
    /// The StorageClass does not allow volume expansion.
    StorageClassFixed(String),
}

impl Fault {
    /// The condition that it makes false.
    pub fn condition(&self) -> ConditionType {
        match self {
            Self::ImageNotFound(_)
            | Self::ImageNotAvailable(_)
            | Self::RootDevice { .. }
            | Self::DiskTooSmall { .. }
            | Self::DiskNotNamed(_) => ConditionType::ImageReady,
            Self::SubnetNotFound(_)
            | Self::SubnetZone { .. }
            | Self::SubnetVpc { .. }
            | Self::NoFreeAddresses(_)
            | Self::SecurityGroupNotFound(_)
            | Self::SecurityGroupVpc { .. } => ConditionType::NetworkReady,
            Self::NoSuchType(_) | Self::Architecture { .. } => ConditionType::InstanceTypesReady,
            Self::StorageClassNotFound(_) | Self::StorageClassDriver { .. } | Self::StorageClassFixed(_) => {
                ConditionType::StorageClassReady
            }
        }
    }

    /// For the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::ImageNotFound(_)
            | Self::ImageNotAvailable(_)
            | Self::RootDevice { .. }
            | Self::DiskTooSmall { .. }
            | Self::DiskNotNamed(_) => Reason::ImageUnusable,
            Self::SubnetNotFound(_) | Self::SubnetZone { .. } | Self::SubnetVpc { .. } => {
                Reason::SubnetUnusable
            }
            Self::NoFreeAddresses(_) => Reason::NoFreeAddresses,
            Self::SecurityGroupNotFound(_) | Self::SecurityGroupVpc { .. } => Reason::SecurityGroupUnusable,
            Self::NoSuchType(_) | Self::Architecture { .. } => Reason::InstanceTypeUnusable,
            Self::StorageClassNotFound(_) | Self::StorageClassDriver { .. } | Self::StorageClassFixed(_) => {
                Reason::StorageClassUnusable
            }
        }
    }

    /// Whether EC2 would refuse every launch, or a machine would come up with a disk that is not the class'.
    /// A wrong subnet or type leaves the others, and EC2's own refusal of it costs nothing.
    pub fn prevents_launches(&self) -> bool {
        match self {
            Self::ImageNotFound(_)
            | Self::ImageNotAvailable(_)
            | Self::RootDevice { .. }
            | Self::DiskTooSmall { .. }
            | Self::SecurityGroupNotFound(_)
            | Self::SecurityGroupVpc { .. } => true,
            Self::DiskNotNamed(_)
            | Self::SubnetNotFound(_)
            | Self::SubnetZone { .. }
            | Self::SubnetVpc { .. }
            | Self::NoFreeAddresses(_)
            | Self::NoSuchType(_)
            | Self::Architecture { .. }
            | Self::StorageClassNotFound(_)
            | Self::StorageClassDriver { .. }
            | Self::StorageClassFixed(_) => false,
        }
    }

    /// Whether it stays until a person changes something: addresses become free by themselves.
    pub fn is_stalled(&self) -> bool {
        !matches!(self, Self::NoFreeAddresses(_))
    }
}
