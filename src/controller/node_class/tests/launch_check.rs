//! When a dry run is sent, of which launch, and what its answer means.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::{at, with, with_catalog, world};
use crate::api::creation::Refusal;
use crate::api::node_class_status::DryRun;
use crate::cloud::CloudError;
use crate::cloud::LaunchRequest;
use crate::controller::node_class::launch_check::{answer, is_due, request};
use crate::controller::node_class::launches::{Launch, Outcome};
use crate::controller::node_class::observe::Observed;
use crate::settings::Timing;

pub(super) fn refusal(code: &str, message: &str) -> Refusal {
    Refusal { code: code.to_owned(), message: message.to_owned(), at: Time(at(0)) }
}

pub(super) fn refused(code: &str, message: &str) -> DryRun {
    DryRun { refusal: Some(refusal(code, message)) }
}

pub(super) fn no_profile() -> DryRun {
    let message = "Value (nodes) for parameter iamInstanceProfile.name is invalid. \
        Invalid IAM Instance Profile name";
    refused("InvalidParameterValue", message)
}

#[test]
fn it_is_sent_at_once_for_each_spec_and_then_rarely() {
    let timing = Timing::default();
    let forbidden = refused("UnauthorizedOperation", "no");
    for (name, known, pause) in [
        ("without an answer after a minute", None, 60),
        ("accepted after an hour", Some(DryRun::default()), 3600),
        ("a profile that EC2 may learn of after a minute", Some(no_profile()), 60),
        ("forbidden after five minutes", Some(forbidden), 300),
    ] {
        let due = |last, now| is_due(known.as_ref(), last, &timing, now);
        assert!(due(None, at(0)), "{name}: never by this process");
        assert!(!due(Some(at(0)), at(pause - 1)), "{name}");
        assert!(due(Some(at(0)), at(pause)), "{name}");
    }
    assert_eq!(timing.resync_interval * 4, Duration::from_secs(3600));
}

fn asked(observed: &Observed) -> Option<LaunchRequest> {
    let catalog = observed.catalog.as_ref().unwrap();
    request(&observed.class, catalog, &observed.launches, "cluster-1", at(0))
}

#[test]
fn it_asks_for_what_a_launch_of_the_class_asks_for() {
    let observed = with(|it| {
        it.class.spec.instance_profile = Some("nodes".into());
        it.class.spec.kms_key_id = Some("alias/disks".into());
        it.class.metadata.uid = Some("uid-1".into());
    });
    let request = asked(&observed).unwrap();
    assert_eq!((request.subnet_id.as_str(), request.instance_type.as_str()), ("subnet-a", "r7i.large"));
    assert_eq!((request.image_id.as_str(), request.user_data.as_str()), ("ami-1", "boot"));
    assert_eq!(request.instance_profile.as_deref(), Some("nodes"));
    assert_eq!(request.kms_key_id.as_deref(), Some("alias/disks"));
    assert_eq!((request.security_group_ids, request.disks.len()), (vec!["sg-1".to_owned()], 1));
    let keys: Vec<&str> = request.tags.keys().map(String::as_str).collect();
    let expected = [
        "Name",
        "freehold.dev/attempt",
        "freehold.dev/cluster-id",
        "freehold.dev/database",
        "freehold.dev/node-uid",
    ];
    assert_eq!(keys, expected);
    assert_eq!(request.tags["freehold.dev/cluster-id"], "cluster-1");
}

#[test]
fn it_asks_for_a_type_that_the_class_uses() {
    let type_of = |observed: &Observed| asked(observed).map(|request| request.instance_type);
    let launch = |second, instance_type: &str| Launch {
        started_at: at(second),
        instance_type: instance_type.to_owned(),
        kms_key_id: None,
        outcome: Outcome::Unknown,
    };
    let any = |it: &mut Observed| it.class.spec.instance_types = vec!["*".to_owned()];
    for (name, observed, expected) in [
        ("the smallest of the first family", world(), Some("r7i.large")),
        (
            "the newest launch's",
            with(|it| {
                it.launches = vec![launch(1, "m7i.large"), launch(2, "r7i.xlarge"), launch(3, "t3.nano")];
            }),
            Some("r7i.xlarge"),
        ),
        ("none of a pattern without a family", with(any), None),
        (
            "but what was launched",
            with(|it| {
                any(it);
                it.launches = vec![launch(1, "m7i.large")];
            }),
            Some("m7i.large"),
        ),
        ("none without the image", with_catalog(|it| it.image = None), None),
        ("none of another architecture", with_catalog(|it| it.instance_types.clear()), None),
        ("none without a subnet", with_catalog(|it| it.subnets.clear()), None),
    ] {
        assert_eq!(type_of(&observed).as_deref(), expected, "{name}");
    }
}

#[test]
fn an_answer_that_says_nothing_of_the_class_leaves_what_was_known() {
    let error = |code: &str| CloudError::new("RunInstances", Some(code), "no", Some(400), None);
    let earlier = refused("UnauthorizedOperation", "before");
    for (name, sent, expected) in [
        ("accepted", Ok(()), DryRun::default()),
        ("no capacity", Err(error("InsufficientInstanceCapacity")), DryRun::default()),
        ("a quota", Err(error("VcpuLimitExceeded")), DryRun::default()),
        ("forbidden", Err(error("UnauthorizedOperation")), refused("UnauthorizedOperation", "no")),
        ("invalid", Err(error("InvalidParameterValue")), refused("InvalidParameterValue", "no")),
        ("not there", Err(error("InvalidKeyPair.NotFound")), refused("InvalidKeyPair.NotFound", "no")),
        ("throttled", Err(error("RequestLimitExceeded")), earlier.clone()),
        ("no answer", Err(CloudError::in_doubt("RunInstances", "no answer")), earlier.clone()),
    ] {
        assert_eq!(answer(sent, Some(earlier.clone()), at(0)), Some(expected), "{name}");
    }
    assert_eq!(answer(Err(error("RequestLimitExceeded")), None, at(0)), None);
    // The same refusal again changes nothing, its time included.
    let again =
        answer(Err(error("UnauthorizedOperation")), Some(refused("UnauthorizedOperation", "no")), at(9));
    assert_eq!(again, Some(refused("UnauthorizedOperation", "no")));
}
