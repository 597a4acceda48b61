//! The transcript of a life: every write and call, in the order of the controller that made it, and what is
//! listed at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use ec2sim::JournalEntry;
use freehold::api::keys;
use freehold::api::{Database, EventReason, Node, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use serde_json::Value;

use super::mask::Mask;
use super::step::{Place, Step, closing, is_conflict};
use super::writes::seen;
use crate::kit::env::Env as _;
use crate::kit::rig_env::RigEnv;

/// The one database of every life.
pub const DATABASE: &str = "orders";

/// Events of a host that is slow: how often they come depends on timing.
const OF_SLOWNESS: [EventReason; 2] = [EventReason::MachineSuspected, EventReason::RepairPostponed];

/// What a closing patch tells of a moment only: when the engine's run was first seen, and since when a
/// kubelet is not Ready, which a slow host sees before the loss.
const MOMENTS: [&str; 2] = ["run.since", "notReadySince"];

/// From where on a life is written down.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    seen: usize,
    journal: u64,
}

impl Mark {
    /// Now.
    pub fn of(env: &RigEnv) -> Self {
        Self { seen: seen(env).len(), journal: env.mark() }
    }
}

/// What a life was, in two texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// Calls, writes, and conditions without their words.
    pub calls: String,
    /// Words: messages, causes, reasons, events.
    pub words: String,
}

/// What one controller does for one object.
#[derive(Default)]
struct Part {
    /// Each with its place: after that entry of EC2's journal, and after that write.
    steps: Vec<((u64, usize), Step)>,
    /// The values of each field of its closing status patches.
    fields: BTreeMap<String, Vec<String>>,
}

/// The life of a test environment since a mark.
pub async fn transcript(env: &RigEnv, title: &str, from: Mark) -> Transcript {
    let (seen, journal) = (seen(env), env.calls_since(0));
    let mask = Mask::of(env, &seen, &journal);
    let owners = owners(&journal);
    let mut parts: BTreeMap<String, Part> = BTreeMap::new();
    let mut events = BTreeSet::new();
    let (mut declared_lost, mut ec2) = (String::new(), Vec::new());
    for (number, write) in
        seen.iter().enumerate().skip(from.seen).filter(|(_, seen)| seen.is_write() && !is_conflict(seen))
    {
        let place = Place::of(&write.path);
        let body: Value = serde_json::from_str(&write.body).unwrap_or_default();
        if place.resource.starts_with("events") {
            events.extend(event(&body, &mask));
            continue;
        }
        let by = by(&place, &body, &mask, &declared_lost);
        if !body["status"]["fence"].is_null() {
            declared_lost.clone_from(&by);
        }
        let part = parts.entry(by).or_default();
        match closing(write) {
            Some(status) => list(&mut part.fields, "", &mask.value(&status)),
            // Behind the calls that it followed.
            None => part.steps.push(((write.journal, number + 1), Step::write(write, &mask))),
        }
    }
    for entry in journal.iter().filter(|entry| entry.seq > from.journal && !is_read(entry)) {
        let launched = entry.resources.iter().find_map(|id| env.ec2().instance(id));
        let user_data = launched.filter(|_| entry.action == "RunInstances").and_then(|view| view.user_data);
        let by = mask.text(&owner(entry, &owners));
        ec2.push(format!("{} of {by}", entry.action));
        parts.entry(by).or_default().steps.push(((entry.seq, 0), Step::call(entry, &mask, user_data)));
    }
    ec2.dedup();
    written(title, parts, &ec2, &events, &ends(env, &mask).await)
}

fn is_read(entry: &JournalEntry) -> bool {
    ec2sim::reads(&entry.action)
}

/// Whose something is that carries these tags.
fn owner_by_tags(tags: &BTreeMap<String, String>) -> Option<String> {
    let kind = if tags.contains_key(keys::NODE_UID_TAG) { "Node" } else { "Volume" };
    Some(format!("{kind} {}", tags.get("Name")?))
}

/// Whose each instance, EBS volume and snapshot is.
fn owners(journal: &[JournalEntry]) -> BTreeMap<String, String> {
    let made = journal.iter().filter_map(|entry| Some((&entry.resources, owner_by_tags(&entry.tags)?)));
    let mut owners = BTreeMap::new();
    for (ids, owner) in made {
        for id in ids {
            owners.entry(id.clone()).or_insert_with(|| owner.clone());
        }
    }
    owners
}

/// The object whose controller made a call: the owner of what it makes or is about.
fn owner(entry: &JournalEntry, owners: &BTreeMap<String, String>) -> String {
    let ours = ["i-", "vol-", "snap-"];
    let about = entry.resources.iter().filter(|id| ours.iter().any(|prefix| id.starts_with(prefix)));
    let known = || about.clone().find_map(|id| owners.get(id)).cloned();
    owner_by_tags(&entry.tags).or_else(known).unwrap_or_else(|| "nobody".to_owned())
}

/// The object whose controller made a write. Children are their Database's; what both a Database's and a
/// Node's controller write is recognised by the field. `declared_lost`: the Node that was declared lost last.
fn by(place: &Place, body: &Value, mask: &Mask, declared_lost: &str) -> String {
    let database = format!("Database {DATABASE}");
    let name = mask.text(&place.name);
    let is_own = place.subresource == "status" || !body["metadata"]["finalizers"].is_null();
    match place.resource.as_str() {
        "nodes.freehold.dev" if is_own => format!("Node {name}"),
        "volumes.freehold.dev" if is_own => format!("Volume {name}"),
        "persistentvolumes" | "persistentvolumeclaims" => format!("Volume {DATABASE}-<hash>"),
        "nodes" if body["metadata"]["labels"].is_null() => {
            format!("Node {DATABASE}-<hash>-{}", name.trim_start_matches("<core-node-").trim_end_matches('>'))
        }
        "pods" if !body["gracePeriodSeconds"].is_null() => declared_lost.to_owned(),
        _ => database,
    }
}

