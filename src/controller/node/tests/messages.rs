//! Every sentence about a Node, in a golden file: a changed one shows in a review.

use strum::IntoEnumIterator;

use super::*;
use crate::cloud::ScheduledEvent;
use crate::controller::blocker::Blocker;
use crate::controller::creation::judge::Doubt;
use crate::controller::messages as shared;
use crate::controller::node::cause::{Cause, LossSigns};
use crate::controller::node::messages;
use crate::controller::node::wait::NodeWait;
use crate::controller::node::wait::adoption::{AdoptionRefusal, AdoptionWait};
use crate::controller::node::wait::deletion::DeletionWait;
use crate::controller::node::wait::join::{JoinWait, Missing};
use crate::controller::node::wait::launch::{LaunchWait, Unwanted};
use crate::controller::node::wait::loss::{Attached, FenceStep, LossWait, Proof};
use crate::controller::tests::golden::{Sentence, compare_sentences, complete, variant};

fn retirement(not_before: Option<Timestamp>) -> ScheduledEvent {
    ScheduledEvent { code: "instance-retirement".to_owned(), not_before }
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn blocker() -> Blocker {
    Blocker::PodsRemain(texts(&["team-a/orders-0"]))
}

fn signs() -> LossSigns {
    LossSigns {
        instance: id("i-1"),
        core_node: CORE_NODE.to_owned(),
        causes: Cause::iter().map(|cause| (cause, at(0))).collect(),
    }
}

fn loss() -> String {
    "EC2 reports instance i-1 stopped since 2027-01-15T08:00:00Z".to_owned()
}

fn attached() -> Attached {
    Attached { names: texts(&["csi-1", "csi-2"]), overdue_since: None }
}

fn launches_waited_for() -> Vec<LaunchWait> {
    let refusal =
        || Refusal { code: "UnauthorizedOperation".to_owned(), message: "no".to_owned(), at: Time(at(0)) };
    let class = || "default".to_owned();
    let unwanted = complete([
        Unwanted::Type("r7i.large".to_owned()),
        Unwanted::Zone { instance: "us-east-1a".to_owned(), volume: "us-east-1b".to_owned() },
    ]);
    let doubts = [
        Doubt::FirstLookUp,
        Doubt::Pause,
        Doubt::Deleting,
        Doubt::TokenTooOld,
        Doubt::RequestChanged,
        Doubt::RefusedAfterDoubt,
    ];
    let mut waits = vec![
        LaunchWait::ClassNotFound(class()),
        LaunchWait::ClassNotReady { class: class(), faults: "what is wrong with it".to_owned() },
        LaunchWait::SharedDevice { class: class(), device: "/dev/xvda".to_owned() },
        LaunchWait::NoSubnet { class: class(), zones: texts(&["us-east-1a", "us-east-1b"]) },
        LaunchWait::SubnetElsewhere {
            class: class(),
            subnet: "subnet-b".to_owned(),
            declared: "us-east-1b".to_owned(),
            zone: "us-east-1a".to_owned(),
        },
        LaunchWait::NoAllowedType {
            class: class(),
            wanted: texts(&["r7i.large"]),
            allowed: texts(&["m7i.*"]),
        },
        LaunchWait::NoCapacity {
            refused: vec![
                ("r7i.large".to_owned(), "us-east-1a".to_owned()),
                ("r6i.large".to_owned(), "us-east-1b".to_owned()),
            ],
            until: at(100),
        },
        LaunchWait::NoCapacityFor(id("i-1"), Some("Server.InsufficientInstanceCapacity".to_owned())),
        LaunchWait::Quota(Quota::Vcpus("P".to_owned()), texts(&["p5.48xlarge", "p4d.24xlarge"])),
        LaunchWait::Quota(Quota::Account, texts(&["r7i.large"])),
        LaunchWait::Requested { instance_type: "r7i.large".to_owned(), zone: "us-east-1a".to_owned() },
        LaunchWait::Adopted(id("i-1")),
        LaunchWait::AdoptedLater(id("i-1")),
        LaunchWait::Found(id("i-1")),
        LaunchWait::NotListed(id("i-1")),
        LaunchWait::Starting(id("i-1")),
        LaunchWait::UnknownState(id("i-1")),
        LaunchWait::Resent(2),
        LaunchWait::Throttled,
        LaunchWait::StatusLost,
        LaunchWait::Forbidden(refusal()),
        LaunchWait::Invalid { refusal: refusal(), class: class() },
    ];
    waits.extend(unwanted.into_iter().map(|unwanted| LaunchWait::Unwanted(id("i-1"), unwanted)));
    waits.extend(doubts.into_iter().map(|doubt| LaunchWait::InDoubt(2, doubt)));
    complete(waits)
}

fn adoptions_waited_for() -> Vec<AdoptionWait> {
    let refusals = complete([
        AdoptionRefusal::NotFound,
        AdoptionRefusal::NoTag { wanted: "cluster/team-a/orders".to_owned() },
        AdoptionRefusal::OtherCluster,
        AdoptionRefusal::OtherNode,
        AdoptionRefusal::Zone { instance: "us-east-1a".to_owned(), volume: "us-east-1b".to_owned() },
        AdoptionRefusal::Ended,
    ]);
    let mut waits = vec![
        AdoptionWait::NotRead(id("i-1")),
        AdoptionWait::NotRunning(id("i-1")),
        AdoptionWait::Adopting(id("i-1")),
        AdoptionWait::Tagging(id("i-1")),
        AdoptionWait::TagsNotShown(id("i-1")),
        AdoptionWait::NoKubernetesNode { id: id("i-1"), provider_id: "aws:///us-east-1a/i-1".to_owned() },
    ];
    waits.extend(refusals.into_iter().map(|cause| AdoptionWait::Refused { id: id("i-1"), cause }));
    complete(waits)
}

fn joins_waited_for() -> Vec<JoinWait> {
    let missing = || {
        complete([Missing::Dedication, Missing::Driver, Missing::Ready].map(|of| of(CORE_NODE.to_owned())))
    };
    let (limit, node) = (Duration::from_secs(900), "orders-k3f9q-1");
    let mut waits = vec![
        JoinWait::Registration(id("i-1")),
        JoinWait::NotRegistered(id("i-1")),
        JoinWait::Ended(id("i-1"), None),
        JoinWait::Ended(id("i-1"), Some("Client.InstanceInitiatedShutdown".to_owned())),
        JoinWait::NeverJoins { machines: 4, class: "default".to_owned() },
        JoinWait::Registered(CORE_NODE.to_owned()),
        JoinWait::NotReady(CORE_NODE.to_owned()),
        JoinWait::DriverGone(CORE_NODE.to_owned()),
        JoinWait::KubernetesNodeGone(id("i-1")),
        JoinWait::KubernetesNodeEnding(CORE_NODE.to_owned()),
        JoinWait::KubernetesNodeEndingChecked(CORE_NODE.to_owned()),
        JoinWait::KubernetesNodeDeleted(CORE_NODE.to_owned()),
        JoinWait::EventScheduled { instance: id("i-1"), event: retirement(Some(at(0))) },
        JoinWait::EventScheduled { instance: id("i-1"), event: retirement(None) },
        JoinWait::EventRecorded("THE EVENT".to_owned()),
        JoinWait::Cordoned { core_node: CORE_NODE.to_owned(), in_use: true },
        JoinWait::Cordoned { core_node: CORE_NODE.to_owned(), in_use: false },
    ];
    waits.extend(missing().into_iter().map(JoinWait::Initialization));
    waits.extend(missing().into_iter().map(|missing| JoinWait::InitializationOverdue {
        missing,
        limit,
        node: node.to_owned(),
    }));
    complete(waits)
}

fn steps() -> Vec<FenceStep> {
    complete([
        FenceStep::Stop,
        FenceStep::ForceStop,
        FenceStep::Terminate,
        FenceStep::Alternate,
        FenceStep::AwaitProof,
    ])
}

fn losses_waited_for() -> Vec<LossWait> {
    let mut waits = vec![
        LossWait::Suspected(Cause::Terminated, signs()),
        LossWait::Recurring {
            signs: signs(),
            cause: Cause::NotReady,
            due: at(3900),
            before: 4,
            node: "orders-k3f9q-1".to_owned(),
        },
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
        DeletionWait::Releasing(id("i-1")),
        DeletionWait::Released(id("i-1")),
        DeletionWait::Gone,
    ])
}

