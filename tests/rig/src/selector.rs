//! Label and field selectors of lists and watches.

use serde_json::Value;

use super::answer::Refusal;
use super::kind::Kind;

/// What a list or a watch is limited to.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<(String, String, bool)>,
}

#[derive(Clone, Debug)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

impl Selector {
    /// Reads both selectors as a query has them; empty ones select everything.
    pub fn parse(kind: &Kind, labels: &str, fields: &str) -> Result<Self, Refusal> {
        let terms = fields.split(',').filter(|it| !it.is_empty());
        let fields = terms.map(|term| field(kind, term)).collect::<Result<_, _>>()?;
        let terms = split(labels);
        let labels = terms.iter().map(|term| requirement(term)).collect::<Option<_>>();
        let labels = labels.ok_or_else(|| Refusal::bad("unable to parse requirement"))?;
        Ok(Self { labels, fields })
    }

    /// Whether it selects everything.
    pub fn is_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether it selects the object.
    pub fn selects(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        let label = |key: &String| labels.get(key).and_then(Value::as_str);
        let fits = |requirement: &Requirement| match requirement {
            Requirement::In(key, values) => {
                label(key).is_some_and(|it| values.iter().any(|value| value == it))
            }
            Requirement::NotIn(key, values) => {
                label(key).is_none_or(|it| values.iter().all(|value| value != it))
            }
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::Absent(key) => label(key).is_none(),
        };
        self.labels.iter().all(fits)
            && self.fields.iter().all(|(path, value, is_equal)| (text(object, path) == *value) == *is_equal)
    }
}

/// A field as a text; a missing one is empty.
fn text(object: &Value, path: &str) -> String {
    match path.split('.').fold(object, |at, key| &at[key]) {
        Value::String(text) => text.clone(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Null if path == "spec.unschedulable" => "false".to_owned(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

fn field(kind: &Kind, term: &str) -> Result<(String, String, bool), Refusal> {
    let parts = term.split_once("!=").map(|(path, value)| (path, value, false));
    let parts = parts.or_else(|| term.split_once("==").map(|(path, value)| (path, value, true)));
    let parts = parts.or_else(|| term.split_once('=').map(|(path, value)| (path, value, true)));
    let (path, value, is_equal) = parts
        .ok_or_else(|| Refusal::bad(&format!("invalid selector: '{term}'; can't understand '{term}'")))?;
    let is_known = path == "metadata.name"
        || (path == "metadata.namespace" && kind.is_namespaced)
        || kind.selectable.iter().any(|it| it == path);
    if !is_known {
        let message =
            if kind.is_custom || !kind.selectable.is_empty() || matches!(kind.plural.as_str(), "services") {
                format!("field label not supported: {path}")
            } else {
                format!(
                    "\"{path}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                )
            };
        return Err(Refusal::bad(&message));
    }
    Ok((path.to_owned(), value.to_owned(), is_equal))
}

/// The terms, split at commas outside parentheses.
fn split(labels: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut depth = 0;
    for letter in labels.chars() {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        if letter == ',' && depth == 0 {
            terms.push(String::new());
        } else if let Some(last) = terms.last_mut() {
            last.push(letter);
        }
    }
    terms.into_iter().map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect()
}

fn requirement(term: &str) -> Option<Requirement> {
    let set = |rest: &str| -> Option<Vec<String>> {
        let inner = rest.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(inner.split(',').map(|it| it.trim().to_owned()).collect())
    };
    let one = |(key, value): (&str, &str)| (key.trim().to_owned(), vec![value.trim().to_owned()]);
    if let Some((key, rest)) = term.split_once(" notin ") {
        return Some(Requirement::NotIn(key.trim().to_owned(), set(rest)?));
    }
    if let Some((key, rest)) = term.split_once(" in ") {
        return Some(Requirement::In(key.trim().to_owned(), set(rest)?));
    }
    if let Some((key, values)) = term.split_once("!=").map(one) {
        return Some(Requirement::NotIn(key, values));
    }
    if let Some((key, values)) = term.split_once("==").or_else(|| term.split_once('=')).map(one) {
        return Some(Requirement::In(key, values));
    }
    match term.strip_prefix('!') {
        Some(key) => Some(Requirement::Absent(key.trim().to_owned())),
        None if term.contains([' ', '(', ')']) => None,
        None => Some(Requirement::Exists(term.to_owned())),
    }
}
