//! The sentences of a Database that is to begin with the data of a backup. Pure.

use crate::controller::database::wait::RestoreWait;
use crate::controller::messages::FIRST_SYNC;

impl RestoreWait {
    pub(super) fn message(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.message(),
            Self::Incomplete(name) => {
                format!("{name} is not complete yet; nothing is created before it is")
            }
            Self::FirstSync => FIRST_SYNC.to_owned(),
            Self::Recording(id) => format!("recording that snapshot {id} is restored"),
        }
    }
}
