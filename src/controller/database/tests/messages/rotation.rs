//! The sentences of a rotation of the password.

use super::*;
use crate::controller::database::messages::rotation;

pub(super) fn waits() -> impl Iterator<Item = DatabaseWait> {
    let refusals = complete([
        RotationRefusal::Adopted,
        RotationRefusal::CustomEngine,
        RotationRefusal::Immutable(t("orders-admin")),
    ]);
    let steps =
        [RotationWait::Preparing, RotationWait::Stopping, RotationWait::Giving, RotationWait::Postponed];
    let all = refusals.into_iter().map(RotationWait::Refused).chain(steps);
    complete(all).into_iter().map(DatabaseWait::Rotation)
}

/// What the event and the condition say.
pub(super) fn sentences() -> [(&'static str, String); 4] {
    [
        ("events::password_rotated", events::password_rotated("orders-admin", 2)),
        ("rotation::in_force", rotation::in_force(2)),
        ("rotation::awaited", rotation::awaited(2, 1, "WHAT IS AWAITED")),
        ("rotation::UNKNOWN", rotation::UNKNOWN.to_owned()),
    ]
}
