//! The plan of a Database that adopts a database that runs: what was found is checked, Volume and Node are
//! created with the ids that the spec names, and the StatefulSet is adopted last. Pure.
//!
//! Each step leaves the database as it runs; before the last one, everything is released by deleting the
//! Database (docs/decisions/0020-adoption-by-id-and-tag.md).

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, Volume as PodVolume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::ResourceExt;
use serde_json::json;

use super::action::{Action, Plan};
use super::facts::{adoption, node_awaited, recorded_zone, replicas, slowly, volume_awaited, was_adopted};
use super::{access, permission, validation};
use crate::api::database::{Adopt, Adoption};
use crate::api::keys::{
    ADOPTION_ANNOTATION, DATABASE_UID_LABEL, INPUTS_HASH_ANNOTATION, REVISION_LABEL, ZONE_LABEL,
};
use crate::api::{ConditionType, Database, Node, Volume, names};
use crate::cluster::controller_of;
use crate::cluster::persistent_volume::ebs_volume;
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
use crate::controller::engine_container::engine_of;
use crate::controller::safety;
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
    if let Some(set) = observed.stateful_set.ours() {
        // An owner reference alone, which any client of the namespace can write, makes nothing adopted.
        let owner = format!("Database {}", observed.names.database);
        let refusal = LegacyRefusal::Owned { set: set.name_any(), by: owner };
        let plan = || Plan::wait(DatabaseWait::NotAdoptable(refusal)).requeue(slowly(observed));
        return (!is_proven(observed) && !was_adopted(observed)).then(plan);
    }
    if legacy.stateful_set.is_none() && was_adopted(observed) {
        // Another client has deleted it since: it is created anew.
        return None;
    }
    let plan = next(observed, adopt, legacy, now);
    // What was found is not watched.
    let is_stalled = plan.waiting.as_ref().is_some_and(DatabaseWait::is_stalled);
    let pause = if is_stalled { slowly(observed) } else { observed.timing.requeue_interval };
    Some(plan.requeue(pause))
}

/// Whether what the spec names may be adopted, by a proof that no client of the namespace can write: the
/// Volume has adopted its EBS volume, by the tag on it in EC2.
fn is_proven(observed: &Observed) -> bool {
    observed.volume.ours().is_some_and(|volume| {
        volume.spec.adopt.is_some() && conditions::is_true(volume.conditions(), ConditionType::Bound)
    })
}

