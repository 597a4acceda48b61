//! The parameters of RunInstances: read, and refused if EC2 would.

use super::{
    Model,
    shapes::{Wanted, new_shape},
    tags::TagSpecs,
};
use crate::{
    Image, InstanceType, Refusal, Shape, Subnet,
    params::{Reader, invalid},
    view::MetadataOptions,
};

/// The most user data, before its base64 (EC2 user guide, "Run commands on your Linux instance at launch").
const USER_DATA: usize = 16_384;

/// A volume that is made with an instance.
pub(super) struct Mapping {
    pub(super) device: String,
    pub(super) shape: Shape,
    pub(super) encrypted: bool,
    pub(super) kms_key: Option<String>,
    pub(super) snapshot_id: Option<String>,
    pub(super) delete_on_termination: bool,
}

/// A launch that was found to be sound.
pub(super) struct Launch {
    pub(super) image: Image,
    pub(super) instance_type: InstanceType,
    pub(super) subnet: Subnet,
    /// The zone that the request named, by subnet or placement.
    pub(super) named_zone: Option<String>,
    pub(super) count: u32,
    pub(super) security_groups: Vec<String>,
    pub(super) instance_profile: Option<String>,
    pub(super) key_name: Option<String>,
    pub(super) user_data: Option<String>,
    pub(super) metadata: MetadataOptions,
    pub(super) ebs_optimized: bool,
    pub(super) termination_protected: bool,
    pub(super) shutdown_behavior: String,
    pub(super) token: Option<String>,
    pub(super) tags: TagSpecs,
    pub(super) mappings: Vec<Mapping>,
    pub(super) dry_run: bool,
}

impl Model {
    pub(super) fn read_launch(&self, r: &mut Reader, hash: &str) -> Result<Launch, Refusal> {
        let dry_run = r.flag("DryRun")?;
        let image = self.read_image(&r.required("ImageId")?)?;
        let type_name = r.text("InstanceType").unwrap_or_else(|| "m1.small".to_owned());
        let instance_type = self
            .world
            .instance_type(&type_name)
            .cloned()
            .ok_or_else(|| Refusal::value(format!("Invalid value '{type_name}' for InstanceType.")))?;
        if instance_type.architecture != image.architecture {
            return Err(Refusal::value(format!(
                "The architecture '{}' of the specified instance type does not match the architecture '{}' \
                    of the specified AMI.",
                instance_type.architecture, image.architecture
            )));
        }
        let least: u32 = r.number("MinCount")?.ok_or_else(|| Refusal::missing("MinCount"))?;
        let count: u32 = r.number("MaxCount")?.ok_or_else(|| Refusal::missing("MaxCount"))?;
        if least == 0 || count < least {
            return Err(invalid("minCount", &least.to_string()));
        }
        let (subnet, named_zone) = self.read_place(r)?;
        let tags = TagSpecs::read(r, &["instance", "network-interface", "volume"])?;
        let mappings = self.read_mappings(r, &image)?;
        let shutdown_behavior =
            r.text("InstanceInitiatedShutdownBehavior").unwrap_or_else(|| "stop".to_owned());
        if !["stop", "terminate"].contains(&shutdown_behavior.as_str()) {
            return Err(invalid("instanceInitiatedShutdownBehavior", &shutdown_behavior));
        }
        Ok(Launch {
            security_groups: self.read_groups(r, &subnet)?,
            instance_profile: self.read_profile(r)?,
            key_name: self.read_key(r)?,
            user_data: read_user_data(r)?,
            metadata: read_metadata(r)?,
            ebs_optimized: r.flag("EbsOptimized")?,
            termination_protected: r.flag("DisableApiTermination")?,
            token: self.read_token(r, hash),
            image,
            instance_type,
            subnet,
            named_zone,
            count,
            shutdown_behavior,
            tags,
            mappings,
            dry_run,
        })
    }

