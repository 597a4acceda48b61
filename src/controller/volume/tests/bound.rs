//! The EBS volume is there: its PersistentVolume, then its claim, and foreign objects of their names.

use super::growth::{modifies, wanted};
use super::*;
use crate::controller::volume::adopted::Change;

fn available() -> Observed {
    created(VolumeState::Available)
}

fn with_record(change: impl FnOnce(&mut PersistentVolume)) -> Observed {
    let mut record = record();
    change(&mut record);
    with(available(), |it| it.persistent_volume = Some(record))
}

fn used(record: &mut PersistentVolume) {
    record.spec.as_mut().unwrap().claim_ref.as_mut().unwrap().uid = Some("old-claim".into());
}

/// Another client deletes the claim.
fn going(observed: &mut Observed) {
    observed.claim.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(at(9)));
}

/// A claim whose PersistentVolume was deleted.
fn lost() -> Observed {
    with(settled(), |it| {
        let claim = it.claim.as_mut().unwrap();
        claim.metadata.uid = Some("claim-uid".into());
        claim.status.as_mut().unwrap().phase = Some("Lost".into());
    })
}

/// The record of vol-1, for that claim.
fn of_claim() -> PersistentVolume {
    let mut of_claim = record();
    let claimed_by = of_claim.spec.as_mut().unwrap().claim_ref.as_mut().unwrap();
    claimed_by.uid = Some("claim-uid".into());
    of_claim
}

/// The record of vol-1, after another client has written the policy Delete.
pub(super) fn ending() -> PersistentVolume {
    let mut ending = record();
    ending.spec.as_mut().unwrap().persistent_volume_reclaim_policy = Some("Delete".to_owned());
    ending
}

/// Gives it Retain back.
pub(super) fn retains() -> Action {
    Action::RecordAdopted(Box::new(Change { from: ending(), to: record() }))
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn the_persistent_volume_is_made_first_then_the_claim_then_they_bind() {
    let made = Stage::Created;
    let claim_to_make =
        || Action::CreateClaim(Box::new(build::claim(&volume(None), &Size("100Gi".into()), "freehold")));
    let mut reopened = record();
    used(&mut reopened);
    hold(vec![
        (
            "the record first",
            available(),
            now(),
            acts(made, vec![Action::CreatePersistentVolume(Box::new(record()))], Reason::AwaitingBinding),
        ),
        (
            "a state of a later day is one that is there",
            created(VolumeState::Unknown),
            now(),
            acts(made, vec![Action::CreatePersistentVolume(Box::new(record()))], Reason::AwaitingBinding),
        ),
        (
            "no class to make it by",
            with(available(), |it| it.class = None),
            now(),
            stalls(made, Reason::NodeClassNotFound).again(60),
        ),
        (
            "then the claim",
            with_record(|_| {}),
            now(),
            acts(made, vec![claim_to_make()], Reason::AwaitingBinding),
        ),
        (
            "no class to make the claim by",
            with(with_record(|_| {}), |it| it.class = None),
            now(),
            stalls(made, Reason::NodeClassNotFound).again(60),
        ),
        (
            "a record that was claimed before waits for the claim",
            with_record(used),
            now(),
            acts(made, vec![claim_to_make()], Reason::AwaitingBinding),
        ),
        (
            "and is opened again once the claim is there",
            with(settled(), |it| {
                it.claim.as_mut().unwrap().status.as_mut().unwrap().phase = Some("Pending".into());
                used(it.persistent_volume.as_mut().unwrap());
            }),
            now(),
            acts(made, vec![Action::ReopenPersistentVolume(Box::new(reopened))], Reason::AwaitingBinding),
        ),
        (
            "one that is gone is made again for the claim that has lost it",
            with(lost(), |it| it.persistent_volume = None),
            now(),
            acts(made, vec![Action::CreatePersistentVolume(Box::new(of_claim()))], Reason::AwaitingBinding),
        ),
        (
            "but not for a claim that goes, too",
            with(lost(), |it| {
                it.persistent_volume = None;
                it.claim.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(at(9)));
            }),
            now(),
            acts(made, vec![Action::CreatePersistentVolume(Box::new(record()))], Reason::AwaitingBinding),
        ),
        (
            "made again without the UID of the claim that has lost the former one",
            lost(),
            now(),
            acts(
                made,
                vec![Action::RecordAdopted(Box::new(Change { from: record(), to: of_claim() }))],
                Reason::AwaitingBinding,
            ),
        ),
        (
            "not bound yet",
            with(settled(), |it| {
                it.claim.as_mut().unwrap().status.as_mut().unwrap().phase = Some("Pending".into());
            }),
            now(),
            waits(made, Reason::AwaitingBinding),
        ),
        (
            "a claim that another client deleted",
            with(settled(), going),
            now(),
            waits(Stage::Bound, Reason::AwaitingBinding),
        ),
        ("and the volume grows meanwhile", wanted(going), at(3), modifies(3, 200, 6000)),
        (
            "nor is it bound any more",
            with(settled(), |it| {
                going(it);
                it.claim.as_mut().unwrap().status.as_mut().unwrap().phase = Some("Pending".into());
            }),
            now(),
            waits(made, Reason::AwaitingBinding),
        ),
        (
            "another client has written the policy Delete",
            with(settled(), |it| it.persistent_volume = Some(ending())),
            now(),
            acts(Stage::AsWanted, vec![retains()], Reason::AwaitingBinding).again(5),
        ),
        (
            "and that comes before the claim that is to be made",
            with_record(|it| *it = ending()),
            now(),
            acts(made, vec![retains(), claim_to_make()], Reason::AwaitingBinding).again(5),
        ),
        ("settled", settled(), now(), done()),
        (
            "settled, and the NodeClass is gone: what is bound needs none",
            with(settled(), |it| it.class = None),
            now(),
            done(),
        ),
    ]);
}

#[test]
fn what_has_our_names_and_is_not_ours_is_left_alone() {
    let made = Stage::Created;
    let conflict = || stalls(made, Reason::NameConflict);
    let not_watched = || conflict().again(60);
    let rows = vec![
        ("another's PersistentVolume", with_record(|it| it.metadata.labels = None), now(), not_watched()),
        (
            "a PersistentVolume of ours that names another EBS volume",
            with_record(|it| it.spec.as_mut().unwrap().csi.as_mut().unwrap().volume_handle = "vol-9".into()),
            now(),
            conflict(),
        ),
        (
            "another's claim",
            with(settled(), |it| it.claim.as_mut().unwrap().metadata.owner_references = None),
            now(),
            not_watched(),
        ),
        (
            "the claim of another Volume of the name",
            with(settled(), |it| {
                it.claim.as_mut().unwrap().metadata.owner_references.as_mut().unwrap()[0].uid =
                    "other".into();
            }),
            now(),
            not_watched(),
        ),
    ];
    for (name, observed, now, _) in &rows {
        let said = plan(observed, *now);
        assert!(
            ["freehold-volume-uid", "orders-k3f9q"].iter().any(|it| message(&said).contains(it)),
            "{name}: {}",
            message(&said)
        );
    }
    hold(rows);
}
