//! Why it is not known how much of a file system is used.

use crate::api::database::Unmeasured;

/// Why it is not known how much is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the status says of it.
    pub unmeasured: Unmeasured,
    /// The answer, or what came instead of one.
    pub why: String,
}

impl Failure {
    /// A kubelet that does not answer, or the way to it.
    pub(super) fn unreachable(why: String) -> Self {
        Self { unmeasured: Unmeasured::Unreachable, why }
    }
}
