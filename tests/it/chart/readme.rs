//! `charts/freehold/README.md`: the table of the values is that of `values.yaml`, with its comments.

use std::fmt::Write as _;
use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::Value;

use super::{file, leaves_of};
use crate::kit::chart::{CHART, documents};
use crate::kit::is_set;

/// What the page says before the table.
const START: &str = include_str!("readme.md");

/// A value, or a table of values with a comment of its own.
#[derive(Debug, PartialEq)]
struct Row {
    /// Its keys.
    path: Vec<String>,
    /// None of a table, whose values have theirs.
    default: Option<Value>,
    /// Its comment.
    about: String,
}

/// The rows of a file of values: a comment belongs to the key below it.
fn rows(text: &str) -> Vec<Row> {
    let values = documents(text).remove(0);
    let (mut rows, mut about, mut path) = (Vec::new(), Vec::new(), Vec::<(usize, String)>::new());
    for line in text.lines() {
        let content = line.trim_start();
        if let Some(comment) = content.strip_prefix("# ") {
            about.push(comment);
            continue;
        }
        let about = std::mem::take(&mut about).join(" ");
        let Some((key, inline)) = content.split_once(':').filter(|_| !content.starts_with('-')) else {
            continue;
        };
        let depth = line.len() - content.len();
        path.retain(|(above, _)| *above < depth);
        path.push((depth, key.to_owned()));
        let keys: Vec<String> = path.iter().map(|(_, key)| key.clone()).collect();
        let value = keys.iter().fold(&values, |value, key| &value[key]);
        let is_table = value.is_object() && inline.trim().is_empty();
        if !is_table || !about.is_empty() {
            rows.push(Row { path: keys, default: (!is_table).then(|| value.clone()), about });
        }
    }
    rows
}

/// The page as `values.yaml` says it.
fn expected() -> String {
    let mut page = format!("{START}\n| Value | Default | What it is |\n|---|---|---|\n");
    for row in rows(&file("values.yaml")) {
        let name = row.path.join(".");
        assert!(!row.about.is_empty(), "{name} has no comment in values.yaml");
        let default = row.default.map(|default| format!("`{default}`")).unwrap_or_default();
        let cell = |text: String| text.replace('|', "\\|");
        writeln!(page, "| `{name}` | {} | {} |", cell(default), cell(row.about)).unwrap();
    }
    page
}

#[test]
fn the_page_and_the_file_of_values_say_the_same() {
    let expected = expected();
    if is_set("FREEHOLD_WRITE_DOCS") {
        std::fs::write(Path::new(CHART).join("README.md"), &expected).unwrap();
    }
    assert_eq!(
        file("README.md"),
        expected,
        "write the page anew with FREEHOLD_WRITE_DOCS=1 cargo test --test it chart::readme"
    );
}

#[test]
fn every_value_has_a_row() {
    let text = file("values.yaml");
    let rows = rows(&text);
    for (pointer, _) in leaves_of(&documents(&text).remove(0)) {
        let keys: Vec<String> =
            pointer.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~")).collect();
        let is_shown = rows.iter().any(|row| row.default.is_some() && keys.starts_with(&row.path));
        assert!(is_shown, "{pointer} has no row");
    }
}

#[test]
fn a_comment_belongs_to_the_key_below_it() {
    let text =
        "# Of the file.\n\n# A table.\na:\n  # Two\n  # lines.\n  b: {c: 1}\n# A list.\nd:\n  - {e: 2}\n";
    let row = |path: &[&str], default: Option<Value>, about: &str| Row {
        path: path.iter().map(|&key| key.to_owned()).collect(),
        default,
        about: about.to_owned(),
    };
    let expected = [
        row(&["a"], None, "A table."),
        row(&["a", "b"], Some(serde_json::json!({"c": 1})), "Two lines."),
        row(&["d"], Some(serde_json::json!([{"e": 2}])), "A list."),
    ];
    assert_eq!(rows(text), expected);
}
