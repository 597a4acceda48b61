//! What must hold over the whole way of a life, each rule a fold over what was written, called and changed.

use std::collections::{BTreeMap, BTreeSet};

use ec2sim::{AttachmentState, Fate, InstanceState, JournalEntry, Phase, Transition};
use freehold::cloud::identity::{self, Kind};
use freehold_rig::{Change, Verb, Write};
use jiff::Timestamp;
use serde_json::Value;

use super::house::House;

/// What happened in a life.
pub struct Record {
    /// The requests that may have written.
    pub writes: Vec<Write>,
    /// The changes of objects.
    pub changes: Vec<Change>,
    /// The calls to EC2.
    pub calls: Vec<JournalEntry>,
    /// The changes of EC2's resources.
    pub transitions: Vec<Transition>,
    /// What the machines saw that must never be.
    pub violations: Vec<(Timestamp, String)>,
}

/// A rule: nothing, or how it was broken.
type Rule = fn(&Record) -> Result<(), String>;

/// Every rule, by its name in `properties`.
pub const RULES: [(&str, Rule); 10] = [
    ("a Node has at most one live instance", one_live_instance),
    ("an attempt makes one resource", one_resource_an_attempt),
    ("the intent is written before the call", intent_first),
    ("the finalizer is removed when nothing is left", finalizer_last),
    ("a volume is destroyed only as its policy says", volumes_survive),
    ("a volume leaves its machine only when nothing uses it", single_writer),
    ("a deletion names the object's UID", deletions_name_the_uid),
    ("credentials never change", credentials_are_stable),
    ("no secret leaves its Secret", no_secret_leaks),
    ("the operator neither attaches nor detaches", attaches_nothing),
];

/// The first rule that was broken.
pub fn check(record: &Record) -> Result<(), String> {
    RULES.iter().try_for_each(|(name, rule)| rule(record).map_err(|why| format!("{name}: {why}")))
}

impl House {
    /// What has happened so far.
    pub fn record(&self) -> Record {
        Record {
            writes: self.server.journal(),
            changes: self.server.changes(),
            calls: self.ec2.journal(),
            transitions: self.ec2.transitions(),
            violations: self.violations.lock().clone(),
        }
    }
}

const NODE_UID: &str = "freehold.dev/node-uid";
const VOLUME_UID: &str = "freehold.dev/volume-uid";

fn is_operator(caller: &str) -> bool {
    caller.starts_with("operator")
}

fn one_live_instance(record: &Record) -> Result<(), String> {
    let live =
        [InstanceState::Pending, InstanceState::Running, InstanceState::Stopping, InstanceState::Stopped];
    let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    for change in &record.transitions {
        if let Some(uid) = change.tags.get(NODE_UID) {
            owners.insert(&change.id, uid);
        }
        let Some(uid) = owners.get(change.id.as_str()) else { continue };
        let of_node = all.entry(uid).or_default();
        let is_live = matches!(&change.after, Some(Phase::Instance(state)) if live.contains(state));
        if is_live {
            of_node.insert(&change.id);
        } else {
            of_node.remove(change.id.as_str());
        }
        if of_node.len() > 1 {
            return Err(format!("at {}: Node {uid} has {of_node:?}", change.at));
        }
    }
    Ok(())
}

fn is_creation(entry: &JournalEntry) -> bool {
    ["RunInstances", "CreateVolume"].contains(&entry.action.as_str()) && !entry.dry_run
}

fn one_resource_an_attempt(record: &Record) -> Result<(), String> {
    let mut made: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    let done = |entry: &&JournalEntry| matches!(entry.fate, Fate::Committed | Fate::Lost);
    for entry in record.calls.iter().filter(|it| is_creation(it)).filter(done) {
        let prefix = if entry.action == "RunInstances" { "i-" } else { "vol-" };
        let key = (entry.action.as_str(), entry.token.as_deref().unwrap_or_default());
        let ids = entry.resources.iter().filter(|id| id.starts_with(prefix)).map(String::as_str);
        let of_token = made.entry(key).or_default();
        of_token.extend(ids);
        if of_token.len() > 1 {
            return Err(format!("token {} made {of_token:?}", key.1));
        }
    }
    Ok(())
}

/// The intent with the token stands in the object before the call, under a finalizer.
fn intent_first(record: &Record) -> Result<(), String> {
    for entry in record.calls.iter().filter(|it| is_creation(it)).filter(|entry| entry.late_of.is_none()) {
        let (uid, kind) = match (entry.tags.get(NODE_UID), entry.tags.get(VOLUME_UID)) {
            (Some(uid), _) => (uid, Kind::Node),
            (None, Some(uid)) => (uid, Kind::Volume),
            (None, None) => return Err(format!("a creating call without its owner's tag: {entry:?}")),
        };
        let attempt =
            entry.tags.get("freehold.dev/attempt").and_then(|it| it.parse().ok()).unwrap_or_default();
        let token = identity::token("rig", kind, uid, attempt).0;
        if entry.token.as_deref() != Some(&token) {
            return Err(format!("the token of {uid} is not its identity's: {entry:?}"));
        }
        let before = record.changes.iter().filter(|change| change.at <= entry.time);
        let last =
            before.filter_map(|change| change.new.as_deref()).rfind(|it| it["metadata"]["uid"] == *uid);
        let is_announced = last
            .is_some_and(|it| it["status"]["creation"]["clientToken"] == token.as_str() && has_finalizer(it));
        if !is_announced {
            return Err(format!("{uid} does not announce {token} at {}: {last:?}", entry.time));
        }
    }
    Ok(())
}