fn waits_of_every_kind() -> Vec<NodeWait> {
    let call_blocked = answered(Call::StopInstances, "RequestLimitExceeded", None);
    let mut waits = vec![NodeWait::Finalizer, NodeWait::FirstSync];
    waits.extend(launches_waited_for().into_iter().map(NodeWait::from));
    waits.extend(adoptions_waited_for().into_iter().map(NodeWait::from));
    waits.extend(joins_waited_for().into_iter().map(NodeWait::from));
    waits.extend(losses_waited_for().into_iter().map(NodeWait::from));
    waits.extend(deletions_waited_for().into_iter().map(NodeWait::from));
    waits.extend([NodeWait::Blocked(blocker()), NodeWait::CallBlocked(call_blocked)]);
    complete(waits)
}

fn name(wait: &NodeWait) -> String {
    let variant_of_family = match wait {
        NodeWait::Launch(wait) => variant(wait),
        NodeWait::Adoption(wait) => variant(wait),
        NodeWait::Join(wait) => variant(wait),
        NodeWait::Loss(wait) => variant(wait),
        NodeWait::Deletion(wait) => variant(wait),
        NodeWait::Finalizer | NodeWait::FirstSync | NodeWait::Blocked(_) | NodeWait::CallBlocked(_) => {
            return variant(wait);
        }
    };
    format!("{}::{variant_of_family}", variant(wait))
}

