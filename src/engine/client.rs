//! Talks to a running engine: one client a protocol, behind a trait, so that a test can be the engine.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use futures::TryStreamExt as _;
use jiff::Timestamp;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use super::checkpoint::{self, CheckpointStatus};
use super::verify::{self, Finding, Row, Verified};
use crate::api::database::EngineType;

/// How long it may take to connect and to be let in.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// How long a query for the status may take.
const QUERY_LIMIT: Duration = Duration::from_secs(10);

/// How long the beginning or the end of a checkpoint may take: half a second was seen with few tables, and
/// the engine flushes every column of every table. Less than `--reconcile-timeout`.
const CHECKPOINT_LIMIT: Duration = Duration::from_secs(40);

/// How long the engine may take to read one table, whose volume may be read from S3 block by block.
const TABLE_LIMIT: Duration = Duration::from_secs(4 * 3600);

/// How often it is asked whether all transactions are applied.
const APPLYING_PAUSE: Duration = Duration::from_secs(5);

/// The most bytes of an answer that are kept: a query of a tenant must not take the operator's memory.
const LARGEST: usize = 8 << 20;

/// What a row takes beside its texts, in bytes.
const ROW: usize = 100;

/// The classes of PostgreSQL's errors that say nothing of the data: no connection, no resources, and an
/// operator's intervention (PostgreSQL documentation, "Appendix A. PostgreSQL Error Codes").
const PASSING: [&str; 3] = ["08", "53", "57"];

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
    /// The answer is larger than is kept in memory.
    #[error("the answer of the engine to {what} has more than {} MiB", LARGEST >> 20)]
    TooLarge {
        /// What was sent.
        what: &'static str,
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

    /// Sends a statement, which an error calls `what`.
    async fn send(
        &self,
        what: &'static str,
        statement: &str,
        limit: Duration,
    ) -> Result<Vec<SimpleQueryMessage>, ClientError> {
        let answer = timeout(limit, self.answer(what, statement)).await;
        answer.map_err(|_| ClientError::Silent { what, limit })?
    }

    async fn answer(
        &self,
        what: &'static str,
        statement: &str,
    ) -> Result<Vec<SimpleQueryMessage>, ClientError> {
        let failed = |error: tokio_postgres::Error| match error.as_db_error() {
            Some(refusal) if !is_passing(refusal.code()) => {
                ClientError::Refused { what, reason: refusal.message().to_owned() }
            }
            Some(refusal) => ClientError::Unreadable { what, reason: refusal.message().to_owned() },
            None => ClientError::Unreadable { what, reason: plain(&error) },
        };
        let mut stream = std::pin::pin!(self.client.simple_query_raw(statement).await.map_err(failed)?);
        let (mut all, mut bytes) = (Vec::new(), 0_usize);
        while let Some(message) = stream.try_next().await.map_err(failed)? {
            if let SimpleQueryMessage::Row(row) = &message {
                let sizes = (0..row.len()).filter_map(|column| row.get(column)).map(str::len);
                bytes = sizes.fold(bytes.saturating_add(ROW), usize::saturating_add);
            }
            if bytes > LARGEST {
                return Err(ClientError::TooLarge { what });
            }
            all.push(message);
        }
        Ok(all)
    }

    async fn status(&self) -> Result<CheckpointStatus, ClientError> {
        let what = checkpoint::STATUS;
        let answer = self.send(what, what, QUERY_LIMIT).await?;
        let row = answer.iter().find_map(|message| {
            let SimpleQueryMessage::Row(row) = message else { return None };
            (row.len() == 3).then(|| [row.get(0), row.get(1), row.get(2)])
        });
        let unreadable = || ClientError::Unreadable { what, reason: format!("{row:?}") };
        row.and_then(checkpoint::read).ok_or_else(unreadable)
    }

    /// The rows of the answer to a statement, read by `read`.
    async fn read<T>(
        &self,
        what: &'static str,
        statement: &str,
        limit: Duration,
        read: impl FnOnce(&[Row]) -> Option<T>,
    ) -> Result<T, ClientError> {
        let answer = self.send(what, statement, limit).await?;
        let rows = answer.iter().filter_map(|message| {
            let SimpleQueryMessage::Row(row) = message else { return None };
            Some((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect())
        });
        let rows: Vec<Row> = rows.collect();
        read(&rows).ok_or_else(|| ClientError::Unreadable { what, reason: verify::shown(&rows) })
    }

    /// The number of rows of a table that is read. That the engine does not read it is a finding.
    async fn read_table(
        &self,
        table: String,
        statement: &str,
        found: &mut Verified,
    ) -> Result<u64, ClientError> {
        match self.read("the reading of a table", statement, TABLE_LIMIT, verify::number).await {
            Ok(rows) => Ok(rows),
            Err(ClientError::Refused { reason: why, .. }) => {
                found.findings.push(Finding::Unreadable { table, why });
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    async fn verify_questdb(&self, found: &mut Verified) -> Result<(), ClientError> {
        let what = "the list of tables to which transactions are applied";
        while !self.read(what, verify::questdb::APPLYING, QUERY_LIMIT, verify::names).await?.is_empty() {
            sleep(APPLYING_PAUSE).await;
        }
        let what = "the list of tables";
        for table in self.read(what, verify::questdb::TABLES, QUERY_LIMIT, verify::names).await? {
            let statement = verify::questdb::columns(&table);
            let what = "the list of columns";
            let columns = self.read(what, &statement, QUERY_LIMIT, verify::pairs).await?;
            let statement = verify::questdb::read(&table, &columns);
            let rows = self.read_table(table, &statement, found).await?;
            found.add(rows);
        }
        let what = "the list of suspended tables";
        let suspended = self.read(what, verify::questdb::SUSPENDED, QUERY_LIMIT, verify::names).await?;
        found.findings.extend(suspended.into_iter().map(Finding::Suspended));
        Ok(())
    }

    /// Reads the tables of the database that this is a connection to.
    async fn verify_postgresql(&self, database: &str, found: &mut Verified) -> Result<(), ClientError> {
        self.send("the settings of the check", verify::postgresql::READ_TABLES, QUERY_LIMIT).await?;
        let what = "the list of tables";
        let tables = self.read(what, verify::postgresql::TABLES, QUERY_LIMIT, verify::pairs).await?;
        for (schema, table) in tables {
            let statement = verify::postgresql::count(&schema, &table);
            let rows = self.read_table(format!("{database}.{schema}.{table}"), &statement, found).await?;
            if verify::postgresql::is_of_user(&schema) {
                found.add(rows);
            }
        }
        Ok(())
    }

    /// Carries out the query of a BackupSchedule.
    async fn carry_out(&self, query: &str, found: &mut Verified) -> Result<(), ClientError> {
        let judge = |rows: &[Row]| Some((!verify::is_true(rows)).then(|| verify::shown(rows)));
        match self.read("spec.verify.query", query, TABLE_LIMIT, judge).await {
            Ok(wrong) => found.findings.extend(wrong.map(Finding::Answer)),
            Err(ClientError::Refused { reason, .. }) => found.findings.push(Finding::QueryRefused(reason)),
            Err(error @ ClientError::TooLarge { .. }) => {
                found.findings.push(Finding::QueryRefused(error.to_string()));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Every database of a PostgreSQL has connections of its own.
async fn verify_every_database(access: &Access, found: &mut Verified) -> Result<(), ClientError> {
    let session = Session::open(access).await?;
    let what = "the list of databases";
    let databases = session.read(what, verify::postgresql::DATABASES, QUERY_LIMIT, verify::names).await?;
    for database in databases {
        let access = Access { database: database.clone(), ..access.clone() };
        Session::open(&access).await?.verify_postgresql(&database, found).await?;
    }
    // Once everything was read.
    let what = "the number of checksum failures";
    let failures = session.read(what, verify::postgresql::CHECKSUMS, QUERY_LIMIT, verify::number).await?;
    found.findings.extend((failures > 0).then_some(Finding::Checksums(failures)));
    Ok(())
}

/// Whether an error says nothing of the data, and is no word on the statement.
fn is_passing(code: &SqlState) -> bool {
    PASSING.iter().any(|class| code.code().starts_with(class))
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

    async fn verify(
        &self,
        access: &Access,
        engine: EngineType,
        query: Option<&str>,
    ) -> Result<Verified, ClientError> {
        let mut found = Verified::default();
        match engine {
            EngineType::Questdb => Session::open(access).await?.verify_questdb(&mut found).await?,
            EngineType::Postgresql => verify_every_database(access, &mut found).await?,
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
