//! Every sentence about a Volume, in a golden file: a changed one shows in a review.

use std::fmt::Debug;

use super::*;
use crate::api::InstanceId;
use crate::api::volume::ModificationRefusal;
use crate::cloud::{CloudError, ModificationState, ModifyVolumeRequest};
use crate::controller::blocker::Blocker;
use crate::controller::creation::judge::Doubt;
use crate::controller::messages as shared;
use crate::controller::tests::golden::{Sentence, compare_sentences, complete, variant};
use crate::controller::volume::expansion::NotExpandable;
use crate::controller::volume::messages;
use crate::controller::volume::wait::adopted::{AdoptedRefusal, AdoptedWait};
use crate::controller::volume::wait::creation::{AdoptionRefusal, AdoptionWait, CreationWait, Found};
use crate::controller::volume::wait::deletion::{DeletionWait, SnapshotWait};
use crate::controller::volume::wait::modification::{BindingWait, ModificationWait};

fn vol() -> VolumeId {
    id("vol-1")
}

fn snap() -> SnapshotId {
    SnapshotId("snap-1".into())
}

fn claim_name() -> String {
    "orders-k3f9q".into()
}

fn record_name() -> String {
    "freehold-volume-uid".into()
}

fn refusal(code: &str) -> Refusal {
    Refusal { code: code.into(), message: "what EC2 says".into(), at: Time(at(0)) }
}

fn creation() -> Vec<CreationWait> {
    let doubts = [
        Doubt::FirstLookUp,
        Doubt::Pause,
        Doubt::Deleting,
        Doubt::TokenTooOld,
        Doubt::RequestChanged,
        Doubt::RefusedAfterDoubt,
    ];
    let mut examples = vec![
        CreationWait::Recording(vol(), Found::ByAttempt),
        CreationWait::Recording(vol(), Found::ByTags),
        CreationWait::Recording(vol(), Found::ByPersistentVolume),
        CreationWait::Several(vec![vol(), id("vol-2")]),
        CreationWait::Quota(Quota::Storage("gp3".to_owned())),
        CreationWait::Quota(Quota::Iops("io2".to_owned())),
        CreationWait::Throttled,
        CreationWait::Resending(2),
        CreationWait::Forbidden(refusal("UnauthorizedOperation")),
        CreationWait::NoCapacity(refusal("InsufficientVolumeCapacity")),
        CreationWait::Invalid(refusal("InvalidParameterValue")),
        CreationWait::Requesting { volume_type: "gp3".into(), size: 100, zone: "us-east-1b".into() },
        CreationWait::Creating(vol()),
        CreationWait::NotListed(vol()),
    ];
    examples.extend(doubts.map(|doubt| CreationWait::InDoubt { attempt: 2, doubt }));
    complete(examples)
}

fn adoption() -> Vec<AdoptionWait> {
    let refusals = complete(vec![
        AdoptionRefusal::NoRecord { namespace: "team-a".into() },
        AdoptionRefusal::NotHeld,
        AdoptionRefusal::FileSystem("xfs"),
        AdoptionRefusal::Tag(vol()),
        AdoptionRefusal::Zone { id: vol(), zone: "us-east-1a".into(), wanted: "us-east-1b".into() },
        AdoptionRefusal::Larger { id: vol(), size: 200 },
    ]);
    let mut examples = vec![
        AdoptionWait::NotListed { id: vol(), record: record_name() },
        AdoptionWait::NotAvailable { id: vol(), state: VolumeState::InUse },
        AdoptionWait::Adopting(vol()),
        AdoptionWait::Tagging(vol()),
        AdoptionWait::TagsNotShown(vol()),
        AdoptionWait::ClosingRecord(vol()),
    ];
    examples.extend(refusals.into_iter().map(|cause| AdoptionWait::Refused { record: record_name(), cause }));
    complete(examples)
}

