//! What a run has found, as a table.

use std::fmt::Write as _;

use strum::EnumMessage as _;

use super::answer::Verdict;
use crate::Truth;

/// What a run has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Each truth that the run was to ask about, in their order.
    pub verdicts: Vec<(Truth, Verdict)>,

    /// What the run has made and could not remove.
    pub left: Vec<String>,
}

impl Report {
    /// The truths for which the EC2 that was asked behaves otherwise.
    pub fn differing(&self) -> Vec<Truth> {
        let differs = |verdict: &Verdict| matches!(verdict, Verdict::Differs(_));
        self.verdicts.iter().filter(|(_, verdict)| differs(verdict)).map(|(truth, _)| *truth).collect()
    }

    /// The report in Markdown: how many truths have each verdict, and a table of them, those that differ
    /// first.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let groups = ["differs", "holds", "not asked", "not seen from outside"];
        let of = |group: &str| {
            self.verdicts.iter().filter(|(_, verdict)| verdict.name() == group).collect::<Vec<_>>()
        };
        let counts: Vec<String> = groups.map(|group| format!("{}: {}", group, of(group).len())).into();
        let _ = writeln!(text, "{} truths. {}.\n", self.verdicts.len(), counts.join(", "));
        let _ = writeln!(text, "| truth | verdict | what was seen, or why nothing was |\n|---|---|---|");
        for (truth, verdict) in groups.into_iter().flat_map(of) {
            let statement = truth.get_documentation().unwrap_or_default().trim();
            let detail = verdict.detail().replace('|', "\\|").replace('\n', " ");
            let _ = writeln!(text, "| `{truth:?}`: {statement} | {} | {detail} |", verdict.name());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_comes_first_and_with_what_was_seen() {
        let report = Report {
            verdicts: vec![
                (Truth::TokenCaseSensitive, Verdict::Holds),
                (Truth::DryRun, Verdict::Differs("RunInstances: `ok`".to_owned())),
            ],
            left: Vec::new(),
        };
        assert_eq!(report.differing(), [Truth::DryRun]);
        let table = report.table();
        assert!(
            table.starts_with("2 truths. differs: 1, holds: 1, not asked: 0, not seen from outside: 0.\n")
        );
        let rows: Vec<&str> = table.lines().skip(4).collect();
        assert_eq!(
            rows,
            [
                "| `DryRun`: `DryRun` changes nothing and says what would have happened. | differs | \
                 RunInstances: `ok` |",
                "| `TokenCaseSensitive`: Tokens that differ in case are different tokens. | holds |  |",
            ]
        );
    }
}
