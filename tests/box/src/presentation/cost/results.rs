//! The tables: the figures of each stage with their goals, and each kind of request and call.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use comfy_table::{CellAlignment, Table, presets};

use super::stage::Stage;
use crate::presentation::demo::host::Host;
use crate::presentation::demo::observer::Calls;

/// Everything that was measured.
#[derive(Debug)]
pub struct Results {
    /// Where, and by which command.
    pub host: Host,
    /// The day, in UTC.
    pub day: String,
    /// The commit that was measured.
    pub commit: String,
    /// Which operator, and on what.
    pub what: String,
    /// How busy the host was before.
    pub load: String,
    /// In their order.
    pub stages: Vec<Stage>,
}

/// What the tables do not say themselves.
const NOTES: &str = "\
EC2 takes no time for what it does, and throttles as it documents: what is measured is the operator's work
and the wait for EC2's buckets. The least that these allow: each action has buckets of its own, full at
first; for each, the calls that changed something (of the operator and of the CSI driver) less what the
bucket holds, divided by what comes back in a second; the slowest action decides. A stage lasts until the
operator has written nothing for 5 s. Requests marked `(clock)` are those for the election, and the lists of
the kubelets' Leases: they come as often for one database as for a thousand, and are in no figure. Memory
more for a database: since before the first one was created.
";

impl Results {
    /// A row a figure.
    fn figures(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::ASCII_MARKDOWN).set_header(["STAGE", "WHAT", "MEASURED", "AT MOST", ""]);
        for stage in &self.stages {
            for (place, figure) in stage.figures().into_iter().enumerate() {
                let name = if place == 0 { stage.kind.as_str() } else { "" };
                let (most, verdict) = match figure.goal {
                    Some((most, is_met)) => (most, if is_met { "met" } else { "NOT MET" }),
                    None => (String::new(), ""),
                };
                table.add_row([name, figure.what, &figure.measured, &most, verdict]);
            }
        }
        right(&mut table, 2..4);
        table
    }

    /// A row a kind, a column a stage.
    fn kinds(&self, what: &str, of: impl Fn(&Stage) -> &Calls) -> Table {
        let mut table = Table::new();
        let columns = self.stages.iter().map(|stage| {
            let name = stage.kind.as_str().to_uppercase();
            if stage.kind.is_of_each() { format!("{name} / DB") } else { name }
        });
        table.load_preset(presets::ASCII_MARKDOWN).set_header([what.to_owned()].into_iter().chain(columns));
        let kinds: BTreeSet<&String> = self.stages.iter().flat_map(|stage| of(stage).keys()).collect();
        for kind in kinds {
            let cells = self.stages.iter().map(|stage| share(stage, of(stage).get(kind).copied()));
            table.add_row([kind.clone()].into_iter().chain(cells));
        }
        right(&mut table, 1..self.stages.len() + 1);
        table
    }

    /// All of them, in their order.
    fn tables(&self) -> [Table; 4] {
        [
            self.figures(),
            self.kinds("REQUESTS TO THE API SERVER", |stage| &stage.requests.by_kind),
            self.kinds("CALLS TO EC2", |stage| &stage.calls),
            self.kinds("RECONCILES", |stage| &stage.counters.passes),
        ]
    }

    /// As a page for people.
    pub fn markdown(&self) -> String {
        let mut page = format!(
            "# {}\n\n{}, commit {}. {}. {}. {}\n\n{NOTES}",
            self.host.command, self.day, self.commit, self.host, self.load, self.what
        );
        for table in self.tables() {
            // Writing to a String cannot fail.
            let _ = writeln!(page, "\n{table}");
        }
        page
    }
}

/// A database's share of a count, where each was changed; otherwise the count.
fn share(stage: &Stage, count: Option<u64>) -> String {
    let Some(count) = count else { return String::new() };
    if !stage.kind.is_of_each() {
        return count.to_string();
    }
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    let count = count as f64;
    format!("{:.2}", count / f64::from(stage.databases))
}

fn right(table: &mut Table, places: std::ops::Range<usize>) {
    for place in places {
        if let Some(column) = table.column_mut(place) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for table in self.tables() {
            writeln!(f, "{table}\n")?;
        }
        f.write_str(NOTES)
    }
}

#[cfg(test)]
mod tests {
    use super::super::stage::Kind;
    use super::super::stage::tests::stage;
    use super::*;

    fn results() -> Results {
        let mut create = stage(Kind::Create);
        create.requests.by_kind = [("patch databases.freehold.dev".to_owned(), 125)].into();
        create.requests.writes = 1001;
        let mut idle = stage(Kind::Idle);
        idle.requests.by_kind = [("list pods".to_owned(), 2)].into();
        Results {
            host: Host {
                command: "cargo box cost".to_owned(),
                cores: 2,
                memory_gib: 24,
                kernel: "6.1".to_owned(),
            },
            day: "2026-01-02".to_owned(),
            commit: "abc".to_owned(),
            what: "50 databases.".to_owned(),
            load: "Load 0.1".to_owned(),
            stages: vec![create, idle],
        }
    }

    #[test]
    fn the_page_has_the_day_the_commit_the_host_and_tables_that_line_up() {
        let page = results().markdown();
        let head = "# cargo box cost\n\n2026-01-02, commit abc. 2 cores, 24 GiB of memory, Linux 6.1. Load 0.1. 50 databases.\n\n";
        assert!(page.starts_with(head), "{page}");
        for table in page.split("\n\n").filter(|part| part.trim_start().starts_with('|')) {
            let widths: BTreeSet<usize> = table.trim().lines().map(str::len).collect();
            assert_eq!(widths.len(), 1, "{table}");
        }
        let line = |with: &str| page.lines().find(|line| line.contains(with)).unwrap().to_owned();
        let cells = |with: &str| -> Vec<String> {
            line(with).trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        assert_eq!(
            cells("until all are Ready"),
            ["create", "until all are Ready", "29.25 s", "29.25 s", "met"]
        );
        assert_eq!(cells("writes a database"), ["", "writes a database", "20.02", "20.00", "NOT MET"]);
        assert_eq!(cells("patch databases"), ["patch databases.freehold.dev", "2.50", ""]);
        assert_eq!(cells("list pods"), ["list pods", "", "2"]);
    }
}
