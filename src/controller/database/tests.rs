//! Tables of the Database controller: one settled world, and what happens when something in it is otherwise.

mod access;
mod adopting;
mod adopting_running;
mod application_user;
mod auto_growing;
mod back_to_served;
mod drift;
mod flushing;
mod history;
mod leaving;
mod life;
mod messages;
mod moving;
mod observe;
mod permission;
mod plan;
mod pod;
mod random;
mod releasing;
mod reloading;
mod replacing;
mod restoring;
mod restoring_in_place;
mod rotating;
mod status;
mod tls;
mod upgrading;
mod versions;
mod wal_archive;
mod word;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::{Node as CoreNode, Pod, Secret};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use super::build;
use super::observe::Observed;
use super::observe::child::{Child, Credentials, HeldSecret};
use super::observe::engine_answers::EngineAnswers;
use super::observe::retained::Kept;
use super::observe::tls::TlsSecret;
use super::observe::torn_down::TornDown;
use super::observe::usage::Usage;
use super::password::Password;
use super::plan::action::{Action, Plan};
use super::plan::plan;
use crate::api::database::{Applied, AppliedStatefulSet};
use crate::api::keys::{DATABASE_NODE_LABEL, FINALIZER};
use crate::api::names::Names;
use crate::api::{Database, Node, NodeClass, Volume};
use crate::controller::memory::flushes::FlushView;
use crate::engine;
use crate::settings::{Network, Timing};
use word::{line, word};

const UID: &str = "6f1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a11";
const ZONE: &str = "us-east-1b";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn now() -> Timestamp {
    at(1_700_000_000)
}

/// A Database with this spec besides the engine and the size, and with this status.
fn database(spec: Value, status: Value) -> Database {
    let mut whole = json!({"engine": {"type": "questdb", "version": "9.3.4"}, "storage": {"size": "100Gi"}});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({
        "apiVersion": "freehold.dev/v1alpha1",
        "kind": "Database",
        "metadata": {"name": "orders", "namespace": "team-a", "uid": UID, "generation": 3,
        "finalizers": [FINALIZER]},
        "spec": whole,
        "status": status,
    }))
    .unwrap()
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message,
    "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

/// Conditions of a Node or a Volume, all true but Stalled.
fn good(kinds: &[&str]) -> Value {
    let mut conditions: Vec<Value> =
        kinds.iter().map(|kind| condition(kind, "True", "AsExpected", "good")).collect();
    conditions.push(condition("Stalled", "False", "Progressing", "nothing needs a person"));
    Value::Array(conditions)
}

/// The NodeClass of the Databases, with this besides what every class needs.
fn class(spec: Value) -> NodeClass {
    let mut whole = json!({"imageID": "ami-1", "subnets": [{"id": "subnet-1", "zone": ZONE}], "userData": "",
        "instanceTypes": ["*"]});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    NodeClass::new("default", serde_json::from_value(whole).unwrap())
}

/// A world that was just created: the Database has its finalizer, and nothing else is there.
fn empty(spec: Value, status: Value) -> Observed {
    let database = database(spec, status);
    Observed {
        class: Some(class(json!({}))),
        namespace_labels: BTreeMap::new(),
        usage: Usage::default(),
        names: Names::of(&database),
        profile: engine::profile(&database.spec.engine, &database.spec.config),
        nodes: Vec::new(),
        node_name_taken: None,
        is_pod_foreign: false,
        credentials_as_reported: false,
        tls: TlsSecret::NotRead,
        volume: Child::Absent,
        claim: None,
        credentials: Credentials::Read(Child::Absent),
        retained: Child::Absent,
        kept: Kept::default(),
        config_map: Child::Absent,
        service: Child::Absent,
        service_account: Child::Absent,
        network_policy: Child::Absent,
        disruption_budget: Child::Absent,
        application_user: Child::Absent,
        stateful_set: Child::Absent,
        legacy: None,
        pod: None,
        flush: FlushView::NotBegun,
        attachment: None,
        core_nodes: Vec::new(),
        labelled: Vec::new(),
        answers: EngineAnswers::default(),
        disk: None,
        torn_down: TornDown::default(),
        priority_class: None,
        network: Network::default(),
        timing: Timing::default(),
        database,
    }
}

fn settled_status() -> Value {
    json!({
        "zone": ZONE, "nodeOrdinal": 1, "nodeName": "orders-gqmgm-1", "volumeName": "orders-gqmgm",
        "credentialsSecretName": "orders-admin",
    })
}

/// A world in which all is as wanted.
fn settled() -> Observed {
    settled_as(json!({}))
}

/// The settled world of a Database whose spec was this from the beginning.
fn settled_as(spec: Value) -> Observed {
    let mut world = empty(spec, settled_status());
    let (database, names, profile) =
        (&world.database.clone(), &world.names.clone(), &world.profile.clone().unwrap());
    world.credentials = Credentials::Read(ours(HeldSecret(with_uid(
        build::credentials(names, profile, &Password::fixed()),
        "secret-uid",
    ))));
    world.config_map = build::config_map(database, names, profile)
        .map_or(Child::Absent, |object| ours(with_uid(object, "config-uid")));
    world.service = ours(with_uid(build::service(names, profile, false), "service-uid"));
    world.service_account = ours(with_uid(build::service_account(names), "account-uid"));
    world.network_policy =
        ours(with_uid(build::network_policy(database, names, profile, &world.network), "policy-uid"));
    world.disruption_budget = ours(with_uid(build::disruption_budget(names), "budget-uid"));
    let stateful_set = seen(with_uid(build::stateful_set(database, names, profile, 1), "set-uid"));
    world.pod = Some(pod_of(&stateful_set));
    world.stateful_set = ours(stateful_set);
    world.nodes = vec![ready_node(&world, 1)];
    world.volume = ours(ready_volume(&world));
    world.core_nodes = vec![core_node("ip-10-0-0-1", true)];
    world.labelled = vec![core_node("ip-10-0-0-1", true)];
    as_applied(&mut world);
    world
}

