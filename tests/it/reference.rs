//! `docs/reference.md` against the code: every condition, reason, event and metric is in it, in the code's
//! own text, and nothing else is. What users read has the words of the glossary.

use std::fmt::Write as _;
use std::path::PathBuf;

use freehold::api::{ConditionType, EventReason, Reason};
use pretty_assertions::assert_eq;
use strum::{EnumMessage, IntoEnumIterator};

use crate::kit::{is_set, metrics};

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
        let meaning =
            it.get_documentation().unwrap_or_default().lines().map(str::trim).collect::<Vec<_>>().join(" ");
        let name: &'static str = it.into();
        found.push((name.to_owned(), meaning));
    }
    found.sort();
    found
}

/// Every metric with its help, as the operator serves it.
fn metrics() -> Vec<(String, String)> {
    let text = metrics::text();
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
        What Freehold reports, for programs and alerts. A name is never used for another meaning. Wait for \
        `Ready` with `observedGeneration` equal to\n\
        `metadata.generation`; `Stalled` says that nothing changes until a person does something; the \
        message says what.\n"
        .to_owned();
    let about = "On every kind, in `status.conditions`. \
        `lastTransitionTime` changes with the status only.";
    table(&mut page, "Conditions", about, ["Condition", "What it means"], &documented::<ConditionType>());
    let about = "Why a condition is as it is, in its `reason`.";
    table(&mut page, "Reasons", about, ["Reason", "What it means"], &documented::<Reason>());
    let about = "In `kubectl describe` and `kubectl events`; the note has names and causes. What interrupted \
        a database is also in its\n`status.history`.";
    table(&mut page, "Events", about, ["Event", "What happened"], &documented::<EventReason>());
    let about = "Served on `/metrics` (`--listen`), in the OpenMetrics text format. The chart's alerts and \
        dashboard stand on them.";
    table(&mut page, "Metrics", about, ["Metric", "What it shows"], &metrics());
    page
}

#[test]
fn the_page_and_the_code_name_the_same_conditions_reasons_events_and_metrics() {
    let expected = expected();
    if is_set("FREEHOLD_WRITE_DOCS") {
        std::fs::write(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(PAGE), &expected).unwrap();
    }
    assert_eq!(
        file(PAGE),
        expected,
        "write the page anew with FREEHOLD_WRITE_DOCS=1 cargo test --test it reference::"
    );
}

#[test]
fn every_name_of_the_page_is_used_by_the_operator() {
    let sources = crate::purity::sources();
    let unused = |kind: &str, names: Vec<(String, String)>, defined_in: &str| -> Vec<String> {
        let is_used = |name: &str| {
            sources.iter().any(|(path, text)| !path.ends_with(defined_in) && uses(text, kind, name))
        };
        names.into_iter().map(|(name, _)| name).filter(|name| !is_used(name)).collect()
    };
    assert_eq!(unused("ConditionType", documented::<ConditionType>(), "api/condition.rs"), [""; 0]);
    assert_eq!(unused("Reason", documented::<Reason>(), "api/condition.rs"), [""; 0]);
    assert_eq!(unused("EventReason", documented::<EventReason>(), "api/event.rs"), [""; 0]);
}

/// Whether a source names this variant; `Type` is what status steps call the type of a condition.
fn uses(text: &str, kind: &str, name: &str) -> bool {
    let names = if kind == "ConditionType" { vec![kind, "Type"] } else { vec![kind] };
    let is_whole = |at: usize, found: &str| {
        !text[at + found.len()..].starts_with(|letter: char| letter.is_ascii_alphanumeric())
    };
    names.iter().any(|kind| {
        let found = format!("{kind}::{name}");
        text.match_indices(&found).any(|(at, found)| is_whole(at, found))
    })
}

/// Words that text for users does not have, each with the glossary's term (CONTRIBUTING.md).
const PRIVATE_WORDS: [(&str, &str); 24] = [
    ("by whomever", "outside Freehold"),
    ("complete look at", "full EC2 inventory sync"),
    ("gave up", "declared lost"),
    ("give back", "release"),
    ("give up", "declare lost"),
    ("given back", "released"),
    ("given up", "declared lost"),
    ("gives back", "releases"),
    ("gives up", "declares lost"),
    ("held back", "postponed"),
    ("held up", "blocked"),
    ("house", "the Database's resources"),
    ("looked for on", "still searching"),
    ("nobody", "the subject, or the passive"),
    ("silent", "not reporting"),
    ("somebody", "outside Freehold"),
    ("stranger", "foreign object"),
    ("sweep", "EC2 inventory sync"),
    ("sweeps", "EC2 inventory syncs"),
    ("taken away", "deleted or terminated"),
    ("taken down", "deleted or terminated"),
    ("taken over", "adopted"),
    ("torn down", "deleted"),
    ("whoever", "the subject, or the passive"),
];

/// What users read: documentation, chart, resource definitions, flags, and every message of the operator.
/// Recorded runs stay as they were.
fn pages_for_users() -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folders = ["docs", "charts", "crds", "examples"].iter();
    let mut pages: Vec<PathBuf> =
        folders.flat_map(|folder| crate::purity::paths(&root.join(folder))).collect();
    pages.retain(|path| !path.starts_with(root.join("docs/results")));
    pages.extend(["README.md", "src/settings.rs"].map(|path| root.join(path)));
    let sources = crate::purity::paths(&root.join("src")).into_iter();
    pages.extend(sources.filter(|path| path.ends_with("messages.golden.txt")));
    pages
}

#[test]
fn text_for_users_has_the_words_of_the_glossary() {
    let mut found = Vec::new();
    for page in pages_for_users() {
        let text = std::fs::read_to_string(&page).unwrap().to_lowercase();
        let words =
            text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let words = format!(" {} ", words.collect::<Vec<_>>().join(" "));
        for (private, term) in PRIVATE_WORDS {
            if let Some(at) = words.find(&format!(" {private} ")) {
                let near: String = words[at..].chars().take(60).collect();
                found.push(format!("{}: \"{private}\" in \"{near}\": write {term}", page.display()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
