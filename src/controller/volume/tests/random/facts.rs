//! The facts that random worlds of a Volume are made of.

use super::super::adopted;
use super::super::growth::{modification, record as modification_record, wanted};
use super::super::leaving::{BY_POLICY, detached, kept, retained};
use super::*;
use crate::api::database::FileSystem;
use crate::api::keys::{
    ADOPTED_BY_ANNOTATION, ATTEMPT_TAG, CLUSTER_ID_TAG, DATABASE_ANNOTATION, DATABASE_TAG,
    DATABASE_UID_LABEL, VOLUME_UID_LABEL, VOLUME_UID_TAG,
};
use crate::api::volume::ModificationRefusal;
use crate::api::{Database, names};
use crate::cloud::ModificationState;
use crate::controller::tests::facts::{fact, sent, until};

/// The UID of the Volume that had vol-1 before, in the worlds of an adoption.
const FORMER: &str = "5a1c2a54-6c3c-4b64-9a7e-0d2f4c1b9a99";

const FORBIDDEN: &str = "UnauthorizedOperation";

/// So many seconds before now, in the seconds of the fixtures.
fn ago(now: Timestamp, seconds: i64) -> i64 {
    before(now, seconds).as_second() - at(0).as_second()
}

/// Every EBS volume of this Volume or the one before it, and what EC2 shows by the id.
fn each(observed: &mut Observed, change: impl Fn(&mut EbsVolume)) {
    let listed = observed.volumes.volumes.iter_mut().chain(&mut observed.former.volumes);
    match &mut observed.by_id {
        ById::Shown(volume) => listed.chain([volume.as_mut()]).for_each(change),
        ById::NotRead | ById::NotShown => listed.for_each(change),
    }
}

fn shown(observed: &mut Observed, state: VolumeState) {
    each(observed, |volume| volume.state = state);
}

fn tagged(observed: &mut Observed, key: &str, value: &str) {
    each(observed, |volume| volume.tags.extend([(key.to_owned(), value.to_owned())]));
}

fn second(observed: &mut Observed, attempt: i32, state: VolumeState) {
    observed.volumes.volumes.retain(|volume| volume.id != id("vol-2"));
    observed.volumes.volumes.push(ebs("vol-2", attempt, state));
}

fn modified(observed: &mut Observed, state: ModificationState, started: i64) {
    observed.volumes.modification = Some(modification(state, started));
}

fn empty(now: Timestamp, first: i64) -> EmptyRun {
    EmptyRun { first: before(now, first), last: before(now, 2) }
}

fn taken(observed: &mut Observed, name: &str, of: &str, state: SnapshotState) {
    let (id, tags) = (SnapshotId(name.to_owned()), BTreeMap::new());
    observed.snapshots.snapshots.retain(|snapshot| snapshot.id != id);
    let snapshot =
        Snapshot { id, volume: VolumeId(of.to_owned()), size: None, state, started_at: Some(at(6)), tags };
    observed.snapshots.snapshots.push(snapshot);
}

fn announced(observed: &mut Observed, name: Option<&str>, at: Timestamp, change: impl FnOnce(&mut Attempt)) {
    let snapshot_id = name.map(|name| SnapshotId(name.to_owned()));
    let mut attempt = Attempt::new(1, Time(at));
    change(&mut attempt);
    status(observed).final_snapshot = Some(FinalSnapshot { attempt, snapshot_id });
}

fn attempt(observed: &mut Observed) -> &mut Attempt {
    &mut status(observed).creation.get_or_insert_with(|| launch(1, at(0))).attempt
}

/// EC2 refused the attempt: it has no id.
fn refuse(observed: &mut Observed, code: &str, when: Timestamp) {
    attempt(observed).refused = refused(code, when).attempt.refused;
    status(observed).volume_id = None;
}

fn requested(observed: &mut Observed, call: Call, at: Timestamp, call_blocked: Option<CallBlocked>) {
    observed.issued.insert(call, IssuedRequest { at, call_blocked });
}

