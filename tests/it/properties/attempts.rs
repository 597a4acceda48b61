//! Rules about attempts: one resource for each, one after the other, and what is in doubt stays so.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ec2sim::{Fate, JournalEntry, Phase, VolumeState};
use jiff::Timestamp;

use super::facts::{NODES, VOLUMES, instance, is_live, made, named};
use super::record::Record;

/// How long after its send a call may still be carried out (AWS Signature Version 4).
const SIGNATURE: Duration = Duration::from_mins(15);

/// One token makes one resource, however often it is sent.
pub fn one_resource(record: &Record) -> Result<(), String> {
    let mut all: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for entry in record.creations() {
        let token = entry.token.as_deref().unwrap_or_default();
        let of_token = all.entry((entry.action.as_str(), token)).or_default();
        of_token.extend(made(entry));
        if of_token.len() > 1 {
            return Err(format!("token {token} made {of_token:?}"));
        }
    }
    Ok(())
}

/// No call for another attempt as long as what an earlier one made, or makes later, has not ended.
pub fn one_at_a_time(record: &Record) -> Result<(), String> {
    for (number, entry) in record.creations().enumerate() {
        for former in record.creations().filter(|it| named(it) == named(entry) && is_former(it, entry)) {
            if let Some(id) = made(former).find(|id| !has_ended(record, id, entry.time)) {
                return Err(format!("at {}: creation {number} is sent, and {id} has not ended", entry.time));
            }
        }
    }
    Ok(())
}

fn is_former(one: &JournalEntry, other: &JournalEntry) -> bool {
    attempt(one) < attempt(other) && one.action == other.action
}

fn attempt(entry: &JournalEntry) -> Option<i32> {
    entry.tags.get("freehold.dev/attempt")?.parse().ok()
}

fn has_ended(record: &Record, id: &str, at: Timestamp) -> bool {
    let Some(last) = record.phase(id, at) else { return false };
    let is_broken = matches!(last.after, Some(Phase::Volume(VolumeState::Deleting | VolumeState::Error, _)));
    last.after.is_none() || is_broken || instance(last).is_some_and(|state| !is_live(state))
}

/// A send without an answer may still be carried out: meanwhile no other attempt is sent, and the finalizer
/// stays.
pub fn doubt_stays(record: &Record) -> Result<(), String> {
    let conclusions = record.releases(NODES).chain(record.releases(VOLUMES));
    let releases: Vec<(Timestamp, &str)> =
        conclusions.filter_map(|(at, object)| Some((at, object["metadata"]["uid"].as_str()?))).collect();
    for sent in record.creations().filter(|it| it.fate == Fate::Blocked) {
        let until = sent.time + SIGNATURE;
        // Another send of the same token was carried out, before or afterwards: it made what this one would.
        let known = record
            .creations()
            .find(|it| it.token == sent.token && matches!(it.fate, Fate::Committed | Fate::Lost));
        let end = known.map_or(until, |it| it.time.min(until));
        let is_early = |at: Timestamp| sent.time < at && at < end;
        let is_next =
            |it: &JournalEntry| is_former(sent, it) && named(it) == named(sent) && is_early(it.time);
        let uid = named(sent).unwrap_or_default();
        if let Some(next) = record.creations().find(|it| is_next(it)) {
            return Err(format!("{uid}: in doubt since {}, another attempt at {}", sent.time, next.time));
        }
        if let Some((at, _)) = releases.iter().find(|(at, of)| *of == uid && is_early(*at)) {
            return Err(format!("{uid}: in doubt since {}, released at {at}", sent.time));
        }
    }
    Ok(())
}
