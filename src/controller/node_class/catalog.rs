//! What EC2 has of what a NodeClass names, as values.

use crate::cloud::catalog::{Image, InstanceType, SecurityGroup, Subnet};

/// What EC2 has of what the class names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    /// The image.
    pub image: Option<Image>,
    /// Those of the subnets that there are.
    pub subnets: Vec<Subnet>,
    /// Those of the security groups that there are.
    pub security_groups: Vec<SecurityGroup>,
    /// The instance types that match the class' patterns.
    pub instance_types: Vec<InstanceType>,
}
