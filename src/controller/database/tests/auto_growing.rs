//! A volume that grows by itself: when, by how much, and what the status says of it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::permission::of_class;
use super::*;
use crate::api::Size;
use crate::api::database::{AutoGrowState, AutoGrowStatus, Unmeasured};
use crate::cluster::kubelet::DiskUsage;
use crate::controller::database::observe::usage::{Held, NamespaceStorage, Requested};
use crate::controller::database::status::{Decided, changes, status};
use crate::controller::memory::disk_usage::Reading;
use crate::controller::pass::acted::Acted;

/// Long after everything else of the settled world.
const NOW: i64 = 1_800_000_000;

/// A settled Database of 100 GiB with this policy besides `maxSize`, of which so many percent are used.
fn used(percent: u64, policy: Value) -> Observed {
    let mut whole = json!({"maxSize": "300Gi"});
    whole.as_object_mut().unwrap().extend(policy.as_object().unwrap().clone());
    let storage = json!({"size": "100Gi", "autoGrow": whole});
    with_usage(settled_as(json!({"storage": storage})), percent)
}

fn with_usage(mut world: Observed, percent: u64) -> Observed {
    let usage = Ok(DiskUsage { capacity: 100 << 30, available: (100 - percent) << 30 });
    world.disk = Some(Reading { at: at(NOW - 30), usage });
    world
}

fn full() -> Observed {
    used(85, json!({}))
}

fn with(mut world: Observed, change: impl FnOnce(&mut Observed)) -> Observed {
    change(&mut world);
    world
}

fn volume(world: &mut Observed) -> &mut Volume {
    let Child::Ours(volume) = &mut world.volume else { panic!("no Volume") };
    volume
}

/// The Volume has this size, and is as its spec says.
fn of_size(world: Observed, size: &str) -> Observed {
    with(world, |it| volume(it).spec.size = Size(size.to_owned()))
}

fn policy(world: &mut Observed) -> &mut Option<crate::api::database::AutoGrow> {
    &mut world.database.spec.storage.auto_grow
}

fn done(world: &Observed) -> String {
    line(&plan(world, at(NOW)))
}

fn shown(world: &Observed) -> Option<AutoGrowStatus> {
    let acted = Acted::new(world.database.clone());
    status(world, &Decided::of(world, &plan(world, at(NOW)), &acted), &acted, at(NOW)).auto_grow
}

fn state(world: &Observed) -> AutoGrowState {
    shown(world).unwrap().state
}

const NOTHING: &str = "[] as wanted";

#[test]
fn a_volume_grows_by_as_many_steps_as_leave_less_used_than_the_threshold() {
    for (percent, policy, expected) in [
        (79, json!({}), None),
        (80, json!({}), Some("120Gi")),
        (95, json!({}), Some("120Gi")),
        (96, json!({}), Some("144Gi")),
        (100, json!({}), Some("144Gi")),
        (100, json!({"stepPercent": 10}), Some("134Gi")),
        (85, json!({"maxSize": "110Gi"}), Some("110Gi")),
        (60, json!({"thresholdPercent": 60, "stepPercent": 100}), Some("200Gi")),
        (100, json!({"thresholdPercent": 50, "stepPercent": 10}), Some("218Gi")),
    ] {
        let grown = expected.map(|size| format!("[update volume-uid {{\"autoGrown\":true,\"size\":\"{size}\"}}] Progressing"));
        let world = used(percent, policy.clone());
        assert_eq!(done(&world), grown.unwrap_or_else(|| NOTHING.to_owned()), "{percent} % of {policy}");
    }
}

#[test]
fn nothing_grows_that_is_not_measured_or_not_to_serve() {
    let cases: [(&str, fn(&mut Observed)); 9] = [
        ("what was read is smaller than the volume", |it| {
            it.disk.as_mut().unwrap().usage = Ok(DiskUsage { capacity: 89 << 30, available: 0 });
        }),
        ("nothing was read", |it| it.disk = None),
        ("the kubelet does not answer", |it| {
            it.disk = Some(Reading { at: at(NOW), usage: Err(Unmeasured::Unreachable) });
        }),
        ("what was read is old", |it| it.disk.as_mut().unwrap().at = at(NOW - 300)),
        ("no policy", |it| *policy(it) = None),
        ("the Volume is being changed", |it| volume(it).metadata.generation = Some(2)),
        ("it was changed two minutes before", |it| {
            let conditions = &mut volume(it).status.as_mut().unwrap().conditions;
            conditions.iter_mut().for_each(|it| it.last_transition_time = Time(at(NOW - 180)));
        }),
        ("it has all that it may", |it| volume(it).spec.size = Size("300Gi".to_owned())),
        ("it has more than it may", |it| volume(it).spec.size = Size("400Gi".to_owned())),
    ];
    for (name, change) in cases {
        let world = with(full(), change);
        assert!(!done(&world).contains("size"), "{name}: {}", done(&world));
    }
    let paused = with(full(), |it| it.database.spec.running = false);
    assert!(!done(&paused).contains("size"), "{}", done(&paused));
    let deleted = with(full(), |it| {
        it.database.metadata.deletion_timestamp = Some(Time(at(NOW)));
    });
    assert!(!done(&deleted).contains("size"), "{}", done(&deleted));
}

