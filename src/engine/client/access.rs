//! How an engine is reached, and why it gave no answer: as data.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::timeout;

/// The most bytes of an answer that are kept: a query of a tenant must not take the operator's memory.
pub(super) const LARGEST: usize = 8 << 20;

/// What this comes to, or that the engine was silent for as long; an error calls it `what`.
pub(super) async fn within<T>(
    what: &'static str,
    limit: Duration,
    work: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    timeout(limit, work).await.map_err(|_| ClientError::Silent { what, limit })?
}

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
    /// Whether the connection is encrypted.
    pub tls: Tls,
    /// How many times its usual time the engine has for each answer: 1, or more where its host is known to
    /// be slow.
    pub slowness: u32,
}

impl Access {
    /// How long the engine has for what usually takes this long at most.
    pub(super) fn limit(&self, usual: Duration) -> Duration {
        usual.saturating_mul(self.slowness)
    }
}

/// Whether a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// It is where the engine offers it, and takes it. A program in between can hide that offer, or the one
    /// of channel binding, or ask for the password in clear text.
    IfOffered,
    /// It is, and the engine proves that the encryption ends at itself, by channel binding; otherwise no
    /// connection is made.
    Required,
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