fn has_finalizer(object: &Value) -> bool {
    let all = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    all.into_iter().any(|it| it == "freehold.dev/finalizer")
}

/// When the operator takes its finalizer off a Node, no instance of it lives or can still come to life.
fn finalizer_last(record: &Record) -> Result<(), String> {
    let is_of = |change: &&Change| change.resource == "nodes.freehold.dev" && is_operator(&change.caller);
    for change in record.changes.iter().filter(is_of) {
        let (Some(old), new) = (&change.old, &change.new) else { continue };
        if !has_finalizer(old) || new.as_deref().is_some_and(has_finalizer) {
            continue;
        }
        let uid = old["metadata"]["uid"].as_str().unwrap_or_default();
        let mut live: BTreeMap<&str, &Transition> = BTreeMap::new();
        for transition in &record.transitions {
            // Its own disks carry its tags, too, and go with it.
            let is_instance = matches!(transition.after, Some(Phase::Instance(_)));
            if is_instance && transition.tags.get(NODE_UID).is_some_and(|it| it == uid) {
                live.insert(&transition.id, transition);
            }
        }
        let is_ended = |it: &Transition| matches!(it.after, Some(Phase::Instance(InstanceState::Terminated)));
        let at = |id: &str| record.transitions.iter().rfind(|it| it.id == id && it.at <= change.at);
        for id in live.keys() {
            let then = at(id);
            if then.is_none_or(|it| it.after.is_some() && !is_ended(it)) {
                return Err(format!("at {}: Node {uid} is released, and {id} is {then:?}", change.at));
            }
        }
    }
    Ok(())
}

/// A volume that was ever attached disappears only if its Database was deleted with a policy that says so.
fn volumes_survive(record: &Record) -> Result<(), String> {
    let mut held: BTreeSet<&str> = BTreeSet::new();
    for change in
        record.transitions.iter().filter(|it| it.tags.contains_key(VOLUME_UID) || it.after.is_none())
    {
        match &change.after {
            Some(Phase::Volume(_, Some((_, AttachmentState::Attached)))) => {
                held.insert(&change.id);
            }
            None if held.contains(change.id.as_str()) => {
                let policy = deleted_with(record, change.at);
                let snapshot = record.transitions.iter().any(|it| {
                    it.at <= change.at
                        && matches!(it.after, Some(Phase::Snapshot(ec2sim::SnapshotState::Completed)))
                });
                let may_go = policy == Some("Delete") || (policy == Some("Snapshot") && snapshot);
                if !may_go {
                    return Err(format!("at {}: {} is gone, the policy is {policy:?}", change.at, change.id));
                }
            }
            Some(_) | None => {}
        }
    }
    Ok(())
}

/// The deletion policy of the Database that a person had deleted by then.
fn deleted_with(record: &Record, at: Timestamp) -> Option<&str> {
    let is_of = |change: &&Change| change.resource == "databases.freehold.dev" && change.at <= at;
    let mut objects = record.changes.iter().filter(is_of).filter_map(|change| change.new.as_deref());
    let deleted = objects.rfind(|it| it["metadata"]["deletionTimestamp"].is_string())?;
    deleted["spec"]["deletionPolicy"].as_str()
}

fn single_writer(record: &Record) -> Result<(), String> {
    match record.violations.first() {
        Some((at, what)) => Err(format!("at {at}: {what}")),
        None => Ok(()),
    }
}

fn deletions_name_the_uid(record: &Record) -> Result<(), String> {
    let is_deletion = |write: &&Write| {
        is_operator(&write.caller) && [Verb::Delete, Verb::DeleteCollection].contains(&write.verb)
    };
    match record.writes.iter().filter(is_deletion).find(|it| !it.body["preconditions"]["uid"].is_string()) {
        Some(write) => Err(format!("{write:?}")),
        None => Ok(()),
    }
}

fn passwords(record: &Record) -> impl Iterator<Item = (&Change, &str)> {
    let secrets = record.changes.iter().filter(|change| change.resource == "secrets");
    secrets.filter_map(|change| Some((change, change.new.as_ref()?["data"]["password"].as_str()?)))
}

fn credentials_are_stable(record: &Record) -> Result<(), String> {
    let all: BTreeSet<&str> = passwords(record).map(|(_, password)| password).collect();
    if all.len() > 1 { Err(format!("{} passwords were there", all.len())) } else { Ok(()) }
}

fn no_secret_leaks(record: &Record) -> Result<(), String> {
    let Some((_, encoded)) = passwords(record).next() else { return Ok(()) };
    let plain = data_encoding::BASE64.decode(encoded.as_bytes()).unwrap_or_default();
    let plain = String::from_utf8(plain).unwrap_or_default();
    let holds = |text: &str| text.contains(encoded) || text.contains(&plain);
    let others = record.writes.iter().filter(|write| write.resource != "secrets");
    if let Some(write) = others.into_iter().find(|write| holds(&write.body.to_string())) {
        return Err(format!("{} {}/{}", write.resource, write.namespace, write.name));
    }
    let says = |entry: &&JournalEntry| entry.parameters.values().any(|value| holds(value));
    record.calls.iter().find(says).map_or(Ok(()), |entry| Err(format!("{entry:?}")))
}

fn attaches_nothing(record: &Record) -> Result<(), String> {
    let never = ["AttachVolume", "DetachVolume", "DeleteSnapshot", "StartInstances", "RebootInstances"];
    let is_own = |entry: &&JournalEntry| entry.caller == crate::world::OPERATOR;
    let found = record.calls.iter().filter(is_own).find(|it| never.contains(&it.action.as_str()));
    found.map_or(Ok(()), |entry| Err(format!("{entry:?}")))
}
