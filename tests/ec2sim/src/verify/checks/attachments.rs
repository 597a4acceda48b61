//! Attaching and detaching, with what EC2 refuses.

use crate::verify::{
    answer::{Checked, Stop, equal},
    target::Target,
};

/// More volumes than an instance of any small type takes.
const TOO_MANY: usize = 40;

pub(super) async fn states(ec2: &Target) -> Checked {
    let (instance, volume) = (ec2.running().await?, ec2.available(&[]).await?);
    let answer = ec2.must("AttachVolume", &Target::attachment(&volume, &instance, "/dev/sdf")).await?;
    equal("AttachVolume answers", &answer.text("status"), &"attaching")?;
    ec2.until(&format!("{volume} attached"), async || {
        let seen = ec2.volume(&volume).await?.unwrap_or_default();
        equal("the volume of an attachment is", &seen.text("status"), &"in-use")?;
        let state = seen.items("attachmentSet").next().map(|held| held.text("status"));
        Ok((state == Some("attached")).then_some(()))
    })
    .await?;
    let answer = ec2.must("DetachVolume", &[("VolumeId", &volume)]).await?;
    equal("DetachVolume answers", &answer.text("status"), &"detaching")?;
    ec2.volume_becomes(&volume, "available").await
}

pub(super) async fn used_volume(ec2: &Target) -> Checked {
    let (first, second) = (ec2.running().await?, ec2.running().await?);
    let volume = ec2.available(&[]).await?;
    ec2.attached(&volume, &first, "/dev/sdf").await?;
    let again = Target::attachment(&volume, &second, "/dev/sdf");
    ec2.answers("VolumeInUse", "a volume that another instance has", "AttachVolume", &again).await
}

pub(super) async fn other_zone(ec2: &Target) -> Checked {
    if ec2.place.other_zone.is_empty() {
        return Err(Stop::NotAsked("needs another zone: --other-subnet".to_owned()));
    }
    let volume = ec2.available(&[("AvailabilityZone", &ec2.place.other_zone)]).await?;
    let across = Target::attachment(&volume, &ec2.running().await?, "/dev/sdf");
    ec2.answers("InvalidVolume.ZoneMismatch", "a volume of another zone", "AttachVolume", &across).await
}

pub(super) async fn instance_state(ec2: &Target) -> Checked {
    let volume = ec2.available(&[]).await?;
    let instance = ec2.launch(&[]).await?;
    let attachment = Target::attachment(&volume, &instance, "/dev/sdf");
    ec2.answers("IncorrectState", "to an instance that is pending", "AttachVolume", &attachment).await?;
    ec2.instance_becomes(&instance, "running").await?;
    ec2.must("StopInstances", &[("InstanceId.1", &instance)]).await?;
    ec2.instance_becomes(&instance, "stopped").await?;
    ec2.attached(&volume, &instance, "/dev/sdf").await
}

pub(super) async fn taken_device(ec2: &Target) -> Checked {
    let instance = ec2.running().await?;
    let (first, second) = (ec2.available(&[]).await?, ec2.available(&[]).await?);
    ec2.attached(&first, &instance, "/dev/sdf").await?;
    let taken = Target::attachment(&second, &instance, "/dev/sdf");
    ec2.answers("InvalidParameterValue", "a device that is taken", "AttachVolume", &taken).await?;
    ec2.attached(&second, &instance, "/dev/sdg").await
}

pub(super) async fn too_many(ec2: &Target) -> Checked {
    let instance = ec2.running().await?;
    let letters =
        ('b'..='c').flat_map(|first| ('a'..='z').map(move |second| format!("/dev/xvd{first}{second}")));
    for (held, device) in letters.take(TOO_MANY).enumerate() {
        let volume = ec2.available(&[]).await?;
        match ec2.code("AttachVolume", &Target::attachment(&volume, &instance, &device)).await?.as_str() {
            "ok" => {}
            "AttachmentLimitExceeded" => return Ok(()),
            other => {
                let seen = format!("AttachVolume (beside {held} other volumes): `{other}`");
                return Err(Stop::Differs(seen));
            }
        }
    }
    Err(Stop::Differs(format!("an instance takes {TOO_MANY} volumes")))
}

pub(super) async fn root(ec2: &Target) -> Checked {
    let id = ec2.running().await?;
    let instance = ec2.instance(&id).await?.unwrap_or_default();
    let device = instance.text("rootDeviceName");
    let root = instance.items("blockDeviceMapping").find(|one| one.text("deviceName") == device);
    let Some(root) = root.map(|one| one.text("ebs/volumeId")) else {
        return Err(Stop::Differs("the instance does not show its root volume".to_owned()));
    };
    let params = [("VolumeId", root)];
    ec2.answers("OperationNotPermitted", "of a running instance", "DetachVolume", &params).await
}
