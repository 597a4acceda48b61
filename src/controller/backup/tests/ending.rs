//! What comes after the end: a snapshot that is missed, a deletion under each policy, and the status.

use kube::ResourceExt as _;
use pretty_assertions::assert_eq;

use super::*;
use crate::api::verification::{BackupVerification, VerificationResult};
use crate::api::{ConditionType, EventReason};
use crate::controller::backup::status::{changes, status as status_of};
use crate::controller::conditions;
use crate::controller::pass::acted::Acted;

/// Complete since 20, and shown by the sync of this second.
fn completed(swept: i64) -> Observed {
    with(world(), |it| {
        status(it).creation = Some(creation(1, 3, true));
        status(it).snapshot_id = Some(snap("snap-1"));
        status(it).consistency = Some(Consistency::EngineCheckpoint);
        status(it).completed_at = Some(Time(at(20)));
        it.snapshots.swept_at = Some(at(swept));
        it.snapshots.snapshots = vec![snapshot("snap-1", 1, SnapshotState::Completed, "EngineCheckpoint")];
        (it.database, it.pod, it.engine) = (None, EnginePod::Absent, EngineView::NotRead);
    })
}

fn deleted(policy: SnapshotPolicy) -> Observed {
    with(completed(30), |it| {
        it.backup.metadata.deletion_timestamp = Some(Time(at(29)));
        it.backup.spec.deletion_policy = policy;
    })
}

/// The status after this world's plan, when nothing was written.
fn after(observed: &Observed) -> BackupStatus {
    let plan = plan(observed, at(40));
    status_of(observed, &plan, &Acted::new(observed.backup.clone()), at(40))
}

#[test]
fn a_complete_backup_stays_complete_and_says_when_its_snapshot_is_gone() {
    let is_missing = |observed: &Observed| plan(observed, at(40)).is_missing;
    let unlisted = || with(completed(30), |it| it.snapshots.snapshots.clear());
    let gone = || with(unlisted(), |it| it.snapshots.empty = Some(EmptyRun { first: at(4), last: at(1204) }));
    assert!(!is_missing(&completed(30)));
    assert!(!is_missing(&unlisted()), "one answer of EC2 may be incomplete");
    assert!(plan(&unlisted(), at(40)).is_pending, "it is looked up until its absence is proven");
    assert!(!is_missing(&with(gone(), |it| it.snapshots.swept_at = None)));
    assert!(is_missing(&gone()));
    let new = after(&gone());
    let told = with(unlisted(), |it| it.backup.status = Some(new.clone()));
    assert!(is_missing(&told), "what was proven stands until EC2 shows the snapshot");
    let shown = with(completed(30), |it| it.backup.status = Some(new.clone()));
    assert!(!is_missing(&shown));
    let is = |kind| conditions::is_true(&new.conditions, kind);
    assert!(is(ConditionType::Complete) && is(ConditionType::SnapshotMissing));
    assert!(!is(ConditionType::Failed) && !is(ConditionType::Stalled));
    assert_eq!(new.completed_at, Some(Time(at(20))), "this is final");
    let happened = changes(&after(&completed(30)), &new);
    assert_eq!(happened.iter().map(|it| it.reason).collect::<Vec<_>>(), [EventReason::SnapshotMissing]);
    assert!(after(&completed(30)).conditions.len() == 3, "no condition that does not hold");
}

#[test]
fn the_end_is_written_once_with_its_event() {
    let complete = with(completed(30), |it| status(it).completed_at = None);
    let new = after(&complete);
    assert_eq!((new.completed_at.clone(), new.started_at.clone()), (Some(Time(at(40))), Some(Time(at(4)))));
    assert_eq!(new.size.as_ref().map(ToString::to_string).as_deref(), Some("100Gi"));
    let old = complete.backup.status.clone().unwrap();
    let reasons = |new| changes(&old, new).iter().map(|it| it.reason).collect::<Vec<_>>();
    assert_eq!(reasons(&new), [EventReason::BackupCompleted]);
    let failed = after(&with(complete, |it| it.snapshots.snapshots[0].state = SnapshotState::Error));
    assert_eq!(failed.failure.as_ref().map(|it| it.what), Some(BackupFault::SnapshotFailed));
    assert_eq!(reasons(&failed), [EventReason::BackupFailed]);
    assert!(conditions::is_true(&failed.conditions, ConditionType::Failed));
    assert!(!conditions::is_true(&failed.conditions, ConditionType::Complete));
}

