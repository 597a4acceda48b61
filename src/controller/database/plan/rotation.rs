//! The part of the plan that rotates the administrator's password. Pure.
//!
//! The next password stands in the Secret, beside the one in force, before anything is done with it, and
//! becomes the one in force once the engine has it. An engine that takes it by a statement is given it, and
//! tried, while it serves. One that reads it at its start is stopped first: while none runs, no password is
//! refused.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt;

use super::action::{Action, Plan};
use super::comparison::{self, Finding};
use super::data;
use super::facts::replicas;
use crate::api::database::EngineType;
use crate::api::{ConditionType, Node, Reason};
use crate::controller::conditions::Entry;
use crate::controller::database::build;
use crate::controller::database::messages::rotation as sentences;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::{Child, Credentials, HeldSecret};
use crate::controller::database::upgrade::{self, Phase};
use crate::controller::database::wait::{DatabaseWait, RotationRefusal, RotationWait};
use crate::controller::safety;
use crate::engine::client::Access;
use crate::engine::postgresql::MAINTENANCE_DATABASE;
use crate::engine::{Profile, Rotation};

/// The Secret whose password is not the one that the spec asks for, or has a next one; none while it cannot
/// be used.
fn due(observed: &Observed) -> Option<&HeldSecret> {
    let secret = usable(observed)?;
    let wanted = observed.database.spec.access.password_generation;
    let is_wanted = wanted.is_some_and(|wanted| wanted > build::password_generation(&secret.0));
    (is_wanted || build::next_password(&secret.0).is_some()).then_some(secret)
}

/// The Secret of the credentials, if the engine can be reached by it.
pub(super) fn usable(observed: &Observed) -> Option<&HeldSecret> {
    let Credentials::Read(Child::Ours(secret)) = &observed.credentials else { return None };
    build::check_credentials(&secret.0).is_ok().then_some(&**secret)
}

/// Why the password is not rotated.
fn refusal(observed: &Observed) -> Option<RotationRefusal> {
    let spec = &observed.database.spec;
    if spec.adopt.is_some() {
        return spec.access.password_generation.map(|_| RotationRefusal::Adopted);
    }
    let secret = due(observed)?;
    if spec.engine.kind == EngineType::Custom {
        return Some(RotationRefusal::CustomEngine);
    }
    (secret.0.immutable == Some(true)).then(|| RotationRefusal::Immutable(secret.0.name_any()))
}

/// Whether the engine may have a password that is not the one in force, and the operator goes on with it.
pub(super) fn may_have_next(observed: &Observed) -> bool {
    let is_given = observed.profile.as_ref().is_ok_and(|profile| gives_password(observed, profile));
    is_given && usable(observed).is_some_and(|secret| build::next_password(&secret.0).is_some())
}

/// Whether the operator is to give the engine another password while it serves.
fn gives_password(observed: &Observed, profile: &Profile) -> bool {
    profile.rotation == Rotation::Statement && due(observed).is_some() && refusal(observed).is_none()
}

/// An engine that reads its password at its start does not run: the next password becomes the one in force
/// before it is started. What is awaited before the engine may be started; nothing where no rotation is due.
pub(super) fn before_start(
    observed: &Observed,
    profile: &Profile,
    live: &StatefulSet,
    actions: &mut Vec<Action>,
) -> Option<RotationWait> {
    let secret = due(observed).filter(|_| refusal(observed).is_none())?;
    if profile.rotation != Rotation::AtStart || replicas(live) != 0 {
        return None;
    }
    if observed.pod.is_some() || safety::may_replace_pod(live).is_err() {
        return Some(RotationWait::Stopping);
    }
    if build::next_password(&secret.0).is_none() {
        actions.push(prepared(observed, secret));
        return Some(RotationWait::Preparing);
    }
    let (profile, secret) = (Box::new(profile.clone()), Box::new(secret.clone()));
    actions.push(Action::PutNextPasswordInForce(profile, secret));
    None
}

/// The plan of a spec that cannot be carried out, which a person must mend: the engine that was stopped for a
/// rotation, or to be changed, is not left so. It begins from the template that is there, with the password
/// that the Secret has, and is rotated or changed later.
pub(super) fn started_again(mut plan: Plan, observed: &Observed) -> Plan {
    let spec = &observed.database.spec;
    let is_changed = upgrade::in_phase(&observed.database, Phase::Trying).is_some();
    let may_be_stopped = (spec.engine.kind == EngineType::Questdb || is_changed) && spec.adopt.is_none();
    // A machine with the label stays: the database was not paused.
    let stays = |node: &Node| node.metadata.deletion_timestamp.is_none();
    if let Some(live) = observed.stateful_set.ours()
        && replicas(live) == 0
        && may_be_stopped
        && !data::is_of_other_data(observed, live)
        && observed.volume.ours().is_some()
        && !observed.labelled.is_empty()
        && observed.nodes.iter().all(stays)
    {
        plan.actions.push(Action::Scale(live.uid().unwrap_or_default(), 1));
    }
    plan
}

