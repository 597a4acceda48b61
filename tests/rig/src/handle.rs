//! Carries a request out: finds the kind, and sends each verb where it is done.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::answer::{Cause, Refusal};
use super::clock::Clock;
use super::delete;
use super::kind::Kind;
use super::managed::Writer;
use super::object::{decode, meta, parse};
use super::read;
use super::request::{Call, Verb};
use super::signal::Signals;
use super::state::State;
use super::strategic;
use super::watch::{self, Body};
use super::write::{self, Change, Target};

/// What a request is answered with.
pub enum Answer {
    /// A status code and one document.
    Object(u16, Arc<Value>),
    /// The text of a list.
    List(String),
    /// A stream of events.
    Watch(Body),
}

/// Carries it out.
pub fn handle(
    state: &Arc<Mutex<State>>,
    signals: &Signals,
    call: &Call,
    clock: &Clock,
) -> Result<Answer, Refusal> {
    let kind = find(&state.lock(), call)?;
    check_path(&kind, call)?;
    if call.verb == Verb::Watch {
        return watch::body(state, signals, kind, call).map(Answer::Watch);
    }
    let mut state = state.lock();
    let (code, object) = match call.verb {
        Verb::Get => (200, get(&state, &kind, call)?),
        Verb::List | Verb::Watch => return read::list(&mut state, &kind, call).map(Answer::List),
        Verb::Create if call.subresource == "binding" => {
            (201, Arc::new(bind(&mut state, &kind, call, clock)?))
        }
        Verb::Create => (201, create(&mut state, &kind, call, clock)?),
        Verb::Update if call.subresource == "finalize" => (200, Arc::new(finalize(&mut state, &kind, call)?)),
        Verb::Update => update(&mut state, &kind, call, clock)?,
        Verb::Patch => patch(&mut state, &kind, call, clock)?,
        Verb::Delete => {
            let answer = remove(&mut state, &kind, call, clock)?;
            return Ok(Answer::Object(200, Arc::new(answer)));
        }
        Verb::DeleteCollection => return remove_all(&mut state, &kind, call, clock).map(Answer::List),
    };
    let object = if call.metadata_only { Arc::new(read::metadata_of(&object)) } else { object };
    Ok(Answer::Object(code, object))
}

fn find(state: &State, call: &Call) -> Result<Arc<Kind>, Refusal> {
    let is_built_in =
        state.kinds.iter().any(|it| !it.is_custom && it.group == call.group && it.version == call.version);
    let missing = if is_built_in { Refusal::no_such_path } else { Refusal::no_such_group };
    state.kind(&call.group, &call.version, &call.plural).ok_or_else(missing)
}

/// Whether the kind has this subresource and is where the path says.
fn check_path(kind: &Kind, call: &Call) -> Result<(), Refusal> {
    let is_known = match call.subresource.as_str() {
        "" => true,
        "status" => kind.has_status,
        "binding" => kind.built_in() == "Pod",
        "finalize" => kind.built_in() == "Namespace",
        _ => false,
    };
    let needs_namespace =
        kind.is_namespaced && !matches!(call.verb, Verb::List | Verb::Watch) && call.namespace.is_empty();
    if needs_namespace && call.verb == Verb::Create && call.name.is_empty() {
        return Err(Refusal::no_such_method());
    }
    if !is_known || needs_namespace || (!kind.is_namespaced && !call.namespace.is_empty()) {
        return Err(Refusal::no_such_path());
    }
    Ok(())
}

fn target<'a>(kind: &'a Kind, call: &'a Call, clock: &Clock, is_apply: bool) -> Target<'a> {
    let writer = Writer {
        manager: call.manager.clone(),
        is_apply,
        subresource: call.subresource.clone(),
        stamp: clock.stamp(),
    };
    Target { kind, namespace: &call.namespace, name: &call.name, writer, is_dry_run: call.is_dry_run() }
}

fn get(state: &State, kind: &Kind, call: &Call) -> Result<Arc<Value>, Refusal> {
    let key = (kind.resource(), call.namespace.clone(), call.name.clone());
    state.store.get(&key).ok_or_else(|| Refusal::not_found(kind, &call.name))
}

fn create(state: &mut State, kind: &Kind, call: &Call, clock: &Clock) -> Result<Arc<Value>, Refusal> {
    let sent = parse(&call.body)?;
    write::create(state, &target(kind, call, clock, false), &sent)
}

