//! The part of the plan that looks whether PostgreSQL archives its write-ahead log (`spec.walArchive`). It
//! changes nothing: the engine archives by itself, and tries again by itself. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::facts::{engine_waiting, slowly};
use super::rotation;
use crate::api::database::{WalArchive, WalArchiveState, WalArchiveStatus};
use crate::api::{ConditionType, Reason};
use crate::controller::conditions::Entry;
use crate::controller::database::build;
use crate::controller::database::messages::wal_archive as sentences;
use crate::controller::database::observe::Observed;
use crate::engine::client::Access;
use crate::engine::postgresql::MAINTENANCE_DATABASE;
use crate::time::whole_second;

/// What the spec requests.
fn wanted(observed: &Observed) -> Option<&WalArchive> {
    observed.database.spec.wal_archive.as_ref()
}

/// The pod whose engine serves, and was started to archive; and where it does.
fn archiving(observed: &Observed) -> Option<(&Pod, String)> {
    wanted(observed)?;
    let pod = observed.pod.as_ref().filter(|_| engine_waiting(observed).is_none())?;
    Some((pod, build::archived_to(pod.spec.as_ref()?)?))
}

/// The pod whose engine is asked, and how it is reached.
pub(in crate::controller::database) fn question(observed: &Observed) -> Option<(String, Access)> {
    let (pod, _) = archiving(observed)?;
    // The password is about to be another one.
    let secret = rotation::usable(observed).filter(|_| !rotation::may_have_next(observed))?;
    let access = rotation::access(observed.profile.as_ref().ok()?, &secret.0, pod, MAINTENANCE_DATABASE)?;
    Some((pod.uid()?, access))
}

/// When to ask again: nothing says that an archive fails.
pub(super) fn again(observed: &Observed) -> Option<Duration> {
    archiving(observed).map(|_| slowly(observed))
}

/// What is known of the archive; nothing once none is wanted.
pub(in crate::controller::database) fn shown(
    observed: &Observed,
    known: Option<WalArchiveStatus>,
    now: Timestamp,
) -> Option<WalArchiveStatus> {
    wanted(observed)?;
    let of_pod = |known: &WalArchiveStatus| {
        observed.pod.as_ref().is_none_or(|pod| pod.metadata.uid.as_ref() == Some(&known.pod_uid))
    };
    let (Some(archiver), Some((pod, folder))) = (observed.answers.archiver.flatten(), archiving(observed))
    else {
        return known.filter(of_pod);
    };
    let had = known.as_ref().filter(|known| known.folder == folder).map(|known| known.state);
    let state = archiver.state();
    // An engine that was restarted does not know what it has archived, and may have nothing to archive.
    let has_archived = state == WalArchiveState::Starting && had == Some(WalArchiveState::Archiving);
    let state = if has_archived { WalArchiveState::Archiving } else { state };
    let pod_uid = pod.uid().unwrap_or_default();
    let known = known.filter(of_pod);
    let is_same = |known: &WalArchiveStatus| known.state == state && known.folder == folder;
    let since = known.as_ref().filter(|known| is_same(known)).map(|known| known.since.clone());
    let since = since.unwrap_or_else(|| Time(whole_second(now)));
    Some(WalArchiveStatus { pod_uid, folder, state, since })
}

/// Says whether the engine archives its log, and else why not.
pub(in crate::controller::database) fn reported(
    observed: &Observed,
    known: Option<&WalArchiveStatus>,
) -> Option<Entry> {
    let archive = wanted(observed)?;
    let no = |reason, message| Some(Entry::no(ConditionType::WalArchived, reason, message));
    if !observed.database.spec.running {
        return no(Reason::Paused, sentences::unknown(&archive.destination));
    }
    let is_silent = observed.answers.archiver == Some(None);
    let Some(known) = known.filter(|_| !is_silent) else {
        return no(Reason::WalArchiveUnknown, sentences::unknown(&archive.destination));
    };
    match known.state {
        WalArchiveState::Starting => no(Reason::WalArchiveUnknown, sentences::nothing_yet(&known.folder)),
        WalArchiveState::Archiving | WalArchiveState::Unknown => {
            let message = sentences::archiving(&known.folder);
            Some(Entry::yes(ConditionType::WalArchived, Reason::AsExpected, message))
        }
        WalArchiveState::Failing => {
            no(Reason::WalArchiveFailing, sentences::failing(&known.folder, known.since.0))
        }
        WalArchiveState::ProgramMissing => no(Reason::WalArchiveProgramMissing, sentences::program_missing()),
    }
}
