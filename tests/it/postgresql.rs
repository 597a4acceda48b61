//! The client of engines against a real PostgreSQL of this host: what a verification finds in its data, a
//! password that is changed, settings that it takes while it runs, its flush before a stop, and TLS.

mod answers;
mod archive;
mod certificates;
mod tls;
mod users;

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use freehold::api::database::EngineType;
use freehold::engine::client::{Access, Engines as _, PgWire, Tls};
use freehold::engine::reload::{Change, Verdict};
use freehold::engine::verify::{Finding, Verified};
use freehold_box::base::cache::{Cache, make_private_folder};
use freehold_box::base::error_chain::chain;
use freehold_box::machines::images::servers::SERVERS;
use freehold_box::writer;
use freehold_box::writer::local_postgresql::{Installed, LocalPostgresql, connect, programs};
use tokio::sync::OnceCell;
use tokio_postgres::Client;
use tokio_util::task::AbortOnDropHandle;

use crate::kit::wait::{seen, until};

/// The client's limits are for an engine in operation. Here hundreds of tests run on a few cores.
const SLOWNESS: u32 = 60;

/// A server of each major version that Freehold starts.
async fn majors() -> &'static [Installed] {
    static ALL: OnceCell<Result<Vec<Installed>, String>> = OnceCell::const_new();
    let installed = async || {
        let folder = Cache::from_environment().images();
        make_private_folder(&folder).unwrap();
        let mut all: Vec<Installed> = programs().unwrap().map(|_| Installed::Debian).into_iter().collect();
        for server in SERVERS {
            all.push(Installed::In(server.unpacked(&folder).await.map_err(|error| chain(&error))?));
        }
        Ok(all)
    };
    ALL.get_or_init(installed).await.as_ref().unwrap()
}

/// Tries this with a server of each major version that serves, and how the operator reaches it.
async fn on_each_major(test: impl AsyncFn(LocalPostgresql, Access)) {
    for installed in majors().await {
        println!("with PostgreSQL: {installed:?}");
        let (server, access) = serving(installed).await;
        test(server, access).await;
    }
}

async fn serving(installed: &Installed) -> (LocalPostgresql, Access) {
    let mut server = LocalPostgresql::of(installed.clone()).unwrap();
    server.start().await.unwrap();
    let writer::Access { address, username, password, database } = server.access();
    (server, Access { username, password, database, ..at(address) })
}

/// How the operator reaches what listens there.
fn at(address: SocketAddr) -> Access {
    Access {
        address: address.ip(),
        port: address.port(),
        username: "admin".to_owned(),
        password: "a-password-of-the-test".to_owned(),
        database: "postgres".to_owned(),
        tls: Tls::IfOffered,
        slowness: SLOWNESS,
    }
}

async fn connected(access: &Access) -> Result<(Client, AbortOnDropHandle<()>), tokio_postgres::Error> {
    let Access { address, port, username, password, database, tls: _, slowness: _ } = access.clone();
    connect(&writer::Access { address: (address, port).into(), username, password, database }).await
}

async fn sql(access: &Access, statement: &str) {
    let (client, _connection) = connected(access).await.unwrap();
    client.batch_execute(statement).await.unwrap();
}

async fn verified(access: &Access) -> Verified {
    PgWire.verify(access, EngineType::Postgresql, None).await.unwrap()
}

/// Has the server load its files, and waits until the sessions that begin have them.
async fn load(access: &Access) {
    let loaded_at = async || {
        let (client, _connection) = connected(access).await.unwrap();
        let row = client.query_one("SELECT pg_conf_load_time()::text", &[]).await.unwrap();
        row.get::<_, String>(0)
    };
    let before = loaded_at().await;
    sql(access, "SELECT pg_reload_conf()").await;
    until("the load of the files", || async {
        seen((loaded_at().await != before).then_some(()), || before.clone())
    })
    .await;
}

const TABLE: &str = "CREATE TABLE trades (id int PRIMARY KEY, note text); \
    INSERT INTO trades SELECT n, repeat('x', 500) FROM generate_series(1, 200) n;";

#[tokio::test]
async fn sound_data_passes_whatever_a_user_has_set_there() {
    on_each_major(async |_server, access| {
        assert_eq!(verified(&access).await.findings, [Finding::NoTables]);

        sql(&access, TABLE).await;
        sql(&access, "CREATE DATABASE \"an \"\"other\"").await;
        let other = Access { database: "an \"other".to_owned(), ..access.clone() };
        // An older amcheck in a schema of the user's, and what hinders a statement that creates.
        sql(&other, "CREATE SCHEMA \"a schema\"; CREATE EXTENSION amcheck SCHEMA \"a schema\" VERSION '1.2'")
            .await;
        sql(&other, TABLE).await;
        sql(
            &other,
            "CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE EXCEPTION 'not here'; END $$; \
         CREATE EVENT TRIGGER refuse ON ddl_command_start EXECUTE FUNCTION refuse()",
        )
        .await;
        // What an owner of the database may create: a function that would be called in place of amcheck's.
        sql(
            &access,
            "CREATE SCHEMA IF NOT EXISTS freehold_verification; \
         CREATE FUNCTION freehold_verification.verify_heapam(relation regclass, on_error_stop boolean) \
         RETURNS TABLE (msg text) LANGUAGE sql AS $$ SELECT 'corrupt' $$",
        )
        .await;
        sql(&access, "ALTER ROLE admin SET default_transaction_read_only = on").await;
        let found = verified(&access).await;
        assert_eq!((found.tables, found.rows, &found.findings), (2, 400, &vec![]));
        assert!(found.indexes.is_some_and(|indexes| indexes > 100), "those of the system, too: {found:?}");
    })
    .await;
}