fn blocked(observed: &mut Observed, call: Call, code: &str, now: Timestamp) {
    requested(observed, call, before(now, 1), Some(answered(call, code, Some(until(now)))));
}

fn unmodified(observed: &mut Observed, code: &str, now: Timestamp) {
    blocked(observed, Call::ModifyVolume, code, now);
}

fn modifications(observed: &mut Observed, now: Timestamp, seconds: &[i64]) {
    let record = |seconds: &i64| modification_record(ago(now, *seconds), 150, 3000);
    status(observed).modifications = seconds.iter().map(record).collect();
}

fn refusal(observed: &mut Observed, generation: i64) {
    let message = "as EC2 said".to_owned();
    status(observed).modification_refused = Some(ModificationRefusal { generation, message });
}

fn own_record(observed: &mut Observed, of: &str, change: impl FnOnce(&mut PersistentVolume)) {
    let (of, size) = (VolumeId(of.to_owned()), Size("100Gi".to_owned()));
    let record = build::persistent_volume(&observed.volume, &of, &size, "freehold", Some("old".to_owned()));
    change(observed.persistent_volume.insert(record));
}

fn own_claim(observed: &mut Observed, change: impl FnOnce(&mut PersistentVolumeClaim)) {
    change(observed.claim.insert(claim("200Gi", "100Gi")));
}

fn owner(observed: &mut Observed, policy: DeletionPolicy, deleted: Option<Timestamp>) {
    let mut owner: Database = serde_json::from_value(json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Database",
        "metadata": {"name": "orders", "namespace": "team-a", "uid": "database-uid"},
        "spec": {"engine": {"type": "questdb", "version": "9.3.4"}, "storage": {"size": "100Gi"}},
    }))
    .unwrap();
    owner.spec.deletion_policy = policy;
    owner.metadata.deletion_timestamp = deleted.map(Time);
    owner.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    observed.volume.spec.deletion_decided = deleted.is_some();
    observed.owner = Some(owner);
}

/// The Volume is to adopt vol-1, which EC2 shows with the tags of the Volume that had it.
fn adopting(observed: &mut Observed) {
    let mut record = kept(BY_POLICY);
    record.metadata.name = Some(names::persistent_volume(FORMER));
    record.labels_mut().insert(VOLUME_UID_LABEL.to_owned(), FORMER.to_owned());
    record.annotations_mut().insert(ADOPTED_BY_ANNOTATION.to_owned(), "orders/database-uid".to_owned());
    let mut volume = ebs("vol-1", 1, VolumeState::Available);
    volume.tags.insert(VOLUME_UID_TAG.to_owned(), FORMER.to_owned());
    observed.volume.labels_mut().insert(DATABASE_UID_LABEL.to_owned(), "database-uid".to_owned());
    observed.volume.spec.adopt_retained.clone_from(&record.metadata.name);
    (observed.record, observed.former.volumes) = (Some(record), vec![volume]);
}

fn annotated(observed: &mut Observed, key: &str, value: &str) {
    let annotations = observed.record.iter_mut().map(ResourceExt::annotations_mut);
    annotations.for_each(|it| drop(it.insert(key.to_owned(), value.to_owned())));
}

