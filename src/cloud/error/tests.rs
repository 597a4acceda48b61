//! Tests of the table of codes, and of an error's text.

use pretty_assertions::assert_eq;
use strum::IntoEnumIterator;

use super::*;

#[test]
fn every_code_of_the_table_has_its_class() {
    let rows: [(Class, &[&str]); 11] = [
        (Class::InDoubt, &["InternalError", "InternalFailure", "Unavailable", "ServiceUnavailable", ""]),
        (Class::Refused, &["Whatever.New", "NetworkInterfaceLimitExceeded"]),
        (
            Class::Throttled,
            &[
                "RequestLimitExceeded",
                "Throttling",
                "ThrottlingException",
                "EC2ThrottledException",
                "SnapshotCreationPerVolumeRateExceeded",
            ],
        ),
        (
            Class::Capacity,
            &[
                "InsufficientInstanceCapacity",
                "InsufficientHostCapacity",
                "UnfulfillableCapacity",
                "Unsupported",
                "InsufficientFreeAddressesInSubnet",
                "InsufficientVolumeCapacity",
                "ReservationCapacityExceeded",
                "InsufficientCapacityOnOutpost",
                "VolumeTypeNotAvailableInZone",
            ],
        ),
        (
            Class::Quota,
            &[
                "VcpuLimitExceeded",
                "InstanceLimitExceeded",
                "VolumeLimitExceeded",
                "MaxIOPSLimitExceeded",
                "SnapshotLimitExceeded",
                "PendingVerification",
            ],
        ),
        (
            Class::Forbidden,
            &[
                "UnauthorizedOperation",
                "AccessDenied",
                "AuthFailure",
                "InvalidKMSKey.InvalidState",
                "InvalidKmsKey.NotFound",
                "OperationNotPermitted",
                "Blocked",
                "OptInRequired",
                "ExpiredToken",
                "RequestExpired",
            ],
        ),
        (
            Class::Invalid,
            &[
                "InvalidParameterValue",
                "InvalidParameterCombination",
                "InvalidAMIID.NotFound",
                "InvalidAMIID.Unavailable",
                "InvalidSubnetID.NotFound",
                "InvalidGroup.NotFound",
                "InvalidSnapshot.NotFound",
                "InvalidZone.NotFound",
                "InvalidUserData.Malformed",
                "MissingParameter",
                "UnknownVolumeType",
                "UnsupportedOperation",
                "EncryptedVolumesNotSupported",
            ],
        ),
        (Class::Token, &["IdempotentParameterMismatch", "IdempotentInstanceTerminated"]),
        (Class::NotFound, &["InvalidInstanceID.NotFound", "InvalidVolume.NotFound"]),
        (
            Class::State,
            &[
                "IncorrectState",
                "IncorrectInstanceState",
                "VolumeInUse",
                "IncorrectModificationState",
                "ConcurrentSnapshotLimitExceeded",
            ],
        ),
        (Class::ModificationBudget, &["VolumeModificationRateExceeded"]),
    ];
    for (class, codes) in rows {
        for code in codes {
            assert_eq!(classify(Some(code), "", Some(400)), class, "{code}");
        }
    }
}

#[test]
fn no_answer_is_in_doubt_whatever_the_status() {
    assert_eq!(classify(None, "operation timed out", None), Class::InDoubt);
    assert_eq!(classify(None, "", Some(400)), Class::InDoubt);
    assert_eq!(classify(None, "", Some(500)), Class::InDoubt);
}

#[test]
fn an_unknown_code_is_a_refusal_only_with_the_status_of_one() {
    let unknown = |status| classify(Some("Whatever.New"), "", status);
    assert_eq!([Some(400), Some(403), Some(499)].map(unknown), [Class::Refused; 3]);
    let others = [None, Some(200), Some(399), Some(408), Some(429), Some(500), Some(503)];
    assert_eq!(others.map(unknown), [Class::InDoubt; 7]);
}

#[test]
fn capacity_is_a_refusal_although_ec2_answers_it_with_a_server_errors_status() {
    assert_eq!(classify(Some("InsufficientInstanceCapacity"), "", Some(500)), Class::Capacity);
}

#[test]
fn a_complaint_about_the_request_with_a_server_errors_status_is_not_believed() {
    assert_eq!(classify(Some("InvalidParameterValue"), "", Some(503)), Class::InDoubt);
}

#[test]
fn an_instance_profile_that_was_just_made_is_not_an_invalid_request() {
    let message = "Value (freehold) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance \
        Profile name";
    assert_eq!(classify(Some("InvalidParameterValue"), message, Some(400)), Class::NotYetUsable);
}

#[test]
fn only_capacity_permission_and_bad_requests_are_definite_refusals() {
    let definite: Vec<_> = Class::iter()
        .filter(|class| {
            CloudError { class: *class, ..CloudError::in_doubt("RunInstances", "") }.is_definite_refusal()
        })
        .collect();
    assert_eq!(definite, [Class::Capacity, Class::Forbidden, Class::Invalid, Class::Refused]);
}

#[test]
fn the_reason_of_a_dead_launch_has_a_class_and_a_shutdown_has_none() {
    let rows = [
        ("Server.InsufficientInstanceCapacity: no capacity", Some(Class::Capacity)),
        ("Client.VolumeLimitExceeded: Volume limit exceeded", Some(Class::Quota)),
        ("Client.InvalidSnapshot.NotFound: The snapshot was not found", Some(Class::Invalid)),
        ("Client.InternalError: Client error on launch", Some(Class::Forbidden)),
        ("Server.InternalError: Internal error on launch", Some(Class::InDoubt)),
        ("Server.InsufficientInstanceCapacity", Some(Class::Capacity)),
        ("Client.UserInitiatedShutdown: User initiated shutdown", None),
        ("Client.UserInitiatedHibernate: User initiated hibernate", None),
        ("Client.InstanceInitiatedShutdown: Instance initiated shutdown", None),
        ("Client.InstanceTerminated: Instance terminated", None),
        ("Server.ScheduledStop: Stopped due to scheduled retirement", None),
        ("Server.SpotInstanceShutdown: …", None),
        ("Server.SpotInstanceTermination: …", None),
        ("Server.SomethingNew: …", None),
        ("", None),
    ];
    for (reason, class) in rows {
        assert_eq!(launch_failure(reason), class, "{reason}");
    }
}

#[test]
fn the_text_names_the_call_the_code_and_the_message_but_nothing_of_the_account() {
    let message = "You are not authorized to perform this operation. User: \
        arn:aws:sts::123456789012:assumed-role/freehold/eks-1 is not authorized to perform: \
        ec2:RunInstances. Encoded authorization failure message: AbCdEf0123";
    let error =
        CloudError::new("RunInstances", Some("UnauthorizedOperation"), message, Some(403), Some("req-1"));
    assert_eq!(error.class, Class::Forbidden);
    assert_eq!(
        error.to_string(),
        "EC2 answered RunInstances with UnauthorizedOperation: You are not authorized to perform this \
            operation. User: assumed-role/… is not authorized to perform: ec2:RunInstances."
    );
    let whole = format!("{error:?}");
    assert!(!whole.contains("AbCdEf") && !whole.contains("123456789012"), "{whole}");
}
