//! The sentences of settings that an engine takes while it runs, or rejects.

use super::*;
use crate::controller::database::messages::reload;

pub(super) fn waits() -> impl Iterator<Item = DatabaseWait> {
    let all = complete([
        ReloadWait::Asking,
        ReloadWait::Unanswered(t("WHY")),
        ReloadWait::Loading,
        ReloadWait::Rejected(t("invalid value for parameter \"work_mem\": \"lots\"")),
    ]);
    all.into_iter().map(DatabaseWait::Reload)
}

/// What the event says.
pub(super) fn sentences() -> [(&'static str, String); 1] {
    [("reload::taken", reload::taken([t("log_statement"), t("work_mem")].iter()))]
}
