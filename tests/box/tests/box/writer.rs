//! The writer against a real PostgreSQL that is killed and started again; and what it says when rows are not
//! as it left them.

use std::time::Duration;

use freehold_box::writer::local_postgresql::{LIMIT, LocalPostgresql};
use freehold_box::writer::{Dialect, PACE, Source, Target, Writer};

const TABLE: &str = "written_rows";

fn target(server: &LocalPostgresql) -> Target {
    Target { dialect: Dialect::Postgresql, source: Source::Given(server.access()), table: TABLE }
}

async fn sql(server: &LocalPostgresql, statement: &str) {
    let (client, _connection) = server.connect().await.unwrap();
    client.batch_execute(statement).await.unwrap();
}

#[tokio::test]
async fn what_was_acknowledged_is_found_after_kills_and_the_outage_is_measured() {
    let Some(mut server) = LocalPostgresql::create().unwrap() else { return };
    let writer = Writer::start(target(&server), PACE);
    assert!(writer.is_served(Duration::from_millis(300)).await.unwrap_err().to_string().contains(
        "no row \
        acknowledged"
    ));
    assert_eq!((writer.first_answer(), writer.written().sent.len()), (None, 0));
    server.start().await.unwrap();
    writer.is_served(LIMIT).await.unwrap();
    assert!(writer.first_answer().is_some());
    let before = writer.observed();

    // The outage that is to be measured is at least this long.
    let down = Duration::from_secs(1);
    for _ in 0..2 {
        server.kill();
        tokio::time::sleep(down).await;
        server.start().await.unwrap();
        writer.is_served(LIMIT).await.unwrap();
        let observed = writer.observed();
        let outage = observed.outage.unwrap().length;
        assert!(outage >= down && outage < LIMIT, "{observed:?}");
    }

    let during = writer.verify(LIMIT).await.unwrap();
    during.check().unwrap();
    let written = writer.stop().await;
    assert!(written.acknowledged.len() >= before.acknowledged + 4, "{written:?}");
    let tally = written.verify(&target(&server), LIMIT).await.unwrap();
    tally.check().unwrap();
    assert!(tally.found.len() >= during.found.len());
}

#[tokio::test]
async fn rows_that_are_lost_doubled_or_foreign_are_named() {
    let Some(mut server) = LocalPostgresql::create().unwrap() else { return };
    server.start().await.unwrap();
    let writer = Writer::start(target(&server), PACE);
    writer.is_served(LIMIT).await.unwrap();
    writer.is_served(LIMIT).await.unwrap();
    let written = writer.stop().await;
    written.verify(&target(&server), LIMIT).await.unwrap().check().unwrap();

    sql(&server, &format!("DELETE FROM {TABLE} WHERE number = 2")).await;
    sql(&server, &format!("INSERT INTO {TABLE} (number) VALUES (1), (-7), (0)")).await;
    let untrue = written.verify(&target(&server), LIMIT).await.unwrap().check().unwrap_err();
    assert_eq!(
        untrue.to_string(),
        "1 row acknowledged and lost: 2; 2 rows found and never sent: -7, 0; 1 row found more than once: 1"
    );
}

#[tokio::test]
async fn a_row_without_an_answer_is_in_doubt_and_its_number_is_not_sent_again() {
    let Some(mut server) = LocalPostgresql::create().unwrap() else { return };
    server.start().await.unwrap();
    let writer = Writer::start(target(&server), PACE);
    writer.is_served(LIMIT).await.unwrap();

    // No row is written as long as this lock is held: longer than the writer waits for an answer.
    let (client, _connection) = server.connect().await.unwrap();
    client.batch_execute(&format!("BEGIN; LOCK TABLE {TABLE} IN ACCESS EXCLUSIVE MODE")).await.unwrap();
    let unanswered = writer.is_served(Duration::from_secs(6)).await.unwrap_err();
    assert!(
        freehold_box::base::error_chain::chain(&unanswered).contains(
            "gave no answer within 5 s to \
        INSERT INTO"
        ),
        "{unanswered:?}"
    );
    client.batch_execute("COMMIT").await.unwrap();
    writer.is_served(LIMIT).await.unwrap();

    let written = writer.stop().await;
    let in_doubt = written.sent.without(&written.acknowledged);
    assert!(!in_doubt.is_empty());
    let tally = written.verify(&target(&server), LIMIT).await.unwrap();
    tally.check().unwrap();
    // PostgreSQL carried the insert out once the lock was gone, for a client that had left.
    assert!(in_doubt.without(&tally.found).len() < in_doubt.len());
}
