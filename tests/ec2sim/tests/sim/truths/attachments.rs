//! Attaching and detaching, with what EC2 refuses.

use ec2sim::{AttachmentState, Truth};

use super::kit::{Kit, both_ways, check, equal};

/// Source: EBS user guide, "View information about an Amazon EBS volume": attachment states.
#[test]
fn an_attachment_is_attaching_before_attached_and_detaching_before_detached() {
    both_ways(Truth::AttachmentPassesThroughStates, |truths| {
        let kit = Kit::new(truths);
        let (instance, volume) = (kit.running()?, kit.available(&[])?);
        let state = || kit.volume(&volume).map(|view| view.attachment.map(|held| held.state));
        equal(kit.attach(&volume, &instance, "/dev/xvdba").as_str(), "ok")?;
        equal(state()?, Some(AttachmentState::Attaching))?;
        equal(kit.volume(&volume)?.state.as_str(), "in-use")?;
        kit.pass(10);
        equal(state()?, Some(AttachmentState::Attached))?;
        kit.call("DetachVolume", &[("VolumeId", &volume)])?;
        equal(state()?, Some(AttachmentState::Detaching))?;
        kit.pass(10);
        equal(state()?, None)?;
        equal(kit.volume(&volume)?.state.as_str(), "available")
    });
}

/// Source: `API_AttachVolume`; error-code reference, `VolumeInUse`.
#[test]
fn a_volume_that_is_in_use_is_not_attached_again() {
    both_ways(Truth::AttachRefusesUsedVolume, |truths| {
        let kit = Kit::new(truths);
        let (first, second, volume) = (kit.running()?, kit.running()?, kit.available(&[])?);
        equal(kit.attach(&volume, &first, "/dev/xvdba").as_str(), "ok")?;
        equal(kit.attach(&volume, &second, "/dev/xvdba").as_str(), "VolumeInUse")?;
        let new = kit.create_volume(&[])?;
        equal(kit.attach(&new, &second, "/dev/xvdba").as_str(), "IncorrectState")
    });
}

/// Source: error-code reference, `InvalidVolume.ZoneMismatch`.
#[test]
fn a_volume_is_not_attached_across_zones() {
    both_ways(Truth::AttachRefusesOtherZone, |truths| {
        let kit = Kit::new(truths);
        let (instance, volume) = (kit.running()?, kit.available(&[("AvailabilityZone", "us-east-1b")])?);
        equal(kit.attach(&volume, &instance, "/dev/xvdba").as_str(), "InvalidVolume.ZoneMismatch")
    });
}

/// Source: error-code reference, `IncorrectState`: the instance must be running or stopped.
#[test]
fn a_volume_is_attached_only_to_a_running_or_stopped_instance() {
    both_ways(Truth::AttachRefusesInstanceState, |truths| {
        let kit = Kit::new(truths);
        let volume = kit.available(&[])?;
        let instance = kit.run(&[])?;
        equal(kit.attach(&volume, &instance, "/dev/xvdba").as_str(), "IncorrectState")?;
        kit.pass(10);
        kit.call("TerminateInstances", &[("InstanceId.1", &instance)])?;
        equal(kit.attach(&volume, &instance, "/dev/xvdba").as_str(), "IncorrectState")?;
        let stopped = kit.running()?;
        kit.call("StopInstances", &[("InstanceId.1", &stopped)])?;
        kit.pass(10);
        equal(kit.attach(&volume, &stopped, "/dev/xvdba").as_str(), "ok")
    });
}

/// Source: `API_AttachVolume`; `InvalidParameterValue … Attachment point … is already in use`.
#[test]
fn a_device_name_is_used_once_per_instance() {
    both_ways(Truth::AttachRefusesTakenDevice, |truths| {
        let kit = Kit::new(truths);
        let (instance, first, second) = (kit.running()?, kit.available(&[])?, kit.available(&[])?);
        equal(kit.attach(&first, &instance, "/dev/xvda").as_str(), "InvalidParameterValue")?;
        equal(kit.attach(&first, &instance, "/dev/xvdba").as_str(), "ok")?;
        equal(kit.attach(&second, &instance, "/dev/xvdba").as_str(), "InvalidParameterValue")?;
        equal(kit.attach(&second, &instance, "/dev/xvdbb").as_str(), "ok")
    });
}

/// Source: EC2 user guide, "Amazon EBS volume limits for Amazon EC2 instances"; error-code reference,
/// `AttachmentLimitExceeded`.
#[test]
fn an_instance_takes_a_limited_number_of_volumes() {
    both_ways(Truth::AttachRefusesTooMany, |truths| {
        let kit = Kit::new(truths);
        let instance = kit.running()?;
        for letter in 'a'..='z' {
            let volume = kit.available(&[])?;
            equal(kit.attach(&volume, &instance, &format!("/dev/xvdb{letter}")).as_str(), "ok")?;
        }
        let volume = kit.available(&[])?;
        equal(kit.attach(&volume, &instance, "/dev/xvdca").as_str(), "AttachmentLimitExceeded")
    });
}

/// Source: EBS user guide, "Detach an Amazon EBS volume": the root volume only from a stopped instance.
#[test]
fn the_root_volume_of_a_running_instance_is_not_detached() {
    both_ways(Truth::DetachRefusesRoot, |truths| {
        let kit = Kit::new(truths);
        let instance = kit.running()?;
        let root = kit.instance(&instance)?.attachments[0].volume_id.clone();
        kit.refuses("OperationNotPermitted", "DetachVolume", &[("VolumeId", &root)])?;
        kit.call("StopInstances", &[("InstanceId.1", &instance)])?;
        kit.pass(10);
        kit.refuses("ok", "DetachVolume", &[("VolumeId", &root)])?;
        kit.pass(10);
        check(kit.instance(&instance)?.attachments.is_empty(), "it is still attached")?;
        kit.refuses("IncorrectState", "DetachVolume", &[("VolumeId", &root)])
    });
}
