//! Every sentence about a BackupSchedule, in a golden file: a changed one shows in a review.

use super::*;
use crate::controller::backup_schedule::messages;
use crate::controller::tests::golden::{Sentence, compare_sentences, complete, variant};

#[test]
fn every_sentence_is_in_the_golden_file() {
    let backup = || "nightly-202606010330".to_owned();
    let waits = complete(vec![
        ScheduleWait::Invalid(InvalidSchedule::Fields(4)),
        ScheduleWait::Invalid(InvalidSchedule::Cron("minute must be in range 0..=59; found 61".to_owned())),
        ScheduleWait::Invalid(InvalidSchedule::TimeZone("Mars/Olympus".to_owned())),
        ScheduleWait::Invalid(InvalidSchedule::Day("L".to_owned())),
        ScheduleWait::NeverComes("0 0 30 2 *".to_owned()),
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
    let others = [
        Sentence::other("condition Ready", messages::READY.to_owned()),
        Sentence::other("event BackupScheduled", messages::events::scheduled(&backup())),
        Sentence::other("event BackupExpired", messages::events::expired(&backup())),
        Sentence::other("event BackupSkipped", messages::events::skipped("nightly-202606020330", &why)),
    ];
    compare_sentences("backup_schedule", &waits.chain(others).collect::<Vec<_>>());
}