/// One of the namespaces that every cluster has.
pub fn namespace(state: &mut State, name: &str, stamp: &str) -> Result<(), Refusal> {
    let kind = state.kind("", "v1", "namespaces").ok_or_else(Refusal::no_such_path)?;
    by_server(state, &kind, &json!({"metadata": {"name": name}}), stamp)
}

/// A resource definition whose kinds are served.
pub fn definition(state: &mut State, definition: &Value, stamp: &str) -> Result<(), Refusal> {
    let kind = state.kind("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let kind = kind.ok_or_else(Refusal::no_such_path)?;
    let mut served = definition.clone();
    served["status"] = json!({"conditions": [{"type": "Established", "status": "True"}],
        "acceptedNames": definition["spec"]["names"],
        "storedVersions": [definition["spec"]["versions"][0]["name"]]});
    by_server(state, &kind, &served, stamp)
}

/// An object that the server itself makes.
fn by_server(state: &mut State, kind: &Kind, object: &Value, stamp: &str) -> Result<(), Refusal> {
    let writer = Writer {
        manager: "kube-apiserver".to_owned(),
        is_apply: false,
        subresource: String::new(),
        stamp: stamp.to_owned(),
    };
    let target = Target { kind, namespace: "", name: "", writer, is_dry_run: false };
    write::create(state, &target, object).map(drop)
}

fn update(state: &mut State, kind: &Kind, call: &Call, clock: &Clock) -> Result<(u16, Arc<Value>), Refusal> {
    let sent = parse(&call.body)?;
    let changed = write::update(state, &target(kind, call, clock, false), &Change::Whole(&sent))?;
    Ok(coded(changed))
}

fn coded((object, is_new): (Arc<Value>, bool)) -> (u16, Arc<Value>) {
    (if is_new { 201 } else { 200 }, object)
}

fn patch(state: &mut State, kind: &Kind, call: &Call, clock: &Clock) -> Result<(u16, Arc<Value>), Refusal> {
    let sent = || {
        serde_json::from_slice::<Value>(&call.body).map_err(|error| {
            let why =
                if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() };
            Refusal::bad(&format!("error decoding patch: {why}"))
        })
    };
    let of = |patch: &dyn Fn(&Value) -> Result<Value, Refusal>, state: &mut State| {
        write::update(state, &target(kind, call, clock, false), &Change::Patched(patch)).map(coded)
    };
    match call.content_type.as_str() {
        "application/merge-patch+json" => {
            let sent = sent()?;
            if let Value::String(_) | Value::Array(_) = &sent {
                let got = if sent.is_string() { "string" } else { "array" };
                let why =
                    format!("json: cannot unmarshal {got} into Go value of type map[string]interface {{}}");
                return Err(Refusal::bad(&format!("error decoding patch: {why}")));
            }
            let merged = |live: &Value| {
                let mut merged = live.clone();
                json_patch::merge(&mut merged, &sent);
                Ok(merged)
            };
            of(&merged, state)
        }
        "application/json-patch+json" => {
            let sent = sent()?;
            of(&|live| changed(live, &sent), state)
        }
        "application/strategic-merge-patch+json" if !kind.is_custom => {
            let sent = sent()?;
            of(&|live| Ok(strategic::patched(live, &sent, &kind.schema)), state)
        }
        "application/apply-patch+yaml" => apply(state, kind, call, clock, &sent()?),
        "application/strategic-merge-patch+json" => Err(Refusal::plain(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: \
                application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )),
        _ => Err(Refusal {
            status: json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "415: Unsupported Media Type", "reason": "UnsupportedMediaType", "details": {},
                "code": 415}),
            ..Refusal::plain(415, "UnsupportedMediaType", "")
        }),
    }
}

/// A JSON patch as the API server applies it: it replaces what is missing, too.
fn changed(live: &Value, sent: &Value) -> Result<Value, Refusal> {
    let mut object = live.clone();
    for operation in sent.as_array().cloned().unwrap_or_default() {
        let mut operation = operation;
        let path = operation["path"].as_str().unwrap_or_default().to_owned();
        if operation["op"] == "replace" && object.pointer(&path).is_none() {
            operation["op"] = json!("add");
        }
        let one = serde_json::from_value(json!([operation])).map_err(|_| Refusal::rejected_patch())?;
        let one: json_patch::Patch = one;
        json_patch::patch(&mut object, &one).map_err(|_| Refusal::rejected_patch())?;
    }
    Ok(object)
}

