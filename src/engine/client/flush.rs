//! Has PostgreSQL write what it has in memory to its volume.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::access::{Access, ClientError};
use super::session::{QUERY_LIMIT, Session};

/// For how long a connection is tried: a NetworkPolicy that was changed a moment ago lets the operator in
/// some seconds later.
const OPENING: Duration = Duration::from_secs(20);

/// Between two tries.
const PAUSE: Duration = Duration::from_secs(2);

/// Sends the statement, and awaits its end for so long. The server goes on writing where no client awaits it
/// any more: what it has written by then, its stop does not write again.
pub(super) async fn flush(
    access: &Access,
    statement: &'static str,
    limit: Duration,
) -> Result<(), ClientError> {
    let session = opened(access).await?;
    // The administrator may have a shorter limit of their own.
    let limited = format!("SET statement_timeout = {}", limit.as_millis());
    session.send("SET statement_timeout", &limited, QUERY_LIMIT).await?;
    session.send(statement, statement, limit).await.map(drop)
}

async fn opened(access: &Access) -> Result<Session, ClientError> {
    let until = Instant::now() + access.limit(OPENING);
    loop {
        match Session::open(access).await {
            Err(_) if Instant::now() < until => sleep(PAUSE).await,
            answer => return answer,
        }
    }
}
