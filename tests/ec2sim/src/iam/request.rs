//! An authorisation request: one action on one resource, with what the request says of itself. A call is made
//! of one or more of them.

use super::context::Context;

/// One action on one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Such as `ec2:RunInstances`.
    pub(crate) action: String,

    /// An ARN; `*` for an action without resource-level permissions.
    pub(crate) resource: String,

    pub(crate) context: Context,

    pub(crate) if_denied: IfDenied,
}

/// What comes of a denial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IfDenied {
    /// The call is refused.
    CallRefused,

    /// The volume of this id can't be attached.
    NotAttached(String),

    /// The call is answered as if nothing were wrong: EC2 calls KMS after its answer.
    FailsLater,
}