fn apply(
    state: &mut State,
    kind: &Kind,
    call: &Call,
    clock: &Clock,
    config: &Value,
) -> Result<(u16, Arc<Value>), Refusal> {
    if call.parameter("fieldManager").is_empty() {
        let cause = Cause::required("fieldManager", "is required for apply patch");
        let mut refusal = Refusal::invalid(kind, "", &[cause]);
        let message = "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for \
            apply patch";
        refusal.status["message"] = json!(message);
        refusal.status["details"]["group"] = json!("meta.k8s.io");
        refusal.status["details"]["kind"] = json!("PatchOptions");
        return Err(refusal);
    }
    let (group_version, said) = (config["apiVersion"].as_str(), config["kind"].as_str());
    if group_version != Some(&kind.api_version()) || said != Some(&kind.kind) {
        let (group, version) = group_version.and_then(|it| it.split_once('/')).unwrap_or_default();
        return Err(Refusal::bad(&format!(
            "invalid object type: {group}/{version}, Kind={}",
            said.unwrap_or_default()
        )));
    }
    if config["metadata"].get("managedFields").is_some() {
        return Err(Refusal::bad("metadata.managedFields must be nil"));
    }
    let mut config = config.clone();
    if meta(&config, "name").is_empty() {
        config["metadata"]["name"] = json!(call.name);
    }
    let change = Change::Applied { config: &config, is_forced: call.parameter("force") == "true" };
    write::update(state, &target(kind, call, clock, true), &change).map(coded)
}

/// What the scheduler does with a pod.
fn bind(state: &mut State, kind: &Kind, call: &Call, clock: &Clock) -> Result<Value, Refusal> {
    let sent = parse(&call.body)?;
    let node = sent["target"]["name"].clone();
    let key = (kind.resource(), call.namespace.clone(), call.name.clone());
    let live = state.store.get(&key).ok_or_else(|| Refusal::not_found(kind, &call.name))?;
    let mut pod = live.as_ref().clone();
    if pod["spec"].get("nodeName").is_some() {
        let why = format!("pod {} is already assigned to node {}", call.name, pod["spec"]["nodeName"]);
        let binding = Kind { plural: "pods/binding".to_owned(), ..kind.clone() };
        return Err(Refusal::conflict(&binding, &call.name, &why));
    }
    pod["spec"]["nodeName"] = node;
    pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": clock.stamp()}]);
    state.store.put(&key, pod);
    Ok(json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}))
}

/// What the namespace controller does when a namespace is empty.
fn finalize(state: &mut State, kind: &Kind, call: &Call) -> Result<Value, Refusal> {
    let sent = parse(&call.body)?;
    let key = (kind.resource(), String::new(), call.name.clone());
    let live = state.store.get(&key).ok_or_else(|| Refusal::not_found(kind, &call.name))?;
    let mut object = live.as_ref().clone();
    object["spec"] = decode(kind, &sent)?["spec"].clone();
    let is_empty = object["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty);
    let is_deleting = object["metadata"]["deletionTimestamp"].is_string();
    if is_empty && is_deleting && object["metadata"].get("finalizers").is_none() {
        state.store.remove(&key);
        return Ok(object);
    }
    Ok(state.store.put(&key, object).as_ref().clone())
}

fn options(call: &Call) -> Result<Value, Refusal> {
    let mut options = if call.body.is_empty() { json!({}) } else { parse(&call.body)? };
    if let Ok(seconds) = call.parameter("gracePeriodSeconds").parse::<i64>() {
        options["gracePeriodSeconds"] = json!(seconds);
    }
    if !call.parameter("propagationPolicy").is_empty() {
        options["propagationPolicy"] = json!(call.parameter("propagationPolicy"));
    }
    Ok(options)
}

fn remove(state: &mut State, kind: &Kind, call: &Call, clock: &Clock) -> Result<Value, Refusal> {
    let key = (kind.resource(), call.namespace.clone(), call.name.clone());
    delete::delete(state, kind, &key, &options(call)?, clock.now())
}

/// Deletes what a list shows, and answers with the list.
fn remove_all(state: &mut State, kind: &Kind, call: &Call, clock: &Clock) -> Result<String, Refusal> {
    let selector = read::selector(kind, call)?;
    let listed = read::list(state, kind, call)?;
    let options = options(call)?;
    for (key, object) in state.store.list(&kind.resource(), &call.namespace) {
        if selector.selects(&object) {
            delete::delete(state, kind, &key, &options, clock.now())?;
        }
    }
    Ok(listed)
}
