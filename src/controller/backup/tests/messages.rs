//! Every sentence about a Backup, in a golden file: a changed one shows in a review.

use strum::IntoEnumIterator as _;

use super::*;
use crate::api::verification::{BackupVerification, VerificationResult};
use crate::controller::backup::messages;
use crate::controller::blocker::Blocker;
use crate::controller::tests::golden::{Sentence, compare_sentences, complete, variant};

fn waits() -> Vec<BackupWait> {
    let volume = || VolumeId("vol-1".to_owned());
    let error = CloudError::new("CreateSnapshot", Some("UnauthorizedOperation"), "what EC2 says", None, None);
    let unsafe_to_delete = Blocker::SnapshotTagMissing {
        id: snap("snap-1"),
        key: "freehold.dev/backup-uid".to_owned(),
        value: "uid".to_owned(),
    };
    complete(vec![
        BackupWait::AddingFinalizer,
        BackupWait::FirstSync,
        BackupWait::NoDatabase("orders".into()),
        BackupWait::NeverReady("orders".into()),
        BackupWait::NoVolume("orders".into()),
        BackupWait::Other("nightly-1".into()),
        BackupWait::EngineNotReady("orders".into()),
        BackupWait::EngineUnreadable("no connection to the engine at 10.0.0.1: refused".into()),
        BackupWait::OtherCheckpoint(at(0)),
        BackupWait::RootElsewhere("orders".into()),
        BackupWait::Pausing,
        BackupWait::NearlyFull("orders".into()),
        BackupWait::BeginningCheckpoint,
        BackupWait::CheckpointUnconfirmed,
        BackupWait::Releasing,
        BackupWait::ReleaseOwed("no connection to the engine at 10.0.0.1: refused".into()),
        BackupWait::Blocked(CallBlocked::Refused { call: Call::CreateSnapshot, error, until: None }),
        BackupWait::Requesting(volume()),
        BackupWait::Attached(volume()),
        BackupWait::InDoubt(volume()),
        BackupWait::Recording(snap("snap-1")),
        BackupWait::NotListed(snap("snap-1")),
        BackupWait::Tagging(snap("snap-1")),
        BackupWait::Pending(snap("snap-1")),
        BackupWait::PuttingPolicyBack,
        BackupWait::OtherFinalizers,
        BackupWait::Retained(Some(snap("snap-1"))),
        BackupWait::Retained(None),
        BackupWait::InUse("copy".into()),
        BackupWait::Unsafe(unsafe_to_delete),
        BackupWait::Deleting(snap("snap-1")),
        BackupWait::WithoutTags(snap("snap-1"), "backup-uid".into()),
        BackupWait::ProvingAbsence,
        BackupWait::Gone,
    ])
}

#[test]
fn every_sentence_is_in_the_golden_file() {
    let waits = waits();
    let waits = waits
        .iter()
        .map(|wait| Sentence::wait(variant(wait), wait.reason(), wait.is_stalled(), wait.message()));
    let error = CloudError::in_doubt("CreateSnapshot", "what EC2 says");
    let id = snap("snap-1");
    let mut others = vec![
        Sentence::other("condition Failed, false", messages::NOT_FAILED.to_owned()),
        Sentence::other("condition SnapshotMissing", messages::missing(Some(&id))),
        Sentence::other("condition Verified", messages::verified(&verification(Some(2)))),
        Sentence::other("condition Verified", messages::verified(&verification(None))),
        Sentence::other("event BackupStarted", messages::events::started(&id, &VolumeId("vol-1".into()))),
        Sentence::other("event BackupRefused", messages::events::refused(&error)),
        Sentence::other("event SnapshotDeleted", messages::events::deleted(&id)),
    ];
    others.extend(
        Consistency::iter().map(|it| Sentence::other("condition Complete", messages::complete(Some(it)))),
    );
    others.extend(
        BackupFault::iter().map(|it| Sentence::other("condition Failed", messages::failed(it, Some(&id)))),
    );
    compare_sentences("backup", &waits.chain(others).collect::<Vec<_>>());
}

fn verification(tables: Option<i64>) -> BackupVerification {
    BackupVerification {
        verified_at: Time(at(0)),
        result: VerificationResult::Passed,
        database_name: "verify-nightly-abcdefgh".to_owned(),
        tables,
        rows: tables.map(|_| 300),
        indexes: tables.map(|_| 4),
        message: None,
        duration_seconds: 600,
    }
}
