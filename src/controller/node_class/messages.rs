//! The sentences of a NodeClass. Pure.

use super::fault::Fault;
use super::user_data::form::{Form, Platform};
use super::user_data::mistake::{FEWEST_PODS, LONGEST_USER_DATA, Mistake};
use super::wait::ClassWait;
use crate::api::keys::{DEDICATED_LABEL, DEDICATED_TAINT, EBS_CSI_DRIVER};
use crate::controller::messages::answer;

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
/// Condition `UserDataReady`, when it is true.
pub const USER_DATA_READY: &str = "no mistake was found in the user data, as far as it can be read";
/// Condition `LaunchAccepted`, when it is true.
pub const LAUNCH_ACCEPTED: &str = "EC2 accepts a dry run of a launch";
/// Condition `LaunchAccepted`, before the first answer.
pub const LAUNCH_NOT_CHECKED: &str = "EC2 has not answered a dry run of a launch yet";

/// The code of EC2's reason for the end of an instance whose launch lacks a permission.
const FORBIDDEN_LAUNCH: &str = "Client.InternalError";

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
            Self::ProfileNotFound(profile) => format!(
                "EC2 does not know instance profile {profile}: create it, which EC2 notices within minutes, \
                 or correct spec.instanceProfile"
            ),
            Self::LaunchForbidden(refusal) => format!(
                "EC2 does not allow the operator's role a launch of the NodeClass (dry run): {}; mend the \
                 policy of the role",
                answer(refusal)
            ),
            Self::LaunchRefused(refusal) => format!(
                "EC2 refuses a launch of the NodeClass (dry run): {}; correct the NodeClass",
                answer(refusal)
            ),
            Self::LaunchEnded { instance, has_key } => {
                let key = if *has_key { "of spec.kmsKeyID" } else { "that is the account's default for EBS" };
                format!(
                    "EC2 ended instance {instance} during its launch ({FORBIDDEN_LAUNCH}), as it does if \
                     the KMS key {key} may not be used: enable the key, and allow its use by EC2 in the \
                     key's policy and in that of the operator's role"
                )
            }
            Self::UserData(mistake) => mistake.message(),
        }
    }
}

impl Mistake {
    /// For the conditions.
    pub fn message(&self) -> String {
        match self {
            Self::TooLong(bytes) => {
                format!("spec.userData has {bytes} bytes, and EC2 takes {LONGEST_USER_DATA}: shorten it")
            }
            Self::Form { platform, form } => format!(
                "the image is {}, but spec.userData is {}: write it for this image, or name another image in \
                 spec.imageID",
                platform_reads(*platform),
                form_name(*form)
            ),
            Self::Syntax { form, error } => {
                format!("spec.userData is not a valid {}: {error}: correct it", syntax(*form))
            }
            Self::Incomplete(fields) => format!(
                "spec.userData lacks {}, without which no machine joins the cluster: add what it \
                 lacks",
                fields.join(", ")
            ),
            Self::Label(value) => format!(
                "spec.userData gives the label {DEDICATED_LABEL} the value {value}: give it the value true"
            ),
            Self::Taint(taint) => format!(
                "spec.userData sets the taint {taint}, which the pods of databases do not tolerate: remove \
                 it; they tolerate {DEDICATED_TAINT}:NoExecute only"
            ),
            Self::MaxPods(pods) => format!(
                "spec.userData allows {pods} pods on a machine, too few for a database beside the EBS CSI \
                 driver and the network plugin: allow {FEWEST_PODS} or more"
            ),
        }
    }
}

/// In a sentence about what user data is.
fn form_name(form: Form) -> &'static str {
    match form {
        Form::Mime => "a MIME multipart text",
        Form::NodeConfig => "a NodeConfig",
        Form::Bottlerocket => "Bottlerocket's TOML",
        Form::Script => "a script",
        Form::CloudInit => "for cloud-init",
        Form::Other => "of another form",
    }
}

/// What the form must be.
fn syntax(form: Form) -> &'static str {
    match form {
        Form::Mime => "MIME multipart text",
        Form::NodeConfig => "NodeConfig",
        Form::Bottlerocket => "TOML text",
        Form::Script | Form::CloudInit | Form::Other => "text",
    }
}

/// The image, and what it reads.
fn platform_reads(platform: Platform) -> &'static str {
    match platform {
        Platform::Al2023 => "Amazon Linux 2023 for EKS, which reads a NodeConfig",
        Platform::Bottlerocket => "Bottlerocket, which reads TOML",
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
