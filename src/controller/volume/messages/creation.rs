//! The sentences of a Volume that has no EBS volume yet. Pure.

use super::list;
use crate::api::{VolumeId, keys};
use crate::controller::creation::messages::in_doubt;
use crate::controller::messages::{answer, quota_reached};
use crate::controller::volume::wait::creation::{AdoptionRefusal, AdoptionWait, CreationWait, Found};

impl CreationWait {
    pub(super) fn message(&self) -> String {
        match self {
            Self::Recording(id, found) => format!("{}; recording its id", found.message(id)),
            Self::Several(ids) => format!(
                "several EBS volumes carry this Volume's tags ({}): set status.volumeID to the one with the \
                data, or remove the tag {} from the others",
                list(ids),
                keys::VOLUME_UID_TAG
            ),
            Self::Quota(quota) => quota_reached(quota, &[]),
            Self::Throttled => "EC2 throttled the call and created nothing; retrying with the same client \
                token"
                .to_owned(),
            Self::Resending(attempt) => {
                format!(
                    "creation attempt {attempt} is unconfirmed (no response); retrying with the same client \
                    token"
                )
            }
            Self::InDoubt { attempt, doubt } => {
                format!(
                    "creation attempt {attempt} is unconfirmed (it may have created an EBS volume): {}",
                    in_doubt(*doubt)
                )
            }
            Self::Forbidden(refusal) => format!(
                "EC2 refused to create the EBS volume for lack of permission: {}; grant the permission. \
                Freehold retries by itself",
                answer(refusal)
            ),
            Self::NoCapacity(refusal) => {
                format!(
                    "EC2 has no capacity for the EBS volume: {}; Freehold retries by itself. The zone is \
                    decided, and nothing is stored yet: request another spec.storage.type, or delete the \
                    Database and create it again with another zone in spec.zones",
                    answer(refusal)
                )
            }
            Self::Invalid(refusal) => {
                format!(
                    "EC2 refused to create the EBS volume as invalid: {}; change spec.storage of the \
                    Database",
                    answer(refusal)
                )
            }
            Self::Requesting { volume_type, size, zone } => {
                format!("requesting an EBS volume of {size} GiB {volume_type} in {zone}")
            }
            Self::Creating(id) => format!("EC2 is creating EBS volume {id}"),
            Self::NotListed(id) => format!("EC2 does not list the new EBS volume {id} yet"),
        }
    }
}

impl Found {
    /// Where this EBS volume was found.
    pub(super) fn message(self, id: &VolumeId) -> String {
        match self {
            Self::ByAttempt => format!("EBS volume {id} was created by this Volume's attempt"),
            Self::ByTags => format!("EBS volume {id} has this Volume's tags"),
            Self::ByPersistentVolume => format!("EBS volume {id} is named by this Volume's PersistentVolume"),
        }
    }
}

impl AdoptionWait {
    pub(super) fn message(&self) -> String {
        match self {
            Self::NotListed { id, record } => {
                format!(
                    "EC2 does not list EBS volume {id} with the tags of PersistentVolume {record}; still \
                    searching"
                )
            }
            Self::Refused { record, cause } => {
                format!(
                    "the volume that PersistentVolume {record} records cannot be adopted: {}",
                    cause.message()
                )
            }
            Self::NotAvailable { id, state } => {
                format!(
                    "EBS volume {id} is not available yet ({state:?}): it is adopted once it is detached \
                    from every machine"
                )
            }
            Self::Adopting(id) => format!("adopting EBS volume {id}"),
            Self::Tagging(id) => format!("tagging the adopted EBS volume {id} with this Volume's tags"),
            Self::TagsNotShown(id) => {
                format!("EC2 does not show the new tags of the adopted EBS volume {id} yet")
            }
            Self::ClosingRecord(id) => {
                format!("EBS volume {id} is adopted; deleting its former retention record")
            }
        }
    }
}

impl AdoptionRefusal {
    fn message(&self) -> String {
        match self {
            Self::NoRecord { namespace } => {
                format!("the PersistentVolume is not a retention record of namespace {namespace}")
            }
            Self::NotHeld => "the retention record is not held by this Volume's Database".to_owned(),
            Self::FileSystem(wanted) => format!("its file system is not {wanted}"),
            Self::Tag(id) => {
                format!("EBS volume {id} does not carry the tag {} of this namespace", keys::DATABASE_TAG)
            }
            Self::Zone { id, zone, wanted } => {
                format!("EBS volume {id} is in {zone}, not in {wanted}")
            }
            Self::Larger { id, size } => {
                format!(
                    "EBS volume {id} has {size} GiB, and EBS volumes only grow: ask for {size} GiB or \
                    more"
                )
            }
        }
    }
}