pub(super) fn ec2_facts() -> Vec<Fact<Observed>> {
    vec![
        fact("no sync", |it, _| it.volumes.swept_at = None),
        fact("an old sync", |it, now| it.volumes.swept_at = Some(before(now, 1000))),
        fact("the operator has just begun to lead", |it, now| it.leading_since = before(now, 1)),
        fact("not listed", |it, _| it.volumes.volumes.clear()),
        fact("listed", |it, _| it.volumes.volumes = vec![ebs("vol-1", 1, VolumeState::Available)]),
        fact("creating", |it, _| shown(it, VolumeState::Creating)),
        fact("in use", |it, _| shown(it, VolumeState::InUse)),
        fact("deleting", |it, _| shown(it, VolumeState::Deleting)),
        fact("gone", |it, _| shown(it, VolumeState::Deleted)),
        fact("broken", |it, _| shown(it, VolumeState::Error)),
        fact("of an unknown state", |it, _| shown(it, VolumeState::Unknown)),
        fact("a second of the attempt", |it, _| second(it, 1, VolumeState::Available)),
        fact("a second of a later attempt", |it, _| second(it, 2, VolumeState::InUse)),
        fact("of another Volume", |it, _| tagged(it, VOLUME_UID_TAG, "other")),
        fact("of another cluster", |it, _| tagged(it, CLUSTER_ID_TAG, "other")),
        fact("of no attempt", |it, _| tagged(it, ATTEMPT_TAG, "none")),
        fact("of another namespace", |it, _| tagged(it, DATABASE_TAG, "team-b/orders")),
        fact("elsewhere", |it, _| each(it, |it| it.zone = "us-east-1a".to_owned())),
        fact("larger", |it, _| each(it, |it| it.size = 300)),
        fact("smaller", |it, _| each(it, |it| it.size = 50)),
        fact("of another type", |it, _| each(it, |it| it.volume_type = "gp2".to_owned())),
        fact("with more IOPS", |it, _| each(it, |it| it.iops = Some(6000))),
        fact("modifying", |it, now| modified(it, ModificationState::Modifying, ago(now, 5))),
        fact("optimizing", |it, now| modified(it, ModificationState::Optimizing, ago(now, 5))),
        fact("modified", |it, now| modified(it, ModificationState::Completed, ago(now, 5))),
        fact("modified long ago", |it, now| modified(it, ModificationState::Completed, ago(now, 90_000))),
        fact("a failed modification", |it, now| modified(it, ModificationState::Failed, ago(now, 5))),
        fact("modifications not looked up", |it, _| it.volumes.modification_is_known = false),
        fact("almost proven absent", |it, now| it.volumes.empty = Some(empty(now, 1201))),
        fact("proven absent", |it, now| it.volumes.empty = Some(empty(now, 1202))),
        fact("proven absent, also by its id", |it, now| {
            (it.volumes.empty, it.by_id) = (Some(empty(now, 1500)), ById::NotShown);
        }),
        fact("not shown by its id", |it, _| it.by_id = ById::NotShown),
        fact("shown by its id", |it, _| {
            it.by_id = ById::Shown(Box::new(ebs("vol-1", 1, VolumeState::Available)));
        }),
        fact("the quota gate is closed", |it, now| it.offerings.quotas = reached(until(now))),
        fact("in use, by its id, with the tag of the adopter", |it, _| {
            it.by_id = ById::Shown(Box::new(adopted::found()));
        }),
        fact("by its id, with our tags", |it, _| it.by_id = ById::Shown(Box::new(adopted::tagged()))),
        fact("not read by its id", |it, _| it.by_id = ById::NotRead),
        fact("snapshots never synced", |it, _| it.snapshots.swept_at = None),
        fact("a pending snapshot", |it, _| taken(it, "snap-1", "vol-1", SnapshotState::Pending)),
        fact("a complete snapshot", |it, _| taken(it, "snap-1", "vol-1", SnapshotState::Completed)),
        fact("a failed snapshot", |it, _| taken(it, "snap-1", "vol-1", SnapshotState::Error)),
        fact("a second snapshot", |it, _| taken(it, "snap-2", "vol-1", SnapshotState::Completed)),
        fact("another's snapshot", |it, _| taken(it, "snap-9", "vol-9", SnapshotState::Completed)),
        fact("snapshots proven absent", |it, now| it.snapshots.empty = Some(empty(now, 1500))),
    ]
}

