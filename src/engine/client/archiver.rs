//! Asks PostgreSQL for the archive of its write-ahead log, and has it begin.

use std::time::Duration;

use super::access::{Access, ClientError, within};
use super::session::Session;
use crate::engine::archiver::{Archiver, QUESTION, SWITCH};

/// How long all of it may take: it is asked each minute, and other databases wait for it.
const LIMIT: Duration = Duration::from_secs(5);

/// What the engine says.
pub(super) async fn ask(access: &Access) -> Result<Archiver, ClientError> {
    let what = "the archive of its log";
    let asked = async { Session::open(access).await?.read(what, QUESTION, LIMIT, Archiver::read).await };
    within(what, access.limit(LIMIT), asked).await
}

/// Has the engine end the file of its log that it writes to.
pub(super) async fn switch(access: &Access) -> Result<(), ClientError> {
    let what = "the end of a file of its log";
    let switched = async { Session::open(access).await?.send(what, SWITCH, LIMIT).await };
    within(what, access.limit(LIMIT), switched).await.map(drop)
}
