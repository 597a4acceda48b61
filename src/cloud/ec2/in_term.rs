//! Lets no call leave whose signature is not from within the term of the operator that leads.

use std::fmt;
use std::sync::Arc;

use aws_sdk_ec2::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_ec2::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_ec2::error::BoxError;

use crate::term::Term;

/// Asks the term after the request was signed: a process that is stopped from then on until another one leads
/// sends a request with an old signature, which AWS refuses 15 minutes after its time (Signature Version 4),
/// and the proof of absence waits for longer than that. Before the signature nothing bounds it: credentials
/// may have to be fetched first.
pub(super) struct InTerm(pub Arc<Term>);

impl fmt::Debug for InTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InTerm").finish_non_exhaustive()
    }
}

impl Intercept for InTerm {
    fn name(&self) -> &'static str {
        "InTerm"
    }

    fn read_before_transmit(
        &self,
        _context: &BeforeTransmitInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        Ok(self.0.check()?)
    }
}
