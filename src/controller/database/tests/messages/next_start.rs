//! The sentences for what the next start of an adopted database's pod changes, and for going back.

use super::{DatabaseWait, EngineWait, at, t};
use crate::controller::database::messages::{events, next_start};

pub(super) fn waits() -> [DatabaseWait; 3] {
    let wait = EngineWait::ContainerStarting { pod: t("pg-0") };
    [
        DatabaseWait::WentBack(at(0), t("ErrImagePull: MESSAGE")),
        DatabaseWait::EngineWentBack(at(0), t("ErrImagePull: MESSAGE")),
        DatabaseWait::NotGoingBack { started: t("pg:2"), before: t("pg:1"), wait },
    ]
}

pub(super) fn sentences() -> [(&'static str, String); 5] {
    let fields = [t("spec.nodeSelector"), t("containers[pg].image: pg:1 → pg:2")];
    [
        ("events::goes_back", events::goes_back("ErrImagePull: MESSAGE")),
        ("next_start::at_next_start", next_start::at_next_start("pg-0", &fields)),
        ("next_start::restarts", next_start::restarts("pg-0", &fields)),
        ("next_start::restarts", next_start::restarts("pg-0", &[])),
        ("next_start::same", next_start::same("pg-0")),
    ]
}
