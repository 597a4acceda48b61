//! What is there before anybody calls: the region with its zones, subnets, images, groups, profiles, keys and
//! instance types.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The account's surroundings. They never change by a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct World {
    /// Twelve digits.
    pub account: String,

    /// Such as `us-east-1`.
    pub region: String,

    /// The availability zones of the region.
    pub zones: Vec<Zone>,

    /// The subnets; the first of a zone is its default one.
    pub subnets: Vec<Subnet>,

    /// The images that instances can be launched from.
    pub images: Vec<Image>,

    /// The security groups.
    pub security_groups: Vec<SecurityGroup>,

    /// The names of the instance profiles.
    pub instance_profiles: Vec<String>,

    /// The name of the role in each instance profile; one that is not here has the role of its own name, as
    /// the console makes them.
    #[serde(default)]
    pub profile_roles: BTreeMap<String, String>,

    /// The key ids or ARNs that volumes can be encrypted with; another key makes a volume vanish after its
    /// creation.
    pub kms_keys: Vec<String>,

    /// The names of the SSH key pairs.
    pub key_pairs: Vec<String>,

    /// The instance types on offer.
    pub instance_types: Vec<InstanceType>,
}

/// An availability zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// Such as `us-east-1a`.
    pub name: String,

    /// Such as `use1-az1`.
    pub id: String,
}

/// A subnet with a /20 block, as the addresses of the instances are made from its first three numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subnet {
    /// `subnet-…`.
    pub id: String,

    /// `vpc-…`.
    pub vpc_id: String,

    /// The name of its zone.
    pub zone: String,

    /// The block, `a.b.c.0/len`.
    pub cidr: String,

    /// How many instances find an address in it.
    pub addresses: u32,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// `ami-…`.
    pub id: String,

    /// Its name.
    pub name: String,

    /// `x86_64` or `arm64`.
    pub architecture: String,

    /// The device of the root volume.
    pub root_device: String,

    /// The size of the root volume's snapshot, in GiB; a root volume has at least this size.
    pub root_size: u32,
}

/// A security group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecurityGroup {
    /// `sg-…`.
    pub id: String,

    /// Its name.
    pub name: String,

    /// `vpc-…`.
    pub vpc_id: String,
}

/// An instance type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceType {
    /// Such as `r7i.large`.
    pub name: String,

    /// Virtual processors.
    pub vcpus: u32,

    /// Memory in MiB.
    pub memory: u32,

    /// `x86_64` or `arm64`.
    pub architecture: String,

    /// How many EBS volumes an instance takes, the root volume included.
    pub volumes: usize,

    /// The zones that offer it; empty means all.
    pub zones: Vec<String>,
}

impl InstanceType {
    /// A Nitro type on x86: 28 attachments shared with network interfaces, of which one is always there (EC2
    /// user guide, "Amazon EBS volume limits for Amazon EC2 instances").
    fn x86(name: &str, vcpus: u32, memory: u32) -> Self {
        Self {
            name: name.into(),
            vcpus,
            memory,
            architecture: "x86_64".into(),
            volumes: 27,
            zones: Vec::new(),
        }
    }

    fn arm(name: &str, vcpus: u32, memory: u32) -> Self {
        Self { architecture: "arm64".into(), ..Self::x86(name, vcpus, memory) }
    }

    /// Whether the type can be launched in `zone`.
    pub fn is_offered_in(&self, zone: &str) -> bool {
        self.zones.is_empty() || self.zones.iter().any(|offered| offered == zone)
    }
}

impl World {
    /// The type of this name.
    pub fn instance_type(&self, name: &str) -> Option<&InstanceType> {
        self.instance_types.iter().find(|candidate| candidate.name == name)
    }

    /// The subnet of this id.
    pub fn subnet(&self, id: &str) -> Option<&Subnet> {
        self.subnets.iter().find(|candidate| candidate.id == id)
    }

    /// The image of this id.
    pub fn image(&self, id: &str) -> Option<&Image> {
        self.images.iter().find(|candidate| candidate.id == id)
    }

