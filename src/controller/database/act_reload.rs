//! The part of the act step that has an engine load other settings, and records that it has.

use super::messages::reload as sentences;
use super::plan::action::Load;
use super::written::{report, write_down};
use crate::api::{Database, EventReason};
use crate::cluster::events::Events;
use crate::controller::pass::acted::{ActError, Acted};
use crate::controller::pass::context::Context;

/// Has the engine load its file, and writes down that it runs with it, once it does. What it may have loaded
/// without that was written down before the file was.
pub(super) async fn reload_settings(
    load: &Load,
    acted: &mut Acted<Database>,
    ctx: &Context,
    events: &Events,
) -> Result<(), ActError> {
    ctx.term.check()?;
    let answer = ctx.engines.reload_settings(&load.access, &load.change, &load.file).await;
    let is_loaded = matches!(answer, Ok(true));
    if let Some(record) = if is_loaded { Some(&load.record) } else { load.otherwise.as_ref() } {
        write_down(acted, ctx, |status| status.config = Some(record.clone())).await?;
    }
    if is_loaded {
        let note = sentences::taken(load.change.keys());
        report(EventReason::ConfigReloaded, note, acted, events).await;
    }
    answer?;
    Ok(())
}
