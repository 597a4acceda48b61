//! The plan of a Database that adopts a database that runs: what was found is checked, Volume and Node are
//! created with the ids that the spec names, and the StatefulSet is adopted last. Pure.
//!
//! Each step leaves the database as it runs; before the last one, everything is released by deleting the
//! Database (docs/decisions/0020-adoption-by-id-and-tag.md).

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::json;

use super::action::{Action, Plan};
use super::facts::{adoption, node_awaited, recorded_zone, replicas, slowly, volume_awaited};
use super::{access, permission, validation};
use crate::api::database::{Adopt, Adoption};
use crate::api::keys::{EBS_CSI_DRIVER, INPUTS_HASH_ANNOTATION, ZONE_LABEL};
use crate::api::{ConditionType, Node, Volume};
use crate::cluster::controller_of;
use crate::controller::conditions;
use crate::controller::database::build;
use crate::controller::database::cause::InvalidSpec;
use crate::controller::database::legacy_refusal::LegacyRefusal;
use crate::controller::database::observe::Observed;
use crate::controller::database::observe::child::{Child, Credentials};
use crate::controller::database::observe::legacy::Legacy;
use crate::controller::database::ordinal::next_ordinal;
use crate::controller::database::pod;
use crate::controller::database::wait::DatabaseWait;
use crate::engine::Profile;
use crate::time::whole_second;

/// What was found, once all of it is there and fits together.
struct Found<'a> {
    adopt: &'a Adopt,
    stateful_set: &'a StatefulSet,
    pod_uid: String,
    zone: String,
    persistent_volume: String,
}

/// The next step; `None` once the database is adopted, or when there is none to adopt.
pub(super) fn plan(observed: &Observed, now: Timestamp) -> Option<Plan> {
    let adopt = observed.database.spec.adopt.as_ref()?;
    let legacy = observed.legacy.as_ref()?;
    if observed.stateful_set.ours().is_some() {
        return None;
    }
    if legacy.stateful_set.is_none() && adoption(observed).is_some() {
        // It was adopted, and another client has deleted it since: it is created anew.
        return None;
    }
    let plan = next(observed, adopt, legacy, now);
    // What was found is not watched.
    let is_stalled = plan.waiting.as_ref().is_some_and(DatabaseWait::is_stalled);
    let pause = if is_stalled { slowly(observed) } else { observed.timing.requeue_interval };
    Some(plan.requeue(pause))
}

fn next(observed: &Observed, adopt: &Adopt, legacy: &Legacy, now: Timestamp) -> Plan {
    let profile = match (validation::invalid(observed), &observed.profile) {
        (None, Ok(profile)) => profile,
        (Some(invalid), _) => return Plan::wait(DatabaseWait::InvalidSpec(invalid)),
        (None, Err(error)) => {
            return Plan::wait(DatabaseWait::InvalidSpec(InvalidSpec::Engine(error.clone())));
        }
    };
    if let Some(refusal) = permission::creation(observed) {
        return Plan::wait(DatabaseWait::NotPermitted(refusal));
    }
    if let Some(conflict) = access::conflict(observed, profile) {
        return Plan::wait(conflict);
    }
    match found(observed, adopt, legacy) {
        Ok(found) => step(observed, profile, &found, now),
        Err(refusal) => Plan::wait(DatabaseWait::NotAdoptable(refusal)),
    }
}

