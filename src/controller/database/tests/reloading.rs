//! The plan of settings that an engine takes while it runs, and what is said of them.

mod doubt;
mod rejected;

use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::*;
use crate::api::database::{
    ConfigChange, ConfigState, ConfigStatus, ConfigStep, ConfigValue, RejectedConfig, ReloadedPod,
};
use crate::api::keys::NEXT_PASSWORD;
use crate::controller::database::plan::reload::{is_due, question};
use crate::controller::database::status::{Decided, status as status_of};
use crate::controller::pass::acted::Acted;
use crate::engine::reload::Verdict;
use crate::time::later;

const BEFORE: &str = "8MB";
const AFTER: &str = "16MB";

type Settings = BTreeMap<String, ConfigValue>;

fn settings(value: &str) -> Settings {
    BTreeMap::from([("work_mem".to_owned(), ConfigValue(value.to_owned()))])
}

fn record(world: &mut Observed) -> &mut ConfigStatus {
    world.database.status.as_mut().unwrap().config.get_or_insert_default()
}

fn with_config(mut world: Observed, value: &str) -> Observed {
    world.database.spec.config = settings(value);
    world.profile = engine::profile(&world.database.spec.engine, &world.database.spec.config);
    world
}

/// A settled world of these settings whose spec has others now; nothing is written of them. Its engine was
/// flushed a moment ago, so that a stop awaits nothing.
fn edited() -> Observed {
    let config = settings(BEFORE);
    let engine = json!({"type": "postgresql", "version": "17.6"});
    let mut world = settled_as(json!({"engine": engine, "config": config}));
    if let Some(status) = world.pod.as_mut().and_then(|pod| pod.status.as_mut()) {
        status.pod_ip = Some("10.0.0.7".to_owned());
    }
    world.flush = FlushView::Ended(now());
    record(&mut world).in_force = config;
    with_config(world, AFTER)
}

/// How far the change to the settings of the spec is; `loaded` says what was loaded before.
fn at_step(mut world: Observed, step: ConfigStep, loaded: &[&str]) -> Observed {
    let inputs_hash = build::inputs_hash(&world.database.spec);
    let loaded = loaded.iter().map(|key| (*key).to_owned()).collect();
    let (pod_uid, since) = ("pod-uid".to_owned(), Time(now()));
    record(&mut world).change = Some(ConfigChange { pod_uid, step, since, inputs_hash, loaded });
    world
}

fn asking() -> Observed {
    at_step(edited(), ConfigStep::Asking, &[])
}

/// ConfigMap and StatefulSet are of the spec; the pod is as it was.
fn written(mut world: Observed) -> Observed {
    let (database, names, profile) =
        (&world.database.clone(), &world.names.clone(), &world.profile.clone().unwrap());
    let files = build::config_map(database, names, profile).unwrap();
    world.config_map = ours(with_uid(files, "config-uid"));
    world.stateful_set = ours(seen(with_uid(build::stateful_set(database, names, profile, 1), "set-uid")));
    as_applied(&mut world);
    world
}

fn loading() -> Observed {
    at_step(written(edited()), ConfigStep::Loading, &["work_mem"])
}

/// The engine has said this.
fn answered(mut world: Observed, answer: Result<Verdict, &str>) -> Observed {
    world.answers.settings = Some(answer.map_err(str::to_owned));
    world
}

fn rejected() -> Verdict {
    Verdict::Rejected("no".to_owned())
}

fn done(world: &Observed) -> String {
    line(&plan(world, now()))
}

fn done_after(world: &Observed, seconds: u64) -> String {
    line(&plan(world, later(now(), Duration::from_secs(seconds))))
}

fn not_ready(mut world: Observed) -> Observed {
    let status = json!({"phase": "Running", "podIP": "10.0.0.7",
        "containerStatuses": [container_status(json!({"running": {}}))]});
    world.pod = world.pod.map(|pod| pod_with(pod, status));
    world
}

const WAITS: &str = "[] ConfigReloading";
const LOADS: &str = "[load work_mem] ConfigReloading";
const GIVES_UP: &str = "[load work_mem or restart] ConfigReloading";
const RESTARTS: &str = "[replace orders-0 pod-uid: the engine's settings changed] RestartPending";
const RESTART_BEGINS: &str =
    "[record AtStart [], apply config config-uid, apply set set-uid x1] RestartPending";

