//! Size, type, IOPS and throughput: one ModifyVolume, its budget and its refusals, then the claim.

use super::*;
use crate::api::keys::STORAGE_CLASS_ANNOTATION;
use crate::cloud::{Modification, ModificationState};
use crate::controller::pass::acted::Acted;
use crate::controller::volume::status::status as status_of;

pub(super) const DAY: i64 = 86_400;

/// 200 GiB with 6000 IOPS are wanted of the settled world's 100 GiB, since long enough.
pub(super) fn wanted(change: impl FnOnce(&mut Observed)) -> Observed {
    let mut observed = settled();
    observed.volume.spec.size = Size("200Gi".into());
    observed.volume.spec.iops = Some(6000);
    status(&mut observed).change_due_since = Some(Time(at(0)));
    change(&mut observed);
    observed
}

pub(super) fn record(at_second: i64, size: i32, iops: i32) -> ModificationRecord {
    ModificationRecord {
        at: Time(at(at_second)),
        size,
        volume_type: "gp3".into(),
        iops: Some(iops),
        throughput: Some(125),
    }
}

pub(super) fn modification(state: ModificationState, started: i64) -> Modification {
    Modification { volume: id("vol-1"), state, started_at: Some(at(started)) }
}

#[test]
fn edits_are_gathered_and_become_one_call() {
    hold(vec![
        (
            "the first look at a change gathers",
            wanted(|it| status(it).change_due_since = None),
            now(),
            "Bound: [] Modifying, pending, again in 3 s",
        ),
        ("a second before it is ripe", wanted(|_| {}), at(2), "Bound: [] Modifying, pending, again in 1 s"),
        (
            "ripe: size and IOPS in one call",
            wanted(|_| {}),
            at(3),
            "Bound: [modify vol-1 to 200 GiB gp3, 6000 IOPS, 125 MiB/s] Modifying, pending",
        ),
        (
            "ripe, and EC2 has not said yet whether it still makes the last change",
            wanted(|it| it.volumes.modification_is_known = false),
            at(3),
            "Bound: [] Modifying, pending, again in 60 s",
        ),
        (
            "nor a minute later: it is asked",
            wanted(|it| it.volumes.modification_is_known = false),
            at(63),
            "Bound: [modify vol-1 to 200 GiB gp3, 6000 IOPS, 125 MiB/s] Modifying, pending",
        ),
        (
            "IOPS alone",
            wanted(|it| it.volume.spec.size = Size("100Gi".into())),
            at(3),
            "Bound: [modify vol-1 to 100 GiB gp3, 6000 IOPS, 125 MiB/s] Modifying, pending",
        ),
        (
            "IOPS taken back: EBS' own default is asked for",
            wanted(|it| {
                it.volume.spec.size = Size("100Gi".into());
                it.volume.spec.iops = None;
                it.volumes.volumes[0].iops = Some(6000);
            }),
            at(3),
            "Bound: [modify vol-1 to 100 GiB gp3, 3000 IOPS, 125 MiB/s] Modifying, pending",
        ),
        (
            "EC2 has more than is asked for: that stays",
            wanted(|it| it.volumes.volumes[0].size = 300),
            at(3),
            "Bound: [modify vol-1 to 300 GiB gp3, 6000 IOPS, 125 MiB/s] Modifying, pending",
        ),
    ]);
}

#[test]
fn another_type_is_asked_for_without_gp3s_defaults() {
    let observed = wanted(|it| {
        it.volume.spec.volume_type = "io2".into();
        it.volume.spec.throughput = None;
    });
    let plan = plan(&observed, at(3));
    let [Action::Modify(modify)] = plan.actions.as_slice() else { panic!("{plan:?}") };
    let request = &modify.request;
    assert_eq!((request.volume_type.as_str(), request.iops, request.throughput), ("io2", Some(6000), None));
}

