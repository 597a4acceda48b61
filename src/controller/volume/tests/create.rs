//! Before the Volume has an EBS volume, and when EC2 does not show the one it had.

use super::*;

fn sent(last: i64) -> Sent {
    Sent { last: at(last), times: 1, in_doubt: true, refused_after_doubt: false, not_before: at(last + 2) }
}

fn quota_closed(observed: &mut Observed) {
    observed.offerings.quotas = reached(at(70));
}

#[test]
fn a_new_volume_gets_its_finalizer_then_waits_for_a_sweep_then_is_made() {
    hold(vec![
        (
            "the finalizer comes before anything that costs money",
            with(world(), |it| it.volume.metadata.finalizers = None),
            now(),
            "Nothing: [add finalizer] Progressing",
        ),
        (
            "nothing is decided before EC2 was seen",
            with(world(), |it| it.volumes.swept_at = None),
            now(),
            "Nothing: [] AwaitingInventory",
        ),
        ("it is made", world(), now(), "Nothing: [create attempt 1] Creating, pending"),
        (
            "no NodeClass",
            with(world(), |it| it.class = None),
            now(),
            "Nothing: [] stalled NodeClassNotFound, again in 60 s",
        ),
        (
            "a closed quota gate",
            with(world(), quota_closed),
            now(),
            "Nothing: [] QuotaExceeded, again in 60 s",
        ),
        (
            "a size that is none",
            with(world(), |it| it.volume.spec.size = Size("1.5Gi".into())),
            now(),
            "Nothing: [] stalled InvalidSpec",
        ),
    ]);
}

#[test]
fn a_lost_status_never_leads_to_an_empty_volume_in_the_place_of_one_with_data() {
    hold(vec![
        (
            "what carries this UID is recorded",
            with(world(), |it| it.volumes.volumes = vec![ebs("vol-1", 1, VolumeState::Available)]),
            now(),
            "Nothing: [record vol-1] Creating",
        ),
        (
            "of several a person picks",
            with(world(), |it| {
                it.volumes.volumes =
                    vec![ebs("vol-1", 1, VolumeState::InUse), ebs("vol-2", 2, VolumeState::Available)];
            }),
            now(),
            "Nothing: [] stalled InDoubt",
        ),
        (
            "a PersistentVolume of ours names it",
            with(world(), |it| it.persistent_volume = Some(record())),
            now(),
            "Nothing: [record vol-1] Creating",
        ),
        (
            "and what it names is looked for",
            with(world(), |it| {
                status(it).volume_id = Some(id("vol-1"));
                it.persistent_volume = Some(record());
            }),
            now(),
            "Nothing: [] VolumeLost, pending",
        ),
        (
            "and lost for good on proof, not replaced",
            with(world(), |it| {
                status(it).volume_id = Some(id("vol-1"));
                it.persistent_volume = Some(record());
                it.volumes.empty = Some(run(1, 1201));
                it.by_id = ById::NotShown;
            }),
            at(1202),
            "Nothing: [] stalled VolumeLost",
        ),
    ]);
    let several = with(world(), |it| {
        it.volumes.volumes =
            vec![ebs("vol-1", 1, VolumeState::InUse), ebs("vol-2", 2, VolumeState::Available)];
    });
    assert!(message(&plan(&several, now())).contains("vol-1, vol-2"));
}

