//! Deletes objects: preconditions, grace, finalizers and what the garbage collector is to do.
//!
//! Source: staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go, rest/delete.go.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::answer::Refusal;
use super::kind::Kind;
use super::object::{finalizers, is_deleting, meta};
use super::state::State;
use super::store::Key;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Deletes an object as the options say; answers with what the API server does.
pub fn delete(
    state: &mut State,
    kind: &Kind,
    key: &Key,
    options: &Value,
    now: Timestamp,
) -> Result<Value, Refusal> {
    let name = key.2.as_str();
    let Some(live) = state.store.get(key) else { return Err(Refusal::not_found(kind, name)) };
    check(kind, &live, options)?;
    if kind.built_in() == "Namespace" {
        return Ok(terminate(state, key, &live, now));
    }
    let mut object = live.as_ref().clone();
    let was_deleting = is_deleting(&live);
    let grace = grace(kind, &live, options);
    direct(&mut object, options);
    let is_graceful = grace > 0;
    if kind.built_in() == "Pod" || !finalizers(&object).is_empty() {
        mark(&mut object, grace, was_deleting, now);
    }
    if is_graceful || !finalizers(&object).is_empty() {
        let kept = if object == *live { live } else { state.store.put(key, object) };
        return Ok(kept.as_ref().clone());
    }
    if kind.built_in() == "Pod" && object != *live {
        // That a pod ends is a write of its own.
        state.store.put(key, object.clone());
    }
    let removed = state.store.remove(key);
    if !kind.returns_deleted {
        return Ok(success(kind, &live));
    }
    let version = removed.map(|it| it["metadata"]["resourceVersion"].clone()).unwrap_or_default();
    object["metadata"]["resourceVersion"] = version;
    Ok(object)
}

fn check(kind: &Kind, live: &Value, options: &Value) -> Result<(), Refusal> {
    let name = meta(live, "name");
    let wanted = |field: &str| options["preconditions"][field].as_str().map(str::to_owned);
    let (uid, version) = (meta(live, "uid"), meta(live, "resourceVersion"));
    if let Some(wanted) = wanted("uid").filter(|it| it != uid) {
        if kind.built_in() == "Namespace" {
            let why =
                format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}");
            return Err(Refusal::conflict(kind, name, &why));
        }
        let why = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have \
                been deleted and then recreated"
        );
        return Err(Refusal::precondition(kind, name, &why));
    }
    if let Some(wanted) = wanted("resourceVersion").filter(|it| it != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
                ({version}). The object might have been modified"
        );
        return Err(Refusal::precondition(kind, name, &why));
    }
    Ok(())
}

/// For how many seconds the object lives on: only a pod does, on a Kubernetes node, until its kubelet deletes
/// it with no grace.
fn grace(kind: &Kind, live: &Value, options: &Value) -> i64 {
    let is_over = live["status"]["phase"] == "Failed" || live["status"]["phase"] == "Succeeded";
    if kind.built_in() != "Pod" || live["spec"]["nodeName"].as_str().is_none_or(str::is_empty) || is_over {
        return 0;
    }
    let wanted = options["gracePeriodSeconds"].as_i64();
    let own = live["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    match live["metadata"]["deletionGracePeriodSeconds"].as_i64() {
        Some(running) => wanted.map_or(running, |it| it.min(running)),
        None => wanted.unwrap_or(own),
    }
}

/// Says by a finalizer what the garbage collector does with the dependents.
fn direct(object: &mut Value, options: &Value) {
    let policy = options["propagationPolicy"].as_str();
    let policy = policy.or_else(|| match options["orphanDependents"].as_bool() {
        Some(true) => Some("Orphan"),
        Some(false) => Some("Background"),
        None => None,
    });
    let Some(policy) = policy else { return };
    let mut all = finalizers(object);
    all.retain(|it| it != ORPHAN && it != FOREGROUND);
    all.extend(match policy {
        "Orphan" => Some(ORPHAN.to_owned()),
        "Foreground" => Some(FOREGROUND.to_owned()),
        _ => None,
    });
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    metadata.remove("finalizers");
    if !all.is_empty() {
        metadata.insert("finalizers".to_owned(), json!(all));
    }
}

fn mark(object: &mut Value, grace: i64, was_deleting: bool, now: Timestamp) {
    let metadata = &mut object["metadata"];
    if was_deleting && metadata["deletionGracePeriodSeconds"].as_i64() == Some(grace) {
        return;
    }
    if let Some(generation) = metadata["generation"].as_i64().filter(|_| !was_deleting) {
        metadata["generation"] = json!(generation + 1);
    }
    let at = now + SignedDuration::from_secs(grace);
    metadata["deletionTimestamp"] = json!(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    metadata["deletionGracePeriodSeconds"] = json!(grace);
}

/// A namespace goes when its controller has emptied it and has removed its finalizer.
fn terminate(state: &mut State, key: &Key, live: &Arc<Value>, now: Timestamp) -> Value {
    if is_deleting(live) {
        return live.as_ref().clone();
    }
    let mut object = live.as_ref().clone();
    object["metadata"]["deletionTimestamp"] = json!(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    object["status"]["phase"] = json!("Terminating");
    state.store.put(key, object).as_ref().clone()
}

fn success(kind: &Kind, live: &Value) -> Value {
    let mut details = json!({"name": meta(live, "name"), "kind": kind.plural, "uid": meta(live, "uid")});
    if !kind.group.is_empty() {
        details["group"] = json!(kind.group);
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
