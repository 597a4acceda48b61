//! The plan of settings that an engine takes while it runs, and what is said of them.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::*;
use crate::api::database::{ConfigState, ConfigStatus, ConfigValue, LoadingPod, ReloadedPod};
use crate::api::keys::NEXT_PASSWORD;
use crate::controller::database::config_record::in_effect;
use crate::controller::database::plan::reload::question;
use crate::controller::database::status::{Decided, status as status_of};
use crate::controller::pass::acted::Acted;
use crate::engine::reload::{Answer, rejected};
use crate::time::later;

const BEFORE: &str = "8MB";
const AFTER: &str = "16MB";

type Settings = BTreeMap<String, ConfigValue>;

fn postgresql() -> Value {
    json!({"engine": {"type": "postgresql", "version": "17.6"}})
}

fn settings(value: &str) -> Settings {
    BTreeMap::from([("work_mem".to_owned(), ConfigValue(value.to_owned()))])
}

/// What the status says of settings that are in force.
fn in_force(settings: &Settings) -> ConfigStatus {
    ConfigStatus {
        state: ConfigState::InForce,
        hash: build::config_hash(settings),
        since: Time(at(1_600_000_000)),
        in_force: settings.clone(),
        pending: Vec::new(),
        rejected: Vec::new(),
        overridden: Vec::new(),
        loading: None,
        reloaded: None,
    }
}

/// A settled world of these settings whose spec has others now; nothing is written of them.
fn edited_from(from: &Settings, to: &Settings) -> Observed {
    let mut spec = postgresql();
    spec["config"] = json!(from);
    let mut world = settled_as(spec);
    if let Some(status) = world.pod.as_mut().and_then(|pod| pod.status.as_mut()) {
        status.pod_ip = Some("10.0.0.7".to_owned());
    }
    world.database.status.as_mut().unwrap().config = Some(in_force(from));
    with_config(&mut world, to);
    world.settings = None;
    world
}

