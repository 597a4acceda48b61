//! Tables of the Node controller: one obvious world, and what is planned when something in it is otherwise.

mod adopted;
mod departing;
mod duplicates;
mod ended;
mod fence;
mod fenced;
mod foreign;
mod launch;
mod leaving;
mod life;
mod line;
mod loss;
mod loss_status;
mod messages;
mod postponed;
mod proof;
mod random;
mod refusals;
mod released;
mod running;
mod status;
mod unidentified;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node as CoreNode, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::json;

use self::line::line;
use super::observe::Observed;
use super::plan::action::{Action, Plan};
use super::plan::offering;
use super::plan::plan;
use super::wait::NodeWait;
use crate::api::creation::{Attempt, Refusal};
use crate::api::keys::FINALIZER;
use crate::api::node::NodeCreation;
use crate::api::{
    ClientToken, ConditionType, InstanceId, Node, NodeClass, NodeClassStatus, NodeStatus, Reason, VolumeId,
};
use crate::cloud::absence::EmptyRun;
use crate::cloud::call::Call;
use crate::cloud::inventory::{EmptyRuns, InstanceView};
use crate::cloud::offerings::OfferingsView;
use crate::cloud::quota::Quota;
use crate::cloud::turns::Priority;
use crate::cloud::{CloudError, Instance, InstanceState};
use crate::cluster::ownership::Ownership;
use crate::controller::call_blocked::CallBlocked;
use crate::controller::conditions::{self, Entry};
use crate::controller::memory::repairs::FleetView;
use crate::settings::Timing;

const CORE_NODE: &str = "ip-10-0-0-1";

/// Seconds from when the attempt of the fixtures was decided; the process has run for long by then.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// The moment of most rows: ten seconds after the attempt was decided; the last sweep is two seconds old.
fn now() -> Timestamp {
    at(10)
}

fn node(status: Option<NodeStatus>) -> Node {
    let mut node: Node = serde_json::from_value(json!({
        "apiVersion": "freehold.dev/v1alpha1",
        "kind": "Node",
        "metadata": {
            "name": "orders-k3f9q-1",
            "namespace": "team-a",
            "uid": "node-uid",
            "creationTimestamp": at(0).to_string(),
            "generation": 3,
            "finalizers": [FINALIZER],
            "labels": {"freehold.dev/database": "orders"},
            "ownerReferences": [{"apiVersion": "freehold.dev/v1alpha1", "kind": "Database", "name": "orders",
                "uid": "database-uid", "controller": true}],
        },
        "spec": {"nodeClassName": "default", "instanceTypes": ["r7i.large", "r6i.large"]},
    }))
    .unwrap();
    node.status = status;
    node
}

fn class() -> NodeClass {
    serde_json::from_value(json!({
        "apiVersion": "freehold.dev/v1alpha1",
        "kind": "NodeClass",
        "metadata": {"name": "default"},
        "spec": {
            "imageID": "ami-1",
            "subnets": [
                {"id": "subnet-a", "zone": "us-east-1a"},
                {"id": "subnet-b", "zone": "us-east-1b"},
                {"id": "subnet-c", "zone": "us-east-1c"},
            ],
            "userData": "boot",
            "instanceTypes": ["*"],
        },
    }))
    .unwrap()
}

/// A Node with our finalizer, in a world where EC2 shows nothing of it.
fn world() -> Observed {
    Observed {
        node: node(None),
        ownership: Ownership::Owned,
        class: Some(class()),
        instances: InstanceView {
            instances: Vec::new(),
            swept_at: Some(at(8)),
            token_looked_up_at: Some(at(8)),
            unhealthy: Vec::new(),
            is_health_known: true,
            empty: EmptyRuns::default(),
        },
        is_of_another: false,
        shown_by_id: None,
        tagged: None,
        offerings: OfferingsView::default(),
        sent: None,
        has_sent: false,
        issued_terminations: BTreeMap::new(),
        issued_stop: None,
        issued_tags: None,
        issued_untags: None,
        fleet: FleetView { nodes: 1, zone_joined: 1, zone_lost: 1, ..FleetView::default() },
        priority: Priority::Create,
        core_node: None,
        other_core_nodes: Vec::new(),
        driver_registered: false,
        pods: Vec::new(),
        listed_again_in: None,
        attachments: Vec::new(),
        data_volumes: vec![VolumeId("vol-data".to_owned()), VolumeId("vol-2".to_owned())],
        cluster_id: "cluster".to_owned(),
        leading_since: at(-100_000),
        timing: Timing::default(),
    }
}

