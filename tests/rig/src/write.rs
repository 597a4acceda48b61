//! Creates and changes objects: the order of the API server's steps, from the body to the store.

use std::sync::Arc;

use serde_json::{Value, json};

use super::admission;
use super::answer::Refusal;
use super::immutable;
use super::json::set_or_remove;
use super::kind::Kind;
use super::managed::{self, Writer};
use super::object::{decode, faults, faults_of_change, finalizers, is_deleting, meta};
use super::state::State;
use super::store::Key;

/// What is written where.
#[derive(Debug)]
pub struct Target<'a> {
    /// The kind.
    pub kind: &'a Kind,
    /// The namespace of the request.
    pub namespace: &'a str,
    /// The name of the request; empty for a creation.
    pub name: &'a str,
    /// Who writes, and how.
    pub writer: Writer,
    /// Nothing is kept.
    pub is_dry_run: bool,
}

impl Target<'_> {
    fn key(&self, name: &str) -> Key {
        (self.kind.resource(), self.namespace.to_owned(), name.to_owned())
    }
}

/// Creates an object from what was sent.
pub fn create(state: &mut State, target: &Target<'_>, sent: &Value) -> Result<Arc<Value>, Refusal> {
    let kind = target.kind;
    let mut object = decode(kind, sent)?;
    check_place(target, &object)?;
    check_namespace(state, target, meta(&object, "name"))?;
    if !meta(&object, "resourceVersion").is_empty() {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(Refusal::plain(500, "", message));
    }
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        set_or_remove(&mut object["metadata"], field, None);
    }
    if !target.writer.is_apply {
        managed::update(kind, None, &mut object, &target.writer);
    }
    let stamp = target.writer.stamp.as_str();
    admission::admit(kind, &mut object, || state.next_address(), stamp);
    identify(state, target, &mut object);
    let faults = faults(kind, &object);
    let name = meta(&object, "name").to_owned();
    if !faults.is_empty() {
        return Err(Refusal::invalid(kind, &name, &faults));
    }
    let key = target.key(&name);
    if state.store.get(&key).is_some() {
        return Err(Refusal::exists(kind, &name));
    }
    Ok(if target.is_dry_run { Arc::new(object) } else { state.store.put(&key, object) })
}

/// The names in the body and in the path must be the same.
fn check_place(target: &Target<'_>, object: &Value) -> Result<(), Refusal> {
    let namespace = meta(object, "namespace");
    if !namespace.is_empty() && namespace != target.namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Refusal::bad(message));
    }
    let name = meta(object, "name");
    if !target.name.is_empty() && !name.is_empty() && name != target.name {
        let message =
            format!("the name of the object ({name}) does not match the name on the URL ({})", target.name);
        return Err(Refusal::bad(&message));
    }
    Ok(())
}

fn check_namespace(state: &State, target: &Target<'_>, name: &str) -> Result<(), Refusal> {
    if !target.kind.is_namespaced {
        return Ok(());
    }
    let namespaces = state.kind("", "v1", "namespaces").ok_or_else(Refusal::no_such_path)?;
    let key = (namespaces.resource(), String::new(), target.namespace.to_owned());
    match state.store.get(&key) {
        None => Err(Refusal::not_found(&namespaces, target.namespace)),
        Some(it) if is_deleting(&it) => Err(Refusal::terminating(target.kind, name, target.namespace)),
        Some(_) => Ok(()),
    }
}

/// What the server alone sets in a new object.
fn identify(state: &mut State, target: &Target<'_>, object: &mut Value) {
    let uid = state.next_uid();
    let prefix = meta(object, "generateName").to_owned();
    let metadata = &mut object["metadata"];
    if metadata["name"].as_str().is_none_or(str::is_empty) && !prefix.is_empty() {
        metadata["name"] = json!(format!("{prefix}{}", state.next_suffix()));
    }
    metadata["uid"] = json!(uid);
    metadata["creationTimestamp"] = json!(target.writer.stamp);
    if target.kind.is_namespaced {
        metadata["namespace"] = json!(target.namespace);
    }
    if !target.kind.is_namespaced {
        set_or_remove(metadata, "namespace", None);
    }
    if target.kind.has_generation {
        metadata["generation"] = json!(1);
    }
}