#[test]
fn one_modification_at_a_time_and_a_lost_answer_is_given_time() {
    let asked = |change: fn(&mut Observed)| {
        wanted(|it| {
            status(it).modifications = vec![record(5, 200, 6000)];
            change(it);
        })
    };
    let running = |state: ModificationState| {
        move |it: &mut Observed| it.volumes.modification = Some(modification(state, 5))
    };
    hold(vec![
        (
            "modifying",
            with(asked(|_| {}), running(ModificationState::Modifying)),
            at(5000),
            "Bound: [] Modifying, pending",
        ),
        (
            "optimizing: another change waits",
            with(asked(|_| {}), running(ModificationState::Optimizing)),
            at(5000),
            "Bound: [] Modifying, pending",
        ),
        (
            "asked for, and not shown yet",
            asked(|_| {}),
            at(10),
            "Bound: [] Modifying, pending, again in 55 s",
        ),
        (
            "completed, and the sweep is older",
            with(asked(|_| {}), running(ModificationState::Completed)),
            at(10),
            "Bound: [] Modifying, pending, again in 55 s",
        ),
        (
            "never shown: asked for again, and it counts once",
            asked(|_| {}),
            at(65),
            "Bound: [modify vol-1 to 200 GiB gp3, 6000 IOPS, 125 MiB/s instead of the last] Modifying, \
                pending",
        ),
        (
            "a restart gives it the time again",
            asked(|it| it.leading_since = at(60)),
            at(65),
            "Bound: [] Modifying, pending, again in 55 s",
        ),
        (
            "asked for more than is wanted now, since EC2 had more: still the same",
            wanted(|it| {
                it.volumes.volumes[0].size = 300;
                status(it).modifications = vec![record(5, 300, 6000)];
            }),
            at(10),
            "Bound: [grow claim orders-k3f9q {spec.resources.requests.storage: 200Gi}] Modifying, pending, \
            again in 55 s",
        ),
        (
            "another edit while the last one is not shown",
            asked(|it| it.volume.spec.iops = Some(7000)),
            at(10),
            "Bound: [] Modifying, pending, again in 55 s",
        ),
        (
            "another edit once the last one is over",
            with(asked(|it| it.volume.spec.iops = Some(7000)), running(ModificationState::Completed)),
            at(10),
            "Bound: [modify vol-1 to 200 GiB gp3, 7000 IOPS, 125 MiB/s] Modifying, pending",
        ),
        (
            "one that failed is asked for again after its time",
            with(asked(|_| {}), running(ModificationState::Failed)),
            at(65),
            "Bound: [modify vol-1 to 200 GiB gp3, 6000 IOPS, 125 MiB/s] Modifying, pending",
        ),
    ]);
}

#[test]
fn the_claim_grows_when_ec2_has_the_size_and_the_file_system_follows() {
    let grown = |requested: &str, capacity: &str| {
        with(settled(), |it| {
            it.volume.spec.size = Size("200Gi".into());
            it.volumes.volumes[0].size = 200;
            it.claim = Some(claim(requested, capacity));
        })
    };
    hold(vec![
        (
            "EC2 shows the size already: no call, the claim asks for it",
            grown("100Gi", "100Gi"),
            now(),
            "Bound: [grow claim orders-k3f9q {spec.resources.requests.storage: 200Gi}] AwaitingFileSystem",
        ),
        (
            "not before it can be used",
            with(grown("100Gi", "100Gi"), |it| {
                it.volumes.modification = Some(modification(ModificationState::Modifying, 5));
            }),
            now(),
            "Bound: [] Modifying, pending",
        ),
        (
            "optimizing is enough",
            with(grown("100Gi", "100Gi"), |it| {
                it.volumes.modification = Some(modification(ModificationState::Optimizing, 5));
            }),
            now(),
            "Bound: [grow claim orders-k3f9q {spec.resources.requests.storage: 200Gi}] AwaitingFileSystem",
        ),
        ("the file system is awaited", grown("200Gi", "100Gi"), now(), "Bound: [] AwaitingFileSystem"),
        ("it has grown", grown("200Gi", "200Gi"), now(), "[] as wanted"),
        ("in bytes, too", grown("200Gi", "214748364800"), now(), "[] as wanted"),
        ("in MiB, too", grown("200Gi", "204800Mi"), now(), "[] as wanted"),
        (
            "a capacity that cannot be read is awaited",
            grown("200Gi", "much"),
            now(),
            "Bound: [] AwaitingFileSystem",
        ),
        (
            "a volume that was grown by hand beyond the spec is as wanted",
            with(settled(), |it| it.volumes.volumes[0].size = 300),
            now(),
            "[] as wanted",
        ),
    ]);
}

#[test]
fn edits_are_gathered_whatever_was_waited_for_before() {
    // The file system of a paused database was awaited since yesterday, which is no reason to take the next
    // edit alone.
    let paused = |since: Option<i64>| {
        with(settled(), |it| {
            it.volumes.volumes[0].size = 200;
            it.claim = Some(claim("200Gi", "100Gi"));
            it.volume.spec.size = Size("300Gi".into());
            says(it, ConditionType::Modified, false, Reason::AwaitingFileSystem, at(-DAY));
            status(it).change_due_since = since.map(|second| Time(at(second)));
        })
    };
    hold(vec![
        ("the first look", paused(None), now(), "Bound: [] Modifying, pending, again in 3 s"),
        ("a second later", paused(Some(10)), at(11), "Bound: [] Modifying, pending, again in 2 s"),
        (
            "ripe",
            paused(Some(10)),
            at(13),
            "Bound: [modify vol-1 to 300 GiB gp3, 3000 IOPS, 125 MiB/s] Modifying, pending",
        ),
    ]);
    let acted = |observed: &Observed| Acted::new(observed.volume.clone());
    let since = |observed: &Observed, second: i64| {
        status_of(observed, &plan(observed, at(second)), &acted(observed), at(second)).change_due_since
    };
    assert_eq!(since(&paused(None), 10), Some(Time(at(10))), "noted when it is first seen");
    assert_eq!(since(&paused(Some(10)), 11), Some(Time(at(10))), "and kept");
    assert_eq!(since(&settled(), 11), None);
    assert_eq!(
        since(&with(paused(Some(10)), |it| it.volume.spec.size = Size("200Gi".into())), 11),
        None,
        "set back in time"
    );
}

