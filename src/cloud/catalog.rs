//! What EC2 offers to a `NodeClass`: images, subnets, security groups, instance types.

/// A machine image (AMI).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Whether instances can be launched from it: EC2 shows it as available.
    pub is_available: bool,
    /// `x86_64` or `arm64`.
    pub architecture: String,
    /// The device name of its root disk.
    pub root_device: String,
    /// Its EBS disks, the root disk included.
    pub disks: Vec<ImageDisk>,
}

/// An EBS disk of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageDisk {
    /// Its device name.
    pub device: String,
    /// GiB: a volume made of it has at least this size.
    pub size: Option<i32>,
}

/// A subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// Its id.
    pub id: String,
    /// Its VPC.
    pub vpc_id: String,
    /// Its availability zone.
    pub zone: String,
    /// How many of its addresses no network interface has.
    pub free_addresses: i32,
}

/// A security group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityGroup {
    /// Its id.
    pub id: String,
    /// Its VPC.
    pub vpc_id: String,
}

/// An instance type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceType {
    /// Its name, such as `r7i.large`.
    pub name: String,
    /// The architectures of images that it runs.
    pub architectures: Vec<String>,
}
