//! Users against a real PostgreSQL: what each role may do, what follows a change, and what a dropped one
//! leaves.

use freehold::api::database_user::UserRole;
use freehold::engine::client::{Access, ClientError, Engines as _, PgWire};
use freehold::engine::users::{self, Login, Mark, Rights, ShownUser, WantedUser};

use freehold_box::writer::local_postgresql::LocalPostgresql;
use tokio_util::task::AbortOnDropHandle;

use super::{connected, serving, sql};

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

/// A server with a database `shop`, in which the administrator has a table.
async fn with_shop() -> Option<(LocalPostgresql, Access, Access)> {
    let (server, access) = serving().await?;
    sql(&access, "CREATE DATABASE shop").await;
    let shop = Access { database: "shop".to_owned(), ..access.clone() };
    sql(&shop, "CREATE TABLE old (id serial PRIMARY KEY, note text); INSERT INTO old (note) VALUES ('a')")
        .await;
    Some((server, access, shop))
}

#[tokio::test]
async fn each_role_may_what_it_says_and_nothing_else_with_what_is_there_and_what_comes() {
    let Some((_server, access, shop)) = with_shop().await else { return };
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
    may(&co_owner, "ALTER TABLE new ADD COLUMN price int; DROP TABLE stock.parts; DROP SCHEMA stock").await;
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
}

#[tokio::test]
async fn another_password_and_other_rights_hold_at_once_and_are_given_only_to_what_was_read() {
    let Some((_server, access, shop)) = with_shop().await else { return };
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
}

#[tokio::test]
async fn a_session_that_begins_while_rights_are_taken_away_does_not_keep_them() {
    let Some((_server, access, _)) = with_shop().await else { return };
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
}

#[tokio::test]
async fn a_client_that_connects_again_at_once_holds_up_no_revocation() {
    let Some((_server, access, _)) = with_shop().await else { return };
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
}

#[tokio::test]
async fn a_revocation_that_was_interrupted_goes_on_and_one_that_was_not_confirmed_is_not_by_another() {
    let Some((_server, access, _)) = with_shop().await else { return };
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
}

#[tokio::test]
async fn many_users_of_one_database_are_made_at_once() {
    let Some((_server, access, _)) = with_shop().await else { return };
    let all = (0..6).map(|number| {
        let (access, name) = (access.clone(), format!("user-{number}"));
        async move { put(&access, &user(&name, UserRole::Write, 1, None), 1).await }
    });
    for made in futures::future::join_all(all).await {
        made.unwrap();
    }
}

#[tokio::test]
async fn a_dropped_user_leaves_what_it_owned_and_is_dropped_in_every_database() {
    let Some((_server, access, shop)) = with_shop().await else { return };
    let wanted = user("shop", UserRole::Owner, 1, None);
    put(&access, &wanted, 1).await.unwrap();
    put(&access, &user("other", UserRole::Owner, 1, None), 1).await.unwrap();
    may(&of(&access, "shop", 1), "CREATE TABLE groups (id int); RESET ROLE; CREATE TABLE own (id int)").await;
    sql(&access, "CREATE DATABASE aside; ").await;
    sql(&access, "CREATE DATABASE of_shop OWNER shop").await;
    let aside = Access { database: "aside".to_owned(), ..access.clone() };
    let given = "CREATE TABLE given (id int); ALTER TABLE given OWNER TO shop; \
        CREATE FUNCTION does(what text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER \
        AS $$ BEGIN EXECUTE what; END $$; ALTER FUNCTION does(text) OWNER TO shop; \
        GRANT CREATE ON SCHEMA public TO shop";
    sql(&aside, given).await;
    let (open, _connection) = connected(&of(&access, "shop", 1)).await.unwrap();
    PgWire.drop_user(&access, "shop", &wanted.mark).await.unwrap();
    assert!(open.batch_execute("SELECT 1").await.is_err(), "its sessions end");
    assert_eq!(shown(&access, "shop", UserRole::Owner).await.role, None);
    assert!(PgWire.drop_user(&access, "shop", &wanted.mark).await.is_err(), "it is not there");
    may(&of(&access, "other", 1), "ALTER TABLE own ADD COLUMN x int; ALTER TABLE groups ADD COLUMN x int")
        .await;
    sql(&shop, "SELECT * FROM own").await;
    sql(&aside, "SELECT * FROM given").await;
    let left = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'of_shop' \
        UNION SELECT pg_get_userbyid(proowner) FROM pg_proc WHERE proname = 'does'";
    let (client, _of_client) = connected(&aside).await.unwrap();
    let left = client.query_one(left, &[]).await.unwrap().get::<_, String>(0);
    assert_eq!(left, "freehold_left", "a function of the user's does not run as a superuser");
    let does = Access { database: "aside".to_owned(), ..of(&access, "other", 1) };
    may_not(&does, "SELECT does('CREATE ROLE another SUPERUSER')").await;
    let foreign = PgWire.drop_user(&access, "admin", &wanted.mark).await;
    assert!(foreign.is_err(), "without the comment nothing is dropped");
}

