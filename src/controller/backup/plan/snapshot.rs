//! The plan of a Backup's snapshot: what it is taken of, what became of its attempt, and its end. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::action::{Action, Plan, Verdict};
use super::checkpoint;
use super::facts::{blocked, once_confirmed, owner_of, proven_absent};
use crate::api::backup::{BackupFault, BackupSource, Consistency, SnapshotCreation};
use crate::api::creation::Attempt;
use crate::api::database::{Database, EngineType};
use crate::api::keys::{CONSISTENCY_TAG, UNVERIFIED};
use crate::api::{BackupStatus, SnapshotId, Volume};
use crate::cloud::call::Call;
use crate::cloud::identity;
use crate::cloud::{EbsVolume, Snapshot, SnapshotState, VolumeState};
use crate::controller::backup::observe::Observed;
use crate::controller::backup::wait::BackupWait;
use crate::controller::contents::{Contents, archived_to, class_tags};
use crate::controller::creation::judge::Facts;
use crate::controller::creation::next::{Next, next};
use crate::controller::database::{in_place, upgrade};
use crate::controller::engine_access::EnginePod;
use crate::controller::layout;
use crate::engine;
use crate::time::whole_second;

/// No snapshot is known yet.
pub(super) fn unidentified(observed: &Observed, status: &BackupStatus, now: Timestamp) -> Plan {
    let Some(creation) = &status.creation else {
        // The status was lost.
        return match best(&observed.snapshots.snapshots) {
            Some(snapshot) => record(snapshot.id.clone()),
            None => begin(observed, status, 1, now),
        };
    };
    let attempt = &creation.attempt;
    let of_attempt: Vec<Snapshot> = observed
        .snapshots
        .snapshots
        .iter()
        .filter(|snapshot| identity::attempt(&snapshot.tags) >= Some(attempt.number))
        .cloned()
        .collect();
    let facts = Facts {
        deleting: false,
        started_at: attempt.started_at.0,
        refused: attempt.refused.clone(),
        has_token: false,
        sent: None,
        found: best(&of_attempt).map(|snapshot| snapshot.id.clone()),
        looked_up: true,
        absent: proven_absent(observed, Some(attempt)),
        same_request: true,
    };
    match next(facts, None, observed.timing.client_token_max_age, now) {
        Next::Adopt(id) => record(id),
        // What was refused last pauses the call.
        Next::Refused(_) | Next::Another => begin(observed, status, attempt.number + 1, now).pending(),
        Next::Resend | Next::Wait(..) => {
            let plan = Plan::wait(BackupWait::InDoubt(creation.volume_id.clone())).pending();
            // The checkpoint is released in its time.
            if status.checkpoint.is_some() { plan.after(observed.timing.requeue_interval) } else { plan }
        }
    }
}

/// One that failed only if there is no other.
fn best(snapshots: &[Snapshot]) -> Option<&Snapshot> {
    snapshots.iter().min_by_key(|snapshot| snapshot.state == SnapshotState::Error)
}

fn record(id: SnapshotId) -> Plan {
    Plan::act(vec![Action::RecordSnapshot(id.clone())], BackupWait::Recording(id)).pending()
}

/// Another attempt, once everything is there that it needs.
fn begin(observed: &Observed, status: &BackupStatus, attempt: i32, now: Timestamp) -> Plan {
    let recheck = observed.timing.requeue_interval;
    let name = || observed.backup.spec.database_name.clone();
    let Some(database) = &observed.database else {
        return Plan::wait(BackupWait::NoDatabase(name())).after(recheck.saturating_mul(12));
    };
    // A volume that no engine has served from yet has no data, or what its engine has not recovered from.
    let is_stopped_for_it = upgrade::is_stopped_for(database, &observed.backup.name_any());
    if let Some(first) = observed.first.as_ref().filter(|_| !is_stopped_for_it) {
        return Plan::wait(BackupWait::Other(first.clone())).after(recheck);
    }
    let is_replaced = in_place::underway(database).is_some() || upgrade::underway(database).is_some();
    if is_replaced && !is_stopped_for_it
        || database.status.as_ref().is_none_or(|status| status.first_ready_at.is_none())
    {
        return Plan::wait(BackupWait::NeverReady(name())).after(recheck);
    }
    let Some((volume, ebs)) = observed.volume.as_ref().and_then(|it| Some((it, ebs_volume(observed, it)?)))
    else {
        return Plan::wait(BackupWait::NoVolume(name())).after(recheck);
    };
    let kind = database.spec.engine.kind;
    // What was listed some minutes ago says nothing of a volume that was in use since.
    let ebs_now = observed.ebs_now.as_ref().filter(|now| is_stopped_for_it && now.id == ebs.id);
    let ebs = ebs_now.unwrap_or(ebs);
    let is_unused = ebs.state == VolumeState::Available && ebs.attachments.is_empty();
    // Nothing writes to a volume that is attached to nothing, as long as no pod is about to: what EC2 showed
    // may be minutes old.
    let is_at_rest =
        is_unused && observed.pod == EnginePod::Absent && (ebs_now.is_some() || !is_stopped_for_it);
    if is_stopped_for_it && !is_at_rest {
        let is_to_be_read = observed.pod == EnginePod::Absent && observed.ebs_now.is_none();
        let wait = Plan::wait(BackupWait::Attached(ebs.id.clone())).after(recheck);
        return Plan { look_up_volume: is_to_be_read.then(|| ebs.id.clone()), ..wait };
    }
    let with_checkpoint = engine::checkpoint::is_needed(kind) && !is_at_rest;
    if with_checkpoint && let Some(plan) = checkpoint::begin(observed, status, now) {
        return plan;
    }
    let wait = BackupWait::Requesting(ebs.id.clone());
    if let Some(plan) = blocked(observed, Call::CreateSnapshot, wait.clone(), now) {
        return plan.after(recheck);
    }
    let source = source(observed, database, volume, ebs);
    let creation = SnapshotCreation {
        attempt: Attempt::new(attempt, Time(whole_second(now))),
        volume_id: ebs.id.clone(),
        with_checkpoint,
        tags: tags(observed, &source, attempt, with_checkpoint),
    };
    Plan::act(vec![Action::Create(Box::new(creation), Box::new(source))], wait).pending().after(recheck)
}

