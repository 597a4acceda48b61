//! Every sentence about a Database, in a golden file: a changed one shows in a review.

mod auto_grow;
mod causes;
mod invalid_spec;
mod next_start;
mod reload;
mod restore;
mod rotation;
mod tls;
mod upgrade;
mod wal_archive;

use self::causes::{alterations, node_deletions, replace_causes, restart_causes};
use super::*;
use crate::api::{DeletionPolicy, InstanceId, Reason, Size, VolumeId};
use crate::controller::blocker::Blocker;
use crate::controller::database::build::CredentialsError;
use crate::controller::database::cause::*;
use crate::controller::database::claim_fault::ClaimFault;
use crate::controller::database::legacy_refusal::LegacyRefusal;
use crate::controller::database::messages::{self, events, release};
use crate::controller::database::object_name::*;
use crate::controller::database::pod::*;
use crate::controller::database::wait::*;
use crate::controller::messages as shared;
use crate::controller::tests::golden::{Sentence, compare_sentences, complete, variant};
use crate::engine::EngineError;

/// A text for the examples.
fn t(text: &str) -> String {
    text.to_owned()
}

fn total_storage(orphaned: i64) -> ClassRefusal {
    ClassRefusal::TotalStorage {
        class: t("default"),
        most: Size(t("1Ti")),
        databases: 500,
        retained: 400,
        retained_volumes: 4,
        orphaned,
        more: 200,
    }
}

fn class_refusals() -> Vec<ClassRefusal> {
    let class = || t("default");
    complete([
        ClassRefusal::NoClass { class: class() },
        ClassRefusal::CustomDisabled { class: class() },
        ClassRefusal::Namespace { class: class(), namespace: t("team-a") },
        ClassRefusal::Databases { class: class(), most: 3, orphaned: 0 },
        ClassRefusal::Databases { class: class(), most: 3, orphaned: 2 },
        total_storage(0),
        total_storage(50),
        ClassRefusal::NotCounted { class: class() },
        ClassRefusal::NotListed {
            class: class(),
            what: "image",
            wanted: t("db:1"),
            allowed: vec![t("registry.example/*"), t("mirror.example/*")],
        },
        ClassRefusal::Above { class: class(), field: "storage", wanted: t("4Ti"), most: t("2Ti") },
    ])
}

fn refusals() -> Vec<AdoptionRefusal> {
    let (secret, namespace) = (t("orders-aaaaa-admin"), t("team-a"));
    complete([
        AdoptionRefusal::Record(t("WHY")),
        AdoptionRefusal::HeldByOther { database: t("orders-2"), record: t("freehold-1") },
        AdoptionRefusal::SecretForbidden {
            secret: secret.clone(),
            namespace: namespace.clone(),
            answer: t("ANSWER"),
        },
        AdoptionRefusal::SecretMissing {
            secret: secret.clone(),
            namespace: namespace.clone(),
            database_uid: t("UID"),
        },
        AdoptionRefusal::SecretUnlabelled { secret: secret.clone(), namespace },
        AdoptionRefusal::SecretContent { secret, fault: CredentialsError::TooShort },
    ])
}

fn legacy_refusals() -> Vec<LegacyRefusal> {
    let (set, pod, claim, core_node, secret) =
        (t("pg"), t("pg-0"), t("data-pg-0"), t("ip-10-0-0-1"), t("pg-admin"));
    let (instance, volume) = (InstanceId(t("i-1")), VolumeId(t("vol-1")));
    complete([
        LegacyRefusal::Paused,
        LegacyRefusal::NoStatefulSet(set.clone()),
        LegacyRefusal::Owned { set: set.clone(), by: t("Cluster pg") },
        LegacyRefusal::Replicas { set, replicas: 3 },
        LegacyRefusal::NoPod(pod.clone()),
        LegacyRefusal::PodNotReady {
            pod: pod.clone(),
            wait: EngineWait::ContainerStarting { pod: pod.clone() },
        },
        LegacyRefusal::OtherInstance { core_node: core_node.clone(), found: t("i-2"), wanted: instance },
        LegacyRefusal::NoZone { core_node },
        LegacyRefusal::TypeNotListed(t("m5.large")),
        LegacyRefusal::ClaimNotUsed { pod: pod.clone(), claim: claim.clone() },
        LegacyRefusal::SecondVolume { pod: pod.clone(), volume: t("wal") },
        LegacyRefusal::NoContainer { set: t("pg"), container: t("postgres") },
        LegacyRefusal::NotTheEngine { pod: pod.clone(), container: t("proxy") },
        LegacyRefusal::Deleted(t("pg")),
        LegacyRefusal::OtherTemplate { set: t("pg"), pod },
        LegacyRefusal::ZoneExcluded(t("us-east-1c")),
        LegacyRefusal::ClaimNotBound { claim },
        LegacyRefusal::OtherVolume { persistent_volume: t("pvc-1"), found: t("vol-2"), wanted: volume },
        LegacyRefusal::NoService(t("pg")),
        LegacyRefusal::NoSecret(secret.clone()),
        LegacyRefusal::SecretForbidden { secret, answer: t("ANSWER") },
    ])
}

