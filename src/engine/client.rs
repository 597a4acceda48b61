//! Talks to a running engine: one client a protocol, behind a trait, so that a test can be the engine.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use super::checkpoint::{self, CheckpointStatus};

/// How long it may take to connect and to be let in.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// How long a query for the status may take.
const QUERY_LIMIT: Duration = Duration::from_secs(10);

/// How long the beginning or the end of a checkpoint may take: half a second was seen with few tables, and
/// the engine flushes every column of every table. Less than `--reconcile-timeout`.
const CHECKPOINT_LIMIT: Duration = Duration::from_secs(40);

/// Where an engine listens, and who may change it. Its text for people holds no password.
#[derive(Clone, PartialEq, Eq)]
pub struct Access {
    /// The pod's address.
    pub address: IpAddr,
    /// The port of the PostgreSQL wire protocol.
    pub port: u16,
    /// The administrator.
    pub username: String,
    /// Their password.
    pub password: String,
    /// The database.
    pub database: String,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}:{}", self.username, self.address, self.port)
    }
}

/// Why the engine gave no answer, or not the one that was requested.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No connection, or no answer: whether a statement was carried out is not known.
    #[error("the engine did not answer to {what} within {} s", limit.as_secs())]
    Silent {
        /// What was sent.
        what: &'static str,
        /// For how long it was awaited.
        limit: Duration,
    },
    /// The connection failed.
    #[error("no connection to the engine at {address}: {reason}")]
    Connect {
        /// Where.
        address: IpAddr,
        /// Why.
        reason: String,
    },
    /// The engine refused a statement: it was not carried out.
    #[error("the engine refused {what}: {reason}")]
    Refused {
        /// What was sent.
        what: &'static str,
        /// The engine's message.
        reason: String,
    },
    /// It is not known where the engine listens, or who may change it: nothing was sent.
    #[error("{0}")]
    NoAccess(String),
    /// The connection broke, or the answer has another form than it should have.
    #[error("the answer of the engine to {what} could not be read: {reason}")]
    Unreadable {
        /// What was sent.
        what: &'static str,
        /// Why.
        reason: String,
    },
}

impl ClientError {
    /// Whether the engine has certainly not carried out what was sent.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Connect { .. } | Self::NoAccess(_))
    }
}

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
}

/// Engines over the PostgreSQL wire protocol, at the addresses of their pods.
pub struct PgWire;

/// One connection, closed when it is dropped.
struct Session {
    client: Client,
    driver: JoinHandle<()>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Session {
    async fn open(access: &Access) -> Result<Self, ClientError> {
        let mut config = Config::new();
        config
            .hostaddr(access.address)
            .port(access.port)
            .user(&access.username)
            .password(&access.password)
            .dbname(&access.database)
            .application_name("freehold");
        let failed = |reason: String| ClientError::Connect { address: access.address, reason };
        let connected = timeout(CONNECT_LIMIT, config.connect(NoTls)).await;
        let connected =
            connected.map_err(|_| failed(format!("no answer within {} s", CONNECT_LIMIT.as_secs())))?;
        let (client, connection) = connected.map_err(|error| failed(plain(&error)))?;
        // Its end, good or bad, is what the client's next call says.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Self { client, driver })
    }

    async fn send(
        &self,
        what: &'static str,
        limit: Duration,
    ) -> Result<Vec<SimpleQueryMessage>, ClientError> {
        let answer = timeout(limit, self.client.simple_query(what)).await;
        let answer = answer.map_err(|_| ClientError::Silent { what, limit })?;
        answer.map_err(|error| match error.as_db_error() {
            Some(refusal) => ClientError::Refused { what, reason: refusal.message().to_owned() },
            None => ClientError::Unreadable { what, reason: plain(&error) },
        })
    }

    async fn status(&self) -> Result<CheckpointStatus, ClientError> {
        let what = checkpoint::STATUS;
        let answer = self.send(what, QUERY_LIMIT).await?;
        let row = answer.iter().find_map(|message| {
            let SimpleQueryMessage::Row(row) = message else { return None };
            (row.len() == 3).then(|| [row.get(0), row.get(1), row.get(2)])
        });
        let unreadable = || ClientError::Unreadable { what, reason: format!("{row:?}") };
        row.and_then(checkpoint::read).ok_or_else(unreadable)
    }
}

/// An error of the library without its kind, which says nothing to people.
fn plain(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

#[async_trait]
impl Engines for PgWire {
    async fn checkpoint(&self, access: &Access) -> Result<CheckpointStatus, ClientError> {
        Session::open(access).await?.status().await
    }

    async fn create_checkpoint(&self, access: &Access) -> Result<Timestamp, ClientError> {
        let session = Session::open(access).await?;
        session.send(checkpoint::CREATE, CHECKPOINT_LIMIT).await?;
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
            session.send(checkpoint::RELEASE, CHECKPOINT_LIMIT).await?;
        }
        Ok(())
    }
}

/// After the checkpoint began, no error says that it did not.
fn unconfirmed(error: &ClientError) -> ClientError {
    ClientError::Unreadable { what: checkpoint::CREATE, reason: error.to_string() }
}