fn step(observed: &Observed, profile: &Profile, found: &Found<'_>, now: Timestamp) -> Plan {
    let Found { adopt, zone, .. } = found;
    let (database, names) = (&observed.database, &observed.names);
    let mut actions = Vec::new();
    if recorded_zone(observed).as_ref() != Some(zone) {
        actions.push(Action::RecordZone(zone.clone()));
    }
    let Child::Ours(volume) = &observed.volume else {
        let volume = build::adopted_volume(database, names, adopt, &found.persistent_volume, zone);
        actions.push(Action::CreateVolume(Box::new(volume)));
        let (volume, zone) = (names.volume.clone(), zone.clone());
        return Plan::act(actions, DatabaseWait::CreatingVolume { volume, zone });
    };
    let Some(node) = observed.by_ordinal().last().copied() else {
        let ordinal = next_ordinal(database, names, &observed.nodes);
        let node = build::adopted_node(database, names, adopt, ordinal, zone);
        let wait = DatabaseWait::CreatingNode(node.name_any());
        actions.push(Action::CreateNode(ordinal, Box::new(node), None));
        return Plan::act(actions, wait);
    };
    if let Some(wait) = awaited(volume, node) {
        return Plan::act(actions, wait);
    }
    if let Err(refusal) = type_is_wanted(observed, node) {
        return Plan::act(actions, DatabaseWait::NotAdoptable(refusal));
    }
    let Some(core_node) = observed.core_node_of(node) else {
        return Plan::act(actions, DatabaseWait::KubernetesNodeGone { node: node.name_any() });
    };
    if !observed.carries_label(node) {
        actions.push(Action::Label(core_node.name_any(), core_node.uid().unwrap_or_default(), None));
    }
    let adoption = recorded(observed, found, now);
    let mut set = build::adopted_set(found.stateful_set, database, names, profile, Some(&adoption));
    // What was changed since it was read is not replaced.
    set.metadata.uid.clone_from(&found.stateful_set.metadata.uid);
    set.metadata.resource_version.clone_from(&found.stateful_set.metadata.resource_version);
    actions.push(Action::AdoptStatefulSet(Box::new(set), Box::new(adoption)));
    Plan::act(actions, DatabaseWait::AdoptingStatefulSet(names.stateful_set.clone()))
}

/// What is awaited of both before the StatefulSet may be adopted.
fn awaited(volume: &Volume, node: &Node) -> Option<DatabaseWait> {
    let is_bound = conditions::is_true(volume.conditions(), ConditionType::Bound);
    let is_initialized = conditions::is_true(node.conditions(), ConditionType::Initialized);
    let of_volume = || {
        let wait = volume_awaited(volume);
        wait.or_else(|| (!is_bound).then(|| DatabaseWait::VolumeNotBound(volume.name_any())))
    };
    let of_node = || {
        let wait = node_awaited(node);
        wait.or_else(|| (!is_initialized).then(|| DatabaseWait::NodeNotInitialized(node.name_any())))
    };
    of_volume().or_else(of_node)
}

/// A machine of a type that the spec does not list would be replaced at once.
fn type_is_wanted(observed: &Observed, node: &Node) -> Result<(), LegacyRefusal> {
    let found = node.status.as_ref().and_then(|status| status.instance_type.as_ref());
    match found.filter(|found| !observed.database.spec.instance_types.contains(found)) {
        Some(found) => Err(LegacyRefusal::TypeNotListed(found.clone())),
        None => Ok(()),
    }
}

/// How it was found. One that Freehold has changed already is as it was recorded before that.
fn recorded(observed: &Observed, found: &Found<'_>, now: Timestamp) -> Adoption {
    let Found { stateful_set, pod_uid, .. } = found;
    let is_changed = stateful_set.annotations().contains_key(INPUTS_HASH_ANNOTATION);
    let known = adoption(observed).filter(|_| is_changed);
    let as_found = || {
        let mut set = StatefulSet { status: None, ..(*stateful_set).clone() };
        set.metadata.managed_fields = None;
        json!(set)
    };
    Adoption {
        at: Time(whole_second(now)),
        pod_uid: pod_uid.clone(),
        engine: observed.database.spec.engine.clone(),
        inputs_hash: build::inputs_hash(&observed.database.spec),
        stateful_set: known.map_or_else(as_found, |known| known.stateful_set.clone()),
    }
}

