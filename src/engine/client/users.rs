//! Reads, makes and drops the users of a PostgreSQL over its connections.

use std::time::Duration;

use data_encoding::HEXLOWER;
use postgres_protocol::password::scram_sha_256;
use tokio::time::sleep;

use super::access::{Access, ClientError};
use super::session::{QUERY_LIMIT, Session};
use crate::api::database_user::UserRole;
use crate::engine::users::rights::{on_what_comes, on_what_is_there};
use crate::engine::users::{self, Login, Mark, ShownUser, WantedUser, group};
use crate::engine::verify::{names, only, pairs};

/// How long a statement may take that changes every table of a database. The engine ends it before, by
/// `statement_timeout`.
const CHANGE_LIMIT: Duration = Duration::from_secs(30);

/// How long a change waits for another client's lock.
const LOCK_LIMIT: Duration = Duration::from_secs(5);

/// How long the engine works at a statement. Less than `CHANGE_LIMIT`.
const STATEMENT_LIMIT: Duration = Duration::from_secs(25);

/// How often, and how long after each other, a user's sessions are ended until there is none.
const ENDINGS: u32 = 50;
const ENDING_PAUSE: Duration = Duration::from_millis(100);

/// A connection to this database.
async fn session(access: &Access, database: &str) -> Result<Session, ClientError> {
    let access = Access { database: database.to_owned(), ..access.clone() };
    let options = users::options(access.limit(LOCK_LIMIT), access.limit(STATEMENT_LIMIT));
    Session::with(&access, Some(&options)).await
}

/// What the engine has of the user.
pub(super) async fn read(
    access: &Access,
    username: &str,
    role: UserRole,
    databases: &[String],
) -> Result<ShownUser, ClientError> {
    let session = session(access, &access.database).await?;
    let what = "the role of the user";
    let shown = session.read(what, &users::role(username), QUERY_LIMIT, users::read_role).await?;
    let (what, statement) = ("the databases of the user", users::databases(role, databases));
    let there = session.read(what, &statement, QUERY_LIMIT, pairs).await?;
    let of =
        |name: &String| there.iter().find(|(found, _)| found == name).map(|(_, is_given)| is_given == "t");
    let which = |is: Option<bool>| databases.iter().filter(|name| of(name) == is).cloned().collect();
    Ok(ShownUser { role: shown, missing: which(None), lacking: which(Some(false)) })
}

/// Makes the user what it is to be, and tries it, before its comment says so.
pub(super) async fn put(access: &Access, user: &WantedUser, password: &str) -> Result<(), ClientError> {
    for database in &user.to_grant {
        let session = session(access, database).await?;
        session.send("the rights of users", &on_what_comes(database), CHANGE_LIMIT).await?;
        session.send("the rights of users", &on_what_is_there(database), CHANGE_LIMIT).await?;
    }
    let main = session(access, &access.database).await?;
    let attempt = attempt()?;
    let statement = users::change(user, &attempt, &scram_sha_256(password.as_bytes()));
    main.send("ALTER ROLE", &statement, QUERY_LIMIT).await?;
    if user.takes_away() {
        disown(&main, access, &user.username, &user.pending(&attempt)).await?;
    }
    try_out(access, user, password).await?;
    main.send("COMMENT ON ROLE", &users::confirm(user, &attempt), QUERY_LIMIT).await?;
    Ok(())
}

/// A word for one attempt: no other one has it.
fn attempt() -> Result<String, ClientError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| {
        ClientError::NoAccess(format!("the operating system gave no randomness: {error}"))
    })?;
    Ok(HEXLOWER.encode(&bytes))
}

/// Ends the user's sessions, leaves it nothing in any database, and drops it.
pub(super) async fn drop_role(access: &Access, username: &str, mark: &Mark) -> Result<(), ClientError> {
    let main = session(access, &access.database).await?;
    main.send("ALTER ROLE", &users::lock_out(username, mark), QUERY_LIMIT).await?;
    disown(&main, access, username, mark).await?;
    main.send("DROP ROLE", &users::drop_role(username, mark), QUERY_LIMIT).await?;
    Ok(())
}

/// Ends the sessions that the user has, and all that it owns or was given beside the roles of Freehold.
async fn disown(main: &Session, access: &Access, username: &str, mark: &Mark) -> Result<(), ClientError> {
    end_sessions(main, username, ENDINGS.saturating_mul(access.slowness)).await?;
    main.send("REASSIGN OWNED", &users::disown(username, mark, &access.database), CHANGE_LIMIT).await?;
    let what = "the databases in which the user owns something";
    for database in main.read(what, &users::depending(username), QUERY_LIMIT, names).await? {
        let session = session(access, &database).await?;
        let statement = users::disown(username, mark, &database);
        session.send("REASSIGN OWNED", &statement, CHANGE_LIMIT).await?;
    }
    Ok(())
}

/// Ends the sessions that began before now. One that is being let in shows a moment later: two looks in a row
/// find none.
async fn end_sessions(main: &Session, username: &str, endings: u32) -> Result<(), ClientError> {
    let what = "the end of the sessions of the user";
    let until = main.read("the time of the engine", users::NOW, QUERY_LIMIT, only).await?;
    let mut is_empty = false;
    for _ in 0..endings {
        let ended = main.read(what, &users::end_sessions(username, &until), QUERY_LIMIT, names).await?;
        if ended.is_empty() && is_empty {
            return Ok(());
        }
        is_empty = ended.is_empty();
        sleep(ENDING_PAUSE).await;
    }
    Err(ClientError::Silent { what, limit: ENDING_PAUSE * endings })
}

/// Connects as the user, if a connection is free. What an owner creates must belong to the owners.
async fn try_out(access: &Access, user: &WantedUser, password: &str) -> Result<(), ClientError> {
    let (username, database) = (user.username.clone(), user.tried_in.clone());
    let access = Access { username, password: password.to_owned(), database, ..access.clone() };
    let session = match Session::login(&access).await {
        Ok((Login::In, Some(session))) => session,
        Ok((Login::WrongPassword, _)) => {
            let reason = "the engine does not take the password that it was given".to_owned();
            return Err(ClientError::Connect { address: access.address, reason });
        }
        // A person lets it connect no more, or every connection is in use: it is tried at the next pass.
        Ok(_) | Err(_) => return Ok(()),
    };
    let rights = &user.mark.rights;
    if rights.role != UserRole::Owner || !rights.databases.contains(&access.database) {
        return Ok(());
    }
    let what = "ALTER ROLE ... SET role";
    let acts_as = session.read(what, "SELECT current_user", QUERY_LIMIT, names).await;
    if acts_as.is_ok_and(|name| name != [group(UserRole::Owner, &access.database)]) {
        // PostgreSQL's release notes of 17.2, 16.6, 15.10 and 14.15: the releases before them ignore it.
        let reason = "this release of PostgreSQL ignores it: change spec.engine.version to a newer one";
        return Err(ClientError::Refused { what, reason: reason.to_owned() });
    }
    Ok(())
}

/// Whether the engine lets this user in.
pub(super) async fn login(access: &Access) -> Result<Login, ClientError> {
    Ok(Session::login(access).await?.0)
}
