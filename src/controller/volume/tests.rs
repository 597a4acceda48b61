//! Tables of the Volume controller: one obvious world, and what is planned when something in it is otherwise.

mod adopted;
mod adopting;
mod bound;
mod create;
mod giving_back;
mod growth;
mod in_place;
mod leaving;
mod life;
mod line;
mod messages;
mod modification_limits;
mod random;
mod restored;
mod retaining;
mod snapshot;
mod status;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::json;

use self::line::line;
use super::build;
use super::observe::around::Around;
use super::observe::{ById, Observed};
use super::plan::action::{Action, Modify, Plan, Stage, VolumeInterest};
use super::plan::plan;
use super::wait::VolumeWait;
use crate::api::creation::{Attempt, Refusal};
use crate::api::keys::FINALIZER;
use crate::api::volume::{FinalSnapshot, ModificationRecord, VolumeCreation};
use crate::api::{
    ConditionType, DeletionPolicy, NodeClass, Reason, Size, SnapshotId, Volume, VolumeId, VolumeStatus,
};
use crate::cloud::absence::EmptyRun;
use crate::cloud::call::Call;
use crate::cloud::identity::{self, Kind, Owner};
use crate::cloud::inventory::{SnapshotView, VolumeView};
use crate::cloud::offerings::OfferingsView;
use crate::cloud::quota::Quota;
use crate::cloud::{CloudError, EbsVolume, Snapshot, SnapshotState, VolumeState};
use crate::cluster::ownership::Ownership;
use crate::controller::call_blocked::CallBlocked;
use crate::controller::conditions::{self, Entry};
use crate::controller::memory::issued_requests::IssuedRequest;
use crate::controller::memory::sends::Sent;
use crate::settings::Timing;

/// Seconds from when the attempt of the fixtures was decided; the process has run for long by then.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// The moment of most rows: ten seconds after the attempt was decided; the last sweep is two seconds old.
fn now() -> Timestamp {
    at(10)
}

fn volume(status: Option<VolumeStatus>) -> Volume {
    let mut volume: Volume = serde_json::from_value(json!({
        "apiVersion": "freehold.dev/v1alpha1",
        "kind": "Volume",
        "metadata": {
            "name": "orders-k3f9q",
            "namespace": "team-a",
            "uid": "volume-uid",
            "generation": 3,
            "finalizers": [FINALIZER],
            "labels": {"freehold.dev/database": "orders"},
            "ownerReferences": [{"apiVersion": "freehold.dev/v1alpha1", "kind": "Database", "name": "orders",
                "uid": "database-uid", "controller": true}],
        },
        "spec": {
            "nodeClassName": "default",
            "size": "100Gi",
            "type": "gp3",
            "fileSystem": "xfs",
            "zone": "us-east-1b",
            "deletionPolicy": "Retain",
        },
    }))
    .unwrap();
    volume.status = status;
    volume
}

fn class() -> NodeClass {
    serde_json::from_value(json!({
        "apiVersion": "freehold.dev/v1alpha1",
        "kind": "NodeClass",
        "metadata": {"name": "default"},
        "spec": {
            "imageID": "ami-1",
            "subnets": [{"id": "subnet-b", "zone": "us-east-1b"}],
            "userData": "boot",
            "instanceTypes": ["*"],
            "kmsKeyID": "key",
            "tags": {"team": "platform"},
        },
    }))
    .unwrap()
}

/// A Volume with our finalizer, in a world where EC2 shows nothing of it.
fn world() -> Observed {
    Observed {
        volume: volume(None),
        ownership: Ownership::Owned,
        class: Some(class()),
        volumes: VolumeView {
            volumes: Vec::new(),
            modification: None,
            modification_is_known: true,
            initialization: None,
            swept_at: Some(at(8)),
            empty: None,
        },
        snapshots: SnapshotView { snapshots: Vec::new(), swept_at: Some(at(8)), empty: None },
        offerings: OfferingsView::default(),
        sent: None,
        issued: BTreeMap::new(),
        by_id: ById::NotRead,
        persistent_volume: None,
        record: None,
        former: VolumeView {
            volumes: Vec::new(),
            modification: None,
            modification_is_known: true,
            initialization: None,
            swept_at: Some(at(8)),
            empty: None,
        },
        claim: None,
        storage_class: Some(storage_class(true)),
        attachments: Vec::new(),
        owner: None,
        around: Around::default(),
        cluster_id: "cluster".to_owned(),
        leading_since: at(-100_000),
        timing: Timing::default(),
    }
}

/// The quota that the volume of the world counts against is reached until then.
fn reached(until: Timestamp) -> BTreeMap<(Quota, u32), Timestamp> {
    BTreeMap::from([((Quota::Storage("gp3".to_owned()), 100), until)])
}

/// The world with an attempt that was decided at 0 and has no id.
fn attempted() -> Observed {
    let mut observed = world();
    status(&mut observed).creation = Some(launch(1, at(0)));
    observed
}

/// The world with an EBS volume that the status names, in this state.
fn created(state: VolumeState) -> Observed {
    let mut observed = attempted();
    status(&mut observed).volume_id = Some(id("vol-1"));
    observed.volumes.volumes = vec![ebs("vol-1", 1, state)];
    observed
}

