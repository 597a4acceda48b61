//! The last step of a pass of the NodeClass controller: what this process remembers of a NodeClass until its
//! next pass. What a restart costs: `controller/memory`.

use kube::ResourceExt;

use super::observe::Observed;
use crate::controller::pass::context::Context;

/// A dry run that was sent is not due again at once.
pub(super) fn remember(observed: &Observed, ctx: &Context) {
    let class = &observed.class;
    if let Some(at) = observed.launch_check.sent_at {
        ctx.launch_checks.note(&class.uid().unwrap_or_default(), class.metadata.generation, at);
    }
}

/// The NodeClass is gone.
pub(super) fn forget(uid: &str, ctx: &Context) {
    ctx.limits.forget(uid);
    ctx.launch_checks.forget(uid);
}
