//! Where instances and volumes are made: subnets of two zones, an image and an instance type.

use super::{
    element::Element,
    wire::{CallError, Wire},
};

/// The image that is looked for on AWS: Amazon Linux, whose own volume is small.
const AWS_IMAGES: &str = "al2023-ami-minimal-2023*-x86_64";

/// Where instances and volumes are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) subnet: String,
    pub(super) zone: String,
    /// In another zone; empty if there is none.
    pub(super) other_subnet: String,
    pub(super) other_zone: String,
    pub(super) image: String,
    pub(super) instance_type: String,
    /// The ARN of a KMS key of this account that does not exist.
    pub(super) no_key: String,
}

/// What the person has chosen.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The subnet that instances are made in.
    pub subnet: Option<String>,

    /// A subnet of another zone.
    pub other_subnet: Option<String>,

    /// The image of the instances, for x86.
    pub image: Option<String>,

    /// The type of the instances.
    pub instance_type: Option<String>,
}

/// Looks the place up. On AWS only the default subnets are taken without being named, since others may lead
/// anywhere.
///
/// # Errors
/// A sentence with the way out.
pub(super) async fn find(wire: &Wire, region: &str, wanted: &Wanted, is_aws: bool) -> Result<Place, String> {
    let failed = |error: CallError| format!("nothing could be looked up: {error}");
    let answer = wire.send("DescribeSubnets", &[] as &[(&str, &str)]).await.map_err(failed)?;
    let mut subnets: Vec<(bool, String, String)> = answer
        .items("subnetSet")
        .map(|subnet| {
            let text = |name: &str| subnet.text(name).to_owned();
            (subnet.text("defaultForAz") == "true", text("availabilityZone"), text("subnetId"))
        })
        .collect();
    subnets.sort_by(|one, other| (!one.0, &one.1, &one.2).cmp(&(!other.0, &other.1, &other.2)));
    let named = |id: &String| {
        let found = subnets.iter().find(|(_, _, other)| other == id).cloned();
        found.ok_or_else(|| format!("there is no subnet {id}"))
    };
    let free = |besides: &str| {
        subnets.iter().find(|(is_default, zone, _)| (*is_default || !is_aws) && zone != besides).cloned()
    };
    let (_, zone, subnet) = match &wanted.subnet {
        Some(id) => named(id)?,
        None => free("").ok_or(
            "the Region has no default subnet: name one with --subnet, and one of another zone with \
             --other-subnet",
        )?,
    };
    let (_, other_zone, other_subnet) = match &wanted.other_subnet {
        Some(id) => named(id)?,
        None => free(&zone).unwrap_or_default(),
    };
    let image = match &wanted.image {
        Some(id) => id.clone(),
        None => find_image(wire, is_aws).await?,
    };
    let default_type = if is_aws { "t3.nano" } else { "t3.small" };
    let instance_type = wanted.instance_type.clone().unwrap_or_else(|| default_type.to_owned());
    let account = answer.items("subnetSet").next().map(|one| one.text("ownerId")).unwrap_or_default();
    let no_key = no_key(region, account);
    Ok(Place { subnet, zone, other_subnet, other_zone, image, instance_type, no_key })
}

/// Source: AWS General Reference, "Amazon Resource Names", for the partitions.
fn no_key(region: &str, account: &str) -> String {
    let partition = match region.split('-').next() {
        Some("cn") => "aws-cn",
        Some("us") if region.starts_with("us-gov-") => "aws-us-gov",
        _ => "aws",
    };
    format!("arn:{partition}:kms:{region}:{account}:key/00000000-0000-0000-0000-00000000dead")
}

async fn find_image(wire: &Wire, is_aws: bool) -> Result<String, String> {
    let mut params = vec![("Filter.1.Name", "architecture"), ("Filter.1.Value.1", "x86_64")];
    if is_aws {
        params.extend([("Owner.1", "amazon"), ("Filter.2.Name", "name"), ("Filter.2.Value.1", AWS_IMAGES)]);
    }
    let answer = wire.send("DescribeImages", &params).await;
    let answer = answer.map_err(|error| format!("no image could be looked up: {error}"))?;
    // moto's images of other systems need not have a root volume.
    let usable =
        |image: &&Element| image.text("rootDeviceType") == "ebs" && image.text("platform").is_empty();
    let newest = answer.items("imagesSet").filter(usable).max_by_key(|image| image.text("creationDate"));
    let id = newest.map(|image| image.text("imageId").to_owned());
    id.ok_or_else(|| "no image for x86 was found: name one with --image".to_owned())
}
