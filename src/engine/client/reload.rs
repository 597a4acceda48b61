//! Has an engine say what it makes of a change of its settings, and load them.

use std::time::Duration;

use tokio::time::sleep;

use super::access::{Access, ClientError};
use super::session::{QUERY_LIMIT, Session};
use crate::api::database::EngineType;
use crate::engine::reload::{Answer, Change, Verdict, postgresql, questdb};
use crate::engine::verify::Row;

/// PostgreSQL loads its files after it has answered, as soon as its first process is scheduled.
const LOADING_PAUSE: Duration = Duration::from_millis(200);

/// How often that is looked for: 4 s.
const LOADING_LOOKS: usize = 20;

/// What is read, as errors call it.
const SETTINGS: &str = "the list of settings";

/// Why an answer is not read.
const OTHER_FORM: &str = "it has other columns than are known";

/// What the engine says of this change.
pub(super) async fn read(access: &Access, change: &Change) -> Result<Answer, ClientError> {
    Session::open(access).await?.settings(change).await
}

/// Has the engine load its settings; whether it runs with them.
pub(super) async fn reload(access: &Access, change: &Change) -> Result<bool, ClientError> {
    let session = Session::open(access).await?;
    let answer = match change.engine {
        EngineType::Postgresql => {
            let before = session.loaded().await?;
            session.send("pg_reload_conf()", postgresql::RELOAD, QUERY_LIMIT).await?;
            after(access, &before).await?.settings(change).await?
        }
        EngineType::Questdb => {
            session.send("reload_config()", questdb::RELOAD, QUERY_LIMIT).await?;
            session.settings(change).await?
        }
        EngineType::Custom => return Ok(false),
    };
    Ok(answer.verdict == Verdict::Taken { is_seen: true })
}

/// A session of PostgreSQL that began after another load than this one.
async fn after(access: &Access, before: &str) -> Result<Session, ClientError> {
    for _ in 0..LOADING_LOOKS {
        sleep(LOADING_PAUSE).await;
        let session = Session::open(access).await?;
        if session.loaded().await? != before {
            return Ok(session);
        }
    }
    let limit = LOADING_PAUSE.saturating_mul(u32::try_from(LOADING_LOOKS).unwrap_or(u32::MAX));
    Err(ClientError::Silent { what: "pg_reload_conf()", limit })
}

impl Session {
    async fn loaded(&self) -> Result<String, ClientError> {
        let only = |rows: &[Row]| rows.first()?.first()?.clone();
        self.read("the time of the last load", postgresql::LOADED, QUERY_LIMIT, only).await
    }

    async fn settings(&self, change: &Change) -> Result<Answer, ClientError> {
        let all = |rows: &[Row]| Some(rows.to_vec());
        let judged = match change.engine {
            EngineType::Postgresql => {
                // In this order: the second shows what the first has found.
                let entries = self.read(SETTINGS, postgresql::ENTRIES, QUERY_LIMIT, all).await?;
                let parameters = self.read(SETTINGS, postgresql::PARAMETERS, QUERY_LIMIT, all).await?;
                postgresql::judge(change, &entries, &parameters)
            }
            EngineType::Questdb => {
                let parameters = self.read(SETTINGS, questdb::PARAMETERS, QUERY_LIMIT, all).await?;
                questdb::judge(change, &parameters).map(Answer::from)
            }
            EngineType::Custom => Some(Verdict::AtStart.into()),
        };
        judged.ok_or_else(|| ClientError::Unreadable { what: SETTINGS, reason: OTHER_FORM.to_owned() })
    }
}
