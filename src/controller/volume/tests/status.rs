//! The status of a Volume: conditions as whole values, times that stay, fields that have another writer.

use pretty_assertions::assert_eq;

use super::*;
use crate::api::creation::Attempt;
use crate::api::volume::ModificationRefusal;
use crate::controller::pass::acted::Acted;
use crate::controller::volume::status::{changes, status as status_of};

fn acted(observed: &Observed) -> Acted<Volume> {
    Acted::new(observed.volume.clone())
}

fn after(observed: &Observed, now: Timestamp) -> VolumeStatus {
    status_of(observed, &plan(observed, now), &acted(observed), now)
}

type Whole<'a> = (&'a str, &'a str, &'a str, &'a str);

fn whole(status: &VolumeStatus) -> Vec<Whole<'_>> {
    status
        .conditions
        .iter()
        .map(|it| (it.type_.as_str(), it.status.as_str(), it.reason.as_str(), it.message.as_str()))
        .collect()
}

const NOT_STALLED: Whole<'_> = ("Stalled", "False", "Progressing", "no manual action required");
const EARLIER: &str = "waiting for an earlier step";
const EXISTS: Whole<'_> = ("Created", "True", "AsExpected", "the EBS volume exists");
const BOUND: Whole<'_> =
    ("Bound", "True", "AsExpected", "the PersistentVolume and the claim are bound to each other");

#[test]
fn every_stage_says_what_is_awaited_in_the_first_condition_that_does_not_hold() {
    let waiting = "EC2 is creating EBS volume vol-1";
    assert_eq!(
        whole(&after(&created(VolumeState::Creating), now())),
        [
            ("Ready", "False", "Creating", waiting),
            ("Created", "False", "Creating", waiting),
            ("Bound", "False", "Pending", EARLIER),
            ("Modified", "False", "Pending", EARLIER),
            NOT_STALLED,
        ]
    );
    let waiting = "creating the PersistentVolume";
    assert_eq!(
        whole(&after(&created(VolumeState::Available), now())),
        [
            ("Ready", "False", "AwaitingBinding", waiting),
            EXISTS,
            ("Bound", "False", "AwaitingBinding", waiting),
            ("Modified", "False", "Pending", EARLIER),
            NOT_STALLED,
        ]
    );
    assert_eq!(
        whole(&after(&settled(), now())),
        [
            ("Ready", "True", "AsExpected", "the volume is as wanted and bound"),
            EXISTS,
            BOUND,
            ("Modified", "True", "AsExpected", "size, type, IOPS and throughput are as wanted"),
            NOT_STALLED,
        ]
    );
}

#[test]
fn a_spec_that_was_edited_during_the_pass_is_not_called_observed() {
    let observed = settled();
    let mut acted = acted(&observed);
    acted.object.metadata.generation = Some(9);
    let status = status_of(&observed, &plan(&observed, now()), &acted, now());
    let seen = observed.volume.metadata.generation;
    assert_eq!(status.observed_generation, seen);
    assert!(
        status.conditions.iter().all(|condition| condition.observed_generation == seen),
        "{:?}",
        status.conditions
    );
}

#[test]
fn a_change_that_is_due_leaves_the_volume_bound() {
    let mut observed = settled();
    observed.volume.spec.size = Size("200Gi".into());
    let status = after(&observed, now());
    assert_eq!(whole(&status)[1..3], [EXISTS, BOUND]);
    assert_eq!((whole(&status)[3].1, whole(&status)[3].2), ("False", "Modifying"));
}

#[test]
fn a_stall_shows_as_stalled_and_a_deletion_as_deleting() {
    let mut observed = settled();
    observed.volume.spec.size = Size("200Gi".into());
    observed.storage_class = None;
    let status = after(&observed, now());
    assert_eq!((whole(&status)[4].1, whole(&status)[4].2), ("True", "ClaimNotExpandable"));
    let status = after(&deleting(DeletionPolicy::Delete, settled()), now());
    assert_eq!((whole(&status)[0].1, whole(&status)[0].2), ("False", "Deleting"));
}

