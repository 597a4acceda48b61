//! The claim of an adopted database is gone, or is another: no pod is started with an empty volume.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use pretty_assertions::assert_eq;

use super::*;
use crate::api::keys::FINALIZER;

/// An adopted database that needs nothing.
fn settled() -> Observed {
    let mut world = adopted();
    change(&mut world.volume, |volume| volume.spec.release = false);
    world.nodes[0].spec.release = false;
    world
}

fn with(alter: impl FnOnce(&mut Observed)) -> String {
    let mut world = settled();
    alter(&mut world);
    line(&plan(&world, now()))
}

fn claim(world: &mut Observed) -> &mut PersistentVolumeClaim {
    legacy_of(world).claim.as_mut().unwrap()
}

fn deleted(world: &mut Observed) {
    claim(world).metadata.deletion_timestamp = Some(Time(now()));
}

fn gone(world: &mut Observed) {
    legacy_of(world).claim = None;
}

/// Kubernetes has made this one for a pod, after the one of the data was gone.
fn of_another(world: &mut Observed) {
    claim(world).metadata.creation_timestamp = Some(Time(now()));
    claim(world).spec.as_mut().unwrap().volume_name = Some("pvc-2".to_owned());
}

fn ending(world: &mut Observed) {
    world.pod.as_mut().unwrap().metadata.deletion_timestamp = Some(Time(now()));
}

fn scaled(world: &mut Observed) {
    change(&mut world.stateful_set, |set| set.spec.as_mut().unwrap().replicas = Some(0));
    as_applied(world);
    world.pod = None;
}

const STOPS: &str = "scale legacy-set-uid to 0";

#[test]
fn no_pod_of_an_adopted_database_follows_one_that_ends_while_its_claim_is_not_the_one_of_the_data() {
    assert_eq!(with(|_| {}), "[] as wanted");
    for (name, alter) in [("gone", gone as fn(&mut Observed)), ("deleted", deleted)] {
        let goes_on = with(alter);
        assert!(!goes_on.contains(STOPS), "{name}: the pod that runs goes on: {goes_on}");
        let ends = with(|it| {
            alter(it);
            ending(it);
        });
        assert_eq!(ends, format!("[{STOPS}] AwaitingBinding"), "{name}");
        let without = with(|it| {
            alter(it);
            it.pod = None;
        });
        assert_eq!(without, format!("[{STOPS}] AwaitingBinding"), "{name}");
        let stopped = with(|it| {
            alter(it);
            scaled(it);
        });
        assert_eq!(stopped, "[] AwaitingBinding", "{name}: and it stays so");
        let absent = with(|it| {
            alter(it);
            (it.stateful_set, it.pod) = (Child::Absent, None);
        });
        assert_eq!(absent, "[] AwaitingBinding", "{name}: no StatefulSet is created with its claims");
    }
    let lost = with(|it| {
        deleted(it);
        let conditions = &mut it.nodes[0].status.as_mut().unwrap().conditions;
        conditions.push(from_json(json!({"type": "Lost", "status": "True", "reason": "InstanceLost",
            "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"})));
    });
    assert!(lost.contains(STOPS), "the Node's controller ends the pod without notice: {lost}");
    assert_eq!(with(deleted), "[] stalled AwaitingBinding", "a person says when the pod may end");
    assert_eq!(with(scaled), "[apply set legacy-set-uid x1] AwaitingPod", "with its claim it starts");
}

#[test]
fn a_pod_that_was_started_on_an_empty_volume_is_stopped_and_a_person_decides() {
    assert_eq!(with(of_another), "[] stalled AwaitingBinding", "it is older than that claim");
    let younger = with(|it| {
        of_another(it);
        let later = Some(Time(Timestamp::from_second(now().as_second() + 5).unwrap()));
        it.pod.as_mut().unwrap().metadata.creation_timestamp = later;
    });
    assert_eq!(younger, format!("[{STOPS}] stalled AwaitingBinding"));
    let message = |world: &Observed| plan(world, now()).waiting.unwrap().message();
    let mut world = settled();
    of_another(&mut world);
    assert!(
        message(&world).contains("Delete this claim, which may delete PersistentVolume pvc-2"),
        "{}",
        message(&world)
    );
}

#[test]
fn a_restart_that_is_due_is_the_moment_in_which_a_claim_that_was_deleted_is_created_again() {
    let restarts = |world: &mut Observed| {
        world.database.spec.engine.version = Some("17.6".to_owned());
        world.profile = engine::profile(&world.database.spec.engine, &world.database.spec.config);
        let wanted = plan(world, now());
        let Some(Action::ApplyStatefulSet(set)) = wanted.actions.last() else { panic!("{wanted:?}") };
        let set = StatefulSet { status: legacy_set().status, ..set.as_ref().clone() };
        world.stateful_set = ours(seen(with_uid(set, SET_UID)));
        as_applied(world);
    };
    let due = with(restarts);
    assert!(due.starts_with("[replace pg-17-0"), "{due}");
    let stops = with(|it| {
        restarts(it);
        deleted(it);
    });
    assert_eq!(stops, format!("[{STOPS}] stalled AwaitingBinding"));
    let edited = with(|it| {
        it.database.spec.engine.version = Some("17.6".to_owned());
        it.profile = engine::profile(&it.database.spec.engine, &it.database.spec.config);
        deleted(it);
    });
    assert_eq!(edited, format!("[{STOPS}] stalled AwaitingBinding"), "before the template is applied, too");
}

