//! What no plan of the Database controller may ever do, whatever was observed: checked on every plan of a
//! debug build. Pure.

use kube::ResourceExt;

use super::action::{Action, Plan};
use super::leaving::{is_begun, is_leaving};
use super::wakes::{is_registered, wake};
use super::{claim, machines};
use crate::api::Node;
use crate::cluster::finalizer;
use crate::controller::database::cause::NodeDeletion;
use crate::controller::database::child_kind::ChildKind;
use crate::controller::database::in_place::{is_wanted, underway};
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::Child;
use crate::controller::database::wait::DatabaseWait;

/// The rules that this plan breaks, each as a sentence.
#[expect(clippy::too_many_lines, reason = "one table of the actions")]
pub(super) fn violations(observed: &Observed, plan: &Plan) -> Vec<String> {
    let mut broken = Vec::new();
    let mut rule = |holds: bool, sentence: &str| {
        if !holds {
            broken.push(sentence.to_owned());
        }
    };
    let is_deleting = is_leaving(observed);
    let is_stalled = plan.waiting.as_ref().is_some_and(DatabaseWait::is_stalled);
    let status = observed.database.status.as_ref();
    for action in &plan.actions {
        match action {
            Action::CreateVolume(volume) => {
                rule(!is_deleting, "no volume is created for a database that is deleted");
                rule(observed.volume == Child::Absent, "a volume is created only where there is none");
                let was_made = status.is_some_and(|status| status.volume_name.is_some());
                let is_restored = status.is_some_and(|status| status.restored.is_some());
                let is_decided = observed.database.spec.restore.is_none() || is_restored;
                rule(is_decided, "what begins with the data of a backup never begins empty");
                // A Volume that adopts creates no EBS volume.
                let adopts = observed.database.spec.adopt.is_some();
                let has_data = volume.spec.snapshot_id.is_some() || volume.spec.adopt_retained.is_some();
                let is_in_place = underway(&observed.database).is_some() && has_data;
                rule(
                    !was_made || adopts || is_in_place,
                    "a volume that was there once is never replaced by an empty one",
                );
                rule(!is_stalled, "a stalled Database costs nothing more");
            }
            Action::CreateCredentials(_)
            | Action::PrepareNextPassword(..)
            | Action::GiveNextPassword(..)
            | Action::PutNextPasswordInForce(..)
            | Action::StopForNextPassword(..)
            | Action::ReloadSettings(_)
            | Action::LoadCertificate(_)
            | Action::SwitchLog(..)
            | Action::RecordSettings(_)
            | Action::TakeRecord(_)
            | Action::TakeCredentials(..)
            | Action::ApplyConfigMap(_)
            | Action::ApplyService(_)
            | Action::ApplyNetworkPolicy(_)
            | Action::ApplyDisruptionBudget(_)
            | Action::CreateApplicationUser(_)
            | Action::UpdateApplicationUser(..)
            | Action::CreateServiceAccount(_)
            | Action::MendServiceAccount(_)
            | Action::ApplyStatefulSet(_)
            | Action::RestoreStatefulSet(_)
            | Action::ReportAltered(..)
            | Action::AdoptStatefulSet(..)
            | Action::GoBack(_)
            | Action::GoBackToServed(_)
            | Action::ChangeImageSource(_)
            | Action::Label(..)
            | Action::RecordRestore(_)
            | Action::RecordRestoreInPlace(_)
            | Action::RecordUpgrade(_)
            | Action::CreateBackup(_)
            | Action::RecordData(_)
            | Action::RecordZone(_) => {
                rule(!is_deleting, "nothing is created for a database that is deleted");
            }
            Action::BeginFlush(_) => {
                rule(!is_deleting, "no stop waits of a database that is deleted");
                let stops = plan.actions.iter().any(|it| matches!(it, Action::ReplacePod(..)));
                rule(!stops, "an engine is stopped once it is flushed, and not before");
            }
            Action::CreateNode(..) | Action::DeleteNode(..) | Action::UpdateNode(..) => {
                of_nodes(observed, plan, action, &mut rule);
            }
            Action::DeleteVolume(uid) => {
                let ours = observed.volume.ours().filter(|it| it.uid().as_deref() == Some(uid));
                let is_for_another = underway(&observed.database)
                    .is_some_and(|record| ours.is_some_and(|volume| !is_wanted(record, volume)));
                rule(
                    is_deleting || is_for_another,
                    "the Volume is deleted only with its Database, or for another one",
                );
                rule(
                    ours.is_some() && (observed.nodes.is_empty() || !is_deleting && is_for_another),
                    "the Volume of a Database that is deleted goes only when no machine is left",
                );
            }
            Action::DeleteChild(ChildKind::ConfigMap, ..) if !is_deleting => {
                let is_immutable = observed.config_map.ours().is_some_and(|it| it.immutable == Some(true));
                rule(is_immutable, "a ConfigMap that can be changed is not deleted");
            }
            Action::DeleteChild(ChildKind::DatabaseUser, ..) if !is_deleting => {
                let wanted = observed.database.spec.application_user.as_ref().map(|it| &it.username);
                let is_another =
                    observed.application_user.ours().is_some_and(|it| Some(&it.spec.username) != wanted);
                rule(is_another, "the user of the application is not deleted");
            }
            Action::KeepCredentials(_)
            | Action::DeleteCredentials(_)
            | Action::DeleteChild(..)
            | Action::RecordRelease(_)
            | Action::ReleaseChild(..)
            | Action::ReleaseStatefulSet(..) => {
                rule(is_deleting, "what ends a Database is done only to one that is being deleted");
            }
            Action::ForgetRelease => {
                rule(!is_begun(observed), "a release that has begun is not forgotten");
            }
            Action::RemoveFinalizer => {
                rule(is_deleting, "the finalizer is removed only from a Database that is being deleted");
                let is_empty = observed.nodes.is_empty() && observed.volume.ours().is_none();
                rule(is_empty, "the finalizer is removed only when neither machine nor volume is left");
            }
            Action::FreeClaim(_) => {
                let starts = plan.actions.iter().any(claim::starts_a_pod);
                rule(!starts && claim::may_be_freed(observed), "a claim goes only where no pod is made");
            }
            Action::Scale(_, replicas) => {
                rule(*replicas == 0 || !is_deleting, "no engine is started for a database that is deleted");
            }
            Action::AddFinalizer
            | Action::RecordAdoption(_)
            | Action::ReleaseRecord(_)
            | Action::DeleteRetainedCredentials(..)
            | Action::UpdateVolume(..)
            | Action::Unlabel(..)
            | Action::Relabel(..)
            | Action::RecordNotStarting(_)
            | Action::ReplacePod(..) => {}
        }
    }
    if let Some(wait) = &plan.waiting {
        let wake = wake(wait).filter(|wake| is_registered(*wake, plan));
        rule(wake.is_some(), &format!("a wait has a wake, and {wait:?} has none"));
    }
    broken
}

