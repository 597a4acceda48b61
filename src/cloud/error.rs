//! Classifies EC2's errors: can the call have created anything, does the same request help, who must act? No
//! other file compares a code.

mod presentable;

use strum::{EnumIter, IntoStaticStr};
use thiserror::Error;

use presentable::presentable;

/// What an error of EC2 means for Freehold (EC2 API reference, "Error codes").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Class {
    /// No answer, a server error, or a code that is not in the table without the status of a refusal: it may
    /// have been carried out. The same request with the same token helps.
    InDoubt,
    /// The request rate is too high: the bucket slows down. The object has not failed.
    Throttled,
    /// EC2 has no capacity for this type, zone or subnet. Nothing was created; another type or zone may help.
    Capacity,
    /// The account has reached a limit. EC2 checks limits before tokens, so an earlier send of the attempt
    /// may have created the resource (aws-ebs-csi-driver#2512). What asks for no less of the same quota
    /// pauses.
    Quota,
    /// The operator's role lacks the permission. Nothing was created. A person must change a policy.
    Forbidden,
    /// The request is invalid and stays so. Nothing was created. The spec or the class must change.
    Invalid,
    /// EC2 refused the request with a code that is not in the table (HTTP 4xx). Nothing was created. The same
    /// request may help later.
    Refused,
    /// What the request names was created moments ago and EC2 does not accept it yet (an instance profile,
    /// for about two minutes after its creation). The same request helps soon; if it goes on for long, the
    /// name is wrong.
    NotYetUsable,
    /// The token was used for another request, or its instance has terminated. Look up.
    Token,
    /// EC2 does not show what the request names; maybe not yet.
    NotFound,
    /// The resource's state does not allow it now. Read again.
    State,
    /// The volume has reached EBS's limit of modifications in 24 hours.
    ModificationBudget,
}

impl Class {
    /// The name in logs and metrics.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A call that EC2 did not carry out, or may not have carried out.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("EC2 answered {action} with {}: {message}", code.as_deref().unwrap_or("no code"))]
pub struct CloudError {
    /// The call.
    pub action: &'static str,
    /// The class of the answer.
    pub class: Class,
    /// EC2's code; `None` when EC2 did not answer, or not with an error of its own.
    pub code: Option<String>,
    /// EC2's message, fit for a condition: without encoded authorization details, ARNs and account ids.
    pub message: String,
    /// EC2's id of the request, for a support case.
    pub request_id: Option<String>,
}

impl CloudError {
    /// An error as EC2, or the transport, reported it.
    pub fn new(
        action: &'static str,
        code: Option<&str>,
        message: &str,
        http_status: Option<u16>,
        request_id: Option<&str>,
    ) -> Self {
        Self {
            action,
            class: classify(code, message, http_status),
            code: code.map(str::to_owned),
            message: presentable(message),
            request_id: request_id.map(str::to_owned),
        }
    }

    /// An incomplete answer, or none: the call may have been carried out.
    pub fn in_doubt(action: &'static str, message: impl Into<String>) -> Self {
        Self { action, class: Class::InDoubt, code: None, message: message.into(), request_id: None }
    }

    /// True if it is the answer to a dry run that EC2 would have accepted.
    pub fn is_accepted_dry_run(&self) -> bool {
        is_accepted_dry_run(self.code.as_deref())
    }

    /// True if EC2 refused a creating call for certain, so that this send created nothing and a further
    /// attempt needs no wait. Limits, throttles, token and state errors are no such refusals: what an earlier
    /// send of the same attempt did is unknown.
    pub fn is_definite_refusal(&self) -> bool {
        match self.class {
            Class::Capacity | Class::Forbidden | Class::Invalid | Class::Refused => true,
            Class::InDoubt
            | Class::Throttled
            | Class::Quota
            | Class::NotYetUsable
            | Class::Token
            | Class::NotFound
            | Class::State
            | Class::ModificationBudget => false,
        }
    }
}

/// Whether this code is the answer to a dry run that EC2 would have accepted (EC2 API reference, `DryRun`).
pub fn is_accepted_dry_run(code: Option<&str>) -> bool {
    code == Some("DryRunOperation")
}

/// The class of an error. The code decides: EC2 answers some refusals, capacity among them, with HTTP 500.
/// Only a complaint about the request that comes with the status of a server error is not believed. A code
/// that is not in the table is a refusal if the status is one: EC2 answers a request that it carried out, or
/// may have, with no such status (EC2 API reference, "Error codes": client errors).
pub fn classify(code: Option<&str>, message: &str, http_status: Option<u16>) -> Class {
    let Some(code) = code.filter(|code| !code.is_empty()) else { return Class::InDoubt };
    let is_refusal = http_status.is_some_and(|status| (400..500).contains(&status) && !is_timing(status));
    let class =
        classify_code(code, message).unwrap_or(if is_refusal { Class::Refused } else { Class::InDoubt });
    let is_server_error = http_status.is_some_and(|status| status >= 500);
    if is_server_error && matches!(class, Class::Invalid | Class::Forbidden | Class::NotYetUsable) {
        Class::InDoubt
    } else {
        class
    }
}

/// Whether an HTTP status is about the time of the request: Request Timeout, Too Many Requests.
fn is_timing(status: u16) -> bool {
    matches!(status, 408 | 429)
}

/// What a limit of the account counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaKind {
    /// The vCPUs of instances.
    Vcpus,
    /// Instances, whatever their size.
    Instances,
    /// The storage of volumes.
    Storage,
    /// The IOPS of volumes.
    Iops,
    /// Snapshots.
    Snapshots,
    /// Everything, until AWS has verified the account.
    Account,
}