#[test]
fn an_engine_that_a_full_disk_keeps_from_starting_gets_more() {
    let status = json!({"phase": "Running", "podIP": "10.0.0.7", "containerStatuses": [container_status(
        json!({"waiting": {"reason": "CrashLoopBackOff"}}))]});
    let world = with(used(100, json!({})), |it| it.pod = it.pod.take().map(|pod| pod_with(pod, status)));
    assert!(done(&world).contains("update volume-uid {\"autoGrown\":true,\"size\":\"144Gi\"}"), "{}", done(&world));
}

#[test]
fn what_has_grown_stays_whatever_becomes_of_the_policy_and_the_spec() {
    let grown = of_size(used(50, json!({})), "144Gi");
    assert_eq!(done(&grown), NOTHING);
    let off = with(grown.clone(), |it| {
        volume(it).spec.auto_grown = true;
        *policy(it) = None;
    });
    assert_eq!(done(&off), NOTHING);
    assert_eq!(state(&off), AutoGrowState::Off);
    let edited = |size: &str| with(grown.clone(), |it| it.database.spec.storage.size = Size(size.to_owned()));
    assert_eq!(done(&edited("120Gi")), NOTHING, "it has more");
    assert_eq!(done(&edited("200Gi")), "[update volume-uid {\"autoGrown\":true,\"size\":\"200Gi\"}] Progressing");
    let lowered = with(grown, |it| policy(it).as_mut().unwrap().max_size = Size("110Gi".to_owned()));
    assert_eq!(done(&lowered), NOTHING);
}

#[test]
fn a_class_that_permits_no_more_keeps_the_volume_and_the_database_as_they_are() {
    let limits = |most: &str| json!({"limits": {"storage": most}});
    assert_eq!(
        done(&of_class(full(), limits("110Gi"))),
        "[update volume-uid {\"autoGrown\":true,\"size\":\"110Gi\"}] Progressing"
    );
    let limited = of_class(of_size(full(), "110Gi"), limits("110Gi"));
    assert_eq!(done(&limited), NOTHING);
    assert_eq!(state(&limited), AutoGrowState::NotPermitted);

    let mut shared = of_class(full(), json!({"limits": {"totalStorage": "150Gi"}}));
    let requested = Requested::by(&shared.database);
    let own = Held { database_uid: UID.to_owned(), is_orphaned: false, size: 100 };
    let other = Held { database_uid: "other".to_owned(), is_orphaned: false, size: 40 };
    shared.usage.storage = Some(NamespaceStorage {
        databases: vec![requested],
        volumes: vec![own, other],
        retained: Vec::new(),
    });
    assert_eq!(done(&shared), NOTHING, "{:?}", shared.usage);
    assert_eq!(state(&shared), AutoGrowState::NotPermitted);
}

#[test]
fn the_status_says_what_is_done_about_it_and_nothing_that_moves() {
    assert_eq!(state(&used(79, json!({}))), AutoGrowState::Watching);
    assert_eq!(state(&full()), AutoGrowState::Growing);
    assert_eq!(shown(&used(10, json!({}))), shown(&used(70, json!({}))));
    let waiting = with(full(), |it| volume(it).metadata.generation = Some(2));
    assert_eq!(state(&waiting), AutoGrowState::Growing);
    assert_eq!(state(&of_size(full(), "300Gi")), AutoGrowState::AtMaximum);
    let mut silent = full();
    silent.disk = Some(Reading { at: at(NOW), usage: Err(Unmeasured::Forbidden) });
    let said = shown(&silent).unwrap();
    assert_eq!((said.state, said.unmeasured), (AutoGrowState::Unmeasured, Some(Unmeasured::Forbidden)));
    assert_eq!(shown(&settled()), None);

    let grown = of_size(used(50, json!({})), "120Gi");
    let said = shown(&grown).unwrap();
    assert_eq!(
        (said.size.clone(), said.grown_at.clone()),
        (Some(Size("120Gi".to_owned())), Some(Time(at(NOW))))
    );
    let mut later = grown;
    let before = AutoGrowStatus { grown_at: Some(Time(at(NOW - 900))), ..said };
    later.database.status.as_mut().unwrap().auto_grow = Some(before.clone());
    assert_eq!(shown(&later), Some(before), "it is of the last growth");
}

#[test]
fn that_nothing_more_is_permitted_is_an_event_once() {
    let events = |before: Option<AutoGrowState>, now: AutoGrowState| {
        let of = |state| AutoGrowStatus { state, unmeasured: None, size: None, grown_at: None };
        let status = |state: Option<AutoGrowState>| crate::api::DatabaseStatus {
            auto_grow: state.map(of),
            ..Default::default()
        };
        let world = settled();
        let acted = Acted::new(world.database.clone());
        let decided = Decided::of(&world, &plan(&world, at(NOW)), &acted);
        changes(&status(before), &status(Some(now)), &decided).len()
    };
    assert_eq!(events(Some(AutoGrowState::Growing), AutoGrowState::AtMaximum), 1);
    assert_eq!(events(None, AutoGrowState::NotPermitted), 1);
    assert_eq!(events(Some(AutoGrowState::AtMaximum), AutoGrowState::AtMaximum), 0);
    assert_eq!(events(Some(AutoGrowState::AtMaximum), AutoGrowState::Watching), 0);
}
