//! Pages of `docs` that people wrote, against what they speak of: every reason, alert, IAM statement, test,
//! link and manifest in them exists, and none is left out.

use std::collections::BTreeSet;
use std::path::Path;

use freehold::api::Reason;
use pretty_assertions::assert_eq;
use strum::IntoEnumIterator as _;

use crate::kit::chart::documents;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn file(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names in backticks that lines begin with, each once; `mark` is what comes before them (`### `, `| `).
fn entries(page: &str, mark: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let text = file(page);
    let cells = text.lines().filter_map(|line| line.strip_prefix(mark)?.split(" | ").next());
    let cells = cells.filter(|cell| cell.starts_with('`'));
    for name in cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)) {
        assert!(found.insert(name.to_owned()), "{page} has two entries for {name}");
    }
    found
}

#[test]
fn every_reason_has_one_entry_in_troubleshooting() {
    let reasons: BTreeSet<String> = Reason::iter().map(|reason| reason.as_str().to_owned()).collect();
    assert_eq!(entries("docs/troubleshooting.md", "| "), reasons);
}

#[test]
fn every_alert_has_its_runbook() {
    let rules = documents(&file("charts/freehold/files/rules.yaml")).remove(0);
    let groups = rules["groups"].as_array().unwrap().iter();
    let alerts = groups.flat_map(|group| group["rules"].as_array().unwrap());
    let alerts: BTreeSet<String> = alerts.map(|rule| rule["alert"].as_str().unwrap().to_owned()).collect();
    let page = file("docs/runbooks.md");
    let sections = page.lines().filter_map(|line| line.strip_prefix("## ")).map(str::to_owned);
    assert_eq!(sections.collect::<BTreeSet<_>>(), alerts);
}

#[test]
fn every_statement_of_the_operators_policy_is_explained() {
    let policy = file("terraform/modules/iam/policy.json.tftpl");
    let sids = policy.split("\"Sid\": \"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    assert_eq!(entries("docs/iam.md", "### "), sids.collect::<BTreeSet<_>>());
}

/// The tests that the security page names: `file::name`.
fn named_tests(page: &str) -> Vec<(&str, &str)> {
    let code = page.split('`').skip(1).step_by(2);
    code.filter_map(|code| code.split_once("::").filter(|(path, _)| path.ends_with(".rs"))).collect()
}

#[test]
fn every_test_that_the_security_page_names_is_there() {
    let page = file("docs/security.md");
    let tests = named_tests(&page);
    assert!(tests.len() > 30, "{}", tests.len());
    for (path, name) in tests {
        assert!(file(path).contains(&format!("fn {name}(")), "{path} has no test {name}");
    }
}

#[test]
fn every_control_of_the_security_page_has_its_row() {
    let rows = entries("docs/security.md", "| ");
    let expected: BTreeSet<String> = (1..=42).map(|number| format!("SEC-{number:02}")).collect();
    assert_eq!(rows, expected);
}