pub(super) fn status_facts() -> Vec<Fact<Observed>> {
    vec![
        fact("no status", |it, _| it.volume.status = None),
        fact("no attempt", |it, _| status(it).creation = None),
        fact("a late attempt", |it, now| status(it).creation = Some(launch(2, before(now, 30)))),
        fact("no id", |it, _| status(it).volume_id = None),
        fact("an id", |it, _| status(it).volume_id = Some(id("vol-1"))),
        fact("another id", |it, _| status(it).volume_id = Some(id("vol-9"))),
        fact("never held data", |it, _| status(it).ever_held = false),
        fact("held data", |it, _| status(it).ever_held = true),
        fact("in doubt", |it, now| attempt(it).in_doubt_since = Some(Time(before(now, 8)))),
        fact("refused: capacity", |it, now| refuse(it, "InsufficientVolumeCapacity", before(now, 3))),
        fact("refused: forbidden", |it, now| refuse(it, FORBIDDEN, before(now, 3))),
        fact("refused: invalid", |it, now| refuse(it, "InvalidParameterValue", before(now, 3))),
        fact("refused long ago", |it, now| refuse(it, FORBIDDEN, before(now, 3000))),
        fact("a change is due", |it, now| status(it).change_due_since = Some(Time(before(now, 1)))),
        fact("a change is long due", |it, now| status(it).change_due_since = Some(Time(before(now, 90)))),
        fact("one modification", |it, now| modifications(it, now, &[5])),
        fact("this modification", |it, now| {
            status(it).modifications = vec![modification_record(ago(now, 5), 200, 6000)];
        }),
        fact("this modification a while ago", |it, now| {
            status(it).modifications = vec![modification_record(ago(now, 90), 200, 6000)];
        }),
        fact("four modifications", |it, now| modifications(it, now, &[400, 300, 200, 100])),
        fact("five modifications", |it, now| modifications(it, now, &[86_300, 400, 300, 200, 100])),
        fact("four of them yesterday", |it, now| modifications(it, now, &[90_000, 300, 200, 100])),
        fact("a refused modification", |it, now| {
            says(it, ConditionType::Modified, false, Reason::ModificationRefused, before(now, 9));
        }),
        fact("a recorded refusal", |it, _| refusal(it, 3)),
        fact("a recorded refusal of an earlier spec", |it, _| refusal(it, 2)),
        fact("lost", |it, now| says(it, ConditionType::Stalled, true, Reason::VolumeLost, before(now, 9))),
        fact("recorded as lost", |it, now| status(it).lost_since = Some(Time(before(now, 9)))),
        fact("a snapshot is announced", |it, now| announced(it, None, before(now, 2000), |_| {})),
        fact("a refused snapshot", |it, now| {
            announced(it, None, now, |it| it.refused = refused(FORBIDDEN, now).attempt.refused);
        }),
        fact("a snapshot is named", |it, now| announced(it, Some("snap-1"), before(now, 2000), |_| {})),
        fact("another snapshot is named", |it, now| announced(it, Some("snap-9"), before(now, 5), |_| {})),
        fact("EC2 has just accepted the deletion", |it, now| status(it).deleted_at = Some(Time(now))),
        fact("EC2 has accepted the deletion", |it, now| status(it).deleted_at = Some(Time(before(now, 60)))),
        fact("sent just now", |it, now| it.sent = Some(sent(now, 1))),
        fact("sent a while ago", |it, now| it.sent = Some(sent(now, 8))),
        fact("throttled", |it, now| it.sent = Some(Sent { in_doubt: false, ..sent(now, 1) })),
        fact("refused after doubt", |it, now| {
            it.sent = Some(Sent { refused_after_doubt: true, ..sent(now, 8) });
        }),
        fact("tagged just now", |it, now| requested(it, Call::CreateTags, before(now, 1), None)),
        fact("tagged a while ago", |it, now| requested(it, Call::CreateTags, before(now, 60), None)),
        fact("untagged just now", |it, now| requested(it, Call::DeleteTags, before(now, 1), None)),
        fact("untagging is forbidden", |it, now| blocked(it, Call::DeleteTags, FORBIDDEN, now)),
        fact("tags are forbidden", |it, now| blocked(it, Call::CreateTags, FORBIDDEN, now)),
        fact("modified just now", |it, now| requested(it, Call::ModifyVolume, before(now, 1), None)),
        fact("no modification is left", |it, now| unmodified(it, "VolumeModificationRateExceeded", now)),
        fact("a modification runs", |it, now| unmodified(it, "IncorrectModificationState", now)),
        fact("a modification is invalid", |it, now| unmodified(it, "InvalidParameterValue", now)),
        fact("a modification is forbidden", |it, now| unmodified(it, FORBIDDEN, now)),
        fact("snapshots are throttled", |it, now| blocked(it, Call::CreateSnapshot, "Throttling", now)),
        fact("the deletion is forbidden", |it, now| blocked(it, Call::DeleteVolume, FORBIDDEN, now)),
        fact("our own limit is reached", |it, now| {
            requested(it, Call::DeleteVolume, now, Some(CallBlocked::RateLimited { until: until(now) }));
        }),
    ]
}