/// The settled world: bound, attached, and as wanted.
fn settled() -> Observed {
    let mut observed = created(VolumeState::InUse);
    status(&mut observed).ever_held = true;
    observed.persistent_volume = Some(record());
    observed.claim = Some(claim("100Gi", "100Gi"));
    observed
}

fn with(mut observed: Observed, change: impl FnOnce(&mut Observed)) -> Observed {
    change(&mut observed);
    observed
}

/// The Volume of this world is being deleted under this policy.
fn deleting(policy: DeletionPolicy, mut observed: Observed) -> Observed {
    observed.volume.metadata.deletion_timestamp = Some(Time(at(5)));
    observed.volume.spec.deletion_policy = policy;
    observed
}

fn status(observed: &mut Observed) -> &mut VolumeStatus {
    observed.volume.status.get_or_insert_with(VolumeStatus::default)
}

/// The status says of this condition that it is this since then.
fn says(observed: &mut Observed, kind: ConditionType, holds: bool, reason: Reason, since: Timestamp) {
    let entry = Entry { kind, holds, reason, message: "as EC2 said".to_owned() };
    status(observed).conditions = conditions::merge(&[], &[entry], Some(3), since);
}

/// The whole request of an attempt.
fn launch(attempt: i32, when: Timestamp) -> VolumeCreation {
    let owner = Owner {
        cluster_id: "cluster".to_owned(),
        kind: Kind::Volume,
        uid: "volume-uid".to_owned(),
        database: "team-a/orders".to_owned(),
        name: "orders-k3f9q".to_owned(),
    };
    VolumeCreation {
        attempt: Attempt::new(attempt, Time(when)),
        client_token: identity::token("cluster", Kind::Volume, "volume-uid", attempt),
        zone: "us-east-1b".to_owned(),
        size: 100,
        volume_type: "gp3".to_owned(),
        iops: None,
        throughput: None,
        snapshot_id: None,
        initialization_rate: None,
        kms_key_id: Some("key".to_owned()),
        tags: identity::tags(&owner, attempt, &BTreeMap::from([("team".to_owned(), "platform".to_owned())])),
    }
}

fn refused(code: &str, when: Timestamp) -> VolumeCreation {
    let refusal = Refusal { code: code.to_owned(), message: "no".to_owned(), at: Time(when) };
    let attempt = Attempt { refused: Some(refusal), ..launch(1, at(0)).attempt };
    VolumeCreation { attempt, ..launch(1, at(0)) }
}

fn id(id: &str) -> VolumeId {
    VolumeId(id.to_owned())
}

/// An EBS volume that this attempt made: 100 GiB, with what EBS gives a gp3 volume.
fn ebs(name: &str, attempt: i32, state: VolumeState) -> EbsVolume {
    EbsVolume {
        id: id(name),
        state,
        zone: "us-east-1b".to_owned(),
        size: 100,
        volume_type: "gp3".to_owned(),
        iops: Some(3000),
        throughput: Some(125),
        encrypted: true,
        created_at: None,
        multi_attach: false,
        attachments: vec![],
        tags: launch(attempt, at(0)).tags,
    }
}

/// The PersistentVolume that is made for vol-1.
fn record() -> PersistentVolume {
    build::persistent_volume(&volume(None), &id("vol-1"), &Size("100Gi".to_owned()), "freehold", None)
}

/// Our claim, bound: what it asks for, and what it has.
fn claim(requested: &str, capacity: &str) -> PersistentVolumeClaim {
    let mut claim = build::claim(&volume(None), &Size(requested.to_owned()), "freehold");
    claim.status = serde_json::from_value(json!({"phase": "Bound",
    "capacity": {"storage": capacity}}))
    .unwrap();
    claim
}

fn storage_class(permits_expansion: bool) -> StorageClass {
    let class = json!({"provisioner": "ebs.csi.aws.com", "allowVolumeExpansion": permits_expansion});
    serde_json::from_value(class).unwrap()
}

fn run(first: i64, last: i64) -> EmptyRun {
    EmptyRun { first: at(first), last: at(last) }
}

fn forbidden(seconds: i64, until: i64) -> IssuedRequest {
    let call_blocked = answered(Call::DeleteVolume, "UnauthorizedOperation", Some(at(until)));
    IssuedRequest { at: at(seconds), call_blocked: Some(call_blocked) }
}

/// What EC2 answered to a call.
fn answered(call: Call, code: &str, until: Option<Timestamp>) -> CallBlocked {
    let error = CloudError::new(call.as_str(), Some(code), "what EC2 says", None, None);
    CallBlocked::Refused { call, error, until }
}

fn message(plan: &Plan) -> String {
    plan.waiting.as_ref().map_or_else(String::new, VolumeWait::message)
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
        let looked_up = match (plan.interest, plan.waiting.as_ref().map(VolumeWait::reason)) {
            (VolumeInterest::Modification, reason) => reason == Some(Reason::Modifying),
            (VolumeInterest::Snapshot, reason) => reason == Some(Reason::AwaitingSnapshot),
            (VolumeInterest::Volume, reason) => {
                !matches!(reason, Some(Reason::Modifying | Reason::AwaitingSnapshot))
            }
            (VolumeInterest::Settled, _) => true,
        };
        assert!(looked_up, "{name}: {:?} is looked up for {:?}", plan.interest, plan.waiting);
        pretty_assertions::assert_eq!(line(&observed, now, &plan), expected, "{name}");
    }
}