/// What an object is to become.
pub enum Change<'a> {
    /// Another object, sent as a whole.
    Whole(&'a Value),
    /// What a patch makes of it.
    Patched(&'a dyn Fn(&Value) -> Result<Value, Refusal>),
    /// What server-side apply makes of it.
    Applied {
        /// The configuration.
        config: &'a Value,
        /// Fields of other managers are taken from them.
        is_forced: bool,
    },
}

/// Changes an object; one that does not exist is created where the kind or the way of writing says so. The
/// flag says whether it was created.
pub fn update(
    state: &mut State,
    target: &Target<'_>,
    change: &Change<'_>,
) -> Result<(Arc<Value>, bool), Refusal> {
    let kind = target.kind;
    let key = target.key(target.name);
    let Some(live) = state.store.get(&key) else {
        return upsert(state, target, change).map(|object| (object, true));
    };
    let sent = match change {
        Change::Whole(sent) => (*sent).clone(),
        Change::Patched(patch) => patch(&live)?,
        Change::Applied { config, is_forced } => {
            managed::applied(kind, Some(&live), config, &target.writer, *is_forced)?
        }
    };
    let mut new = decode(kind, &sent)?;
    check_place(target, &new)?;
    check_version(target, change, &live, &new)?;
    if matches!(change, Change::Whole(_)) && new["metadata"].get("managedFields").is_none() {
        new["metadata"]["managedFields"] = live["metadata"]["managedFields"].clone();
    }
    keep(kind, &live, &mut new, &target.writer.subresource);
    if !target.writer.is_apply {
        managed::update(kind, Some(&live), &mut new, &target.writer);
    }
    count(kind, &live, &mut new);
    check(target, &live, &new)?;
    new["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
    let object = if is_same(&live, &new) {
        live
    } else if target.is_dry_run {
        Arc::new(new)
    } else if is_finished(&new) {
        state.store.remove(&key);
        Arc::new(new)
    } else {
        state.store.put(&key, new)
    };
    Ok((object, false))
}

/// Whether the object may become this.
fn check(target: &Target<'_>, live: &Value, new: &Value) -> Result<(), Refusal> {
    let kind = target.kind;
    let mut found = faults_of_change(live, new);
    found.extend(faults(kind, new));
    if target.writer.subresource.is_empty() {
        found.extend(immutable::faults(kind, live, new));
    }
    if found.is_empty() { Ok(()) } else { Err(Refusal::invalid(kind, target.name, &found)) }
}

fn upsert(state: &mut State, target: &Target<'_>, change: &Change<'_>) -> Result<Arc<Value>, Refusal> {
    let kind = target.kind;
    let sent = match change {
        Change::Applied { config, is_forced } if target.writer.subresource.is_empty() => {
            if !meta(config, "uid").is_empty() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {}, and no existing object \
                    was found",
                    meta(config, "uid")
                );
                return Err(Refusal::conflict(kind, target.name, &why));
            }
            managed::applied(kind, None, config, &target.writer, *is_forced)?
        }
        Change::Whole(sent) if target.writer.subresource.is_empty() => {
            check_place(target, &decode(kind, sent)?)?;
            if !kind.creates_on_update {
                return Err(Refusal::not_found(kind, target.name));
            }
            (*sent).clone()
        }
        Change::Applied { .. } | Change::Whole(_) | Change::Patched(_) => {
            return Err(Refusal::not_found(kind, target.name));
        }
    };
    create(state, target, &sent)
}