pub(super) fn spec_facts() -> Vec<Fact<Observed>> {
    vec![
        fact("more is wanted", |it, _| it.volume.spec.size = Size("1Ti".to_owned())),
        fact("less is wanted", |it, _| it.volume.spec.size = Size("50Gi".to_owned())),
        fact("a size that is none", |it, _| it.volume.spec.size = Size("1.5Gi".to_owned())),
        fact("more IOPS are wanted", |it, _| it.volume.spec.iops = Some(6000)),
        fact("throughput is wanted", |it, _| it.volume.spec.throughput = Some(250)),
        fact("another type is wanted", |it, _| it.volume.spec.volume_type = "io2".to_owned()),
        fact("another file system", |it, _| it.volume.spec.file_system = FileSystem::Ext4),
        fact("another zone", |it, _| it.volume.spec.zone = "us-east-1c".to_owned()),
        fact("from a snapshot", |it, _| it.volume.spec.snapshot_id = Some(SnapshotId("snap-0".to_owned()))),
        fact("it would be released", |it, _| it.volume.spec.release = true),
        fact("it would not be released", |it, _| it.volume.spec.release = false),
        fact("edited", |it, _| it.volume.metadata.generation = Some(4)),
        fact("kept", |it, _| it.volume.spec.deletion_policy = DeletionPolicy::Retain),
        fact("saved", |it, _| it.volume.spec.deletion_policy = DeletionPolicy::Snapshot),
        fact("not kept", |it, _| it.volume.spec.deletion_policy = DeletionPolicy::Delete),
        fact("no finalizer", |it, _| it.volume.metadata.finalizers = None),
        fact("deleted", |it, now| it.volume.metadata.deletion_timestamp = Some(Time(before(now, 5)))),
        fact("its Database is there", |it, _| owner(it, DeletionPolicy::Delete, None)),
        fact("its Database keeps it", |it, now| owner(it, DeletionPolicy::Retain, Some(now))),
        fact("its Database saves it", |it, now| owner(it, DeletionPolicy::Snapshot, Some(now))),
        fact("its Database deletes it", |it, now| owner(it, DeletionPolicy::Delete, Some(now))),
        fact("its Database has not decided", |it, now| {
            owner(it, DeletionPolicy::Delete, Some(now));
            it.volume.spec.deletion_decided = false;
        }),
        fact("its Database was deleted by force", |it, now| {
            owner(it, DeletionPolicy::Delete, Some(now));
            it.volume.spec.deletion_decided = false;
            it.owner.iter_mut().for_each(|it| it.metadata.finalizers = None);
        }),
        fact("torn down", |it, _| it.around.is_torn_down = true),
        fact("no class", |it, _| it.class = None),
        fact("a changed class", |it, _| it.class.iter_mut().for_each(|it| it.spec.kms_key_id = None)),
    ]
}

