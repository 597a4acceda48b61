//! A volume's states and shapes.

use crate::verify::{
    answer::{Checked, equal},
    target::Target,
};

pub(super) async fn states(ec2: &Target) -> Checked {
    let answer = ec2.must("CreateVolume", &ec2.volume_params(&[])).await?;
    equal("CreateVolume answers", &answer.text("status"), &"creating")?;
    let id = answer.text("volumeId");
    ec2.volume_becomes(id, "available").await?;
    ec2.must("DeleteVolume", &[("VolumeId", id)]).await?;
    ec2.volume_becomes(id, "gone").await?;
    ec2.answers("InvalidVolume.NotFound", "a volume that is gone", "DeleteVolume", &[("VolumeId", id)]).await
}

/// Only small ones are made; the others must be refused.
pub(super) async fn ranges(ec2: &Target) -> Checked {
    for (volume_type, size, iops, throughput, expected) in [
        ("gp3", "65537", "", "", "InvalidParameterValue"),
        ("gp3", "10", "5000", "", "ok"),
        ("gp3", "10", "5001", "", "InvalidParameterValue"),
        ("gp3", "10", "", "751", "InvalidParameterValue"),
        ("gp2", "10", "3000", "", "InvalidParameterCombination"),
        ("io2", "10", "", "", "MissingParameter"),
        ("io1", "10", "501", "", "InvalidParameterValue"),
    ] {
        let what = format!("{volume_type}, {size} GiB, IOPS {iops:?}, throughput {throughput:?}");
        let shape = [("VolumeType", volume_type), ("Size", size), ("Iops", iops), ("Throughput", throughput)];
        ec2.answers(expected, &what, "CreateVolume", &ec2.volume_params(&shape)).await?;
    }
    Ok(())
}

pub(super) async fn delete_of_used(ec2: &Target) -> Checked {
    let (instance, id) = (ec2.running().await?, ec2.available(&[]).await?);
    ec2.attached(&id, &instance, "/dev/sdf").await?;
    ec2.answers("VolumeInUse", "an attached volume", "DeleteVolume", &[("VolumeId", &id)]).await
}