/// The sentences of conditions and events, and why an instance is terminated.
fn others() -> Vec<(&'static str, String)> {
    let launch = launch(1);
    let mut others: Vec<(&'static str, String)> = [
        ("NODE_DELETED", messages::events::NODE_DELETED),
        ("STOPPED_BEFORE_JOIN", messages::events::STOPPED_BEFORE_JOIN),
        ("READY", messages::READY),
        ("INITIALIZED", messages::INITIALIZED),
        ("NOT_STALLED", shared::NOT_STALLED),
        ("NOT_COMPARED", messages::NOT_COMPARED),
        ("UP_TO_DATE", messages::UP_TO_DATE),
        ("EARLIER_STEP", shared::EARLIER_STEP),
        ("NOT_LOST", messages::NOT_LOST),
        ("FENCED_BY_TERMINATION", messages::FENCED_BY_TERMINATION),
        ("ORPHANED", messages::ORPHANED),
        ("DRAINED", messages::DRAINED),
        ("DETACHED", messages::DETACHED),
        ("TERMINATED", messages::TERMINATED),
    ]
    .map(|(name, text)| (name, text.to_owned()))
    .into();
    others.extend([
        ("not_registered_within", messages::events::not_registered_within(Duration::from_secs(900))),
        ("not_started_within", messages::events::not_started_within(Duration::from_secs(900))),
        ("second_instance", messages::events::second_instance(&id("i-1"))),
        ("launched", messages::launched(&id("i-1"))),
        ("registered", messages::registered(CORE_NODE)),
        ("foreign_instances", messages::foreign_instances(&["i-8", "i-9"])),
        ("drifted", messages::drifted("default", &["imageID", "userData"])),
        (
            "suspected",
            messages::suspected(&LossSigns { causes: vec![(Cause::NotReady, at(0))], ..signs() }, at(300)),
        ),
        ("node_ready", messages::events::node_ready(CORE_NODE)),
        ("recorded", messages::events::recorded(&id("i-1"))),
        ("adopted", messages::events::adopted(&id("i-1"))),
        ("out_of_service", messages::events::out_of_service(CORE_NODE)),
        ("cordoned", messages::events::cordoned(CORE_NODE)),
        ("foreign_pod_evicted", messages::events::foreign_pod_evicted("team-b/stray", 30)),
        ("dedicated", messages::events::dedicated(CORE_NODE, "default")),
        ("dedicated_as_adopted", messages::events::dedicated_as_adopted(CORE_NODE)),
        ("declared_lost", messages::events::declared_lost(&loss())),
        ("terminating", messages::events::terminating(&id("i-1"), messages::events::NODE_DELETED)),
        ("stopping", messages::events::stopping(&id("i-1"), false)),
        ("stopping, by force", messages::events::stopping(&id("i-1"), true)),
        ("instance_launched", messages::events::instance_launched(&id("i-1"), &launch)),
        ("launch_refused", messages::events::launch_refused(&launch, &"EC2 answered no")),
    ]);
    let proofs = complete([
        Proof::Terminated(id("i-1")),
        Proof::Stopped(id("i-1")),
        Proof::Forgotten(id("i-1")),
        Proof::Absent(id("i-1")),
    ]);
    others.extend(proofs.iter().map(|proof| ("fenced", messages::fenced(proof))));
    others.extend(steps().into_iter().map(|step| ("not_fenced", messages::not_fenced(step, at(0)))));
    others
}

#[test]
fn every_sentence_is_in_the_golden_file() {
    let waits = waits_of_every_kind();
    let waits =
        waits.iter().map(|wait| Sentence::wait(name(wait), wait.reason(), wait.is_stalled(), wait.message()));
    let others = others().into_iter().map(|(name, sentence)| Sentence::other(name, sentence));
    compare_sentences("node", &waits.chain(others).collect::<Vec<_>>());
}
