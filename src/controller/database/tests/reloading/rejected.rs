//! Settings that the engine rejects: what is carried out without them.

use pretty_assertions::assert_eq;

use super::*;

/// The engine has rejected what the spec has.
fn refused(mut world: Observed) -> Observed {
    let hash = build::config_hash(&world.database.spec.config);
    record(&mut world).rejected = Some(RejectedConfig { hash, message: "no".to_owned() });
    world
}

#[test]
fn a_database_whose_settings_are_rejected_goes_on_with_those_in_force_and_the_rest_of_its_spec() {
    let world = refused(edited());
    assert_eq!(done(&world), "[] stalled ConfigRejected");
    assert_eq!((question(&world), is_due(&world)), (None, false));
    let shown = said(&world);
    assert_eq!((shown.state, shown.in_force), (ConfigState::Rejected, settings(BEFORE)));
    assert_eq!((shown.pending.len(), shown.rejected.map(|it| it.message)), (1, Some("no".to_owned())));
    let mut bigger = world.clone();
    bigger.database.spec.storage.size = crate::api::Size("200Gi".to_owned());
    assert!(done(&bigger).starts_with("[update volume-uid "), "nothing else waits for it");
    let mut newer = world.clone();
    newer.database.spec.engine.version = Some("17.7".to_owned());
    let mut newer = with_config(newer, AFTER);
    newer.puller = pulling::done(&newer);
    assert_eq!(done(&newer), "[apply config config-uid, apply set set-uid x1] RestartPending");
    let Some(Action::ApplyConfigMap(files)) = plan(&newer, now()).actions.into_iter().next() else {
        panic!()
    };
    assert!(files.data.unwrap()["postgresql.conf"].contains("'8MB'"), "the settings in force");
    assert_eq!(done(&not_ready(world.clone())), "[] EngineStarting", "it comes back from what is there");
    let mended = with_config(world, "32MB");
    assert_eq!(done(&mended), "[record Asking []] ConfigReloading");
    assert_eq!(said(&mended).rejected, None);
}

#[test]
fn what_was_written_before_a_rejection_is_taken_back_from_an_engine_that_may_have_loaded_it() {
    let rejected = refused(with_config(loading(), "lots"));
    assert_eq!(done(&rejected), "[record Asking [work_mem]] ConfigReloading");
    let mut world = at_step(with_config(rejected.clone(), BEFORE), ConfigStep::Asking, &["work_mem"]);
    world = answered(with_config(world, "lots"), Ok(Verdict::Taken));
    let expected =
        "[record Loading [work_mem], apply config config-uid, apply set set-uid x1] ConfigReloading";
    assert_eq!(done(&world), expected);
    assert_eq!(said(&world).state, ConfigState::Rejected);
}

#[test]
fn a_rejection_of_what_an_earlier_version_has_started_is_none() {
    let mut world = refused(written(edited()));
    world.pod = Some(pod_of(world.stateful_set.ours().unwrap()));
    assert_eq!(done(&world), "[] as wanted");
    let shown = said(&world);
    assert_eq!((shown.state, shown.in_force), (ConfigState::InForce, settings(AFTER)));
    assert_eq!(shown.rejected, None);
}

#[test]
fn rejected_settings_wait_and_are_not_asked_of_again_where_those_in_force_are_no_valid_ones_any_more() {
    let with_files_of_before = |mut world: Observed| {
        // The operator refuses this one since.
        let refused = BTreeMap::from([("port".to_owned(), ConfigValue("1".to_owned()))]);
        record(&mut world).in_force = refused;
        world
    };
    let world = with_files_of_before(refused(edited()));
    assert_eq!((done(&world).as_str(), is_due(&world)), ("[] stalled ConfigRejected", false));
    assert_eq!(said(&world).state, ConfigState::Rejected);
    assert_eq!(done(&not_ready(world.clone())), "[] EngineStarting", "it comes back from what is there");
    let asked = at_step(world.clone(), ConfigStep::Asking, &["work_mem"]);
    assert_eq!((done(&asked).as_str(), question(&asked)), ("[] stalled ConfigRejected", None));
    let mut bigger = world.clone();
    bigger.database.spec.storage.size = crate::api::Size("200Gi".to_owned());
    assert!(done(&bigger).starts_with("[update volume-uid "), "nothing else waits for it");
    let mut altered = world.clone();
    as_applied(&mut altered);
    change(&mut altered.stateful_set, |set| {
        set.metadata.generation = Some(7);
        set.spec.as_mut().unwrap().service_name = Some("another".to_owned());
    });
    assert!(!done(&altered).contains("restore"), "{}", done(&altered));
    let mut lost = world.clone();
    lost.config_map = Child::Absent;
    assert!(!done(&lost).contains("config"), "{}", done(&lost));
    let mended = with_config(world, "32MB");
    assert_eq!(done(&mended), "[apply config config-uid, apply set set-uid x1] RestartPending");
}