#[test]
fn edits_back_and_forth_within_seconds_cost_no_call() {
    let mut observed = settled();
    for iops in [Some(6000), None, Some(4000), None] {
        observed.volume.spec.iops = iops;
        let planned = plan(&observed, now());
        assert_eq!(planned.actions, [], "{iops:?}");
    }
    assert_eq!(line(&observed, now(), &plan(&observed, now())), "[] as wanted");
}

#[test]
fn what_another_client_has_grown_stays_and_stalls_nothing() {
    let grown = |claim_of: &str, in_ec2: i32| {
        with(settled(), |it| {
            it.volumes.volumes[0].size = in_ec2;
            it.claim = Some(claim(claim_of, claim_of));
        })
    };
    let edited = with(grown("200Gi", 200), |it| {
        it.volume.spec.iops = Some(6000);
        status(it).change_due_since = Some(Time(at(0)));
    });
    hold(vec![
        ("the claim alone, which the storage driver carries out", grown("200Gi", 100), now(), "[] as wanted"),
        ("the claim, and EC2 with it", grown("200Gi", 200), now(), "[] as wanted"),
        ("EC2 alone", grown("100Gi", 200), now(), "[] as wanted"),
        (
            "the next change keeps the size",
            edited,
            at(3),
            "Bound: [modify vol-1 to 200 GiB gp3, 6000 IOPS, 125 MiB/s] Modifying, pending",
        ),
    ]);
}

#[test]
fn a_restored_volume_keeps_the_iops_and_the_throughput_that_it_has() {
    let faster = |change: fn(&mut Observed)| {
        with(settled(), |it| {
            it.volumes.volumes[0].iops = Some(9000);
            it.volumes.volumes[0].throughput = Some(500);
            change(it);
        })
    };
    let restored = faster(|it| it.volume.spec.adopt_retained = Some("freehold-1".to_owned()));
    hold(vec![
        (
            "one that Freehold created for this Volume",
            faster(|_| {}),
            now(),
            "Bound: [] Modifying, pending, again in 3 s",
        ),
        ("one that was retained", restored, now(), "[] as wanted"),
    ]);
}

#[test]
fn a_claim_that_kubernetes_does_not_expand_is_refused_with_a_way_out_before_ec2_is_asked() {
    let larger = with(settled(), |it| it.volume.spec.size = Size("200Gi".into()));
    let without_class = |it: &mut Observed| {
        it.claim.as_mut().unwrap().spec.as_mut().unwrap().storage_class_name = Some(String::new());
    };
    let fixed = with(larger.clone(), |it| it.storage_class = Some(storage_class(false)));
    hold(vec![
        (
            "a class that does not permit it",
            fixed.clone(),
            now(),
            "Bound: [] stalled ClaimNotExpandable, again in 60 s",
        ),
        (
            "a class that is gone",
            with(larger.clone(), |it| it.storage_class = None),
            now(),
            "Bound: [] stalled ClaimNotExpandable, again in 60 s",
        ),
        (
            "no class",
            with(larger.clone(), without_class),
            now(),
            "Bound: [] stalled ClaimNotExpandable, again in 60 s",
        ),
        (
            "EC2 has grown it already",
            with(fixed.clone(), |it| it.volumes.volumes[0].size = 200),
            now(),
            "Bound: [] stalled ClaimNotExpandable, again in 60 s",
        ),
        (
            "nothing to grow",
            with(settled(), |it| it.storage_class = Some(storage_class(false))),
            now(),
            "[] as wanted",
        ),
    ]);
    assert!(message(&plan(&fixed, now())).contains("kubectl patch storageclass freehold"));
    let annotated = |it: &mut Observed| {
        let annotations = it.claim.as_mut().unwrap().annotations_mut();
        annotations.insert(STORAGE_CLASS_ANNOTATION.to_owned(), "legacy".to_owned());
    };
    let old = plan(&with(fixed.clone(), annotated), now());
    assert!(
        message(&old).contains("kubectl patch storageclass legacy"),
        "the annotation wins over the field"
    );
}