/// A status that was lost: how the database was found is noted on its StatefulSet, too.
pub(super) fn remembered(observed: &Observed) -> Option<Plan> {
    observed.database.spec.adopt.as_ref().filter(|_| is_proven(observed))?;
    let of_legacy = || {
        let is_ours = |set: &&StatefulSet| set.labels().get(DATABASE_UID_LABEL) == Some(&observed.names.uid);
        observed.legacy.as_ref()?.stateful_set.as_ref().filter(is_ours)
    };
    let set = observed.stateful_set.ours().or_else(of_legacy).filter(|_| adoption(observed).is_none())?;
    let mut noted = build::noted(set)?;
    // The note is as old as the template: whether that one was ever started is not in it.
    let live = build::served_as(set, &observed.names, String::new());
    if live.image != build::served_before(&noted, &observed.names).image {
        noted.unproven_image = live.image;
    }
    let actions = vec![Action::RecordAdoption(Box::new(noted))];
    let wait = DatabaseWait::AdoptingStatefulSet(observed.names.stateful_set.clone());
    Some(Plan::act(actions, wait).requeue(observed.timing.requeue_interval))
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
    if let Some((set, known)) = lost_owner(observed, legacy) {
        // Where it runs, and on what, is known by Node and Volume since it was adopted.
        let set = adopted(observed, profile, set, known);
        let wait = DatabaseWait::AdoptingStatefulSet(observed.names.stateful_set.clone());
        return Plan::act(vec![Action::AdoptStatefulSet(Box::new(set), Box::new(known.clone()))], wait);
    }
    match found(&observed.database, adopt, legacy) {
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
    let set = adopted(observed, profile, found.stateful_set, &adoption);
    actions.push(Action::AdoptStatefulSet(Box::new(set), Box::new(adoption)));
    Plan::act(actions, DatabaseWait::AdoptingStatefulSet(names.stateful_set.clone()))
}

/// The StatefulSet as it is adopted. What was changed since it was read is not replaced.
fn adopted(observed: &Observed, profile: &Profile, live: &StatefulSet, adoption: &Adoption) -> StatefulSet {
    let found = adoption.found_set().unwrap_or_else(|| live.clone());
    let mut set = build::adopted_set(&found, &observed.database, &observed.names, profile, Some(adoption));
    set.metadata.uid.clone_from(&live.metadata.uid);
    set.metadata.resource_version.clone_from(&live.metadata.resource_version);
    set
}

/// A StatefulSet that was adopted, as it was found, and that has lost its owner reference since, or was
/// deleted and created again by another client: the name, which the spec of this Database has, and the record
/// say that it is this one.
fn lost_owner<'a>(observed: &'a Observed, legacy: &'a Legacy) -> Option<(&'a StatefulSet, &'a Adoption)> {
    let is_free =
        |set: &&StatefulSet| controller_of(*set).is_none() && set.metadata.deletion_timestamp.is_none();
    let set = legacy.stateful_set.as_ref().filter(is_free)?;
    adoption(observed).filter(|_| was_adopted(observed)).map(|adoption| (set, adoption))
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

/// How it was found, as it can be created again. One that Freehold has changed already is as it was recorded
/// before that.
fn recorded(observed: &Observed, found: &Found<'_>, now: Timestamp) -> Adoption {
    let Found { stateful_set, pod_uid, .. } = found;
    let is_changed = stateful_set.annotations().contains_key(INPUTS_HASH_ANNOTATION);
    if let Some(known) = adoption(observed).filter(|_| is_changed) {
        return known.clone();
    }
    let mut found = ObjectMeta {
        annotations: stateful_set.metadata.annotations.clone(),
        labels: stateful_set.metadata.labels.clone(),
        name: stateful_set.metadata.name.clone(),
        namespace: stateful_set.metadata.namespace.clone(),
        owner_references: stateful_set.metadata.owner_references.clone(),
        ..ObjectMeta::default()
    };
    if let Some(annotations) = &mut found.annotations {
        annotations.remove(ADOPTION_ANNOTATION);
    }
    let set = StatefulSet { metadata: found, spec: stateful_set.spec.clone(), status: None };
    let mut set = json!(set);
    // As the API server sent it: a field that is newer than the types stays.
    if let Some(raw) = observed.legacy.as_ref().and_then(|legacy| legacy.raw.as_ref()) {
        set["spec"] = raw["spec"].clone();
    }
    Adoption {
        at: Time(whole_second(now)),
        pod_uid: pod_uid.clone(),
        engine: observed.database.spec.engine.clone(),
        inputs_hash: build::inputs_hash(&observed.database.spec),
        stateful_set: set,
        served: None,
        unproven_image: None,
        went_back: None,
    }
}

/// Why the database that the spec names cannot be adopted as it is; `None` if it can, or if it names none.
pub fn refusal(database: &Database, legacy: &Legacy) -> Option<LegacyRefusal> {
    found(database, database.spec.adopt.as_ref()?, legacy).err()
}

/// What the spec names, all of it there, and of one database.
fn found<'a>(database: &Database, adopt: &'a Adopt, legacy: &'a Legacy) -> Result<Found<'a>, LegacyRefusal> {
    if !database.spec.running {
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
    if set.metadata.deletion_timestamp.is_some() {
        return Err(LegacyRefusal::Deleted(set.name_any()));
    }
    if replicas(set) != 1 {
        return Err(LegacyRefusal::Replicas { set: set.name_any(), replicas: replicas(set) });
    }
    let pod =
        legacy.pod.as_ref().filter(|pod| controller_of(*pod).map(|it| &it.uid) == set.metadata.uid.as_ref());
    let pod = pod.ok_or_else(|| LegacyRefusal::NoPod(names::pod(&adopt.stateful_set_name)))?;
    if let Some(wait) = pod::engine_wait(Some(pod), adopt.container_name.as_deref()) {
        return Err(LegacyRefusal::PodNotReady { pod: pod.name_any(), wait });
    }
    if !runs_its_template(set, pod) {
        return Err(LegacyRefusal::OtherTemplate { set: set.name_any(), pod: pod.name_any() });
    }
    let zone = machine(adopt, legacy)?;
    let zones = &database.spec.zones;
    if !zones.is_empty() && !zones.contains(&zone) {
        return Err(LegacyRefusal::ZoneExcluded(zone));
    }
    engine_in(set, adopt.container_name.as_deref())?;
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

/// The container that the spec names is in the template.
fn engine_in(set: &StatefulSet, named: Option<&str>) -> Result<(), LegacyRefusal> {
    let pod = set.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let is_there = pod.is_some_and(|pod| engine_of(&pod.containers, named).is_some());
    let container = named.unwrap_or_default().to_owned();
    is_there.then_some(()).ok_or_else(|| LegacyRefusal::NoContainer { set: set.name_any(), container })
}

/// Whether the pod is of the template that is there: another one would run at the next start, which never ran
/// before.
fn runs_its_template(set: &StatefulSet, pod: &Pod) -> bool {
    let newest = set.status.as_ref().and_then(|status| status.update_revision.as_ref());
    safety::is_observed(set) && newest.is_some() && pod.labels().get(REVISION_LABEL) == newest
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
    let spec = legacy.pod.as_ref().and_then(|pod| pod.spec.as_ref());
    let volumes: Vec<&PodVolume> = spec.iter().flat_map(|spec| spec.volumes.iter().flatten()).collect();
    let of_claim = |volume: &&&PodVolume| {
        volume.persistent_volume_claim.as_ref().is_some_and(|used| used.claim_name == claim)
    };
    let Some(data) = volumes.iter().find(of_claim) else {
        return Err(LegacyRefusal::ClaimNotUsed { pod, claim });
    };
    let keeps_data = |volume: &&&PodVolume| {
        volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some() || volume.host_path.is_some()
    };
    if let Some(other) = volumes.iter().filter(keeps_data).find(|volume| !of_claim(volume)) {
        return Err(LegacyRefusal::SecondVolume { pod, volume: other.name.clone() });
    }
    let named = adopt.container_name.as_deref();
    let engine = spec.and_then(|spec| engine_of(&spec.containers, named));
    let mounts = engine.and_then(|engine| engine.volume_mounts.as_ref());
    if !mounts.is_some_and(|mounts| mounts.iter().any(|mount| mount.name == data.name)) {
        let container = engine.map(|engine| engine.name.clone()).unwrap_or_default();
        return Err(LegacyRefusal::NotTheEngine { pod, container });
    }
    let Some(persistent_volume) = &legacy.persistent_volume else {
        return Err(LegacyRefusal::ClaimNotBound { claim });
    };
    let name = persistent_volume.name_any();
    let found = ebs_volume(persistent_volume).map(|id| id.0).unwrap_or_default();
    if found != adopt.volume_id.0 {
        let wanted = adopt.volume_id.clone();
        return Err(LegacyRefusal::OtherVolume { persistent_volume: name, found, wanted });
    }
    Ok(name)
}
