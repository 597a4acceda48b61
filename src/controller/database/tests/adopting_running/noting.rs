//! How a database was found is noted on its StatefulSet, too, and a status that was lost has it again.

use pretty_assertions::assert_eq;

use super::*;
use crate::api::keys::ADOPTION_ANNOTATION;
use crate::controller::database::legacy_refusal::LegacyRefusal;
use crate::controller::database::status::Decided;
use crate::controller::database::wait::DatabaseWait;
use crate::controller::pass::acted::{ActError, Acted};

/// The adopted StatefulSet of this world, and its annotations.
fn annotations(world: &mut Observed) -> &mut BTreeMap<String, String> {
    let Child::Ours(set) = &mut world.stateful_set else { panic!("no StatefulSet") };
    set.annotations_mut()
}

#[test]
fn a_status_that_was_lost_is_recorded_again_from_the_stateful_set() {
    let world = adopted();
    let known = world.database.status.clone().unwrap().adoption.unwrap();
    let mut lost = world.clone();
    lost.database.status = None;
    let mut leaves = lost.clone();
    leaves.database.spec.release = true;
    deleting(&mut leaves.database, 1);
    for world in [&lost, &leaves] {
        let first = plan(world, now());
        let is_known = |it: &Action| matches!(it, Action::RecordAdoption(adoption) if **adoption == known);
        assert!(first.actions.iter().any(is_known), "{first:?}");
        assert!(!first.actions.iter().any(|it| matches!(it, Action::ReleaseStatefulSet(..))), "{first:?}");
    }
    let mut orphaned = Observed { stateful_set: Child::Absent, pod: None, ..lost.clone() };
    let set = world.stateful_set.ours().cloned().unwrap();
    legacy_of(&mut orphaned).stateful_set =
        Some(StatefulSet { metadata: without_owner(set.metadata.clone()), ..set });
    assert_eq!(line(&plan(&orphaned, now())), "[record adoption] Adopting");

    annotations(&mut lost).insert(ADOPTION_ANNOTATION.to_owned(), "of another client".to_owned());
    assert!(!line(&plan(&lost, now())).contains("record adoption"), "what cannot be read is no record");
}

#[test]
fn neither_a_note_nor_an_owner_reference_adopts_without_the_proof_of_ec2() {
    let mut forged = adopted();
    forged.database.status = None;
    change(&mut forged.volume, |volume| volume.status = None);
    let stopped = plan(&forged, now());
    assert!(!line(&stopped).contains("record adoption"), "{stopped:?}");
    let Some(DatabaseWait::NotAdoptable(refusal)) = &stopped.waiting else { panic!("{stopped:?}") };
    assert!(matches!(refusal, LegacyRefusal::Owned { .. }), "{refusal:?}");
}

#[test]
fn a_note_that_is_older_than_the_template_says_that_the_image_of_that_may_have_run() {
    let mut lost = adopted();
    lost.database.status = None;
    let Child::Ours(set) = &mut lost.stateful_set else { panic!("no StatefulSet") };
    let pod = set.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
    pod.containers[0].image = Some("postgres:17.9".to_owned());
    let plan = plan(&lost, now());
    let unproven = |action: &Action| {
        if let Action::RecordAdoption(recorded) = action { recorded.unproven_image.clone() } else { None }
    };
    assert_eq!(plan.actions.iter().find_map(unproven).as_deref(), Some("postgres:17.9"));
}

#[test]
fn the_note_is_no_part_of_what_was_found_and_is_left_out_where_it_has_no_room() {
    let mut noted = prepared();
    let found = legacy_of(&mut noted).stateful_set.as_mut().unwrap();
    found.annotations_mut().insert(ADOPTION_ANNOTATION.to_owned(), "of a former Database".to_owned());
    let adopts = |world: &Observed| {
        let plan = plan(world, now());
        let Some(Action::AdoptStatefulSet(set, adoption)) = plan.actions.last() else { panic!("{plan:?}") };
        (set.as_ref().clone(), adoption.as_ref().clone())
    };
    let (set, adoption) = adopts(&noted);
    assert!(!adoption.stateful_set.to_string().contains("of a former Database"), "{adoption:?}");
    assert_eq!(build::noted(&set), Some(adoption));

    let mut full = prepared();
    let found = legacy_of(&mut full).stateful_set.as_mut().unwrap();
    found.annotations_mut().insert("example.com/notes".to_owned(), "x".repeat(200_000));
    assert_eq!(build::noted(&adopts(&full).0), None, "200 kB of them would be in the note once more");
}

#[test]
fn a_stateful_set_that_another_client_created_again_is_adopted_again() {
    let before = adopted();
    let mut again = Observed { stateful_set: Child::Absent, pod: None, ..before.clone() };
    // As `kubectl create` makes it of status.adoption.statefulSet.
    let recorded = before.database.status.unwrap().adoption.unwrap().stateful_set;
    legacy_of(&mut again).stateful_set = Some(with_uid(from_json(recorded), "set-uid-2"));
    assert_eq!(line(&plan(&again, now())), "[adopt set-uid-2] Adopting");
    // What was applied is forgotten before the write, which may have met a conflict.
    change(&mut again.volume, |volume| volume.spec.release = false);
    let status = again.database.status.as_mut().unwrap();
    status.applied.as_mut().unwrap().stateful_set = None;
    assert_eq!(line(&plan(&again, now())), "[adopt set-uid-2] Adopting");

    // Its pod was made from the template that was found, which finds no machine any more.
    let mut running = adopted();
    change(&mut running.volume, |volume| volume.spec.release = false);
    running.nodes[0].spec.release = false;
    let pod = running.pod.as_mut().unwrap();
    pod.metadata.uid = Some("pod-uid-2".to_owned());
    assert_eq!(line(&plan(&running, now())), "[] as wanted", "one that runs is not restarted");
    let pod = running.pod.as_mut().unwrap();
    (pod.status, pod.spec.as_mut().unwrap().node_name) = (None, None);
    let replaced = line(&plan(&running, now()));
    assert!(replaced.starts_with("[replace pg-17-0 pod-uid-2"), "{replaced}");
}

#[test]
fn a_stateful_set_that_was_deleted_is_created_again_or_a_person_does_it_where_the_api_server_refuses() {
    let mut gone = adopted();
    (gone.stateful_set, gone.pod) = (Child::Absent, None);
    change(&mut gone.volume, |volume| volume.spec.release = false);
    gone.nodes[0].spec.release = false;
    let again = plan(&gone, now());
    assert_eq!(line(&again), "[apply set new x1] AwaitingPod");
    let answer = kube::core::Status::failure("without a token only", "Invalid").with_code(422);
    let error = ActError::from(kube::Error::Api(answer.boxed()));
    let acted = Acted { error: Some(error), ..Acted::new(gone.database.clone()) };
    let waiting = Decided::of(&gone, &again, &acted).waiting.unwrap();
    assert!(waiting.is_stalled(), "{waiting:?}");
    assert!(waiting.message().contains("status.adoption.statefulSet"), "{}", waiting.message());
}
