//! The part of the act step that changes the engine behind a backup.

use super::apply::created;
use super::history;
use super::messages::{events as notes, upgrade};
use super::written::{of_namespace, report, tell_going_back, write_down};
use crate::api::database::{Occurrence, Upgrade};
use crate::api::{Backup, Database, DatabaseStatus, EventReason};
use crate::cluster::events::Events;
use crate::controller::pass::acted::{ActError, Acted};
use crate::controller::pass::context::Context;

/// Creates a Backup, of which the answer to an earlier call may have been lost.
pub(super) async fn create_backup(backup: &Backup, ctx: &Context) -> Result<(), kube::Error> {
    match of_namespace(backup, ctx).create(&created(), backup).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        answer => answer.map(drop),
    }
}

/// How far a change of the engine is. What ends the engine's run is in the history before that.
pub(super) async fn record_upgrade(
    record: &Upgrade,
    acted: &mut Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    let now = ctx.clock.now();
    let write = |status: &mut DatabaseStatus, cause: Option<String>| {
        status.upgrade = Some(Box::new(record.clone()));
        let restarted = cause.map(|cause| (Occurrence::Restarted, cause));
        status.history = history::extended(&status.history, restarted.as_ref(), now);
    };
    if let Some(back) = &record.went_back {
        let write = |status: &mut DatabaseStatus| write(status, Some(notes::goes_back(&back.message)));
        return tell_going_back(write, &back.message, acted, ctx, events).await;
    }
    let begun = record.snapshot_id.is_none().then(|| upgrade::begun(record));
    write_down(acted, ctx, |status| write(status, begun.clone())).await?;
    if let Some(note) = begun {
        report(EventReason::UpgradeBegun, note, acted, events).await;
    }
    Ok(())
}