    fn read_image(&self, id: &str) -> Result<Image, Refusal> {
        if !id.starts_with("ami-") {
            return Err(Refusal::new(
                "InvalidAMIID.Malformed",
                format!("Invalid id: \"{id}\" (expecting \"ami-...\")"),
            ));
        }
        self.world.image(id).cloned().ok_or_else(|| {
            Refusal::new("InvalidAMIID.NotFound", format!("The image id '[{id}]' does not exist"))
        })
    }

    fn read_place(&self, r: &mut Reader) -> Result<(Subnet, Option<String>), Refusal> {
        let zone = r.text("Placement.AvailabilityZone");
        if let Some(tenancy) = r.text("Placement.Tenancy").filter(|tenancy| tenancy != "default") {
            return Err(Refusal::unsupported(format!("The tenancy {tenancy} is not modelled")));
        }
        if let Some(zone) = &zone
            && !self.world.zones.iter().any(|known| known.name == *zone)
        {
            return Err(Refusal::value(format!("Invalid availability zone: [{zone}]")));
        }
        if let Some(id) = r.text("SubnetId") {
            let subnet = self.world.subnet(&id).cloned().ok_or_else(|| {
                Refusal::new("InvalidSubnetID.NotFound", format!("The subnet ID '{id}' does not exist"))
            })?;
            if zone.as_ref().is_some_and(|zone| *zone != subnet.zone) {
                return Err(Refusal::value(format!(
                    "The subnet '{id}' is not in the specified availability \
                    zone"
                )));
            }
            let zone = subnet.zone.clone();
            return Ok((subnet, Some(zone)));
        }
        let subnet =
            self.world.subnets.iter().find(|subnet| zone.as_ref().is_none_or(|zone| *zone == subnet.zone));
        let subnet = subnet.cloned().ok_or_else(|| {
            Refusal::new(
                "MissingInput",
                "No subnets found for the default VPC in this zone. Please specify a subnet.",
            )
        })?;
        Ok((subnet, zone))
    }

    fn read_groups(&self, r: &mut Reader, subnet: &Subnet) -> Result<Vec<String>, Refusal> {
        let groups = r.list("SecurityGroupId");
        for id in &groups {
            if !self
                .world
                .security_groups
                .iter()
                .any(|group| group.id == *id && group.vpc_id == subnet.vpc_id)
            {
                return Err(Refusal::new(
                    "InvalidGroup.NotFound",
                    format!("The security group '{id}' does not exist"),
                ));
            }
        }
        Ok(groups)
    }

    fn read_profile(&self, r: &mut Reader) -> Result<Option<String>, Refusal> {
        let (name, arn) = (r.text("IamInstanceProfile.Name"), r.text("IamInstanceProfile.Arn"));
        if name.is_some() && arn.is_some() {
            return Err(Refusal::combination(
                "The parameters iamInstanceProfile.name and .arn exclude each \
                other",
            ));
        }
        let known = |arn: &String| {
            self.world.instance_profiles.iter().any(|name| self.world.instance_profile_arn(name) == *arn)
        };
        let is_by_name = name.is_some();
        let Some(arn) = arn.or_else(|| name.map(|name| self.world.instance_profile_arn(&name))) else {
            return Ok(None);
        };
        if known(&arn) {
            return Ok(Some(arn));
        }
        let (field, what) = if is_by_name { ("name", "name") } else { ("arn", "ARN") };
        let value = if is_by_name { arn.rsplit('/').next().unwrap_or_default() } else { &arn };
        Err(Refusal::value(format!(
            "Value ({value}) for parameter iamInstanceProfile.{field} is invalid. Invalid IAM Instance \
                Profile {what}"
        )))
    }

    fn read_key(&self, r: &mut Reader) -> Result<Option<String>, Refusal> {
        let key = r.text("KeyName");
        match key {
            Some(key) if !self.world.key_pairs.contains(&key) => {
                Err(Refusal::new("InvalidKeyPair.NotFound", format!("The key pair '{key}' does not exist")))
            }
            key => Ok(key),
        }
    }