fn claim_faults() -> impl Iterator<Item = ClaimFault> {
    let other = |found: &str| ClaimFault::Other { found: t(found), wanted: t("pvc-1") };
    let ending = [ClaimFault::BeingDeleted { pod: None }, ClaimFault::BeingDeleted { pod: Some(t("pg-0")) }];
    complete([ClaimFault::Gone, other(""), other("pvc-2")].into_iter().chain(ending)).into_iter()
}

fn engine_waits() -> Vec<EngineWait> {
    let pod = || t("orders-0");
    let last = || Some(Ending { reason: Some(t("OOMKilled")), exit_code: 137, log: Some(t("LAST LINES")) });
    let failing = |failure: Failure| EngineWait::Failing { pod: pod(), failure };
    complete([
        EngineWait::NoPod,
        EngineWait::NotScheduled { pod: pod() },
        EngineWait::Unschedulable { pod: pod(), message: Some(t("0/1 nodes")) },
        EngineWait::Unschedulable { pod: pod(), message: None },
        EngineWait::ContainerStarting { pod: pod() },
        failing(Failure::CrashLoop { last: last() }),
        failing(Failure::CrashLoop { last: None }),
        failing(Failure::Container { reason: t("ErrImagePull"), message: Some(t("MESSAGE")) }),
        failing(Failure::Container { reason: t("ErrImagePull"), message: None }),
        failing(Failure::Pod { message: Some(t("Evicted")) }),
        failing(Failure::Pod { message: None }),
        EngineWait::ProbeFailing { pod: pod(), last: last() },
        EngineWait::ProbeFailing { pod: pod(), last: None },
        EngineWait::Stopping { pod: pod() },
    ])
}

fn replacing() -> impl Iterator<Item = DatabaseWait> {
    let to = || t("orders-2");
    let wait = || Box::new(DatabaseWait::NodeNotInitialized(to()));
    let steps = vec![
        ReplaceStep::AfterFormer(t("orders-0")),
        ReplaceStep::DeletedFirst,
        ReplaceStep::Creating(to()),
        ReplaceStep::Recurring { until: at(0), before: 1, is_stalled: false },
        ReplaceStep::Recurring { until: at(0), before: 4, is_stalled: true },
        ReplaceStep::SuccessorUnfit { to: to(), why: ReplaceCause::NodeDeleted { node: to() } },
        ReplaceStep::AwaitingSuccessor { to: to(), serves_on: true, wait: wait() },
        ReplaceStep::AwaitingSuccessor { to: to(), serves_on: false, wait: wait() },
        ReplaceStep::NoRoom {
            to: t("orders-2"),
            lacking: NoRoom { resource: t("memory"), allocatable: t("15Gi") },
        },
        ReplaceStep::MovingBack(to()),
        ReplaceStep::Unfenced {
            to: to(),
            blocker: Blocker::NotFenced {
                node: t("orders-1"),
                reason: Reason::Fencing,
                message: Some(t("REPORT")),
            },
        },
    ];
    let cause = || ReplaceCause::TypeNotWanted { instance_type: t("r7i.large") };
    steps.into_iter().map(move |step| DatabaseWait::Replacing { node: t("orders-1"), cause: cause(), step })
}

fn children() -> impl Iterator<Item = DatabaseWait> {
    let states = vec![
        ChildState::New,
        ChildState::Outdated,
        ChildState::NotReady { reason: Some(Reason::Launching), message: t("MESSAGE") },
        ChildState::NotReady { reason: None, message: t("MESSAGE") },
        ChildState::Stalled { reason: Some(Reason::NodeClassNotFound), message: t("MESSAGE") },
    ];
    states
        .into_iter()
        .map(|state| DatabaseWait::Child { object: ObjectName::new(ObjectKind::Node, "orders-1"), state })
}

/// The objects of a conflict that has a Secret among them.
const KINDS: [ObjectKind; 7] = [
    ObjectKind::Secret,
    ObjectKind::ConfigMap,
    ObjectKind::ServiceAccount,
    ObjectKind::NetworkPolicy,
    ObjectKind::StatefulSet,
    ObjectKind::Pod,
    ObjectKind::Volume,
];

