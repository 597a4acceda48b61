//! Rules about what is created: how many machines live, and what stands in the object before a call.

use std::collections::{BTreeMap, BTreeSet};

use ec2sim::{Fate, JournalEntry};
use freehold::api::keys::{BACKUP_UID_TAG, NODE_UID_TAG, VOLUME_UID_TAG};
use freehold::cloud::identity::{self, Kind};
use jiff::Timestamp;
use serde_json::Value;

use super::facts::{
    BACKUPS, DATABASES, Histories, NODES, VOLUMES, has_finalizer, instance, is_live, named, owner,
};
use super::record::Record;

/// The instances that live after each change, by their Nodes' UIDs, and which Node each change concerns.
fn lives(
    record: &Record,
    mut each: impl FnMut(Timestamp, &str, &Live<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let mut live: Live<'_> = BTreeMap::new();
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    for change in &record.transitions {
        if let Some(uid) = change.tags.get(NODE_UID_TAG) {
            owners.insert(&change.id, uid);
        }
        let Some(uid) = owners.get(change.id.as_str()) else { continue };
        let of_node = live.entry(*uid).or_default();
        if instance(change).is_some_and(is_live) {
            of_node.insert(&change.id);
        } else {
            of_node.remove(change.id.as_str());
        }
        each(change.at, uid, &live)?;
    }
    Ok(())
}

type Live<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// At no moment two.
pub fn one_live_instance(record: &Record) -> Result<(), String> {
    lives(record, |at, uid, live| match &live[uid] {
        several if several.len() > 1 => Err(format!("at {at}: Node {uid} has {several:?}")),
        _one => Ok(()),
    })
}

/// While a machine of a Database lives, another one begins only for the two Nodes of its replacement, beside
/// those that the replacement names as leaving.
pub fn replacements(record: &Record) -> Result<(), String> {
    let (nodes, databases) = (Histories::of(record, &[NODES]), Histories::of(record, &[DATABASES]));
    let mut before: BTreeSet<String> = BTreeSet::new();
    lives(record, |at, uid, live| {
        let now: BTreeSet<String> =
            live.iter().filter(|(_, ids)| !ids.is_empty()).map(|(uid, _)| (*uid).to_owned()).collect();
        let is_new = now.contains(uid) && !before.contains(uid);
        before = now;
        let Some(database) = nodes.last(uid).and_then(owner).filter(|_| is_new) else { return Ok(()) };
        let of_database: BTreeSet<&str> = before
            .iter()
            .filter_map(|uid| nodes.last(uid))
            .filter(|node| owner(node) == Some(database))
            .filter_map(|node| node["metadata"]["name"].as_str())
            .collect();
        let replacement = databases.at(database, at).map(|it| &it["status"]["replacement"]);
        let leaving = |it: &'_ Value| it["leaving"].as_array().cloned().unwrap_or_default();
        let is_named = |it: &Value, name: &str| {
            it["from"] == name || it["to"] == name || leaving(it).iter().any(|other| *other == name)
        };
        let are_named = replacement.is_some_and(|it| of_database.iter().all(|name| is_named(it, name)));
        if of_database.len() > 1 && !are_named {
            return Err(format!("at {at}: {of_database:?} live, and the status names {replacement:?}"));
        }
        Ok(())
    })
}

/// The creating calls as they were sent, each with its owner's UID and object at that moment. Not those that
/// repeat a token by which something was created: EC2 answers them with that and creates nothing, and an
/// operator that was stopped may send one when another has long gone on.
fn sent(record: &Record) -> impl Iterator<Item = (&JournalEntry, &str, Option<&Value>)> {
    let objects = Histories::of(record, &[NODES, VOLUMES]);
    let mut created = BTreeSet::new();
    let mut is_first = move |it: &&JournalEntry| {
        let token = it.token.clone().unwrap_or_default();
        if it.fate == Fate::Committed { created.insert(token) } else { !created.contains(&token) }
    };
    record.creations().filter(move |it| it.late_of.is_none() && is_first(it)).map(move |entry| {
        let uid = named(entry).unwrap_or_default();
        (entry, uid, objects.at(uid, entry.time))
    })
}

/// Nothing is created for an object without the finalizer.
pub fn finalizer_first(record: &Record) -> Result<(), String> {
    match sent(record).find(|(_, _, object)| !object.is_some_and(has_finalizer)) {
        Some((entry, uid, object)) => Err(format!("at {}: {uid} is {object:?}", entry.time)),
        None => Ok(()),
    }
}

/// The intent with the token of the identity stands in the object; a snapshot, which has no token, is
/// announced there.
pub fn intent_first(record: &Record) -> Result<(), String> {
    for (entry, uid, object) in sent(record) {
        let kind = if entry.tags.contains_key(NODE_UID_TAG) { Kind::Node } else { Kind::Volume };
        let attempt =
            entry.tags.get("freehold.dev/attempt").and_then(|it| it.parse().ok()).unwrap_or_default();
        let token = identity::token(&record.cluster, kind, uid, attempt).0;
        if entry.token.as_deref() != Some(&token) {
            return Err(format!("the token of {uid} is not its identity's: {entry:?}"));
        }
        if object.is_none_or(|it| it["status"]["creation"]["clientToken"] != token.as_str()) {
            return Err(format!("{uid} does not announce {token} at {}: {object:?}", entry.time));
        }
    }
    let objects = Histories::of(record, &[VOLUMES, BACKUPS]);
    for entry in record.own_calls().filter(|it| it.action == "CreateSnapshot" && it.late_of.is_none()) {
        let (tag, field) = match entry.tags.get(BACKUP_UID_TAG) {
            Some(_) => (BACKUP_UID_TAG, "creation"),
            None => (VOLUME_UID_TAG, "finalSnapshot"),
        };
        let uid = entry.tags.get(tag).map(String::as_str).unwrap_or_default();
        let attempt = objects.at(uid, entry.time).map(|it| &it["status"][field]["attempt"]);
        if attempt.is_none_or(Value::is_null) {
            return Err(format!("{uid} does not announce a snapshot at {}", entry.time));
        }
    }
    Ok(())
}

/// Every field of the intent is what EC2 is asked for, and its tags are.
pub fn whole_request(record: &Record) -> Result<(), String> {
    for (entry, uid, object) in sent(record) {
        let Some(intent) = object.map(|it| &it["status"]["creation"]).filter(|it| it.is_object()) else {
            continue;
        };
        let expected =
            if entry.action == "RunInstances" { launch(intent) } else { pick(intent, &CREATE_VOLUME) };
        for (key, value) in expected {
            if entry.parameters.get(&key) != value.as_ref() {
                let asked = entry.parameters.get(&key);
                return Err(format!("{uid}: the intent says {key}={value:?}, the call {asked:?}"));
            }
        }
        if serde_json::to_value(&entry.tags).ok().as_ref() != Some(&intent["tags"]) {
            return Err(format!("{uid}: the intent says {}, the call {:?}", intent["tags"], entry.tags));
        }
    }
    Ok(())
}

/// The parameters of CreateVolume, and where the intent has them.
const CREATE_VOLUME: [(&str, &str); 7] = [
    ("AvailabilityZone", "zone"),
    ("Size", "size"),
    ("VolumeType", "type"),
    ("Iops", "iops"),
    ("Throughput", "throughput"),
    ("SnapshotId", "snapshotID"),
    ("KmsKeyId", "kmsKeyID"),
];

/// The same of RunInstances.
const RUN_INSTANCES: [(&str, &str); 5] = [
    ("InstanceType", "instanceType"),
    ("SubnetId", "subnetID"),
    ("ImageId", "imageID"),
    ("IamInstanceProfile.Name", "instanceProfile"),
    ("BlockDeviceMapping.1.Ebs.KmsKeyId", "kmsKeyID"),
];

fn launch(intent: &Value) -> Vec<(String, Option<String>)> {
    let mut all = pick(intent, &RUN_INSTANCES);
    let groups = intent["securityGroupIDs"].as_array().into_iter().flatten();
    // The one after the last is not there.
    let groups = groups.map(text).chain([None]);
    all.extend((1..).zip(groups).map(|(number, group)| (format!("SecurityGroupId.{number}"), group)));
    all
}

fn pick(intent: &Value, names: &[(&str, &str)]) -> Vec<(String, Option<String>)> {
    names.iter().map(|(name, field)| ((*name).to_owned(), text(&intent[*field]))).collect()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| value.as_i64().map(|it| it.to_string()))
}
