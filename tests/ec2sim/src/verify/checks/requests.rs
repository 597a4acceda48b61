//! Dry runs, and what EC2 does not know.

use crate::verify::{
    answer::{Checked, Stop, equal},
    inventory::Inventory,
    target::Target,
};

pub(super) async fn dry_run(ec2: &Target) -> Checked {
    let (instance, volume) = (ec2.running().await?, ec2.available(&[]).await?);
    let snapshot = ec2.completed_snapshot(&volume).await?;
    let (volume_id, instance_id) = (("VolumeId", volume.as_str()), ("InstanceId.1", instance.as_str()));
    let own = |params: &[(&str, &str)]| {
        params.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
    };
    let tag = [("ResourceId.1", volume.as_str()), ("Tag.1.Key", "a"), ("Tag.1.Value", "b")];
    let before = Inventory::of_run(ec2).await?;
    for (action, mut params) in [
        ("RunInstances", ec2.launch_params(&[])),
        ("CreateVolume", ec2.volume_params(&[])),
        ("CreateSnapshot", ec2.snapshot_params(&volume)),
        ("ModifyVolume", own(&[volume_id, ("Size", "2")])),
        ("AttachVolume", Target::attachment(&volume, &instance, "/dev/sdf")),
        ("CreateTags", own(&tag)),
        ("DeleteTags", own(&tag[..2])),
        ("DeleteVolume", own(&[volume_id])),
        ("DeleteSnapshot", own(&[("SnapshotId", &snapshot)])),
        ("RebootInstances", own(&[instance_id])),
        ("StopInstances", own(&[instance_id])),
        ("StartInstances", own(&[instance_id])),
        ("TerminateInstances", own(&[instance_id])),
    ] {
        params.push(("DryRun".to_owned(), "true".to_owned()));
        ec2.answers("DryRunOperation", "as a dry run", action, &params).await?;
    }
    equal("after the dry runs there is", &Inventory::of_run(ec2).await?, &before)
}

/// The simulator's own promise is wider: it refuses what EC2 knows and it does not.
pub(super) async fn unknown(ec2: &Target) -> Checked {
    let colour = [("Filter.1.Name", "colour"), ("Filter.1.Value.1", "red")];
    ec2.answers("InvalidParameterValue", "a filter that does not exist", "DescribeInstances", &colour)
        .await?;
    let volume = ec2.volume_params(&[("NoSuchParameter", "a"), ("DryRun", "true")]);
    for (action, params, what) in [
        ("CreateVolume", volume, "a parameter that does not exist"),
        ("NoSuchAction", Vec::new(), "an action that does not exist"),
    ] {
        let code = ec2.code(action, &params).await?;
        if ["ok", "DryRunOperation"].contains(&code.as_str()) {
            return Err(Stop::Differs(format!("{action} ({what}): `{code}` instead of a refusal")));
        }
    }
    Ok(())
}
