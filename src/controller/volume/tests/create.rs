//! Before the Volume has an EBS volume, and when EC2 does not show the one it had.

use super::*;

fn sent(last: i64) -> Sent {
    Sent { last: at(last), times: 1, in_doubt: true, refused_after_doubt: false, not_before: at(last + 2) }
}

fn quota_closed(observed: &mut Observed) {
    observed.offerings.quotas = reached(at(70));
}

fn records(name: &str) -> Row {
    acts(Stage::Nothing, vec![Action::RecordVolume(id(name))], Reason::Creating)
}

#[test]
fn a_new_volume_gets_its_finalizer_then_waits_for_a_sweep_then_is_made() {
    let nothing = Stage::Nothing;
    hold(vec![
        (
            "the finalizer comes before anything that costs money",
            with(world(), |it| it.volume.metadata.finalizers = None),
            now(),
            acts(nothing, vec![Action::AddFinalizer], Reason::Progressing),
        ),
        (
            "nothing is decided before EC2 was seen",
            with(world(), |it| it.volumes.swept_at = None),
            now(),
            waits(nothing, Reason::AwaitingInventory),
        ),
        ("it is made", world(), now(), creates(1, now())),
        (
            "no NodeClass",
            with(world(), |it| it.class = None),
            now(),
            stalls(nothing, Reason::NodeClassNotFound).again(60),
        ),
        (
            "a closed quota gate",
            with(world(), quota_closed),
            now(),
            waits(nothing, Reason::QuotaExceeded).again(60),
        ),
        (
            "a size that is none",
            with(world(), |it| it.volume.spec.size = Size("1.5Gi".into())),
            now(),
            stalls(nothing, Reason::InvalidSpec),
        ),
    ]);
}

