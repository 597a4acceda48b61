//! Users against a real PostgreSQL: what each role may do, and what follows a change.

mod dropped;

use freehold::api::database_user::UserRole;
use freehold::engine::client::{Access, ClientError, Engines as _, PgWire};
use freehold::engine::users::{self, Login, Mark, Rights, ShownUser, WantedUser};
use tokio_util::task::AbortOnDropHandle;

use super::{connected, on_each_major, sql};

/// A user of the database `shop` with the password of this number.
fn user(name: &str, role: UserRole, password: u32, before: Option<&WantedUser>) -> WantedUser {
    WantedUser {
        username: name.to_owned(),
        mark: Mark {
            uid: format!("uid-of-{name}"),
            rights: Rights { role, databases: ["shop".to_owned()].into() },
            password: format!("secret/{password}"),
            change: None,
        },
        to_grant: vec!["shop".to_owned()],
        tried_in: "shop".to_owned(),
        before: before.map(|before| before.mark.clone()),
    }
}

/// A password as Freehold makes it.
fn password(number: u32) -> String {
    format!("{number}bcdefghijklmnopqrstuvwxyz234567")
}

/// Puts the user as the operator does: where it had no answer in time, it looks again at what there is.
async fn put(access: &Access, user: &WantedUser, number: u32) -> Result<(), ClientError> {
    let mut user = user.clone();
    for _ in 0..100 {
        match PgWire.put_user(access, &user, &password(number)).await {
            // On a host that stands still a lock is not had in time, and nothing was changed.
            Err(error) if error.to_string().contains("lock timeout") => {}
            Err(ClientError::Silent { .. } | ClientError::Connect { .. }) => {
                let found = PgWire.user(access, &user.username, user.mark.rights.role, &[]).await;
                if let Ok(found) = found {
                    user.before = found.role.and_then(|role| role.mark);
                }
            }
            put => return put,
        }
    }
    panic!("the lock is never had, or no answer");
}

async fn shown(access: &Access, name: &str, role: UserRole) -> ShownUser {
    let databases = ["shop".to_owned(), "none".to_owned()];
    PgWire.user(access, name, role, &databases).await.unwrap()
}

/// How the user connects with the password of this number.
fn of(access: &Access, name: &str, number: u32) -> Access {
    let (username, database) = (name.to_owned(), "shop".to_owned());
    Access { username, password: password(number), database, ..access.clone() }
}

/// What the engine says of a statement; `None` when it carries it out.
async fn refusal(access: &Access, statement: &str) -> Option<String> {
    let (client, _connection) = connected(access).await.unwrap();
    let refused = client.batch_execute(statement).await.err()?;
    Some(refused.as_db_error().map_or_else(|| refused.to_string(), |error| error.message().to_owned()))
}

async fn may(access: &Access, statement: &str) {
    assert_eq!(refusal(access, statement).await, None, "{access:?}: {statement}");
}

async fn may_not(access: &Access, statement: &str) {
    let refused = refusal(access, statement).await.unwrap_or_default();
    let is_of_rights = ["permission denied", "must be owner", "must be superuser"];
    let is_refused = is_of_rights.iter().any(|text| refused.contains(text));
    assert!(is_refused, "{access:?}: {statement}: {refused:?}");
}

/// Creates a database `shop`, in which the administrator has a table.
async fn with_shop(access: &Access) -> Access {
    sql(access, "CREATE DATABASE shop").await;
    let shop = Access { database: "shop".to_owned(), ..access.clone() };
    sql(&shop, "CREATE TABLE old (id serial PRIMARY KEY, note text); INSERT INTO old (note) VALUES ('a')")
        .await;
    // As docs/users.md says of PostgreSQL 14, whose users may create there otherwise.
    sql(&shop, "REVOKE CREATE ON SCHEMA public FROM PUBLIC").await;
    shop
}