/// The EBS volume of the Volume, if EC2 shows it in a state that a snapshot can be taken of.
fn ebs_volume<'a>(observed: &'a Observed, volume: &Volume) -> Option<&'a EbsVolume> {
    let id = volume.status.as_ref()?.volume_id.as_ref()?;
    let shown = observed.volumes.volumes.iter().find(|it| it.id == *id)?;
    matches!(shown.state, VolumeState::Available | VolumeState::InUse).then_some(shown)
}

fn source(observed: &Observed, database: &Database, volume: &Volume, ebs: &EbsVolume) -> BackupSource {
    let engine = database.engine_of_data();
    let of_pod = match &observed.pod {
        EnginePod::Running { image, .. } => image.clone(),
        EnginePod::Absent | EnginePod::NotRunning => None,
    };
    let of_spec = || engine.custom.as_ref().map(|custom| custom.image.clone());
    BackupSource {
        database_uid: database.uid().unwrap_or_default(),
        volume_name: volume.name_any(),
        volume_id: ebs.id.clone(),
        file_system: volume.spec.file_system.as_str().to_owned(),
        engine: engine.kind,
        engine_version: database.data_version(),
        image: of_pod.or_else(of_spec),
    }
}

/// Every tag of the snapshot: by them alone it can be restored.
fn tags(
    observed: &Observed,
    source: &BackupSource,
    attempt: i32,
    with_checkpoint: bool,
) -> BTreeMap<String, String> {
    let owner = owner_of(&observed.backup, &observed.cluster_id);
    let version = match source.engine {
        EngineType::Questdb | EngineType::Postgresql => source.engine_version.clone(),
        EngineType::Custom => source.image.clone(),
    };
    let consistency = if with_checkpoint { UNVERIFIED } else { Consistency::CrashConsistent.as_str() };
    let contents = Contents {
        engine: source.engine,
        version,
        file_system: source.file_system.clone(),
        data_directory: observed.database.as_ref().and_then(layout::found),
        wal_archive: observed.database.as_ref().and_then(|it| archived_to(it, &source.volume_id)),
        namespace_uid: observed.namespace_uid.clone(),
    };
    let of_class = observed.volume.as_ref().map(|volume| class_tags(volume, observed.class.as_ref()));
    let mut tags = identity::tags(&owner, attempt, &of_class.unwrap_or_default());
    tags.extend(contents.tags(consistency));
    tags
}

/// The snapshot has started, and no release is owed any more.
pub(super) fn identified(
    observed: &Observed,
    status: &BackupStatus,
    id: &SnapshotId,
    now: Timestamp,
) -> Plan {
    let shown = observed.snapshots.snapshots.iter().find(|snapshot| snapshot.id == *id);
    let of_tag = || shown?.tags.get(CONSISTENCY_TAG)?.parse::<Consistency>().ok();
    let consistency = status.consistency.or_else(|| match &status.creation {
        Some(creation) if creation.with_checkpoint => None,
        Some(_) => Some(Consistency::CrashConsistent),
        None => of_tag(),
    });
    let Some(snapshot) = shown else {
        let attempt = status.creation.as_ref().map(|creation| &creation.attempt);
        let wait = BackupWait::NotListed(id.clone());
        if proven_absent(observed, attempt).is_none() {
            return Plan::wait(wait).pending();
        }
        let gone = Plan::ends(Verdict::Failed(BackupFault::SnapshotGone));
        return once_confirmed(observed, id, gone, wait);
    };
    // The engine held no checkpoint any more when the snapshot was seen to have started.
    let Some(consistency) = consistency else {
        return Plan::ends(Verdict::Failed(BackupFault::CheckpointLost));
    };
    if snapshot.state == SnapshotState::Error {
        return Plan::ends(Verdict::Failed(BackupFault::SnapshotFailed));
    }
    if snapshot.tags.get(CONSISTENCY_TAG).map(String::as_str) != Some(consistency.as_str()) {
        let wait = BackupWait::Tagging(id.clone());
        return blocked(observed, Call::CreateTags, wait.clone(), now)
            .unwrap_or_else(|| Plan::act(vec![Action::Tag(id.clone(), consistency)], wait).pending());
    }
    match snapshot.state {
        SnapshotState::Completed => Plan::ends(Verdict::Complete(consistency)),
        SnapshotState::Pending | SnapshotState::Error => {
            Plan::wait(BackupWait::Pending(id.clone())).pending()
        }
    }
}
