//! Rules about what ends: with a cause, in order, and data only as its policy says.

use std::collections::BTreeSet;

use ec2sim::{AttachmentState, Fate, InstanceState, JournalEntry, Phase, SnapshotState, Transition};
use freehold::api::keys::{BACKUP_UID_TAG, NODE_UID_TAG, VOLUME_UID_TAG};
use freehold_rig::{Change, Verb, Write};
use jiff::Timestamp;

use super::facts::{
    BACKUPS, DATABASES, Histories, NODES, VOLUMES, ebs_volume, instance, is_going, is_operator, owner,
};
use super::record::Record;

/// When the operator takes its finalizer off a Node, no instance of it lives or can still come to life, but
/// for one that is released and goes on without Freehold.
pub fn finalizer_last(record: &Record) -> Result<(), String> {
    for (at, node) in record.releases(NODES).filter(|(_, node)| node["spec"]["release"] != true) {
        let uid = node["metadata"]["uid"].as_str().unwrap_or_default();
        for id in resources(record, NODE_UID_TAG, uid, |it| instance(it).is_some()) {
            let then = record.phase(id, at);
            let is_ended = |it: &Transition| instance(it).is_none_or(|it| it == InstanceState::Terminated);
            if !then.is_some_and(is_ended) {
                return Err(format!("at {at}: Node {uid} is released, and {id} is {then:?}"));
            }
        }
    }
    Ok(())
}

/// The resources that ever carried this tag.
fn resources<'a>(
    record: &'a Record,
    tag: &str,
    uid: &str,
    is_wanted: impl Fn(&Transition) -> bool,
) -> BTreeSet<&'a str> {
    let is_of = |it: &&Transition| it.tags.get(tag).is_some_and(|it| it == uid) && is_wanted(it);
    record.transitions.iter().filter(is_of).map(|it| it.id.as_str()).collect()
}

/// When the operator takes its finalizer off a Volume, the EBS volume is gone, or a PersistentVolume has it.
pub fn retained_or_gone(record: &Record) -> Result<(), String> {
    let persistent = Histories::of(record, &["persistentvolumes"]);
    for (at, volume) in record.releases(VOLUMES) {
        let uid = volume["metadata"]["uid"].as_str().unwrap_or_default();
        for id in resources(record, VOLUME_UID_TAG, uid, |it| matches!(it.after, Some(Phase::Volume(..)))) {
            let is_gone = record.phase(id, at).is_some_and(|it| it.after.is_none());
            let is_kept = || persistent.all_at(at).any(|it| ebs_volume(it) == Some(id));
            if !is_gone && !is_kept() {
                return Err(format!("at {at}: Volume {uid} is released, and nothing keeps {id}"));
            }
        }
    }
    Ok(())
}

/// An instance is stopped or terminated if its Node is deleted, gone or fenced, or if it never joined.
pub fn ended_with_cause(record: &Record) -> Result<(), String> {
    let nodes = Histories::of(record, &[NODES]);
    let ends = |action: &str| ["StopInstances", "TerminateInstances"].contains(&action);
    for entry in record.own_calls().filter(|it| ends(&it.action) && it.late_of.is_none()) {
        for id in entry.resources.iter().filter(|id| id.starts_with("i-")) {
            let uid = record.transitions.iter().find(|it| it.id == *id && it.tags.contains_key(NODE_UID_TAG));
            let uid = uid.map(|it| it.tags[NODE_UID_TAG].as_str()).unwrap_or_default();
            let Some(node) = nodes.at(uid, entry.time) else { continue };
            let is_other = node["status"]["instanceID"].as_str().is_some_and(|own| own != id);
            let has_joined = node["status"]["coreNodeName"].is_string();
            let is_fenced = node["status"]["fence"].is_object();
            if !is_going(node) && !is_fenced && !is_other && has_joined {
                return Err(format!("at {}: {} of {id}, and Node {uid} stays", entry.time, entry.action));
            }
        }
    }
    Ok(())
}

/// An EBS volume is deleted after its Volume, and what leads to data after the Database, or where a restore
/// in place puts another one in its place, which retains the EBS volume.
pub fn deleted_with_owner(record: &Record) -> Result<(), String> {
    let volumes = Histories::of(record, &[VOLUMES]);
    for entry in record.own_calls().filter(|it| it.action == "DeleteVolume" && it.late_of.is_none()) {
        let id = entry.resources.first().map(String::as_str).unwrap_or_default();
        let tagged = record
            .transitions
            .iter()
            .rfind(|it| it.id == id && it.at <= entry.time && it.tags.contains_key(VOLUME_UID_TAG));
        let uid = tagged.map(|it| it.tags[VOLUME_UID_TAG].as_str()).unwrap_or_default();
        if !volumes.at(uid, entry.time).is_some_and(is_going) {
            return Err(format!("at {}: DeleteVolume of {id}, and Volume {uid} stays", entry.time));
        }
    }
    let databases = Histories::of(record, &[DATABASES]);
    for change in record.changes.iter().filter(|it| is_operator(&it.caller)) {
        let holds_data = ["secrets", VOLUMES].contains(&change.resource.as_str());
        let Some(old) = change.old.as_deref().filter(|old| holds_data && !is_going(old)) else { continue };
        let is_deleted = change.new.as_deref().is_none_or(is_going);
        let Some(database) = owner(old).filter(|_| is_deleted) else { continue };
        let is_replaced = |it: &serde_json::Value| {
            old["spec"]["replaced"] == true && it["status"]["restoredInPlace"]["endedAt"].is_null()
        };
        if databases.at(database, change.at).is_some_and(|it| !is_going(it) && !is_replaced(it)) {
            let name = &old["metadata"]["name"];
            return Err(format!(
                "at {}: {} {name} is deleted, and its owner stays",
                change.at, change.resource
            ));
        }
    }
    Ok(())
}

