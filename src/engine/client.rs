//! Talks to a running engine: one client a protocol, behind a trait, so that a test can be the engine.

mod access;
mod archiver;
mod certificate;
mod check;
mod flush;
mod password;
mod reload;
mod session;
mod tls;
mod users;

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

pub use self::access::{Access, ClientError, Tls};
pub use self::certificate::Loaded;
use self::session::Session;
use super::archiver::Archiver;
use super::certificate::Certificate;
use super::checkpoint::{self, CheckpointStatus};
use super::reload::{Change, Verdict};
use super::users::{Login, Mark, ShownUser, WantedUser};
use super::verify::{Finding, Verified};
use crate::api::database::EngineType;
use crate::api::database_user::UserRole;

/// How long the beginning or the end of a checkpoint may take: half a second was seen with few tables, and
/// the engine flushes every column of every table. Less than `--reconcile-timeout`.
const CHECKPOINT_LIMIT: Duration = Duration::from_secs(40);

/// Engines as Freehold talks to them.
#[async_trait]
pub trait Engines: Send + Sync + 'static {
    /// What the engine says of its checkpoint. Harmless to repeat.
    async fn checkpoint(&self, access: &Access) -> Result<CheckpointStatus, ClientError>;

    /// Begins a checkpoint; when it began. The engine refuses while it holds one.
    async fn create_checkpoint(&self, access: &Access) -> Result<Timestamp, ClientError>;

    /// Ends the checkpoint that began then. Does nothing if the engine holds none, or another: that one is
    /// another client's.
    async fn release_checkpoint(&self, access: &Access, began_at: Timestamp) -> Result<(), ClientError>;

    /// Gives the administrator of a PostgreSQL this password, and tries it. Harmless to repeat: an engine
    /// that has it already keeps it.
    async fn change_password(&self, access: &Access, next: &str) -> Result<(), ClientError>;

    /// What PostgreSQL has of the user of this name, with this role in these databases. Harmless to repeat.
    async fn user(
        &self,
        access: &Access,
        username: &str,
        role: UserRole,
        databases: &[String],
    ) -> Result<ShownUser, ClientError>;

    /// Whether PostgreSQL lets a user in. Harmless to repeat.
    async fn login(&self, access: &Access) -> Result<Login, ClientError>;

    /// Has PostgreSQL make the user what it is to be, with this password, and connects as the user. Harmless
    /// to repeat: nothing is changed where the user is not as it was read.
    async fn put_user(&self, access: &Access, user: &WantedUser, password: &str) -> Result<(), ClientError>;

    /// Has PostgreSQL drop the user that has this comment; what it owns stays. Harmless to repeat.
    async fn drop_user(&self, access: &Access, username: &str, mark: &Mark) -> Result<(), ClientError>;

    /// What PostgreSQL says of a change of its settings. Harmless to repeat.
    async fn judge_settings(&self, access: &Access, change: &Change) -> Result<Verdict, ClientError>;

    /// Has PostgreSQL load its file of settings once that has this text; whether it runs with the change
    /// then. Harmless to repeat.
    async fn reload_settings(
        &self,
        access: &Access,
        change: &Change,
        file: &str,
    ) -> Result<bool, ClientError>;

    /// Has PostgreSQL show this certificate, once its files have it. Harmless to repeat.
    async fn load_certificate(
        &self,
        access: &Access,
        certificate: &Certificate,
    ) -> Result<Loaded, ClientError>;

    /// What PostgreSQL says of the archive of its write-ahead log. Harmless to repeat.
    async fn archiver(&self, access: &Access) -> Result<Archiver, ClientError>;

    /// Has PostgreSQL end the file of its write-ahead log that it writes to, which is archived then. Harmless
    /// to repeat: it ends none that is empty.
    async fn switch_log(&self, access: &Access) -> Result<(), ClientError>;

    /// Has the engine carry out this statement (`Profile::flush`), for as long at most: it writes what it has
    /// in memory to its volume. Harmless to repeat.
    async fn flush(
        &self,
        access: &Access,
        statement: &'static str,
        limit: Duration,
    ) -> Result<(), ClientError>;

    /// Reads every table once, and carries out `query`. It may take hours, and is harmless to repeat. Without
    /// an answer to a statement it is not known what is in the data: that is an error, and no finding.
    async fn verify(
        &self,
        access: &Access,
        engine: EngineType,
        query: Option<&str>,
    ) -> Result<Verified, ClientError>;
}

