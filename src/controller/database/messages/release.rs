//! The sentences of a database that is released. Pure.

use super::causes::or_unknown;
use crate::controller::database::unreleasable::Unreleasable;

/// The StatefulSet and the other objects are being released.
pub fn releasing(set: &str, as_found: bool) -> String {
    if as_found {
        format!("StatefulSet {set} becomes what it was before it was adopted, and its pod goes on running")
    } else {
        format!("StatefulSet {set} and the other objects of the database are being released as they run now")
    }
}

/// The Volume releases what it has.
pub fn releasing_volume(volume: &str) -> String {
    format!("Volume {volume} is releasing its EBS volume and its claim")
}

/// The StatefulSet was released.
pub fn released(set: &str, as_found: bool) -> String {
    if as_found {
        format!("StatefulSet {set} is what it was before it was adopted; its pod goes on running")
    } else {
        format!("StatefulSet {set} is released; its pod goes on running")
    }
}

impl Unreleasable {
    /// Why, what happens until then, and the way out.
    pub fn message(&self) -> String {
        let cause = match self {
            Self::Paused => {
                return "the Database was deleted to be released, and is paused: nothing runs that could go \
                    on without Freehold. Set spec.release to false, and the deletion follows \
                    spec.deletionPolicy (Retain keeps the volume); or set spec.running to true, and the \
                    database is released once it runs"
                    .to_owned();
            }
            Self::NoMachine => "it has no machine yet".to_owned(),
            Self::Moving { from, to } => {
                format!("Node {from} and Node {to} are both there, since one takes the place of the other")
            }
            Self::NotReady { object, message } => {
                format!("{} is not ready: {}", object.describe(), or_unknown(message.as_deref()))
            }
            Self::ClaimDeleted(claim) => format!(
                "claim {claim} is being deleted, and is gone as soon as its pod ends. Set spec.running to \
                 false, and to true again once the database is paused: the claim is created again meanwhile, \
                 for the same EBS volume"
            ),
            Self::Rotating => "its password is being rotated, and the engine may have the next one already, \
                which the Secret has as next-password"
                .to_owned(),
            Self::Closed => "its Service keeps clients out, since it may go back to the data that it had \
                (status.upgrade, status.restoredInPlace)"
                .to_owned(),
            Self::NoPod(pod) => format!("pod {pod} does not run on the machine of this Database"),
        };
        format!(
            "the Database was deleted to be released, and goes on as it is until it can be: {cause}. To delete \
             it instead, set spec.release to false; spec.deletionPolicy says what becomes of the volume"
        )
    }
}
