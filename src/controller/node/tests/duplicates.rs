//! Other instances with a Node's tags, while it lives and when it is deleted: its own are terminated where
//! that is safe, foreign ones are left alone.

use super::leaving::leaves;
use super::running::{issued, launched_with, settled_with};
use super::*;
use crate::api::keys::DATABASE_NODE_LABEL;
use crate::controller::memory::issued_requests::IssuedRequest;
use crate::controller::node::status::status as status_of;
use crate::controller::pass::acted::Acted;

#[test]
fn a_second_instance_is_terminated_only_where_no_database_can_be_on_it() {
    let second = |change: fn(&mut Observed)| {
        settled_with(|it| {
            it.instances.instances.push(instance_of_attempt(2, "i-2", InstanceState::Running));
            change(it);
        })
    };
    let labelled = |provider: &str| -> CoreNode {
        serde_json::from_value(json!({
            "metadata": {"name": "ip-10-0-0-2", "labels": {DATABASE_NODE_LABEL: "uid"}},
            "spec": {"providerID": provider},
        }))
        .unwrap()
    };
    let mut rows = vec![
        (
            "it is terminated",
            second(|_| {}),
            now(),
            "[terminate i-2: a second instance of this Node beside i-1, which its status names] as wanted, \
                pending",
        ),
        (
            "asked for once",
            second(|it| it.issued_terminations = BTreeMap::from([(id("i-2"), issued(9, None))])),
            now(),
            "[] as wanted, pending",
        ),
        (
            "a data volume is attached to it",
            second(|it| it.instances.instances[1].volumes.push(VolumeId("vol-data".into()))),
            now(),
            "[] DuplicateInstance, again in 60 s",
        ),
        (
            "it is terminated before another is launched",
            launched_with(InstanceState::Terminated, |it| {
                it.instances.instances.push(instance_of_attempt(2, "i-2", InstanceState::Running));
                launched_is(it, false, Reason::InstanceLost, at(1));
            }),
            at(61),
            "[terminate i-2: a second instance of this Node beside i-1, which its status names, \
                launch attempt 2, r7i.large in us-east-1a {neverJoined: 1}] Launching, pending",
        ),
    ];
    let copied = settled_with(|it| it.instances.instances.push(copy_of_our_tags("i-9")));
    let status = status_of(&copied, &plan(&copied, now()), &Acted::new(copied.node.clone()), now());
    assert_eq!(condition(&status.conditions, ConditionType::Ready).0, "True");
    assert_eq!(
        condition(&status.conditions, ConditionType::ForeignInstance),
        ("True".into(), "DuplicateInstance".into())
    );
    rows.push(("only its tags are ours: it is left alone, and nothing waits", copied, now(), "[] as wanted"));
    for state in [InstanceState::ShuttingDown, InstanceState::Terminated] {
        let observed = settled_with(|it| it.instances.instances.push(instance_of_attempt(2, "i-2", state)));
        rows.push(("one that has ended is no duplicate", observed, now(), "[] as wanted"));
    }
    let mut used = second(|_| {});
    used.other_core_nodes = vec![labelled("aws:///us-east-1a/i-2")];
    rows.push((
        "its core Node has a database's label",
        used.clone(),
        now(),
        "[] DuplicateInstance, again in 60 s",
    ));
    used.other_core_nodes = vec![labelled("aws:///us-east-1a/i-3")];
    rows.push((
        "another machine's label does not matter",
        used,
        now(),
        "[terminate i-2: a second instance of this Node beside i-1, which its status names] as wanted, \
            pending",
    ));
    hold(rows);
}

#[test]
fn a_second_instance_goes_before_the_node_does() {
    let with_second = |state: InstanceState, change: fn(&mut Observed)| {
        leaves(settled(), |it| {
            it.instances.instances[0].state = InstanceState::Terminated;
            it.instances.instances.push(instance_of_attempt(2, "i-2", state));
            change(it);
        })
    };
    hold(vec![
        (
            "it is terminated",
            with_second(InstanceState::Running, |_| {}),
            now(),
            "[terminate i-2: its Node is deleted] AwaitingTermination, pending",
        ),
        (
            "asked for once",
            with_second(InstanceState::Running, |it| {
                it.issued_terminations =
                    BTreeMap::from([(id("i-2"), IssuedRequest { at: at(9), call_blocked: None })]);
            }),
            now(),
            "[] AwaitingTermination, pending",
        ),
        (
            "it is ending",
            with_second(InstanceState::ShuttingDown, |_| {}),
            now(),
            "[] AwaitingTermination, pending",
        ),
        (
            "it has only our tags",
            leaves(settled(), |it| {
                it.instances.instances[0].state = InstanceState::Terminated;
                it.instances.instances.push(copy_of_our_tags("i-9"));
            }),
            now(),
            "[release ip-10-0-0-1, remove finalizer] Deleting",
        ),
        (
            "a database may run on it",
            with_second(InstanceState::Running, |it| {
                it.other_core_nodes = vec![
                    serde_json::from_value(json!({
                        "metadata": {"name": "ip-10-0-0-2", "labels": {DATABASE_NODE_LABEL: "uid"}},
                        "spec": {"providerID": "aws:///us-east-1a/i-2"},
                    }))
                    .unwrap(),
                ];
            }),
            now(),
            "[] AwaitingTermination, pending",
        ),
    ]);
}
