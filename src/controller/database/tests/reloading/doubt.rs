//! A change of settings where something is not as it is meant to be: files of another version, refused
//! writes, a record that is not there, and a class that does not permit the engine any more.

use pretty_assertions::assert_eq;

use super::*;
use crate::controller::database::tests::change as altered;

/// The world whose ConfigMap has this file otherwise, as it was applied.
fn with_file(mut world: Observed, name: &str, change: impl Fn(&str) -> String) -> Observed {
    altered(&mut world.config_map, |live| {
        let file = live.data.as_mut().unwrap().get_mut(name).unwrap();
        *file = change(file);
    });
    as_applied(&mut world);
    world
}

#[test]
fn files_that_another_version_has_written_change_with_the_pod_only() {
    let of_another = |world: Observed| {
        let of_hba = with_file(world.clone(), "pg_hba.conf", |file| format!("{file}# more"));
        let of_settings =
            with_file(world, "postgresql.conf", |file| format!("{file}wal_level = 'logical'\n"));
        vec![of_hba, of_settings]
    };
    for world in of_another(edited()) {
        assert_eq!(done(&world), "[apply config config-uid, apply set set-uid x1] RestartPending");
        assert!(!is_due(&world));
    }
    // The operator is another one since it has asked, or written.
    for world in of_another(answered(asking(), Ok(Verdict::Taken))) {
        assert_eq!(done(&world), "[apply config config-uid, apply set set-uid x1] RestartPending");
    }
    for world in of_another(loading()) {
        assert_eq!(done(&world), RESTARTS);
    }
    let mut lost = edited();
    lost.config_map = Child::Absent;
    assert!(done(&lost).ends_with("RestartPending"), "{}", done(&lost));
    let back = |mut world: Observed| {
        record(&mut world).change = None;
        with_config(world, BEFORE)
    };
    for world in of_another(edited()) {
        assert_eq!(line(&plan(&back(world), now())), "[] as wanted", "an upgrade alone restarts nothing");
    }
}

#[test]
fn files_of_an_edit_between_are_those_of_this_version() {
    let mut world = with_config(loading(), "32MB");
    assert_eq!(done(&world), "[record Asking [work_mem]] ConfigReloading");
    world = with_file(world, "postgresql.conf", |file| file.replace("Etc/UTC", "Etc/GMT"));
    assert_eq!(done(&world), "[apply config config-uid, apply set set-uid x1] RestartPending");
}

#[test]
fn writes_that_are_refused_renew_the_record_once_a_third_of_its_time_is_over() {
    let refused = at_step(edited(), ConfigStep::Loading, &["work_mem"]);
    let writes = "[apply config config-uid, apply set set-uid x1] ConfigReloading";
    for seconds in [0, 1, 59] {
        assert_eq!(done_after(&refused, seconds), writes, "after {seconds} s");
    }
    let minute = later(now(), Duration::from_secs(60));
    let actions = plan(&refused, minute).actions;
    let Some(Action::RecordSettings(record)) = actions.first() else { panic!("{actions:?}") };
    assert_eq!(record.change.as_ref().map(|change| change.since.clone()), Some(Time(minute)));
    let again = "[record Loading [work_mem], apply config config-uid, apply set set-uid x1] ConfigReloading";
    for seconds in [60, 180] {
        assert_eq!(done_after(&refused, seconds), again, "after {seconds} s");
    }
}

#[test]
fn nothing_is_said_of_settings_before_an_engine_was_seen_that_has_begun_with_them() {
    let unknown = |mut world: Observed| {
        world.database.status.as_mut().unwrap().config = None;
        let acted = Acted::new(world.database.clone());
        let decided = Decided::of(&world, &plan(&world, now()), &acted);
        status_of(&world, &decided, &acted, now()).config
    };
    let begun = || with_config(edited(), BEFORE);
    let mut paused = begun();
    paused.pod = None;
    assert_eq!(unknown(edited()), None);
    assert_eq!(unknown(written(edited())), None);
    assert_eq!(unknown(not_ready(begun())), None);
    assert_eq!(unknown(paused), None);
    let mut of_earlier_version = begun();
    of_earlier_version.database.status.as_mut().unwrap().config = None;
    assert_eq!(done(&of_earlier_version), "[] as wanted", "an upgrade restarts nothing");
    let known = unknown(of_earlier_version).unwrap();
    assert_eq!((known.state, known.in_force), (ConfigState::InForce, settings(BEFORE)));
}

#[test]
fn a_change_that_is_written_restarts_nothing_once_the_class_does_not_permit_the_engine_any_more() {
    let mut world = loading();
    world.class = Some(class(json!({"limits": {"engines": ["questdb"]}})));
    for seconds in [0, 3600] {
        assert_eq!(done_after(&world, seconds), "[] as wanted");
    }
    assert_eq!(said(&world).state, ConfigState::PendingRestart);
}

#[test]
fn what_is_taken_back_after_it_was_loaded_restarts_nothing_either_while_it_may_not_be_loaded() {
    let mut back = written(with_config(loading(), BEFORE));
    assert_eq!(done(&back), "[record Asking [work_mem]] ConfigReloading");
    let mut moved = back.clone();
    moved.nodes.push(moved.nodes[0].clone());
    assert!(!done(&moved).contains("settings changed"), "{}", done(&moved));
    back.class = Some(class(json!({"limits": {"engines": ["questdb"]}})));
    for seconds in [0, 3600] {
        assert_eq!(done_after(&back, seconds), "[] as wanted");
    }
    assert_eq!(done(&not_ready(back)), RESTARTS, "it may not serve because of what it has loaded");
}