/// What the spec names, all of it there, and of one database.
fn found<'a>(observed: &Observed, adopt: &'a Adopt, legacy: &'a Legacy) -> Result<Found<'a>, LegacyRefusal> {
    if !observed.database.spec.running {
        return Err(LegacyRefusal::Paused);
    }
    let set = legacy.stateful_set.as_ref();
    let set = set.ok_or_else(|| LegacyRefusal::NoStatefulSet(adopt.stateful_set_name.clone()))?;
    if let Some(owner) = controller_of(set) {
        return Err(LegacyRefusal::Owned {
            set: set.name_any(),
            by: format!("{} {}", owner.kind, owner.name),
        });
    }
    if replicas(set) != 1 {
        return Err(LegacyRefusal::Replicas { set: set.name_any(), replicas: replicas(set) });
    }
    let pod =
        legacy.pod.as_ref().filter(|pod| controller_of(*pod).map(|it| &it.uid) == set.metadata.uid.as_ref());
    let pod = pod.ok_or_else(|| LegacyRefusal::NoPod(observed.names.pod()))?;
    if let Some(wait) = pod::engine_wait(Some(pod)) {
        return Err(LegacyRefusal::PodNotReady { pod: pod.name_any(), wait });
    }
    let zone = machine(adopt, legacy)?;
    let persistent_volume = volume(adopt, legacy, pod.name_any())?;
    if legacy.service.is_none() {
        return Err(LegacyRefusal::NoService(adopt.service_name.clone()));
    }
    let secret = adopt.credentials_secret_name.clone().unwrap_or_default();
    match &legacy.credentials {
        None | Some(Credentials::Read(Child::Ours(_))) => {}
        Some(Credentials::Read(Child::Absent | Child::Foreign)) => {
            return Err(LegacyRefusal::NoSecret(secret));
        }
        Some(Credentials::Unreadable(answer)) => {
            return Err(LegacyRefusal::SecretForbidden { secret, answer: answer.clone() });
        }
    }
    let pod_uid = pod.uid().unwrap_or_default();
    Ok(Found { adopt, stateful_set: set, pod_uid, zone, persistent_volume })
}

/// The zone of the machine, if the pod runs on the instance that the spec names.
fn machine(adopt: &Adopt, legacy: &Legacy) -> Result<String, LegacyRefusal> {
    let core_node = legacy.core_node.as_ref();
    let provider_id = core_node.and_then(|node| node.spec.as_ref()?.provider_id.as_deref());
    let instance = provider_id.and_then(|id| id.rsplit('/').next()).unwrap_or_default();
    let name = core_node.map(ResourceExt::name_any).unwrap_or_default();
    if instance != adopt.instance_id.0 {
        let wanted = adopt.instance_id.clone();
        return Err(LegacyRefusal::OtherInstance { core_node: name, found: instance.to_owned(), wanted });
    }
    let zone = core_node.and_then(|node| node.labels().get(ZONE_LABEL)).cloned();
    zone.ok_or(LegacyRefusal::NoZone { core_node: name })
}

/// The PersistentVolume, if the pod uses the claim, and the claim the EBS volume that the spec names.
fn volume(adopt: &Adopt, legacy: &Legacy, pod: String) -> Result<String, LegacyRefusal> {
    let claim = adopt.claim_name.clone();
    let volumes = legacy.pod.iter().filter_map(|pod| pod.spec.as_ref()).flat_map(|spec| spec.volumes.iter());
    let used = volumes.flatten().filter_map(|volume| volume.persistent_volume_claim.as_ref());
    let claims: Vec<&str> = used.map(|used| used.claim_name.as_str()).collect();
    if !claims.contains(&claim.as_str()) {
        return Err(LegacyRefusal::ClaimNotUsed { pod, claim });
    }
    if let Some(other) = claims.iter().find(|other| **other != claim) {
        return Err(LegacyRefusal::SecondClaim { pod, claim: (*other).to_owned() });
    }
    let Some(persistent_volume) = &legacy.persistent_volume else {
        return Err(LegacyRefusal::ClaimNotBound { claim });
    };
    let name = persistent_volume.name_any();
    let found = ebs_volume(persistent_volume).unwrap_or_default();
    if found != adopt.volume_id.0 {
        let wanted = adopt.volume_id.clone();
        return Err(LegacyRefusal::OtherVolume { persistent_volume: name, found, wanted });
    }
    Ok(name)
}

/// The EBS volume of a PersistentVolume: of the CSI driver, or of the driver in Kubernetes that it replaced,
/// which wrote `aws://<zone>/<id>` or the id alone.
fn ebs_volume(persistent_volume: &PersistentVolume) -> Option<String> {
    let spec = persistent_volume.spec.as_ref()?;
    if let Some(csi) = spec.csi.as_ref().filter(|csi| csi.driver == EBS_CSI_DRIVER) {
        return Some(csi.volume_handle.clone());
    }
    let volume = &spec.aws_elastic_block_store.as_ref()?.volume_id;
    volume.rsplit('/').next().map(str::to_owned)
}