#[tokio::test]
async fn an_administrator_who_is_no_superuser_compares_no_index() {
    on_each_major(async |_server, superuser| {
        sql(&superuser, TABLE).await;
        sql(
            &superuser,
            "CREATE ROLE keeper LOGIN PASSWORD 'a-password-of-the-test'; \
         GRANT pg_read_all_data TO keeper; ALTER TABLE trades OWNER TO keeper",
        )
        .await;
        let found = verified(&Access { username: "keeper".to_owned(), ..superuser }).await;
        assert_eq!((found.tables, found.rows, found.indexes), (1, 200, None), "{found:?}");
    })
    .await;
}

#[tokio::test]
async fn an_index_that_does_not_agree_with_its_table_is_found() {
    on_each_major(async |_server, access| {
        sql(&access, TABLE).await;
        // As after a C library that sorts otherwise: the index holds what the function gave before.
        sql(
            &access,
            "CREATE FUNCTION place(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1'; \
         CREATE INDEX trades_place ON trades (place(id)); \
         CREATE OR REPLACE FUNCTION place(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT -$1'",
        )
        .await;
        let found = verified(&access).await;
        let [Finding::Index { index, why }] = found.findings.as_slice() else { panic!("{found:?}") };
        assert_eq!(index, "postgres.public.trades_place");
        assert!(why.contains("lacks matching index tuple"), "{why}");
        assert_eq!((found.tables, found.rows), (1, 200), "every row can be read");
    })
    .await;
}

#[tokio::test]
async fn a_damaged_page_of_a_table_is_found() {
    on_each_major(async |mut server, access| {
        sql(&access, TABLE).await;
        sql(&access, "CHECKPOINT").await;
        let (client, connection) = connected(&access).await.unwrap();
        let row = client.query_one("SELECT pg_relation_filepath('trades')", &[]).await.unwrap();
        let file = server.data().join(row.get::<_, String>(0));
        drop((client, connection));
        server.kill();

        let mut file = std::fs::File::options().read(true).write(true).open(file).unwrap();
        let mut byte = [0_u8];
        file.seek(SeekFrom::Start(8192 + 8000)).unwrap();
        file.read_exact(&mut byte).unwrap();
        file.seek(SeekFrom::Start(8192 + 8000)).unwrap();
        file.write_all(&[!byte[0]]).unwrap();
        file.sync_all().unwrap();
        server.start().await.unwrap();

        let found = verified(&access).await;
        let [Finding::Unreadable { table, why }, others @ ..] = found.findings.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(table, "postgres.public.trades");
        assert!(why.contains("invalid page in block 1"), "{why}");
        assert!(others.iter().any(|it| matches!(it, Finding::Checksums(count) if *count > 0)), "{found:?}");
    })
    .await;
}

#[tokio::test]
async fn a_changed_password_is_the_only_one_that_is_let_in() {
    on_each_major(async |_server, old| {
        let next = Access { password: "the-next-one's \\ password".to_owned(), ..old.clone() };
        PgWire.change_password(&old, &next.password).await.unwrap();
        assert!(connected(&old).await.is_err());
        assert!(connected(&next).await.is_ok());
        // The answer was lost: the same request again.
        PgWire.change_password(&next, &next.password).await.unwrap();
        assert!(connected(&next).await.is_ok());
    })
    .await;
}

/// Where the next start would begin to repeat the log.
async fn redo(access: &Access) -> String {
    let (client, _connection) = connected(access).await.unwrap();
    let row = client.query_one("SELECT redo_lsn::text FROM pg_control_checkpoint()", &[]).await.unwrap();
    row.get(0)
}

#[tokio::test]
async fn a_flush_writes_what_is_in_memory_while_the_server_serves() {
    on_each_major(async |_server, access| {
        sql(&access, TABLE).await;
        sql(&access, "ALTER ROLE admin SET default_transaction_read_only = on").await;
        let (client, _connection) = connected(&access).await.unwrap();
        let before = redo(&access).await;
        PgWire.flush(&access, "CHECKPOINT", Duration::from_secs(60)).await.unwrap();
        assert_ne!(redo(&access).await, before);
        client.simple_query("SELECT count(*) FROM trades").await.unwrap();
    })
    .await;
}

fn change(key: &str, value: Option<&str>) -> Change {
    Change::from([(key.to_owned(), value.map(str::to_owned))])
}

async fn judged(access: &Access, key: &str, value: &str) -> Verdict {
    PgWire.judge_settings(access, &change(key, Some(value))).await.unwrap()
}