#[test]
fn the_engine_is_asked_before_anything_is_written() {
    assert_eq!(question(&edited()), None, "it is let in first");
    assert_eq!(done(&edited()), "[record Asking []] ConfigReloading");
    let (access, change) = question(&asking()).unwrap();
    assert_eq!((access.port, access.database.as_str()), (5432, "app"));
    assert_eq!(change, BTreeMap::from([("work_mem".to_owned(), Some(AFTER.to_owned()))]));
}

#[test]
fn what_the_engine_says_decides() {
    let written =
        "[record Loading [work_mem], apply config config-uid, apply set set-uid x1] ConfigReloading";
    for (answer, expected) in [
        (Ok(Verdict::Taken), written),
        (Ok(Verdict::AtStart), RESTART_BEGINS),
        (Ok(rejected()), "[reject: no] stalled ConfigRejected"),
        (Err("no connection"), WAITS),
    ] {
        assert_eq!(done(&answered(asking(), answer.clone())), expected, "{answer:?}");
    }
    assert_eq!(done(&asking()), WAITS, "it has said nothing yet");
    assert_eq!(done(&loading()), LOADS);
    assert_eq!(done(&at_step(self::written(edited()), ConfigStep::AtStart, &[])), RESTARTS);
}

#[test]
fn what_is_not_answered_or_not_loaded_for_three_minutes_is_restarted() {
    let silent = answered(asking(), Err("no connection"));
    for (world, seconds, expected) in [
        (&asking(), 179, WAITS),
        (&asking(), 180, RESTART_BEGINS),
        (&silent, 179, WAITS),
        (&silent, 180, RESTART_BEGINS),
        (&loading(), 179, LOADS),
        (&loading(), 180, GIVES_UP),
    ] {
        assert_eq!(done_after(world, seconds), expected, "after {seconds} s");
    }
}

#[test]
fn an_operator_that_was_away_hears_the_engine_before_it_gives_up() {
    let hour = later(now(), Duration::from_secs(3600));
    for (answer, expected) in [
        (
            Verdict::Taken,
            "[record Loading [work_mem], apply config config-uid, apply set set-uid x1] ConfigReloading",
        ),
        (rejected(), "[reject: no] stalled ConfigRejected"),
    ] {
        assert_eq!(line(&plan(&answered(asking(), Ok(answer)), hour)), expected);
    }
    // The time for the file runs from the write, whenever the question was.
    let actions = plan(&answered(asking(), Ok(Verdict::Taken)), hour).actions;
    let Some(Action::RecordSettings(record)) = actions.first() else { panic!("{actions:?}") };
    assert_eq!(record.change.as_ref().map(|change| change.since.clone()), Some(Time(hour)));
}

#[test]
fn an_engine_that_is_not_ready_is_restarted_for_an_edit_and_not_for_one_that_it_has_taken() {
    let begins = "[apply config config-uid, apply set set-uid x1] RestartPending";
    assert_eq!(done(&not_ready(edited())), begins, "an edit mends what does not start");
    assert_eq!(done(&not_ready(written(edited()))), RESTARTS);
    for seconds in [0, 3600] {
        assert_eq!(
            done_after(&not_ready(loading()), seconds),
            "[] EngineStarting",
            "its next start has them"
        );
    }
    assert_eq!(done(&not_ready(asking())), WAITS, "for a moment");
    assert_eq!(done_after(&not_ready(asking()), 180), RESTART_BEGINS);
    let mended = with_config(not_ready(loading()), "32MB");
    assert_eq!(done(&mended), begins, "another edit while it does not start");
}

#[test]
fn more_than_settings_or_what_is_not_known_restarts() {
    let mut other = edited();
    other.database.spec.engine.version = Some("17.7".to_owned());
    let other = written(with_config(other, AFTER));
    assert!(done(&other).starts_with("[replace orders-0 pod-uid: the image changes"), "{}", done(&other));
    let mut unknown = written(edited());
    unknown.database.status.as_mut().unwrap().config = None;
    assert_eq!(done(&unknown), RESTARTS, "what is in force is not known");
    let mut rotating = written(edited());
    let Credentials::Read(Child::Ours(held)) = &mut rotating.credentials else { panic!("no Secret") };
    held.0.data.get_or_insert_default().insert(NEXT_PASSWORD.to_owned(), ByteString(b"n".repeat(32)));
    assert_eq!(done(&rotating), RESTARTS, "which password it has is not known");
}

#[test]
fn settings_are_due_while_the_engine_is_to_be_asked_or_to_load_them() {
    for world in [edited, asking, loading] as [fn() -> Observed; 3] {
        assert!(is_due(&world()));
    }
    let before = || with_config(edited(), BEFORE);
    let restarting = || at_step(written(edited()), ConfigStep::AtStart, &[]);
    let failing = || not_ready(edited());
    for world in [before, restarting, failing] as [fn() -> Observed; 3] {
        assert!(!is_due(&world()));
    }
}