fn waits() -> Vec<DatabaseWait> {
    let (node, volume, secret) = (|| t("orders-1"), || t("orders-x"), || t("orders-admin"));
    let object = |kind: ObjectKind, name: &str| ObjectName::new(kind, name);
    let conflict = |objects: Vec<ObjectName>| DatabaseWait::NameConflict { objects, namespace: t("team-a") };
    let restart = |step: RestartStep| DatabaseWait::RestartPending { pod: t("orders-0"), step };
    let altered = |step: RestartStep| DatabaseWait::PodAltered { pod: t("orders-0"), step };
    let attaching = |error: Option<String>| Attaching { core_node: t("ip-1"), since: Some(at(0)), error };
    let mut waits = vec![
        DatabaseWait::AddingFinalizer,
        conflict(vec![object(ObjectKind::Service, "orders")]),
        conflict(KINDS.into_iter().map(|kind| object(kind, "orders")).collect()),
        DatabaseWait::FormerVolumeExists(VolumeId(t("vol-1"))),
        DatabaseWait::DataRetained { volume_id: VolumeId(t("vol-1")), record: t("freehold-1"), older: 0 },
        DatabaseWait::DataRetained { volume_id: VolumeId(t("vol-2")), record: t("freehold-2"), older: 1 },
        DatabaseWait::Adopting { volume_id: VolumeId(t("vol-1")), record: t("freehold-1") },
        DatabaseWait::VolumeLost { volume: volume(), is_being_deleted: true },
        DatabaseWait::VolumeLost { volume: volume(), is_being_deleted: false },
        DatabaseWait::CreatingNode(node()),
        DatabaseWait::NodeUnusable {
            node: node(),
            cause: ReplaceCause::Misplaced { machine: t("us-east-1c"), disk: t("us-east-1b") },
        },
        DatabaseWait::NodeNotInitialized(node()),
        DatabaseWait::KubernetesNodeGone { node: node() },
        DatabaseWait::ZoneNotChosen,
        DatabaseWait::CreatingVolume { volume: volume(), zone: t("us-east-1b") },
        DatabaseWait::VolumeNotBound(volume()),
        DatabaseWait::UpdatingChild(object(ObjectKind::Volume, "orders-x")),
        DatabaseWait::ApplicationUser { user: t("orders-application"), state: Some(ChildState::New) },
        DatabaseWait::ApplicationUser { user: t("orders-application"), state: None },
        DatabaseWait::MovingPod(RestartCause::Moved {
            pod: t("orders-0"),
            from: t("ip-1"),
            to: t("ip-2"),
            cause: None,
        }),
        restart(RestartStep::ApplyingTemplate),
        restart(RestartStep::Stopping),
        restart(RestartStep::Deleting(RestartCause::Settings)),
        restart(RestartStep::NoRoom(NoRoom { resource: t("cpu"), allocatable: t("2") })),
        restart(RestartStep::Blocked(Blocker::ChangeNotSeen(t("orders")))),
        altered(RestartStep::Deleting(RestartCause::AlteredTemplate)),
        altered(RestartStep::Unsettled(Some(at(0)))),
        altered(RestartStep::Unsettled(None)),
        DatabaseWait::StartingEngine,
        DatabaseWait::Attaching(attaching(None)),
        DatabaseWait::Attaching(attaching(Some(t("ERROR")))),
        DatabaseWait::EngineOutdated,
        DatabaseWait::EngineMachineLost(LostReason(Reason::InstanceLost)),
        DatabaseWait::MachineLost {
            reason: LostReason(Reason::InstanceLost),
            message: Some(t("MESSAGE OF LOST")),
        },
        DatabaseWait::NoVolume,
        DatabaseWait::Flushing {
            pod: t("orders-0"),
            stop: Box::new(restart(RestartStep::Deleting(RestartCause::Settings))),
        },
        DatabaseWait::StoppingEngine(Blocker::PodRuns(t("orders-0"))),
        DatabaseWait::DeletingNode { node: node(), message: Some(t("MESSAGE")) },
        DatabaseWait::DeletingNode { node: node(), message: None },
        DatabaseWait::Paused,
        DatabaseWait::DeletingVolume {
            volume: volume(),
            policy: DeletionPolicy::Retain,
            message: Some(t("MESSAGE")),
        },
        DatabaseWait::RetainedSecretConflict(t("orders-x-admin")),
        DatabaseWait::ResourcesDeleted,
        DatabaseWait::OtherFinalizers,
        DatabaseWait::ChildRefused { answer: t("ANSWER") },
        DatabaseWait::StepFailed { error: t("ERROR") },
    ];
    let faults = [
        SecretFault::Forbidden { answer: t("ANSWER") },
        SecretFault::Content(CredentialsError::TooShort),
        SecretFault::Deleted,
    ];
    waits.extend(faults.map(|fault| DatabaseWait::CredentialsUnusable { secret: secret(), fault }));
    for idle in [Idle::Deleting, Idle::Paused, Idle::Awaited] {
        waits.extend([DatabaseWait::NoEngine(idle), DatabaseWait::NoMachine(idle)]);
    }
    waits.extend(releasing::unreleasable().into_iter().map(DatabaseWait::NotReleasable));
    waits.extend(invalid_spec::all().into_iter().map(DatabaseWait::InvalidSpec));
    waits.extend(class_refusals().into_iter().map(DatabaseWait::NotPermitted));
    waits.extend(refusals().into_iter().map(DatabaseWait::AdoptionRefused));
    waits.extend(restore::waits().into_iter().chain(reload::waits()).chain(rotation::waits()));
    waits.extend(upgrade::waits().into_iter().chain(tls::waits()));
    waits.extend(legacy_refusals().into_iter().map(DatabaseWait::NotAdoptable));
    waits.extend([
        DatabaseWait::AdoptingStatefulSet(t("pg")),
        DatabaseWait::Releasing { set: t("pg"), as_found: true },
        DatabaseWait::Releasing { set: t("orders"), as_found: false },
        DatabaseWait::ReleasingVolume(volume()),
        DatabaseWait::NotRecreatable(t("pg"), t("ANSWER")),
    ]);
    waits.extend(claim_faults().map(|fault| DatabaseWait::ClaimUnusable(t("data-pg-0"), fault)));
    waits.extend(engine_waits().into_iter().map(DatabaseWait::Engine));
    waits.extend(next_start::waits());
    waits.extend(replacing().chain(children()));
    waits
}

