//! Builds what an adopted database runs as: the StatefulSet as it was found, but for what decides where its
//! pod runs; and the Node and the Volume of what was found.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{
    StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec, StatefulSetUpdateStrategy,
};
use k8s_openapi::api::core::v1::{Container, PodTemplateSpec, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::noted::note;
use super::stateful_set::{resources, unreachable};
use super::{inputs_hash, node, owner_reference, volume};
use crate::api::database::{Adopt, Adoption, DatabaseSpec, Engine, EngineType, ServedAs};
use crate::api::keys::{DATABASE_NODE_LABEL, DEDICATED_TAINT, INPUTS_HASH_ANNOTATION};
use crate::api::names::Names;
use crate::api::volume::AdoptedVolume;
use crate::api::{Database, Node, Volume};
use crate::controller::engine_container::engine_of;
use crate::engine::Profile;

/// What a StatefulSet becomes that was found, with names, labels, annotations, owner and spec. `adoption` is
/// how it was found; without it, nothing is known of the engine that it was found with, and the image stays.
/// What is built from what was built is the same.
pub fn adopted_set(
    found: &StatefulSet,
    database: &Database,
    names: &Names,
    profile: &Profile,
    adoption: Option<&Adoption>,
) -> StatefulSet {
    let inputs = inputs_to_run(&database.spec, adoption);
    let mut metadata = ObjectMeta {
        owner_references: Some(vec![owner_reference(names)]),
        labels: found.metadata.labels.clone(),
        annotations: found.metadata.annotations.clone(),
        name: Some(names.stateful_set.clone()),
        namespace: Some(names.namespace.clone()),
        ..ObjectMeta::default()
    };
    metadata.labels.get_or_insert_default().extend(names.labels.clone());
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(INPUTS_HASH_ANNOTATION.to_owned(), inputs.clone());
    if let Some(adoption) = adoption {
        note(annotations, adoption);
    }
    let mut set = StatefulSet { metadata, spec: found.spec.clone(), status: None };
    let spec = set.spec.get_or_insert_default();
    spec.update_strategy =
        Some(StatefulSetUpdateStrategy { type_: Some("OnDelete".to_owned()), rolling_update: None });
    // Whatever becomes of the StatefulSet, the claim is the Volume's.
    spec.persistent_volume_claim_retention_policy = Some(StatefulSetPersistentVolumeClaimRetentionPolicy {
        when_deleted: Some("Retain".to_owned()),
        when_scaled: Some("Retain".to_owned()),
    });
    placed(spec, names);
    let metadata = spec.template.metadata.get_or_insert_default();
    let labels = metadata.labels.get_or_insert_default();
    for (key, value) in &names.labels {
        // The selector may name a label that is there.
        labels.entry(key.clone()).or_insert_with(|| value.clone());
    }
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(INPUTS_HASH_ANNOTATION.to_owned(), inputs);
    let before = adoption.filter(|it| is_back(&database.spec, it)).map(|it| served_before(it, names));
    if let Some(engine) = engine_in(&mut spec.template, names) {
        if let Some(before) = before {
            engine.image = before.image;
            engine.resources = serde_json::from_value(before.resources).unwrap_or_default();
            return set;
        }
        if let Some(adoption) = adoption {
            engine.image = image(engine.image.as_deref(), &adoption.engine, database, profile);
        }
        if database.spec.resources.is_some() {
            engine.resources = Some(resources(database));
        }
    }
    set
}

/// The hash of the inputs that the pod is to be made from: the spec's, or, where they did not start, those
/// that the database went back to.
pub fn inputs_to_run(spec: &DatabaseSpec, adoption: Option<&Adoption>) -> String {
    let wanted = inputs_hash(spec);
    let Some(adoption) = adoption.filter(|adoption| is_back(spec, adoption)) else { return wanted };
    let before = adoption.served.as_ref().map_or(&adoption.inputs_hash, |served| &served.inputs_hash);
    // The spec may have requested when the database was adopted what only a later pod was made from.
    if *before == wanted { format!("{wanted}-back") } else { before.clone() }
}

/// Whether the database went back from what the spec requests.
fn is_back(spec: &DatabaseSpec, adoption: &Adoption) -> bool {
    adoption.went_back.as_ref().is_some_and(|back| back.inputs_hash == inputs_hash(spec))
}

/// What the engine last accepted connections as: what was found, until another template has served.
pub fn served_before(adoption: &Adoption, names: &Names) -> ServedAs {
    let of_found = || {
        let found = adoption.found_set().unwrap_or_default();
        served_as(&found, names, adoption.inputs_hash.clone())
    };
    adoption.served.clone().unwrap_or_else(of_found)
}

/// What the engine is in the template of this StatefulSet.
pub fn served_as(set: &StatefulSet, names: &Names, inputs_hash: String) -> ServedAs {
    let pod = set.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let engine = pod.and_then(|pod| engine_of(&pod.containers, names.container.as_deref()));
    let resources = engine.and_then(|engine| engine.resources.as_ref());
    ServedAs {
        inputs_hash,
        image: engine.and_then(|engine| engine.image.clone()),
        resources: resources.map_or(Value::Null, |resources| json!(resources)),
    }
}

/// The image that was found, of the version that the spec names: another repository may have other users,
/// other folders and another libc. One that does not name the version that it was found with stays
/// (`plan/validation.rs` refuses the change).
fn image(found: Option<&str>, then: &Engine, database: &Database, profile: &Profile) -> Option<String> {
    let (found, now) = (found?, &database.spec.engine);
    if then == now {
        return Some(found.to_owned());
    }
    if now.kind == EngineType::Custom {
        return Some(profile.image.clone());
    }
    Some(
        of_version(found, then.version.as_deref(), now.version.as_deref())
            .unwrap_or_else(|| found.to_owned()),
    )
}

/// The image with another version in its tag; `None` if the tag does not name the version that it has.
pub fn of_version(found: &str, then: Option<&str>, now: Option<&str>) -> Option<String> {
    let (then, now) = (then?, now?);
    let (repository, tag) = found.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'))?;
    (!found.contains('@') && tag.contains(then))
        .then(|| format!("{repository}:{}", tag.replacen(then, now, 1)))
}

/// The pod runs on the machine of this Database and nowhere else. The machine that it was found on has its
/// taint with the effect `NoSchedule`, another one with `NoExecute`: a toleration without an effect is for
/// both.
fn placed(spec: &mut StatefulSetSpec, names: &Names) {
    let pod = spec.template.spec.get_or_insert_default();
    pod.node_selector = Some(BTreeMap::from([(DATABASE_NODE_LABEL.to_owned(), names.uid.clone())]));
    pod.affinity = None;
    pod.topology_spread_constraints = None;
    pod.node_name = None;
    let tolerations = pod.tolerations.get_or_insert_default();
    let ours = Toleration {
        key: Some(DEDICATED_TAINT.to_owned()),
        operator: Some("Exists".to_owned()),
        ..Toleration::default()
    };
    // Those with seconds are of the template that was found, or of Kubernetes' own admission.
    let outlasts = unreachable();
    tolerations.retain(|it| !outlasts.iter().any(|ours| it.key == ours.key && it.effect == ours.effect));
    for ours in [ours].into_iter().chain(outlasts) {
        if !tolerations.contains(&ours) {
            tolerations.push(ours);
        }
    }
}

/// The container of the engine, to change it.
fn engine_in<'a>(template: &'a mut PodTemplateSpec, names: &Names) -> Option<&'a mut Container> {
    let containers = &mut template.spec.as_mut()?.containers;
    let name = engine_of(containers, names.container.as_deref())?.name.clone();
    containers.iter_mut().find(|container| container.name == name)
}

/// The Node of the instance that was found: released until the database is adopted.
pub fn adopted_node(database: &Database, names: &Names, adopt: &Adopt, ordinal: i32, zone: &str) -> Node {
    let mut node = node(database, names, ordinal, Some(zone));
    node.spec.instance_id = Some(adopt.instance_id.clone());
    node.spec.release = true;
    node
}

/// The Volume of the EBS volume that was found: released until the database is adopted.
pub fn adopted_volume(
    database: &Database,
    names: &Names,
    adopt: &Adopt,
    persistent_volume: &str,
    zone: &str,
) -> Volume {
    let mut volume = volume(database, names, zone);
    volume.spec.adopt = Some(AdoptedVolume {
        volume_id: adopt.volume_id.clone(),
        persistent_volume_name: persistent_volume.to_owned(),
        claim_name: adopt.claim_name.clone(),
    });
    volume.spec.release = true;
    volume
}