/// The status after a pass over this world.
fn said(world: &Observed) -> ConfigStatus {
    let acted = Acted::new(world.database.clone());
    let decided = Decided::of(world, &plan(world, now()), &acted);
    status_of(world, &decided, &acted, now()).config.unwrap()
}

#[test]
fn the_status_says_what_is_in_force_and_what_is_pending() {
    let said_of = |world: &Observed| {
        let said = said(world);
        let value = said.in_force.get("work_mem").map(|it| it.0.clone()).unwrap_or_default();
        (said.state, value, said.pending.len())
    };
    let paused = || {
        let mut world = edited();
        (world.database.spec.running, world.pod) = (false, None);
        world
    };
    let restarted = || {
        let mut world = loading();
        world.pod = Some(pod_of(world.stateful_set.ours().unwrap()));
        world.pod.as_mut().unwrap().metadata.uid = Some("another".to_owned());
        world
    };
    let before = || with_config(edited(), BEFORE);
    let at_start = || at_step(edited(), ConfigStep::AtStart, &[]);
    let worlds: [(fn() -> Observed, _); 6] = [
        (before, (ConfigState::InForce, BEFORE, 0)),
        (asking, (ConfigState::Reloading, BEFORE, 1)),
        (loading, (ConfigState::Reloading, BEFORE, 1)),
        (at_start, (ConfigState::PendingRestart, BEFORE, 1)),
        (paused, (ConfigState::PendingRestart, BEFORE, 1)),
        (restarted, (ConfigState::InForce, AFTER, 0)),
    ];
    for (world, (state, value, pending)) in worlds {
        assert_eq!(said_of(&world()), (state, value.to_owned(), pending));
    }
    assert_eq!(said(&restarted()).change, None);
}

#[test]
fn a_pod_whose_engine_has_taken_the_settings_is_as_wanted() {
    let actions = plan(&loading(), now()).actions;
    let [Action::ReloadSettings(load)] = actions.as_slice() else { panic!("{actions:?}") };
    assert!(load.file.ends_with("work_mem = '16MB'\n"), "{}", load.file);
    let mut world = loading();
    *record(&mut world) = load.record.clone();
    assert_eq!((question(&world), done(&world).as_str()), (None, "[] as wanted"));
    let inputs_hash = build::inputs_hash(&world.database.spec);
    let after = said(&world);
    assert_eq!((after.state, after.in_force), (ConfigState::InForce, settings(AFTER)));
    assert_eq!(after.reloaded, Some(ReloadedPod { pod_uid: "pod-uid".to_owned(), inputs_hash }));
    let mut next = world.clone();
    next.pod.as_mut().unwrap().metadata.uid = Some("another".to_owned());
    assert_eq!(said(&next).reloaded, None, "what is known of the pod is not known of another");
    assert_eq!(done(&with_config(world, "32MB")), "[record Asking []] ConfigReloading");
}

#[test]
fn what_is_taken_back_before_or_after_it_was_loaded_is_loaded_and_restarts_nothing() {
    let back = with_config(loading(), BEFORE);
    assert_eq!(done(&back), "[record Asking [work_mem]] ConfigReloading");
    let asked = at_step(back, ConfigStep::Asking, &["work_mem"]);
    assert_eq!(
        done(&answered(asked.clone(), Ok(Verdict::Taken))),
        "[record Loading [work_mem], apply config config-uid, apply set set-uid x1] ConfigReloading"
    );
    // What it has begun with is no reason to go on without it.
    assert!(done(&answered(asked.clone(), Ok(rejected()))).starts_with("[record AtStart [work_mem], apply "));
    assert_eq!(done(&at_step(written(asked), ConfigStep::Loading, &["work_mem"])), LOADS);
    assert_eq!(done(&with_config(asking(), BEFORE)), "[] as wanted", "nothing was written");
}

#[test]
fn a_setting_that_is_new_gone_or_another_is_changed() {
    let settings = |entries: &[(&str, &str)]| -> Settings {
        entries.iter().map(|(key, value)| ((*key).to_owned(), ConfigValue((*value).to_owned()))).collect()
    };
    let from = settings(&[("same", "1"), ("gone", "1"), ("other", "1")]);
    let to = settings(&[("same", "1"), ("new", "1"), ("other", "2")]);
    assert_eq!(build::changed(&from, &to), ["gone", "new", "other"]);
}
