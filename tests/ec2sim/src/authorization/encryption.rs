//! Keys: what a customer managed key demands of the caller whose volume it encrypts.

use super::{call::Call, volume::NewVolume};
use crate::iam::{Context, IfDenied, Request};

/// What a caller must be allowed in order to encrypt a new volume.
///
/// Source: EBS user guide, "Requirements for Amazon EBS encryption", "Permissions for users" (`kms:ReEncrypt`
/// is two actions: KMS developer guide, `ReEncrypt`).
const CREATION: [&str; 6] = [
    "CreateGrant",
    "Decrypt",
    "DescribeKey",
    "GenerateDataKeyWithoutPlaintext",
    "ReEncryptFrom",
    "ReEncryptTo",
];

/// AWS's own key, which every principal of the account may use through EBS (EBS user guide, "Default KMS key
/// for EBS encryption").
const AWS_MANAGED: &str = "alias/aws/ebs";

/// What the keys of new volumes demand. EC2 calls KMS after it has answered: the volume vanishes
/// (aws-ebs-csi-driver#1951, kubernetes/kubernetes#62171), and a launch ends with `Client.InternalError`
/// (re:Post, "kms-iam-ec2-permission").
pub(super) fn of_new_volumes<'a>(
    call: &Call<'_>,
    volumes: impl IntoIterator<Item = &'a NewVolume>,
) -> Vec<Request> {
    let mut keys: Vec<&str> = volumes.into_iter().filter_map(|volume| volume.kms_key.as_deref()).collect();
    keys.sort_unstable();
    keys.dedup();
    let managed = keys.into_iter().filter(|key| !key.ends_with(AWS_MANAGED));
    managed.flat_map(|key| CREATION.map(|action| request(call, action, key, IfDenied::FailsLater))).collect()
}

/// Source: EBS user guide, "How Amazon EBS encryption works": when an encrypted volume is attached, "Amazon
/// EC2 sends a CreateGrant request to AWS KMS".
pub(super) fn of_attachment(call: &Call<'_>, volume: &str) -> Option<Request> {
    let key = call.model.volume_as_is(volume)?.kms_key.as_deref()?;
    let if_denied = IfDenied::NotAttached(volume.to_owned());
    (!key.ends_with(AWS_MANAGED)).then(|| request(call, "CreateGrant", key, if_denied))
}

/// Source: KMS developer guide, "AWS KMS condition keys": `kms:ViaService`, and for CreateGrant
/// `kms:GrantIsForAWSResource`.
fn request(call: &Call<'_>, action: &str, key: &str, if_denied: IfDenied) -> Request {
    let region = &call.arns.world.region;
    let is_grant = action == "CreateGrant";
    let context = Context::default()
        .with("aws:RequestedRegion", region)
        .with("kms:ViaService", call.arns.service(&format!("ec2.{region}")))
        .with_some("kms:GrantIsForAWSResource", is_grant.then_some("true"));
    Request { action: format!("kms:{action}"), resource: call.arns.key(key), context, if_denied }
}
