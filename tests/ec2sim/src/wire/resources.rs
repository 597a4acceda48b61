//! Instances, volumes and snapshots as XML.

use super::xml::{Written, Xml};
use crate::{
    AttachmentView, Health, InitializationProgress, InstanceState, InstanceView, ModificationView,
    Reservation, SnapshotView, StateChange, Tags, VolumeState, VolumeStatusView, VolumeView,
};

fn tags(xml: &mut Xml, tags: &Tags) -> Written {
    xml.list("tagSet", tags, |xml, (key, value)| {
        xml.text("key", key)?;
        xml.text("value", value)
    })
}

pub(super) fn reservation(xml: &mut Xml, reservation: &Reservation) -> Written {
    let account = xml.account.clone();
    xml.text("reservationId", &reservation.id)?;
    xml.text("ownerId", &account)?;
    xml.list("groupSet", [(); 0], |_, ()| Ok(()))?;
    xml.list("instancesSet", &reservation.instances, instance)
}

fn state(xml: &mut Xml, name: &str, state: InstanceState) -> Written {
    xml.node(name, |xml| {
        xml.number("code", state.code())?;
        xml.text("name", state.as_str())
    })
}

pub(super) fn state_change(xml: &mut Xml, change: &StateChange) -> Written {
    xml.text("instanceId", &change.instance_id)?;
    state(xml, "currentState", change.current)?;
    state(xml, "previousState", change.previous)
}

fn instance(xml: &mut Xml, view: &InstanceView) -> Written {
    xml.text("instanceId", &view.id)?;
    xml.text("imageId", &view.image_id)?;
    state(xml, "instanceState", view.state)?;
    if !matches!(view.state, InstanceState::Terminated) {
        xml.text("privateDnsName", &view.private_dns)?;
        xml.text("privateIpAddress", &view.private_ip)?;
        xml.text("subnetId", &view.subnet_id)?;
        xml.text("vpcId", &view.vpc_id)?;
    }
    if let Some(reason) = &view.state_reason {
        xml.text("reason", &reason.message)?;
        xml.node("stateReason", |xml| {
            xml.text("code", &reason.code)?;
            xml.text("message", &reason.message)
        })?;
    }
    xml.optional("keyName", view.key_name.as_deref())?;
    xml.number("amiLaunchIndex", view.launch_index)?;
    xml.text("instanceType", &view.instance_type)?;
    xml.time("launchTime", view.launched_at)?;
    xml.node("placement", |xml| {
        xml.text("availabilityZone", &view.zone)?;
        xml.text("tenancy", "default")
    })?;
    xml.node("monitoring", |xml| xml.text("state", "disabled"))?;
    xml.list("groupSet", &view.security_groups, |xml, id| xml.text("groupId", id))?;
    xml.text("architecture", &view.architecture)?;
    xml.text("rootDeviceType", "ebs")?;
    xml.text("rootDeviceName", &view.root_device)?;
    xml.list("blockDeviceMapping", &view.attachments, |xml, held| {
        xml.text("deviceName", &held.device)?;
        xml.node("ebs", |xml| {
            xml.text("volumeId", &held.volume_id)?;
            xml.text("status", held.state.as_str())?;
            xml.time("attachTime", held.attached_at)?;
            xml.flag("deleteOnTermination", held.delete_on_termination)
        })
    })?;
    xml.text("virtualizationType", "hvm")?;
    xml.text("hypervisor", "xen")?;
    xml.optional("clientToken", view.client_token.as_deref())?;
    tags(xml, &view.tags)?;
    if let Some(arn) = &view.instance_profile {
        xml.node("iamInstanceProfile", |xml| {
            xml.text("arn", arn)?;
            xml.text("id", "AIPA0000000000000000")
        })?;
    }
    xml.flag("ebsOptimized", view.ebs_optimized)?;
    xml.node("metadataOptions", |xml| {
        xml.text("state", "applied")?;
        xml.text("httpTokens", &view.metadata.http_tokens)?;
        xml.number("httpPutResponseHopLimit", view.metadata.hop_limit)?;
        xml.text("httpEndpoint", &view.metadata.http_endpoint)?;
        xml.text("instanceMetadataTags", &view.metadata.instance_metadata_tags)
    })
}

pub(super) fn instance_status(xml: &mut Xml, view: &InstanceView) -> Written {
    xml.text("instanceId", &view.id)?;
    xml.text("availabilityZone", &view.zone)?;
    state(xml, "instanceState", view.state)?;
    for (name, health) in [("systemStatus", view.system_status), ("instanceStatus", view.instance_status)] {
        xml.node(name, |xml| status(xml, health))?;
    }
    xml.list("eventsSet", &view.events, |xml, event| {
        xml.text("instanceEventId", &event.id)?;
        xml.text("code", &event.code)?;
        xml.text("description", &event.description)?;
        xml.time("notBefore", event.not_before)
    })
}

