//! The sentences of a pod that is replaced.

use super::*;

pub(super) fn waits() -> [DatabaseWait; 8] {
    let image = || t("questdb/questdb:9.3.5");
    let steps = [
        RestartStep::Pulling { image: image() },
        RestartStep::NotPulled { image: image(), said: Some(t("ErrImagePull: not found")) },
        RestartStep::NotPulled { image: image(), said: None },
        RestartStep::ApplyingTemplate,
        RestartStep::Stopping,
        RestartStep::Deleting(RestartCause::Settings),
        RestartStep::NoRoom(NoRoom { resource: t("cpu"), allocatable: t("2") }),
        RestartStep::Blocked(Blocker::ChangeNotSeen(t("orders"))),
    ];
    steps.map(|step| DatabaseWait::RestartPending { pod: t("orders-0"), step })
}
