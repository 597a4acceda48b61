//! The last step of a pass of the Backup controller: what this process remembers of a Backup until its next
//! pass, and what it forgets of one that is gone. What a restart costs: `controller/memory`.

use kube::ResourceExt;

use super::observe::Observed;
use super::plan::action::Plan;
use super::wait::BackupWait;
use crate::api::Backup;
use crate::api::ConditionType::SnapshotMissing;
use crate::cloud::identity::Kind;
use crate::cloud::inventory::{Awaited, Interest};
use crate::controller::conditions;
use crate::controller::creation::judge::last_possible_send;
use crate::controller::pass::acted::Acted;
use crate::controller::pass::context::Context;

/// What a pass has planned and done, as far as later passes need it.
pub(super) fn remember(observed: &Observed, plan: &Plan, acted: &Acted<Backup>, ctx: &Context) {
    let backup = &acted.object;
    let uid = backup.uid().unwrap_or_default();
    ctx.references.remember(&uid, &backup.namespace().unwrap_or_default(), &backup.name_any());
    let status = backup.status.clone().unwrap_or_default();
    let attempt = status.creation.as_ref().map(|creation| &creation.attempt);
    let last_send = attempt
        .filter(|attempt| attempt.refused.is_none() || status.snapshot_id.is_some())
        .map(|attempt| last_possible_send(Some(attempt), None, ctx.leading_since))
        .or_else(|| status.snapshot_id.as_ref().map(|_| ctx.leading_since));
    let awaited = Awaited { token: None, last_possible_send: last_send, modifying: None };
    let interest = match &plan.waiting {
        _ if !plan.is_pending => Interest::Settled,
        Some(wait) if !wait.takes_long() => Interest::Pending(awaited),
        // A complete Backup whose snapshot is missed, or what EC2 takes hours for.
        Some(_) | None => Interest::Slow(awaited),
    };
    ctx.inventory.set_interest(Kind::Backup, &uid, interest);
    // What EC2 will not show says nothing about how much of what is ours its answers show.
    let is_missing = plan.is_missing || conditions::is_true(backup.conditions(), SnapshotMissing);
    let is_to_be_shown = status.deleted_at.is_none() && status.failure.is_none() && !is_missing;
    let named = status.snapshot_id.as_ref().filter(|_| is_to_be_shown);
    ctx.inventory.set_named(Kind::Backup, &uid, named.map(|id| id.0.as_str()));
    if let Some(gone) = &observed.ended_turn {
        ctx.backup_turns.end(gone);
    }
    if ends_turn(backup, plan) {
        ctx.backup_turns.end(&uid);
    }
}

/// Whether another Backup of the Database may begin: this one has come to its end, or lets that one go first
/// since its checkpoint was released in vain.
pub(super) fn ends_turn(backup: &Backup, plan: &Plan) -> bool {
    backup.is_over() || plan.verdict.is_some() || matches!(plan.waiting, Some(BackupWait::Other(_)))
}

/// The Backup is gone.
pub(super) fn forget(backup: &Backup, ctx: &Context) {
    let uid = backup.uid().unwrap_or_default();
    let recorded = backup.status.as_ref().and_then(|status| status.snapshot_id.clone());
    let shown = ctx.inventory.backups_of(&uid).snapshots.into_iter().map(|snapshot| snapshot.id);
    for id in shown.chain(recorded) {
        ctx.issued.forget(&id.0);
    }
    ctx.inventory.forget(Kind::Backup, &uid);
    ctx.limits.forget(&uid);
    ctx.references.forget(&uid);
    ctx.backup_turns.end(&uid);
}