/// What the limit counts that this code is about; `None` for a code of another class (EC2 API reference,
/// "Error codes").
pub fn quota(code: &str) -> Option<QuotaKind> {
    match code {
        "VcpuLimitExceeded" => Some(QuotaKind::Vcpus),
        "InstanceLimitExceeded" => Some(QuotaKind::Instances),
        "VolumeLimitExceeded" => Some(QuotaKind::Storage),
        "MaxIOPSLimitExceeded" => Some(QuotaKind::Iops),
        "SnapshotLimitExceeded" => Some(QuotaKind::Snapshots),
        "PendingVerification" => Some(QuotaKind::Account),
        _ => None,
    }
}

/// The class of the reason that EC2 gives for an instance that ended while it was launched (`Code: message`);
/// `None` for every reason that is no failure of the launch.
///
/// The codes are those of the EC2 API reference, "StateReason". It also lists `Server.ScheduledStop`,
/// `Server.SpotInstanceShutdown`, `Server.SpotInstanceTermination`, `Client.InstanceInitiatedShutdown`,
/// `Client.InstanceTerminated`, `Client.UserInitiatedHibernate` and `Client.UserInitiatedShutdown`: EC2, a
/// person, or the machine itself ended an instance that had been launched.
pub fn launch_failure(state_reason: &str) -> Option<Class> {
    let code = state_reason.split(|character: char| character == ':' || character.is_whitespace()).next()?;
    match code {
        "Server.InsufficientInstanceCapacity" => Some(Class::Capacity),
        "Client.VolumeLimitExceeded" => Some(Class::Quota),
        "Client.InvalidSnapshot.NotFound" => Some(Class::Invalid),
        // EC2 User Guide, "Troubleshoot instance termination": often a KMS key that the role may not use.
        "Client.InternalError" => Some(Class::Forbidden),
        "Server.InternalError" => Some(Class::InDoubt),
        _ => None,
    }
}

/// What a lack of capacity is about: nothing else is closed by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapacityOf {
    /// The instance type in the zone, or the volume type.
    Offering,
    /// The subnet of the launch: it has no free address.
    Subnet,
    /// The type in the zone with this image: EC2 does not say whether the image or the zone is why.
    Image,
}

/// What the lack of capacity with this code is about (EC2 API reference, "Error codes").
pub fn capacity_of(code: Option<&str>) -> CapacityOf {
    match code {
        Some("InsufficientFreeAddressesInSubnet") => CapacityOf::Subnet,
        Some("Unsupported") => CapacityOf::Image,
        Some(_) | None => CapacityOf::Offering,
    }
}

/// The class of a code of the table.
fn classify_code(code: &str, message: &str) -> Option<Class> {
    Some(match code {
        // Server errors by name: it may have been carried out, whatever the status.
        "InternalError" | "InternalFailure" | "Unavailable" | "ServiceUnavailable" | "RequestTimeout" => {
            Class::InDoubt
        }

        "RequestLimitExceeded" | "EC2ThrottledException" | "SnapshotCreationPerVolumeRateExceeded" => {
            Class::Throttled
        }

        "InsufficientInstanceCapacity"
        | "InsufficientHostCapacity"
        | "UnfulfillableCapacity"
        | "Unsupported"
        | "InsufficientFreeAddressesInSubnet"
        | "InsufficientVolumeCapacity"
        | "InsufficientCapacityOnOutpost"
        | "VolumeTypeNotAvailableInZone"
        | "ReservationCapacityExceeded" => Class::Capacity,

        "UnauthorizedOperation"
        | "AccessDenied"
        | "AccessDeniedException"
        | "AuthFailure"
        | "OptInRequired"
        | "OperationNotPermitted"
        | "Blocked"
        | "ExpiredToken"
        | "RequestExpired"
        | "InvalidClientTokenId"
        | "SignatureDoesNotMatch"
        | "MissingAuthenticationToken" => Class::Forbidden,

        // IAM is eventually consistent towards EC2: a profile is unknown to it for about two minutes after
        // its creation.
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
        | "EncryptedVolumesNotSupported"
        | "InvalidSubnetID.NotFound"
        | "InvalidGroup.NotFound"
        | "InvalidSnapshot.NotFound"
        | "InvalidZone.NotFound"
        | "TagLimitExceeded" => Class::Invalid,

        "IdempotentParameterMismatch" | "IdempotentInstanceTerminated" => Class::Token,

        "IncorrectState"
        | "IncorrectInstanceState"
        | "VolumeInUse"
        | "IncorrectModificationState"
        | "ConcurrentSnapshotLimitExceeded" => Class::State,

        "VolumeModificationRateExceeded" => Class::ModificationBudget,

        _ if quota(code).is_some() => Class::Quota,
        _ if code.starts_with("Throttling") => Class::Throttled,
        // EC2 spells it in two ways.
        _ if code.to_ascii_lowercase().starts_with("invalidkmskey") => Class::Forbidden,
        _ if code.starts_with("InvalidAMIID.") => Class::Invalid,
        _ if code.starts_with("Invalid") && code.ends_with(".Malformed") => Class::Invalid,
        _ if code.starts_with("Invalid") && code.ends_with(".NotFound") => Class::NotFound,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
