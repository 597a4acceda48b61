//! An instance's states, its status checks, and what becomes of its volumes.

use std::time::Duration;

use crate::verify::{
    answer::{Checked, check, equal},
    element::Element,
    target::Target,
};

/// The state that an answer about one instance shows.
fn current(answer: &Element) -> String {
    let changes = answer.items("instancesSet").next();
    changes.map(|change| change.text("currentState/name").to_owned()).unwrap_or_default()
}

pub(super) async fn states(ec2: &Target) -> Checked {
    let answer = ec2.must("RunInstances", &ec2.launch_params(&[])).await?;
    let instance = answer.items("instancesSet").next().cloned().unwrap_or_default();
    let id = instance.text("instanceId").to_owned();
    let instance_id = [("InstanceId.1", id.as_str())];
    equal("RunInstances answers", &instance.text("instanceState/name"), &"pending")?;
    ec2.instance_becomes(&id, "running").await?;
    let answer = ec2.must("StopInstances", &instance_id).await?;
    equal("StopInstances answers", &current(&answer).as_str(), &"stopping")?;
    ec2.instance_becomes(&id, "stopped").await?;
    let answer = ec2.must("StartInstances", &instance_id).await?;
    equal("StartInstances answers", &current(&answer).as_str(), &"pending")?;
    ec2.instance_becomes(&id, "running").await?;
    let answer = ec2.terminate(&id).await?;
    equal("TerminateInstances answers", &current(&answer).as_str(), &"shutting-down")?;
    ec2.instance_becomes(&id, "terminated").await
}

/// A launch with a volume whose key cannot be used is accepted, and dies of it.
pub(super) async fn dies(ec2: &Target) -> Checked {
    let id = ec2
        .launch(&[
            ("BlockDeviceMapping.1.DeviceName", "/dev/sdf"),
            ("BlockDeviceMapping.1.Ebs.VolumeSize", "1"),
            ("BlockDeviceMapping.1.Ebs.Encrypted", "true"),
            ("BlockDeviceMapping.1.Ebs.KmsKeyId", &ec2.place.no_key),
        ])
        .await?;
    let ended = ec2
        .until(&format!("{id} terminated or running"), async || {
            let Some(seen) = ec2.instance(&id).await? else { return Ok(None) };
            let is_over = ["running", "terminated"].contains(&seen.text("instanceState/name"));
            Ok(is_over.then_some(seen))
        })
        .await?;
    equal("a launch with an unusable KMS key ends as", &ended.text("instanceState/name"), &"terminated")?;
    check(!ended.text("stateReason/code").is_empty(), "the instance that died has no state reason")
}

pub(super) async fn status(ec2: &Target) -> Checked {
    let id = ec2.launch(&[]).await?;
    let instance = [("InstanceId.1", id.as_str())];
    let status = async || {
        let answer = ec2.call("DescribeInstanceStatus", &instance).await;
        let seen = answer.ok().and_then(|answer| answer.items("instanceStatusSet").next().cloned());
        Ok(seen.map(|seen| seen.text("instanceStatus/status").to_owned()))
    };
    let first = ec2.until(&format!("{id} with a status"), status).await?;
    equal("the first status of an instance", &first.as_str(), &"initializing")?;
    ec2.until(&format!("the status of {id} ok"), async || Ok(status().await?.filter(|seen| seen == "ok")))
        .await?;
    ec2.must("StopInstances", &instance).await?;
    check(status().await?.is_none(), "DescribeInstanceStatus shows an instance that is stopping")
}

pub(super) async fn refusals(ec2: &Target) -> Checked {
    let id = ec2.launch(&[]).await?;
    let instance = [("InstanceId.1", id.as_str())];
    let code = "IncorrectInstanceState";
    ec2.answers(code, "an instance that is pending", "StopInstances", &instance).await?;
    ec2.answers(code, "an instance that is pending", "RebootInstances", &instance).await?;
    ec2.instance_becomes(&id, "running").await?;
    ec2.answers("ok", "an instance that runs", "StopInstances", &instance).await?;
    ec2.answers(code, "an instance that is stopping", "StartInstances", &instance).await?;
    ec2.answers("ok", "an instance that is stopping", "TerminateInstances", &instance).await?;
    ec2.answers(code, "an instance that is shutting down", "StopInstances", &instance).await?;
    ec2.answers("ok", "an instance that is shutting down", "TerminateInstances", &instance).await
}

/// "About an hour" is between half an hour and two hours here.
pub(super) async fn terminated_is_visible(ec2: &Target) -> Checked {
    ec2.takes(Duration::from_hours(2))?;
    let id = ec2.running().await?;
    ec2.terminate(&id).await?;
    ec2.instance_becomes(&id, "terminated").await?;
    ec2.pass(Duration::from_mins(30)).await?;
    let state = ec2.instance_state(&id).await?;
    equal("half an hour after its end the instance is", &state.as_str(), &"terminated")?;
    ec2.pass(Duration::from_mins(90)).await?;
    equal("two hours after its end the instance is", &ec2.instance_state(&id).await?.as_str(), &"gone")
}

pub(super) async fn volumes_held(ec2: &Target) -> Checked {
    let (id, volume) = (ec2.running().await?, ec2.available(&[]).await?);
    ec2.attached(&volume, &id, "/dev/sdf").await?;
    ec2.terminate(&id).await?;
    let state = ec2.volume_state(&volume).await?;
    equal("the volume of an instance that is shutting down is", &state.as_str(), &"in-use")?;
    let params = [("VolumeId", volume.as_str())];
    ec2.answers("VolumeInUse", "of an instance that is shutting down", "DeleteVolume", &params).await?;
    ec2.until(&format!("{id} terminated"), async || {
        // The volume first: an instance that is not terminated afterwards was not at that moment, either.
        let volume_state = ec2.volume_state(&volume).await?;
        if ec2.instance_state(&id).await? == "terminated" {
            return Ok(Some(()));
        }
        equal("before the instance is terminated its volume is", &volume_state.as_str(), &"in-use")?;
        Ok(None)
    })
    .await?;
    ec2.volume_becomes(&volume, "available").await
}

pub(super) async fn delete_on_termination(ec2: &Target) -> Checked {
    let id = ec2
        .launch(&[
            ("BlockDeviceMapping.1.DeviceName", "/dev/sdf"),
            ("BlockDeviceMapping.1.Ebs.VolumeSize", "1"),
            ("BlockDeviceMapping.1.Ebs.DeleteOnTermination", "true"),
            ("BlockDeviceMapping.2.DeviceName", "/dev/sdg"),
            ("BlockDeviceMapping.2.Ebs.VolumeSize", "1"),
            ("BlockDeviceMapping.2.Ebs.DeleteOnTermination", "false"),
        ])
        .await?;
    ec2.instance_becomes(&id, "running").await?;
    let instance = ec2.instance(&id).await?.unwrap_or_default();
    let at = |device: &str| {
        let found = instance.items("blockDeviceMapping").find(|one| one.text("deviceName") == device);
        found.map(|one| one.text("ebs/volumeId").to_owned()).unwrap_or_default()
    };
    let (deleted, kept) = (at("/dev/sdf"), at("/dev/sdg"));
    check(!deleted.is_empty() && !kept.is_empty(), "the instance does not show the volumes of its mappings")?;
    ec2.terminate(&id).await?;
    ec2.instance_becomes(&id, "terminated").await?;
    ec2.volume_becomes(&deleted, "gone").await?;
    ec2.volume_becomes(&kept, "available").await
}
