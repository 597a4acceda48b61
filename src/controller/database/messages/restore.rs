//! The sentences of a Database that is to begin, or to go on, with the data of a backup. Pure.

use crate::controller::database::wait::RestoreWait;
use crate::controller::messages::FIRST_SYNC;

/// Why a restore in place that its user has taken back is not completed.
pub const TAKEN_BACK: &str = "spec.restoreInPlace was removed before the engine accepted connections";

impl RestoreWait {
    pub(super) fn message(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.message(),
            Self::Incomplete(name) => {
                format!("{name} is not complete yet; nothing is created before it is")
            }
            Self::FirstSync => FIRST_SYNC.to_owned(),
            Self::Recording(id) => format!("recording that snapshot {id} is restored"),
            Self::RefusedInPlace(refusal) => format!(
                "{}: nothing was replaced. Name another backup in spec.restoreInPlace with a higher generation, \
                or remove it",
                refusal.why()
            ),
            Self::NoStorage(lacking) => format!(
                "limits.totalStorage of the NodeClass leaves {lacking} GiB too few for the volume of the backup \
                beside the one that is retained: nothing was replaced. Delete volumes that are retained and \
                not needed any more, or have the platform team raise the limit"
            ),
            Self::Paused => "spec.restoreInPlace is carried out once spec.running is true".to_owned(),
            Self::Replacing { volume, message: None } => {
                format!("Volume {volume} is being replaced; its EBS volume is retained")
            }
            Self::Replacing { volume, message: Some(message) } => {
                format!("Volume {volume} is being replaced; its EBS volume is retained: {message}")
            }
            Self::GoingBack(why) => format!("the database goes back to the data that it had: {why}"),
            Self::NoWayBack(record) => format!(
                "PersistentVolume {record}, the retention record of the data that the database had, is gone or \
                is used by another Database, so the database cannot go back to that data: delete this \
                Database and create it with spec.storage.adoptRetained or spec.restore"
            ),
            Self::WentBack(at, why) => format!(
                "the database went back to the data that it had at {at}: {why}. The volume with the data of the \
                backup is retained. Raise spec.restoreInPlace.generation to restore again, or remove \
                spec.restoreInPlace"
            ),
        }
    }
}