#[tokio::test]
async fn each_role_may_what_it_says_and_nothing_else_with_what_is_there_and_what_comes() {
    on_each_major(async |_server, access| {
        let shop = with_shop(&access).await;
        for (name, role) in [
            ("reader", UserRole::Read),
            ("writer", UserRole::Write),
            ("owner", UserRole::Owner),
            ("co-owner", UserRole::Owner),
        ] {
            put(&access, &user(name, role, 1, None), 1).await.unwrap();
            let found = shown(&access, name, role).await;
            assert_eq!((found.missing, found.lacking), (vec!["none".to_owned()], vec![]));
            let found = found.role.unwrap();
            assert_eq!((found.mark, found.is_privileged), (Some(user(name, role, 1, None).mark), false));
        }
        let [reader, writer, owner, co_owner] =
            ["reader", "writer", "owner", "co-owner"].map(|name| of(&access, name, 1));
        sql(&shop, "CREATE TABLE later (id serial PRIMARY KEY)").await;
        may(&owner, "CREATE TABLE new (id serial PRIMARY KEY, note text)").await;
        may(&owner, "CREATE SCHEMA stock; CREATE TABLE stock.parts (id serial PRIMARY KEY)").await;
        for table in ["old", "later", "new", "stock.parts"] {
            for all in [&reader, &writer, &owner] {
                may(all, &format!("SELECT count(*) FROM {table}")).await;
            }
            may_not(&reader, &format!("INSERT INTO {table} DEFAULT VALUES")).await;
            may(&writer, &format!("INSERT INTO {table} DEFAULT VALUES; DELETE FROM {table}")).await;
            may(&owner, &format!("INSERT INTO {table} DEFAULT VALUES; TRUNCATE {table}")).await;
            may_not(&writer, &format!("TRUNCATE {table}")).await;
        }
        for other in [&reader, &writer] {
            may_not(other, "CREATE TABLE mine (id int)").await;
            may_not(other, "CREATE SCHEMA mine").await;
            may_not(other, "ALTER TABLE new ADD COLUMN x int").await;
            may_not(other, "SET ROLE freehold_owner_shop").await;
        }
        may(&co_owner, "ALTER TABLE new ADD COLUMN price int; DROP TABLE stock.parts; DROP SCHEMA stock")
            .await;
        may(&owner, "CREATE EXTENSION pg_trgm").await;
        for all in [&reader, &writer, &owner] {
            may_not(all, "CREATE ROLE another").await;
            may_not(all, "SELECT * FROM pg_authid").await;
            may_not(all, "COPY old TO PROGRAM 'cat'").await;
            may_not(all, "CREATE DATABASE another").await;
            may_not(all, "DROP TABLE old").await;
            // The check of a foreign key runs as the owner of the table that it refers to, with casts of the
            // user's.
            may_not(all, "CREATE TABLE refers (x int REFERENCES old(id))").await;
            may_not(
                all,
                "CREATE TRIGGER t AFTER INSERT ON old EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            )
            .await;
        }
    })
    .await;
}

#[tokio::test]
async fn another_password_and_other_rights_hold_at_once_and_are_given_only_to_what_was_read() {
    on_each_major(async |_server, access| {
        let shop = with_shop(&access).await;
        let first = user("shop", UserRole::Owner, 1, None);
        put(&access, &first, 1).await.unwrap();
        let again = put(&access, &first, 1).await.unwrap_err();
        assert!(again.to_string().contains("changed meanwhile"), "{again}");
        let (open, _connection) = connected(&of(&access, "shop", 1)).await.unwrap();
        // What it takes for itself beside its role.
        let statement = "CREATE TABLE mine (id int); GRANT ALL ON mine TO shop; \
        ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO shop; RESET ROLE; CREATE TABLE own (id int)";
        open.batch_execute(statement).await.unwrap();

        let second = user("shop", UserRole::Owner, 2, Some(&first));
        put(&access, &second, 2).await.unwrap();
        assert_eq!(PgWire.login(&of(&access, "shop", 1)).await.unwrap(), Login::WrongPassword);
        assert_eq!(PgWire.login(&of(&access, "shop", 2)).await.unwrap(), Login::In);
        open.batch_execute("INSERT INTO mine VALUES (1)").await.unwrap();

        let third = user("shop", UserRole::Read, 2, Some(&second));
        put(&access, &third, 2).await.unwrap();
        let ended = open.batch_execute("INSERT INTO mine VALUES (2)").await;
        assert!(ended.is_err(), "an open session has the rights that were taken away");
        let reader = of(&access, "shop", 2);
        sql(&shop, "CREATE TABLE later (id int)").await;
        for table in ["mine", "own", "later"] {
            may(&reader, &format!("SELECT count(*) FROM {table}")).await;
            may_not(&reader, &format!("INSERT INTO {table} VALUES (2)")).await;
            may_not(&reader, &format!("DROP TABLE {table}")).await;
        }
        may_not(&reader, "SET ROLE freehold_owner_shop").await;
        let stale = put(&access, &user("shop", UserRole::Owner, 3, Some(&first)), 3).await;
        assert!(stale.is_err(), "of an operator that stood still");

        sql(&access, "ALTER ROLE shop NOLOGIN").await;
        put(&access, &user("shop", UserRole::Read, 3, Some(&third)), 3).await.unwrap();
        let locked = PgWire.login(&of(&access, "shop", 3)).await.unwrap();
        let why = "role \"shop\" is not permitted to log in".to_owned();
        assert_eq!(locked, Login::Refused(why), "what a person locked stays locked");
    })
    .await;
}

#[tokio::test]
async fn a_session_that_begins_while_rights_are_taken_away_does_not_keep_them() {
    on_each_major(async |_server, access| {
        with_shop(&access).await;
        let owner = user("shop", UserRole::Owner, 1, None);
        put(&access, &owner, 1).await.unwrap();
        // The role's row is locked, so that its change waits, and a client connects meanwhile.
        let (lock, _connection) = connected(&access).await.unwrap();
        lock.batch_execute("BEGIN; SELECT FROM pg_authid WHERE rolname = 'shop' FOR UPDATE").await.unwrap();
        let reader = user("shop", UserRole::Read, 1, Some(&owner));
        let (of_admin, changed) = (access.clone(), reader.clone());
        let change = tokio::spawn(async move { put(&of_admin, &changed, 1).await });
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        // In a transaction every look would show what the first one did.
        let (admin, _of_admin) = connected(&access).await.unwrap();
        while admin.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            assert!(!change.is_finished(), "nothing waits for the role");
            tokio::task::yield_now().await;
        }
        let (open, _other) = connected(&of(&access, "shop", 1)).await.unwrap();
        open.batch_execute("CREATE TABLE early (id int)").await.unwrap();
        lock.batch_execute("COMMIT").await.unwrap();
        change.await.unwrap().unwrap();
        assert!(open.batch_execute("CREATE TABLE late (id int)").await.is_err());
        may(&of(&access, "shop", 1), "SELECT * FROM early").await;
    })
    .await;
}

