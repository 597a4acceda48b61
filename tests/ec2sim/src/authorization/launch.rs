//! RunInstances: the image, the instance, its network interface and volumes, its surroundings, and the role
//! that it is given.
//!
//! Source: Service Authorization Reference, `RunInstances`; EC2 user guide, "Example policies to control
//! access the Amazon EC2 API", "Launch instances (RunInstances)". The snapshots behind an image are not
//! among the resources of those examples: a snapshot is one if the request itself names it.

use super::{call::Call, encryption, tags::NewTags, volume::NewVolume};
use crate::{
    Subnet,
    iam::{Context, IfDenied, Request},
};

pub(super) fn requests(call: &mut Call<'_>) -> Vec<Request> {
    let tags = NewTags::read(&mut call.given);
    let image = call.given.text("ImageId");
    let key = call.given.text("KeyName");
    let named_subnet = call.given.text("SubnetId");
    let subnet = place(call, named_subnet.as_deref());
    let zone = subnet.as_ref().map(|subnet| subnet.zone.as_str());
    let profile = profile(call);
    let volumes = volumes(call, image.as_deref());

    let mut requests = Vec::new();
    requests.extend(image.as_deref().map(|id| on_image(call, id)));
    let context = instance(call, zone, profile.as_deref());
    requests.push(call.request(call.arns.ec2("instance", "*"), tags.of(context, "instance")));
    requests.extend(key.map(|name| {
        let context = call.context().with("ec2:KeyPairName", &name);
        call.request(call.arns.ec2("key-pair", &name), context)
    }));
    let context = network_interface(call, subnet.as_ref());
    requests
        .push(call.request(call.arns.ec2("network-interface", "*"), tags.of(context, "network-interface")));
    requests.extend(on_groups(call, subnet.as_ref()));
    requests.extend(volumes.iter().filter_map(|volume| call.on(volume.snapshot_id.as_ref()?)));
    requests.extend(named_subnet.map(|id| on_subnet(call, &id)));
    for volume in &volumes {
        let context = tags.of(volume.context(call, zone), "volume");
        requests.push(call.request(call.arns.ec2("volume", "*"), context));
    }
    requests.extend(tags.requests(call));
    requests.extend(profile.and_then(|arn| pass_role(call, &arn)));
    requests.extend(encryption::of_new_volumes(call, &volumes));
    requests
}

/// The subnet that the launch goes to: the named one, or the default one of the zone.
fn place(call: &mut Call<'_>, named: Option<&str>) -> Option<Subnet> {
    let zone = call.given.text("Placement.AvailabilityZone");
    let world = call.arns.world;
    let is_default = |subnet: &&Subnet| zone.as_ref().is_none_or(|zone| *zone == subnet.zone);
    match named {
        Some(id) => world.subnet(id).cloned(),
        None => world.subnets.iter().find(is_default).cloned(),
    }
}

/// The ARN of the instance profile.
fn profile(call: &mut Call<'_>) -> Option<String> {
    let (name, arn) = (call.given.text("IamInstanceProfile.Name"), call.given.text("IamInstanceProfile.Arn"));
    arn.or_else(|| name.map(|name| call.arns.world.instance_profile_arn(&name)))
}

/// The volumes of the block-device mapping, and the root volume if it is not among them.
fn volumes(call: &mut Call<'_>, image: Option<&str>) -> Vec<NewVolume> {
    let image = image.and_then(|id| call.arns.world.image(id));
    let mut volumes = Vec::new();
    let mut has_root = false;
    for index in call.given.indexes("BlockDeviceMapping") {
        let at = format!("BlockDeviceMapping.{index}.");
        let device = call.given.text(&format!("{at}DeviceName"));
        let volume = NewVolume::read(&mut call.given, &format!("{at}Ebs."), "VolumeSize");
        let root = image.filter(|image| device.as_ref() == Some(&image.root_device));
        has_root |= root.is_some();
        volumes.push(match root {
            Some(image) if volume.snapshot_id.is_none() => volume.or_size(image.root_size),
            _ => volume,
        });
    }
    if let Some(image) = image.filter(|_| !has_root) {
        volumes.push(NewVolume::of_image().or_size(image.root_size));
    }
    volumes
}

