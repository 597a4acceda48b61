//! Converts the answers of the SDK to our values. An answer that lacks what every such answer has is an
//! error, never a guess.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_ec2::operation::create_snapshot::CreateSnapshotOutput;
use aws_sdk_ec2::operation::create_volume::CreateVolumeOutput;
use aws_sdk_ec2::primitives::DateTime;
use aws_sdk_ec2::types as sdk;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use super::whole::incomplete;
use crate::api::{ClientToken, InstanceId, SnapshotId, VolumeId};
use crate::cloud::call::Call;
use crate::cloud::{
    Attachment, CloudError, EbsVolume, Initialization, Instance, InstanceHealth, InstanceState, Modification,
    ModificationState, ScheduledEvent, Snapshot, SnapshotState, VolumeState,
};

/// EC2 marks events that are over in their description and lists them for a week more.
const EVENTS_OVER: [&str; 2] = ["[Completed]", "[Canceled]"];

pub(super) fn instance(call: Call, instance: sdk::Instance) -> Result<Instance, CloudError> {
    let disks = instance.block_device_mappings.unwrap_or_default().into_iter();
    let state =
        instance.state.and_then(|state| state.name).ok_or_else(|| incomplete(call, "instance state"))?;
    Ok(Instance {
        id: InstanceId(instance.instance_id.ok_or_else(|| incomplete(call, "instance id"))?),
        state: instance_state(state.as_str()),
        state_reason: instance.state_reason.and_then(reason),
        token: instance.client_token.filter(|token| !token.is_empty()).map(ClientToken),
        zone: instance.placement.and_then(|placement| placement.availability_zone).unwrap_or_default(),
        instance_type: instance.instance_type.map(|name| name.as_str().to_owned()).unwrap_or_default(),
        launched_at: instance.launch_time.as_ref().and_then(timestamp),
        tags: tags(instance.tags),
        volumes: disks.filter_map(|mapping| Some(VolumeId(mapping.ebs?.volume_id?))).collect(),
    })
}

fn instance_state(name: &str) -> InstanceState {
    match name {
        "pending" => InstanceState::Pending,
        "running" => InstanceState::Running,
        "shutting-down" => InstanceState::ShuttingDown,
        "terminated" => InstanceState::Terminated,
        "stopping" => InstanceState::Stopping,
        "stopped" => InstanceState::Stopped,
        _ => InstanceState::Unknown,
    }
}

/// The id of what carries a tag.
pub(super) fn tagged(call: Call, tag: sdk::TagDescription) -> Result<String, CloudError> {
    tag.resource_id.ok_or_else(|| incomplete(call, "resource id"))
}

/// `Code: message`, with the code in front even where EC2's message does not repeat it.
fn reason(reason: sdk::StateReason) -> Option<String> {
    let code = reason.code.filter(|code| !code.is_empty());
    let message = reason.message.filter(|message| !message.is_empty());
    match (code, message) {
        (Some(code), Some(message)) if message.starts_with(&code) => Some(message),
        (Some(code), Some(message)) => Some(format!("{code}: {message}")),
        (code, message) => code.or(message),
    }
}

/// The health of one instance; `None` when its checks pass and no event is ahead of it.
pub(super) fn health(
    call: Call,
    status: sdk::InstanceStatus,
) -> Result<(InstanceId, Option<InstanceHealth>), CloudError> {
    let is_impaired = |summary: Option<sdk::InstanceStatusSummary>| {
        summary
            .and_then(|summary| summary.status)
            .is_some_and(|status| status == sdk::SummaryStatus::Impaired)
    };
    let is_ahead = |event: &sdk::InstanceStatusEvent| {
        event.code.is_some()
            && !event
                .description
                .as_deref()
                .is_some_and(|text| EVENTS_OVER.iter().any(|over| text.starts_with(over)))
    };
    let id = InstanceId(status.instance_id.ok_or_else(|| incomplete(call, "instance id"))?);
    let impaired = is_impaired(status.instance_status) || is_impaired(status.system_status);
    let events: Vec<ScheduledEvent> =
        status.events.unwrap_or_default().into_iter().filter(is_ahead).map(scheduled).collect();
    let is_unhealthy = impaired || !events.is_empty();
    let health = is_unhealthy.then(|| InstanceHealth { id: id.clone(), impaired, events });
    Ok((id, health))
}