/// Engines over the PostgreSQL wire protocol, at the addresses of their pods.
pub struct PgWire;

#[async_trait]
impl Engines for PgWire {
    async fn checkpoint(&self, access: &Access) -> Result<CheckpointStatus, ClientError> {
        Session::open(access).await?.status().await
    }

    async fn create_checkpoint(&self, access: &Access) -> Result<Timestamp, ClientError> {
        let session = Session::open(access).await?;
        session.send(checkpoint::CREATE, checkpoint::CREATE, CHECKPOINT_LIMIT).await?;
        // The one that was just created: nothing but its release lets another one begin.
        let status = session.status().await.map_err(|error| unconfirmed(&error))?;
        let ended = || ClientError::Unreadable {
            what: checkpoint::CREATE,
            reason: "the engine holds no checkpoint after it".to_owned(),
        };
        status.held_since.ok_or_else(ended)
    }

    async fn release_checkpoint(&self, access: &Access, began_at: Timestamp) -> Result<(), ClientError> {
        let session = Session::open(access).await?;
        let held = session.status().await?.held_since;
        if held.is_some_and(|held| checkpoint::is_same(held, began_at)) {
            session.send(checkpoint::RELEASE, checkpoint::RELEASE, CHECKPOINT_LIMIT).await?;
        }
        Ok(())
    }

    async fn change_password(&self, access: &Access, next: &str) -> Result<(), ClientError> {
        password::change(access, next).await
    }

    async fn user(
        &self,
        access: &Access,
        username: &str,
        role: UserRole,
        databases: &[String],
    ) -> Result<ShownUser, ClientError> {
        users::read(access, username, role, databases).await
    }

    async fn login(&self, access: &Access) -> Result<Login, ClientError> {
        users::login(access).await
    }

    async fn put_user(&self, access: &Access, user: &WantedUser, password: &str) -> Result<(), ClientError> {
        users::put(access, user, password).await
    }

    async fn drop_user(&self, access: &Access, username: &str, mark: &Mark) -> Result<(), ClientError> {
        users::drop_role(access, username, mark).await
    }

    async fn judge_settings(&self, access: &Access, change: &Change) -> Result<Verdict, ClientError> {
        reload::verdict(access, change).await
    }

    async fn reload_settings(
        &self,
        access: &Access,
        change: &Change,
        file: &str,
    ) -> Result<bool, ClientError> {
        reload::reload(access, change, file).await
    }

    async fn load_certificate(
        &self,
        access: &Access,
        certificate: &Certificate,
    ) -> Result<Loaded, ClientError> {
        certificate::load(access, certificate).await
    }

    async fn archiver(&self, access: &Access) -> Result<Archiver, ClientError> {
        archiver::ask(access).await
    }

    async fn switch_log(&self, access: &Access) -> Result<(), ClientError> {
        archiver::switch(access).await
    }

    async fn flush(
        &self,
        access: &Access,
        statement: &'static str,
        limit: Duration,
    ) -> Result<(), ClientError> {
        flush::flush(access, statement, limit).await
    }

    async fn verify(
        &self,
        access: &Access,
        engine: EngineType,
        query: Option<&str>,
    ) -> Result<Verified, ClientError> {
        let mut found = Verified::default();
        match engine {
            EngineType::Questdb => Session::open(access).await?.verify_questdb(&mut found).await?,
            EngineType::Postgresql => check::every_database(access, &mut found).await?,
            EngineType::Custom => {}
        }
        match query {
            Some(query) => Session::open(access).await?.carry_out(query, &mut found).await?,
            None if found.tables == 0 && engine != EngineType::Custom => {
                found.findings.push(Finding::NoTables);
            }
            None => {}
        }
        Ok(found)
    }
}

/// After the checkpoint began, no error says that it did not.
fn unconfirmed(error: &ClientError) -> ClientError {
    ClientError::Unreadable { what: checkpoint::CREATE, reason: error.to_string() }
}