/// The sentences that are no waits.
fn others() -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("MACHINE_READY", t(messages::MACHINE_READY)),
        ("VOLUME_READY", t(messages::VOLUME_READY)),
        ("ENGINE_READY", t(messages::ENGINE_READY)),
        ("DATABASE_READY", t(messages::DATABASE_READY)),
        ("NOT_STALLED", t(shared::NOT_STALLED)),
        ("DELETION_PROTECTED", t(messages::DELETION_PROTECTED)),
        ("BEING_DELETED", t(messages::BEING_DELETED)),
        ("events::PAUSED", t(events::PAUSED)),
        ("events::RESUMED", t(events::RESUMED)),
        ("events::END_UNKNOWN", t(events::END_UNKNOWN)),
        ("events::POD_DELETED", t(events::POD_DELETED)),
        ("events::DELETED", t(events::DELETED)),
        ("events::record_held", events::record_held("freehold-1")),
        ("events::credentials_adopted", events::credentials_adopted("orders-admin", "orders-aaaaa-admin")),
        ("events::stateful_set_applied", events::stateful_set_applied("orders", true)),
        ("events::stateful_set_applied", events::stateful_set_applied("orders", false)),
        ("events::altered", events::altered(&ObjectName::new(ObjectKind::StatefulSet, "orders"))),
        ("events::adopted", events::adopted("pg")),
        ("release::released", release::released("pg", true)),
        ("release::released", release::released("orders", false)),
        ("events::image_source_changed", events::image_source_changed("orders")),
        ("events::engine_stopping", events::engine_stopping("orders")),
        ("events::node_created", events::node_created(&settled().nodes[0], None)),
        ("events::node_deleted", events::node_deleted("orders-1", "CAUSE")),
        ("events::restore_decided", restore::decided()),
        ("events::restored_in_place", restore::in_place()),
        ("upgrade::begun", upgrade::begun()),
        ("upgrade::done", upgrade::done()),
        ("events::volume_created", events::volume_created("orders-x", settled().volume.ours().unwrap())),
        ("events::volume_changed", events::volume_changed("orders-x", &json!({"size": "200Gi"}))),
        ("events::volume_deleted", events::volume_deleted("orders-x")),
        ("events::credentials_retained", events::credentials_retained("orders-x-admin")),
        ("Move", Move { from: t("orders-1"), to: t("orders-2"), cause: t("CAUSE") }.message()),
    ];
    rows.extend(next_start::sentences());
    rows.extend(auto_grow::sentences());
    rows.extend(reload::sentences().into_iter().chain(rotation::sentences()).chain(tls::sentences()));
    rows.extend(wal_archive::sentences());
    rows.extend(replace_causes().iter().map(|cause| ("ReplaceCause", cause.message())));
    rows.extend(restart_causes().iter().map(|cause| ("RestartCause", cause.message())));
    rows.extend(alterations().iter().map(|alteration| ("Alteration", alteration.message())));
    rows.extend(node_deletions().iter().map(|cause| ("NodeDeletion", cause.message())));
    rows
}

#[test]
fn every_sentence_is_in_the_golden_file() {
    let all = complete(waits());
    let waits = all.iter().map(|it| Sentence::wait(variant(it), it.reason(), it.is_stalled(), it.message()));
    let others = others().into_iter().map(|(name, sentence)| Sentence::other(name, sentence));
    compare_sentences("database", &waits.chain(others).collect::<Vec<_>>());
}
