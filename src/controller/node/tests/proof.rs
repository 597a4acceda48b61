//! An instance with an id that EC2 does not show: nothing follows but on proof, and the proof is kept while a
//! plan rests on it.

use super::*;

/// EC2 does not show the instance that the status names.
fn missing(change: impl FnOnce(&mut Observed)) -> Observed {
    let mut observed = launched(InstanceState::Running);
    observed.instances.instances.clear();
    change(&mut observed);
    observed
}

#[test]
fn an_instance_that_ec2_does_not_show_is_gone_only_on_proof() {
    let late = at(3000);
    hold(vec![
        ("not yet visible", missing(|_| {}), late, "[] Launching, pending"),
        (
            "a sweep on its own says nothing, however late",
            missing(|it| it.instances.swept_at = Some(at(2999))),
            late,
            "[] Launching, pending",
        ),
        (
            "a window that is a second short",
            missing(|it| it.instances.empty = empty(1, 1200)),
            late,
            "[] Launching, pending",
        ),
        (
            "a window that began before this process did",
            missing(|it| {
                it.leading_since = at(1);
                it.instances.empty = empty(1, 1300);
            }),
            late,
            "[] Launching, pending",
        ),
        (
            "the attempt is long past, and this operator has led for 19 minutes: the status does not say what \
                an earlier one sent last",
            missing(|it| {
                it.leading_since = at(1800);
                it.instances.empty = empty(1801, 3000);
            }),
            late,
            "[] Launching, pending",
        ),
        (
            "proven: another follows, after its pause",
            missing(|it| {
                it.instances.empty = empty(1, 1201);
                launched_is(it, false, Reason::Launching, at(2980));
            }),
            late,
            "[] NeverJoined, pending, again in 40 s",
        ),
        (
            "proven, and the pause is over",
            missing(|it| {
                it.instances.empty = empty(1, 1201);
                launched_is(it, false, Reason::Launching, at(2940));
            }),
            late,
            "[launch attempt 2, r7i.large in us-east-1a {neverJoined: 1}] Launching, pending",
        ),
        (
            "a machine that had joined is lost, and its repair postponed: pending, or the proof would be \
                forgotten",
            missing(|it| {
                joined(it);
                it.instances.empty = empty(1, 1201);
                it.fleet.repairs = 5;
            }),
            late,
            "[] RepairPostponed, pending, again in 5 s",
        ),
        (
            "a machine that had joined is not lost without proof",
            missing(joined),
            late,
            "[] Launching, pending, again in 300 s",
        ),
        (
            "the status was lost but for the id: proven by tag",
            missing(|it| {
                let status = status(it);
                status.creation = None;
                status.core_node_name = Some(CORE_NODE.into());
                it.instances.empty = EmptyRuns { by_token: None, ..empty(1, 1201) };
                it.fleet.repairs = 5;
            }),
            late,
            "[] RepairPostponed, pending, again in 5 s",
        ),
        (
            "the status was lost but for the id: not proven by one sweep",
            missing(|it| status(it).creation = None),
            late,
            "[] Launching, pending",
        ),
    ]);
}
