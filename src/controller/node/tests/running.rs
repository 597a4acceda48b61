//! While the Node has an instance: it starts, joins, is made ready; what EC2 is asked for once.

use super::loss::silent_since;
use super::*;
use crate::controller::memory::issued_requests::IssuedRequest;
use crate::controller::node::registration::is_awaited;

pub(super) fn launched_with(state: InstanceState, change: impl FnOnce(&mut Observed)) -> Observed {
    let mut observed = launched(state);
    change(&mut observed);
    observed
}

pub(super) fn settled_with(change: impl FnOnce(&mut Observed)) -> Observed {
    let mut observed = settled();
    change(&mut observed);
    observed
}

pub(super) fn issued(seconds: i64, call_blocked: Option<CallBlocked>) -> IssuedRequest {
    IssuedRequest { at: at(seconds), call_blocked }
}

/// Its Kubernetes node has another taint of the same key, which lets pods stay that run there.
fn untainted() -> CoreNode {
    let mut core_node = core_node();
    core_node.spec.as_mut().unwrap().taints.as_mut().unwrap()[0].effect = "NoSchedule".to_owned();
    core_node
}

fn unlabelled() -> CoreNode {
    let mut core_node = core_node();
    core_node.metadata.labels = None;
    core_node
}

/// It registered at 5, and its kubelet is not Ready.
fn unready() -> Observed {
    launched_with(InstanceState::Running, |it| {
        it.core_node = Some(core_node_with(&[FINALIZER], &ready("False", at(5))));
        let entries = [
            Entry::yes(ConditionType::Launched, Reason::AsExpected, "good"),
            Entry::yes(ConditionType::Registered, Reason::AsExpected, "good"),
        ];
        status(it).conditions = conditions::merge(&[], &entries, Some(3), at(5));
    })
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn an_instance_starts_joins_and_is_made_ready() {
    hold(vec![
        (
            "EC2 does not show it yet",
            launched_with(InstanceState::Pending, |it| it.instances.instances.clear()),
            now(),
            "[] Launching, pending",
        ),
        ("it starts", launched(InstanceState::Pending), now(), "[] Launching, pending, again in 890 s"),
        (
            "it has been starting for 15 minutes",
            launched(InstanceState::Pending),
            at(900),
            "[terminate i-1: EC2 did not start it within 900s] NeverJoined, pending",
        ),
        (
            "it has been starting for a minute, and the attempt was decided half an hour before",
            launched_with(InstanceState::Pending, |it| {
                it.instances.instances[0].launched_at = Some(at(1800));
            }),
            at(1860),
            "[] Launching, pending, again in 840 s",
        ),
        (
            "a machine that has joined is started again",
            settled_with(|it| it.instances.instances[0].state = InstanceState::Pending),
            at(900),
            "[] Launching, pending",
        ),
        ("a state of a later day", launched(InstanceState::Unknown), now(), "[] Launching"),
        (
            "it runs: its kubelet has its time from now, and is searched for without its label before that",
            launched(InstanceState::Running),
            now(),
            "[] AwaitingRegistration, again in 150 s",
        ),
        (
            "it has run for a while",
            launched_with(InstanceState::Running, |it| launched_is(it, true, Reason::AsExpected, at(4))),
            now(),
            "[] AwaitingRegistration, again in 144 s",
        ),
        (
            "it registered: held first",
            launched_with(InstanceState::Running, |it| {
                it.core_node = Some(core_node_with(&[], &ready("False", at(5))));
            }),
            now(),
            "[hold ip-10-0-0-1] AwaitingInitialization",
        ),
        (
            "its Kubernetes node is being deleted before it was held",
            launched_with(InstanceState::Running, |it| {
                let mut core_node = core_node_with(&["else"], &ready("True", at(5)));
                core_node.metadata.deletion_timestamp = Some(Time(at(9)));
                it.core_node = Some(core_node);
                it.driver_registered = true;
            }),
            now(),
            "[] NodeNotReady",
        ),
        (
            "not Ready yet",
            launched_with(InstanceState::Running, |it| {
                it.core_node = Some(core_node_with(&[FINALIZER], &ready("False", at(5))));
            }),
            now(),
            "[] AwaitingInitialization",
        ),
        ("not Ready in its time", unready(), at(904), "[] AwaitingInitialization, again in 1 s"),
        (
            "not Ready when its time is over: a person is asked",
            unready(),
            at(905),
            "[] stalled AwaitingInitialization",
        ),
        (
            "without the EBS driver when its time is over",
            {
                let mut observed = unready();
                observed.core_node = Some(core_node());
                observed
            },
            at(905),
            "[] stalled AwaitingInitialization, again in 1 s",
        ),
        (
            "Ready, and the EBS driver is awaited: nothing wakes the Node for that",
            launched_with(InstanceState::Running, |it| it.core_node = Some(core_node())),
            now(),
            "[] AwaitingInitialization, again in 1 s",
        ),
        (
            "it registered without the taint, as its user data says",
            launched_with(InstanceState::Running, |it| it.core_node = Some(untainted())),
            now(),
            "[dedicate ip-10-0-0-1] AwaitingInitialization",
        ),
        (
            "it registered without the label",
            launched_with(InstanceState::Running, |it| it.core_node = Some(unlabelled())),
            now(),
            "[dedicate ip-10-0-0-1] AwaitingInitialization",
        ),
        (
            "the taint is taken off while the database runs there: it is put back",
            settled_with(|it| it.core_node = Some(untainted())),
            now(),
            "[dedicate ip-10-0-0-1] as wanted",
        ),
        ("settled", settled(), now(), "[] as wanted"),
        (
            "settled, and the EBS driver is being updated",
            settled_with(|it| it.driver_registered = false),
            at(100_000),
            "[] NodeNotReady, again in 5 s",
        ),
        ("Ready no more", settled_with(|it| silent_since(it, 9)), now(), "[] NodeNotReady, again in 299 s"),
        (
            "its Kubernetes node is gone",
            settled_with(|it| it.core_node = None),
            now(),
            "[] NodeNotReady, again in 300 s",
        ),
        (
            "the NodeClass is gone: nothing changes for what runs",
            settled_with(|it| it.class = None),
            now(),
            "[] as wanted",
        ),
        (
            "the NodeClass changed: nothing is replaced",
            settled_with(|it| it.class.as_mut().unwrap().spec.image_id = "ami-2".into()),
            now(),
            "[] as wanted",
        ),
        (
            "the type left the list: planned by the Database, not here",
            settled_with(|it| it.node.spec.instance_types = vec!["r6i.large".into()]),
            now(),
            "[] as wanted",
        ),
    ]);
}

#[test]
fn a_machine_that_has_not_joined_is_ended_when_it_never_will_or_is_not_wanted() {
    let late =
        || launched_with(InstanceState::Running, |it| launched_is(it, true, Reason::AsExpected, at(1)));
    hold(vec![
        ("a second before the end", late(), at(900), "[] AwaitingRegistration, again in 1 s"),
        (
            "it never registered: its console is read first",
            late(),
            at(901),
            "[log console of i-1, terminate i-1: its kubelet did not register within 900s] NeverJoined, \
                pending",
        ),
        (
            "it was stopped before it joined",
            launched(InstanceState::Stopped),
            now(),
            "[terminate i-1: it was stopped before it joined the cluster] InstanceLost, pending",
        ),
        (
            "its type left the list",
            launched_with(InstanceState::Running, |it| {
                it.node.spec.instance_types = vec!["r6i.large".into()];
            }),
            now(),
            "[terminate i-1: its type r7i.large is no longer in instanceTypes] Launching, pending",
        ),
        (
            "the list was reordered",
            launched_with(InstanceState::Running, |it| it.node.spec.instance_types.reverse()),
            now(),
            "[] AwaitingRegistration, again in 150 s",
        ),
        (
            "the volume is in another zone",
            launched_with(InstanceState::Running, |it| it.node.spec.zone = Some("us-east-1b".into())),
            now(),
            "[terminate i-1: it is in us-east-1a and the volume is in us-east-1b] Launching, pending",
        ),
    ]);
}

#[test]
fn a_kubelet_counts_as_awaited_only_while_nothing_is_declared_lost_for_its_absence() {
    let late =
        || launched_with(InstanceState::Running, |it| launched_is(it, true, Reason::AsExpected, at(1)));
    let mut other_type = late();
    other_type.node.spec.instance_types = vec!["m7i.large".into()];
    let rows = vec![
        ("in time", late(), 900),
        ("too late", late(), 901),
        ("of a type that is not wanted any more", other_type, 2),
        ("being deleted", deleting(late()), 2),
    ];
    for (name, observed, second) in rows {
        let ends =
            plan(&observed, at(second)).actions.iter().any(|action| matches!(action, Action::Terminate(..)));
        assert_eq!(
            is_awaited(&observed.node, &observed.instances.instances[0], &observed.timing, at(second)),
            !ends,
            "{name}"
        );
    }
}

#[test]
fn a_termination_is_asked_for_once_and_a_refusal_is_not_hammered() {
    let late = |swept: i64, issued: IssuedRequest| {
        launched_with(InstanceState::Running, |it| {
            launched_is(it, true, Reason::AsExpected, at(1));
            it.instances.swept_at = Some(at(swept));
            it.issued_terminations = BTreeMap::from([(id("i-1"), issued)]);
        })
    };
    let forbidden =
        |until: Option<i64>| answered(Call::TerminateInstances, "UnauthorizedOperation", until.map(at));
    hold(vec![
        (
            "accepted, and the last sweep is older",
            late(999, issued(1000, None)),
            at(1001),
            "[] NeverJoined, pending",
        ),
        (
            "a sweep at once may not show it yet",
            late(1005, issued(1000, None)),
            at(1006),
            "[] NeverJoined, pending",
        ),
        (
            "still running five seconds later: once more",
            late(1006, issued(1000, None)),
            at(1006),
            "[log console of i-1, terminate i-1: its kubelet did not register within 900s] NeverJoined, \
                pending",
        ),
        (
            "refused: its pause",
            late(1006, issued(1000, Some(forbidden(Some(1300))))),
            at(1006),
            "[] Forbidden, pending, again in 294 s",
        ),
        (
            "refused: the pause is over",
            late(1299, issued(1000, Some(forbidden(Some(1300))))),
            at(1300),
            "[log console of i-1, terminate i-1: its kubelet did not register within 900s] NeverJoined, \
                pending",
        ),
        (
            "refused without a time",
            late(1006, issued(1000, Some(forbidden(None)))),
            at(1006),
            "[] Forbidden, pending, again in 54 s",
        ),
    ]);
}