async fn is_rejected(access: &Access, key: &str, value: &str, expected: &str) {
    let verdict = judged(access, key, value).await;
    assert!(matches!(&verdict, Verdict::Rejected(why) if why.contains(expected)), "{key}: {verdict:?}");
}

#[tokio::test]
async fn a_setting_is_judged_by_a_session_that_begins_with_it() {
    on_each_major(async |_server, access| {
        for (key, value) in [("work_mem", "16MB"), ("Log_Connections", "on"), ("search_path", r#""a b", c"#)]
        {
            assert_eq!(judged(&access, key, value).await, Verdict::Taken, "{key}");
        }
        for (key, value, expected) in [
            ("work_mem", "lots", r#"invalid value for parameter "work_mem": "lots""#),
            ("work_mem", "1 meter", "Valid units for this parameter are"),
            ("timezone", "Nowhere", r#"invalid value for parameter "TimeZone""#),
            ("session_preload_libraries", "not_there", "could not access file"),
        ] {
            is_rejected(&access, key, value, expected).await;
        }
        // A reload takes the first, and no later start does; what is wrong with the others only a start says.
        for (key, value) in [("min_wal_size", "16MB"), ("autovacuum", "maybe"), ("max_connections", "many")] {
            assert_eq!(judged(&access, key, value).await, Verdict::AtStart, "{key}");
        }
        assert_eq!(judged(&access, "no_such_setting", "1").await, Verdict::AtStart);
    })
    .await;
}

#[tokio::test]
async fn what_is_gone_is_judged_as_what_is_left_and_before_what_is_new() {
    on_each_major(async |server, access| {
        let path = server.data().join("postgresql.conf");
        std::fs::write(path, "log_parser_stats = on\nlc_messages = 'C'\n").unwrap();
        load(&access).await;
        // The server has one of the two at most.
        is_rejected(&access, "log_statement_stats", "on", "invalid value").await;
        let mut change = change("log_statement_stats", Some("on"));
        change.insert("log_parser_stats".to_owned(), None);
        assert_eq!(PgWire.judge_settings(&access, &change).await.unwrap(), Verdict::Taken);
        let gone = Change::from([("lc_messages".to_owned(), None)]);
        assert_eq!(PgWire.judge_settings(&access, &gone).await.unwrap(), Verdict::Taken);
    })
    .await;
}

#[tokio::test]
async fn what_wins_over_the_file_or_was_wrong_before_changes_no_verdict_of_another_setting() {
    on_each_major(async |server, access| {
        sql(&access, "ALTER SYSTEM SET work_mem = '32MB'").await;
        sql(&access, "ALTER SYSTEM SET max_connections = 60").await;
        sql(&access, "ALTER ROLE admin SET statement_timeout = '1h'").await;
        // A name of another database is what a start takes and a session does not.
        std::fs::write(server.data().join("postgresql.conf"), "default_text_search_config = 'not_there'")
            .unwrap();
        load(&access).await;
        is_rejected(&access, "work_mem", "lots", "invalid value").await;
        assert_eq!(judged(&access, "work_mem", "16MB").await, Verdict::AtStart, "ALTER SYSTEM wins over it");
        assert_eq!(judged(&access, "statement_timeout", "1min").await, Verdict::AtStart, "ALTER ROLE, too");
        assert_eq!(
            judged(&access, "max_connections", "many").await,
            Verdict::AtStart,
            "it waits for a restart"
        );
        assert_eq!(judged(&access, "log_statement", "all").await, Verdict::Taken);
    })
    .await;
}

#[tokio::test]
async fn a_file_is_loaded_once_it_is_the_one_that_is_meant_and_is_in_force_once_a_session_has_it() {
    on_each_major(async |mut server, access| {
        let path = server.data().join("postgresql.conf");
        let loads = async |key: &str, value: Option<&str>, file: &str| {
            PgWire.reload_settings(&access, &change(key, value), file).await.unwrap()
        };
        let shows = async || {
            let (client, _connection) = connected(&access).await.unwrap();
            client.query_one("SHOW work_mem", &[]).await.unwrap().get::<_, String>(0)
        };
        let file = "work_mem = '16MB'\n";
        assert!(!loads("work_mem", Some("16MB"), file).await, "the kubelet has not updated it");
        assert_eq!(shows().await, "4MB");
        std::fs::write(&path, file).unwrap();
        assert_eq!(shows().await, "4MB");
        assert!(loads("work_mem", Some("16MB"), file).await);
        assert_eq!(shows().await, "16MB");
        std::fs::write(&path, "").unwrap();
        assert!(loads("work_mem", None, "").await);
        assert_eq!(shows().await, "4MB");
        std::fs::write(&path, file).unwrap();
        sql(&access, "ALTER SYSTEM SET work_mem = '32MB'").await;
        assert!(!loads("work_mem", Some("16MB"), file).await, "it has another value");
        assert!(!loads("work_mem", Some("16MB"), file).await, "and says so before it is loaded");
        sql(&access, "ALTER SYSTEM RESET work_mem").await;
        server.kill();
        server.start().await.unwrap();
        assert_eq!(shows().await, "16MB", "it starts with it");
    })
    .await;
}
