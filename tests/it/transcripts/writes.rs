//! The operator's writes to the API server in memory, as requests with their paths, in the order in which
//! they were carried out.

use freehold_rig::{Change, Verb, Write};

use crate::kit::env::Env as _;
use crate::kit::rig_env::RigEnv;
use crate::kit::tap::{Object, Seen};

/// Its Lease, which it renews for ever.
const LEASES: &str = "leases.coordination.k8s.io";

/// How the operator's field managers begin. Where a write names none, the server takes one from the user
/// agent.
const MANAGER: &str = "freehold-";

/// All of them so far.
pub fn seen(env: &RigEnv) -> Vec<Seen> {
    let (changes, journal) = (env.house.server.changes(), env.ec2().journal());
    let is_own = |it: &&Write| it.caller.starts_with("operator-") && it.resource != LEASES;
    let all = env.house.server.journal();
    let request = |write: &Write| {
        let before = journal.partition_point(|entry| entry.time <= write.at);
        let is_named = write.manager.starts_with(MANAGER);
        Seen {
            method: method(write.verb).to_owned(),
            path: path(write),
            query: if is_named { format!("fieldManager={}", write.manager) } else { String::new() },
            content_type: write.content_type.clone(),
            body: write.body.to_string(),
            object: changes.iter().find(|change| is_of(change, write)).and_then(object),
            journal: before.checked_sub(1).map_or(0, |last| journal[last].seq),
            status: write.code,
        }
    };
    all.iter().filter(is_own).map(request).collect()
}

fn method(verb: Verb) -> &'static str {
    match verb {
        Verb::Get | Verb::List | Verb::Watch => "GET",
        Verb::Create => "POST",
        Verb::Update => "PUT",
        Verb::Patch => "PATCH",
        Verb::Delete | Verb::DeleteCollection => "DELETE",
    }
}

/// The path of a request; no kind has two versions here.
fn path(write: &Write) -> String {
    let (plural, group) = write.resource.split_once('.').unwrap_or((&write.resource, ""));
    let root = if group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{group}/v1") };
    let namespace = match write.namespace.as_str() {
        "" => String::new(),
        namespace => format!("/namespaces/{namespace}"),
    };
    let parts = [write.name.as_str(), write.subresource.as_str()];
    let parts = parts.iter().filter(|part| write.verb != Verb::Create && !part.is_empty());
    parts.fold(format!("{root}{namespace}/{plural}"), |path, part| format!("{path}/{part}"))
}

/// Whether this write made this change.
fn is_of(change: &Change, write: &Write) -> bool {
    let object = change.new.as_deref().or(change.old.as_deref());
    let is_named = object.is_some_and(|it| it["metadata"]["name"] == write.name.as_str());
    change.at == write.at && change.caller == write.caller && change.resource == write.resource && is_named
}

/// The object of a change.
fn object(change: &Change) -> Option<Object> {
    let object = change.new.as_deref().or(change.old.as_deref())?;
    let text = |field: &serde_json::Value| field.as_str().unwrap_or_default().to_owned();
    let group = change.resource.split_once('.').map(|(_, group)| group).unwrap_or_default();
    Some(Object {
        group: group.to_owned(),
        kind: text(&object["kind"]),
        name: text(&object["metadata"]["name"]),
        uid: text(&object["metadata"]["uid"]),
    })
}
