//! Writes down how far a change of the engine is. Pure.

use crate::api::database::Upgrade;
use crate::controller::database::observe::Observed;
use crate::controller::database::plan::action::{Action, Plan};
use crate::controller::database::wait::{DatabaseWait, UpgradeWait};

/// Writes this down.
pub(super) fn recording(observed: &Observed, record: Upgrade) -> Plan {
    let actions = vec![Action::RecordUpgrade(Box::new(record))];
    Plan::act(actions, DatabaseWait::Upgrade(UpgradeWait::Recording))
        .requeue(observed.timing.requeue_interval)
}
