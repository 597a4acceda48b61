//! EC2's errors, in classes: did it create anything, does the same request help, whose fault is it? No other file compares a code.

use strum::{EnumIter, IntoStaticStr};
use thiserror::Error;

/// What EC2's answer means for us (EC2 API reference, "Error codes").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Class {
    /// No answer, a server error, or a code that is not in the table: it may have been carried out. The same request with the same
    /// token helps.
    InDoubt,
    /// Too fast. Slow the bucket; no failure of the object.
    Throttled,
    /// EC2 has no capacity for this type, zone or subnet. Nothing was made; another type or zone may help.
    Capacity,
    /// The account has reached a limit. EC2 checks limits before tokens, so the resource may have been made before
    /// (aws-ebs-csi-driver#2512). Creations pause for all objects.
    Quota,
    /// The operator's role may not. Nothing was made. A person must change a policy.
    Forbidden,
    /// The request is wrong for good. Nothing was made. The spec or the class must change.
    Invalid,
    /// What the request names was made moments ago and EC2 does not accept it yet (an instance profile, for about two minutes after its
    /// creation). The same request helps soon; if it goes on for long, the name is wrong.
    NotYetUsable,
    /// The token was used for another request, or its instance has terminated. Look up.
    Token,
    /// EC2 does not show what the request names; maybe not yet.
    NotFound,
    /// The resource's state does not allow it now. Read again.
    State,
    /// The volume's modifications of the last 24 hours are used up.
    ModificationBudget,
    /// A dry run would have been carried out.
    DryRun,
}

impl Class {
    /// The name in logs and metrics.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A call that EC2 did not carry out, or of which that is not known.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("EC2 answered {action} with {}: {message}", code.as_deref().unwrap_or("no code"))]
pub struct CloudError {
    /// The call.
    pub action: &'static str,
    /// What the answer means.
    pub class: Class,
    /// EC2's code; `None` when EC2 did not answer, or not with an error of its own.
    pub code: Option<String>,
    /// EC2's message, fit for a condition: without encoded authorization details.
    pub message: String,
    /// EC2's id of the request, for a support case.
    pub request_id: Option<String>,
}

impl CloudError {
    /// An error as EC2 or the way there reported it.
    pub fn new(action: &'static str, code: Option<&str>, message: &str, http_status: Option<u16>, request_id: Option<&str>) -> Self {
        Self {
            action,
            class: classify(code, message, http_status),
            code: code.map(str::to_owned),
            message: presentable(message),
            request_id: request_id.map(str::to_owned),
        }
    }

    /// An answer that says less than it must, or none: it may have been carried out.
    pub fn in_doubt(action: &'static str, message: impl Into<String>) -> Self {
        Self { action, class: Class::InDoubt, code: None, message: message.into(), request_id: None }
    }

