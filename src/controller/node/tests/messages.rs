//! Every sentence about a Node, as a file: a changed one shows in a review. `FREEHOLD_BLESS=1` writes the file anew.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use strum::EnumCount;

use super::*;
use crate::controller::creation::judge::Doubt;
use crate::controller::node::cause::{Cause, LossSigns};
use crate::controller::node::messages;
use crate::controller::node::wait::{
    Attached, DeletionWait, FenceStep, JoinWait, LaunchWait, LossWait, Missing, NodeWait, Proof, Unwanted,
};
use crate::controller::safety::Blocker;
use crate::controller::waiting::HeldUp;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/controller/node/messages.golden.txt");

/// The examples of an enum name each of its variants.
fn complete<T: EnumCount>(examples: impl IntoIterator<Item = T>) -> Vec<T>
where
    for<'a> &'a T: Into<&'static str>,
{
    let examples: Vec<T> = examples.into_iter().collect();
    let named: BTreeSet<&'static str> = examples.iter().map(Into::into).collect();
    assert_eq!(named.len(), T::COUNT, "a variant has no example: {named:?}");
    examples
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn blocker() -> Blocker {
    Blocker { reason: Reason::AwaitingDrain, message: "pods still run on the machine: team-a/orders-0".to_owned() }
}

fn signs() -> LossSigns {
    LossSigns { instance: id("i-1"), core_node: CORE_NODE.to_owned(), causes: Cause::ALL.iter().map(|cause| (*cause, at(0))).collect() }
}

fn loss() -> String {
    "EC2 reports instance i-1 stopped since 2027-01-15T08:00:00Z".to_owned()
}

fn attached() -> Attached {
    Attached { names: texts(&["csi-1", "csi-2"]), overdue_since: None }
}

fn launches_waited_for() -> Vec<LaunchWait> {
    let refusal = || Refusal { code: "UnauthorizedOperation".to_owned(), message: "no".to_owned(), at: Time(at(0)) };
    let class = || "default".to_owned();
    let unwanted = complete([
        Unwanted::Type("r7i.large".to_owned()),
        Unwanted::Zone { instance: "us-east-1a".to_owned(), volume: "us-east-1b".to_owned() },
    ]);
    let doubts = [Doubt::FirstLookUp, Doubt::Pause, Doubt::Deleting, Doubt::TokenTooOld, Doubt::RequestChanged, Doubt::RefusedAfterDoubt];
    let mut waits = vec![
        LaunchWait::ClassNotFound(class()),
        LaunchWait::NoSubnet { class: class(), zones: texts(&["us-east-1a", "us-east-1b"]) },
        LaunchWait::NoAllowedType { class: class(), wanted: texts(&["r7i.large"]), allowed: texts(&["m7i.*"]) },
        LaunchWait::NoCapacity {
            refused: vec![("r7i.large".to_owned(), "us-east-1a".to_owned()), ("r6i.large".to_owned(), "us-east-1b".to_owned())],
            until: at(100),
        },
        LaunchWait::NoCapacityFor(id("i-1"), Some("Server.InsufficientInstanceCapacity".to_owned())),
        LaunchWait::Quota,
        LaunchWait::Requested { instance_type: "r7i.large".to_owned(), zone: "us-east-1a".to_owned() },
        LaunchWait::Adopted(id("i-1")),
        LaunchWait::AdoptedLater(id("i-1")),
        LaunchWait::Found(id("i-1")),
        LaunchWait::NotListed(id("i-1")),
        LaunchWait::Starting(id("i-1")),
        LaunchWait::UnknownState(id("i-1")),
        LaunchWait::Resent(2),
        LaunchWait::Throttled,
        LaunchWait::Forbidden(refusal()),
        LaunchWait::Invalid { refusal: refusal(), class: class() },
    ];
    waits.extend(unwanted.into_iter().map(|unwanted| LaunchWait::Unwanted(id("i-1"), unwanted)));
    waits.extend(doubts.into_iter().map(|doubt| LaunchWait::InDoubt(2, doubt)));
    complete(waits)
}

fn joins_waited_for() -> Vec<JoinWait> {
    let missing = || complete([Missing::Driver(CORE_NODE.to_owned()), Missing::Ready(CORE_NODE.to_owned())]);
    let (limit, node) = (Duration::from_secs(900), "orders-k3f9q-1");
    let mut waits = vec![
        JoinWait::Registration(id("i-1")),
        JoinWait::NotRegistered(id("i-1")),
        JoinWait::Ended(id("i-1"), None),
        JoinWait::Ended(id("i-1"), Some("Client.InstanceInitiatedShutdown".to_owned())),
        JoinWait::NeverJoins { machines: 4, class: "default".to_owned() },
        JoinWait::Registered(CORE_NODE.to_owned()),
        JoinWait::NotReady(CORE_NODE.to_owned()),
        JoinWait::KubernetesNodeGone(id("i-1")),
        JoinWait::KubernetesNodeEnding(CORE_NODE.to_owned()),
        JoinWait::KubernetesNodeEndingChecked(CORE_NODE.to_owned()),
        JoinWait::KubernetesNodeDeleted(CORE_NODE.to_owned()),
    ];
    waits.extend(missing().into_iter().map(JoinWait::Initialization));
    waits.extend(missing().into_iter().map(|missing| JoinWait::InitializationOverdue { missing, limit, node: node.to_owned() }));
    complete(waits)
}

fn steps() -> Vec<FenceStep> {
    complete([FenceStep::Stop, FenceStep::ForceStop, FenceStep::Terminate, FenceStep::Alternate, FenceStep::AwaitProof])
}

fn losses_waited_for() -> Vec<LossWait> {
    let mut waits = vec![
        LossWait::Suspected(Cause::Terminated, signs()),
        LossWait::RepairPostponed(LossSigns { causes: vec![(Cause::Stopped, at(0))], ..signs() }, blocker()),
        LossWait::Attached { loss: loss(), attached: attached() },
        LossWait::Replaced { loss: loss() },
        LossWait::Terminated(id("i-1"), None),
        LossWait::ShuttingDown(id("i-1")),
        LossWait::StoppedBeforeJoin(id("i-1")),
    ];
    waits.extend(steps().into_iter().map(|step| LossWait::Fencing { loss: loss(), step }));
    complete(waits)
}

fn deletions_waited_for() -> Vec<DeletionWait> {
    complete([
        DeletionWait::OtherFinalizers,
        DeletionWait::Absence(id("i-1")),
        DeletionWait::Adopted(id("i-1")),
        DeletionWait::Found(id("i-1")),
        DeletionWait::NotResent,
        DeletionWait::Terminated(id("i-1")),
        DeletionWait::ShuttingDown(vec![id("i-1")]),
        DeletionWait::ShuttingDown(vec![id("i-1"), id("i-2")]),
        DeletionWait::StoppedTerminated { loss: loss() },
        DeletionWait::Duplicates(vec![blocker(), blocker()]),
        DeletionWait::Attached(attached()),
        DeletionWait::Attached(Attached { overdue_since: Some(at(0)), ..attached() }),
        DeletionWait::Gone,
    ])
}

fn waits_of_every_kind() -> Vec<NodeWait> {
    let held_up = HeldUp { reason: Reason::Throttled, class: None, message: "EC2 answered: slow down".to_owned(), until: None };
    let mut waits = vec![NodeWait::Finalizer, NodeWait::FirstSync];
    waits.extend(launches_waited_for().into_iter().map(NodeWait::from));
    waits.extend(joins_waited_for().into_iter().map(NodeWait::from));
    waits.extend(losses_waited_for().into_iter().map(NodeWait::from));
    waits.extend(deletions_waited_for().into_iter().map(NodeWait::from));
    waits.extend([NodeWait::Blocked(blocker()), NodeWait::CallBlocked(held_up)]);
    complete(waits)
}

fn name(wait: &NodeWait) -> String {
    let kind: &str = wait.into();
    let variant: &str = match wait {
        NodeWait::Launch(wait) => wait.into(),
        NodeWait::Join(wait) => wait.into(),
        NodeWait::Loss(wait) => wait.into(),
        NodeWait::Deletion(wait) => wait.into(),
        NodeWait::Finalizer | NodeWait::FirstSync | NodeWait::Blocked(_) | NodeWait::CallBlocked(_) => return kind.to_owned(),
    };
    format!("{kind}::{variant}")
}

/// The sentences of conditions and events, and why an instance is terminated.
fn others() -> Vec<(&'static str, String)> {
    let launch = launch(1);
    let mut others: Vec<(&'static str, String)> = [
        ("NODE_DELETED", messages::NODE_DELETED),
        ("STOPPED_BEFORE_JOIN", messages::STOPPED_BEFORE_JOIN),
        ("READY", messages::READY),
        ("INITIALIZED", messages::INITIALIZED),
        ("NOT_STALLED", messages::NOT_STALLED),
        ("NOT_COMPARED", messages::NOT_COMPARED),
        ("UP_TO_DATE", messages::UP_TO_DATE),
        ("EARLIER_STEP", messages::EARLIER_STEP),
        ("NOT_LOST", messages::NOT_LOST),
        ("FENCED_BY_TERMINATION", messages::FENCED_BY_TERMINATION),
        ("DRAINED", messages::DRAINED),
        ("DETACHED", messages::DETACHED),
        ("TERMINATED", messages::TERMINATED),
        ("RELEASED", messages::RELEASED),
    ]
    .map(|(name, text)| (name, text.to_owned()))
    .into();
    others.extend([
        ("not_registered_within", messages::not_registered_within(Duration::from_secs(900))),
        ("second_instance", messages::second_instance(&id("i-1"))),
        ("launched", messages::launched(&id("i-1"))),
        ("registered", messages::registered(CORE_NODE)),
        ("drifted", messages::drifted("default", &["imageID", "userData"])),
        ("suspected", messages::suspected(&LossSigns { causes: vec![(Cause::NotReady, at(0))], ..signs() }, at(300))),
        ("node_ready", messages::node_ready(CORE_NODE)),
        ("recorded", messages::recorded(&id("i-1"))),
        ("out_of_service", messages::out_of_service(CORE_NODE)),
        ("cordoned", messages::cordoned(CORE_NODE)),
        ("declared_lost", messages::declared_lost(&loss())),
        ("repair_postponed", messages::repair_postponed(&loss(), 5, 5)),
        ("terminating", messages::terminating(&id("i-1"), messages::NODE_DELETED)),
        ("stopping", messages::stopping(&id("i-1"), false)),
        ("stopping, by force", messages::stopping(&id("i-1"), true)),
        ("instance_launched", messages::instance_launched(&id("i-1"), &launch)),
        ("launch_refused", messages::launch_refused(&launch, &"EC2 answered no")),
    ]);
    let proofs = complete([Proof::Terminated(id("i-1")), Proof::Stopped(id("i-1")), Proof::Forgotten(id("i-1")), Proof::Absent(id("i-1"))]);
    others.extend(proofs.iter().map(|proof| ("fenced", messages::fenced(proof))));
    others.extend(steps().into_iter().map(|step| ("not_fenced", messages::not_fenced(step, at(0)))));
    others
}

#[test]
fn every_sentence_is_the_one_in_the_file() {
    let mut text = String::new();
    for wait in waits_of_every_kind() {
        let stalled = if wait.is_stalled() { "stalled" } else { "-" };
        writeln!(text, "{} | {} | {stalled} | {}", name(&wait), wait.reason().as_str(), wait.message()).unwrap();
    }
    for (name, sentence) in others() {
        writeln!(text, "{name} | - | - | {sentence}").unwrap();
    }
    if std::env::var_os("FREEHOLD_BLESS").is_some() {
        std::fs::write(FILE, &text).unwrap();
    }
    pretty_assertions::assert_eq!(std::fs::read_to_string(FILE).unwrap_or_default(), text, "FREEHOLD_BLESS=1 writes it anew");
}