#[test]
fn an_attempt_without_an_id_is_adopted_resent_or_looked_up_and_never_replaced_on_doubt() {
    hold(vec![
        (
            "what has its tags is its own",
            with(attempted(), |it| it.volumes.volumes = vec![ebs("vol-1", 1, VolumeState::Creating)]),
            now(),
            "Nothing: [record vol-1] Creating, pending",
        ),
        (
            "a later attempt's is, too: the status is older than what was done",
            with(attempted(), |it| {
                it.volumes.volumes = vec![ebs("vol-2", 2, VolumeState::Available)];
                it.sent = Some(sent(9));
            }),
            now(),
            "Nothing: [record vol-2] Creating, pending",
        ),
        (
            "found at start-up and looked up: the same call",
            attempted(),
            now(),
            "Nothing: [create again] InDoubt, pending",
        ),
        (
            "not before the first sweep of this process",
            with(attempted(), |it| it.leading_since = at(9)),
            now(),
            "Nothing: [] InDoubt, pending",
        ),
        (
            "our own send: after its pause",
            with(attempted(), |it| it.sent = Some(sent(9))),
            now(),
            "Nothing: [] InDoubt, pending, again in 1 s",
        ),
        (
            "our own send: then the same call",
            with(attempted(), |it| it.sent = Some(sent(8))),
            now(),
            "Nothing: [create again] InDoubt, pending",
        ),
        (
            "a closed quota gate holds it back",
            with(attempted(), quota_closed),
            now(),
            "Nothing: [] QuotaExceeded, pending, again in 60 s",
        ),
        (
            "a token older than six hours is never sent",
            attempted(),
            at(21_601),
            "Nothing: [] InDoubt, pending",
        ),
        (
            "a changed spec does not matter: the recorded request is sent",
            with(attempted(), |it| it.volume.spec.size = Size("200Gi".into())),
            now(),
            "Nothing: [create again] InDoubt, pending",
        ),
        (
            "nor does a class that is gone",
            with(attempted(), |it| it.class = None),
            now(),
            "Nothing: [create again] InDoubt, pending",
        ),
        (
            "refused after doubt",
            with(attempted(), |it| it.sent = Some(Sent { refused_after_doubt: true, ..sent(1) })),
            now(),
            "Nothing: [] InDoubt, pending",
        ),
        (
            "proven absent",
            with(attempted(), |it| {
                it.sent = Some(sent(50));
                it.volumes.empty = Some(run(51, 1251));
            }),
            at(2000),
            "Nothing: [create attempt 2] Creating, pending",
        ),
        (
            "a second short of it",
            with(attempted(), |it| {
                it.sent = Some(sent(50));
                it.volumes.empty = Some(run(51, 1250));
            }),
            at(2000),
            "Nothing: [create again] InDoubt, pending",
        ),
        (
            "without a class the proof is kept",
            with(attempted(), |it| {
                it.volumes.empty = Some(run(1, 1201));
                it.class = None;
            }),
            at(2000),
            "Nothing: [] stalled NodeClassNotFound, pending, again in 60 s",
        ),
    ]);
}

