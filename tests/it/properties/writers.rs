//! Rules about what the operator writes and calls: secrets, others' fields, and how often.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ec2sim::JournalEntry;
use freehold_rig::Change;
use jiff::Timestamp;
use serde_json::Value;

use super::facts::{DATABASES, Histories, USERS, is_operator};
use super::record::Record;

/// What the Secrets ever had under this key.
fn of_key<'a>(record: &'a Record, key: &'static str) -> impl Iterator<Item = (&'a Change, &'a str)> {
    let secrets = record.changes.iter().filter(|change| change.resource == "secrets");
    secrets.filter_map(move |change| Some((change, change.new.as_ref()?["data"][key].as_str()?)))
}

/// The passwords that came into force by a rotation: each was the next one in the Secret before.
fn rotated(record: &Record) -> BTreeSet<&str> {
    let was_next = |(change, password): &(&Change, &str)| {
        change.old.as_ref().is_some_and(|old| old["data"]["next-password"] == *password)
    };
    of_key(record, "password").filter(was_next).map(|(_, password)| password).collect()
}

/// One password for the whole life but for rotations, of each database and user by its name. A Secret that
/// arrives when no Database is there any more, sent by an operator whose process was stopped meanwhile, is
/// the password of none.
pub fn credentials_are_stable(record: &Record) -> Result<(), String> {
    let histories = Histories::of(record, &[DATABASES]);
    let is_late = |it: &Change| it.old.is_none() && histories.all_at(it.at).next().is_none();
    let rotated = rotated(record);
    let in_time = of_key(record, "password").filter(|(change, _)| !is_late(change));
    let all: BTreeSet<&str> =
        in_time.map(|(_, password)| password).filter(|password| !rotated.contains(password)).collect();
    let owners =
        record.changes.iter().filter(|change| [DATABASES, USERS].contains(&change.resource.as_str()));
    let metadata =
        owners.filter_map(|change| Some(&change.new.as_ref().or(change.old.as_ref())?["metadata"]));
    // One that is created again under its name is another one, with credentials of its own.
    let identity = |it: &Value| ["namespace", "name", "uid"].map(|key| it[key].as_str().map(str::to_owned));
    let owners: BTreeSet<_> = metadata.map(identity).collect();
    if all.len() > owners.len().max(1) || all.contains("") {
        return Err(format!("{} passwords were there, for {} databases and users", all.len(), owners.len()));
    }
    Ok(())
}

/// A password is neither in another object nor in a call to EC2, in plain text or encoded.
pub fn no_secret_leaks(record: &Record) -> Result<(), String> {
    let all = of_key(record, "password").chain(of_key(record, "next-password"));
    let all = all.map(|(_, password)| password).filter(|it| !it.is_empty());
    for encoded in all.collect::<BTreeSet<_>>() {
        let plain = data_encoding::BASE64.decode(encoded.as_bytes()).unwrap_or_default();
        let hex = data_encoding::HEXLOWER.encode(&plain);
        let plain = String::from_utf8(plain).unwrap_or_default();
        let holds = |text: &str| text.contains(encoded) || text.contains(&plain) || text.contains(&hex);
        let mut others = record.writes.iter().filter(|write| write.resource != "secrets");
        if let Some(write) = others.find(|write| holds(&write.body.to_string())) {
            return Err(format!("{} {}/{}", write.resource, write.namespace, write.name));
        }
        let says = |entry: &&JournalEntry| entry.parameters.values().any(|value| holds(value));
        if let Some(entry) = record.calls.iter().find(says) {
            return Err(format!("{entry:?}"));
        }
    }
    Ok(())
}

/// The operator changes neither what people write nor what others report; and others attach volumes and start
/// instances.
pub fn own_fields(record: &Record) -> Result<(), String> {
    let never = ["AttachVolume", "DetachVolume", "StartInstances", "RebootInstances"];
    if let Some(entry) = record.own_calls().find(|it| never.contains(&it.action.as_str())) {
        return Err(format!("{entry:?}"));
    }
    for change in record.changes.iter().filter(|it| is_operator(&it.caller)) {
        let (Some(old), Some(new)) = (&change.old, &change.new) else { continue };
        let of_person = [DATABASES, "nodeclasses.freehold.dev"].contains(&change.resource.as_str());
        let foreign = if of_person {
            "spec"
        } else if change.resource.ends_with(".freehold.dev") {
            continue;
        } else {
            "status"
        };
        if old[foreign] != new[foreign] {
            return Err(format!("at {}: {} {}", change.at, foreign, told(change, new)));
        }
    }
    Ok(())
}

fn told(change: &Change, object: &Value) -> String {
    format!("of {} {} is changed", change.resource, object["metadata"]["name"])
}

/// How often the operator may change one thing within [`SPAN`]: far more than any life needs.
const MOST: usize = 100;

/// What [`MOST`] is counted in.
const SPAN: Duration = Duration::from_mins(5);

/// One object is written, one resource called for, a few times only.
pub fn no_hot_loop(record: &Record) -> Result<(), String> {
    let mut times: BTreeMap<String, Vec<Timestamp>> = BTreeMap::new();
    let is_counted = |resource: &str| resource != "events.events.k8s.io" && !resource.starts_with("leases.");
    for write in record.writes.iter().filter(|it| is_operator(&it.caller) && is_counted(&it.resource)) {
        let key = format!("{} {}/{} {}", write.resource, write.namespace, write.name, write.subresource);
        times.entry(key).or_default().push(write.at);
    }
    for entry in record.own_calls().filter(|it| !ec2sim::reads(&it.action)) {
        let key = format!("{} {:?} {:?}", entry.action, entry.token, entry.resources);
        times.entry(key).or_default().push(entry.time);
    }
    for (what, times) in times {
        let is_burst = |it: &&[Timestamp]| it[MOST].duration_since(it[0]).unsigned_abs() < SPAN;
        if let Some([first, ..]) = times.windows(MOST + 1).find(is_burst) {
            return Err(format!("{what}: more than {MOST} times from {first} on"));
        }
    }
    Ok(())
}
