//! Snapshots: their states, their pace, and volumes made from them.

use crate::verify::{
    answer::{Checked, equal},
    target::Target,
};

pub(super) async fn states(ec2: &Target) -> Checked {
    let volume = ec2.available(&[]).await?;
    let answer = ec2.must("CreateSnapshot", &ec2.snapshot_params(&volume)).await?;
    equal("CreateSnapshot answers", &answer.text("status"), &"pending")?;
    let id = answer.text("snapshotId");
    let progress = ec2
        .until(&format!("{id} completed"), async || {
            let seen = ec2.snapshot(id).await?.filter(|seen| seen.text("status") == "completed");
            Ok(seen.map(|seen| seen.text("progress").to_owned()))
        })
        .await?;
    equal("the progress of a completed snapshot is", &progress.as_str(), &"100%")
}

pub(super) async fn rate(ec2: &Target) -> Checked {
    let (volume, other) = (ec2.available(&[]).await?, ec2.available(&[]).await?);
    ec2.must("CreateSnapshot", &ec2.snapshot_params(&volume)).await?;
    let (code, again) = ("SnapshotCreationPerVolumeRateExceeded", ec2.snapshot_params(&volume));
    ec2.answers(code, "at once after another of the volume", "CreateSnapshot", &again).await?;
    ec2.answers("ok", "of another volume", "CreateSnapshot", &ec2.snapshot_params(&other)).await
}

pub(super) async fn minimum_size(ec2: &Target) -> Checked {
    let volume = ec2.available(&[("Size", "2")]).await?;
    let snapshot = ec2.completed_snapshot(&volume).await?;
    let same = ec2.create(&[("SnapshotId", &snapshot), ("Size", "")]).await?;
    let size = ec2.volume(&same).await?.unwrap_or_default().text("size").to_owned();
    equal("a volume of a snapshot of 2 GiB, without a size, has", &size.as_str(), &"2")?;
    let smaller = ec2.volume_params(&[("SnapshotId", &snapshot), ("Size", "1")]);
    ec2.answers("InvalidParameterValue", "smaller than its snapshot", "CreateVolume", &smaller).await
}