fn status(xml: &mut Xml, health: Health) -> Written {
    xml.text("status", health.as_str())?;
    xml.list("details", [health], |xml, health| {
        xml.text("name", "reachability")?;
        xml.text("status", health.reachability())
    })
}

/// A volume without its attachments, as CreateVolume answers it.
pub(super) fn volume(xml: &mut Xml, view: &VolumeView) -> Written {
    xml.text("volumeId", &view.id)?;
    xml.number("size", view.shape.size)?;
    xml.text("snapshotId", view.snapshot_id.as_deref().unwrap_or_default())?;
    xml.text("availabilityZone", &view.zone)?;
    xml.text("status", view.state.as_str())?;
    xml.time("createTime", view.created_at)?;
    xml.text("volumeType", &view.shape.volume_type)?;
    if let Some(iops) = view.shape.iops {
        xml.number("iops", iops)?;
    }
    if let Some(throughput) = view.shape.throughput {
        xml.number("throughput", throughput)?;
    }
    if let Some(rate) = view.initialization.as_ref().and_then(|it| it.rate) {
        xml.number("volumeInitializationRate", rate)?;
    }
    xml.flag("encrypted", view.encrypted)?;
    xml.optional("kmsKeyId", view.kms_key.as_deref())?;
    xml.flag("multiAttachEnabled", false)?;
    tags(xml, &view.tags)
}

pub(super) fn described_volume(xml: &mut Xml, view: &VolumeView) -> Written {
    volume(xml, view)?;
    xml.list("attachmentSet", &view.attachment, attachment)
}

pub(super) fn attachment(xml: &mut Xml, view: &AttachmentView) -> Written {
    xml.text("volumeId", &view.volume_id)?;
    xml.text("instanceId", &view.instance_id)?;
    xml.text("device", &view.device)?;
    xml.text("status", view.state.as_str())?;
    xml.time("attachTime", view.attached_at)?;
    xml.flag("deleteOnTermination", view.delete_on_termination)
}

pub(super) fn volume_status(xml: &mut Xml, view: &VolumeStatusView) -> Written {
    let VolumeStatusView { volume, initialization } = view;
    let is_ok = volume.state != VolumeState::Error;
    xml.text("volumeId", &volume.id)?;
    xml.text("availabilityZone", &volume.zone)?;
    if let Some(initialization) = initialization {
        xml.node("initializationStatusDetails", |xml| self::initialization(xml, *initialization))?;
    }
    xml.node("volumeStatus", |xml| {
        xml.text("status", if is_ok { "ok" } else { "impaired" })?;
        xml.list("details", [is_ok], |xml, is_ok| {
            xml.text("name", "io-enabled")?;
            xml.text("status", if is_ok { "passed" } else { "failed" })
        })
    })
}

/// The time that is left is known at a provisioned rate alone (`API_InitializationStatusDetails`).
fn initialization(xml: &mut Xml, view: InitializationProgress) -> Written {
    xml.text("initializationType", if view.is_provisioned { "provisioned-rate" } else { "default" })?;
    xml.number("progress", view.progress)?;
    if view.is_provisioned {
        xml.number("estimatedTimeToCompleteInSeconds", view.seconds_left)?;
    }
    Ok(())
}

pub(super) fn modification(xml: &mut Xml, view: &ModificationView) -> Written {
    xml.text("volumeId", &view.volume_id)?;
    xml.text("modificationState", view.state.as_str())?;
    for (prefix, shape) in [("target", &view.target), ("original", &view.original)] {
        xml.number(&format!("{prefix}Size"), shape.size)?;
        xml.text(&format!("{prefix}VolumeType"), &shape.volume_type)?;
        if let Some(iops) = shape.iops {
            xml.number(&format!("{prefix}Iops"), iops)?;
        }
        if let Some(throughput) = shape.throughput {
            xml.number(&format!("{prefix}Throughput"), throughput)?;
        }
        xml.flag(&format!("{prefix}MultiAttachEnabled"), false)?;
    }
    xml.number("progress", view.progress)?;
    xml.time("startTime", view.started_at)?;
    view.ended_at.map_or(Ok(()), |at| xml.time("endTime", at))
}

pub(super) fn snapshot(xml: &mut Xml, view: &SnapshotView) -> Written {
    let account = xml.account.clone();
    xml.text("snapshotId", &view.id)?;
    xml.text("volumeId", &view.volume_id)?;
    xml.text("status", view.state.as_str())?;
    xml.time("startTime", view.started_at)?;
    xml.text("progress", &format!("{}%", view.progress))?;
    xml.text("ownerId", &account)?;
    xml.number("volumeSize", view.size)?;
    xml.text("description", &view.description)?;
    xml.flag("encrypted", view.encrypted)?;
    xml.optional("kmsKeyId", view.kms_key.as_deref())?;
    xml.text("storageTier", "standard")?;
    view.completed_at.map_or(Ok(()), |at| xml.time("completionTime", at))?;
    tags(xml, &view.tags)
}