#[test]
fn a_definite_refusal_is_answered_by_its_class() {
    let refused_with = |code: &str, change: fn(&mut Observed)| {
        with(world(), |it| {
            status(it).creation = Some(refused(code, at(2)));
            change(it);
        })
    };
    hold(vec![
        (
            "no permission: after a pause",
            refused_with("UnauthorizedOperation", |_| {}),
            now(),
            "Nothing: [] Forbidden, again in 292 s",
        ),
        (
            "no permission: the pause is over",
            refused_with("UnauthorizedOperation", |_| {}),
            at(302),
            "Nothing: [create attempt 2] Creating, pending",
        ),
        (
            "no capacity: after a pause",
            refused_with("InsufficientVolumeCapacity", |_| {}),
            now(),
            "Nothing: [] InsufficientCapacity, again in 172 s",
        ),
        (
            "no capacity: the pause is over",
            refused_with("InsufficientVolumeCapacity", |_| {}),
            at(182),
            "Nothing: [create attempt 2] Creating, pending",
        ),
        (
            "invalid: nothing until the spec changes",
            refused_with("InvalidParameterValue", |_| {}),
            at(100_000),
            "Nothing: [] stalled InvalidRequest",
        ),
        (
            "invalid, and the class is gone",
            refused_with("InvalidParameterValue", |it| it.class = None),
            now(),
            "Nothing: [] stalled InvalidRequest",
        ),
    ]);
    let changed = refused_with("InvalidParameterValue", |it| it.volume.spec.iops = Some(4000));
    let plan = plan(&changed, now());
    let [Action::Create(next)] = plan.actions.as_slice() else { panic!("{plan:?}") };
    assert_eq!((next.attempt.number, next.iops, &next.attempt.refused), (2, Some(4000), &None));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_volume_that_ec2_does_not_show_is_replaced_only_if_it_never_held_data_and_only_on_proof() {
    let missing = |change: fn(&mut Observed)| {
        with(created(VolumeState::Available), |it| {
            it.volumes.volumes.clear();
            change(it);
        })
    };
    let held = |it: &mut Observed| status(it).ever_held = true;
    let proven_by_id = |it: &mut Observed| {
        it.volumes.empty = Some(run(1, 1201));
        it.by_id = ById::NotShown;
    };
    hold(vec![
        ("not yet visible", missing(|_| {}), at(5000), "Nothing: [] Creating, pending"),
        (
            "never held anything, and proven absent",
            missing(|it| it.volumes.empty = Some(run(1, 1201))),
            at(1202),
            "Nothing: [] Creating, pending, reads vol-1, again in 5 s",
        ),
        (
            "proven absent, and EC2 does not show it by its id",
            missing(|it| {
                it.volumes.empty = Some(run(1, 1201));
                it.by_id = ById::NotShown;
            }),
            at(1202),
            "Nothing: [create attempt 2] Creating, pending",
        ),
        (
            "proven absent, and EC2 shows it by its id: its tags were taken off",
            missing(|it| {
                it.volumes.empty = Some(run(1, 1201));
                it.by_id = ById::Shown(Box::new(ebs("vol-1", 1, VolumeState::Available)));
            }),
            at(1202),
            "Nothing: [] VolumeLost, pending, again in 60 s",
        ),
        (
            "proven absent, and no class: the proof is kept",
            missing(|it| {
                it.volumes.empty = Some(run(1, 1201));
                it.class = None;
            }),
            at(1202),
            "Nothing: [] stalled NodeClassNotFound, pending, again in 60 s",
        ),
        ("held data: looked for", with(missing(|_| {}), held), at(5000), "Nothing: [] VolumeLost, pending"),
        (
            "held data: a second short of proof",
            with(missing(|it| it.volumes.empty = Some(run(1, 1200))), held),
            at(5000),
            "Nothing: [] VolumeLost, pending",
        ),
        (
            "held data, and EC2 was not asked by its id",
            with(missing(|it| it.volumes.empty = Some(run(1, 1201))), held),
            at(5000),
            "Nothing: [] VolumeLost, pending, reads vol-1, again in 5 s",
        ),
        (
            "held data: lost, never replaced",
            with(missing(proven_by_id), held),
            at(5000),
            "Nothing: [] stalled VolumeLost",
        ),
        (
            "held data, and EC2 shows it by its id: its tags were taken off",
            with(
                missing(|it| {
                    it.volumes.empty = Some(run(1, 1201));
                    it.by_id = ById::Shown(Box::new(ebs("vol-1", 1, VolumeState::InUse)));
                }),
                held,
            ),
            at(5000),
            "Nothing: [] VolumeLost, pending, again in 60 s",
        ),
        (
            "lost stays lost when the look-ups of the proof are forgotten",
            with(missing(|it| says(it, ConditionType::Stalled, true, Reason::VolumeLost, at(5000))), held),
            at(6000),
            "Nothing: [] stalled VolumeLost, pending, reads vol-1, again in 5 s",
        ),
        (
            "one that never held data is not replaced on a condition",
            missing(|it| says(it, ConditionType::Stalled, true, Reason::VolumeLost, at(5000))),
            at(6000),
            "Nothing: [] Creating, pending",
        ),
        (
            "being deleted from outside",
            with(created(VolumeState::Deleting), held),
            now(),
            "Nothing: [] VolumeLost, pending",
        ),
        ("still being made", created(VolumeState::Creating), now(), "Nothing: [] Creating, pending"),
        ("broken", created(VolumeState::Error), now(), "Nothing: [] stalled VolumeLost"),
    ]);
    let lost = with(missing(proven_by_id), held);
    for word in ["orders-k3f9q", "vol-1", "not replaced"] {
        assert!(message(&plan(&lost, at(5000))).contains(word));
    }
}

#[test]
fn the_rate_of_a_volume_from_a_snapshot_is_recorded_with_the_request_before_it_is_sent() {
    let restored = with(world(), |it| {
        it.volume.spec.snapshot_id = Some(SnapshotId("snap-1".into()));
        it.volume.spec.initialization_rate = Some(200);
    });
    let plan = plan(&restored, now());
    let [Action::Create(request)] = plan.actions.as_slice() else { panic!("{plan:?}") };
    assert_eq!(request.snapshot_id, Some(SnapshotId("snap-1".into())));
    assert_eq!(request.initialization_rate, Some(200));
}
