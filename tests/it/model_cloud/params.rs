//! The parameters of calls in the Query protocol's words.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use freehold::api::InstanceId;
use freehold::cloud::LaunchRequest;

/// Keys and values.
pub type Params = Vec<(String, String)>;

/// One parameter.
#[expect(clippy::needless_pass_by_value, reason = "numbers and texts are written alike")]
pub fn param(key: impl Into<String>, value: impl ToString) -> (String, String) {
    (key.into(), value.to_string())
}

/// The tags of what a call makes.
pub fn tag_specification(index: usize, resource: &str, tags: &BTreeMap<String, String>) -> Params {
    let mut params = vec![param(format!("TagSpecification.{index}.ResourceType"), resource)];
    for (number, (key, value)) in tags.iter().enumerate() {
        params.push(param(format!("TagSpecification.{index}.Tag.{}.Key", number + 1), key));
        params.push(param(format!("TagSpecification.{index}.Tag.{}.Value", number + 1), value));
    }
    params
}

/// What CreateTags and DeleteTags take.
pub fn tag_list(ids: &[String], tags: &BTreeMap<String, String>) -> Params {
    let of_resource = |(number, id): (usize, &String)| param(format!("ResourceId.{number}"), id);
    let mut params: Params = (1..).zip(ids).map(of_resource).collect();
    for (number, (key, value)) in tags.iter().enumerate() {
        params.push(param(format!("Tag.{}.Key", number + 1), key));
        params.push(param(format!("Tag.{}.Value", number + 1), value));
    }
    params
}

/// What a list is narrowed to.
pub fn filters<'a>(filters: impl IntoIterator<Item = (String, Vec<&'a str>)>) -> Params {
    let mut params = Vec::new();
    for (index, (name, values)) in filters.into_iter().enumerate() {
        params.push(param(format!("Filter.{}.Name", index + 1), name));
        for (number, value) in values.into_iter().enumerate() {
            params.push(param(format!("Filter.{}.Value.{}", index + 1, number + 1), value));
        }
    }
    params
}

/// A list of what has all of these tags.
pub fn tag_filters(tags: &BTreeMap<String, String>) -> Params {
    filters(tags.iter().map(|(key, value)| (format!("tag:{key}"), vec![value.as_str()])))
}

/// What RunInstances takes.
pub fn launch_params(request: &LaunchRequest) -> Params {
    let mut params = vec![
        param("ClientToken", &request.token),
        param("MinCount", 1),
        param("MaxCount", 1),
        param("SubnetId", &request.subnet_id),
        param("InstanceType", &request.instance_type),
        param("ImageId", &request.image_id),
        param("UserData", STANDARD.encode(&request.user_data)),
        param("MetadataOptions.HttpTokens", "required"),
        param("MetadataOptions.HttpPutResponseHopLimit", 1),
        param("MetadataOptions.InstanceMetadataTags", "disabled"),
    ];
    for (number, disk) in request.disks.iter().enumerate() {
        let place = |name: &str| format!("BlockDeviceMapping.{}.{name}", number + 1);
        params.push(param(place("DeviceName"), &disk.device));
        params.push(param(place("Ebs.VolumeSize"), disk.size));
        params.push(param(place("Ebs.VolumeType"), &disk.volume_type));
        params.push(param(place("Ebs.Encrypted"), true));
        params.push(param(place("Ebs.DeleteOnTermination"), true));
        params.extend(request.kms_key_id.iter().map(|key| param(place("Ebs.KmsKeyId"), key)));
    }
    params.extend(request.instance_profile.iter().map(|name| param("IamInstanceProfile.Name", name)));
    params.extend(
        request
            .security_group_ids
            .iter()
            .enumerate()
            .map(|(n, id)| param(format!("SecurityGroupId.{}", n + 1), id)),
    );
    params.extend(tag_specification(1, "instance", &request.tags));
    params.extend(tag_specification(2, "volume", &request.tags));
    params.extend(tag_specification(3, "network-interface", &request.tags));
    params
}

/// These instances by their ids.
pub fn instance_ids(ids: &[InstanceId]) -> Params {
    ids.iter().enumerate().map(|(n, id)| param(format!("InstanceId.{}", n + 1), id)).collect()
}
