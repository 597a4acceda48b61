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

pub(super) async fn initialization_rate(ec2: &Target) -> Checked {
    let volume = ec2.available(&[]).await?;
    let snapshot = ec2.completed_snapshot(&volume).await?;
    for (what, snapshot, rate, expected) in [
        ("at 100 MiB/s", snapshot.as_str(), "100", "ok"),
        ("at 99 MiB/s", snapshot.as_str(), "99", "InvalidParameterValue"),
        ("at 301 MiB/s", snapshot.as_str(), "301", "InvalidParameterValue"),
        ("at a rate, without a snapshot", "", "100", "InvalidParameterCombination"),
    ] {
        let params = ec2.volume_params(&[("SnapshotId", snapshot), ("VolumeInitializationRate", rate)]);
        ec2.answers(expected, what, "CreateVolume", &params).await?;
    }
    Ok(())
}