    fn read_mappings(&self, r: &mut Reader, image: &Image) -> Result<Vec<Mapping>, Refusal> {
        let mut mappings: Vec<Mapping> = Vec::new();
        for index in r.indexes("BlockDeviceMapping") {
            let at = format!("BlockDeviceMapping.{index}.");
            let device = r.required(&format!("{at}DeviceName"))?;
            let is_root = device == image.root_device;
            let snapshot_id = r.text(&format!("{at}Ebs.SnapshotId"));
            let snapshot = match &snapshot_id {
                Some(id) => Some(self.find_snapshot(id)?.size),
                None => is_root.then_some(image.root_size),
            };
            let wanted = Wanted::read(r, &format!("{at}Ebs."), "VolumeSize")?;
            let kms_key = r.text(&format!("{at}Ebs.KmsKeyId"));
            let encrypted = r.flag(&format!("{at}Ebs.Encrypted"))?;
            if kms_key.is_some() && !encrypted {
                return Err(Refusal::new(
                    "InvalidParameterDependency",
                    "The parameter KmsKeyId requires the parameter Encrypted to be set.",
                ));
            }
            if mappings.iter().any(|other| other.device == device) {
                return Err(Refusal::new(
                    "InvalidBlockDeviceMapping",
                    format!("The device '{device}' is used in more than one block-device mapping"),
                ));
            }
            mappings.push(Mapping {
                shape: new_shape(&wanted, "gp2", snapshot, &self.rules.truths)?,
                delete_on_termination: r
                    .optional_flag(&format!("{at}Ebs.DeleteOnTermination"))?
                    .unwrap_or(is_root),
                device,
                encrypted,
                kms_key,
                snapshot_id,
            });
        }
        if !mappings.iter().any(|mapping| mapping.device == image.root_device) {
            let wanted = Wanted { size: Some(image.root_size), ..Wanted::default() };
            mappings.insert(
                0,
                Mapping {
                    device: image.root_device.clone(),
                    shape: new_shape(&wanted, "gp3", None, &self.rules.truths)?,
                    encrypted: false,
                    kms_key: None,
                    snapshot_id: None,
                    delete_on_termination: true,
                },
            );
        }
        Ok(mappings)
    }
}

fn read_user_data(r: &mut Reader) -> Result<Option<String>, Refusal> {
    let Some(encoded) = r.text("UserData") else {
        return Ok(None);
    };
    let unwrapped: String = encoded.chars().filter(|character| !character.is_whitespace()).collect();
    let decoded = data_encoding::BASE64.decode(unwrapped.as_bytes()).map_err(|_| {
        Refusal::value(
            "Invalid BASE64 \
            encoding of user data.",
        )
    })?;
    if decoded.len() > USER_DATA {
        return Err(Refusal::value(format!("User data is limited to {USER_DATA} bytes")));
    }
    Ok(Some(String::from_utf8_lossy(&decoded).into_owned()))
}

fn read_metadata(r: &mut Reader) -> Result<MetadataOptions, Refusal> {
    let mut read = |key: &str, default: &str, allowed: [&str; 2]| {
        let key = format!("MetadataOptions.{key}");
        let value = r.text(&key).unwrap_or_else(|| default.to_owned());
        if allowed.contains(&value.as_str()) { Ok(value) } else { Err(invalid(&key, &value)) }
    };
    let http_tokens = read("HttpTokens", "optional", ["optional", "required"])?;
    let http_endpoint = read("HttpEndpoint", "enabled", ["enabled", "disabled"])?;
    let instance_metadata_tags = read("InstanceMetadataTags", "disabled", ["enabled", "disabled"])?;
    let hop_limit: u32 = r.number("MetadataOptions.HttpPutResponseHopLimit")?.unwrap_or(1);
    if !(1..=64).contains(&hop_limit) {
        return Err(invalid("MetadataOptions.HttpPutResponseHopLimit", &hop_limit.to_string()));
    }
    Ok(MetadataOptions { http_tokens, hop_limit, http_endpoint, instance_metadata_tags })
}