#[test]
fn a_snapshot_is_deleted_only_with_its_backup_under_the_policy_delete() {
    let gone = |change: fn(&mut BackupStatus)| {
        with(deleted(SnapshotPolicy::Delete), |it| {
            it.snapshots.snapshots.clear();
            change(status(it));
        })
    };
    let proven = |by_id| {
        with(gone(|_| {}), |it| {
            it.snapshots.empty = Some(EmptyRun { first: at(4), last: at(1204) });
            it.by_id = by_id;
        })
    };
    let foreign = with(deleted(SnapshotPolicy::Delete), |it| {
        it.snapshots.snapshots[0].tags.insert("freehold.dev/cluster-id".into(), "other".into());
    });
    hold(vec![
        ("Retain", deleted(SnapshotPolicy::Retain), at(40), "[remove finalizer] Retained"),
        (
            "a teardown",
            with(deleted(SnapshotPolicy::Delete), |it| it.teardown = true),
            at(40),
            "[remove finalizer] Retained",
        ),
        ("Delete", deleted(SnapshotPolicy::Delete), at(40), "[delete snap-1] Deleting, pending"),
        (
            "Delete, and EC2 was not listed yet",
            with(deleted(SnapshotPolicy::Delete), |it| it.snapshots.swept_at = None),
            at(40),
            "[] FirstSync",
        ),
        (
            "Delete, and a Database is being restored from it",
            with(deleted(SnapshotPolicy::Delete), |it| it.users = vec!["copy".into()]),
            at(40),
            "[] InUse, again in 5 s",
        ),
        ("Delete, and its tags are not ours", foreign, at(40), "[] stalled Unsafe, pending"),
        (
            "accepted, and still shown",
            with(deleted(SnapshotPolicy::Delete), |it| {
                let issued = IssuedRequest { at: at(30), call_blocked: None };
                it.issued = BTreeMap::from([(Call::DeleteSnapshot, issued)]);
            }),
            at(40),
            "[] Deleting, pending",
        ),
        (
            "accepted, and gone",
            gone(|it| it.deleted_at = Some(Time(at(20)))),
            at(40),
            "[remove finalizer] Gone",
        ),
        ("gone without a word", gone(|_| {}), at(40), "[] ProvingAbsence, pending"),
        (
            "nothing was ever requested",
            gone(|it| (it.creation, it.snapshot_id) = (None, None)),
            at(40),
            "[remove finalizer] Gone",
        ),
        (
            "proven gone by tag, and not read by its id",
            proven(ById::NotRead),
            at(1300),
            "[] ProvingAbsence, pending, reads snap-1, again in 5 s",
        ),
        (
            "its tags were taken off",
            proven(ById::Shown),
            at(1300),
            "[] stalled WithoutTags, pending, again in 60 s",
        ),
        ("proven gone", proven(ById::NotShown), at(1300), "[remove finalizer] Gone"),
        (
            "its tags were taken off, and the policy is Retain now",
            with(proven(ById::Shown), |it| it.backup.spec.deletion_policy = SnapshotPolicy::Retain),
            at(1300),
            "[remove finalizer] Retained",
        ),
        ("in doubt", gone(|it| it.snapshot_id = None), at(40), "[] ProvingAbsence, pending"),
        (
            "other controllers' finalizers",
            with(deleted(SnapshotPolicy::Delete), |it| it.backup.metadata.finalizers = None),
            at(40),
            "[] OtherFinalizers",
        ),
    ]);
}

#[test]
fn a_complete_backup_says_what_its_deletion_waits_for() {
    let read = plan(
        &with(deleted(SnapshotPolicy::Delete), |it| {
            it.snapshots.snapshots.clear();
            it.snapshots.empty = Some(EmptyRun { first: at(4), last: at(1204) });
        }),
        at(1300),
    );
    assert_eq!(read.look_up, Some(snap("snap-1")));
    let used = after(&with(deleted(SnapshotPolicy::Delete), |it| it.users = vec!["copy".into()]));
    let complete = conditions::find(&used.conditions, ConditionType::Complete).unwrap();
    assert!(complete.status == "True" && complete.message.contains("Database copy"), "{complete:?}");
    assert!(!conditions::is_true(&used.conditions, ConditionType::Stalled));
    let foreign = after(&with(deleted(SnapshotPolicy::Delete), |it| {
        it.snapshots.snapshots[0].tags.remove("freehold.dev/backup-uid");
    }));
    assert!(conditions::is_true(&foreign.conditions, ConditionType::Stalled), "a person must act");
}

