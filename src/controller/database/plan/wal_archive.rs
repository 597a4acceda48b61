//! The part of the plan that looks whether PostgreSQL archives its write-ahead log (`spec.walArchive`). The
//! engine archives by itself, and tries again by itself; one that is idle is made to archive a first file.
//! Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::action::Action;
use super::facts::{ebs_volume, engine_waiting, slowly};
use super::{drift, rotation};
use crate::api::database::{WalArchive, WalArchiveState, WalArchiveStatus};
use crate::api::{ConditionType, Reason, VolumeId};
use crate::controller::conditions::Entry;
use crate::controller::database::build;
use crate::controller::database::messages::wal_archive as sentences;
use crate::controller::database::observe::Observed;
use crate::engine::archiver::Archiver;
use crate::engine::client::Access;
use crate::engine::postgresql::MAINTENANCE_DATABASE;
use crate::time::whole_second;

/// What the spec requests.
fn wanted(observed: &Observed) -> Option<&WalArchive> {
    observed.database.spec.wal_archive.as_ref()
}

/// The pod whose engine serves, and was started to archive; and where it does.
fn archiving(observed: &Observed) -> Option<(&Pod, &str, VolumeId)> {
    wanted(observed)?;
    let pod = observed.pod.as_ref().filter(|_| engine_waiting(observed).is_none())?;
    let (destination, volume) = build::archive_of(pod.spec.as_ref()?)?;
    Some((pod, destination, volume))
}

/// The pod whose engine is asked, and how it is reached.
pub(in crate::controller::database) fn question(observed: &Observed) -> Option<(String, Access)> {
    let (pod, ..) = archiving(observed)?;
    // One that another client has altered is given no password, nor one that is about to have another one.
    let may_ask = drift::altered_pod(observed).is_none() && !rotation::may_have_next(observed);
    let secret = rotation::usable(observed).filter(|_| may_ask)?;
    let access = rotation::access(observed.profile.as_ref().ok()?, &secret.0, pod, MAINTENANCE_DATABASE)?;
    Some((pod.uid()?, access))
}

/// An engine shows that its archive works, or that it does not, before something is written that is not to be
/// lost.
pub(super) fn begin(observed: &Observed, actions: &mut Vec<Action>) {
    let is_unproven = observed.answers.archiver.flatten().is_some_and(Archiver::is_unproven);
    let is_stopped = actions.iter().any(Action::ends_engine);
    if let Some((pod_uid, access)) = question(observed).filter(|_| is_unproven && !is_stopped) {
        actions.push(Action::SwitchLog(pod_uid, access));
    }
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
    let known = known.filter(|known| {
        observed.pod.as_ref().is_none_or(|pod| pod.metadata.uid.as_ref() == Some(&known.pod_uid))
    });
    let (Some(archiver), Some((pod, destination, volume_id))) =
        (observed.answers.archiver.flatten(), archiving(observed))
    else {
        return known;
    };
    let is_there =
        |known: &&WalArchiveStatus| known.destination == destination && known.volume_id == volume_id;
    let had = known.as_ref().filter(is_there).map(|known| known.state);
    let state = archiver.state();
    // An engine that was started again in its pod has archived nothing since, with the same archive.
    let has_archived = state == WalArchiveState::Starting && had == Some(WalArchiveState::Archiving);
    let state = if has_archived { WalArchiveState::Archiving } else { state };
    let pod_uid = pod.uid().unwrap_or_default();
    let is_same = |known: &&WalArchiveStatus| known.state == state && is_there(known);
    let since = known.as_ref().filter(is_same).map(|known| known.since.clone());
    let since = since.unwrap_or_else(|| Time(whole_second(now)));
    Some(WalArchiveStatus { pod_uid, destination: destination.to_owned(), volume_id, state, since })
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
    // The spec or the volume may be another one than those of the pod that was asked.
    let is_wanted = |known: &&WalArchiveStatus| {
        known.destination == archive.destination && Some(&known.volume_id) == ebs_volume(observed)
    };
    let Some(known) = known.filter(|_| !is_silent).filter(is_wanted) else {
        return no(Reason::WalArchiveUnknown, sentences::unknown(&archive.destination));
    };
    match known.state {
        WalArchiveState::Starting => no(Reason::WalArchiveUnknown, sentences::nothing_yet(&known.folder())),
        WalArchiveState::Archiving | WalArchiveState::Unknown => {
            let message = sentences::archiving(&known.folder());
            Some(Entry::yes(ConditionType::WalArchived, Reason::AsExpected, message))
        }
        WalArchiveState::Failing => {
            no(Reason::WalArchiveFailing, sentences::failing(&known.folder(), known.since.0))
        }
        WalArchiveState::ProgramMissing => no(Reason::WalArchiveProgramMissing, sentences::program_missing()),
    }
}
