//! Every sentence of the Volume controller, as one file that a person can read: `messages.golden.txt` (FREEHOLD_BLESS=1 writes it anew).

use std::collections::BTreeSet;
use std::fmt::Debug;

use strum::VariantNames;

use super::*;
use crate::api::volume::ModificationRefusal;
use crate::cloud::{CloudError, ModificationState, ModifyVolumeRequest};
use crate::controller::creation::judge::Doubt;
use crate::controller::safety::Blocker;
use crate::controller::volume::messages as words;
use crate::controller::volume::wait::creation::{AdoptionRefusal, AdoptionWait, CreationWait, Found};
use crate::controller::volume::wait::deletion::{DeletionWait, SnapshotWait};
use crate::controller::volume::wait::modification::{BindingWait, ModificationWait};

const GOLDEN: &str = "src/controller/volume/messages.golden.txt";

/// The name of the variant of a value.
fn variant(value: &impl Debug) -> String {
    let shown = format!("{value:?}");
    shown.chars().take_while(|it| it.is_alphanumeric()).collect()
}

/// The examples, which must have every variant of their type.
fn all<T: Debug + VariantNames>(examples: Vec<T>) -> Vec<T> {
    let shown: BTreeSet<String> = examples.iter().map(variant).collect();
    let every: BTreeSet<String> = T::VARIANTS.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(shown, every, "an example of every variant");
    examples
}

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
    let doubts = [Doubt::FirstLookUp, Doubt::Pause, Doubt::Deleting, Doubt::TokenTooOld, Doubt::RequestChanged, Doubt::RefusedAfterDoubt];
    let mut examples = vec![
        CreationWait::Recording(vol(), Found::ByAttempt),
        CreationWait::Recording(vol(), Found::ByTags),
        CreationWait::Recording(vol(), Found::ByPersistentVolume),
        CreationWait::Several(vec![vol(), id("vol-2")]),
        CreationWait::Quota,
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
    all(examples)
}

fn adoption() -> Vec<AdoptionWait> {
    let refusals = all(vec![
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
    all(examples)
}

fn binding() -> Vec<BindingWait> {
    all(vec![
        BindingWait::CreatingPersistentVolume,
        BindingWait::CreatingClaim,
        BindingWait::NameConflict { kind: "PersistentVolume", name: record_name() },
        BindingWait::OtherVolume { persistent_volume: record_name(), named: id("vol-2"), id: vol() },
        BindingWait::ClaimDeleted(claim_name()),
        BindingWait::NotBound { claim: claim_name(), persistent_volume: record_name() },
    ])
}

fn modification() -> Vec<ModificationWait> {
    all(vec![
        ModificationWait::ShrinkRefused { wanted: 100, size: 200 },
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

fn deletion() -> Vec<DeletionWait> {
    all(vec![
        DeletionWait::OtherFinalizers,
        DeletionWait::DatabaseRemains,
        DeletionWait::ClaimRemains(claim_name()),
        DeletionWait::Recording(vol(), Found::ByAttempt),
        DeletionWait::Recording(vol(), Found::ByTags),
        DeletionWait::Recording(vol(), Found::ByPersistentVolume),
        DeletionWait::Several(vec![vol(), id("vol-2")]),
        DeletionWait::NotResent,
        DeletionWait::NotDetached(vol()),
        DeletionWait::Unsafe(Blocker { reason: Reason::AwaitingVolumeDeletion, message: "why it must not be deleted".into() }),
        DeletionWait::DeletingVolume(vol()),
        DeletionWait::ProvingAbsence(vol()),
        DeletionWait::Retaining { id: vol(), record: record_name() },
        DeletionWait::RecordDeleted { id: vol(), record: record_name() },
        DeletionWait::RecordNotOurs { id: vol(), record: record_name(), uid: "volume-uid".into() },
        DeletionWait::Gone,
    ])
}

fn snapshot() -> Vec<SnapshotWait> {
    all(vec![
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
    let held_up = HeldUp { reason: Reason::Forbidden, class: Some(Class::Forbidden), message: "what EC2 says".into(), until: None };
    let single = vec![
        VolumeWait::AddingFinalizer,
        VolumeWait::FirstSync,
        VolumeWait::InvalidSize(Size("1.5Gi".into())),
        VolumeWait::ClassNotFound("default".into()),
        VolumeWait::Blocked(held_up),
        VolumeWait::Missing(vol()),
        VolumeWait::Broken(vol()),
        VolumeWait::Lost { volume: "orders-k3f9q".into(), id: vol() },
    ];
    let mut waits: Vec<_> = single.into_iter().map(|wait| (variant(&wait), wait)).collect();
    waits.extend(named("Creation", creation()));
    waits.extend(named("Adoption", adoption()));
    waits.extend(named("Binding", binding()));
    waits.extend(named("Modification", modification()));
    waits.extend(named("Deletion", deletion()));
    waits.extend(named("Snapshot", snapshot()));
    all(waits.iter().map(|(_, wait)| wait.clone()).collect());
    waits
}

fn other_sentences() -> Vec<(&'static str, String)> {
    let error = CloudError::in_doubt("CreateVolume", "what EC2 says");
    let request = ModifyVolumeRequest { id: vol(), size: 200, volume_type: "gp3".into(), iops: Some(6000), throughput: Some(125) };
    vec![
        ("condition Created", words::CREATED.to_owned()),
        ("condition Bound", words::BOUND.to_owned()),
        ("condition Modified", words::MODIFIED.to_owned()),
        ("condition Ready", words::READY.to_owned()),
        ("condition after the first that is not true", words::EARLIER_STEP.to_owned()),
        ("condition Stalled, false", words::NOT_STALLED.to_owned()),
        ("condition, the volume is there after all", words::still_there(&vol())),
        ("retention record, by teardown", words::RETAINED_BY_TEARDOWN.to_owned()),
        ("retention record, by policy", words::RETAINED_BY_POLICY.to_owned()),
        ("event VolumeRecorded", words::recorded(&vol())),
        ("event VolumeCreated", words::created(&vol(), &launch(1, at(0)))),
        ("event CreationRefused", words::creation_refused(&error)),
        ("event VolumeModifying", words::modifying(&request)),
        ("event ModificationRefused", words::modification_refused(&error)),
        ("event VolumeAdopted", words::adopted(&vol())),
        ("event FinalSnapshotStarted", words::snapshot_started(&snap(), &vol())),
        ("event FinalSnapshotRefused", words::snapshot_refused(&error)),
        ("event VolumeDeleted", words::deleted(&vol())),
        ("event VolumeReady", words::ready(Some(&Size("100Gi".into())))),
    ]
}

#[test]
fn every_sentence_is_as_the_golden_file_has_it() {
    let mut lines = Vec::new();
    for (name, wait) in waits_of_every_kind() {
        let stalled = if wait.is_stalled() { "stalled" } else { "-" };
        lines.push(format!("{name} | {} | {stalled} | {}\n", wait.reason().as_str(), wait.message()));
    }
    lines.extend(other_sentences().into_iter().map(|(name, sentence)| format!("{name} | {sentence}\n")));
    let text = lines.concat();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(GOLDEN);
    if std::env::var_os("FREEHOLD_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    pretty_assertions::assert_eq!(text, std::fs::read_to_string(&path).unwrap_or_default(), "FREEHOLD_BLESS=1 writes {GOLDEN}");
}
