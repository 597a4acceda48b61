//! What a DatabaseUser waits for: a value with its reason, and whether a person must act. Pure.
//!
//! The sentences are in `messages`.

use crate::api::Reason;

/// What a DatabaseUser waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(strum::VariantNames))]
pub enum UserWait {
    /// The Database of this name does not exist.
    NoDatabase(String),
    /// The Database of this name is being deleted.
    DatabaseDeleting(String),
    /// The engine of the Database, of this type, keeps no users that Freehold knows of.
    NoUsers(&'static str),
    /// A Secret of this name exists that is not of this DatabaseUser.
    SecretTaken(String),
    /// The Secret of this name cannot be read; why.
    SecretUnreadable(String, String),
    /// The Secret of this name is damaged; how.
    SecretDamaged(String, String),
    /// The Secret is being written.
    WritingSecret,
    /// The engine of the Database of this name does not accept connections.
    EngineNotReady(String),
    /// The engine cannot be asked; why.
    EngineUnreadable(String),
    /// The engine has none of these databases.
    NoSuchDatabases(Vec<String>),
    /// The engine has a user of this name that Freehold has not created.
    Foreign(String),
    /// The user of this name may do more than any of Freehold's.
    Privileged(String),
    /// The user of this name belongs to another DatabaseUser.
    Taken {
        /// The user.
        username: String,
        /// The DatabaseUser.
        by: String,
    },
    /// The engine does not let the user of this name in; why.
    NotLetIn(String, String),
    /// The engine is being given the user.
    Giving(String),
    /// The engine has another password than the Secret for a moment.
    Rotating,
    /// The user of this name is being dropped.
    Dropping(String),
    /// This DatabaseUser is deleted, and the user cannot be dropped; what is waited for.
    Kept(Box<Self>),
}

impl UserWait {
    /// For the conditions.
    pub fn reason(&self) -> Reason {
        match self {
            Self::NoDatabase(_)
            | Self::DatabaseDeleting(_)
            | Self::EngineNotReady(_)
            | Self::EngineUnreadable(_)
            | Self::NoSuchDatabases(_) => Reason::AwaitingDatabase,
            Self::NoUsers(_)
            | Self::Foreign(_)
            | Self::Privileged(_)
            | Self::Taken { .. }
            | Self::NotLetIn(..) => Reason::UserRefused,
            Self::SecretTaken(_) => Reason::NameConflict,
            Self::SecretUnreadable(..) | Self::SecretDamaged(..) => Reason::CredentialsUnreadable,
            Self::WritingSecret | Self::Giving(_) => Reason::Progressing,
            Self::Rotating => Reason::Rotating,
            Self::Dropping(_) | Self::Kept(_) => Reason::Deleting,
        }
    }

    /// Whether nothing changes until a person does something.
    pub fn is_stalled(&self) -> bool {
        match self {
            Self::NoUsers(_)
            | Self::SecretTaken(_)
            | Self::SecretDamaged(..)
            | Self::NoSuchDatabases(_)
            | Self::Foreign(_)
            | Self::Privileged(_)
            | Self::Taken { .. }
            | Self::NotLetIn(..) => true,
            Self::NoDatabase(_)
            | Self::DatabaseDeleting(_)
            | Self::SecretUnreadable(..)
            | Self::WritingSecret
            | Self::EngineNotReady(_)
            | Self::EngineUnreadable(_)
            | Self::Giving(_)
            | Self::Rotating
            | Self::Dropping(_)
            | Self::Kept(_) => false,
        }
    }
}
