//! The table at the end: each step, its time, the EC2 calls that it cost, what became of the rows, and what
//! is left over.

use std::fmt::{self, Write as _};
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::common::Failure;
use super::host::Host;
use super::observer::Calls;
use super::parts::Way;

/// The table.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// In their order.
    pub steps: Vec<Step>,
    /// From the apply to the first answer, where rows were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<Way>,
    /// The calls of the EBS CSI driver's own, by action, where it runs.
    #[serde(skip_serializing_if = "Calls::is_empty")]
    pub driver: Calls,
    /// What was compared, and is the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Facts>,
    /// What is left over at the end.
    pub left_over: Vec<String>,
    /// What it was seen on.
    pub host: Host,
}

/// What became of the rows that a client wrote all the time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rows {
    /// The longest time between two acknowledgements in the step; none where nothing was written.
    pub outage_seconds: Option<f64>,
    /// Sent since the start.
    pub sent: u64,
    /// Acknowledged since the start.
    pub acknowledged: u64,
    /// Read back at the end of the step.
    pub found: u64,
}

/// What was compared, at the moments that the title says, and is the same.
#[derive(Debug, Serialize)]
pub struct Facts {
    /// A sentence.
    pub title: String,
    /// In their order.
    pub facts: Vec<Fact>,
}

/// Something that can be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// Its name.
    pub what: String,
    /// What it is.
    pub value: String,
}

impl Facts {
    /// As a table of this style.
    fn table(&self, preset: &str) -> Table {
        let mut table = Table::new();
        table.load_preset(preset).set_header(["WHAT", "VALUE"]);
        for Fact { what, value } in &self.facts {
            table.add_row([what, value]);
        }
        table
    }
}

/// Seconds to a tenth.
pub fn tenths(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10.0).round() / 10.0
}

/// A row.
#[derive(Debug, Serialize)]
pub struct Step {
    /// What was done.
    pub name: String,
    /// How long it took.
    pub seconds: f64,
    /// The operator's calls to EC2, by action.
    pub calls: Calls,
    /// What became of the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Rows>,
}

impl Step {
    /// A row; seconds are rounded to tenths.
    pub fn new(name: &str, took: Duration, calls: Calls) -> Self {
        Self { name: name.to_owned(), seconds: tenths(took), calls, rows: None }
    }
}

impl Report {
    /// Adds a row.
    pub fn add(&mut self, step: Step) {
        self.steps.push(step);
    }
}

/// An error unless the operator's changes of EC2, by action, are exactly those that the steps expect.
pub fn check_calls(made: &Calls, expected: &Calls) -> Result<(), Failure> {
    if made == expected {
        return Ok(());
    }
    Err(format!("the operator changed EC2 by {}; expected {}", in_words(made), in_words(expected)).into())
}

fn in_words(calls: &Calls) -> String {
    if calls.is_empty() {
        return "no call".to_owned();
    }
    each(calls).join(", ")
}

/// A line for each action.
fn each(calls: &Calls) -> Vec<String> {
    calls.iter().map(|(action, count)| format!("{count} {action}")).collect()
}

