//! Every sentence that a person reads about a DatabaseUser. Pure.

use super::wait::UserWait;

/// Condition Ready, when it is true.
pub const READY: &str = "the user can connect with the password in the Secret";

impl UserWait {
    /// For the conditions: what is the case, and what a person can do about it.
    pub fn message(&self) -> String {
        match self {
            Self::NoDatabase(name) => format!("Database {name} does not exist yet: waiting until it is created"),
            Self::DatabaseDeleting(name) => format!("Database {name} is being deleted"),
            Self::NoUsers("questdb") => {
                "QuestDB's open source edition has no users with rights of their own, so none is created: connect \
                 with the administrator's credentials, and delete this DatabaseUser"
                    .to_owned()
            }
            Self::NoUsers(engine) => format!(
                "Freehold does not know how an engine of the type {engine} keeps users, so none is created: create \
                 it in the engine, and delete this DatabaseUser"
            ),
            Self::SecretTaken(name) => format!(
                "Secret {name} exists and is not of this DatabaseUser, so it is left alone: delete it, or create a \
                 DatabaseUser of another name"
            ),
            Self::SecretUnreadable(name, why) => format!("Secret {name} cannot be read: {why}"),
            Self::SecretDamaged(name, why) => format!(
                "Secret {name} is damaged: {why}. Delete it, and the user is given another password"
            ),
            Self::WritingSecret => "the Secret is being written".to_owned(),
            Self::EngineNotReady(name) => {
                format!("the engine of Database {name} does not accept connections: waiting until it does")
            }
            Self::EngineUnreadable(why) => format!("the engine cannot be asked for the user: {why}"),
            Self::NoSuchDatabases(names) => format!(
                "the engine has no database {}: create it there (CREATE DATABASE), or change spec.databases",
                names.join(", ")
            ),
            Self::Foreign(username) => format!(
                "the engine has a user {username} that Freehold has not created, so it is left alone: drop it there, \
                 or create a DatabaseUser with another spec.username"
            ),
            Self::Privileged(username) => format!(
                "the user {username} was given the attribute of a superuser, or another that no user of Freehold's \
                 has: take it away in the engine (ALTER ROLE), or create a DatabaseUser with another spec.username"
            ),
            Self::Taken { username, by } => format!(
                "the user {username} belongs to DatabaseUser {by}: delete one of the two, or create this one with \
                 another spec.username"
            ),
            Self::NotLetIn(username, why) => format!(
                "the engine does not let the user {username} in, whatever its password: {why}. What a person has changed \
                 there (ALTER ROLE ... NOLOGIN, for example) is theirs to change back"
            ),
            Self::Giving(username) => {
                format!("the engine is being given the user {username}, with its password and its rights")
            }
            Self::Rotating => "the next password is given to the engine, and is written into the Secret then".to_owned(),
            Self::Dropping(username) => format!("the user {username} is being dropped; what it owns stays"),
            Self::Kept(why) => format!(
                "this DatabaseUser is deleted, and its user cannot be dropped yet: {}. With spec.deletionPolicy \
                 Retain the user stays in the engine, and the deletion ends at once",
                why.message()
            ),
        }
    }
}

/// The notes of a DatabaseUser's events.
pub mod events {
    /// Event UserCreated.
    pub fn created(username: &str, role: &str, databases: &[&str]) -> String {
        format!("user {username} was created with the role {role} in {}", databases.join(", "))
    }

    /// Event UserChanged.
    pub fn changed(username: &str, role: &str, databases: &[&str]) -> String {
        format!("user {username} has the role {role} in {}", databases.join(", "))
    }

    /// Event PasswordRotated.
    pub fn rotated(secret: &str, generation: i64) -> String {
        format!("password {generation} is in force, and in Secret {secret}")
    }

    /// Event UserDropped.
    pub fn dropped(username: &str) -> String {
        format!("user {username} was dropped; what it owned stays")
    }
}
