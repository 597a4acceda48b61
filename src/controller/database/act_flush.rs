//! The part of the act step that has an engine write what it has in memory to its volume, before it is
//! stopped.

use std::sync::Arc;

use kube::ResourceExt;
use tokio::time::timeout;

use super::plan::action::Flush;
use super::plan::flush::LIMIT;
use crate::api::Database;
use crate::controller::pass::acted::ActError;
use crate::controller::pass::context::Context;

/// Begins it in the background. Whatever comes of it, the stop follows.
pub(super) fn begin(flush: &Flush, database: &Database, ctx: &Context) -> Result<(), ActError> {
    ctx.term.check()?;
    let (engines, clock) = (Arc::clone(&ctx.engines), Arc::clone(&ctx.clock));
    let (name, namespace) = (database.name_any(), database.namespace().unwrap_or_default());
    let Flush { pod_uid, access, statement } = flush.clone();
    ctx.flushes.begin(&pod_uid, ctx.clock.now(), async move {
        let why = match timeout(LIMIT, engines.flush(&access, statement, LIMIT)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("it did not end within {} s", LIMIT.as_secs())),
        };
        match why {
            None => tracing::info!(name, namespace, statement, "carried out before a planned stop"),
            Some(why) => tracing::warn!(name, namespace, statement, why, "stopped without it"),
        }
        clock.now()
    });
    Ok(())
}
