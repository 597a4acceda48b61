//! What is wrong with a NodeClass: a value with its reason, its condition, and what it prevents. Pure.
//!
//! The sentences are in `messages`.

use super::user_data::mistake::Mistake;
use crate::api::creation::Refusal;
use crate::api::{ConditionType, InstanceId, Reason};

/// Something that a NodeClass names and that is not there, or does not fit.
#[derive(Clone, Debug, PartialEq)]
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
    /// EC2 does not know the instance profile.
    ProfileNotFound(String),
    /// EC2 refuses a dry run of a launch for want of a permission.
    LaunchForbidden(Refusal),
    /// EC2 refuses a dry run of a launch for another cause.
    LaunchRefused(Refusal),
    /// EC2 ended the newest machine during its launch, as it does if the KMS key may not be used.
    LaunchEnded {
        /// The instance.
        instance: InstanceId,
        /// Whether the class names the key; otherwise it is the account's default one.
        has_key: bool,
    },
    /// A mistake in the user data.
    UserData(Mistake),
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
            Self::ProfileNotFound(_)
            | Self::LaunchForbidden(_)
            | Self::LaunchRefused(_)
            | Self::LaunchEnded { .. } => ConditionType::LaunchAccepted,
            Self::UserData(_) => ConditionType::UserDataReady,
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
            Self::ProfileNotFound(_) => Reason::InstanceProfileUnusable,
            Self::LaunchForbidden(_) => Reason::Forbidden,
            Self::LaunchRefused(_) => Reason::InvalidRequest,
            Self::LaunchEnded { .. } => Reason::KmsKeyUnusable,
            Self::UserData(_) => Reason::UserDataUnusable,
        }
    }

    /// Whether EC2 would refuse every launch, or a machine would come up with a disk that is not the class'.
    /// A wrong subnet or type leaves the others: no machine is launched in a subnet that EC2 shows in another
    /// zone, or does not show, while there is another, and EC2's own refusal costs nothing. So it is with
    /// what a dry run refuses: the next launch asks EC2 itself, whose answer may be another one by then. User
    /// data is read as the standard images read it, and another image may read it in another way.
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
            | Self::StorageClassFixed(_)
            | Self::ProfileNotFound(_)
            | Self::LaunchForbidden(_)
            | Self::LaunchRefused(_)
            | Self::LaunchEnded { .. }
            | Self::UserData(_) => false,
        }
    }

    /// Whether it stays until a person changes something: addresses become free by themselves.
    pub fn is_stalled(&self) -> bool {
        !matches!(self, Self::NoFreeAddresses(_))
    }
}
