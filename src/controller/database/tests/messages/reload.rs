//! The sentences of settings that an engine takes while it runs, or rejects.

use super::*;
use crate::controller::database::messages::reload;
use crate::engine::reload::rejected;

pub(super) fn waits() -> impl Iterator<Item = DatabaseWait> {
    let settings = vec![rejected("work_mem", "lots", "WHY"), rejected("wal_level", "all", "WHY")];
    let all = complete([
        ReloadWait::Asking,
        ReloadWait::Unanswered(t("WHY")),
        ReloadWait::FileAwaited,
        ReloadWait::Loading,
        ReloadWait::Rejected(settings),
    ]);
    all.into_iter().map(DatabaseWait::Reload)
}

/// What the events say, and the status of a setting that the engine says nothing of.
pub(super) fn sentences() -> [(&'static str, String); 3] {
    let keys = [t("wal_level"), t("work_mem")];
    [
        ("reload::taken", reload::taken(&keys, &[])),
        ("reload::taken", reload::taken(&keys, &[t("work_mem")])),
        ("reload::NOT_TAKEN", t(reload::NOT_TAKEN)),
    ]
}
