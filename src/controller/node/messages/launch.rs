//! The sentences of a Node that has no running instance yet, and why an instance is not wanted. Pure.

use super::because;
use crate::controller::creation::messages::in_doubt;
use crate::controller::messages::{answer, quota_reached};
use crate::controller::node::wait::launch::{LaunchWait, Unwanted};
use crate::time::whole_second;

impl LaunchWait {
    pub(super) fn message(&self) -> String {
        match self {
            Self::ClassNotFound(class) => format!(
                "NodeClass {class} does not exist: create it, or name another one in spec.nodeClassName"
            ),
            Self::ClassNotReady { class, faults } => {
                format!("no machine is launched, since NodeClass {class} is not ready: {faults}")
            }
            Self::SharedDevice { class, device } => format!(
                "NodeClass {class} has two disks with the device name {device}: give each disk in its \
                spec.rootVolume and spec.additionalVolumes its own"
            ),
            Self::NoSubnet { class, zones } => {
                format!(
                    "NodeClass {class} has no subnet in the zone {}: add one to its spec.subnets",
                    zones.join(", ")
                )
            }
            Self::SubnetElsewhere { class, subnet, declared, zone } => {
                format!(
                    "NodeClass {class} names subnet {subnet} in {declared}, and EC2 launched a machine of it in \
                     {zone}: correct its spec.subnets"
                )
            }
            Self::NoAllowedType { class, wanted, allowed } => {
                format!(
                    "NodeClass {class} allows none of the instance types {}; it allows {}",
                    wanted.join(", "),
                    allowed.join(", ")
                )
            }
            Self::NoCapacity { refused, until } => {
                let refused: Vec<String> = refused
                    .iter()
                    .map(|(instance_type, zone)| format!("{instance_type} in {zone}"))
                    .collect();
                let until = whole_second(*until);
                format!(
                    "EC2 has no capacity for {}; the first of them is requested again at {until}",
                    refused.join(", ")
                )
            }
            Self::NoCapacityFor(id, why) => {
                format!(
                    "EC2 had no capacity for instance {id}{}; the next type or zone is requested",
                    because(why.as_deref())
                )
            }
            Self::Quota(quota, types) => quota_reached(quota, types),
            Self::Requested { instance_type, zone } => {
                format!("requesting an instance of type {instance_type} in {zone}")
            }
            Self::Adopted(id) => format!("instance {id} has this Node's tags; adopting it"),
            Self::AdoptedLater(id) => {
                format!("instance {id} is of a later launch attempt than the status records; adopting it")
            }
            Self::Found(id) => format!("instance {id} was launched by this attempt; recording it"),
            Self::NotListed(id) => format!("EC2 does not list instance {id} yet"),
            Self::Starting(id) => format!("instance {id} is starting"),
            Self::UnknownState(id) => {
                format!("EC2 reports instance {id} in a state that this version of Freehold does not know")
            }
            Self::Unwanted(id, unwanted) => {
                format!(
                    "instance {id} is terminated before it joined the cluster, since {}",
                    unwanted.message()
                )
            }
            Self::Resent(attempt) => {
                format!(
                    "launch attempt {attempt} is unconfirmed (no response); retrying with the same client \
                    token"
                )
            }
            Self::Throttled => "EC2 throttled the launch and created nothing; retrying with the same client \
                token"
                .to_owned(),
            Self::StatusLost => "the status of this Node was lost (another client cleared it, or it was not \
                restored): EC2 is searched until it is proven that no instance was launched before"
                .to_owned(),
            Self::InDoubt(attempt, doubt) => {
                format!(
                    "it is not known whether EC2 carried out launch attempt {attempt}: {}",
                    in_doubt(*doubt)
                )
            }
            Self::Forbidden(refusal) => {
                format!("EC2 refuses the launch: {}; the launch is retried automatically", answer(refusal))
            }
            Self::Invalid { refusal, class } => {
                format!(
                    "EC2 refuses the launch as invalid: {}; change NodeClass {class} or the spec. The launch is \
                    retried slowly",
                    answer(refusal)
                )
            }
        }
    }
}

impl Unwanted {
    /// Why, as the end of a sentence about the instance.
    pub fn message(&self) -> String {
        match self {
            Self::Type(instance_type) => format!("its type {instance_type} is no longer in instanceTypes"),
            Self::Zone { instance, volume } => format!("it is in {instance} and the volume is in {volume}"),
        }
    }
}