#[test]
fn a_refused_modification_is_told_in_ec2s_words_and_stalls_this_generation() {
    let mut observed = settled();
    observed.volume.spec.iops = Some(90_000);
    status(&mut observed).change_due_since = Some(Time(at(0)));
    says(&mut observed, ConditionType::Modified, false, Reason::Modifying, at(0));
    let call_blocked = answered(Call::ModifyVolume, "InvalidParameterValue", None);
    let answer = "EC2 answered ModifyVolume with InvalidParameterValue: what EC2 says";
    let acted = Acted { call_blocked: Some(call_blocked), ..acted(&observed) };
    let first = status_of(&observed, &plan(&observed, now()), &acted, now());
    assert_eq!(whole(&first)[3], ("Modified", "False", "ModificationRefused", answer));
    let refusal = ModificationRefusal { generation: 3, message: answer.into() };
    assert_eq!(first.modification_refused, Some(refusal.clone()));
    observed.volume.status = Some(first);
    let second = after(&observed, at(11));
    assert_eq!(second.modification_refused, Some(refusal), "as long as it is waited on");
    assert_eq!(whole(&second)[4], ("Stalled", "True", "ModificationRefused", answer));
    observed.volume.status = Some(second.clone());
    assert_eq!(after(&observed, at(12)), second, "and nothing more is written");
}

#[test]
fn a_second_look_at_the_same_world_writes_nothing() {
    let mut gathering = settled();
    gathering.volume.spec.size = Size("200Gi".into());
    let mut lost = settled();
    lost.volumes.volumes.clear();
    let mut proven = lost.clone();
    proven.volumes.empty = Some(run(-3000, -1000));
    status(&mut proven).creation.as_mut().unwrap().attempt.started_at = Time(at(-4000));
    proven.leading_since = at(-5000);
    let mut budget = gathering.clone();
    says(&mut budget, ConditionType::Modified, false, Reason::Modifying, at(0));
    let used = |second: i64| ModificationRecord {
        at: Time(at(second)),
        size: 150,
        volume_type: "gp3".into(),
        iops: None,
        throughput: None,
    };
    status(&mut budget).modifications = [-400, -300, -200, -100].map(used).to_vec();
    let mut retaken = deleting(DeletionPolicy::Snapshot, settled());
    retaken.claim = None;
    let worlds = vec![
        ("settled", settled()),
        ("making", created(VolumeState::Creating)),
        ("gathering", gathering),
        ("looked for", lost),
        ("lost", proven),
        ("budget", budget),
        ("detaching", retaken),
    ];
    for (name, mut observed) in worlds {
        let first = after(&observed, now());
        observed.volume.status = Some(first.clone());
        for seconds in 1..3 {
            observed.volumes.swept_at = Some(at(10 + seconds));
            assert_eq!(after(&observed, at(10 + seconds)), first, "{name}, {seconds} s later");
        }
    }
}

#[test]
fn a_transition_has_its_time_and_a_new_generation_does_not_change_it() {
    let mut observed = created(VolumeState::Available);
    let first = after(&observed, at(10));
    observed = with(settled(), |it| it.volume.status = Some(first));
    observed.volume.metadata.generation = Some(4);
    let second = after(&observed, at(20));
    let time = |kind| conditions::find(&second.conditions, kind).unwrap().last_transition_time.0;
    assert_eq!((time(ConditionType::Created), time(ConditionType::Bound)), (at(10), at(20)));
    assert!(second.conditions.iter().all(|it| it.observed_generation == Some(4)));
}

#[test]
fn the_fields_of_other_writers_are_told_as_the_last_write_left_them_and_the_size_as_ec2_shows_it() {
    let observed = with(settled(), |it| it.volumes.volumes[0].size = 120);
    let written = VolumeStatus {
        creation: Some(launch(7, at(3))),
        volume_id: Some(id("vol-1")),
        ever_held: true,
        persistent_volume_name: Some("freehold-volume-uid".into()),
        final_snapshot: Some(FinalSnapshot { attempt: Attempt::new(1, Time(at(6))), snapshot_id: None }),
        deleted_at: Some(Time(at(7))),
        ..VolumeStatus::default()
    };
    let acted = Acted { object: volume(Some(written.clone())), ..acted(&observed) };
    let status = status_of(&observed, &plan(&observed, now()), &acted, now());
    let expected = VolumeStatus {
        conditions: status.conditions.clone(),
        observed_generation: Some(3),
        size: Some(Size("120Gi".into())),
        ..written
    };
    assert_eq!(status, expected);
}

