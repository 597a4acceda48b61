//! One connection over the PostgreSQL wire protocol.

use std::time::Duration;

use futures::TryStreamExt as _;
use futures::future::{Either, select};
use rustls::pki_types::CertificateDer;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::{Client, Config, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::access::{Access, ClientError, LARGEST, Tls, within};
use super::tls;
use crate::engine::checkpoint::{self, CheckpointStatus};
use crate::engine::users::Login;
use crate::engine::verify::{self, Row};

/// How long it may take to connect and to be let in.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// How long a statement that the engine answers at once may take.
pub(super) const QUERY_LIMIT: Duration = Duration::from_secs(10);

/// For how long the end of a connection waits for a statement that is still being carried out.
const CLOSING_LIMIT: Duration = Duration::from_secs(1);

/// What a row takes beside its texts, in bytes.
const ROW: usize = 100;

/// The classes of PostgreSQL's errors that say nothing of the data: no connection, no resources, and an
/// operator's intervention (PostgreSQL documentation, "Appendix A. PostgreSQL Error Codes").
const PASSING: [&str; 3] = ["08", "53", "57"];

/// Errors of who connects, and to what: the classes of the authorization and of the database, and a setting
/// that this role may not have (`insufficient_privilege`).
const OF_ACCESS: [&str; 3] = ["28", "3D", "42501"];

/// One connection. Dropped, it says to the engine that it ends: the log of an engine with TLS has a line on
/// each one that is just cut off.
pub(super) struct Session {
    // First, so that no statement can follow when the end begins.
    client: Client,
    _open: oneshot::Sender<()>,
    /// That of `Access`.
    slowness: u32,
}

impl Session {
    pub(super) async fn open(access: &Access) -> Result<Self, ClientError> {
        Self::with(access, None).await
    }

    /// One that begins with these options. That the engine does not let it begin with them is a refusal.
    pub(super) async fn with(access: &Access, options: Option<&str>) -> Result<Self, ClientError> {
        let connector = tls::connector().map_err(|error| failed(access, error.to_string()))?;
        Self::dialled(access, options, connector).await?.map_err(|error| match error.as_db_error() {
            Some(refusal) if options.is_some() && !is_of_access(refusal.code()) => {
                let hint = refusal.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
                let reason = format!("{}{hint}", refusal.message());
                ClientError::Refused { what: "a session with these settings", reason }
            }
            Some(_) | None => failed(access, plain(&error)),
        })
    }

    /// One over TLS, and the certificate that the engine shows, with those of its issuers.
    pub(super) async fn shown(access: &Access) -> Result<(Self, Vec<CertificateDer<'static>>), ClientError> {
        let (connector, shown) = tls::showing().map_err(|error| failed(access, error.to_string()))?;
        let session = Self::dialled(access, None, connector).await?;
        let session = session.map_err(|error| failed(access, plain(&error)))?;
        let certificate = shown.get().cloned();
        let certificate = certificate.ok_or_else(|| failed(access, "no certificate was shown".to_owned()))?;
        Ok((session, certificate))
    }

    /// What the engine says of a user that connects, with the connection if there is one.
    pub(super) async fn login(access: &Access) -> Result<(Login, Option<Self>), ClientError> {
        let connector = tls::connector().map_err(|error| failed(access, error.to_string()))?;
        let error = match Self::dialled(access, None, connector).await? {
            Ok(session) => return Ok((Login::In, Some(session))),
            Err(error) => error,
        };
        match error.as_db_error() {
            Some(refusal) if *refusal.code() == SqlState::INVALID_PASSWORD => {
                Ok((Login::WrongPassword, None))
            }
            Some(refusal) if is_of_access(refusal.code()) && !is_passing(refusal.code()) => {
                Ok((Login::Refused(refusal.message().to_owned()), None))
            }
            Some(_) | None => Err(failed(access, plain(&error))),
        }
    }

    /// One, or the engine's or the library's error.
    async fn dialled(
        access: &Access,
        options: Option<&str>,
        connector: MakeRustlsConnect,
    ) -> Result<Result<Self, tokio_postgres::Error>, ClientError> {
        let mut config = Config::new();
        config
            .hostaddr(access.address)
            .port(access.port)
            .user(&access.username)
            .password(&access.password)
            .dbname(&access.database)
            .application_name("freehold");
        if let Some(options) = options {
            config.options(options);
        }
        tls::configure(&mut config, access);
        let connected = async {
            let connected = config.connect(connector.clone()).await;
            match connected {
                Err(error) if tls::is_refused(&error) && access.tls == Tls::IfOffered => {
                    config.ssl_mode(SslMode::Disable).connect(connector).await
                }
                connected => connected,
            }
        };
        let limit = access.limit(CONNECT_LIMIT);
        let connected = timeout(limit, connected)
            .await
            .map_err(|_| failed(access, format!("no answer within {} s", limit.as_secs())))?;
        let (client, connection) = match connected {
            Ok(connected) => connected,
            Err(error) => return Ok(Err(error)),
        };
        let (open, dropped) = oneshot::channel();
        // Its end, good or bad, is what the client's next call says.
        tokio::spawn(async move {
            if let Either::Right((_, connection)) = select(connection, dropped).await {
                drop(timeout(CLOSING_LIMIT, connection).await);
            }
        });
        Ok(Ok(Self { client, _open: open, slowness: access.slowness }))
    }

    /// Sends a statement, which an error calls `what`.
    pub(super) async fn send(
        &self,
        what: &'static str,
        statement: &str,
        limit: Duration,
    ) -> Result<Vec<SimpleQueryMessage>, ClientError> {
        within(what, limit.saturating_mul(self.slowness), self.answer(what, statement)).await
    }

    async fn answer(
        &self,
        what: &'static str,
        statement: &str,
    ) -> Result<Vec<SimpleQueryMessage>, ClientError> {
        let failed = |error: tokio_postgres::Error| match error.as_db_error() {
            Some(refusal) if !is_passing(refusal.code()) => {
                ClientError::Refused { what, reason: with_dependents(refusal) }
            }
            Some(refusal) => ClientError::Unreadable { what, reason: refusal.message().to_owned() },
            None => ClientError::Unreadable { what, reason: plain(&error) },
        };
        let mut stream = std::pin::pin!(self.client.simple_query_raw(statement).await.map_err(failed)?);
        let (mut all, mut bytes) = (Vec::new(), 0_usize);
        while let Some(message) = stream.try_next().await.map_err(failed)? {
            if let SimpleQueryMessage::Row(row) = &message {
                bytes = bytes.saturating_add(ROW);
                for column in 0..row.len() {
                    // An engine may answer what is no text (`checkpoint::STATUS`): `get` panics then.
                    let text = row.try_get(column).map_err(failed)?;
                    bytes = bytes.saturating_add(text.map_or(0, str::len));
                }
            }
            if bytes > LARGEST {
                return Err(ClientError::TooLarge { what });
            }
            all.push(message);
        }
        Ok(all)
    }

    pub(super) async fn status(&self) -> Result<CheckpointStatus, ClientError> {
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
    pub(super) async fn read<T>(
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
}

/// No connection.
fn failed(access: &Access, reason: String) -> ClientError {
    ClientError::Connect { address: access.address, reason }
}

/// The engine's message; and what depends on what cannot be dropped for it.
fn with_dependents(refusal: &DbError) -> String {
    match refusal.detail() {
        Some(detail) if *refusal.code() == SqlState::DEPENDENT_OBJECTS_STILL_EXIST => {
            format!("{}: {detail}", refusal.message())
        }
        Some(_) | None => refusal.message().to_owned(),
    }
}

/// Whether an error says nothing of the data, and is no word on the statement.
fn is_passing(code: &SqlState) -> bool {
    PASSING.iter().any(|class| code.code().starts_with(class))
}

/// Whether an error says nothing of the settings that a session begins with.
fn is_of_access(code: &SqlState) -> bool {
    is_passing(code) || OF_ACCESS.iter().any(|start| code.code().starts_with(start))
}

/// An error of the library without its kind, which says nothing to people but where TLS failed.
fn plain(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    let kind = error.to_string();
    let Some(cause) = error.source().map(ToString::to_string) else { return kind };
    tls::explained(&kind, &cause).unwrap_or(cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_and_what_lacks_is_no_word_on_the_settings() {
        let of_access = ["08006", "28P01", "3D000", "42501", "53300", "57P03"];
        assert!(of_access.iter().all(|code| is_of_access(&SqlState::from_code(code))));
        let of_settings = ["22023", "42704", "58P01"];
        assert!(!of_settings.iter().any(|code| is_of_access(&SqlState::from_code(code))));
    }
}
