//! The sentences of a rotation of the administrator's password. Pure.

use crate::controller::database::wait::{RotationRefusal, RotationWait};

/// The condition PasswordRotated is true.
pub fn in_force(generation: i64) -> String {
    format!("password generation {generation} is in force, and in the Secret")
}

/// The condition PasswordRotated is false.
pub fn awaited(wanted: i64, in_force: i64, hindrance: &str) -> String {
    format!("password generation {wanted} is requested, and {in_force} is in force: {hindrance}")
}

/// It is not known which password is in force.
pub const UNKNOWN: &str = "the Secret of the credentials is not read, so its password is not known";

impl RotationWait {
    pub(super) fn message(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.message(),
            Self::Preparing => "the next password is being generated".to_owned(),
            Self::Stopping => {
                "the engine is being restarted with the next password, which it reads at its start only"
                    .to_owned()
            }
            Self::Giving => "the engine is being given the next password, and goes on serving".to_owned(),
            Self::Postponed => {
                "the password is rotated once the pod has an address, no machine is being replaced, and \
                 nothing that was changed outside Freehold is to be restored"
                    .to_owned()
            }
        }
    }
}

impl RotationRefusal {
    fn message(&self) -> String {
        match self {
            Self::Adopted => "the password of an adopted database cannot be rotated by Freehold, since its \
                Secret is its user's: change the password in the engine, then in that Secret, and remove \
                spec.access.passwordGeneration"
                .to_owned(),
            Self::CustomEngine => {
                "the password of a custom engine cannot be rotated by Freehold, since it is \
                not known how its image takes another one: remove spec.access.passwordGeneration"
                    .to_owned()
            }
            Self::Immutable(secret) => format!(
                "Secret {secret} is immutable, as an earlier version of Freehold created it, so its password \
                 cannot be rotated: create it again with the same labels and data, without immutable \
                 (docs/rotation.md has the command), or remove spec.access.passwordGeneration"
            ),
        }
    }
}