/// Those of these instances that are not well.
pub(super) fn unhealthy(
    call: Call,
    statuses: Vec<sdk::InstanceStatus>,
) -> Result<Vec<InstanceHealth>, CloudError> {
    let read = statuses.into_iter().map(|status| health(call, status));
    read.filter_map(|read| read.map(|(_, health)| health).transpose()).collect()
}

fn scheduled(event: sdk::InstanceStatusEvent) -> ScheduledEvent {
    ScheduledEvent {
        code: event.code.map(|code| code.as_str().to_owned()).unwrap_or_default(),
        not_before: event.not_before.and_then(|time| Timestamp::from_second(time.secs()).ok()),
    }
}

/// The console as text; EC2 sends it in base64, and consoles hold any bytes.
pub(super) fn console(call: Call, encoded: &str) -> Result<String, CloudError> {
    let compact: String = encoded.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    let bytes = STANDARD.decode(compact).map_err(|_| incomplete(call, "console in base64"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn volume(call: Call, volume: sdk::Volume) -> Result<EbsVolume, CloudError> {
    let state = volume.state.ok_or_else(|| incomplete(call, "volume state"))?;
    Ok(EbsVolume {
        id: VolumeId(volume.volume_id.ok_or_else(|| incomplete(call, "volume id"))?),
        state: volume_state(state.as_str()),
        zone: volume.availability_zone.unwrap_or_default(),
        size: volume.size.ok_or_else(|| incomplete(call, "volume size"))?,
        volume_type: volume.volume_type.map(|name| name.as_str().to_owned()).unwrap_or_default(),
        iops: volume.iops,
        throughput: volume.throughput,
        encrypted: volume.encrypted.unwrap_or_default(),
        created_at: volume.create_time.as_ref().and_then(timestamp),
        multi_attach: volume.multi_attach_enabled.unwrap_or_default(),
        attachments: volume.attachments.unwrap_or_default().into_iter().map(attachment).collect(),
        tags: tags(volume.tags),
    })
}

fn attachment(attachment: sdk::VolumeAttachment) -> Attachment {
    Attachment {
        instance: InstanceId(attachment.instance_id.unwrap_or_default()),
        device: attachment.device.unwrap_or_default(),
        delete_on_termination: attachment.delete_on_termination.unwrap_or_default(),
    }
}

/// The answer to CreateVolume holds the same in a type of its own.
pub(super) fn created_volume(call: Call, created: CreateVolumeOutput) -> Result<EbsVolume, CloudError> {
    let same = sdk::Volume::builder()
        .set_volume_id(created.volume_id)
        .set_state(created.state)
        .set_availability_zone(created.availability_zone)
        .set_size(created.size)
        .set_volume_type(created.volume_type)
        .set_iops(created.iops)
        .set_throughput(created.throughput)
        .set_encrypted(created.encrypted)
        .set_create_time(created.create_time)
        .set_multi_attach_enabled(created.multi_attach_enabled)
        .set_tags(created.tags)
        .build();
    volume(call, same)
}

fn volume_state(name: &str) -> VolumeState {
    match name {
        "creating" => VolumeState::Creating,
        "available" => VolumeState::Available,
        "in-use" => VolumeState::InUse,
        "deleting" => VolumeState::Deleting,
        "deleted" => VolumeState::Deleted,
        "error" => VolumeState::Error,
        _ => VolumeState::Unknown,
    }
}

pub(super) fn modification(
    call: Call,
    modification: sdk::VolumeModification,
) -> Result<Modification, CloudError> {
    let state = modification.modification_state.ok_or_else(|| incomplete(call, "modification state"))?;
    Ok(Modification {
        volume: VolumeId(modification.volume_id.ok_or_else(|| incomplete(call, "volume id"))?),
        state: match state.as_str() {
            "optimizing" => ModificationState::Optimizing,
            "completed" => ModificationState::Completed,
            "failed" => ModificationState::Failed,
            // `modifying`; and a state that this release does not know promises nothing yet.
            _ => ModificationState::Modifying,
        },
        started_at: modification.start_time.as_ref().and_then(timestamp),
    })
}

/// How far the initialization is; `None` where EC2 says nothing of it.
pub(super) fn initialization(
    call: Call,
    status: sdk::VolumeStatusItem,
) -> Result<Option<Initialization>, CloudError> {
    let volume = VolumeId(status.volume_id.ok_or_else(|| incomplete(call, "volume id"))?);
    let Some(details) = status.initialization_status_details else { return Ok(None) };
    let Some(progress) = details.progress else { return Ok(None) };
    let left = details.estimated_time_to_complete_in_seconds.and_then(|left| u64::try_from(left).ok());
    Ok(Some(Initialization {
        volume,
        progress: i32::try_from(progress.clamp(0, 100)).unwrap_or_default(),
        left: left.map(Duration::from_secs),
    }))
}

pub(super) fn snapshot(call: Call, snapshot: sdk::Snapshot) -> Result<Snapshot, CloudError> {
    let state = snapshot.state.ok_or_else(|| incomplete(call, "snapshot state"))?;
    Ok(Snapshot {
        id: SnapshotId(snapshot.snapshot_id.ok_or_else(|| incomplete(call, "snapshot id"))?),
        volume: VolumeId(snapshot.volume_id.ok_or_else(|| incomplete(call, "volume id of a snapshot"))?),
        size: snapshot.volume_size,
        state: match state.as_str() {
            "pending" => SnapshotState::Pending,
            "completed" => SnapshotState::Completed,
            _ => SnapshotState::Error,
        },
        started_at: snapshot.start_time.as_ref().and_then(timestamp),
        tags: tags(snapshot.tags),
    })
}

/// The answer to CreateSnapshot holds the same in a type of its own.
pub(super) fn created_snapshot(call: Call, created: CreateSnapshotOutput) -> Result<Snapshot, CloudError> {
    let same = sdk::Snapshot::builder()
        .set_snapshot_id(created.snapshot_id)
        .set_volume_id(created.volume_id)
        .set_volume_size(created.volume_size)
        .set_state(created.state)
        .set_start_time(created.start_time)
        .set_tags(created.tags)
        .build();
    snapshot(call, same)
}

fn tags(tags: Option<Vec<sdk::Tag>>) -> BTreeMap<String, String> {
    tags.unwrap_or_default()
        .into_iter()
        .filter_map(|tag| Some((tag.key?, tag.value.unwrap_or_default())))
        .collect()
}

fn timestamp(time: &DateTime) -> Option<Timestamp> {
    Timestamp::new(time.secs(), i32::try_from(time.subsec_nanos()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    const CALL: Call = Call::DescribeInstances;

    fn running() -> aws_sdk_ec2::types::builders::InstanceBuilder {
        sdk::Instance::builder()
            .instance_id("i-1")
            .state(sdk::InstanceState::builder().name(sdk::InstanceStateName::Running).build())
    }

    #[test]
    fn an_instance_is_read_with_its_token_tags_and_disks() {
        let disk = |device: &str, volume: &str| {
            sdk::InstanceBlockDeviceMapping::builder()
                .device_name(device)
                .ebs(sdk::EbsInstanceBlockDevice::builder().volume_id(volume).build())
                .build()
        };
        let answer = running()
            .client_token("token")
            .placement(sdk::Placement::builder().availability_zone("us-east-1a").build())
            .instance_type(sdk::InstanceType::R7iLarge)
            .launch_time(DateTime::from_secs(1_800_000_000))
            .block_device_mappings(disk("/dev/xvda", "vol-root"))
            .block_device_mappings(disk("/dev/xvdba", "vol-data"))
            .tags(sdk::Tag::builder().key("Name").value("orders").build())
            .build();
        assert_eq!(
            instance(CALL, answer).unwrap(),
            Instance {
                id: InstanceId("i-1".into()),
                state: InstanceState::Running,
                state_reason: None,
                token: Some(ClientToken("token".into())),
                zone: "us-east-1a".into(),
                instance_type: "r7i.large".into(),
                launched_at: Some(Timestamp::from_second(1_800_000_000).unwrap()),
                tags: BTreeMap::from([("Name".into(), "orders".into())]),
                volumes: vec![VolumeId("vol-root".into()), VolumeId("vol-data".into())],
            }
        );
    }

    #[test]
    fn a_volume_is_read_with_what_it_is_attached_to_and_whether_that_ends_it() {
        let attached = sdk::VolumeAttachment::builder()
            .instance_id("i-1")
            .device("/dev/xvdba")
            .delete_on_termination(true)
            .build();
        let answer = sdk::Volume::builder()
            .volume_id("vol-1")
            .state(sdk::VolumeState::InUse)
            .size(100)
            .encrypted(true)
            .multi_attach_enabled(true)
            .attachments(attached)
            .build();
        let read = volume(CALL, answer).unwrap();
        let expected = Attachment {
            instance: InstanceId("i-1".into()),
            device: "/dev/xvdba".into(),
            delete_on_termination: true,
        };
        assert_eq!((read.encrypted, read.multi_attach, read.attachments), (true, true, vec![expected]));
    }

    #[test]
    fn an_instance_without_id_or_state_is_an_error_not_a_guess() {
        assert!(instance(CALL, running().set_instance_id(None).build()).is_err());
        assert!(instance(CALL, running().set_state(None).build()).is_err());
    }

    #[test]
    fn an_initialization_is_read_as_far_as_ec2_says_it() {
        let status = |progress: Option<i64>, left: Option<i64>| {
            let details = sdk::InitializationStatusDetails::builder()
                .set_progress(progress)
                .set_estimated_time_to_complete_in_seconds(left)
                .build();
            sdk::VolumeStatusItem::builder().volume_id("vol-1").initialization_status_details(details).build()
        };
        let read = |status| {
            let read = initialization(Call::DescribeVolumeStatus, status).unwrap();
            read.map(|it| (it.progress, it.left.map(|left| left.as_secs())))
        };
        assert_eq!(read(status(Some(37), Some(90))), Some((37, Some(90))));
        assert_eq!(read(status(Some(37), None)), Some((37, None)));
        assert_eq!(read(status(Some(101), Some(-1))), Some((100, None)));
        assert_eq!(read(status(None, Some(90))), None);
        assert_eq!(read(sdk::VolumeStatusItem::builder().volume_id("vol-1").build()), None);
        let without_id = sdk::VolumeStatusItem::builder().build();
        assert!(initialization(Call::DescribeVolumeStatus, without_id).is_err());
    }

    #[test]
    fn a_state_that_is_not_known_is_unknown() {
        assert_eq!(instance_state("hibernating"), InstanceState::Unknown);
        assert_eq!(volume_state("recycled"), VolumeState::Unknown);
    }

    #[test]
    fn the_reason_of_a_state_begins_with_its_code() {
        let text = |code: &str, message: &str| {
            reason(sdk::StateReason::builder().code(code).message(message).build())
        };
        assert_eq!(
            text("Server.InternalError", "Server.InternalError: oh"),
            Some("Server.InternalError: oh".into())
        );
        assert_eq!(text("Server.InternalError", "oh"), Some("Server.InternalError: oh".into()));
        assert_eq!(text("", ""), None);
    }

    #[test]
    fn events_that_are_over_are_left_out() {
        let event = |description: &str| {
            sdk::InstanceStatusEvent::builder()
                .code(sdk::EventCode::InstanceRetirement)
                .description(description)
                .build()
        };
        let over = sdk::InstanceStatus::builder()
            .instance_id("i-1")
            .events(event("[Completed] gone"))
            .events(event("[Canceled] not"));
        let id = InstanceId("i-1".into());
        assert_eq!(health(CALL, over.clone().build()).unwrap(), (id.clone(), None));
        let read = health(CALL, over.events(event("will retire")).build()).unwrap();
        let events = vec![ScheduledEvent { code: "instance-retirement".into(), not_before: None }];
        assert_eq!(read, (id.clone(), Some(InstanceHealth { id, impaired: false, events })));
    }

    #[test]
    fn either_check_makes_an_instance_impaired() {
        let impaired = sdk::InstanceStatusSummary::builder().status(sdk::SummaryStatus::Impaired).build();
        let ok = sdk::InstanceStatusSummary::builder().status(sdk::SummaryStatus::Ok).build();
        for (system, own) in [(impaired.clone(), ok.clone()), (ok.clone(), impaired.clone())] {
            let status = sdk::InstanceStatus::builder()
                .instance_id("i-1")
                .system_status(system)
                .instance_status(own)
                .build();
            let (_, health) = health(CALL, status).unwrap();
            assert!(health.unwrap().impaired);
        }
    }

    #[test]
    fn a_console_is_decoded_whatever_bytes_it_holds() {
        assert_eq!(console(CALL, "aGVs\nbG8=\n").unwrap(), "hello");
        assert_eq!(console(CALL, "").unwrap(), "");
        assert_eq!(console(CALL, "/w==").unwrap(), "\u{fffd}");
        assert!(console(CALL, "%%%").is_err());
    }
}