/// The engine accepts connections, and everything else is as the spec says: the next step of a rotation.
pub(super) fn plan(
    observed: &Observed,
    profile: &Profile,
    live: &StatefulSet,
    pod: &Pod,
    actions: &mut Vec<Action>,
) -> Option<RotationWait> {
    if let Some(refusal) = refusal(observed) {
        return Some(RotationWait::Refused(refusal));
    }
    let secret = due(observed)?;
    if is_moved(observed) || is_to_be_restored(observed) {
        return Some(RotationWait::Postponed);
    }
    if build::next_password(&secret.0).is_none() {
        actions.push(prepared(observed, secret));
        return Some(RotationWait::Preparing);
    }
    match profile.rotation {
        Rotation::Statement => {
            let Some(access) = access(profile, &secret.0, pod, MAINTENANCE_DATABASE) else {
                return Some(RotationWait::Postponed);
            };
            actions.push(Action::GiveNextPassword(access, Box::new(secret.clone())));
            let (profile, secret) = (Box::new(profile.clone()), Box::new(secret.clone()));
            actions.push(Action::PutNextPasswordInForce(profile, secret));
            Some(RotationWait::Giving)
        }
        Rotation::AtStart => {
            if safety::may_replace_pod(live).is_ok() {
                let (profile, secret) = (Box::new(profile.clone()), Box::new(secret.clone()));
                let uid = live.uid().unwrap_or_default();
                actions.push(Action::StopForNextPassword(uid, profile, secret));
            }
            Some(RotationWait::Stopping)
        }
        Rotation::Unknown => Some(RotationWait::Refused(RotationRefusal::CustomEngine)),
    }
}

/// The database is being moved to another machine, or is to be.
pub(super) fn is_moved(observed: &Observed) -> bool {
    let status = observed.database.status.as_ref();
    status.is_some_and(|status| status.replacement.is_some()) || observed.nodes.len() > 1
}

/// What was changed outside Freehold, or may have been, is restored first: that writes the number of pods.
fn is_to_be_restored(observed: &Observed) -> bool {
    let findings = [comparison::config_map(observed), comparison::stateful_set(observed)];
    findings.into_iter().any(|finding| finding != Finding::Same)
}

fn prepared(observed: &Observed, secret: &HeldSecret) -> Action {
    let wanted = observed.database.spec.access.password_generation;
    let in_force = build::password_generation(&secret.0);
    Action::PrepareNextPassword(Box::new(secret.clone()), wanted.unwrap_or(in_force))
}

/// How the engine is reached, with the password in force; none while it has no address.
pub(super) fn access(profile: &Profile, secret: &Secret, pod: &Pod, database: &str) -> Option<Access> {
    Some(Access {
        address: pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()?,
        port: profile.primary_port_number().and_then(|port| u16::try_from(port).ok())?,
        username: build::value(secret, "username")?,
        password: build::value(secret, "password")?,
        database: database.to_owned(),
        tls: build::tls_of_connections(pod.spec.as_ref()?),
        slowness: 1,
    })
}

fn in_force(observed: &Observed) -> Option<i64> {
    usable(observed).map(|secret| build::password_generation(&secret.0))
}

/// Which password is in force, where the spec asks for one; what was `known` while that cannot be read.
pub(in crate::controller::database) fn shown(observed: &Observed, known: Option<i64>) -> Option<i64> {
    observed.database.spec.access.password_generation?;
    in_force(observed).or(known)
}

/// Says whether the password is the one that the spec asks for, and else what is awaited.
pub(in crate::controller::database) fn reported(
    observed: &Observed,
    waiting: Option<&DatabaseWait>,
) -> Option<Entry> {
    let kind = ConditionType::PasswordRotated;
    let wanted = observed.database.spec.access.password_generation?;
    if let Some(refusal) = refusal(observed) {
        let wait = DatabaseWait::Rotation(RotationWait::Refused(refusal));
        return Some(Entry::no(kind, wait.reason(), wait.message()));
    }
    let Some(in_force) = in_force(observed) else {
        return Some(Entry::no(kind, Reason::Rotating, sentences::UNKNOWN));
    };
    if due(observed).is_none() {
        return Some(Entry::yes(kind, Reason::AsExpected, sentences::in_force(in_force)));
    }
    // What is awaited before it, or hinders it, is what the Database waits for.
    let postponed = DatabaseWait::Rotation(RotationWait::Postponed);
    let hindrance = waiting.unwrap_or(&postponed).message();
    Some(Entry::no(kind, Reason::Rotating, sentences::awaited(wanted, in_force, &hindrance)))
}
