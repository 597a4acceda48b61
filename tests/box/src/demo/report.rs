//! The table at the end: each step, its time, the EC2 calls that it cost, and what is left over.

use std::fmt;
use std::time::Duration;

use comfy_table::{Table, presets};
use serde::Serialize;

use super::Failure;
use super::world::Calls;

/// The calls that change something in a whole life, and how often each is made: the protocol's promise. No other one is made.
const PROMISED: [(&str, u64); 4] = [("RunInstances", 1), ("CreateVolume", 1), ("ModifyVolume", 1), (TERMINATE, 1)];

/// The promised call that is not made when the database is kept.
const TERMINATE: &str = "TerminateInstances";

/// The table.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// In their order.
    pub steps: Vec<Step>,
    /// What is left over at the end.
    pub left_over: Vec<String>,
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
}

impl Step {
    /// A row; seconds are rounded to tenths.
    pub fn new(name: &str, took: Duration, calls: Calls) -> Self {
        Self { name: name.to_owned(), seconds: (took.as_secs_f64() * 10.0).round() / 10.0, calls }
    }
}

impl Report {
    /// Adds a row.
    pub fn add(&mut self, step: Step) {
        self.steps.push(step);
    }
}

/// An error unless `made`, all calls of the operator by action, changes EC2 by exactly the promised calls; `kept`: the database
/// was not deleted.
pub fn judge(made: &Calls, kept: bool) -> Result<(), Failure> {
    let is_read = |action: &str| action.starts_with("Describe") || action.starts_with("Get");
    let made: Calls = made.iter().filter(|(action, _)| !is_read(action)).map(|(action, count)| (action.clone(), *count)).collect();
    let promised = PROMISED.iter().filter(|(action, _)| !kept || *action != TERMINATE);
    let promised: Calls = promised.map(|(action, count)| ((*action).to_owned(), *count)).collect();
    if made == promised {
        return Ok(());
    }
    Err(format!("the operator changed EC2 by {}, and {} was promised", in_words(&made), in_words(&promised)).into())
}

fn in_words(calls: &Calls) -> String {
    if calls.is_empty() {
        return "no call".to_owned();
    }
    calls.iter().map(|(action, count)| format!("{count} {action}")).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_header(["STEP", "SECONDS", "CALLS TO EC2"]);
        for step in &self.steps {
            let calls: Vec<String> = step.calls.iter().map(|(action, count)| format!("{count} {action}")).collect();
            table.add_row([step.name.as_str(), &format!("{:.1}", step.seconds), &calls.join("\n")]);
        }
        if !self.left_over.is_empty() {
            table.add_row(["left over", "", &self.left_over.join("\n")]);
        }
        write!(f, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(calls: &[(&str, u64)]) -> Calls {
        calls.iter().map(|(action, count)| ((*action).to_owned(), *count)).collect()
    }

    const LIFE: [(&str, u64); 6] = [
        ("CreateVolume", 1),
        ("DescribeInstances", 9),
        ("GetConsoleOutput", 1),
        ("ModifyVolume", 1),
        ("RunInstances", 1),
        ("TerminateInstances", 1),
    ];

    #[test]
    fn the_promised_calls_pass_and_reads_are_free() {
        judge(&calls(&LIFE), false).unwrap();
        judge(&calls(LIFE.split_last().unwrap().1), true).unwrap();
    }

    #[test]
    fn a_call_that_was_not_promised_is_refused() {
        let mut made = calls(&LIFE);
        made.insert("DeleteVolume".to_owned(), 1);
        let error = judge(&made, false).unwrap_err().to_string();
        assert!(error.contains("by 1 CreateVolume, 1 DeleteVolume, 1 ModifyVolume"), "{error}");
    }

    #[test]
    fn a_promised_call_must_be_made_exactly_once() {
        for (action, _) in PROMISED {
            for count in [0, 2] {
                let mut made = calls(&LIFE);
                made.insert(action.to_owned(), count);
                assert!(judge(&made, false).is_err(), "{count} {action}");
            }
            let mut made = calls(&LIFE);
            made.remove(action);
            assert!(judge(&made, false).is_err(), "no {action}");
        }
    }

    #[test]
    fn a_kept_database_keeps_its_instance() {
        assert!(judge(&calls(&LIFE), true).is_err());
    }
}
