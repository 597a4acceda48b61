//! The list as it is printed for people. Pure.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::found::Orphan;
use crate::command::text::columns;

/// What each column is called.
const COLUMNS: [&str; 8] = ["KIND", "ID", "DATABASE", "STATE", "AGE", "SIZE", "ZONE", "HOLDS"];

/// The list.
pub fn text(orphans: &[Orphan], namespace: Option<&str>, now: Timestamp) -> String {
    if orphans.is_empty() {
        return match namespace {
            Some(namespace) => {
                format!("EC2 has nothing of namespace {namespace} that no object claims\n")
            }
            None => "EC2 has nothing of this cluster that no object claims\n".to_owned(),
        };
    }
    let rows: Vec<[String; 8]> =
        [COLUMNS.map(str::to_owned)].into_iter().chain(orphans.iter().map(|it| row(it, now))).collect();
    let mut text = columns(&rows);
    text.push_str(
        "\nThe age of an instance is that of its last start. Freehold ends none of these. What you can do, once you \
         are certain that nothing uses it:\n",
    );
    for orphan in orphans.iter().filter(|it| !it.way_out.is_empty()) {
        let kind: &str = orphan.kind.into();
        let _ = writeln!(text, "\n  {kind} {}", orphan.id);
        for command in &orphan.way_out {
            let _ = writeln!(text, "    {command}");
        }
    }
    text
}

fn row(orphan: &Orphan, now: Timestamp) -> [String; 8] {
    let kind: &str = orphan.kind.into();
    let known = |value: Option<&String>| value.cloned().unwrap_or_else(|| "-".to_owned());
    [
        kind.to_owned(),
        orphan.id.clone(),
        known(orphan.database.as_ref()),
        orphan.state.clone(),
        orphan.created_at.map_or_else(|| "-".to_owned(), |at| age(at, now)),
        orphan.size.clone(),
        known(orphan.zone.as_ref()),
        if orphan.holds.is_empty() { "-".to_owned() } else { orphan.holds.join("; ") },
    ]
}

/// As kubectl shows ages, in one unit.
fn age(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(at).as_secs().max(0);
    match (seconds / 60, seconds / 3600) {
        (..2, _) => format!("{seconds}s"),
        (minutes @ ..120, _) => format!("{minutes}m"),
        (_, hours @ ..48) => format!("{hours}h"),
        (_, hours) => format!("{}d", hours / 24),
    }
}