/// The world with an attempt that was decided at 0 and has no id.
fn attempted() -> Observed {
    with_launch(world(), launch(1))
}

/// The world with an instance that the status names, in this state.
fn launched(state: InstanceState) -> Observed {
    let mut observed = attempted();
    status(&mut observed).instance_id = Some(id("i-1"));
    observed.instances.instances = vec![instance("i-1", state)];
    observed
}

/// The settled world: the machine runs, has joined, and is ready.
fn settled() -> Observed {
    let mut observed = launched(InstanceState::Running);
    joined(&mut observed);
    observed.core_node = Some(core_node());
    observed.driver_registered = true;
    observed
}

/// The Node of this world is being deleted.
fn deleting(mut observed: Observed) -> Observed {
    observed.node.metadata.deletion_timestamp = Some(Time(at(5)));
    observed
}

fn with_launch(mut observed: Observed, launch: NodeCreation) -> Observed {
    status(&mut observed).creation = Some(launch);
    observed
}

fn status(observed: &mut Observed) -> &mut NodeStatus {
    observed.node.status.get_or_insert_with(NodeStatus::default)
}

/// The status says that the machine has joined.
fn joined(observed: &mut Observed) {
    let status = status(observed);
    status.core_node_name = Some(CORE_NODE.to_owned());
    status.provider_id = Some("aws:///us-east-1a/i-1".to_owned());
    let entries = [
        ConditionType::Launched,
        ConditionType::Registered,
        ConditionType::Initialized,
        ConditionType::Ready,
    ]
    .map(|kind| Entry::yes(kind, Reason::AsExpected, "good"));
    status.conditions = conditions::merge(&[], &entries, Some(3), at(1));
}

/// The status says of Launched that it is this since then.
fn launched_is(observed: &mut Observed, holds: bool, reason: Reason, since: Timestamp) {
    let entry = Entry { kind: ConditionType::Launched, holds, reason, message: "m".to_owned() };
    status(observed).conditions = conditions::merge(&[], &[entry], Some(3), since);
}

/// The attempt of the first type in the first zone, decided at 0.
pub(super) fn launch(attempt: i32) -> NodeCreation {
    launch_of(attempt, "r7i.large", 0, 0, at(0))
}

/// What the world's Node and class make of this choice; subnets by their place in the class.
fn launch_of(
    attempt: i32,
    instance_type: &str,
    subnet: usize,
    never_joined: i32,
    when: Timestamp,
) -> NodeCreation {
    let class = class().spec;
    offering::launch(&world(), &class, instance_type, &class.subnets[subnet], attempt, never_joined, when)
}

/// What EC2 answered to a call.
fn answered(call: Call, code: &str, until: Option<Timestamp>) -> CallBlocked {
    let error = CloudError::new(call.as_str(), Some(code), "what EC2 says", None, None);
    CallBlocked::Refused { call, error, until }
}

pub(super) fn refused(code: &str, when: Timestamp) -> NodeCreation {
    let refusal = Refusal { code: code.to_owned(), message: "no".to_owned(), at: Time(when) };
    let attempt = Attempt { refused: Some(refusal), ..launch(1).attempt };
    NodeCreation { attempt, ..launch(1) }
}

fn id(id: &str) -> InstanceId {
    InstanceId(id.to_owned())
}