fn adopted() -> Vec<AdoptedWait> {
    let refusals = complete(vec![
        AdoptedRefusal::NotTagged("cluster/team-a/orders".into()),
        AdoptedRefusal::OtherCluster("other".into()),
        AdoptedRefusal::OtherVolume("other-uid".into()),
        AdoptedRefusal::Zone { zone: "us-east-1a".into(), wanted: "us-east-1b".into() },
        AdoptedRefusal::MultiAttach,
        AdoptedRefusal::EndsWithInstance { instance: InstanceId("i-1".into()), device: "/dev/xvdba".into() },
        AdoptedRefusal::State(VolumeState::Error),
        AdoptedRefusal::Larger(200),
        AdoptedRefusal::NoPersistentVolume("pvc-1".into()),
        AdoptedRefusal::PersistentVolumeDeleted("pvc-1".into()),
        AdoptedRefusal::OtherRecord { persistent_volume: "pvc-1".into(), uid: "other-uid".into() },
        AdoptedRefusal::NotBound { persistent_volume: "pvc-1".into(), claim: "data-orders-0".into() },
        AdoptedRefusal::ClaimDeleted("data-orders-0".into()),
        AdoptedRefusal::FileSystem { has: "ext4".into(), wanted: "xfs" },
    ]);
    let mut examples = vec![
        AdoptedWait::Reading(vol()),
        AdoptedWait::Unbound(vol(), AdoptedRefusal::NoPersistentVolume("pvc-1".into())),
        AdoptedWait::Recording("pvc-1".into()),
        AdoptedWait::Owning("data-orders-0".into()),
        AdoptedWait::Disowning("data-orders-0".into()),
        AdoptedWait::GivingBack(vol()),
        AdoptedWait::GivenBack(vol()),
    ];
    examples.extend(refusals.into_iter().map(|cause| AdoptedWait::Refused(vol(), cause)));
    complete(examples)
}

fn binding() -> Vec<BindingWait> {
    complete(vec![
        BindingWait::CreatingPersistentVolume,
        BindingWait::CreatingClaim,
        BindingWait::NameConflict { kind: "PersistentVolume", name: record_name() },
        BindingWait::OtherVolume { persistent_volume: record_name(), named: id("vol-2"), id: vol() },
        BindingWait::ClaimDeleted(claim_name()),
        BindingWait::NotBound { claim: claim_name(), persistent_volume: record_name() },
    ])
}

fn modification() -> Vec<ModificationWait> {
    complete(vec![
        not_expandable(NotExpandable::WithoutClass),
        not_expandable(NotExpandable::ClassNotFound("gp2".into())),
        not_expandable(NotExpandable::ClassFixed("gp2".into())),
        ModificationWait::Refused(ModificationRefusal { generation: 3, message: "what EC2 says".into() }),
        ModificationWait::Running { id: vol(), state: ModificationState::Optimizing },
        ModificationWait::Coalescing(vol()),
        ModificationWait::NotShown(vol()),
        ModificationWait::Budget { id: vol(), allowed: 4, until: at(0) },
        ModificationWait::LookingUp(vol()),
        ModificationWait::Modifying { id: vol(), size: 200, volume_type: "gp3".into() },
        ModificationWait::GrowingClaim { claim: claim_name(), size: 200 },
        ModificationWait::GrowingFileSystem(200),
    ])
}

fn not_expandable(cause: NotExpandable) -> ModificationWait {
    ModificationWait::NotExpandable { claim: claim_name(), wanted: 200, cause }
}

fn deletion() -> Vec<DeletionWait> {
    complete(vec![
        DeletionWait::OtherFinalizers,
        DeletionWait::DatabaseRemains,
        DeletionWait::ClaimRemains(claim_name()),
        DeletionWait::Recording(vol(), Found::ByAttempt),
        DeletionWait::Recording(vol(), Found::ByTags),
        DeletionWait::Recording(vol(), Found::ByPersistentVolume),
        DeletionWait::Several(vec![vol(), id("vol-2")]),
        DeletionWait::NotResent,
        DeletionWait::NotDetached(vol()),
        DeletionWait::Unsafe(Blocker::NotAvailable(vol(), VolumeState::InUse)),
        DeletionWait::DeletingVolume(vol()),
        DeletionWait::ProvingAbsence(vol()),
        DeletionWait::Retaining { id: vol(), record: record_name() },
        DeletionWait::RecordDeleted { id: vol(), record: record_name() },
        DeletionWait::RecordNotOurs { id: vol(), record: record_name(), uid: "volume-uid".into() },
        DeletionWait::Gone,
    ])
}

