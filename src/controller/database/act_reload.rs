//! The part of the act step that has an engine load other settings, and records what came of it.

use super::config_record::{self, Load};
use super::messages::reload as sentences;
use super::written::{report, write_down};
use crate::api::database::ConfigStatus;
use crate::api::{Database, EventReason};
use crate::cluster::events::{Events, Happened};
use crate::controller::pass::acted::{ActError, Acted};
use crate::controller::pass::context::Context;

/// Has the engine load its file. What it may run with from then on is written down before, and that it does
/// so once it does: an operator that finds the first without the second has it load what the spec says then.
pub(super) async fn reload_settings(
    load: &Load,
    acted: &mut Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    let now = ctx.clock.now();
    write_down(acted, ctx, |status| {
        let before = status.config.as_ref();
        status.config = Some(config_record::loading(before, &load.pod.pod_uid, &load.change, now));
    })
    .await?;
    ctx.term.check()?;
    if !ctx.engines.reload(&load.access, &load.change).await? {
        return Ok(());
    }
    write_down(acted, ctx, |status| {
        status.config = Some(config_record::taken(status.config.as_ref(), load, now));
    })
    .await?;
    let note = sentences::taken(&load.change.keys, &load.answer.overridden);
    report(EventReason::ConfigReloaded, note, acted, events).await;
    Ok(())
}

/// Writes down that the engine rejects settings: from then on those in force are carried out.
pub(super) async fn reject_settings(
    record: &ConfigStatus,
    acted: &mut Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    write_down(acted, ctx, |status| status.config = Some(record.clone())).await?;
    let note = sentences::rejected(&record.rejected);
    events.publish(&acted.object, &Happened::warning(EventReason::ConfigRejected, note)).await;
    Ok(())
}