#[test]
fn a_pause_and_a_deletion_are_what_they_are_for_any_database() {
    for alter in [gone, deleted, of_another] {
        let deleting = with(|it| {
            alter(it);
            deleting(&mut it.database, 1);
        });
        assert!(deleting.starts_with(&format!("[{STOPS}]")), "{deleting}");
        assert!(!deleting.contains("AwaitingBinding"), "{deleting}");
    }
}

/// The PersistentVolume of this name, with this EBS volume.
fn record(name: &str, volume: &str) -> PersistentVolume {
    from_json(json!({
        "metadata": {"name": name},
        "spec": {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": volume},
            "persistentVolumeReclaimPolicy": "Retain"},
    }))
}

/// The claim is deleted, and kept by our finalizer.
fn held(world: &mut Observed) {
    deleted(world);
    claim(world).metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    legacy_of(world).persistent_volume = Some(record("pvc-1", "vol-0123456789abcdef0"));
}

#[test]
fn a_deleted_claim_is_let_go_only_when_nothing_makes_a_pod_and_its_persistent_volume_outlives_it() {
    let held = |alter: fn(&mut Observed)| {
        with(|it| {
            held(it);
            alter(it);
        })
    };
    assert_eq!(held(|_| {}), "[] stalled AwaitingBinding", "its pod goes on");
    assert_eq!(held(ending), format!("[{STOPS}] AwaitingBinding"));
    assert_eq!(held(|it| it.pod = None), format!("[{STOPS}] AwaitingBinding"), "Kubernetes may make another");
    assert_eq!(held(scaled), "[free data-pg-17-0] AwaitingBinding");
    let unseen = held(|it| {
        scaled(it);
        change(&mut it.stateful_set, |set| set.metadata.generation = Some(99));
    });
    assert_eq!(unseen, "[] AwaitingBinding", "the StatefulSet's controller has not seen it");
    let mortal = held(|it| {
        scaled(it);
        let record = legacy_of(it).persistent_volume.as_mut().unwrap();
        record.spec.as_mut().unwrap().persistent_volume_reclaim_policy = Some("Delete".to_owned());
    });
    assert_eq!(mortal, "[] AwaitingBinding", "it would be deleted with its claim");
    let stays = held(|it| {
        scaled(it);
        claim(it).metadata.deletion_timestamp = None;
    });
    assert_eq!(stays, "[apply set legacy-set-uid x1] AwaitingPod", "only one that was deleted");
    let paused = held(|it| {
        scaled(it);
        it.database.spec.running = false;
    });
    assert!(paused.starts_with("[free data-pg-17-0, unlabel"), "{paused}");
    for lost in [(|it| it.volume = Child::Absent) as fn(&mut Observed), |it| {
        change(&mut it.volume, |volume| deleting(volume, 1));
    }] {
        let stays = with(|it| {
            self::held(it);
            scaled(it);
            lost(it);
        });
        assert!(!stays.contains("free"), "nothing creates it again: {stays}");
    }
}

#[test]
fn the_claim_of_a_database_that_is_deleted_does_not_stay_behind_where_the_volume_is_gone() {
    let leaves = |alter: fn(&mut Observed)| {
        with(|it| {
            held(it);
            scaled(it);
            claim(it).metadata.deletion_timestamp = None;
            deleting(&mut it.database, 1);
            alter(it);
        })
    };
    assert!(!leaves(|_| {}).contains("free"), "the Volume does that");
    let gone = leaves(|it| it.volume = Child::Absent);
    assert!(gone.starts_with("[free data-pg-17-0"), "{gone}");
    let foreign = leaves(|it| {
        (it.volume, it.stateful_set) = (Child::Absent, Child::Absent);
        it.database.status.as_mut().unwrap().adoption = None;
    });
    assert!(!foreign.contains("free"), "what was never adopted may be another Database's: {foreign}");
}

#[test]
fn no_pod_follows_on_another_claim_where_the_volume_is_gone_too() {
    let without = |alter: fn(&mut Observed)| {
        with(|it| {
            it.volume = Child::Absent;
            it.database.status.as_mut().unwrap().volume_name = Some(it.names.volume.clone());
            legacy_of(it).persistent_volume = Some(record("pvc-1", "vol-0123456789abcdef0"));
            alter(it);
        })
    };
    let stops = format!("[{STOPS}] stalled VolumeLost");
    assert_eq!(without(|_| {}), "[] stalled VolumeLost");
    assert_eq!(without(|it| it.pod = None), "[] stalled VolumeLost", "its own claim is there");
    let no_record = without(|it| legacy_of(it).persistent_volume = None);
    assert_eq!(no_record, "[] stalled VolumeLost", "on that claim no pod starts");
    for alter in [gone as fn(&mut Observed), deleted] {
        let goes_on = with(|it| {
            it.volume = Child::Absent;
            alter(it);
        });
        assert!(!goes_on.contains(STOPS), "{goes_on}");
    }
    let ended = |it: &mut Observed| {
        gone(it);
        it.pod = None;
    };
    assert_eq!(without(ended), stops);
    let ending_on_it = |it: &mut Observed| {
        deleted(it);
        ending(it);
    };
    assert_eq!(without(ending_on_it), stops);
    let on_another = |it: &mut Observed| {
        of_another(it);
        legacy_of(it).persistent_volume = Some(record("pvc-2", "vol-2"));
        it.pod = None;
    };
    assert_eq!(without(on_another), stops);
    let unbound = |it: &mut Observed| {
        claim(it).spec.as_mut().unwrap().volume_name = None;
        (legacy_of(it).persistent_volume, it.pod) = (None, None);
    };
    assert_eq!(without(unbound), stops, "Kubernetes has made it");
}