/// A volume that was ever attached disappears only if its Database was deleted with a policy that says so.
pub fn volumes_survive(record: &Record) -> Result<(), String> {
    let mut held: BTreeSet<&str> = BTreeSet::new();
    for change in
        record.transitions.iter().filter(|it| it.tags.contains_key(VOLUME_UID_TAG) || it.after.is_none())
    {
        match &change.after {
            Some(Phase::Volume(_, Some((_, AttachmentState::Attached)))) => {
                held.insert(&change.id);
            }
            None if held.contains(change.id.as_str()) => {
                let policy = orphaned(record, &change.id).or_else(|| deleted_with(record, change.at));
                let is_completed = |it: &Transition| {
                    it.at <= change.at && matches!(it.after, Some(Phase::Snapshot(SnapshotState::Completed)))
                };
                let has_snapshot = || record.transitions.iter().any(is_completed);
                let may_go = policy == Some("Delete") || (policy == Some("Snapshot") && has_snapshot());
                if !may_go {
                    return Err(format!("at {}: {} is gone, the policy is {policy:?}", change.at, change.id));
                }
            }
            Some(_) | None => {}
        }
    }
    Ok(())
}

/// The deletion policy of the Volume of this EBS volume, if no Database owns that any more.
fn orphaned<'a>(record: &'a Record, id: &str) -> Option<&'a str> {
    let is_of = |it: &&Transition| it.id == id && it.tags.contains_key(VOLUME_UID_TAG);
    let tagged = record.transitions.iter().rfind(is_of)?;
    let volume = Histories::of(record, &[VOLUMES]).last(&tagged.tags[VOLUME_UID_TAG])?;
    if owner(volume).is_some() { None } else { volume["spec"]["deletionPolicy"].as_str() }
}

/// The deletion policy of the Database that was deleted by then.
fn deleted_with(record: &Record, at: Timestamp) -> Option<&str> {
    let is_of = |change: &&Change| change.resource == DATABASES && change.at <= at;
    let mut objects = record.changes.iter().filter(is_of).filter_map(|change| change.new.as_deref());
    let deleted = objects.rfind(|it| is_going(it))?;
    deleted["spec"]["deletionPolicy"].as_str()
}

/// Only the snapshot of a Backup is deleted, and only once that Backup was deleted with the policy Delete. A
/// call that EC2 refuses deletes nothing: an operator that was stopped may send it when all is over.
pub fn snapshots_survive(record: &Record) -> Result<(), String> {
    let backups = Histories::of(record, &[BACKUPS]);
    let is_carried_out = |it: &&JournalEntry| matches!(it.fate, Fate::Committed | Fate::Lost);
    for entry in record.own_calls().filter(|it| it.action == "DeleteSnapshot").filter(is_carried_out) {
        let is_of = |it: &&Transition| entry.resources.contains(&it.id) && it.after.is_some();
        let uid = record.transitions.iter().find(is_of).and_then(|it| it.tags.get(BACKUP_UID_TAG));
        let backup = uid.and_then(|uid| backups.at(uid, entry.time));
        if !backup.is_some_and(|it| is_going(it) && it["spec"]["deletionPolicy"] == "Delete") {
            return Err(format!("{entry:?}: {backup:?}"));
        }
    }
    Ok(())
}

/// The machines saw nothing taken from under an engine.
pub fn single_writer(record: &Record) -> Result<(), String> {
    match record.violations.first() {
        Some((at, what)) => Err(format!("at {at}: {what}")),
        None => Ok(()),
    }
}

/// What has the same name by now is not deleted.
pub fn deletions_name_the_uid(record: &Record) -> Result<(), String> {
    let is_deletion = |write: &&Write| {
        is_operator(&write.caller) && [Verb::Delete, Verb::DeleteCollection].contains(&write.verb)
    };
    match record.writes.iter().filter(is_deletion).find(|it| !it.body["preconditions"]["uid"].is_string()) {
        Some(write) => Err(format!("{write:?}")),
        None => Ok(()),
    }
}
