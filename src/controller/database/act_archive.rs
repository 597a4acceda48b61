//! The part of the act step that has an engine archive a first file of its log.

use crate::controller::pass::acted::ActError;
use crate::controller::pass::context::Context;
use crate::engine::client::Access;
use crate::error_chain::Chain;

/// Has the engine end the file that it writes to. The next pass asks what came of it; where it did not, what
/// the engine said stands, and is acted upon again.
pub(super) async fn switch_log(pod_uid: &str, access: &Access, ctx: &Context) -> Result<(), ActError> {
    ctx.term.check()?;
    match ctx.engines.switch_log(access).await {
        Ok(()) => ctx.archivers.put(pod_uid, None),
        Err(error) => {
            let (address, error) = (access.address, Chain(&error));
            tracing::warn!(%address, %error, "no file of the write-ahead log could be ended");
        }
    }
    Ok(())
}