fn snapshot() -> Vec<SnapshotWait> {
    complete(vec![
        SnapshotWait::NotDetached(vol()),
        SnapshotWait::FirstSync,
        SnapshotWait::Recording(snap()),
        SnapshotWait::Requesting(vol()),
        SnapshotWait::Pending(snap()),
        SnapshotWait::Failed { snapshot: snap(), id: vol() },
        SnapshotWait::InDoubt(vol()),
        SnapshotWait::NotListed(snap()),
    ])
}

fn waits_of_every_kind() -> Vec<(String, VolumeWait)> {
    fn named<T: Debug + Into<VolumeWait>>(family: &str, waits: Vec<T>) -> Vec<(String, VolumeWait)> {
        waits.into_iter().map(|wait| (format!("{family}::{}", variant(&wait)), wait.into())).collect()
    }
    let call_blocked = answered(Call::CreateVolume, "UnauthorizedOperation", None);
    let single = vec![
        VolumeWait::AddingFinalizer,
        VolumeWait::FirstSync,
        VolumeWait::InvalidSize(Size("1.5Gi".into())),
        VolumeWait::ClassNotFound("default".into()),
        VolumeWait::Blocked(call_blocked),
        VolumeWait::Missing(vol()),
        VolumeWait::WithoutTags(vol()),
        VolumeWait::Broken(vol()),
        VolumeWait::Lost { volume: "orders-k3f9q".into(), id: vol() },
    ];
    let mut waits: Vec<_> = single.into_iter().map(|wait| (variant(&wait), wait)).collect();
    waits.extend(named("Creation", creation()));
    waits.extend(named("Adoption", adoption()));
    waits.extend(named("Adopted", adopted()));
    waits.extend(named("Binding", binding()));
    waits.extend(named("Modification", modification()));
    waits.extend(named("Deletion", deletion()));
    waits.extend(named("Snapshot", snapshot()));
    complete(waits.iter().map(|(_, wait)| wait.clone()));
    waits
}

fn others() -> Vec<(&'static str, String)> {
    let error = CloudError::in_doubt("CreateVolume", "what EC2 says");
    let request = ModifyVolumeRequest {
        id: vol(),
        size: 200,
        volume_type: "gp3".into(),
        iops: Some(6000),
        throughput: Some(125),
    };
    vec![
        ("condition Created", messages::CREATED.to_owned()),
        ("condition Bound", messages::BOUND.to_owned()),
        ("condition Modified", messages::MODIFIED.to_owned()),
        ("condition Modified, spec.release", messages::NOT_MODIFIED.to_owned()),
        ("condition Ready", messages::READY.to_owned()),
        ("condition Orphaned", messages::ORPHANED.to_owned()),
        ("condition after the first that is not true", shared::EARLIER_STEP.to_owned()),
        ("condition Stalled, false", shared::NOT_STALLED.to_owned()),
        ("retention record, by teardown", messages::RETAINED_BY_TEARDOWN.to_owned()),
        ("retention record, by orphaning", messages::RETAINED_BY_ORPHANING.to_owned()),
        ("retention record, by restore in place", messages::RETAINED_BY_RESTORE.to_owned()),
        ("retention record, by policy", messages::RETAINED_BY_POLICY.to_owned()),
        ("event VolumeRecorded", messages::events::recorded(&vol())),
        ("event VolumeCreated", messages::events::created(&vol(), &launch(1, at(0)))),
        ("event CreationRefused", messages::events::creation_refused(&error)),
        ("event VolumeModifying", messages::events::modifying(&request)),
        ("event ModificationRefused", messages::events::modification_refused(&error)),
        ("event VolumeAdopted", messages::events::adopted(&vol())),
        ("event FinalSnapshotStarted", messages::events::snapshot_started(&snap(), &vol())),
        ("event FinalSnapshotRefused", messages::events::snapshot_refused(&error)),
        ("event VolumeDeleted", messages::events::deleted(&vol(), None)),
        ("event VolumeDeleted", messages::events::deleted(&vol(), Some(&snap()))),
        ("event VolumeReady", messages::events::ready(Some(&Size("100Gi".into())))),
    ]
}

#[test]
fn every_sentence_is_in_the_golden_file() {
    let waits = waits_of_every_kind();
    let waits = waits
        .iter()
        .map(|(name, wait)| Sentence::wait(name.clone(), wait.reason(), wait.is_stalled(), wait.message()));
    let others = others().into_iter().map(|(name, sentence)| Sentence::other(name, sentence));
    compare_sentences("volume", &waits.chain(others).collect::<Vec<_>>());
}
