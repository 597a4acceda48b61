//! Has PostgreSQL say what it makes of a change of its settings, and load its file.

use std::time::Duration;

use tokio::time::sleep;

use super::access::{Access, ClientError, within};
use super::session::{QUERY_LIMIT, Session};
use crate::engine::reload::{
    Change, FILE, LOADED, PARAMETERS, Parameter, RELOAD, Verdict, fits, is_in_force, judge, options,
    parameters, rejected,
};
use crate::engine::verify::Row;

/// How long all of it may take: other databases wait for it.
const LIMIT: Duration = Duration::from_secs(15);

/// PostgreSQL loads its files after it has answered, as soon as its first process is scheduled.
pub(super) const LOADING_PAUSE: Duration = Duration::from_millis(200);

/// What the engine says of this change.
pub(super) async fn verdict(access: &Access, change: &Change) -> Result<Verdict, ClientError> {
    limited(access, async {
        let known = Session::open(access).await?.parameters().await?;
        match tried(access, change, &known).await {
            Err(ClientError::Refused { reason, .. }) => Ok(rejected(&reason)),
            Err(error) => Err(error),
            Ok(_) => Ok(judge(change, &known)),
        }
    })
    .await
}

/// Has the engine load its file, if it has this text; whether it runs with the change.
pub(super) async fn reload(access: &Access, change: &Change, file: &str) -> Result<bool, ClientError> {
    limited(access, async {
        let session = Session::open(access).await?;
        let known = session.parameters().await?;
        // It may be another change than the one that was judged, as after ALTER SYSTEM.
        if judge(change, &known) != Verdict::Taken || session.file().await? != file {
            return Ok(false);
        }
        let tried = tried(access, change, &known).await?;
        let before = session.loaded().await?;
        session.send("pg_reload_conf()", RELOAD, QUERY_LIMIT).await?;
        loop {
            sleep(LOADING_PAUSE).await;
            let session = Session::open(access).await?;
            if session.loaded().await? != before {
                return Ok(is_in_force(change, file, &tried, &session.parameters().await?));
            }
        }
    })
    .await
}

/// What a session has that begins with the new values.
async fn tried(access: &Access, change: &Change, known: &[Parameter]) -> Result<Vec<Parameter>, ClientError> {
    let options = options(change, known);
    if options.is_empty() || !fits(&options) {
        return Ok(known.to_vec());
    }
    Session::with(access, Some(&options)).await?.parameters().await
}

async fn limited<T>(
    access: &Access,
    work: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    within("a change of its settings", access.limit(LIMIT), work).await
}

fn only(rows: &[Row]) -> Option<String> {
    rows.first()?.first()?.clone()
}

impl Session {
    async fn parameters(&self) -> Result<Vec<Parameter>, ClientError> {
        self.read("the list of settings", PARAMETERS, QUERY_LIMIT, parameters).await
    }

    pub(super) async fn loaded(&self) -> Result<String, ClientError> {
        self.read("the time of the last load", LOADED, QUERY_LIMIT, only).await
    }

    async fn file(&self) -> Result<String, ClientError> {
        self.read("the file of settings", FILE, QUERY_LIMIT, only).await
    }
}
