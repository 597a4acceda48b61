//! Changes the password of PostgreSQL's administrator over a connection.

use postgres_protocol::password::scram_sha_256;

use super::access::{Access, ClientError};
use super::session::{QUERY_LIMIT, Session};
use crate::engine::verify::{literal, only, quoted};

/// The administrator's password as the engine stores it.
const STORED: &str = "SELECT rolpassword FROM pg_catalog.pg_authid WHERE rolname = current_user";

/// Changes it, unless the engine has it already, and tries it. The one in force is tried first, so that the
/// engine's log has no failed login of a rotation that nothing interrupts.
pub(super) async fn change(access: &Access, next: &str) -> Result<(), ClientError> {
    let with_next = Access { password: next.to_owned(), ..access.clone() };
    let session = match Session::open(access).await {
        Ok(session) => session,
        // An earlier attempt came this far. Where it did not, the first error says why.
        Err(error) => return Session::open(&with_next).await.map(drop).map_err(|_| error),
    };
    let stored = session.read("the password that is stored", STORED, QUERY_LIMIT, only).await?;
    let statement = statement(&access.username, &stored, &scram_sha_256(next.as_bytes()));
    session.send("ALTER ROLE", &statement, QUERY_LIMIT).await?;
    Session::open(&with_next).await.map(drop)
}

/// The password is in it as the engine stores it, which opens no connection: logs may show statements. It is
/// changed only while the engine has the one that was read, since this process may have stood still while
/// another operator rotated the password. A commit that a power cut takes back would leave an engine that
/// refuses what the Secret has, so this one waits for the volume; and it writes, whatever the settings say of
/// other transactions.
fn statement(username: &str, stored: &str, verifier: &str) -> String {
    let (stored, verifier) = (literal(stored), literal(verifier));
    format!(
        "SET transaction_read_only = off; SET synchronous_commit = on; DO $freehold$ BEGIN \
         IF ({STORED}) IS DISTINCT FROM {stored} THEN \
         RAISE EXCEPTION 'the password was changed meanwhile'; END IF; \
         ALTER ROLE {} WITH PASSWORD {verifier}; END $freehold$",
        quoted(username)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statement_has_no_password_writes_to_the_volume_and_changes_only_what_was_read() {
        let password = "abcdefghijklmnopqrstuvwxyz234567";
        let statement = statement("admin", "SCRAM-SHA-256$1:old", &scram_sha_256(password.as_bytes()));
        assert!(!statement.contains(password), "{statement}");
        let start = "SET transaction_read_only = off; SET synchronous_commit = on; DO $freehold$ BEGIN \
            IF (SELECT rolpassword FROM pg_catalog.pg_authid WHERE rolname = current_user) \
            IS DISTINCT FROM 'SCRAM-SHA-256$1:old' THEN \
            RAISE EXCEPTION 'the password was changed meanwhile'; END IF; \
            ALTER ROLE \"admin\" WITH PASSWORD 'SCRAM-SHA-256$4096:";
        assert!(statement.starts_with(start), "{statement}");
        assert!(statement.ends_with("'; END $freehold$"), "{statement}");
    }
}