impl Report {
    /// As a table of this style; calls of one step are apart by `between`.
    fn table(&self, preset: &str, between: &str) -> Table {
        let with_rows = self.steps.iter().any(|step| step.rows.is_some());
        let mut table = Table::new();
        let mut header = vec!["STEP", "SECONDS"];
        if with_rows {
            header.extend(["OUTAGE", "SENT", "ACKNOWLEDGED", "FOUND"]);
        }
        header.push("CALLS TO EC2");
        table.load_preset(preset).set_header(header);
        for step in &self.steps {
            let mut row = vec![step.name.clone(), format!("{:.1}", step.seconds)];
            if with_rows {
                row.extend(step.rows.map_or_else(|| [const { String::new() }; 4], Rows::cells));
            }
            row.push(each(&step.calls).join(between));
            table.add_row(row);
        }
        for (name, lines) in
            [("calls of the CSI driver", each(&self.driver)), ("left over", self.left_over.clone())]
        {
            if !lines.is_empty() {
                let empty = if with_rows { 5 } else { 1 };
                let cells = std::iter::once(name.to_owned()).chain(std::iter::repeat_n(String::new(), empty));
                table.add_row(cells.chain([lines.join(between)]));
            }
        }
        for place in 1..(if with_rows { 6 } else { 2 }) {
            if let Some(column) = table.column_mut(place) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }

    /// As a page for people: how it was made, on what, and the tables.
    pub fn markdown(&self) -> String {
        let mut page = format!("# {}\n\n{}\n\n", self.host.command, self.host);
        // Writing to a String cannot fail.
        let _ = writeln!(page, "{}", self.table(presets::ASCII_MARKDOWN, ", "));
        if self.steps.iter().any(|step| step.rows.is_some()) {
            page.push_str(
                "\nOUTAGE is the longest time in seconds between two acknowledgements that a client which \
                 writes numbered rows saw in the\n\
                 step. SENT, ACKNOWLEDGED and FOUND count its rows since the start, FOUND as read back at \
                 the end of the step: every\n\
                 acknowledged row was found, no row that was not sent, and none twice.\n",
            );
        }
        for facts in &self.facts {
            let _ = writeln!(page, "\n{}\n\n{}", facts.title, facts.table(presets::ASCII_MARKDOWN));
        }
        if let Some(way) = &self.way {
            let _ = writeln!(
                page,
                "\nFrom `kubectl apply` to the first answered query:\n\n{}",
                way.table(presets::ASCII_MARKDOWN)
            );
        }
        page
    }
}

impl Rows {
    fn cells(self) -> [String; 4] {
        let outage = self.outage_seconds.map(|seconds| format!("{seconds:.1}")).unwrap_or_default();
        [outage, self.sent.to_string(), self.acknowledged.to_string(), self.found.to_string()]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.table(presets::UTF8_HORIZONTAL_ONLY, "\n"))?;
        for facts in &self.facts {
            write!(f, "\n\n{}\n{}", facts.title, facts.table(presets::UTF8_HORIZONTAL_ONLY))?;
        }
        if let Some(way) = &self.way {
            write!(f, "\n\n{way}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(calls: &[(&str, u64)]) -> Calls {
        calls.iter().map(|(action, count)| ((*action).to_owned(), *count)).collect()
    }

    #[test]
    fn each_expected_call_is_made_as_often_as_expected_and_no_other() {
        let expected = calls(&[("CreateVolume", 1), ("RunInstances", 4), ("TerminateInstances", 3)]);
        check_calls(&expected, &expected).unwrap();
        for (action, count) in [("RunInstances", 3), ("RunInstances", 5), ("DeleteVolume", 1)] {
            let mut made = expected.clone();
            made.insert(action.to_owned(), count);
            assert!(check_calls(&made, &expected).is_err(), "{count} {action}");
        }
        let mut made = expected.clone();
        made.remove("CreateVolume");
        let error = check_calls(&made, &expected).unwrap_err().to_string();
        let wanted = "changed EC2 by 4 RunInstances, 3 TerminateInstances; expected 1 CreateVolume, 4 \
            RunInstances, 3 TerminateInstances";
        assert!(error.ends_with(wanted), "{error}");
    }

    #[test]
    fn the_page_has_the_command_the_machine_and_aligned_tables() {
        let mut report = Report {
            host: Host {
                command: "cargo demo".to_owned(),
                cores: 2,
                memory_gib: 24,
                kernel: "6.1".to_owned(),
            },
            ..Report::default()
        };
        let rows = Rows { outage_seconds: Some(3.24), sent: 1203, acknowledged: 1200, found: 1202 };
        report.add(Step {
            rows: Some(rows),
            ..Step::new("engine killed", Duration::from_millis(4321), calls(&[("DescribeInstances", 2)]))
        });
        report.add(Step::new(
            "deleted",
            Duration::from_secs(5),
            calls(&[("TerminateInstances", 1), ("DescribeVolumes", 1)]),
        ));
        report.left_over = vec!["EBS volume vol-1".to_owned()];
        let page = report.markdown();
        assert_eq!(
            page.split("\nOUTAGE").next().unwrap(),
            "# cargo demo\n\n2 cores, 24 GiB of memory, Linux 6.1\n\n\
             | STEP          | SECONDS | OUTAGE | SENT | ACKNOWLEDGED | FOUND | CALLS TO EC2                            |\n\
             |---------------|---------|--------|------|--------------|-------|-----------------------------------------|\n\
             | engine killed |     4.3 |    3.2 | 1203 |         1200 |  1202 | 2 DescribeInstances                     |\n\
             | deleted       |     5.0 |        |      |              |       | 1 DescribeVolumes, 1 TerminateInstances |\n\
             | left over     |         |        |      |              |       | EBS volume vol-1                        |\n",
        );
    }

    #[test]
    fn without_rows_the_table_has_no_columns_for_them() {
        let mut report = Report::default();
        report.add(Step::new("created", Duration::from_secs(5), calls(&[("RunInstances", 1)])));
        assert!(!report.to_string().contains("OUTAGE"));
    }
}
