//! Counts every attempt on the wire, by call and outcome.

use std::fmt;
use std::sync::Arc;

use aws_sdk_ec2::config::interceptors::FinalizerInterceptorContextRef;
use aws_sdk_ec2::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_ec2::error::BoxError;
use aws_smithy_runtime_api::client::orchestrator::Metadata;

use crate::cloud::error::{Class, classify, is_accepted_dry_run};
use crate::metrics::Metrics;

/// Counts, retries included: what EC2's rate limits see.
pub(super) struct Counted(pub Arc<Metrics>);

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted").finish_non_exhaustive()
    }
}

impl Intercept for Counted {
    fn name(&self) -> &'static str {
        "Counted"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let action = config.load::<Metadata>().map_or("unknown", Metadata::name);
        let status = context.response().map(aws_smithy_runtime_api::http::Response::status);
        let body = context.response().and_then(|response| response.body().bytes()).unwrap_or_default();
        let outcome = match status {
            Some(status) if status.is_success() => "ok",
            Some(_) if is_accepted_dry_run(code(body).as_deref()) => "ok",
            Some(_) if is_throttle(body) => "throttled",
            Some(status) if status.is_client_error() => "refused",
            Some(_) => "failed",
            None => "no_answer",
        };
        self.0.ec2_call(action.to_owned(), outcome);
        Ok(())
    }
}

/// EC2 reports a throttle with a status of its own for some calls, and as a server error for others: the code
/// in the answer decides.
fn is_throttle(body: &[u8]) -> bool {
    classify(code(body).as_deref(), "", None) == Class::Throttled
}

/// The code in the answer.
fn code(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let (_, rest) = text.split_once("<Code>")?;
    rest.split_once("</Code>").map(|(code, _)| code.to_owned())
}
