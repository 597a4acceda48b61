//! Every sentence about a BackupSchedule, in a golden file: a changed one shows in a review.

use super::*;
use crate::controller::backup_schedule::messages;
use crate::controller::backup_schedule::wait::NotVerified;
use crate::controller::tests::golden::{Sentence, compare_sentences, complete, variant};
use crate::engine::verify::Finding;

#[test]
fn every_sentence_is_in_the_golden_file() {
    let backup = || "nightly-202606010330".to_owned();
    let waits = complete(vec![
        ScheduleWait::Invalid(Field::Schedule, InvalidSchedule::Fields(4)),
        ScheduleWait::Invalid(
            Field::Schedule,
            InvalidSchedule::Cron("minute must be in range 0..=59; found 61".to_owned()),
        ),
        ScheduleWait::Invalid(Field::Schedule, InvalidSchedule::TimeZone("Mars/Olympus".to_owned())),
        ScheduleWait::Invalid(Field::Schedule, InvalidSchedule::Day("L".to_owned())),
        ScheduleWait::NeverComes(Field::Schedule, "0 0 30 2 *".to_owned()),
        ScheduleWait::Invalid(Field::Verify, InvalidSchedule::Fields(4)),
        ScheduleWait::QueryOfCustom,
        ScheduleWait::Suspended,
        ScheduleWait::NoDatabase("orders".to_owned()),
        ScheduleWait::Unfinished(backup()),
        ScheduleWait::Failed(backup()),
        ScheduleWait::NameTaken(backup()),
    ]);
    let waits = waits
        .iter()
        .map(|wait| Sentence::wait(variant(wait), wait.reason(), wait.is_stalled(), wait.message()));
    let why = ScheduleWait::Unfinished(backup()).message();
    let not_verified = not_verified();
    let first = NotVerified::message_of(&not_verified[..1]);
    let others = [
        Sentence::other("condition Ready", messages::READY.to_owned()),
        Sentence::other("event BackupScheduled", messages::events::scheduled(&backup())),
        Sentence::other("event BackupExpired", messages::events::expired(&backup())),
        Sentence::other("event BackupSkipped", messages::events::skipped("nightly-202606020330", &why)),
    ];
    let others = others.into_iter().chain([
        Sentence::other("event BackupVerified", messages::events::verified("verify-nightly-abcdefgh")),
        Sentence::other("event VerificationFailed", messages::events::not_verified(&first)),
    ]);
    let not_verified =
        not_verified.iter().map(|it| Sentence::other("condition Verified, false", it.message()));
    compare_sentences("backup_schedule", &waits.chain(others).chain(not_verified).collect::<Vec<_>>());
}

fn not_verified() -> Vec<NotVerified> {
    let name = || "verify-nightly-abcdefgh".to_owned();
    let why = "Backup nightly-202606010330 has failed, or its snapshot is gone".to_owned();
    let timeout = "no connection to the engine at 10.0.0.1: refused".to_owned();
    let found = complete(vec![
        Finding::Unreadable { table: "trades".to_owned(), why: "could not open file".to_owned() },
        Finding::Corrupt {
            table: "postgres.public.trades".to_owned(),
            why: "block 0: xmin 3 precedes relation freeze threshold 0:726".to_owned(),
        },
        Finding::Index {
            index: "postgres.public.trades_pkey".to_owned(),
            why: "heap tuple (0,1) from table \"trades\" lacks matching index tuple within index \"trades_pkey\""
                .to_owned(),
        },
        Finding::Suspended("trades".to_owned()),
        Finding::NoTables,
        Finding::Checksums(3),
        Finding::Answer("f".to_owned()),
        Finding::QueryRefused("table does not exist".to_owned()),
    ]);
    let mut all = vec![
        NotVerified::NotCreated { minutes: 120 },
        NotVerified::Stalled { name: name(), why },
        NotVerified::NotReady { name: name(), minutes: 120, why: "waiting for the machine".to_owned() },
        NotVerified::NotChecked { name: name(), minutes: 120, why: Some(timeout) },
        NotVerified::NotChecked { name: name(), minutes: 120, why: None },
    ];
    all.extend(found.into_iter().map(NotVerified::Found));
    complete(all)
}

#[test]
fn of_many_findings_a_few_are_named() {
    let many: Vec<NotVerified> =
        (0..9).map(|number| NotVerified::Found(Finding::Suspended(format!("table-{number}")))).collect();
    let text = NotVerified::message_of(&many);
    assert!(
        text.contains("table-4") && !text.contains("table-5") && text.ends_with("; and 4 more"),
        "{text}"
    );
    assert_eq!(NotVerified::message_of(&many[..1]), many[0].message());
}
