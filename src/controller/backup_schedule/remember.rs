//! The last step of a pass of the BackupSchedule controller: a check whose verification is over is forgotten.
//! What a restart costs: `controller/memory`.

use super::observe::Observed;
use super::plan::action::Plan;
use crate::controller::pass::context::Context;

/// The check of a Database that is gone, or is not this BackupSchedule's any more, is of no use.
pub(super) fn remember(observed: &Observed, plan: &Plan, ctx: &Context) {
    let running = observed.schedule.status.as_ref().and_then(|status| status.verification.as_ref());
    if let Some(uid) = running.and_then(|it| it.database_uid.as_ref()).filter(|_| plan.ends_verification) {
        ctx.checks.forget(uid);
    }
}
