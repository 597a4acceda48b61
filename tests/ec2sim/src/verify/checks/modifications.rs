//! Growing a volume while it exists.

use std::time::Duration;

use crate::verify::{
    answer::{Checked, check, equal},
    target::Target,
};

/// How long four modifications of a volume of 1 GiB may take, each until it is completed.
const FOUR: Duration = Duration::from_hours(2);

/// The state of the volume's last modification.
async fn state(ec2: &Target, volume: &str) -> Checked<String> {
    let answer = ec2.must("DescribeVolumesModifications", &[("VolumeId.1", volume)]).await?;
    let last = answer.items("volumeModificationSet").next();
    Ok(last.map(|one| one.text("modificationState").to_owned()).unwrap_or_default())
}

pub(super) async fn size(ec2: &Target) -> Checked {
    let id = ec2.available(&[]).await?;
    let answer = ec2.must("ModifyVolume", &[("VolumeId", id.as_str()), ("Size", "2")]).await?;
    equal("ModifyVolume answers", &answer.text("volumeModification/modificationState"), &"modifying")?;
    let size = async || Ok(ec2.volume(&id).await?.unwrap_or_default().text("size").to_owned());
    ec2.until(&format!("the new size of {id}"), async || {
        // What was seen before the state holds while `modifying`, what is seen after it from then on.
        let before: String = size().await?;
        let state = state(ec2, &id).await?;
        if state == "modifying" {
            equal("while modifying the volume's size is", &before.as_str(), &"1")?;
            return Ok(None);
        }
        equal(&format!("while {state} the volume's size is"), &size().await?.as_str(), &"2")?;
        Ok(Some(()))
    })
    .await
}

pub(super) async fn one_at_a_time(ec2: &Target) -> Checked {
    let id = ec2.available(&[]).await?;
    ec2.must("ModifyVolume", &[("VolumeId", id.as_str()), ("Size", "2")]).await?;
    let next = [("VolumeId", id.as_str()), ("Size", "3")];
    ec2.answers("IncorrectModificationState", "during another modification", "ModifyVolume", &next).await
}

pub(super) async fn budget(ec2: &Target) -> Checked {
    ec2.takes(FOUR)?;
    let id = ec2.available(&[]).await?;
    // The last of them changes nothing, and counts.
    for size in ["2", "3", "4", "4"] {
        ec2.must("ModifyVolume", &[("VolumeId", id.as_str()), ("Size", size)]).await?;
        ec2.until(&format!("the modification of {id} completed"), async || {
            let state = state(ec2, &id).await?;
            check(state != "failed", "a modification failed")?;
            Ok((state == "completed").then_some(()))
        })
        .await?;
    }
    let fifth = [("VolumeId", id.as_str()), ("Size", "5")];
    ec2.answers("VolumeModificationRateExceeded", "a fifth time", "ModifyVolume", &fifth).await
}

pub(super) async fn only_grow(ec2: &Target) -> Checked {
    let id = ec2.available(&[("Size", "2")]).await?;
    let smaller = [("VolumeId", id.as_str()), ("Size", "1")];
    ec2.answers("InvalidParameterValue", "a smaller size", "ModifyVolume", &smaller).await
}