#[test]
fn a_lost_status_never_leads_to_an_empty_volume_in_the_place_of_one_with_data() {
    let nothing = Stage::Nothing;
    hold(vec![
        (
            "what carries this UID is recorded",
            with(world(), |it| it.volumes.volumes = vec![ebs("vol-1", 1, VolumeState::Available)]),
            now(),
            records("vol-1"),
        ),
        (
            "of several a person picks",
            with(world(), |it| {
                it.volumes.volumes =
                    vec![ebs("vol-1", 1, VolumeState::InUse), ebs("vol-2", 2, VolumeState::Available)];
            }),
            now(),
            stalls(nothing, Reason::InDoubt),
        ),
        (
            "a PersistentVolume of ours names it",
            with(world(), |it| it.persistent_volume = Some(record())),
            now(),
            records("vol-1"),
        ),
        (
            "and what it names is looked for",
            with(world(), |it| {
                status(it).volume_id = Some(id("vol-1"));
                it.persistent_volume = Some(record());
            }),
            now(),
            waits(nothing, Reason::VolumeLost).pending(),
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
            stalls(nothing, Reason::VolumeLost),
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
    let resends = || acts(Stage::Nothing, vec![Action::Resend], Reason::InDoubt).pending();
    let doubts = || waits(Stage::Nothing, Reason::InDoubt).pending();
    hold(vec![
        (
            "what has its tags is its own",
            with(attempted(), |it| it.volumes.volumes = vec![ebs("vol-1", 1, VolumeState::Creating)]),
            now(),
            records("vol-1").pending(),
        ),
        (
            "a later attempt's is, too: the status is older than what was done",
            with(attempted(), |it| {
                it.volumes.volumes = vec![ebs("vol-2", 2, VolumeState::Available)];
                it.sent = Some(sent(9));
            }),
            now(),
            records("vol-2").pending(),
        ),
        ("found at start-up and looked up: the same call", attempted(), now(), resends()),
        (
            "not before the first sweep of this process",
            with(attempted(), |it| it.leading_since = at(9)),
            now(),
            doubts(),
        ),
        (
            "our own send: after its pause",
            with(attempted(), |it| it.sent = Some(sent(9))),
            now(),
            doubts().again(1),
        ),
        (
            "our own send: then the same call",
            with(attempted(), |it| it.sent = Some(sent(8))),
            now(),
            resends(),
        ),
        (
            "a closed quota gate holds it back",
            with(attempted(), quota_closed),
            now(),
            waits(Stage::Nothing, Reason::QuotaExceeded).again(60).pending(),
        ),
        ("a token older than six hours is never sent", attempted(), at(21_601), doubts()),
        (
            "a changed spec does not matter: the recorded request is sent",
            with(attempted(), |it| it.volume.spec.size = Size("200Gi".into())),
            now(),
            resends(),
        ),
        ("nor does a class that is gone", with(attempted(), |it| it.class = None), now(), resends()),
        (
            "refused after doubt",
            with(attempted(), |it| it.sent = Some(Sent { refused_after_doubt: true, ..sent(1) })),
            now(),
            doubts(),
        ),
        (
            "proven absent",
            with(attempted(), |it| {
                it.sent = Some(sent(50));
                it.volumes.empty = Some(run(51, 1251));
            }),
            at(2000),
            creates(2, at(2000)),
        ),
        (
            "a second short of it",
            with(attempted(), |it| {
                it.sent = Some(sent(50));
                it.volumes.empty = Some(run(51, 1250));
            }),
            at(2000),
            resends(),
        ),
        (
            "without a class the proof is kept",
            with(attempted(), |it| {
                it.volumes.empty = Some(run(1, 1201));
                it.class = None;
            }),
            at(2000),
            stalls(Stage::Nothing, Reason::NodeClassNotFound).again(60).pending(),
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
    let nothing = Stage::Nothing;
    hold(vec![
        (
            "no permission: after a pause",
            refused_with("UnauthorizedOperation", |_| {}),
            now(),
            waits(nothing, Reason::Forbidden).again(292),
        ),
        (
            "no permission: the pause is over",
            refused_with("UnauthorizedOperation", |_| {}),
            at(302),
            creates(2, at(302)),
        ),
        (
            "no capacity: after a pause",
            refused_with("InsufficientVolumeCapacity", |_| {}),
            now(),
            waits(nothing, Reason::InsufficientCapacity).again(172),
        ),
        (
            "no capacity: the pause is over",
            refused_with("InsufficientVolumeCapacity", |_| {}),
            at(182),
            creates(2, at(182)),
        ),
        (
            "invalid: nothing until the spec changes",
            refused_with("InvalidParameterValue", |_| {}),
            at(100_000),
            stalls(nothing, Reason::InvalidRequest),
        ),
        (
            "invalid, and the class is gone",
            refused_with("InvalidParameterValue", |it| it.class = None),
            now(),
            stalls(nothing, Reason::InvalidRequest),
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
    let nothing = Stage::Nothing;
    hold(vec![
        ("not yet visible", missing(|_| {}), at(5000), waits(nothing, Reason::Creating).pending()),
        (
            "never held anything, and proven absent",
            missing(|it| it.volumes.empty = Some(run(1, 1201))),
            at(1202),
            waits(nothing, Reason::Creating).pending().again(5).looks_up("vol-1"),
        ),
        (
            "proven absent, and EC2 does not show it by its id",
            missing(|it| {
                it.volumes.empty = Some(run(1, 1201));
                it.by_id = ById::NotShown;
            }),
            at(1202),
            creates(2, at(1202)),
        ),
        (
            "proven absent, and EC2 shows it by its id: its tags were taken off",
            missing(|it| {
                it.volumes.empty = Some(run(1, 1201));
                it.by_id = ById::Shown(Box::new(ebs("vol-1", 1, VolumeState::Available)));
            }),
            at(1202),
            waits(nothing, Reason::VolumeLost).pending().again(60),
        ),
        (
            "proven absent, and no class: the proof is kept",
            missing(|it| {
                it.volumes.empty = Some(run(1, 1201));
                it.class = None;
            }),
            at(1202),
            stalls(nothing, Reason::NodeClassNotFound).again(60).pending(),
        ),
        (
            "held data: looked for",
            with(missing(|_| {}), held),
            at(5000),
            waits(nothing, Reason::VolumeLost).pending(),
        ),
        (
            "held data: a second short of proof",
            with(missing(|it| it.volumes.empty = Some(run(1, 1200))), held),
            at(5000),
            waits(nothing, Reason::VolumeLost).pending(),
        ),
        (
            "held data, and EC2 was not asked by its id",
            with(missing(|it| it.volumes.empty = Some(run(1, 1201))), held),
            at(5000),
            waits(nothing, Reason::VolumeLost).pending().again(5).looks_up("vol-1"),
        ),
        (
            "held data: lost, never replaced",
            with(missing(proven_by_id), held),
            at(5000),
            stalls(nothing, Reason::VolumeLost),
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
            waits(nothing, Reason::VolumeLost).pending().again(60),
        ),
        (
            "lost stays lost when the look-ups of the proof are forgotten",
            with(missing(|it| says(it, ConditionType::Stalled, true, Reason::VolumeLost, at(5000))), held),
            at(6000),
            stalls(nothing, Reason::VolumeLost).pending().again(5).looks_up("vol-1"),
        ),
        (
            "one that never held data is not replaced on a condition",
            missing(|it| says(it, ConditionType::Stalled, true, Reason::VolumeLost, at(5000))),
            at(6000),
            waits(nothing, Reason::Creating).pending(),
        ),
        (
            "being deleted from outside",
            with(created(VolumeState::Deleting), held),
            now(),
            waits(nothing, Reason::VolumeLost).pending(),
        ),
        (
            "still being made",
            created(VolumeState::Creating),
            now(),
            waits(nothing, Reason::Creating).pending(),
        ),
        ("broken", created(VolumeState::Error), now(), stalls(nothing, Reason::VolumeLost)),
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
