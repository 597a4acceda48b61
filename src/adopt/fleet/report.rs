//! The table of many databases, and the report on each as JSON or Markdown. Pure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use comfy_table::{Table, presets};
use jiff::{Timestamp, Unit};
use serde::Serialize;

use super::entry::{Entry, State};

/// The report of a run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    written_at: Timestamp,
    /// How many databases there are of each state.
    counts: BTreeMap<State, usize>,
    databases: &'a [Entry],
}

/// How many there are of each state.
pub fn counts(entries: &[Entry]) -> BTreeMap<State, usize> {
    let mut counts = BTreeMap::new();
    for entry in entries {
        *counts.entry(entry.state).or_default() += 1;
    }
    counts
}

/// The same as a sentence.
pub fn sum(entries: &[Entry]) -> String {
    let parts: Vec<String> =
        counts(entries).into_iter().map(|(state, count)| format!("{count} {}", state.words())).collect();
    let noun = if entries.len() == 1 { "database" } else { "databases" };
    format!("{} {noun}: {}", entries.len(), parts.join(", "))
}

/// A row for each.
pub fn table<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["STATEFULSET", "ENGINE", "VOLUME", "INSTANCE", "RESULT"]);
    for entry in entries {
        let with = |id: Option<&str>, more: Option<String>| match (id, more) {
            (Some(id), Some(more)) => format!("{id} {more}"),
            (Some(id), None) => id.to_owned(),
            (None, _) => "-".to_owned(),
        };
        table.add_row([
            entry.stateful_set.clone(),
            entry.engine.clone().unwrap_or_else(|| "-".to_owned()),
            with(entry.volume_id.as_deref(), entry.size.map(|size| format!("{size} GiB"))),
            with(entry.instance_id.as_deref(), entry.instance_type.clone()),
            entry.result(),
        ]);
    }
    let lines = table.lines().map(|line| line.trim().to_owned() + "\n");
    lines.collect()
}

/// The problems of those that were not adopted, each with its way out.
pub fn problems(entries: &[Entry]) -> String {
    let mut text = String::new();
    for entry in entries.iter().filter(|entry| !entry.problems.is_empty()) {
        let _ = writeln!(text, "{} ({})", entry.stateful_set, entry.state.words());
        for problem in &entry.problems {
            let _ = writeln!(text, "  {}", problem.message);
            if let Some(way_out) = &problem.way_out {
                let _ = writeln!(text, "    -> {way_out}");
            }
        }
    }
    text
}

/// For programs.
pub fn json(entries: &[Entry], now: Timestamp) -> Result<String, serde_json::Error> {
    let report = Report { written_at: now, counts: counts(entries), databases: entries };
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}

/// For people.
pub fn markdown(entries: &[Entry], now: Timestamp) -> String {
    let mut text = format!("# Adoption of databases\n\n{}, at {now:.0}.\n\n", sum(entries));
    text.push_str(
        "| STATEFULSET | DATABASE | ENGINE | VOLUME | INSTANCE | POD BEFORE | POD AFTER | SNAPSHOT | STARTED \
            | SECONDS | RESULT |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for entry in entries {
        let cell = |value: Option<&String>| value.map_or_else(|| "-".to_owned(), |it| it.replace('|', "\\|"));
        let seconds = entry.started_at.zip(entry.finished_at).and_then(|(start, end)| {
            Some(format!("{:.0}", end.since(start).ok()?.total(Unit::Second).ok()?))
        });
        let cells = [
            entry.stateful_set.clone(),
            entry.database.clone(),
            cell(entry.engine.as_ref()),
            cell(entry.volume_id.as_ref()),
            cell(entry.instance_id.as_ref()),
            cell(entry.pod_uid_before.as_ref()),
            cell(entry.pod_uid_after.as_ref()),
            cell(entry.snapshot_id.as_ref()),
            cell(entry.started_at.map(|time| format!("{time:.0}")).as_ref()),
            cell(seconds.as_ref()),
            cell(Some(&entry.result())),
        ];
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    let problems = problems(entries);
    if !problems.is_empty() {
        let _ = write!(text, "\n## What stands before the others\n\n```text\n{problems}```\n");
    }
    text
}
