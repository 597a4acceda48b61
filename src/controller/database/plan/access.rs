//! The plan of what stands before the engine: names that must be free, credentials, ConfigMap, Service,
//! NetworkPolicy, PodDisruptionBudget, ServiceAccount. Pure.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Resource, ResourceExt};

use super::action::Action;
use super::reload;
use crate::controller::database::build;
use crate::controller::database::cause::SecretFault;
use crate::controller::database::child_kind::ChildKind;
use crate::controller::database::object_name::{ObjectKind, ObjectName};
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::{Child, Credentials};
use crate::controller::database::upgrade::is_closed;
use crate::controller::database::wait::DatabaseWait;
use crate::engine::Profile;

/// Objects of derived names that are not owned by this Database.
pub(super) fn conflict(observed: &Observed, profile: &Profile) -> Option<DatabaseWait> {
    let names = &observed.names;
    let foreign =
        |is_foreign: bool, kind: ObjectKind, name: &str| is_foreign.then(|| ObjectName::new(kind, name));
    // Alone: it must not be deleted with the others.
    if let Some(conflict) = secret(observed) {
        return Some(conflict);
    }
    let taken = [
        foreign(
            profile.config.is_some() && observed.config_map == Child::Foreign,
            ObjectKind::ConfigMap,
            &names.config_map,
        ),
        foreign(observed.service == Child::Foreign, ObjectKind::Service, &names.service),
        foreign(observed.network_policy == Child::Foreign, ObjectKind::NetworkPolicy, &names.network_policy),
        foreign(
            observed.service_account == Child::Foreign,
            ObjectKind::ServiceAccount,
            &names.service_account,
        ),
        foreign(observed.stateful_set == Child::Foreign, ObjectKind::StatefulSet, &names.stateful_set),
        foreign(observed.volume == Child::Foreign, ObjectKind::Volume, &names.volume),
        foreign(observed.is_pod_foreign, ObjectKind::Pod, &names.pod()),
        observed.node_name_taken.as_ref().map(|name| ObjectName::new(ObjectKind::Node, name)),
    ];
    let objects: Vec<ObjectName> = taken.into_iter().flatten().collect();
    (!objects.is_empty()).then(|| DatabaseWait::NameConflict { objects, namespace: names.namespace.clone() })
}

/// The Secret of the credentials carries no label of this Database.
pub(super) fn secret(observed: &Observed) -> Option<DatabaseWait> {
    let names = &observed.names;
    let objects = vec![ObjectName::new(ObjectKind::Secret, &names.credentials_secret)];
    let is_foreign = matches!(observed.credentials, Credentials::Read(Child::Foreign));
    is_foreign.then(|| DatabaseWait::NameConflict { objects, namespace: names.namespace.clone() })
}

/// The Secret: made once, never mended. The engine may have stored what it holds.
#[expect(clippy::result_large_err, reason = "made at most once a pass")]
pub(super) fn credentials(
    observed: &Observed,
    profile: &Profile,
    actions: &mut Vec<Action>,
) -> Result<(), DatabaseWait> {
    if observed.credentials_as_reported {
        return Ok(());
    }
    let fault = match &observed.credentials {
        Credentials::Unreadable(answer) => SecretFault::Forbidden { answer: answer.clone() },
        Credentials::Read(Child::Ours(held)) => match build::check_credentials(&held.0) {
            Ok(()) => return Ok(()),
            Err(error) => SecretFault::Content(error),
        },
        Credentials::Read(Child::Absent | Child::Foreign) => {
            let was_made = observed
                .database
                .status
                .as_ref()
                .is_some_and(|status| status.credentials_secret_name.is_some());
            if !was_made {
                actions.push(Action::CreateCredentials(Box::new(profile.clone())));
                return Ok(());
            }
            SecretFault::Deleted
        }
    };
    Err(DatabaseWait::CredentialsUnusable { secret: observed.names.credentials_secret.clone(), fault })
}

/// The Service, where it is not as it is to be: closed while the database may go back to the data that it
/// had, so that no client is acknowledged what would be lost then.
pub(super) fn service(observed: &Observed, profile: &Profile) -> Option<Action> {
    let wanted = build::service(&observed.names, profile, is_closed(&observed.database));
    differs(&observed.service, wanted, |live, wanted| build::holds(&live.spec, &wanted.spec))
        .map(|service| Action::ApplyService(Box::new(service)))
}