#[tokio::test]
async fn what_freehold_has_not_created_is_seen_and_a_database_that_is_created_anew_lacks_its_rights() {
    let Some((_server, access, _)) = with_shop().await else { return };
    sql(&access, "CREATE ROLE shop LOGIN CREATEROLE; COMMENT ON ROLE shop IS 'of the shop'").await;
    let role = shown(&access, "shop", UserRole::Read).await.role.unwrap();
    assert_eq!((role.mark, role.is_privileged), (None, true));
    assert!(put(&access, &user("shop", UserRole::Read, 1, None), 1).await.is_err());
    sql(&access, "DROP OWNED BY shop; DROP ROLE shop").await;
    let of_groups =
        "SELECT string_agg(quote_ident(rolname), ', ') FROM pg_roles WHERE rolname LIKE 'freehold%'";
    let (client, _connection) = connected(&access).await.unwrap();
    assert!(client.query_one(of_groups, &[]).await.unwrap().get::<_, Option<String>>(0).is_some());

    sql(&access, "CREATE DATABASE stock").await;
    sql(&access, "CREATE ROLE freehold_write_stock LOGIN").await;
    let mut buyer = user("buyer", UserRole::Read, 1, None);
    buyer.to_grant = vec!["stock".to_owned()];
    let taken = put(&access, &buyer, 1).await.unwrap_err().to_string();
    assert!(taken.contains("role freehold_write_stock exists and was not created by Freehold"), "{taken}");
    put(&access, &user("buyer", UserRole::Read, 1, None), 1).await.unwrap();
    assert_eq!(shown(&access, "buyer", UserRole::Read).await.lacking, Vec::<String>::new());
    sql(&access, "DROP DATABASE shop").await;
    assert_eq!(shown(&access, "buyer", UserRole::Read).await.missing.len(), 2);
    sql(&access, "CREATE DATABASE shop").await;
    assert_eq!(shown(&access, "buyer", UserRole::Read).await.lacking, ["shop"]);
}

/// The settings and the statements with which the engine's start locks users in restored data.
fn of_start() -> (Vec<&'static str>, &'static str) {
    let start = include_str!("../../../src/engine/postgresql/start.sh");
    let between = |from: &str, to: &str| start.split_once(from).unwrap().1.split_once(to).unwrap().0;
    let alone = between("postgres --single -D \"$PGDATA\" \"$@\" ", " postgres >/dev/null");
    let settings = alone.split(" -c ").map(|part| part.trim_matches([' ', '\\', '\n']));
    let settings = settings.map(|setting| setting.trim_start_matches("-c "));
    let settings = settings.filter(|setting| !setting.starts_with("config_file=")).collect();
    (settings, between("<<'STATEMENTS'\n", "STATEMENTS\n"))
}

/// What a user may leave in `public` of the administrator's database on PostgreSQL 14: an operator that is
/// taken for the one that compares ids.
const HOSTILE: &str = "CREATE FUNCTION hostile(oid, regclass) RETURNS bool LANGUAGE plpgsql AS \
    $$ BEGIN RAISE EXCEPTION 'a user of the data runs as a superuser'; END $$; \
    CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = regclass, FUNCTION = hostile)";

#[tokio::test]
async fn users_in_restored_data_are_locked_until_their_database_user_lets_them_in_again() {
    let Some((mut server, access, _)) = with_shop().await else { return };
    let made = user("shop", UserRole::Owner, 1, None);
    for name in ["shop", "dropped", "locked"] {
        put(&access, &user(name, UserRole::Owner, 1, None), 1).await.unwrap();
    }
    sql(&access, "ALTER ROLE locked NOLOGIN; CREATE ROLE person LOGIN; COMMENT ON ROLE person IS 'a b c'")
        .await;
    // A database may be called as a comment of a user that is taken over begins.
    let of_name = "CREATE ROLE named LOGIN; \
        COMMENT ON ROLE named IS 'freehold.dev/DatabaseUser uid Owner taken-x secret/1'";
    sql(&access, of_name).await;
    sql(&access, HOSTILE).await;
    sql(&access, "CHECKPOINT").await;
    server.kill();
    let (settings, statements) = of_start();
    assert!(settings.contains(&"search_path=pg_catalog"), "{settings:?}");
    // What was interrupted is done again.
    for statements in [statements.lines().next().unwrap(), statements] {
        server.carry_out_alone(&settings, &format!("{statements}\n")).await.unwrap();
    }
    server.start().await.unwrap();
    let (client, _connection) = connected(&access).await.unwrap();
    let open = "SELECT string_agg(rolname, ' ' ORDER BY rolname) FROM pg_roles WHERE rolcanlogin";
    assert_eq!(client.query_one(open, &[]).await.unwrap().get::<_, String>(0), "admin person");

    let found = shown(&access, "shop", UserRole::Owner).await.role.unwrap().mark.unwrap();
    assert_eq!((&found.uid, &found.rights), (&made.mark.uid, &made.mark.rights));
    assert_eq!(found.change.as_deref(), Some("pending-restored"));
    let named = shown(&access, "named", UserRole::Owner).await.role.unwrap().mark.unwrap();
    assert_eq!(named.change.as_deref(), Some("pending-restored"), "it is not taken over");
    put(&access, &WantedUser { before: Some(found), ..made.clone() }, 1).await.unwrap();
    may(&of(&access, "shop", 1), "CREATE TABLE new (id int)").await;
    let found = shown(&access, "locked", UserRole::Owner).await.role.unwrap().mark.unwrap();
    assert_eq!(
        found,
        user("locked", UserRole::Owner, 1, None).mark,
        "a person has locked it, and it stays so"
    );
    let other = user("dropped", UserRole::Read, 2, None);
    let found = shown(&access, "dropped", UserRole::Read).await.role.unwrap().mark.unwrap();
    let taking = Mark { uid: "another".to_owned(), ..other.mark };
    put(&access, &WantedUser { mark: taking, before: Some(found), ..other }, 2).await.unwrap();
    assert_eq!(PgWire.login(&of(&access, "dropped", 2)).await.unwrap(), Login::In);
}
