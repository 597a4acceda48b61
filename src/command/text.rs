//! How a report of a command is printed for people. Pure.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use super::difference::Change;
use super::finding::Finding;

/// How wide prose is; a word that is longer stays whole.
const WIDTH: usize = 100;

/// The longest value of a field that is shown.
const LONGEST_VALUE: usize = 60;

/// A line of two columns.
#[derive(Debug, Serialize)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// Which.
    pub value: String,
}

impl Row {
    /// A line of this name and value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

/// What was found, below a title: each with its way out.
pub fn listed(text: &mut String, title: &str, findings: &[Finding]) {
    let _ = writeln!(text, "\n{title}");
    for finding in findings {
        let head = format!("  {:<9}", finding.level.as_str().to_uppercase());
        prose(text, &head, &format!("{}: {}", finding.object, finding.message));
        // In one line, so that a command can be copied.
        if let Some(way_out) = &finding.way_out {
            let _ = writeln!(text, "           -> {way_out}");
        }
    }
}

/// Aligned columns; the second of two is prose.
pub fn table<'a, const N: usize>(text: &mut String, rows: impl Iterator<Item = [&'a str; N]>) {
    let rows: Vec<[&str; N]> = rows.collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in &rows {
        let Some((last, others)) = row.split_last() else { continue };
        let head = others.iter().zip(&widths).fold(String::from("  "), |mut head, (cell, width)| {
            let _ = write!(head, "{cell:width$}  ");
            head
        });
        if N == 2 {
            prose(text, &head, last);
        } else {
            let _ = writeln!(text, "{head}{last}");
        }
    }
}

/// Aligned columns of a list whose first row names them.
pub fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let line = row.iter().zip(&widths).fold(String::new(), |mut line, (cell, width)| {
            let _ = write!(line, "{cell:width$}  ");
            line
        });
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Words in lines of at most `WIDTH` columns, after this head, each further line below the first.
pub fn prose(text: &mut String, head: &str, words: &str) {
    let indent = head.chars().count();
    let mut line = head.to_owned();
    let mut is_first = true;
    for word in words.split(' ') {
        if !is_first && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{}", line.trim_end());
            line = " ".repeat(indent);
            is_first = true;
        }
        if !is_first {
            line.push(' ');
        }
        line.push_str(word);
        is_first = false;
    }
    let _ = writeln!(text, "{}", line.trim_end());
}

/// The fields that change, below a title; nothing where there is none.
pub fn changed<'a>(text: &mut String, title: &str, changes: impl Iterator<Item = &'a Change>) {
    let rows: Vec<[String; 3]> = changes.map(row).collect();
    if !rows.is_empty() {
        let _ = writeln!(text, "\n  {title}");
        table(text, rows.iter().map(|row| row.each_ref().map(String::as_str)));
    }
}

fn row(change: &Change) -> [String; 3] {
    // The title says whether it is of the template.
    let field = change.field.strip_prefix("spec.template.").unwrap_or(&change.field);
    [field.to_owned(), short(&change.today), format!("-> {}", short(&change.later))]
}

fn short(value: &Value) -> String {
    let text = match value {
        Value::Null => "(none)".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    if text.chars().count() <= LONGEST_VALUE {
        return text;
    }
    text.chars().take(LONGEST_VALUE).chain(['…']).collect()
}