    /// True if EC2 refused a creating call for certain, so that this send made nothing and a further attempt needs no wait. Limits,
    /// throttles, token and state errors are not: what an earlier send of the same attempt did is unknown.
    pub fn is_definite_refusal(&self) -> bool {
        match self.class {
            Class::Capacity | Class::Forbidden | Class::Invalid => true,
            Class::InDoubt
            | Class::Throttled
            | Class::Quota
            | Class::NotYetUsable
            | Class::Token
            | Class::NotFound
            | Class::State
            | Class::ModificationBudget
            | Class::DryRun => false,
        }
    }
}

/// The class of an error. The code decides: EC2 answers some refusals, capacity among them, with HTTP 500. Only a complaint about the
/// request together with a server error's status is too odd to be believed.
pub fn classify(code: Option<&str>, message: &str, http_status: Option<u16>) -> Class {
    let Some(code) = code else { return Class::InDoubt };
    let class = classify_code(code, message);
    let is_server_error = http_status.is_some_and(|status| status >= 500);
    if is_server_error && matches!(class, Class::Invalid | Class::Forbidden | Class::NotYetUsable) { Class::InDoubt } else { class }
}

/// The class of the reason that EC2 gives for an instance that died while it was launched (`Server.InsufficientInstanceCapacity: …`);
/// `None` for reasons that are no launch failure, a shutdown that a person asked for among them.
pub fn launch_failure(state_reason: &str) -> Option<Class> {
    let code = state_reason.split(':').next().unwrap_or(state_reason).trim();
    match code {
        // EC2 User Guide, "Troubleshoot instance termination": often a KMS key that the role may not use.
        "Client.InternalError" => Some(Class::Forbidden),
        "Server.InternalError" => Some(Class::InDoubt),
        "Client.UserInitiatedShutdown" | "Client.InstanceInitiatedShutdown" | "Server.ScheduledStop" => None,
        other => {
            let (_, code) = other.split_once('.')?;
            Some(classify_code(code, "")).filter(|class| *class != Class::InDoubt)
        }
    }
}

fn classify_code(code: &str, message: &str) -> Class {
    match code {
        "RequestLimitExceeded" | "EC2ThrottledException" | "SnapshotCreationPerVolumeRateExceeded" => Class::Throttled,

        "InsufficientInstanceCapacity"
        | "InsufficientHostCapacity"
        | "UnfulfillableCapacity"
        | "Unsupported"
        | "InsufficientFreeAddressesInSubnet"
        | "InsufficientVolumeCapacity"
        | "ReservationCapacityExceeded" => Class::Capacity,

        "VcpuLimitExceeded"
        | "InstanceLimitExceeded"
        | "VolumeLimitExceeded"
        | "MaxIOPSLimitExceeded"
        | "SnapshotLimitExceeded"
        | "PendingVerification" => Class::Quota,

        "UnauthorizedOperation"
        | "AccessDenied"
        | "AccessDeniedException"
        | "AuthFailure"
        | "OptInRequired"
        | "OperationNotPermitted"
        | "ExpiredToken"
        | "RequestExpired"
        | "InvalidClientTokenId"
        | "SignatureDoesNotMatch"
        | "MissingAuthenticationToken" => Class::Forbidden,

        // IAM is eventually consistent towards EC2: a profile is unknown to it for about two minutes after its creation.
        "InvalidParameterValue" if message.contains("Invalid IAM Instance Profile") => Class::NotYetUsable,

        "InvalidParameterValue"
        | "InvalidParameterCombination"
        | "InvalidParameter"
        | "MissingParameter"
        | "UnknownParameter"
        | "UnsupportedOperation"
        | "UnknownVolumeType"
        | "InvalidParameterDependency"
        | "InvalidInstanceType"
        | "InvalidBlockDeviceMapping"
        | "InvalidSubnetID.NotFound"
        | "InvalidGroup.NotFound"
        | "InvalidSnapshot.NotFound"
        | "InvalidZone.NotFound"
        | "TagLimitExceeded" => Class::Invalid,

        "IdempotentParameterMismatch" | "IdempotentInstanceTerminated" => Class::Token,

        "IncorrectState" | "IncorrectInstanceState" | "VolumeInUse" | "IncorrectModificationState" | "ConcurrentSnapshotLimitExceeded" => {
            Class::State
        }

        "VolumeModificationRateExceeded" => Class::ModificationBudget,

        "DryRunOperation" => Class::DryRun,

        _ if code.starts_with("Throttling") => Class::Throttled,
        // EC2 spells it in two ways.
        _ if code.to_ascii_lowercase().starts_with("invalidkmskey") => Class::Forbidden,
        _ if code.starts_with("InvalidAMIID.") => Class::Invalid,
        _ if code.starts_with("Invalid") && code.ends_with(".Malformed") => Class::Invalid,
        _ if code.starts_with("Invalid") && code.ends_with(".NotFound") => Class::NotFound,
        // Everything else, server errors by name among it: it may have been carried out.
        _ => Class::InDoubt,
    }
}

/// The longest message that is passed on, in characters: it ends up in conditions.
const LONGEST_MESSAGE: usize = 600;

/// The message without the encoded details that EC2 adds to refusals: they are long, and whoever may decode them reads the policy.
fn presentable(message: &str) -> String {
    const ENCODED: &str = "Encoded authorization failure message";
    let plain = message.split(ENCODED).next().unwrap_or_default().trim();
    let mut text: String = plain.chars().take(LONGEST_MESSAGE).collect();
    if text.len() < plain.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use strum::IntoEnumIterator;

    use super::*;

    #[test]
    fn every_code_of_the_table_has_its_class() {
        let rows: [(Class, &[&str]); 11] = [
            (Class::InDoubt, &["InternalError", "InternalFailure", "Unavailable", "ServiceUnavailable", "Whatever.New", ""]),
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
            (Class::DryRun, &["DryRunOperation"]),
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
    fn capacity_is_a_refusal_although_ec2_answers_it_with_a_server_errors_status() {
        assert_eq!(classify(Some("InsufficientInstanceCapacity"), "", Some(500)), Class::Capacity);
    }

    #[test]
    fn a_complaint_about_the_request_with_a_server_errors_status_is_not_believed() {
        assert_eq!(classify(Some("InvalidParameterValue"), "", Some(503)), Class::InDoubt);
    }

    #[test]
    fn an_instance_profile_that_was_just_made_is_not_an_invalid_request() {
        let message = "Value (freehold) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name";
        assert_eq!(classify(Some("InvalidParameterValue"), message, Some(400)), Class::NotYetUsable);
    }

    #[test]
    fn only_capacity_permission_and_bad_requests_are_definite_refusals() {
        let definite: Vec<_> = Class::iter()
            .filter(|class| CloudError { class: *class, ..CloudError::in_doubt("RunInstances", "") }.is_definite_refusal())
            .collect();
        assert_eq!(definite, [Class::Capacity, Class::Forbidden, Class::Invalid]);
    }

    #[test]
    fn the_reason_of_a_dead_launch_has_a_class_and_a_shutdown_has_none() {
        let rows = [
            ("Server.InsufficientInstanceCapacity: no capacity", Some(Class::Capacity)),
            ("Client.VolumeLimitExceeded: Volume limit exceeded", Some(Class::Quota)),
            ("Client.InvalidSnapshot.NotFound: The snapshot was not found", Some(Class::Invalid)),
            ("Client.InternalError: Client error on launch", Some(Class::Forbidden)),
            ("Server.InternalError: Internal error on launch", Some(Class::InDoubt)),
            ("Client.UserInitiatedShutdown: User initiated shutdown", None),
            ("Server.SpotInstanceTermination: …", None),
            ("", None),
        ];
        for (reason, class) in rows {
            assert_eq!(launch_failure(reason), class, "{reason}");
        }
    }

    #[test]
    fn the_text_names_the_call_the_code_and_the_message_but_no_encoded_details() {
        let error = CloudError::new(
            "RunInstances",
            Some("UnauthorizedOperation"),
            "You are not authorized to perform this operation. Encoded authorization failure message: AbCdEf0123",
            Some(403),
            Some("req-1"),
        );
        assert_eq!(error.class, Class::Forbidden);
        assert_eq!(
            error.to_string(),
            "EC2 answered RunInstances with UnauthorizedOperation: You are not authorized to perform this operation."
        );
        assert!(!format!("{error:?}").contains("AbCdEf"));
    }

    #[test]
    fn a_very_long_message_is_cut() {
        let error = CloudError::new("RunInstances", Some("InvalidParameterValue"), &"é".repeat(5000), Some(400), None);
        assert_eq!(error.message.chars().count(), LONGEST_MESSAGE + 1);
    }
}
