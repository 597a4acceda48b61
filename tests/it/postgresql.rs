//! The client of engines against a real PostgreSQL of this host: what a verification finds in its data, and a
//! password that is changed.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};

use freehold::api::database::EngineType;
use freehold::engine::client::{Access, Engines as _, PgWire};
use freehold::engine::verify::{Finding, Verified};
use freehold_box::writer;
use freehold_box::writer::local_postgresql::{LocalPostgresql, connect};
use tokio_postgres::Client;
use tokio_util::task::AbortOnDropHandle;

/// A server that serves, and how the operator reaches it; `None` where PostgreSQL is not installed.
async fn serving() -> Option<(LocalPostgresql, Access)> {
    let mut server = LocalPostgresql::create().unwrap()?;
    server.start().await.unwrap();
    let writer::Access { address, username, password, database } = server.access();
    let access = Access { address: address.ip(), port: address.port(), username, password, database };
    Some((server, access))
}

async fn connected(access: &Access) -> Result<(Client, AbortOnDropHandle<()>), tokio_postgres::Error> {
    let Access { address, port, username, password, database } = access.clone();
    connect(&writer::Access { address: (address, port).into(), username, password, database }).await
}

async fn sql(access: &Access, statement: &str) {
    let (client, _connection) = connected(access).await.unwrap();
    client.batch_execute(statement).await.unwrap();
}

async fn verified(access: &Access) -> Verified {
    PgWire.verify(access, EngineType::Postgresql, None).await.unwrap()
}

const TABLE: &str = "CREATE TABLE trades (id int PRIMARY KEY, note text); \
    INSERT INTO trades SELECT n, repeat('x', 500) FROM generate_series(1, 200) n;";

#[tokio::test]
async fn sound_data_passes_whatever_a_user_has_set_there() {
    let Some((_server, access)) = serving().await else { return };
    assert_eq!(verified(&access).await.findings, [Finding::NoTables]);

    sql(&access, TABLE).await;
    sql(&access, "CREATE DATABASE \"an \"\"other\"").await;
    let other = Access { database: "an \"other".to_owned(), ..access.clone() };
    // An amcheck of an older release in a schema of the user's, and what hinders a statement that creates.
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
    sql(&access, "ALTER ROLE admin SET default_transaction_read_only = on").await;
    let found = verified(&access).await;
    assert_eq!((found.tables, found.rows, &found.findings), (2, 400, &vec![]));
    assert!(found.indexes.is_some_and(|indexes| indexes > 100), "those of the system, too: {found:?}");
}

#[tokio::test]
async fn an_administrator_who_is_no_superuser_compares_no_index() {
    let Some((_server, superuser)) = serving().await else { return };
    sql(&superuser, TABLE).await;
    sql(
        &superuser,
        "CREATE ROLE keeper LOGIN PASSWORD 'a-password-of-the-test'; \
         GRANT pg_read_all_data TO keeper; ALTER TABLE trades OWNER TO keeper",
    )
    .await;
    let found = verified(&Access { username: "keeper".to_owned(), ..superuser }).await;
    assert_eq!((found.tables, found.rows, found.indexes), (1, 200, None), "{found:?}");
}

#[tokio::test]
async fn an_index_that_does_not_agree_with_its_table_is_found() {
    let Some((_server, access)) = serving().await else { return };
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
}

#[tokio::test]
async fn a_damaged_page_of_a_table_is_found() {
    let Some((mut server, access)) = serving().await else { return };
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
}

#[tokio::test]
async fn a_changed_password_is_the_only_one_that_is_let_in() {
    let Some((_server, old)) = serving().await else { return };
    let next = Access { password: "the-next-one's \\ password".to_owned(), ..old.clone() };
    PgWire.change_password(&old, &next.password).await.unwrap();
    assert!(connected(&old).await.is_err());
    assert!(connected(&next).await.is_ok());
    // The answer was lost: the same request again.
    PgWire.change_password(&next, &next.password).await.unwrap();
    assert!(connected(&next).await.is_ok());
}