pub(super) fn cluster_facts() -> Vec<Fact<Observed>> {
    vec![
        fact("an attachment", |it, _| it.attachments = vec!["csi-1".to_owned()]),
        fact("no PersistentVolume", |it, _| it.persistent_volume = None),
        fact("a PersistentVolume", |it, _| it.persistent_volume = Some(record())),
        fact("a retained PersistentVolume", |it, _| it.persistent_volume = Some(retained())),
        fact("a PersistentVolume of an earlier claim", |it, _| own_record(it, "vol-1", |_| {})),
        fact("a PersistentVolume of another EBS volume", |it, _| own_record(it, "vol-9", |_| {})),
        fact("a foreign PersistentVolume", |it, _| own_record(it, "vol-1", |it| it.metadata.labels = None)),
        fact("a deleted PersistentVolume", |it, now| {
            own_record(it, "vol-1", |it| it.metadata.deletion_timestamp = Some(Time(before(now, 3))));
        }),
        fact("no claim", |it, _| it.claim = None),
        fact("a claim", |it, _| it.claim = Some(claim("100Gi", "100Gi"))),
        fact("a claim that has grown", |it, _| it.claim = Some(claim("200Gi", "200Gi"))),
        fact("a claim that grows", |it, _| own_claim(it, |_| {})),
        fact("a claim in bytes", |it, _| it.claim = Some(claim("214748364800", "204800Mi"))),
        fact("a claim that cannot be read", |it, _| it.claim = Some(claim("much", "more"))),
        fact("a claim that is not bound", |it, _| own_claim(it, |it| it.status = None)),
        fact("a foreign claim", |it, _| own_claim(it, |it| it.metadata.owner_references = None)),
        fact("a deleted claim", |it, now| {
            own_claim(it, |it| it.metadata.deletion_timestamp = Some(Time(before(now, 3))));
        }),
        fact("it adopts", |it, _| adopting(it)),
        fact("it has adopted", |it, _| {
            adopting(it);
            it.former.volumes.clear();
        }),
        fact("a found PersistentVolume", |it, _| it.persistent_volume = Some(adopted::found_record())),
        fact("a found claim", |it, _| it.claim = Some(adopted::found_claim())),
        fact("no former record", |it, _| it.record = None),
        fact("a deleted former record", |it, now| {
            it.record.iter_mut().for_each(|it| it.metadata.deletion_timestamp = Some(Time(before(now, 3))));
        }),
        fact("a former record that is none", |it, _| annotated(it, DATABASE_ANNOTATION, "")),
        fact("another namespace's record", |it, _| annotated(it, DATABASE_ANNOTATION, "team-b/orders")),
        fact("no Database holds the record", |it, _| annotated(it, ADOPTED_BY_ANNOTATION, "")),
        fact("another Database holds the record", |it, _| annotated(it, ADOPTED_BY_ANNOTATION, "other/uid")),
        fact("the former one is not listed", |it, _| it.former.volumes.clear()),
    ]
}

pub(super) fn bases() -> Vec<Fact<Observed>> {
    vec![
        fact("a new Volume", |_, _| {}),
        fact("an attempt", |it, _| *it = attempted()),
        fact("an EBS volume", |it, _| *it = created(VolumeState::Available)),
        fact("a settled volume", |it, _| *it = settled()),
        fact("a wanted change", |it, _| *it = wanted(|_| {})),
        fact("Retain", |it, _| *it = detached(DeletionPolicy::Retain, VolumeState::Available, |_| {})),
        fact("Snapshot", |it, _| *it = detached(DeletionPolicy::Snapshot, VolumeState::Available, |_| {})),
        fact("Delete", |it, _| *it = detached(DeletionPolicy::Delete, VolumeState::Available, |_| {})),
        fact("an adoption", |it, _| adopting(it)),
        fact("an adoption in place", |it, _| *it = adopted::asked(|_| {})),
        fact("an adopted volume that would be released", |it, _| *it = adopted::bound(|_| {})),
        fact("an adopted volume", |it, _| *it = adopted::kept(|_| {})),
        fact("an announced adoption", |it, _| {
            adopting(it);
            (status(it).volume_id, status(it).ever_held) = (Some(id("vol-1")), true);
        }),
    ]
}
