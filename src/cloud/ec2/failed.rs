//! What an answer of EC2's means that is no success: an error, or the acceptance of a dry run.

use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_ec2::operation::RequestId;

use super::whole::incomplete;
use crate::cloud::call::Call;
use crate::cloud::{Class, CloudError};
use crate::error_chain::Chain;

/// Classifies an error of the SDK.
pub(super) fn failed<E>(call: Call, error: &SdkError<E>) -> CloudError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let status = error.raw_response().map(|response| response.status().as_u16());
    let request_id = error.request_id().map(str::to_owned);
    let (code, message) = (error.code().map(str::to_owned), error.message().map(str::to_owned));
    // Without a message from EC2, the causes describe the failure of the transport.
    let message = message.unwrap_or_else(|| Chain(error).to_string());
    let failed = CloudError::new(call.as_str(), code.as_deref(), &message, status, request_id.as_deref());
    if failed.class == Class::Forbidden {
        // Here alone with the ARNs and the encoded details that a person needs who mends the policy.
        tracing::warn!(
            call = call.as_str(),
            code = code.as_deref(),
            answer = message,
            request_id = request_id.as_deref(),
            "EC2 does not allow the call"
        );
    }
    failed
}

/// What the answer to a dry run says: EC2 accepts one by an error.
pub(super) fn accepted<T, E>(call: Call, answer: Result<T, SdkError<E>>) -> Result<(), CloudError>
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    match answer {
        Ok(_) => Err(incomplete(call, "answer to a dry run")),
        Err(error) => match failed(call, &error) {
            accepted if accepted.is_accepted_dry_run() => Ok(()),
            refused => Err(refused),
        },
    }
}