fn with_config(world: &mut Observed, config: &Settings) {
    world.database.spec.config = config.clone();
    world.profile = engine::profile(&world.database.spec.engine, &world.database.spec.config);
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

fn changed() -> Observed {
    written(edited_from(&settings(BEFORE), &settings(AFTER)))
}

/// The engine has said this.
fn answered(mut world: Observed, verdict: Verdict) -> Observed {
    world.settings = Some(Ok(verdict.into()));
    world
}

fn done(world: &Observed) -> String {
    line(&plan(world, now()))
}

/// The same this many seconds after the edit.
fn done_after(world: &Observed, seconds: u64) -> String {
    let mut world = world.clone();
    let config = world.database.status.as_mut().unwrap().config.as_mut().unwrap();
    config.hash = build::config_hash(&world.database.spec.config);
    config.since = Time(now());
    line(&plan(&world, later(now(), Duration::from_secs(seconds))))
}

fn no() -> Verdict {
    Verdict::Rejected(vec![rejected("work_mem", AFTER, "no")])
}

const SEEN: Verdict = Verdict::Taken { is_seen: true };
const UNSEEN: Verdict = Verdict::Taken { is_seen: false };
const WAITS: &str = "[] ConfigReloading";
const RESTARTS: &str = "[replace orders-0 pod-uid: the engine's settings changed] RestartPending";

#[test]
fn the_files_and_the_template_are_written_before_the_engine_is_asked() {
    let world = edited_from(&settings(BEFORE), &settings(AFTER));
    assert_eq!(question(&world), None);
    assert_eq!(done(&world), "[apply config config-uid, apply set set-uid x1] ConfigReloading");
    let (access, change) = question(&written(world)).unwrap();
    assert_eq!((access.port, access.database.as_str()), (5432, "postgres"));
    assert_eq!((change.from, change.to), (settings(BEFORE), settings(AFTER)));
}

#[test]
fn what_the_engine_says_decides() {
    let world = changed();
    assert_eq!(done(&world), WAITS, "it has said nothing yet");
    for (verdict, expected) in [
        (Verdict::NotSeen, WAITS),
        (SEEN, "[load work_mem] ConfigReloading"),
        (UNSEEN, "[load work_mem] ConfigReloading"),
        (Verdict::AtStart, RESTARTS),
        (no(), "[reject work_mem] stalled ConfigRejected"),
    ] {
        assert_eq!(done(&answered(world.clone(), verdict.clone())), expected, "{verdict:?}");
    }
    let mut silent = world;
    silent.settings = Some(Err("no connection".to_owned()));
    assert_eq!(done(&silent), WAITS);
}

#[test]
fn what_is_not_answered_is_awaited_for_three_minutes_and_then_restarted() {
    let mut silent = changed();
    silent.settings = Some(Err("no connection".to_owned()));
    for (world, seconds, expected) in [
        (&changed(), 179, WAITS),
        (&changed(), 180, RESTARTS),
        (&silent, 179, WAITS),
        (&silent, 180, RESTARTS),
        (&answered(changed(), Verdict::NotSeen), 179, WAITS),
        (&answered(changed(), Verdict::NotSeen), 180, RESTARTS),
        (&answered(changed(), UNSEEN), 179, "[load work_mem] ConfigReloading"),
        (&answered(changed(), UNSEEN), 180, "[reject work_mem] stalled ConfigRejected"),
        (&answered(changed(), SEEN), 359, "[load work_mem] ConfigReloading"),
        (&answered(changed(), SEEN), 360, RESTARTS),
    ] {
        assert_eq!(done_after(world, seconds), expected, "after {seconds} s");
    }
}

#[test]
fn an_engine_that_cannot_be_asked_is_restarted() {
    let mut starting = changed();
    let not_ready =
        json!({"phase": "Running", "containerStatuses": [container_status(json!({"running": {}}))]});
    starting.pod = starting.pod.map(|pod| pod_with(pod, not_ready));
    assert_eq!(done(&starting), RESTARTS);
    let mut other = edited_from(&settings(BEFORE), &settings(AFTER));
    other.database.spec.engine.version = Some("17.7".to_owned());
    with_config(&mut other, &settings(AFTER));
    let restarts = "[replace orders-0 pod-uid: the image changes";
    assert!(done(&written(other)).starts_with(restarts), "more than settings differ");
    let mut unknown = changed();
    unknown.database.status.as_mut().unwrap().config = None;
    assert_eq!(done(&unknown), RESTARTS, "what is in force is not known");
    let first = written(edited_from(&Settings::new(), &settings(AFTER)));
    assert!(question(&first).is_some(), "the first settings of all");
}

#[test]
fn an_engine_that_may_have_either_password_is_given_one_before_it_is_asked() {
    let mut world = changed();
    let Credentials::Read(Child::Ours(held)) = &mut world.credentials else { panic!("no Secret") };
    held.0.data.get_or_insert_default().insert(NEXT_PASSWORD.to_owned(), ByteString(b"n".repeat(32)));
    assert_eq!(question(&world), None);
    let given = "[give admin@10.0.0.7:5432 the next password, put the next password in force] Rotating";
    assert_eq!(done(&answered(world, SEEN)), given);
}

#[test]
fn the_operator_is_let_in_while_it_has_something_to_ask() {
    let lets_in = |mut world: Observed| {
        world.network.operator_from = r#"[{"podSelector": {"matchLabels": {"a": "b"}}}]"#.parse().unwrap();
        let plan = plan(&world, now());
        let policy = plan.actions.iter().find_map(|action| {
            if let Action::ApplyNetworkPolicy(policy) = action { policy.spec.clone() } else { None }
        });
        policy.map(|policy| policy.ingress.unwrap().len())
    };
    assert_eq!(lets_in(edited_from(&settings(BEFORE), &settings(AFTER))), Some(2), "with the files");
    assert_eq!(lets_in(changed()), Some(2));
    assert_eq!(lets_in(written(edited_from(&settings(BEFORE), &settings(BEFORE)))), None, "nothing changes");
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
        (said.state, value, said.pending)
    };
    let pending = vec!["work_mem".to_owned()];
    let nothing = Vec::<String>::new();
    let settled = written(edited_from(&settings(BEFORE), &settings(BEFORE)));
    assert_eq!(said_of(&settled), (ConfigState::InForce, BEFORE.to_owned(), nothing.clone()));
    let (reloading, restarting) = (ConfigState::Reloading, ConfigState::PendingRestart);
    assert_eq!(said_of(&changed()), (reloading, BEFORE.to_owned(), pending.clone()));
    let restarts = answered(changed(), Verdict::AtStart);
    assert_eq!(said_of(&restarts), (restarting, BEFORE.to_owned(), pending.clone()));
    let mut paused = changed();
    (paused.database.spec.running, paused.pod) = (false, None);
    assert_eq!(said_of(&paused), (restarting, BEFORE.to_owned(), pending));
    let mut restarted = changed();
    restarted.pod = Some(pod_of(restarted.stateful_set.ours().unwrap()));
    assert_eq!(said_of(&restarted), (ConfigState::InForce, AFTER.to_owned(), nothing));
    let first = said(&changed());
    assert_eq!(first.since, Time(now()));
    assert_eq!(said(&settled).since, Time(at(1_600_000_000)), "nothing has changed");
}

