//! Asks PostgreSQL for the archive of its write-ahead log, and has it begin.

use std::time::Duration;

use tokio::time::timeout;

use super::access::{Access, ClientError};
use super::session::Session;
use crate::engine::archiver::{Archiver, QUESTION, SWITCH};

/// How long all of it may take: it is asked each minute, and other databases wait for it.
const LIMIT: Duration = Duration::from_secs(5);

const WHAT: &str = "the archive of its log";

/// What the engine says.
pub(super) async fn ask(access: &Access) -> Result<Archiver, ClientError> {
    let silent = |_| ClientError::Silent { what: WHAT, limit: LIMIT };
    timeout(LIMIT, asked(access)).await.map_err(silent)?
}

async fn asked(access: &Access) -> Result<Archiver, ClientError> {
    Session::open(access).await?.read(WHAT, QUESTION, LIMIT, Archiver::read).await
}

/// Has the engine end the file of its log that it writes to.
pub(super) async fn switch(access: &Access) -> Result<(), ClientError> {
    let what = "the end of a file of its log";
    let switched = async { Session::open(access).await?.send(what, SWITCH, LIMIT).await };
    timeout(LIMIT, switched).await.map_err(|_| ClientError::Silent { what, limit: LIMIT })?.map(drop)
}
