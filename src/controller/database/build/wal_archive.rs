//! Builds what the pod has of the archive of `spec.walArchive`: where it is, its credentials, and from where
//! and up to which moment restored data is recovered.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PodSpec, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::pod_parts::{mount, secret, text};
use crate::api::database::{PointInTime, Recovery, WalArchive};
use crate::api::keys::{AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN};
use crate::api::{Database, VolumeId};
use crate::controller::engine_container::{CONTAINER, engine_of};
use crate::engine::postgresql::{
    WAL_ARCHIVE, WAL_ARCHIVE_CREDENTIALS, WAL_ARCHIVE_ENDPOINT, WAL_ARCHIVE_FOLDER, WAL_ARCHIVE_INTERVAL,
    WAL_RECOVERY, WAL_RECOVERY_ARCHIVE, WAL_RECOVERY_FOLDER, WAL_RECOVERY_TARGET,
};

/// The name of the volume with the credentials, in the pod.
const VOLUME: &str = "wal-archive";

/// The same, whose engine archives its write-ahead log as the spec says, in the folder of this EBS volume.
/// Each volume has a folder of its own: what a restore makes of the log of another one must not overwrite
/// that.
pub fn with_wal_archive(mut set: StatefulSet, database: &Database, volume: Option<&VolumeId>) -> StatefulSet {
    let (Some(archive), Some(volume)) = (&database.spec.wal_archive, volume) else { return set };
    let pod = set.spec.as_mut().and_then(|spec| spec.template.spec.as_mut());
    if let Some(pod) = pod {
        add(pod, archive, volume, recovery(database));
    }
    set
}

fn add(pod: &mut PodSpec, archive: &WalArchive, volume: &VolumeId, recovery: Option<(&str, &Recovery)>) {
    let mut variables = vec![
        (WAL_ARCHIVE, archive.destination.clone()),
        (WAL_ARCHIVE_FOLDER, volume.0.clone()),
        (WAL_ARCHIVE_INTERVAL, archive.interval_seconds.to_string()),
    ];
    variables.extend(archive.endpoint_url.clone().map(|url| (WAL_ARCHIVE_ENDPOINT, url)));
    variables.extend(archive.region.clone().map(|region| ("AWS_DEFAULT_REGION", region)));
    if let Some((restore, Recovery { destination, volume_id, until })) = recovery {
        variables.extend([
            (WAL_RECOVERY, restore.to_owned()),
            (WAL_RECOVERY_ARCHIVE, destination.clone()),
            (WAL_RECOVERY_FOLDER, volume_id.0.clone()),
        ]);
        variables.extend(target(until).map(|setting| (WAL_RECOVERY_TARGET, setting)));
    }
    let Some(engine) = pod.containers.iter_mut().find(|container| container.name == CONTAINER) else {
        return;
    };
    engine.env.get_or_insert_default().extend(variables.into_iter().map(|(name, value)| text(name, value)));
    if let Some(name) = &archive.secret_name {
        let mounts = engine.volume_mounts.get_or_insert_default();
        mounts.push(mount(VOLUME, WAL_ARCHIVE_CREDENTIALS, Some(true)));
        pod.volumes.get_or_insert_default().push(credentials(name));
    }
}

/// PostgreSQL's setting. It takes a time with an offset, and not with the name of a zone, which it does not
/// know when it reads the setting (its documentation, "recovery_target_time").
fn target(until: &PointInTime) -> Option<String> {
    let PointInTime { time, lsn } = until;
    let of_time =
        |time: &MicroTime| format!("recovery_target_time={}", time.0.strftime("%Y-%m-%d %H:%M:%S%.f+00"));
    let of_lsn = |lsn: &String| format!("recovery_target_lsn={lsn}");
    time.as_ref().map(of_time).or_else(|| lsn.as_ref().map(of_lsn))
}

/// A pod starts without them: what serves is not to depend on its archive.
fn credentials(name: &str) -> Volume {
    let keys = [AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN];
    secret(VOLUME, name, &keys, Some(true))
}

/// Whether the engine of this pod is one of this EBS volume: it archives its log in the folder of that, if it
/// does at all, and recovers the data by the log that is wanted, if by any. `None`: the volume is not there.
pub fn is_of_volume(database: &Database, volume: Option<&VolumeId>, pod: &PodSpec) -> bool {
    let archives_in = value(pod, WAL_ARCHIVE_FOLDER);
    if archives_in.is_some() && archives_in != volume.map(|id| id.0.as_str()) {
        return false;
    }
    database.spec.wal_archive.is_none()
        || value(pod, WAL_RECOVERY) == recovery(database).map(|(restore, _)| restore)
}

/// What the data is recovered by, if it is, and for which restore.
fn recovery(database: &Database) -> Option<(&str, &Recovery)> {
    let restored = database.status.as_ref()?.restored.as_ref()?;
    Some((&restored.snapshot_id.0, restored.recovery.as_ref()?))
}

fn value<'a>(pod: &'a PodSpec, name: &str) -> Option<&'a str> {
    let engine = engine_of(&pod.containers, None)?;
    engine.env.iter().flatten().find(|it| it.name == name)?.value.as_deref()
}

/// Where the engine of this pod archives its log, if it was started to, and the volume that the log is of.
pub fn archive_of(pod: &PodSpec) -> Option<(&str, VolumeId)> {
    Some((value(pod, WAL_ARCHIVE)?, VolumeId(value(pod, WAL_ARCHIVE_FOLDER)?.to_owned())))
}