/// ConfigMap and StatefulSet are as Freehold applied them.
fn as_applied(world: &mut Observed) {
    let set = |set: &StatefulSet| AppliedStatefulSet {
        uid: set.uid().unwrap(),
        generation: set.metadata.generation.unwrap(),
        spec: build::of_stateful_set(set),
    };
    world.database.status.get_or_insert_default().applied = Some(Applied {
        config_map: world.config_map.ours().map(build::of_config_map),
        stateful_set: world.stateful_set.ours().map(set),
        ..Applied::default()
    });
}

/// The same world after an edit of the spec.
fn edited(spec: Value) -> Observed {
    let mut world = settled();
    world.database = database(spec, settled_status());
    world.profile = engine::profile(&world.database.spec.engine, &world.database.spec.config);
    as_applied(&mut world);
    world
}

fn ours<T>(object: T) -> Child<T> {
    Child::Ours(Box::new(object))
}

fn with_uid<K: Resource>(mut object: K, uid: &str) -> K {
    object.meta_mut().uid = Some(uid.to_owned());
    object
}

/// The StatefulSet's controller has seen its newest spec.
fn seen(mut set: StatefulSet) -> StatefulSet {
    set.metadata.generation = Some(5);
    set.status =
        Some(StatefulSetStatus { observed_generation: Some(5), replicas: 1, ..StatefulSetStatus::default() });
    set
}

fn ready_node(world: &Observed, ordinal: i32) -> Node {
    let node = build::node(&world.database, &world.names, ordinal, Some(ZONE));
    let status = json!({
        "observedGeneration": 1,
        "conditions": good(&["Ready", "Launched", "Registered", "Initialized"]),
        "instanceID": "i-1", "providerID": "aws:///us-east-1b/i-1", "coreNodeName": "ip-10-0-0-1",
        "instanceType": "r7i.large", "zone": ZONE,
    });
    node_with(node, status)
}

fn node_with(mut node: Node, status: Value) -> Node {
    node.metadata.uid = Some(format!("{}-uid", node.name_any()));
    node.metadata.generation = Some(1);
    node.status = Some(serde_json::from_value(status).unwrap());
    node
}

fn ready_volume(world: &Observed) -> Volume {
    let volume = build::volume(&world.database, &world.names, ZONE);
    volume_with(
        volume,
        json!({"observedGeneration": 1, "conditions": good(&["Ready", "Created", "Bound", "Modified"])}),
    )
}

fn volume_with(mut volume: Volume, status: Value) -> Volume {
    volume.metadata.uid = Some("volume-uid".to_owned());
    volume.metadata.generation = Some(1);
    volume.status = Some(serde_json::from_value(status).unwrap());
    volume
}

fn core_node(name: &str, labelled: bool) -> CoreNode {
    let labels = if labelled { json!({DATABASE_NODE_LABEL: UID}) } else { json!({}) };
    serde_json::from_value(json!({"metadata": {"name": name, "uid": format!("{name}-uid"), "labels": labels},
    "spec": {}}))
    .unwrap()
}

/// A ready pod of this StatefulSet.
fn pod_of(set: &StatefulSet) -> Pod {
    let template = set.spec.as_ref().unwrap().template.clone();
    let mut pod = Pod { metadata: template.metadata.unwrap(), spec: template.spec, status: None };
    pod.metadata.name = Some("orders-0".to_owned());
    pod.metadata.uid = Some("pod-uid".to_owned());
    pod.spec.as_mut().unwrap().node_name = Some("ip-10-0-0-1".to_owned());
    pod_with(
        pod,
        json!({
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [container_status(json!({"running": {}}))],
        }),
    )
}

fn container_status(state: Value) -> Value {
    json!({"name": "engine", "image": "i", "imageID": "i", "ready": false, "restartCount": 0, "state": state})
}

fn pod_with(pod: Pod, status: Value) -> Pod {
    Pod { status: Some(serde_json::from_value(status).unwrap()), ..pod }
}

/// Changes an object of ours in place.
fn change<T: Clone>(child: &mut Child<T>, change: impl FnOnce(&mut T)) {
    let Child::Ours(object) = child else { panic!("not ours") };
    change(object);
}

fn deleting<K: Resource>(object: &mut K, second: i64) {
    object.meta_mut().deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(second)));
}

fn secret_with(password: &[u8]) -> Secret {
    let mut secret = build::credentials(
        &Names::of(&database(json!({}), json!({}))),
        settled().profile.as_ref().unwrap(),
        &Password::fixed(),
    );
    secret.data.as_mut().unwrap().insert("password".to_owned(), ByteString(password.to_vec()));
    with_uid(secret, "secret-uid")
}

/// Plans a world that is a settled one with one thing changed.
fn planned(change: impl FnOnce(&mut Observed)) -> String {
    let mut world = settled();
    change(&mut world);
    line(&plan(&world, now()))
}