#[test]
fn a_lost_volume_is_lost_since_it_was_first_seen_so_until_ec2_shows_it_again() {
    let mut lost = settled();
    lost.volumes.volumes.clear();
    lost.leading_since = at(-5000);
    status(&mut lost).creation.as_mut().unwrap().attempt.started_at = Time(at(-4000));
    assert_eq!(after(&lost, now()).lost_since, None, "not before its absence is proven");
    (lost.volumes.empty, lost.by_id) = (Some(run(-3000, -1000)), ById::NotShown);
    let first = after(&lost, now());
    assert_eq!(first.lost_since, Some(Time(now())));
    lost.volumes.empty = None;
    lost.volume.status = Some(first.clone());
    assert_eq!(after(&lost, at(20)), first, "proven once, it stays so");
    let shown = with(settled(), |it| {
        it.volume.status = Some(VolumeStatus { volume_id: Some(id("vol-1")), ever_held: true, ..first });
    });
    assert_eq!(after(&shown, at(30)).lost_since, None);
}

#[test]
fn what_an_older_operator_said_in_conditions_only_is_remembered() {
    let mut lost = with(settled(), |it| it.volumes.volumes.clear());
    says(&mut lost, ConditionType::Stalled, true, Reason::VolumeLost, at(-100));
    assert_eq!(after(&lost, now()).lost_since, Some(Time(at(-100))));
    let mut refused = with(settled(), |it| it.volume.spec.iops = Some(90_000));
    says(&mut refused, ConditionType::Modified, false, Reason::ModificationRefused, at(-100));
    let expected = ModificationRefusal { generation: 3, message: "as EC2 said".into() };
    assert_eq!(after(&refused, now()).modification_refused, Some(expected));
}

#[test]
fn a_field_that_an_older_operator_left_behind_does_not_count_against_its_conditions() {
    let mut found = with(settled(), |it| it.volumes.volumes.clear());
    says(&mut found, ConditionType::Stalled, false, Reason::Progressing, at(-100));
    status(&mut found).lost_since = Some(Time(at(-200)));
    let reason = |observed: &Observed| {
        plan(observed, now()).waiting.map(|waiting| (waiting.reason(), waiting.is_stalled()))
    };
    assert_eq!(
        reason(&found),
        Some((Reason::VolumeLost, false)),
        "EC2 has shown it since: its absence is to be proven again"
    );
    let mut edited = with(settled(), |it| it.volume.spec.iops = Some(90_000));
    says(&mut edited, ConditionType::Modified, false, Reason::ModificationRefused, at(-100));
    status(&mut edited).modification_refused =
        Some(ModificationRefusal { generation: 2, message: "an earlier spec".into() });
    assert_eq!(
        message(&plan(&edited, now())),
        "as EC2 said",
        "the refusal of this generation, not of an earlier one"
    );
}

#[test]
fn a_volume_whose_database_was_deleted_without_it_stays_and_says_so_once() {
    let owned = after(&settled(), now());
    let orphaned = with(settled(), |it| it.ownership = Ownership::Orphaned);
    assert!(plan(&orphaned, now()).actions.is_empty());
    let status = after(&orphaned, now());
    assert_eq!(whole(&status)[..5], whole(&owned)[..], "it is as ready as it was");
    assert_eq!((whole(&status)[5].0, whole(&status)[5].2), ("Orphaned", "Orphaned"));
    let events = |old, new| changes(old, new).into_iter().map(|it| it.reason.as_str()).collect::<Vec<_>>();
    assert_eq!((events(&owned, &status), events(&status, &status)), (vec!["Orphaned"], vec![]));
}