/// Whether the client knows the object as it is.
fn check_version(target: &Target<'_>, change: &Change<'_>, live: &Value, new: &Value) -> Result<(), Refusal> {
    let (kind, name) = (target.kind, target.name);
    let (uid, version) = (meta(new, "uid"), meta(new, "resourceVersion"));
    if matches!(change, Change::Whole(_)) && !uid.is_empty() && uid != meta(live, "uid") {
        let path = if target.namespace.is_empty() { String::new() } else { format!("/{}", target.namespace) };
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{}{path}/{name}, ResourceVersion: 0, \
                AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            kind.plural,
            meta(live, "uid")
        );
        return Err(Refusal::conflict(kind, name, &why));
    }
    if version.is_empty() && !kind.updates_blindly {
        return Err(Refusal::unconditional(kind, name));
    }
    if !version.is_empty() && version != meta(live, "resourceVersion") {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        return Err(Refusal::conflict(kind, name, why));
    }
    Ok(())
}

/// Puts back what this way of writing does not change.
fn keep(kind: &Kind, live: &Value, new: &mut Value, subresource: &str) {
    let managed = new["metadata"]["managedFields"].clone();
    if subresource == "status" && kind.is_custom {
        let status = new.get("status").cloned();
        *new = live.clone();
        set_or_remove(new, "status", status);
        new["metadata"]["managedFields"] = managed;
    } else if subresource == "status" {
        set_or_remove(new, "spec", live.get("spec").cloned());
    } else if kind.has_status {
        set_or_remove(new, "status", live.get("status").cloned());
    }
    let (old, metadata) = (&live["metadata"], &mut new["metadata"]);
    for field in ["uid", "creationTimestamp"] {
        if metadata[field].is_null() || metadata[field] == "" {
            metadata[field] = old[field].clone();
        }
    }
    for field in
        ["name", "namespace", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]
    {
        set_or_remove(metadata, field, old.get(field).cloned());
    }
    if kind.built_in() == "Namespace" {
        new["spec"] = live["spec"].clone();
    }
    if kind.built_in() == "Service" {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if new["spec"].get(field).is_none() {
                set_or_remove(&mut new["spec"], field, live["spec"].get(field).cloned());
            }
        }
    }
    if let Some(metadata) = new["metadata"].as_object_mut() {
        metadata.retain(|_, it| !it.is_null());
    }
}

/// Counts a change of what is wanted: of a built-in kind the spec, of another all but metadata and status.
fn count(kind: &Kind, live: &Value, new: &mut Value) {
    let is_wanted = |(key, _): &(&String, &Value)| {
        if kind.is_custom {
            !(*key == "metadata" || (*key == "status" && kind.has_status))
        } else {
            *key == "spec"
        }
    };
    let is_same = {
        let wanted = |object| members(object).filter(is_wanted);
        wanted(live).eq(wanted(new))
    };
    if kind.has_generation && !is_same {
        new["metadata"]["generation"] =
            json!(live["metadata"]["generation"].as_i64().unwrap_or_default() + 1);
    }
}

/// Whether nothing is left to write: who owns a field since when does not count.
fn is_same(live: &Value, new: &Value) -> bool {
    let is_not = |field: &'static str| move |(key, _): &(&String, &Value)| *key != field;
    let owns_same = |one: &Value, other: &Value| {
        members(one).filter(is_not("time")).eq(members(other).filter(is_not("time")))
    };
    let (old, metadata) = (&live["metadata"], &new["metadata"]);
    members(live).filter(is_not("metadata")).eq(members(new).filter(is_not("metadata")))
        && members(old).filter(is_not("managedFields")).eq(members(metadata).filter(is_not("managedFields")))
        && owners(live).len() == owners(new).len()
        && owners(live).iter().zip(owners(new)).all(|(one, other)| owns_same(one, other))
}

/// Who owns which of its fields.
fn owners(object: &Value) -> &[Value] {
    object["metadata"]["managedFields"].as_array().map_or(&[], Vec::as_slice)
}

/// The members of an object.
fn members(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten()
}

/// Whether the last finalizer of an object that is being deleted has gone.
fn is_finished(object: &Value) -> bool {
    is_deleting(object)
        && finalizers(object).is_empty()
        && object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0
        && object["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty)
}
