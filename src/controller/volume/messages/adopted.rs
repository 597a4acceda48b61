//! The sentences of an EBS volume that is adopted in place. Pure.

use crate::api::keys;
use crate::controller::volume::wait::adopted::{AdoptedRefusal, AdoptedWait};

impl AdoptedWait {
    pub(super) fn message(&self) -> String {
        match self {
            Self::Reading(id) => {
                format!("reading EBS volume {id} from EC2 before it is adopted or released")
            }
            Self::Refused(id, cause) => format!("EBS volume {id} cannot be adopted: {}", cause.message()),
            Self::Unbound(id, cause) => {
                format!("EBS volume {id} is adopted and cannot be used: {}", cause.message())
            }
            Self::Recording(name) => format!(
                "changing PersistentVolume {name}: reclaim policy Retain, and the labels of this Volume"
            ),
            Self::Owning(claim) => format!("making this Volume an owner of PersistentVolumeClaim {claim}"),
            Self::Disowning(claim) => {
                format!("removing this Volume from the owners of PersistentVolumeClaim {claim}")
            }
            Self::GivingBack(id) => format!(
                "EBS volume {id} is being released: what Freehold has put on its claim, its PersistentVolume \
                and itself is removed"
            ),
            Self::GivenBack(id) => {
                format!("EBS volume {id}, its PersistentVolume and its claim are released and stay")
            }
        }
    }
}

impl AdoptedRefusal {
    fn message(&self) -> String {
        match self {
            Self::NotTagged(value) => format!(
                "EC2 shows no EBS volume of this id with the tag {}={value}: put the tag on it, or correct \
                spec.adopt.volumeID",
                keys::ADOPT_TAG
            ),
            Self::OtherCluster(cluster) => format!(
                "it carries the tag {}={cluster} of another cluster: release it there, or remove the tag",
                keys::CLUSTER_ID_TAG
            ),
            Self::OtherVolume(uid) => format!(
                "it carries the tag {}={uid} of another Volume: release that Volume, or remove the tag if it \
                is gone",
                keys::VOLUME_UID_TAG
            ),
            Self::Zone { zone, wanted } => format!("it is in {zone}, not in {wanted}: correct spec.zone"),
            Self::MultiAttach => "it can be attached to several instances at once (Multi-Attach): disable \
                Multi-Attach"
                .to_owned(),
            Self::EndsWithInstance { instance, device } => format!(
                "EC2 deletes it when instance {instance} is terminated (DeleteOnTermination): aws ec2 \
                 modify-instance-attribute --instance-id {instance} --block-device-mappings \
                 '[{{\"DeviceName\":\"{device}\",\"Ebs\":{{\"DeleteOnTermination\":false}}}}]'"
            ),
            Self::State(state) => {
                format!("EC2 shows it in the state {state:?}: it must be available or in use")
            }
            Self::Larger(size) => {
                format!("it has {size} GiB, and EBS volumes only grow: set spec.size to {size} GiB or more")
            }
            Self::NoPersistentVolume(name) => format!(
                "no PersistentVolume {name} names it: correct spec.adopt.persistentVolumeName, or create the \
                PersistentVolume"
            ),
            Self::PersistentVolumeDeleted(name) => format!(
                "PersistentVolume {name} is being deleted: nothing undoes that; once it is gone, create it and \
                its claim again"
            ),
            Self::OtherRecord { persistent_volume, uid } => format!(
                "PersistentVolume {persistent_volume} belongs to another Volume ({}={uid}): release that \
                Volume, or remove the label if it is gone",
                keys::VOLUME_UID_LABEL
            ),
            Self::NotBound { persistent_volume, claim } => format!(
                "PersistentVolume {persistent_volume} and PersistentVolumeClaim {claim} of this namespace are \
                not bound to each other: correct spec.adopt.claimName, or bind them"
            ),
            Self::ClaimDeleted(claim) => format!(
                "PersistentVolumeClaim {claim} is being deleted: nothing undoes that; once it is gone, create \
                it again and bind it to the PersistentVolume"
            ),
            Self::FileSystem { has, wanted } => {
                format!(
                    "its PersistentVolume names the file system {has}, not {wanted}: set the file system of the \
                    spec to {has}"
                )
            }
        }
    }
}
