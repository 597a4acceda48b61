//! The condition keys that the simulator can answer for.
//!
//! Source: Service Authorization Reference, "Actions, resources, and condition keys" for Amazon EC2, AWS KMS
//! and AWS IAM; IAM User Guide, "AWS global condition context keys". A key that is not here is refused when
//! the policy is read: it would be absent from every request, which looks the same as a condition that does
//! not fit.

/// How many values a key may have in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One at most.
    Single,
    /// Any number: a condition on it needs `ForAllValues` or `ForAnyValue`.
    Many,
}

/// The keys with the name of a tag behind them.
pub(crate) const TAGS: [&str; 3] = ["aws:RequestTag/", "aws:ResourceTag/", "ec2:ResourceTag/"];

/// The key of many values.
pub(crate) const TAG_KEYS: &str = "aws:TagKeys";

/// The keys of one value.
pub(crate) const SINGLE: [&str; 38] = [
    "aws:RequestedRegion",
    "ec2:AvailabilityZone",
    "ec2:CreateAction",
    "ec2:EbsOptimized",
    "ec2:Encrypted",
    "ec2:ImageID",
    "ec2:ImageType",
    "ec2:InstanceID",
    "ec2:InstanceMarketType",
    "ec2:InstanceMetadataTags",
    "ec2:InstanceProfile",
    "ec2:InstanceType",
    "ec2:KeyPairName",
    "ec2:KmsKeyId",
    "ec2:MetadataHttpEndpoint",
    "ec2:MetadataHttpPutResponseHopLimit",
    "ec2:MetadataHttpTokens",
    "ec2:Owner",
    "ec2:ParentSnapshot",
    "ec2:ParentVolume",
    "ec2:Public",
    "ec2:Region",
    "ec2:RootDeviceType",
    "ec2:SecurityGroupID",
    "ec2:SnapshotID",
    "ec2:SnapshotTime",
    "ec2:Subnet",
    "ec2:SubnetID",
    "ec2:Tenancy",
    "ec2:VolumeID",
    "ec2:VolumeIops",
    "ec2:VolumeSize",
    "ec2:VolumeThroughput",
    "ec2:VolumeType",
    "ec2:Vpc",
    "iam:PassedToService",
    "kms:GrantIsForAWSResource",
    "kms:ViaService",
];

/// What is known of a key; `None` if nothing is.
pub(crate) fn kind(key: &str) -> Option<Kind> {
    let is_tag = TAGS.iter().any(|prefix| {
        key.len() > prefix.len()
            && key.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix))
    });
    if is_tag || SINGLE.iter().any(|known| known.eq_ignore_ascii_case(key)) {
        Some(Kind::Single)
    } else {
        key.eq_ignore_ascii_case(TAG_KEYS).then_some(Kind::Many)
    }
}
