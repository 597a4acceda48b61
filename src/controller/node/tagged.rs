//! What carries a Node's tags in EC2, and whether the operator may take them off: read before anything is
//! released. Only reads; a dry run changes nothing.

use std::collections::BTreeMap;

use kube::ResourceExt;

use super::observe::Observed;
use crate::api::keys::NODE_UID_TAG;
use crate::cloud::call::Call;
use crate::cloud::{Class, CloudError};
use crate::controller::call_blocked::CallBlocked;
use crate::controller::pass::call_blocked::call_blocked;
use crate::controller::pass::context::Context;

/// What EC2 answers, or why it does not; nothing while the rate limit does not allow the call. That the
/// operator's role lacks a permission is for a person to know, and not an error of the pass.
type Answer<T> = Result<Option<Result<T, Box<CallBlocked>>>, CloudError>;

/// What carries the tags of the Node: all that a launch has tagged, or the adopted instance alone. Before the
/// Node is deleted, EC2 is requested whether `tags` may be taken off.
pub async fn read(
    observed: &Observed,
    tags: &BTreeMap<String, String>,
    ctx: &Context,
) -> Answer<Vec<String>> {
    let uid = observed.node.uid().unwrap_or_default();
    let found = if let Some(adopted) = &observed.node.spec.instance_id {
        Some(Ok(vec![adopted.0.clone()]))
    } else {
        let tagged = ctx.cloud.describe_tagged(NODE_UID_TAG, &uid);
        permitted(Call::DescribeTags, tagged, observed, ctx).await?
    };
    let Some(Ok(resources)) = &found else { return Ok(found) };
    if resources.is_empty() || observed.node.metadata.deletion_timestamp.is_some() {
        return Ok(found);
    }
    let checked = ctx.cloud.check_untag(resources, tags);
    Ok(match permitted(Call::DeleteTags, checked, observed, ctx).await? {
        Some(Ok(())) => found,
        Some(Err(call_blocked)) => Some(Err(call_blocked)),
        None => None,
    })
}

/// Makes a call if the rate limit allows it.
async fn permitted<T>(
    call: Call,
    answer: impl Future<Output = Result<T, CloudError>>,
    observed: &Observed,
    ctx: &Context,
) -> Answer<T> {
    if ctx.try_take(call, &observed.node, observed.priority).is_err() {
        return Ok(None);
    }
    match answer.await {
        Ok(answer) => Ok(Some(Ok(answer))),
        Err(error) if error.class == Class::Forbidden => {
            Ok(Some(Err(Box::new(call_blocked(call, &error, ctx)))))
        }
        Err(error) => Err(error),
    }
}
