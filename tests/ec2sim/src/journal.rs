//! The journal: one entry for each call, with what became of it.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, BufRead as _, BufReader, Write as _},
    path::Path,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Refusal, Response, call_facts::CallFacts, faults::Hit, view::Tags};

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// A mutating call was carried out and answered.
    Committed,
    /// It was refused; nothing was done.
    Refused,
    /// It was carried out, and the caller got no whole answer.
    Lost,
    /// It was not carried out (or not yet, if a later entry names it), and the caller got no answer.
    Blocked,
    /// It only reads.
    Read,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// From 1, without gaps.
    pub seq: u64,

    /// When it was carried out, in virtual time.
    pub time: Timestamp,

    /// The caller's access key id.
    pub caller: String,

    /// The action.
    pub action: String,

    /// The ids that the request named and that the call made.
    pub resources: Vec<String>,

    /// The tags that the request gave.
    pub tags: Tags,

    /// The client token.
    pub token: Option<String>,

    /// A hash of the parameters without the token: equal for identical requests.
    pub params_hash: String,

    /// Whether the caller asked for a dry run.
    pub dry_run: bool,

    /// `ok`, EC2's error code, or `none` if nothing was done.
    pub answer: String,

    /// What became of it.
    pub fate: Fate,

    /// The faults that hit it.
    pub faults: Vec<String>,

    /// For a call that was carried out late: the entry of its send.
    pub late_of: Option<u64>,

    /// The parameters, without user data.
    pub parameters: BTreeMap<String, String>,
}

/// The entries, and the file that they also go to.
#[derive(Debug)]
pub(crate) struct Journal {
    entries: Vec<JournalEntry>,
    file: Option<File>,
    next: u64,
}

impl Journal {
    /// An empty journal; a file of an earlier run is gone on with.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let Some(path) = path else {
            return Ok(Self { entries: Vec::new(), file: None, next: 1 });
        };
        let file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        let mut next = 1;
        for line in BufReader::new(&file).lines() {
            // The last line may be half of one, if the earlier run was killed.
            next = serde_json::from_str::<JournalEntry>(&line?).map_or(next, |entry| entry.seq + 1);
        }
        Ok(Self { entries: Vec::new(), file: Some(file), next })
    }

    /// Adds an entry and gives it its number.
    pub(crate) fn add(&mut self, mut entry: JournalEntry) -> u64 {
        entry.seq = self.next;
        self.next += 1;
        if let Some(file) = &mut self.file {
            let line = serde_json::to_string(&entry).unwrap_or_default();
            if let Err(error) = writeln!(file, "{line}") {
                tracing::error!(%error, "failed to write to the journal file");
            }
        }
        let seq = entry.seq;
        self.entries.push(entry);
        seq
    }

    /// The entries after the one with this number.
    pub(crate) fn since(&self, seq: u64) -> Vec<JournalEntry> {
        let from = self.entries.partition_point(|entry| entry.seq <= seq);
        self.entries[from..].to_vec()
    }
}

impl JournalEntry {
    /// The entry of a call; `result` is absent if nothing was done.
    pub(crate) fn of(
        time: Timestamp,
        call: &CallFacts,
        params: &[(String, String)],
        result: Option<&Result<Response, Refusal>>,
        fate: Fate,
        hit: &Hit,
    ) -> Self {
        let find = |name: &str| params.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        let mut resources = call.resources.clone();
        if let Some(Ok(response)) = result {
            resources.extend(response.resource_ids());
            resources.dedup();
        }
        let hidden = ["Action", "Version", "UserData", "ClientToken", "DryRun"];
        let parameters: BTreeMap<String, String> =
            params.iter().filter(|(key, _)| !hidden.contains(&key.as_str())).cloned().collect();
        let mut tags = Tags::new();
        for (name, key) in params.iter().filter(|(name, _)| name.contains("Tag.") && name.ends_with(".Key")) {
            let value = find(&format!("{}.Value", name.trim_end_matches(".Key"))).unwrap_or_default();
            tags.insert(key.clone(), value);
        }
        Self {
            seq: 0,
            time,
            caller: call.caller.clone(),
            action: call.action.clone(),
            resources,
            tags,
            token: find("ClientToken"),
            params_hash: crate::params::hash(params),
            dry_run: find("DryRun").is_some_and(|value| value == "true"),
            answer: match result {
                None => "none".to_owned(),
                Some(Ok(_)) => "ok".to_owned(),
                Some(Err(refusal)) => refusal.code.clone(),
            },
            fate,
            faults: hit.faults.clone(),
            late_of: None,
            parameters,
        }
    }
}