/// The engine of the pod has taken the settings while it ran.
fn reloaded() -> Observed {
    let mut world = changed();
    let inputs_hash = build::inputs_hash(&world.database.spec);
    let record = ConfigStatus {
        reloaded: Some(ReloadedPod { pod_uid: "pod-uid".to_owned(), inputs_hash }),
        ..in_force(&settings(AFTER))
    };
    world.database.status.as_mut().unwrap().config = Some(record);
    world
}

#[test]
fn a_pod_whose_engine_has_taken_the_settings_is_as_wanted() {
    let world = reloaded();
    assert_eq!(question(&world), None);
    assert_eq!(done(&world), "[] as wanted");
    assert_eq!(said(&world).state, ConfigState::InForce);
    let mut next = world.clone();
    next.pod.as_mut().unwrap().metadata.uid = Some("another".to_owned());
    assert!(question(&next).is_none(), "what is known of the pod is not known of another");
    assert_eq!(said(&next).reloaded, None);
    let mut again = world;
    with_config(&mut again, &settings("32MB"));
    let (_, change) = question(&written(again)).unwrap();
    assert_eq!((change.from, change.to), (settings(AFTER), settings("32MB")));
}

/// The engine of the pod was requested just now to load these keys.
fn loading(keys: &[String]) -> LoadingPod {
    LoadingPod { pod_uid: "pod-uid".to_owned(), since: Time(now()), keys: keys.to_vec() }
}

#[test]
fn an_engine_that_may_have_loaded_what_was_taken_back_is_asked_again() {
    let mut world = written(edited_from(&settings(BEFORE), &settings(BEFORE)));
    assert_eq!(question(&world), None);
    let keys = vec!["work_mem".to_owned()];
    let config = world.database.status.as_mut().unwrap().config.as_mut().unwrap();
    config.loading = Some(loading(&keys));
    assert_eq!(question(&world).unwrap().1.keys, keys);
    assert_eq!(done(&answered(world.clone(), SEEN)), "[load work_mem] ConfigReloading");
    world.settings = None;
    assert_eq!(done_after(&world, 180), RESTARTS, "whatever it has");
    assert_eq!(said(&world).state, ConfigState::Reloading);
    world.pod.as_mut().unwrap().metadata.uid = Some("another".to_owned());
    assert_eq!((question(&world), said(&world).loading), (None, None));
}

/// The engine has rejected what the spec has, which is written.
fn refused() -> Observed {
    let mut world = changed();
    let record = ConfigStatus {
        state: ConfigState::Rejected,
        hash: build::config_hash(&settings(AFTER)),
        pending: vec!["work_mem".to_owned()],
        rejected: vec![rejected("work_mem", AFTER, "no")],
        ..in_force(&settings(BEFORE))
    };
    world.database.status.as_mut().unwrap().config = Some(record);
    (world.database, world.rejected) = in_effect(world.database);
    world.profile = engine::profile(&world.database.spec.engine, &world.database.spec.config);
    world
}

#[test]
fn what_the_engine_rejects_is_taken_out_of_its_files_and_the_database_goes_on_with_the_rest() {
    let world = refused();
    assert_eq!(world.rejected, Some(settings(AFTER)));
    assert_eq!(world.database.spec.config, settings(BEFORE));
    assert_eq!(done(&world), "[apply config config-uid, apply set set-uid x1] Progressing");
    let restored = written(world);
    assert_eq!(done(&restored), "[] stalled ConfigRejected");
    let record = said(&restored);
    assert_eq!((record.state, record.in_force), (ConfigState::Rejected, settings(BEFORE)));
    let mut bigger = restored.clone();
    bigger.database.spec.storage.size = crate::api::Size("200Gi".to_owned());
    assert!(done(&bigger).starts_with("[update volume-uid "), "nothing else waits for it");
    let mut mended = restored;
    (mended.rejected, mended.settings) = (None, None);
    with_config(&mut mended, &settings("32MB"));
    assert_eq!(done(&mended), "[apply config config-uid, apply set set-uid x1] ConfigReloading");
}

#[test]
fn what_was_rejected_stays_so_while_the_engine_is_asked_again() {
    let mut world = written(refused());
    let config = world.database.status.as_mut().unwrap().config.as_mut().unwrap();
    config.loading = Some(loading(&["work_mem".to_owned()]));
    let answer = Answer::from(SEEN);
    world.settings = Some(Ok(answer));
    let actions = plan(&world, now()).actions;
    let [Action::ReloadSettings(load)] = actions.as_slice() else { panic!("{actions:?}") };
    let before = world.database.status.as_ref().unwrap().config.as_ref();
    let record = crate::controller::database::config_record::taken(before, load, now());
    assert_eq!((record.state, record.loading), (ConfigState::Rejected, None));
}