/// What holds where a Node is created, changed or deleted.
fn of_nodes(observed: &Observed, plan: &Plan, action: &Action, rule: &mut impl FnMut(bool, &str)) {
    if let Action::CreateNode(..) = action {
        rule(
            !is_leaving(observed) && observed.database.spec.running,
            "no machine is created for a database that is deleted or paused",
        );
        rule(finalizer::has(&observed.database), "nothing is created before the finalizer is there");
        rule(
            observed.nodes.len() < 2 || is_repair(observed, plan),
            "no more than two machines of one database live at once, but to replace a lost one",
        );
        let is_stalled = plan.waiting.as_ref().is_some_and(DatabaseWait::is_stalled);
        rule(
            !is_stalled || is_successor_of_what_goes(observed, plan),
            "a stalled Database costs nothing more, but for the machine that takes a lost one's place",
        );
    }
    if let Action::DeleteNode(name, uid, _) | Action::UpdateNode(name, uid, _) = action {
        let is_it = |node: &&Node| node.name_any() == *name && node.uid().as_deref() == Some(uid);
        let node = observed.nodes.iter().find(is_it);
        rule(node.is_some(), "only a Node of this Database is changed or deleted");
        let is_released = node.is_some_and(|node| node.spec.release) || releases(plan, name);
        let for_release = matches!(action, Action::DeleteNode(_, _, NodeDeletion::DatabaseReleased));
        rule(
            !for_release || is_released,
            "a Node of a database that is released is deleted only when it releases its machine",
        );
    }
}

/// Whether this plan has the Node release its machine.
fn releases(plan: &Plan, name: &str) -> bool {
    plan.actions.iter().any(|action| {
        if let Action::UpdateNode(updated, _, spec) = action {
            updated == name && spec["release"] == true
        } else {
            false
        }
    })
}

/// Whether a machine is lost, and every other one is lost, too, or leaves, if only with this very plan.
fn is_repair(observed: &Observed, plan: &Plan) -> bool {
    observed.nodes.iter().any(machines::is_lost)
        && observed.nodes.iter().filter(|node| !leaves(node, plan)).all(machines::is_lost)
}

/// Whether there were machines for the data that is there, and each of them is gone or going.
fn is_successor_of_what_goes(observed: &Observed, plan: &Plan) -> bool {
    let goes = |node: &Node| leaves(node, plan) || machines::must_be_left(node);
    observed.volume.ours().is_some() && !observed.nodes.is_empty() && observed.nodes.iter().all(goes)
}

/// Whether the Node is deleted, if only with this very plan.
fn leaves(node: &Node, plan: &Plan) -> bool {
    let name = node.name_any();
    let is_it = |action: &Action| matches!(action, Action::DeleteNode(deleted, ..) if *deleted == name);
    node.metadata.deletion_timestamp.is_some() || plan.actions.iter().any(is_it)
}
