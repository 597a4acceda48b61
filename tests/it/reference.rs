//! `docs/reference.md` against the code: every condition, reason, event and metric is in it, in the code's own words, and nothing else is.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use freehold::api::{ConditionType, EventReason, Reason};
use freehold::metrics::Metrics;
use pretty_assertions::assert_eq;
use strum::{EnumMessage, IntoEnumIterator};

/// The page, from the repository's root.
const PAGE: &str = "docs/reference.md";

fn file(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of an enum, each with its doc comment.
fn documented<E: IntoEnumIterator + EnumMessage + Into<&'static str>>() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for it in E::iter() {
        let meaning = it.get_documentation().unwrap_or_default().lines().map(str::trim).collect::<Vec<_>>().join(" ");
        let name: &'static str = it.into();
        found.push((name.to_owned(), meaning));
    }
    found.sort();
    found
}

/// Every metric with its help, as the operator serves it. Those with labels are served once they have a value.
fn metrics() -> Vec<(String, String)> {
    let metrics = Metrics::new();
    metrics.pass("node", "ok", Duration::from_millis(1));
    metrics.ec2_call("RunInstances".to_owned(), "ok");
    metrics.inventory_age("instances", 1);
    metrics.machine_lost("terminated");
    let text = metrics.text().unwrap();
    let is_counter = |name: &str| text.contains(&format!("# TYPE {name} counter"));
    let lines = text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' '));
    let named = |name: &str| if is_counter(name) { format!("{name}_total") } else { name.to_owned() };
    let mut found: Vec<_> = lines.map(|(name, help)| (named(name), help.to_owned())).collect();
    found.sort();
    found
}

fn table(page: &mut String, title: &str, about: &str, heads: [&str; 2], rows: &[(String, String)]) {
    write!(page, "\n## {title}\n\n{about}\n\n| {} | {} |\n|---|---|\n", heads[0], heads[1]).unwrap();
    for (name, meaning) in rows {
        assert!(!meaning.is_empty(), "{name} is not documented");
        writeln!(page, "| `{name}` | {} |", meaning.replace('|', "\\|")).unwrap();
    }
}

/// The page as the code says it.
fn expected() -> String {
    let mut page = "# Conditions, reasons, events, metrics\n\n\
        What Freehold tells, for programs and alerts. A name is never used for another meaning. Wait for `Ready` with `observedGeneration` equal to\n\
        `metadata.generation`; `Stalled` says that nothing changes until a person does something; the message says what.\n"
        .to_owned();
    let about = "On `Database`, `Node` and `Volume`, in `status.conditions`. `lastTransitionTime` changes with the status only.";
    table(&mut page, "Conditions", about, ["Condition", "What it says"], &documented::<ConditionType>());
    let about = "Why a condition is as it is, in its `reason`.";
    table(&mut page, "Reasons", about, ["Reason", "What it means"], &documented::<Reason>());
    let about = "In `kubectl describe` and `kubectl events`; the note has names and causes. What interrupted a database is also in its\n`status.history`.";
    table(&mut page, "Events", about, ["Event", "What happened"], &documented::<EventReason>());
    let about = "Served on `/metrics` (`--listen`), in the OpenMetrics text format. The chart's alerts and dashboard stand on them.";
    table(&mut page, "Metrics", about, ["Metric", "What it shows"], &metrics());
    page
}

#[test]
fn the_page_and_the_code_name_the_same_conditions_reasons_events_and_metrics() {
    let expected = expected();
    if std::env::var_os("FREEHOLD_WRITE_DOCS").is_some() {
        std::fs::write(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(PAGE), &expected).unwrap();
    }
    assert_eq!(file(PAGE), expected, "write the page anew with FREEHOLD_WRITE_DOCS=1 cargo test --test it reference::");
}

#[test]
fn every_name_of_the_page_is_used_by_the_operator() {
    let sources = crate::purity::sources();
    let unused = |kind: &str, names: Vec<(String, String)>, defined_in: &str| -> Vec<String> {
        let is_used = |name: &str| sources.iter().any(|(path, text)| !path.ends_with(defined_in) && uses(text, kind, name));
        names.into_iter().map(|(name, _)| name).filter(|name| !is_used(name)).collect()
    };
    assert_eq!(unused("ConditionType", documented::<ConditionType>(), "api/condition.rs"), [""; 0]);
    assert_eq!(unused("Reason", documented::<Reason>(), "api/condition.rs"), [""; 0]);
    assert_eq!(unused("EventReason", documented::<EventReason>(), "api/event.rs"), [""; 0]);
}

/// Whether a source names this variant; `Type` is what status steps call the type of a condition.
fn uses(text: &str, kind: &str, name: &str) -> bool {
    let names = if kind == "ConditionType" { vec![kind, "Type"] } else { vec![kind] };
    let is_whole = |at: usize, found: &str| !text[at + found.len()..].starts_with(|letter: char| letter.is_ascii_alphanumeric());
    names.iter().any(|kind| {
        let found = format!("{kind}::{name}");
        text.match_indices(&found).any(|(at, found)| is_whole(at, found))
    })
}
