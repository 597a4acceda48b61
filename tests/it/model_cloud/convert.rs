//! The model's views as the operator's values.

use ec2sim::{AttachmentView, Health, InstanceView, ModificationView, SnapshotView, VolumeView};
use freehold::api::{ClientToken, InstanceId, SnapshotId, VolumeId};
use freehold::cloud::{
    Attachment, EbsVolume, Instance, InstanceHealth, InstanceState, Modification, ModificationState,
    ScheduledEvent, Snapshot, SnapshotState, VolumeState,
};

pub(super) fn instance(view: InstanceView) -> Instance {
    Instance {
        id: InstanceId(view.id),
        state: match view.state {
            ec2sim::InstanceState::Pending => InstanceState::Pending,
            ec2sim::InstanceState::Running => InstanceState::Running,
            ec2sim::InstanceState::ShuttingDown => InstanceState::ShuttingDown,
            ec2sim::InstanceState::Terminated => InstanceState::Terminated,
            ec2sim::InstanceState::Stopping => InstanceState::Stopping,
            ec2sim::InstanceState::Stopped => InstanceState::Stopped,
        },
        state_reason: view.state_reason.map(|reason| {
            if reason.message.starts_with(&reason.code) {
                reason.message
            } else {
                format!("{}: {}", reason.code, reason.message)
            }
        }),
        token: view.client_token.map(ClientToken),
        zone: view.zone,
        instance_type: view.instance_type,
        launched_at: Some(view.launched_at),
        tags: view.tags,
        volumes: view.attachments.into_iter().map(|disk| VolumeId(disk.volume_id)).collect(),
    }
}

pub(super) fn volume(view: VolumeView) -> EbsVolume {
    EbsVolume {
        id: VolumeId(view.id),
        state: match view.state {
            ec2sim::VolumeState::Creating => VolumeState::Creating,
            ec2sim::VolumeState::Available => VolumeState::Available,
            ec2sim::VolumeState::InUse => VolumeState::InUse,
            ec2sim::VolumeState::Deleting => VolumeState::Deleting,
            ec2sim::VolumeState::Error => VolumeState::Error,
        },
        zone: view.zone,
        size: number(view.shape.size),
        volume_type: view.shape.volume_type,
        iops: view.shape.iops.map(number),
        throughput: view.shape.throughput.map(number),
        encrypted: view.encrypted,
        created_at: Some(view.created_at),
        multi_attach: false,
        attachments: view.attachment.into_iter().map(attachment).collect(),
        tags: view.tags,
    }
}

fn attachment(view: AttachmentView) -> Attachment {
    Attachment {
        instance: InstanceId(view.instance_id),
        device: view.device,
        delete_on_termination: view.delete_on_termination,
    }
}

pub(super) fn modification(view: ModificationView) -> Modification {
    Modification {
        volume: VolumeId(view.volume_id),
        state: match view.state {
            ec2sim::ModificationState::Modifying => ModificationState::Modifying,
            ec2sim::ModificationState::Optimizing => ModificationState::Optimizing,
            ec2sim::ModificationState::Completed => ModificationState::Completed,
            ec2sim::ModificationState::Failed => ModificationState::Failed,
        },
        started_at: Some(view.started_at),
    }
}

pub(super) fn snapshot(view: SnapshotView) -> Snapshot {
    Snapshot {
        id: SnapshotId(view.id),
        volume: VolumeId(view.volume_id),
        size: Some(number(view.size)),
        state: match view.state {
            ec2sim::SnapshotState::Pending => SnapshotState::Pending,
            ec2sim::SnapshotState::Completed => SnapshotState::Completed,
            ec2sim::SnapshotState::Error => SnapshotState::Error,
        },
        started_at: Some(view.started_at),
        tags: view.tags,
    }
}

pub(super) fn number(number: u32) -> i32 {
    i32::try_from(number).expect("EC2's sizes fit")
}

/// What EC2 shows of the health of one instance.
pub(super) fn health(view: InstanceView) -> InstanceHealth {
    InstanceHealth {
        impaired: view.system_status == Health::Impaired || view.instance_status == Health::Impaired,
        events: view.events.iter().map(scheduled).collect(),
        id: InstanceId(view.id),
    }
}

fn scheduled(event: &ec2sim::ScheduledEvent) -> ScheduledEvent {
    let not_before = jiff::Timestamp::from_second(event.not_before.as_second()).ok();
    ScheduledEvent { code: event.code.clone(), not_before }
}
