//! `CreateVolume` and `CreateSnapshot`.

use super::{call::Call, encryption, tags::NewTags, volume::NewVolume};
use crate::iam::Request;

/// Source: Service Authorization Reference, `CreateVolume`: the volume, and the snapshot that it is made
/// from.
pub(super) fn volume(call: &mut Call<'_>) -> Vec<Request> {
    let tags = NewTags::read(&mut call.given);
    let new = NewVolume::read(&mut call.given, "", "Size");
    let (name, id) = (call.given.text("AvailabilityZone"), call.given.text("AvailabilityZoneId"));
    let zones = &call.arns.world.zones;
    let zone = name
        .or_else(|| zones.iter().find(|zone| Some(&zone.id) == id.as_ref()).map(|zone| zone.name.clone()));
    let context = new.context(call, zone.as_deref()).with_some("ec2:KmsKeyId", new.kms_key.as_ref());
    let mut requests: Vec<Request> = new.snapshot_id.iter().filter_map(|id| call.on(id)).collect();
    requests.push(call.request(call.arns.ec2("volume", "*"), tags.of(context, "volume")));
    requests.extend(tags.requests(call));
    requests.extend(encryption::of_new_volumes(call, [&new]));
    requests
}

/// Source: Service Authorization Reference, `CreateSnapshot`: the new snapshot, and its volume.
pub(super) fn snapshot(call: &mut Call<'_>) -> Vec<Request> {
    let tags = NewTags::read(&mut call.given);
    let Some(volume) = call.given.text("VolumeId") else {
        return Vec::new();
    };
    let size = call.model.volume_as_is(&volume).map(|view| view.shape.size.to_string());
    let context = call
        .context()
        .with("ec2:ParentVolume", call.arns.ec2("volume", &volume))
        .with_some("ec2:VolumeSize", size);
    let mut requests = vec![call.request(call.arns.ec2("snapshot", "*"), tags.of(context, "snapshot"))];
    requests.extend(call.on(&volume));
    requests.extend(tags.requests(call));
    requests
}