/// An event in words: its object, its type, its reason and its note.
fn event(body: &Value, mask: &Mask) -> Option<String> {
    let text = |value: &Value| mask.text(value.as_str().unwrap_or_default());
    let reason = text(&body["reason"]);
    // Who leads is no fact of a database.
    let is_of_lease = body["regarding"]["kind"] == "Lease";
    if is_of_lease || OF_SLOWNESS.iter().any(|slow| slow.as_str() == reason) {
        return None;
    }
    // What is missing first, of several things, depends on timing.
    let note = if reason == EventReason::NotReady.as_str() {
        "<what was missing first>".to_owned()
    } else {
        text(&body["note"])
    };
    let about = &body["regarding"];
    Some(format!(
        "{} {}: {} {reason}: {note}",
        text(&about["kind"]),
        text(&about["name"]),
        text(&body["type"])
    ))
}

/// Adds what a closing patch writes, field by field; conditions have their own place.
fn list(written: &mut BTreeMap<String, Vec<String>>, place: &str, value: &Value) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let below = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
                if !["applied", "conditions", "observedGeneration"].contains(&below.as_str())
                    && !MOMENTS.contains(&below.as_str())
                {
                    list(written, &below, field);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let values = written.entry(place.to_owned()).or_default();
            let value = value.to_string();
            if values.last() != Some(&value) {
                values.push(value);
            }
        }
    }
}

/// The conditions of every object that is there.
async fn ends(env: &RigEnv, mask: &Mask) -> BTreeMap<String, Vec<Condition>> {
    let mut ends = BTreeMap::new();
    let databases = env.list::<Database>().await;
    ends.extend(databases.iter().map(|it| (format!("Database {}", it.name_any()), it.conditions().to_vec())));
    let nodes = env.list::<Node>().await;
    ends.extend(
        nodes.iter().map(|it| (mask.text(&format!("Node {}", it.name_any())), it.conditions().to_vec())),
    );
    let volumes = env.list::<Volume>().await;
    ends.extend(
        volumes.iter().map(|it| (mask.text(&format!("Volume {}", it.name_any())), it.conditions().to_vec())),
    );
    for condition in ends.values_mut().flatten() {
        condition.message = mask.text(&condition.message);
    }
    ends
}

/// The two texts.
fn written(
    title: &str,
    parts: BTreeMap<String, Part>,
    ec2: &[String],
    events: &BTreeSet<String>,
    ends: &BTreeMap<String, Vec<Condition>>,
) -> Transcript {
    let mut calls = format!("# {title}: writes and calls.\n");
    let mut words = format!("# {title}: words.\n");
    for (by, Part { mut steps, fields }) in parts {
        steps.sort_by_key(|(place, _)| *place);
        let steps = without_repeats(steps.into_iter().map(|(_, step)| step));
        let said = |step: &Step| {
            let what = step.what.clone();
            step.words.clone().into_iter().map(move |(place, text)| format!("{what}, {place}: {text}\n"))
        };
        section(
            &mut calls,
            &format!("{by}: writes and calls, in order"),
            steps.iter().map(|step| format!("{}\n", step.text())),
        );
        section(&mut words, &format!("{by}: in its writes, in order"), steps.iter().flat_map(said));
        let fields = fields.iter().map(|(field, values)| format!("{field}: {}\n", values.join(", then ")));
        section(
            &mut calls,
            &format!("{by}: fields of its closing status patches, each with its values in order"),
            fields,
        );
    }
    section(&mut calls, "EC2: the calls of all, in order", ec2.iter().map(|call| format!("{call}\n")));
    section(&mut words, "events", events.iter().map(|event| format!("{event}\n")));
    let all = || {
        ends.iter()
            .flat_map(|(object, conditions)| conditions.iter().map(move |condition| (object, condition)))
    };
    let end = "conditions at the end";
    section(&mut calls, end, all().map(|(object, it)| format!("{object}: {}={}\n", it.type_, it.status)));
    section(
        &mut words,
        end,
        all().map(|(object, it)| format!("{object}: {}: {}: {}\n", it.type_, it.reason, it.message)),
    );
    Transcript { calls, words }
}

/// Adds a section, if there is anything in it.
fn section(text: &mut String, head: &str, items: impl Iterator<Item = String>) {
    let items = items.collect::<String>();
    if !items.is_empty() {
        write!(text, "\n== {head}\n\n{}\n", items.trim_end()).unwrap();
    }
}

/// Without each step that does again what the last one about the same thing did: how often a pass repeats it
/// depends on timing.
fn without_repeats(steps: impl Iterator<Item = Step>) -> Vec<Step> {
    let mut last: BTreeMap<String, Step> = BTreeMap::new();
    let mut kept = Vec::new();
    for step in steps {
        let before = step.may_repeat().and_then(|about| last.insert(about, step.clone()));
        if before.as_ref() != Some(&step) {
            kept.push(step);
        }
    }
    kept
}
