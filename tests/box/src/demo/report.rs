//! The table at the end: each step, its time, the EC2 calls that it cost, and what is left over.

use std::fmt;
use std::time::Duration;

use comfy_table::{Table, presets};
use serde::Serialize;

use super::Failure;
use super::world::Calls;

/// The calls that change something, and how often each is made in a whole life: the protocol's promise.
const PROMISED: [(&str, u64); 5] =
    [("RunInstances", 1), ("CreateVolume", 1), ("ModifyVolume", 1), ("TerminateInstances", 1), ("CreateTags", 0)];

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

    /// An error if a call that changes something was made more often, or less, than promised.
    pub fn judge(&self) -> Result<(), Failure> {
        let was_deleted = self.steps.iter().any(|step| step.name == "deleted");
        for (action, promised) in PROMISED {
            let made: u64 = self.steps.iter().filter_map(|step| step.calls.get(action)).sum();
            if made != promised && (was_deleted || action != "TerminateInstances") {
                return Err(format!("{action} was called {made} times, and {promised} was promised: see the table").into());
            }
        }
        Ok(())
    }
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
