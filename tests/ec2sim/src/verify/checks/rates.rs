//! The account's rates. These checks use them up for some seconds.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;

use crate::verify::{
    answer::{Checked, Stop, check},
    target::Target,
};

/// After this the rates are whole again: none needs more seconds than this.
const REST: Duration = Duration::from_secs(30);

/// Makes a call many times at once; how often it was refused for the account's rate.
async fn throttled(
    ec2: &Target,
    times: usize,
    action: &'static str,
    params: &'static [(&str, &str)],
) -> usize {
    let mut calls = JoinSet::new();
    for _ in 0..times {
        let wire = Arc::clone(&ec2.wire);
        calls.spawn(async move { wire.send(action, params).await });
    }
    let answers = calls.join_all().await;
    answers.iter().filter(|answer| answer.as_ref().is_err_and(|e| e.code() == "RequestLimitExceeded")).count()
}

async fn rested(ec2: &Target) -> Checked {
    if !ec2.takes_rates {
        let why = "uses up the account's rates for half a minute; `--rates` allows it";
        return Err(Stop::NotAsked(why.to_owned()));
    }
    ec2.pass(REST).await
}

pub(super) async fn requests(ec2: &Target) -> Checked {
    rested(ec2).await?;
    let refused = throttled(ec2, 40, "RunInstances", &[("ImageId", "ami-none")]).await;
    check(refused > 0, "none of 40 RunInstances at once was refused for the account's rate")?;
    rested(ec2).await?;
    let refused = throttled(ec2, 1, "RunInstances", &[("ImageId", "ami-none")]).await;
    check(refused == 0, "half a minute later RunInstances was still refused for the account's rate")?;
    // The next check launches.
    rested(ec2).await
}

pub(super) async fn unfiltered(ec2: &Target) -> Checked {
    rested(ec2).await?;
    let refused = throttled(ec2, 80, "DescribeVolumes", &[]).await;
    check(refused > 0, "none of 80 DescribeVolumes without filter and page at once was refused")?;
    rested(ec2).await?;
    let refused = throttled(ec2, 80, "DescribeVolumes", &[("MaxResults", "5")]).await;
    check(refused == 0, format!("{refused} of 80 DescribeVolumes with a page at once were refused"))?;
    rested(ec2).await
}
