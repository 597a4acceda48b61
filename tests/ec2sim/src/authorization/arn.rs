//! The ARNs of the account's resources.
//!
//! Source: Service Authorization Reference, "Actions, resources, and condition keys" for Amazon EC2, AWS IAM
//! and AWS KMS, "Resource types".

use crate::World;

/// Makes ARNs of one account and Region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arns<'a> {
    pub(super) world: &'a World,
}

impl Arns<'_> {
    /// A resource of EC2. Images and snapshots have no account in their ARN.
    pub(super) fn ec2(self, kind: &str, id: &str) -> String {
        let World { account, region, .. } = self.world;
        let account = if matches!(kind, "image" | "snapshot") { "" } else { account };
        format!("arn:{}:ec2:{region}:{account}:{kind}/{id}", self.world.partition())
    }

    /// A key, by its ARN, its alias or its id.
    pub(super) fn key(self, id: &str) -> String {
        let World { account, region, .. } = self.world;
        if id.starts_with("arn:") {
            return id.to_owned();
        }
        let name = if id.starts_with("alias/") { id.to_owned() } else { format!("key/{id}") };
        format!("arn:{}:kms:{region}:{account}:{name}", self.world.partition())
    }

    /// The host name of EC2's service principal or endpoint: `ec2.amazonaws.com`, or with the Region.
    ///
    /// In China it ends in `.cn` (terraform-aws-modules/terraform-aws-eks#3057).
    pub(super) fn service(self, name: &str) -> String {
        let suffix = if self.world.partition() == "aws-cn" { ".cn" } else { "" };
        format!("{name}.amazonaws.com{suffix}")
    }
}