#[tokio::test]
async fn a_client_that_connects_again_at_once_holds_up_no_revocation() {
    on_each_major(async |_server, access| {
        with_shop(&access).await;
        let owner = user("shop", UserRole::Owner, 1, None);
        put(&access, &owner, 1).await.unwrap();
        let client = of(&access, "shop", 1);
        let pool = AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                if let Ok((open, _connection)) = connected(&client).await {
                    while open.batch_execute("SELECT 1").await.is_ok() {
                        tokio::task::yield_now().await;
                    }
                }
            }
        }));
        put(&access, &user("shop", UserRole::Read, 1, Some(&owner)), 1).await.unwrap();
        may_not(&of(&access, "shop", 1), "CREATE TABLE late (id int)").await;
        drop(pool);
    })
    .await;
}

#[tokio::test]
async fn a_revocation_that_was_interrupted_goes_on_and_one_that_was_not_confirmed_is_not_by_another() {
    on_each_major(async |_server, access| {
        with_shop(&access).await;
        let owner = user("shop", UserRole::Owner, 1, None);
        put(&access, &owner, 1).await.unwrap();
        let (open, _connection) = connected(&of(&access, "shop", 1)).await.unwrap();
        open.batch_execute("CREATE TABLE mine (id int)").await.unwrap();
        let reader = user("shop", UserRole::Read, 1, Some(&owner));
        // The operator ends after its first statement.
        let verifier = postgres_protocol::password::scram_sha_256(password(1).as_bytes());
        sql(&access, &users::change(&reader, "a", &verifier)).await;
        open.batch_execute("INSERT INTO mine VALUES (1)").await.unwrap();
        let before = shown(&access, "shop", UserRole::Read).await.role.unwrap().mark.unwrap();
        assert_eq!(before, reader.pending("a"));
        assert!(refusal(&access, &users::confirm(&reader, "b")).await.is_some(), "of another attempt");
        let again = WantedUser { before: Some(before), ..reader };
        put(&access, &again, 1).await.unwrap();
        assert!(open.batch_execute("INSERT INTO mine VALUES (2)").await.is_err(), "the session is ended now");
    })
    .await;
}

#[tokio::test]
async fn many_users_of_one_database_are_made_at_once() {
    on_each_major(async |_server, access| {
        with_shop(&access).await;
        let all = (0..6).map(|number| {
            let (access, name) = (access.clone(), format!("user-{number}"));
            async move { put(&access, &user(&name, UserRole::Write, 1, None), 1).await }
        });
        for made in futures::future::join_all(all).await {
            made.unwrap();
        }
    })
    .await;
}