fn on_image(call: &Call<'_>, id: &str) -> Request {
    let world = call.arns.world;
    let mut context = call.context().with("ec2:ImageID", id);
    if world.image(id).is_some() {
        context = context
            .with("ec2:ImageType", "machine")
            .with("ec2:Owner", &world.account)
            .with("ec2:Public", "false")
            .with("ec2:RootDeviceType", "ebs");
    }
    call.request(call.arns.ec2("image", id), context)
}

/// What the launch says of its instance. The options of the metadata service are there if the request names
/// them: what EC2 fills in (from the image, the account, or by itself) a policy must not rely on.
fn instance(call: &mut Call<'_>, zone: Option<&str>, profile: Option<&str>) -> Context {
    let mut context = call.context();
    for (key, name) in [
        ("ec2:MetadataHttpTokens", "HttpTokens"),
        ("ec2:MetadataHttpPutResponseHopLimit", "HttpPutResponseHopLimit"),
        ("ec2:MetadataHttpEndpoint", "HttpEndpoint"),
        ("ec2:InstanceMetadataTags", "InstanceMetadataTags"),
    ] {
        context = context.with_some(key, call.given.text(&format!("MetadataOptions.{name}")));
    }
    let optimized = call.given.text("EbsOptimized").unwrap_or_else(|| "false".to_owned());
    context
        .with("ec2:InstanceType", call.given.text("InstanceType").unwrap_or_else(|| "m1.small".to_owned()))
        .with("ec2:EbsOptimized", optimized)
        .with("ec2:InstanceMarketType", "on-demand")
        .with("ec2:RootDeviceType", "ebs")
        .with("ec2:Tenancy", "default")
        .with_some("ec2:AvailabilityZone", zone)
        .with_some("ec2:InstanceProfile", profile)
}

fn network_interface(call: &Call<'_>, subnet: Option<&Subnet>) -> Context {
    let arn = |kind: &str, id: &str| call.arns.ec2(kind, id);
    call.context()
        .with_some("ec2:AvailabilityZone", subnet.map(|subnet| &subnet.zone))
        .with_some("ec2:Subnet", subnet.map(|subnet| arn("subnet", &subnet.id)))
        .with_some("ec2:Vpc", subnet.map(|subnet| arn("vpc", &subnet.vpc_id)))
}

/// The security groups; without one the VPC's default group is used, which the world does not have.
fn on_groups(call: &mut Call<'_>, subnet: Option<&Subnet>) -> Vec<Request> {
    let named = call.given.list("SecurityGroupId");
    let ids = if named.is_empty() { vec!["*".to_owned()] } else { named };
    let on = |id: &String| {
        let group = call.arns.world.security_groups.iter().find(|group| group.id == *id);
        let vpc = group.map(|group| &group.vpc_id).or_else(|| subnet.map(|subnet| &subnet.vpc_id));
        let context = call
            .context()
            .with_some("ec2:SecurityGroupID", group.map(|group| &group.id))
            .with_some("ec2:Vpc", vpc.map(|id| call.arns.ec2("vpc", id)));
        call.request(call.arns.ec2("security-group", id), context)
    };
    ids.iter().map(on).collect()
}

fn on_subnet(call: &Call<'_>, id: &str) -> Request {
    let known = call.arns.world.subnet(id);
    let context = call
        .context()
        .with("ec2:SubnetID", id)
        .with_some("ec2:AvailabilityZone", known.map(|subnet| &subnet.zone))
        .with_some("ec2:Vpc", known.map(|subnet| call.arns.ec2("vpc", &subnet.vpc_id)));
    call.request(call.arns.ec2("subnet", id), context)
}

/// Source: IAM User Guide, "Grant a user permissions to pass a role to an AWS service"; EC2 user guide, "IAM
/// roles for Amazon EC2". EC2 refuses a profile that does not exist by itself.
fn pass_role(call: &Call<'_>, profile: &str) -> Option<Request> {
    let resource = call.arns.world.role_of_profile(profile)?;
    let context = Context::default().with("iam:PassedToService", call.arns.service("ec2"));
    let action = "iam:PassRole".to_owned();
    Some(Request { action, resource, context, if_denied: IfDenied::CallRefused })
}