/// An instance of attempt 1.
fn instance(name: &str, state: InstanceState) -> Instance {
    let launch = launch(1);
    Instance {
        id: id(name),
        state,
        state_reason: None,
        token: Some(launch.client_token),
        zone: "us-east-1a".to_owned(),
        instance_type: "r7i.large".to_owned(),
        launched_at: None,
        tags: launch.tags,
        // An image may have two disks.
        volumes: ["root", "second"].map(|disk| VolumeId(format!("vol-{disk}-of-{name}"))).to_vec(),
    }
}

/// An instance that was launched outside Freehold and has this Node's tags.
fn copy_of_our_tags(name: &str) -> Instance {
    Instance { token: Some(ClientToken("another".to_owned())), ..instance(name, InstanceState::Running) }
}

/// An instance of another attempt.
fn instance_of_attempt(attempt: i32, name: &str, state: InstanceState) -> Instance {
    let launch = launch(attempt);
    Instance { token: Some(launch.client_token), tags: launch.tags, ..instance(name, state) }
}

fn ready(status: &str, since: Timestamp) -> serde_json::Value {
    json!({"type": "Ready", "status": status, "lastTransitionTime": since.to_string()})
}

/// The machine's core Node: Ready, and held by our finalizer.
fn core_node() -> CoreNode {
    core_node_with(&[FINALIZER], &ready("True", at(5)))
}

fn core_node_with(finalizers: &[&str], condition: &serde_json::Value) -> CoreNode {
    serde_json::from_value(json!({
        "metadata": {"name": CORE_NODE, "uid": "core-uid", "finalizers": finalizers,
        "creationTimestamp": at(4).to_string(), "labels": {"freehold.dev/dedicated": "true"}},
        "spec": {
            "providerID": "aws:///us-east-1a/i-1",
            "taints": [{"key": "freehold.dev/dedicated", "value": "true", "effect": "NoExecute"}],
        },
        "status": {"conditions": [condition]},
    }))
    .unwrap()
}

/// The database's own pod.
fn pod(name: &str, is_ending: bool) -> Pod {
    let mut pod: Pod = serde_json::from_value(json!({"metadata": {"name": name, "namespace": "team-a",
        "uid": format!("{name}-uid")}}))
    .unwrap();
    pod.metadata.deletion_timestamp = is_ending.then(|| Time(at(6)));
    pod
}

/// A pod of another tenant, with this grace of its own.
fn foreign_pod(name: &str, grace_seconds: i64) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "team-b", "uid": format!("{name}-uid")},
        "spec": {"containers": [], "terminationGracePeriodSeconds": grace_seconds},
    }))
    .unwrap()
}

/// The quota that the types of the world count against is reached until then.
fn reached(until: Timestamp) -> BTreeMap<(Quota, u32), Timestamp> {
    BTreeMap::from([((Quota::Vcpus("Standard (A, C, D, H, I, M, R, T, Z)".to_owned()), 2), until)])
}

/// Look-ups by tag and token that were empty from then to then.
fn empty(first: i64, last: i64) -> EmptyRuns {
    let run = Some(EmptyRun { first: at(first), last: at(last) });
    EmptyRuns { by_tag: run, by_token: run }
}

fn message(plan: &Plan) -> String {
    plan.waiting.as_ref().map(NodeWait::message).unwrap_or_default()
}

/// A row: its name, the world, the moment, and the plan as `line` writes it.
type Case = (&'static str, Observed, Timestamp, &'static str);

fn hold(rows: Vec<Case>) {
    for (name, observed, now, expected) in rows {
        let plan = plan(&observed, now);
        assert!(
            plan.waiting.as_ref().is_none_or(|waiting| !waiting.message().is_empty()),
            "{name}: every wait says why"
        );
        pretty_assertions::assert_eq!(line(&observed, now, &plan), expected, "{name}");
    }
}

/// The condition of this type.
fn condition(conditions: &[Condition], kind: ConditionType) -> (String, String) {
    let found = conditions::find(conditions, kind).unwrap();
    (found.status.clone(), found.reason.clone())
}
