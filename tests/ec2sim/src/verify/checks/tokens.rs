//! What a client token promises, and what it does not.

use std::time::Duration;

use crate::verify::{
    answer::{Checked, Stop, check, equal},
    target::Target,
};

pub(super) async fn same_resource(ec2: &Target) -> Checked {
    let token = ec2.token();
    let token = [("ClientToken", token.as_str())];
    let volume = ec2.create(&token).await?;
    equal("CreateVolume with the same token", &ec2.create(&token).await?, &volume)?;
    let instance = ec2.launch(&token).await?;
    equal("RunInstances with the same token", &ec2.launch(&token).await?, &instance)
}

pub(super) async fn mismatch(ec2: &Target) -> Checked {
    let (token, what) = (ec2.token(), "the same token with another parameter");
    let token = ("ClientToken", token.as_str());
    ec2.create(&[token]).await?;
    let other = ec2.volume_params(&[token, ("Size", "2")]);
    ec2.answers("IdempotentParameterMismatch", what, "CreateVolume", &other).await?;
    ec2.launch(&[token]).await?;
    let other = ec2.launch_params(&[token, ("InstanceInitiatedShutdownBehavior", "terminate")]);
    ec2.answers("IdempotentParameterMismatch", what, "RunInstances", &other).await
}

pub(super) async fn length(ec2: &Target) -> Checked {
    let token = ec2.token();
    for (token, expected) in [
        (format!("{token:x<64}"), "ok"),
        (format!("{token:x<65}"), "InvalidParameterValue"),
        (format!("{token}-grün"), "InvalidParameterValue"),
    ] {
        let what = format!("a token of {} characters", token.chars().count());
        let params = ec2.volume_params(&[("ClientToken", token.as_str())]);
        ec2.answers(expected, &what, "CreateVolume", &params).await?;
    }
    Ok(())
}

pub(super) async fn case(ec2: &Target) -> Checked {
    let token = ec2.token();
    let lower = ec2.create(&[("ClientToken", &format!("{token}-a"))]).await?;
    let upper = ec2.create(&[("ClientToken", &format!("{token}-A"))]).await?;
    check(lower != upper, "CreateVolume: two tokens that differ in case give the same volume")
}

pub(super) async fn per_zone(ec2: &Target) -> Checked {
    if ec2.place.other_subnet.is_empty() {
        return Err(Stop::NotAsked("needs a subnet in another zone: --other-subnet".to_owned()));
    }
    let token = ec2.token();
    let token = ("ClientToken", token.as_str());
    let here = ec2.launch(&[token]).await?;
    let there = ec2.launch(&[token, ("SubnetId", &ec2.place.other_subnet)]).await?;
    check(here != there, "RunInstances: the same token gives the same instance in another zone")?;
    equal("RunInstances with the token of the first zone", &ec2.launch(&[token]).await?, &here)
}

pub(super) async fn of_terminated(ec2: &Target) -> Checked {
    let token = ec2.token();
    let params = [("ClientToken", token.as_str())];
    let id = ec2.launch(&params).await?;
    ec2.instance_becomes(&id, "running").await?;
    ec2.terminate(&id).await?;
    ec2.instance_becomes(&id, "terminated").await?;
    let again = ec2.launch_params(&params);
    ec2.answers("IdempotentInstanceTerminated", "the token of a terminated instance", "RunInstances", &again)
        .await
}

pub(super) async fn only_where_defined(ec2: &Target) -> Checked {
    let volume = ec2.available(&[]).await?;
    for (action, id) in [
        ("CreateSnapshot", "VolumeId"),
        ("ModifyVolume", "VolumeId"),
        ("DetachVolume", "VolumeId"),
        ("CreateTags", "ResourceId.1"),
        ("DeleteVolume", "VolumeId"),
    ] {
        let params = [(id, volume.as_str()), ("ClientToken", "a")];
        ec2.answers("UnknownParameter", "with a token", action, &params).await?;
    }
    Ok(())
}

pub(super) async fn late_refusal_of_key(ec2: &Target) -> Checked {
    let token = ec2.token();
    let wanted = [("ClientToken", token.as_str()), ("Encrypted", "true"), ("KmsKeyId", &ec2.place.no_key)];
    let id = ec2.create(&wanted).await?;
    ec2.volume_becomes(&id, "gone").await?;
    let again = ec2.volume_params(&wanted);
    ec2.answers("IdempotentParameterMismatch", "the token of a volume that vanished", "CreateVolume", &again)
        .await
}

pub(super) async fn none(ec2: &Target) -> Checked {
    let (one, other) = (ec2.create(&[]).await?, ec2.create(&[]).await?);
    check(one != other, "CreateVolume without a token gives the same volume twice")?;
    let (one, other) = (ec2.launch(&[]).await?, ec2.launch(&[]).await?);
    check(one != other, "RunInstances without a token gives the same instance twice")
}

pub(super) async fn filter(ec2: &Target) -> Checked {
    let token = ec2.token();
    let id = ec2.launch(&[("ClientToken", &token)]).await?;
    let by_token = [("Filter.1.Name", "client-token"), ("Filter.1.Value.1", token.as_str())];
    let what = "the instance by its token";
    let found = ec2
        .until(what, async || {
            let answer = ec2.must("DescribeInstances", &by_token).await?;
            let ids: Vec<String> = answer
                .items("reservationSet")
                .flat_map(|one| one.items("instancesSet"))
                .map(|one| one.text("instanceId").to_owned())
                .collect();
            Ok((!ids.is_empty()).then_some(ids))
        })
        .await?;
    equal(what, &found, &vec![id])?;
    ec2.answers("InvalidParameterValue", "the filter client-token", "DescribeVolumes", &by_token).await
}

/// How long the simulator remembers a token, and an hour more.
const FORGOTTEN: Duration = Duration::from_hours(13);

pub(super) async fn forgotten(ec2: &Target) -> Checked {
    ec2.takes(FORGOTTEN)?;
    let token = ec2.token();
    let params = [("ClientToken", token.as_str())];
    let first = ec2.create(&params).await?;
    ec2.pass(FORGOTTEN).await?;
    check(ec2.create(&params).await? != first, "CreateVolume: the token gives the same volume after 13 h")
}