    /// The ARN of an instance profile.
    pub fn instance_profile_arn(&self, name: &str) -> String {
        format!("arn:{}:iam::{}:instance-profile/{name}", self.partition(), self.account)
    }

    /// The ARN of the role in the instance profile of this ARN, if there is such a profile.
    pub fn role_of_profile(&self, profile_arn: &str) -> Option<String> {
        let profile =
            self.instance_profiles.iter().find(|name| self.instance_profile_arn(name) == profile_arn)?;
        let role = self.profile_roles.get(profile).unwrap_or(profile);
        Some(format!("arn:{}:iam::{}:role/{role}", self.partition(), self.account))
    }

    /// The partition that the region is in (AWS General Reference, "Amazon Resource Names").
    pub fn partition(&self) -> &'static str {
        if self.region.starts_with("cn-") {
            "aws-cn"
        } else if self.region.starts_with("us-gov-") {
            "aws-us-gov"
        } else {
            "aws"
        }
    }
}

/// `us-east-1` with three zones, one subnet each (`subnet-0a…`, `subnet-0b…`, `subnet-0c…`), one image for
/// each architecture, a security group, an instance profile, a KMS key and a table of common types.
impl Default for World {
    fn default() -> Self {
        let region = "us-east-1";
        let vpc_id = "vpc-00000000000000001";
        let zones: Vec<Zone> = [("a", "1"), ("b", "2"), ("c", "4")]
            .into_iter()
            .map(|(letter, number)| Zone {
                name: format!("{region}{letter}"),
                id: format!("use1-az{number}"),
            })
            .collect();
        let subnets = ["a", "b", "c"]
            .into_iter()
            .zip([0, 16, 32])
            .map(|(letter, block)| Subnet {
                id: format!("subnet-0{letter}000000000000000"),
                vpc_id: vpc_id.into(),
                zone: format!("{region}{letter}"),
                cidr: format!("10.0.{block}.0/20"),
                addresses: 4091,
            })
            .collect();
        let image = |id: &str, architecture: &str| Image {
            id: id.into(),
            name: format!("freestanding-{architecture}"),
            architecture: architecture.into(),
            root_device: "/dev/xvda".into(),
            root_size: 8,
        };
        Self {
            account: "123456789012".into(),
            region: region.into(),
            zones,
            subnets,
            images: vec![image("ami-0000000000000000a", "x86_64"), image("ami-0000000000000000b", "arm64")],
            security_groups: vec![SecurityGroup {
                id: "sg-00000000000000001".into(),
                name: "nodes".into(),
                vpc_id: vpc_id.into(),
            }],
            instance_profiles: vec!["nodes".into()],
            profile_roles: BTreeMap::new(),
            kms_keys: vec![
                "arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000001".into(),
            ],
            key_pairs: Vec::new(),
            instance_types: common_types(),
        }
    }
}

/// Common instance types of four sorts: x86, ARM, one with GPUs, and small ones.
fn common_types() -> Vec<InstanceType> {
    let mut types = Vec::new();
    for (family, gib_per_vcpu) in [("r7i", 8), ("r6i", 8), ("m7i", 4), ("m6i", 4), ("c7i", 2), ("c6i", 2)] {
        for (size, vcpus) in [("large", 2), ("xlarge", 4), ("2xlarge", 8), ("4xlarge", 16), ("8xlarge", 32)] {
            types.push(InstanceType::x86(&format!("{family}.{size}"), vcpus, vcpus * gib_per_vcpu * 1024));
        }
    }
    for (family, gib_per_vcpu) in [("r7g", 8), ("m7g", 4), ("c7g", 2)] {
        for (size, vcpus) in [("large", 2), ("xlarge", 4), ("2xlarge", 8)] {
            types.push(InstanceType::arm(&format!("{family}.{size}"), vcpus, vcpus * gib_per_vcpu * 1024));
        }
    }
    types.push(InstanceType::x86("p5.48xlarge", 192, 2048 * 1024));
    for (size, gib) in [("small", 2), ("medium", 4), ("large", 8)] {
        types.push(InstanceType::x86(&format!("t3.{size}"), 2, gib * 1024));
    }
    types
}