/// Deleted under this policy after its snapshot was seen to have begun under the checkpoint, and before
/// anything said so in EC2.
fn untagged(policy: SnapshotPolicy) -> Observed {
    with(deleted(policy), |it| {
        status(it).completed_at = None;
        it.snapshots.snapshots = vec![snapshot("snap-1", 1, SnapshotState::Pending, "Unverified")];
    })
}

#[test]
fn a_snapshot_that_is_retained_says_first_that_it_can_be_restored() {
    let retain = || untagged(SnapshotPolicy::Retain);
    let unlisted = || with(retain(), |it| it.snapshots.snapshots.clear());
    let asked = |answer: Option<&str>| {
        let issued = match answer {
            None => IssuedRequest { at: at(30), call_blocked: None },
            Some(code) => answered(Call::CreateTags, code, 300),
        };
        with(retain(), |it| it.issued = BTreeMap::from([(Call::CreateTags, issued)]))
    };
    let torn_down = with(untagged(SnapshotPolicy::Delete), |it| it.teardown = true);
    let uncertain = with(retain(), |it| status(it).consistency = None);
    let gone = with(unlisted(), |it| it.snapshots.empty = Some(EmptyRun { first: at(4), last: at(1204) }));
    hold(vec![
        ("not tagged", retain(), at(40), "[tag snap-1 EngineCheckpoint] Tagging, pending"),
        ("not listed yet", unlisted(), at(40), "[tag snap-1 EngineCheckpoint] Tagging, pending"),
        ("in a teardown", torn_down, at(40), "[tag snap-1 EngineCheckpoint] Tagging, pending"),
        ("tagged, and not shown so", asked(None), at(40), "[remove finalizer] Retained"),
        ("refused", asked(Some("UnauthorizedOperation")), at(40), "[] Blocked, pending, again in 260 s"),
        ("it is not certain what it is", uncertain, at(40), "[remove finalizer] Retained"),
        ("its absence is proven", gone, at(1210), "[remove finalizer] Retained"),
    ]);
}

#[test]
fn a_deletion_that_a_schedule_did_not_end_leaves_no_policy_behind() {
    let begun = |since: &str| {
        with(completed(30), |it| {
            it.backup.spec.deletion_policy = SnapshotPolicy::Delete;
            it.backup.annotations_mut().insert("freehold.dev/expiring-since".to_owned(), since.to_owned());
        })
    };
    let since = at(40).to_string();
    let waits = plan(&begun(&since), at(50));
    assert_eq!((waits.actions, waits.requeue.map(|it| it.as_secs())), (vec![], Some(110)));
    hold(vec![
        ("the pass may still delete it", begun(&since), at(159), "[] as wanted, again in 1 s"),
        ("that pass has ended", begun(&since), at(160), "[put policy back] PuttingPolicyBack"),
        ("no time", begun("soon"), at(50), "[put policy back] PuttingPolicyBack"),
        (
            "a policy that a person has set",
            with(begun(&since), |it| {
                it.backup.metadata.annotations = None;
            }),
            at(1000),
            "[] as wanted",
        ),
    ]);
}

#[test]
fn a_verification_that_was_recorded_is_a_condition_of_the_backup() {
    let verified = |result: VerificationResult, message: Option<&str>| {
        let observed = with(completed(30), |it| {
            status(it).verification = Some(BackupVerification {
                verified_at: Time(at(35)),
                result,
                database_name: "verify-nightly-1".to_owned(),
                tables: Some(2),
                rows: Some(300),
                indexes: None,
                message: message.map(str::to_owned),
                duration_seconds: 5,
            });
        });
        let new = after(&observed);
        let found = conditions::find(&new.conditions, ConditionType::Verified).cloned().unwrap();
        (found.status, found.reason, found.message)
    };
    assert!(conditions::find(&after(&completed(30)).conditions, ConditionType::Verified).is_none());
    let (is_so, reason, message) = verified(VerificationResult::Passed, None);
    assert_eq!((is_so.as_str(), reason.as_str()), ("True", "AsExpected"));
    assert!(message.contains("2 tables with 300 rows"), "{message}");
    let failed = verified(VerificationResult::Failed, Some("the engine has suspended table trades"));
    assert_eq!((failed.0.as_str(), failed.1.as_str()), ("False", "VerificationFailed"));
    assert!(failed.2.contains("suspended table trades"));
}