/// Opens or closes the Service where nothing else of it can be rendered.
pub(super) fn selector_of_service(observed: &Observed) -> Option<Action> {
    let live = observed.service.ours()?;
    let wanted = build::with_selector(&observed.names, live, is_closed(&observed.database))?;
    Some(Action::ApplyService(Box::new(bound(live, wanted))))
}

/// The Secret of the administrator, for the status.
pub(in crate::controller::database) fn administrator_secret(
    observed: &Observed,
    before: Option<String>,
) -> Option<String> {
    let is_ours = matches!(observed.credentials, Credentials::Read(Child::Ours(_)));
    is_ours
        .then(|| observed.names.credentials_secret.clone())
        .or_else(|| observed.database.spec.adopt.as_ref()?.credentials_secret_name.clone())
        .or(before)
}

/// The engine's ConfigMap, ServiceAccount, Service, NetworkPolicy and PodDisruptionBudget: before the
/// machine, since a child that is refused must cost nothing.
pub(super) fn objects(observed: &Observed, profile: &Profile, actions: &mut Vec<Action>) {
    let names = &observed.names;
    if observed.config_map == Child::Absent
        && reload::refused(observed).is_none()
        && let Some(wanted) = build::config_map(&observed.database, names, profile)
    {
        actions.push(Action::ApplyConfigMap(Box::new(wanted)));
    }
    match &observed.service_account {
        Child::Absent => {
            actions.push(Action::CreateServiceAccount(Box::new(build::service_account(names))));
        }
        Child::Ours(live) => {
            actions.extend(build::service_account_patch(names, live).map(Action::MendServiceAccount));
        }
        Child::Foreign => {}
    }
    actions.extend(service(observed, profile));
    actions.extend(network_policy(observed, profile));
    // A foreign one of this name is none of the conflicts: a person may have made it for this very pod.
    let budget = build::disruption_budget(names);
    if let Some(budget) =
        differs(&observed.disruption_budget, budget, |live, wanted| live.spec == wanted.spec)
    {
        actions.push(Action::ApplyDisruptionBudget(Box::new(budget)));
    }
}

/// What gives the NetworkPolicy its rules. What another client adds to one may widen it: the policy is as it
/// is wanted, and nothing else.
fn network_policy(observed: &Observed, profile: &Profile) -> Option<Action> {
    let names = &observed.names;
    let policy = build::network_policy(&observed.database, names, profile, &observed.network);
    let policy = differs(&observed.network_policy, policy, |live, wanted| live.spec == wanted.spec)?;
    Some(Action::ApplyNetworkPolicy(Box::new(policy)))
}

/// The object to apply, bound to the UID of the one that it changes; `None` when nothing that we want
/// differs.
fn differs<K: Resource>(live: &Child<K>, wanted: K, is_same: impl Fn(&K, &K) -> bool) -> Option<K> {
    match live {
        Child::Absent => Some(wanted),
        Child::Foreign => None,
        Child::Ours(live) => {
            let labels = wanted.labels().iter().all(|(key, value)| live.labels().get(key) == Some(value));
            if labels && is_same(live, &wanted) { None } else { Some(bound(live.as_ref(), wanted)) }
        }
    }
}

/// What gives a ConfigMap this content. One that another client made immutable is deleted: the next pass
/// creates it anew, and files that are mounted stay until then. One that a finalizer of another client keeps
/// is not deleted again.
pub(super) fn rewritten(live: &ConfigMap, wanted: ConfigMap) -> Option<Action> {
    match (live.immutable, &live.metadata.deletion_timestamp) {
        (Some(true), Some(_)) => None,
        (Some(true), None) => {
            let uid = live.uid().unwrap_or_default();
            Some(Action::DeleteChild(ChildKind::ConfigMap, live.name_any(), uid))
        }
        (Some(false) | None, _) => Some(Action::ApplyConfigMap(Box::new(bound(live, wanted)))),
    }
}

/// The same for a StatefulSet, with the field that an admission webhook may have set when it was created, and
/// that cannot be changed since.
pub(super) fn bound_set(live: &StatefulSet, mut wanted: StatefulSet) -> StatefulSet {
    if let (Some(spec), Some(live)) = (wanted.spec.as_mut(), live.spec.as_ref()) {
        spec.pod_management_policy.clone_from(&live.pod_management_policy);
    }
    bound(live, wanted)
}

/// The wanted object, bound to the UID of the one that it changes; its owners stay as they are.
pub(super) fn bound<K: Resource>(live: &K, mut wanted: K) -> K {
    wanted.meta_mut().uid.clone_from(&live.meta().uid);
    wanted.meta_mut().owner_references = None;
    wanted
}
