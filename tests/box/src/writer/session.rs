//! One connection to the database: each step bounded in time, and closed when it is dropped.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use futures::{StreamExt as _, pin_mut};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::{Client, Config, NoTls};

use super::rows::Rows;
use super::source::{Access, NoAccess, Source};

/// How long it may take to connect and to be let in.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// How long a statement may take: beyond it the answer is not waited for, and the row is in doubt.
const STATEMENT_LIMIT: Duration = Duration::from_secs(5);

/// How long reading all row numbers may take.
const READ_LIMIT: Duration = Duration::from_secs(60);

/// Why the database gave no answer, or not the one that was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its address or credentials are not known.
    #[error("failed to find the database")]
    Access(#[from] NoAccess),

    /// No connection.
    #[error("failed to connect to the database at {address}")]
    Connect {
        /// Where.
        address: SocketAddr,
        /// What was said.
        #[source]
        source: tokio_postgres::Error,
    },

    /// No answer.
    #[error("the database gave no answer within {} s to {what}: see its log", limit.as_secs())]
    Silent {
        /// What was asked.
        what: String,
        /// How long was waited.
        limit: Duration,
    },

    /// An error for an answer, or half of one.
    #[error("failed to {what}")]
    Statement {
        /// What was asked.
        what: String,
        /// What was said.
        #[source]
        source: tokio_postgres::Error,
    },

    /// The table's write-ahead log is not being applied.
    #[error("the table is suspended: its write-ahead log is not applied since {why}")]
    Suspended {
        /// What the engine says.
        why: String,
    },

    /// The table's write-ahead log is not applied yet.
    #[error("the table's write-ahead log is applied to transaction {applied} of {accepted} only")]
    NotApplied {
        /// The last transaction that a query sees.
        applied: i64,
        /// The last transaction that was acknowledged.
        accepted: i64,
    },

    /// The table is not there.
    #[error("the table {0} is gone")]
    NoTable(String),
}

/// Where the engine's write-ahead log is.
#[derive(Clone, Copy, Debug)]
pub struct Applied {
    /// The last transaction that a query sees.
    pub applied: i64,
    /// The last transaction that was acknowledged.
    pub accepted: i64,
}

/// An open connection.
pub struct Session {
    client: Client,
    driver: JoinHandle<()>,
}

impl Session {
    /// Finds the database and connects.
    pub async fn open(source: &Source) -> Result<Self, Error> {
        let Access { address, username, password, database } = source.access().await?;
        let mut config = Config::new();
        config
            .hostaddr(address.ip())
            .port(address.port())
            .user(username)
            .password(password)
            .dbname(database)
            .application_name("writer");
        let connected = timeout(CONNECT_LIMIT, config.connect(NoTls)).await;
        let silent = |_| Error::Silent { what: format!("a connection to {address}"), limit: CONNECT_LIMIT };
        let (client, connection) =
            connected.map_err(silent)?.map_err(|source| Error::Connect { address, source })?;
        let driver = tokio::spawn(async move {
            // Its end, good or bad, is what the client's next call says.
            let _ = connection.await;
        });
        Ok(Self { client, driver })
    }

    /// Whether another statement may be sent.
    pub fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// Runs one statement.
    pub async fn run(&self, statement: &str) -> Result<(), Error> {
        within(STATEMENT_LIMIT, statement, self.client.batch_execute(statement)).await
    }

    /// Runs one statement that may take this long.
    pub async fn run_long(&self, statement: &str, limit: Duration) -> Result<(), Error> {
        within(limit, statement, self.client.batch_execute(statement)).await
    }

    /// Reads one number.
    pub async fn number(&self, statement: &str) -> Result<i64, Error> {
        let row = within(READ_LIMIT, statement, self.client.query_one(statement, &[])).await?;
        row.try_get(0).map_err(|source| Error::Statement { what: statement.to_owned(), source })
    }

    /// Reads one column of numbers: each number, and those that came more than once. Zero stands for a row
    /// without a number.
    pub async fn numbers(&self, statement: &str) -> Result<(Rows, Rows), Error> {
        let read = async {
            let rows = self.client.query_raw(statement, std::iter::empty::<i64>()).await?;
            pin_mut!(rows);
            let (mut found, mut twice) = (Rows::default(), Rows::default());
            while let Some(row) = rows.next().await {
                let number = row?.try_get::<_, Option<i64>>(0)?.unwrap_or_default();
                if !found.insert(number) {
                    twice.insert(number);
                }
            }
            Ok((found, twice))
        };
        within(READ_LIMIT, statement, read).await
    }

    /// Asks where the table's write-ahead log is.
    pub async fn applied(&self, statement: &str, table: &str) -> Result<Applied, Error> {
        let row = within(STATEMENT_LIMIT, statement, self.client.query_opt(statement, &[])).await?;
        let Some(row) = row else { return Err(Error::NoTable(table.to_owned())) };
        let failed = |source| Error::Statement { what: statement.to_owned(), source };
        if row.try_get::<_, bool>(2).map_err(failed)? {
            let why = row.try_get::<_, Option<String>>(3).map_err(failed)?.unwrap_or_default();
            return Err(Error::Suspended { why });
        }
        Ok(Applied { applied: row.try_get(0).map_err(failed)?, accepted: row.try_get(1).map_err(failed)? })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("is_open", &self.is_open()).finish_non_exhaustive()
    }
}

async fn within<T>(
    limit: Duration,
    what: &str,
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Error> {
    let answered =
        timeout(limit, answer).await.map_err(|_| Error::Silent { what: what.to_owned(), limit })?;
    answered.map_err(|source| Error::Statement { what: what.to_owned(), source })
}
