//! A volume that grows by itself: when, by how much, and what the status says of it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::permission::of_class;
use super::*;
use crate::api::Size;
use crate::api::database::{AutoGrowState, AutoGrowStatus, Unmeasured};
use crate::cluster::kubelet::DiskUsage;
use crate::controller::database::growth::{Judgement, judge};
use crate::controller::database::observe::usage::{Held, NamespaceStorage, Requested};
use crate::controller::database::plan::auto_grow::facts;
use crate::controller::database::status::{Decided, changes, status};
use crate::controller::memory::disk_usage::Reading;
use crate::controller::pass::acted::Acted;

/// Long after everything else of the settled world.
const NOW: i64 = 1_800_000_000;

/// A settled Database of 100 GiB with this policy besides `maxSize`, of which so many GiB are used.
fn used(gib: u64, policy: Value) -> Observed {
    let mut whole = json!({"maxSize": "300Gi"});
    whole.as_object_mut().unwrap().extend(policy.as_object().unwrap().clone());
    let storage = json!({"size": "100Gi", "autoGrow": whole});
    read(settled_as(json!({"storage": storage})), gib, 100)
}

/// The kubelet has said half a minute ago that so many GiB of a file system of so many are used.
fn read(mut world: Observed, gib: u64, of: u64) -> Observed {
    let usage = Ok(DiskUsage { capacity: of << 30, available: (of - gib) << 30 });
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

fn grows_to(size: &str) -> String {
    format!("[update volume-uid {{\"size\":\"{size}\"}}] Progressing")
}

/// The size that the plan gives the Volume.
fn growth_of(world: &Observed) -> Option<String> {
    plan(world, at(NOW)).actions.iter().find_map(|action| {
        let Action::UpdateVolume(_, patch) = action else { return None };
        Some(patch["size"].as_str()?.to_owned())
    })
}

/// What is changed in the world of a full disk.
type Case = (&'static str, fn(&mut Observed));

const NOTHING: &str = "[] as wanted";

#[test]
fn a_volume_grows_by_as_many_steps_as_leave_less_used_than_the_threshold() {
    for (gib, policy, expected) in [
        (79, json!({}), None),
        (80, json!({}), Some("120Gi")),
        (89, json!({}), Some("120Gi")),
        (90, json!({}), Some("144Gi")),
        (100, json!({}), Some("144Gi")),
        (100, json!({"stepPercent": 10}), Some("134Gi")),
        (85, json!({"maxSize": "110Gi"}), Some("110Gi")),
        (60, json!({"thresholdPercent": 60, "stepPercent": 100}), Some("200Gi")),
        (100, json!({"thresholdPercent": 50, "stepPercent": 10}), Some("240Gi")),
    ] {
        let world = used(gib, policy.clone());
        assert_eq!(
            done(&world),
            expected.map_or_else(|| NOTHING.to_owned(), grows_to),
            "{gib} GiB of {policy}"
        );
    }
}

#[test]
fn one_need_is_answered_once_whatever_the_threshold_the_step_and_the_reading_before_the_growth() {
    let mut world = used(0, json!({"maxSize": "900Gi"}));
    let measured = |gib: u64, of: u64| {
        Some(Reading {
            at: at(NOW),
            usage: Ok(DiskUsage { capacity: of << 30, available: (of - gib) << 30 }),
        })
    };
    for threshold in 50..=95_i32 {
        for step in 10..=100 {
            for gib in u64::try_from(threshold).unwrap()..=100 {
                let of = policy(&mut world).as_mut().unwrap();
                (of.threshold_percent, of.step_percent) = (threshold, step);
                volume(&mut world).spec.size = Size::from_gib(100);
                world.disk = measured(gib, 100);
                let Judgement::Grow(size) = judge(&facts(&world), at(NOW)) else {
                    panic!("{gib} {threshold}")
                };
                volume(&mut world).spec.size = Size::from_gib(size);
                let again = judge(&facts(&world), at(NOW));
                assert_eq!(again, Judgement::Arriving, "{gib} {threshold} {step} {size}");
                world.disk = measured(gib, u64::try_from(size).unwrap());
                assert_eq!(judge(&facts(&world), at(NOW)), Judgement::Enough, "{gib} {threshold} {step}");
            }
        }
    }
}

#[test]
fn a_growth_that_has_not_begun_becomes_larger_where_more_is_used_by_now() {
    let waiting = with(of_size(used(80, json!({})), "120Gi"), |it| volume(it).metadata.generation = Some(2));
    assert_eq!(state(&waiting), AutoGrowState::Growing);
    assert_eq!(growth_of(&waiting), None, "it has the answer to that");
    assert_eq!(growth_of(&read(waiting.clone(), 89, 100)), None);
    assert_eq!(growth_of(&read(waiting, 91, 100)), Some("144Gi".to_owned()));
}

#[test]
fn a_file_system_that_is_smaller_than_its_volume_is_full_when_it_is_full() {
    // 1 GiB of xfs without its log, and ext4 with what only root may use.
    let small = settled_as(json!({"storage": {"size": "1Gi", "autoGrow": {"maxSize": "4Gi"}}}));
    for (capacity, available) in [(960_u64 << 20, 190_u64 << 20), (973 << 20, 150 << 20)] {
        let full = with(of_size(small.clone(), "1Gi"), |it| {
            it.disk = Some(Reading { at: at(NOW), usage: Ok(DiskUsage { capacity, available }) });
        });
        assert_eq!(growth_of(&full), Some("2Gi".to_owned()), "{capacity}");
    }
}

#[test]
fn nothing_grows_that_is_not_measured_or_not_to_serve() {
    let cases: [Case; 10] = [
        ("nothing was read", |it| it.disk = None),
        ("the kubelet does not answer", |it| {
            it.disk = Some(Reading { at: at(NOW), usage: Err(Unmeasured::Unreachable) });
        }),
        ("what was read is old", |it| it.disk.as_mut().unwrap().at = at(NOW - 300)),
        ("no policy", |it| *policy(it) = None),
        ("it has all that it may", |it| volume(it).spec.size = Size("300Gi".to_owned())),
        ("it has more than it may", |it| volume(it).spec.size = Size("400Gi".to_owned())),
        ("the Volume is being deleted", |it| volume(it).metadata.deletion_timestamp = Some(Time(at(NOW)))),
        ("it is paused", |it| it.database.spec.running = false),
        ("it is deleted", |it| it.database.metadata.deletion_timestamp = Some(Time(at(NOW)))),
        ("the file system is larger than the volume", |it| {
            it.disk.as_mut().unwrap().usage = Ok(DiskUsage { capacity: 101 << 30, available: 0 });
        }),
    ];
    for (name, change) in cases {
        assert_eq!(growth_of(&with(full(), change)), None, "{name}");
    }
}

#[test]
fn a_volume_grows_up_to_the_largest_size_of_its_type() {
    let of_type = |volume_type: &str| {
        let storage = json!({"size": "1000Gi", "type": volume_type, "autoGrow": {"maxSize": "60Ti"}});
        let world = of_size(settled_as(json!({"storage": storage})), "1000Gi");
        read(with(world, |it| volume(it).spec.volume_type = volume_type.to_owned()), 990, 1000)
    };
    assert_eq!(growth_of(&of_type("gp3")), Some("1440Gi".to_owned()));
    assert_eq!(growth_of(&of_type("standard")), Some("1024Gi".to_owned()));
    assert_eq!(state(&of_size(of_type("standard"), "1024Gi")), AutoGrowState::AtMaximum);
}

#[test]
fn the_last_growth_is_no_limit_before_it_has_arrived() {
    let of =
        |gib: u64, capacity: u64| read(of_size(used(0, json!({"maxSize": "150Gi"})), "150Gi"), gib, capacity);
    assert_eq!(state(&of(112, 140)), AutoGrowState::Growing);
    assert_eq!(state(&of(112, 150)), AutoGrowState::Watching);
    assert_eq!(state(&of(120, 150)), AutoGrowState::AtMaximum);
}

#[test]
fn nothing_that_a_person_must_mend_keeps_a_full_disk_from_growing() {
    let cases: [Case; 7] = [
        ("an engine that the full disk keeps from starting", |it| {
            let status = json!({"phase": "Running", "podIP": "10.0.0.7", "containerStatuses": [
                container_status(json!({"waiting": {"reason": "CrashLoopBackOff"}}))]});
            it.pod = it.pod.take().map(|pod| pod_with(pod, status));
        }),
        ("an invalid spec", |it| it.database.spec.instance_types = Vec::new()),
        ("a missing Secret", |it| it.credentials = Credentials::Read(Child::Absent)),
        ("a zone that is excluded", |it| it.database.spec.zones = vec!["us-east-1f".to_owned()]),
        ("it was deleted, and is protected from that", |it| {
            it.database.metadata.deletion_timestamp = Some(Time(at(NOW)));
            it.database.spec.deletion_protection = true;
        }),
        ("a StatefulSet that another client has changed", |it| {
            let Child::Ours(set) = &mut it.stateful_set else { panic!("no StatefulSet") };
            set.spec.as_mut().unwrap().template.spec.as_mut().unwrap().node_name = Some("other".to_owned());
        }),
        ("IOPS that the NodeClass does not permit", |it| it.database.spec.storage.iops = Some(70_000)),
    ];
    for (name, change) in cases {
        let mut world = of_class(full(), json!({"limits": {"iops": 6000}}));
        change(&mut world);
        assert_eq!(growth_of(&world), Some("120Gi".to_owned()), "{name}");
        assert!(
            matches!(plan(&world, at(NOW)).actions[0], Action::UpdateVolume(..)),
            "{name}: before what may fail"
        );
        assert_eq!(state(&world), AutoGrowState::Growing, "{name}");
    }
}

#[test]
fn what_has_grown_stays_whatever_becomes_of_the_policy_and_the_spec() {
    let grown = of_size(used(50, json!({})), "144Gi");
    assert_eq!(done(&grown), NOTHING);
    let recorded = with(grown.clone(), |it| {
        let said = shown(it);
        it.database.status.as_mut().unwrap().auto_grow = said;
    });
    let off = with(recorded, |it| *policy(it) = None);
    assert_eq!(done(&off), NOTHING);
    let said = shown(&off).unwrap();
    assert_eq!((said.state, said.size), (AutoGrowState::Off, Some(Size("144Gi".to_owned()))));
    let edited = |size: &str| with(off.clone(), |it| it.database.spec.storage.size = Size(size.to_owned()));
    assert_eq!(done(&edited("120Gi")), NOTHING, "it has more");
    assert_eq!(done(&edited("200Gi")), grows_to("200Gi"));
    assert_eq!(shown(&of_size(edited("200Gi"), "200Gi")), None, "the spec says all of it");
    let lowered = with(grown, |it| policy(it).as_mut().unwrap().max_size = Size("110Gi".to_owned()));
    assert_eq!(done(&lowered), NOTHING);
}

#[test]
fn a_person_and_a_full_disk_that_request_more_at_once_get_the_larger_one_in_one_change() {
    for (size, expected) in [("110Gi", "120Gi"), ("200Gi", "200Gi")] {
        let both = with(full(), |it| it.database.spec.storage.size = Size(size.to_owned()));
        assert_eq!(growth_of(&both), Some(expected.to_owned()), "{size}");
    }
    let beyond = with(of_class(full(), json!({"limits": {"storage": "150Gi"}})), |it| {
        it.database.spec.storage.size = Size("200Gi".to_owned());
    });
    assert_eq!(growth_of(&beyond), Some("120Gi".to_owned()), "what is not permitted is left out");
}

#[test]
fn a_class_that_permits_no_more_keeps_the_volume_and_the_database_as_they_are() {
    let limits = |most: &str| json!({"limits": {"storage": most}});
    assert_eq!(done(&of_class(full(), limits("110Gi"))), grows_to("110Gi"));
    let limited = of_class(of_size(read(full(), 109, 110), "110Gi"), limits("110Gi"));
    assert_eq!(done(&limited), NOTHING);
    assert_eq!(state(&limited), AutoGrowState::NotPermitted);
    let gone = with(full(), |it| it.class = None);
    assert_eq!((growth_of(&gone), state(&gone)), (None, AutoGrowState::NotPermitted));
}

#[test]
fn what_the_storage_of_the_namespace_leaves_is_used_and_no_more() {
    let shared = |others: i32, older: i32| {
        let mut world = of_class(full(), json!({"limits": {"totalStorage": "150Gi"}}));
        let own = Held { database_uid: UID.to_owned(), is_orphaned: false, size: 100 };
        let other = Held { database_uid: "other".to_owned(), is_orphaned: false, size: others };
        let asked = Requested { uid: "other".to_owned(), size: older, adopts: None };
        world.usage.storage = Some(NamespaceStorage {
            databases: vec![asked, Requested::by(&world.database)],
            volumes: vec![own, other],
            retained: Vec::new(),
        });
        world
    };
    for (others, older, expected) in [
        (10, 10, Some("120Gi")),
        (40, 40, Some("110Gi")),
        (20, 40, Some("110Gi")),
        (45, 45, Some("105Gi")),
        (46, 46, None),
        (60, 60, None),
    ] {
        let world = shared(others, older);
        assert_eq!(growth_of(&world), expected.map(str::to_owned), "{others} {older}");
        let is_permitted = state(&world) == AutoGrowState::Growing;
        assert_eq!(is_permitted, expected.is_some(), "{others} {older}");
    }
    let uncounted = with(shared(10, 10), |it| it.usage.storage = None);
    assert_eq!(growth_of(&uncounted), None);
    assert_ne!(state(&uncounted), AutoGrowState::NotPermitted, "EC2 was not listed yet");
}

#[test]
fn the_status_says_what_is_done_about_it_and_nothing_that_moves() {
    assert_eq!(state(&used(79, json!({}))), AutoGrowState::Watching);
    assert_eq!(state(&full()), AutoGrowState::Growing);
    assert_eq!(shown(&used(10, json!({}))), shown(&used(70, json!({}))));
    assert_eq!(state(&of_size(read(full(), 240, 300), "300Gi")), AutoGrowState::AtMaximum);
    assert_eq!(state(&with(full(), |it| it.database.spec.running = false)), AutoGrowState::Off);
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
fn an_operator_that_has_just_started_says_what_was_said_before_until_it_has_read() {
    let of = |state| AutoGrowStatus { state, unmeasured: None, size: None, grown_at: None };
    for state in [AutoGrowState::Watching, AutoGrowState::AtMaximum, AutoGrowState::NotPermitted] {
        let unread = with(full(), |it| {
            it.disk = None;
            it.database.status.as_mut().unwrap().auto_grow = Some(of(state));
        });
        assert_eq!(shown(&unread), Some(of(state)));
    }
    assert_eq!(state(&with(full(), |it| it.disk = None)), AutoGrowState::Unmeasured, "nothing was said");
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
    assert_eq!(events(Some(AutoGrowState::Watching), AutoGrowState::Unmeasured), 0, "without a cause");
}
