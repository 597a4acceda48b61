//! The answer to a dry run.

use crate::Refusal;

pub(super) fn refuse_dry_run(dry_run: bool) -> Result<(), Refusal> {
    if dry_run { Err(Refusal::dry_run()) } else { Ok(()) }
}
