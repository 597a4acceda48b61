//! Filters, pages and ids.

use std::time::Duration;

use crate::verify::{
    answer::{Checked, Stop, check, equal},
    target::Target,
};

pub(super) async fn filters(ec2: &Target) -> Checked {
    for (count, values, expected) in
        [(50, 1, "ok"), (51, 1, "FilterLimitExceeded"), (1, 200, "ok"), (1, 201, "FilterLimitExceeded")]
    {
        let mut params = Vec::new();
        for filter in 1..=count {
            params.push((format!("Filter.{filter}.Name"), "instance-id".to_owned()));
            let value = |value| (format!("Filter.{filter}.Value.{value}"), format!("i-{value:017x}"));
            params.extend((1..=values).map(value));
        }
        let what = format!("{count} filters with {values} values each");
        ec2.answers(expected, &what, "DescribeInstances", &params).await?;
    }
    Ok(())
}

pub(super) async fn page_sizes(ec2: &Target) -> Checked {
    for (action, size, expected) in [
        ("DescribeInstances", "5", "ok"),
        ("DescribeInstances", "1000", "ok"),
        ("DescribeInstances", "4", "InvalidParameterValue"),
        ("DescribeInstances", "1001", "InvalidParameterValue"),
        ("DescribeVolumes", "4", "InvalidParameterValue"),
        ("DescribeInstanceTypes", "101", "InvalidParameterValue"),
    ] {
        ec2.answers(expected, &format!("a page of {size}"), action, &[("MaxResults", size)]).await?;
    }
    Ok(())
}

pub(super) async fn page_size_and_ids(ec2: &Target) -> Checked {
    let (instance, volume) = (ec2.running().await?, ec2.available(&[]).await?);
    let (code, what) = ("InvalidParameterCombination", "MaxResults and an id");
    let params = [("InstanceId.1", instance.as_str()), ("MaxResults", "5")];
    ec2.answers(code, what, "DescribeInstances", &params).await?;
    let params = [("VolumeId.1", volume.as_str()), ("MaxResults", "5")];
    ec2.answers(code, what, "DescribeVolumes", &params).await
}

/// 501 volumes are much for a quota and a minute's cost, so that it is among what takes long.
pub(super) async fn pages_of_500(ec2: &Target) -> Checked {
    ec2.takes(Duration::from_hours(1))?;
    for _ in 0..501 {
        ec2.create(&[]).await?;
    }
    let full = [("MaxResults", "1000")];
    let (count, next) = ec2
        .until("a first page of 500 volumes", async || {
            let answer = ec2.must("DescribeVolumes", &full).await?;
            let count = answer.items("volumeSet").count();
            // The newest may not be in the list yet.
            Ok((count >= 500).then(|| (count, answer.text("nextToken").to_owned())))
        })
        .await?;
    equal("a page of 1000 volumes has", &count, &500)?;
    check(!next.is_empty(), "the page of 500 volumes names no next one")
}

pub(super) async fn unknown_id(ec2: &Target) -> Checked {
    let id = ec2.running().await?;
    let unknown = "i-00000000000000000";
    let by_filter =
        [("Filter.1.Name", "instance-id"), ("Filter.1.Value.1", id.as_str()), ("Filter.1.Value.2", unknown)];
    let answer = ec2.must("DescribeInstances", &by_filter).await?;
    let found = answer.items("reservationSet").count();
    if found == 0 {
        return Err(Stop::Differs("a filter with an unknown id finds nothing".to_owned()));
    }
    let by_id = [("InstanceId.1", id.as_str()), ("InstanceId.2", unknown)];
    ec2.answers("InvalidInstanceID.NotFound", "one known and one unknown id", "DescribeInstances", &by_id)
        .await
}
