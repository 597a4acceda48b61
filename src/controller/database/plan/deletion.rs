//! The plan of a Database that is being deleted, backwards: engine stopped, machine gone, disk as its policy
//! says, credentials. Pure.

use jiff::Timestamp;
use kube::{Resource, ResourceExt};

use super::action::{Action, Plan};
use super::application_user;
use super::facts::{condition_message, patch};
use super::pause::{give_back, stop};
use super::{access, adoption, release};
use crate::api::{ConditionType, DeletionPolicy, Volume, VolumeSpec};
use crate::cluster::finalizer;
use crate::controller::database::cause::{NodeDeletion, SecretFault};
use crate::controller::database::child_kind::ChildKind;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::{Child, Credentials};
use crate::controller::database::wait::DatabaseWait;

pub(super) fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let mut actions = Vec::new();
    if !finalizer::has(&observed.database) {
        return Plan::act(actions, DatabaseWait::OtherFinalizers);
    }
    if let Some(plan) = release::plan(observed, now) {
        return plan;
    }
    // What was adopted follows the policy; what was not is released.
    actions.extend(release::withdrawn(observed));
    if let Some(waiting) = stop(observed, &mut actions, now) {
        return Plan::act(actions, waiting).requeue(observed.timing.requeue_interval);
    }
    if let Some(waiting) = give_back(observed, &NodeDeletion::DatabaseDeleted, &mut actions) {
        return Plan::act(actions, waiting);
    }
    if let Child::Ours(volume) = &observed.volume {
        return disk(observed, volume, actions);
    }
    // It ends at once, since its engine does not run any more: the user stays in data that is retained. It is
    // awaited, so that another Database of the name has one of its own.
    if let Some(user) = observed.application_user.ours() {
        actions.extend(Action::delete(ChildKind::DatabaseUser, Some(&user.metadata)));
        // Where its definition is deleted, nothing says that it is gone.
        return Plan::act(actions, application_user::ending(user)).requeue(observed.timing.requeue_interval);
    }
    credentials(observed, actions)
}

/// What happens to the data: as the spec says, unless the deletion is part of a teardown, or is to leave
/// everything as it is, or the Volume has the data that the database had before a restore in place.
fn policy(observed: &Observed) -> DeletionPolicy {
    let is_replaced = observed.volume.ours().is_some_and(|volume| volume.spec.replaced);
    if observed.torn_down.any() || observed.is_orphaning() || is_replaced {
        DeletionPolicy::Retain
    } else {
        observed.database.spec.deletion_policy
    }
}

/// The Volume learns the policy, and that it is decided, before it is deleted. One that was deleted already
/// has waited for that.
fn disk(observed: &Observed, volume: &Volume, mut actions: Vec<Action>) -> Plan {
    let uid = volume.uid().unwrap_or_default();
    let policy = policy(observed);
    let decided = VolumeSpec { deletion_policy: policy, deletion_decided: true, ..volume.spec.clone() };
    actions.extend(patch(&volume.spec, &decided).map(|patch| Action::UpdateVolume(uid.clone(), patch)));
    if volume.metadata.deletion_timestamp.is_none() {
        actions.push(Action::DeleteVolume(uid));
    }
    let message = condition_message(volume.conditions(), ConditionType::Ready);
    Plan::act(actions, DatabaseWait::DeletingVolume { volume: volume.name_any(), policy, message })
}

/// The credentials stay with data that is kept, since the engine may have them stored in it.
fn credentials(observed: &Observed, mut actions: Vec<Action>) -> Plan {
    let names = &observed.names;
    let held = match &observed.credentials {
        Credentials::Unreadable(answer) => {
            let fault = SecretFault::Forbidden { answer: answer.clone() };
            let waiting =
                DatabaseWait::CredentialsUnusable { secret: names.credentials_secret.clone(), fault };
            return Plan::act(actions, waiting).requeue(observed.timing.requeue_interval.saturating_mul(12));
        }
        Credentials::Read(Child::Ours(held)) => Some(held),
        Credentials::Read(Child::Absent | Child::Foreign) => None,
    };
    if let Some(waiting) = access::secret(observed).filter(|_| may_lose_its_label(observed)) {
        return Plan::act(actions, waiting).requeue(observed.timing.requeue_interval.saturating_mul(12));
    }
    actions.extend(adoption::release(observed));
    // Nothing can be created in a namespace that is being deleted, and the Secret goes with it.
    if let (Some(held), false) = (held, observed.torn_down.namespace) {
        if is_kept(observed) && !adoption::is_untaken(observed) {
            match &observed.retained {
                Child::Absent => actions.push(Action::KeepCredentials(held.clone())),
                Child::Ours(_) => {}
                Child::Foreign => {
                    let waiting = DatabaseWait::RetainedSecretConflict(names.retained_secret.clone());
                    return Plan::act(actions, waiting)
                        .requeue(observed.timing.requeue_interval.saturating_mul(12));
                }
            }
        }
        adoption::after(observed, &mut actions);
        actions.push(Action::DeleteCredentials(held.0.uid().unwrap_or_default()));
    }
    actions.extend(children(observed));
    actions.push(Action::RemoveFinalizer);
    Plan::act(actions, DatabaseWait::ResourcesDeleted)
}

/// Whether the credentials stay: a Volume may have been retained before the policy became Delete.
fn is_kept(observed: &Observed) -> bool {
    let status = observed.database.status.as_ref();
    let of_volume = status.and_then(|status| status.volume_deletion_policy);
    // The EBS volume with the data of before a restore in place is retained.
    let has_former = status.is_some_and(|status| status.restored_in_place.is_some());
    has_former
        || policy(observed) != DeletionPolicy::Delete
        || of_volume.is_some_and(|it| it != DeletionPolicy::Delete)
}

/// Whether the Secret of this name may be the one that was made for this Database, and would be missed.
fn may_lose_its_label(observed: &Observed) -> bool {
    let status = observed.database.status.as_ref();
    let was_made = status.is_some_and(|status| status.credentials_secret_name.is_some());
    let is_adopted = observed.database.spec.adopt.is_some();
    was_made && !is_adopted && !observed.torn_down.namespace && is_kept(observed)
}

/// What is left goes before the Database does, so that nothing of it is there once it is gone.
fn children(observed: &Observed) -> Vec<Action> {
    [
        Action::delete(ChildKind::StatefulSet, observed.stateful_set.ours().map(Resource::meta)),
        Action::delete(ChildKind::Service, observed.service.ours().map(Resource::meta)),
        Action::delete(ChildKind::ConfigMap, observed.config_map.ours().map(Resource::meta)),
        Action::delete(ChildKind::ServiceAccount, observed.service_account.ours().map(Resource::meta)),
        Action::delete(ChildKind::NetworkPolicy, observed.network_policy.ours().map(Resource::meta)),
        Action::delete(ChildKind::PodDisruptionBudget, observed.disruption_budget.ours().map(Resource::meta)),
    ]
    .into_iter()
    .flatten()
    .collect()
}
