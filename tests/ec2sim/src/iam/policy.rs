//! A policy: its statements, read strictly. What is not known here is refused when the policy is read, never
//! ignored.
//!
//! Source: IAM User Guide, "Grammar of the IAM JSON policy language", and the pages of the single elements.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{condition::Condition, document::Document, request::Request};
use crate::wildcard;

/// The version of the policy language: the only one that AWS recommends (IAM User Guide, "IAM JSON policy
/// elements: Version").
const VERSION: &str = "2012-10-17";

/// What a policy variable begins with. They are not known here (IAM User Guide, "IAM policy elements:
/// Variables and tags").
const VARIABLE: &str = "${";

/// An identity-based policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub(super) statements: Vec<Statement>,
}

/// Why a text is no policy that the simulator can hold to.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// It is not JSON, or an element is written twice.
    #[error(transparent)]
    Json(#[from] serde_json::Error),

    /// Something is wrong with the document as a whole.
    #[error("the policy is not accepted: {0}")]
    Document(String),

    /// Something is wrong with a statement.
    #[error("the statement {sid} is not accepted: {what}")]
    Statement {
        /// Its Sid, or its number.
        sid: String,
        /// What is wrong.
        what: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Allow,
    Deny,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    /// The Sid, or `#` and the statement's number.
    pub(super) sid: String,
    pub(super) effect: Effect,
    actions: Patterns,
    resources: Patterns,
    conditions: Vec<Condition>,
}

/// The patterns of `Action` or `Resource`, or of `NotAction` or `NotResource`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Patterns {
    patterns: Vec<String>,
    negated: bool,
}

impl Policy {
    /// Reads a policy's JSON.
    ///
    /// # Errors
    /// If it is no policy, or holds anything that the simulator does not know; the sentence names it.
    pub fn read(json: &str) -> Result<Self, PolicyError> {
        let Document(document) = serde_json::from_str(json)?;
        let whole = |what: &str| PolicyError::Document(what.to_owned());
        let Value::Object(mut document) = document else {
            return Err(whole("it is no JSON object"));
        };
        if document.remove("Version").as_ref().and_then(Value::as_str) != Some(VERSION) {
            return Err(PolicyError::Document(format!("its Version is not {VERSION}")));
        }
        let written = match document.remove("Statement") {
            Some(Value::Array(list)) if !list.is_empty() => list,
            Some(one @ Value::Object(_)) => vec![one],
            _ => return Err(whole("it has no Statement")),
        };
        if let Some(name) = document.keys().next() {
            return Err(PolicyError::Document(format!("the element {name} is not known here")));
        }
        let mut statements: Vec<Statement> = Vec::new();
        for (number, value) in (1..).zip(written) {
            let statement = read_statement(number, value)?;
            if statements.iter().any(|other| other.sid == statement.sid) {
                let what = "another statement has the same Sid".to_owned();
                return Err(PolicyError::Statement { sid: statement.sid, what });
            }
            statements.push(statement);
        }
        Ok(Self { statements })
    }

    /// The Sids of the statements that allow something (`#` and the number for one without a Sid).
    pub fn sids(&self) -> BTreeSet<String> {
        let allows = self.statements.iter().filter(|statement| statement.effect == Effect::Allow);
        allows.map(|statement| statement.sid.clone()).collect()
    }
}

impl Statement {
    /// Whether it speaks of this request.
    pub(super) fn fits(&self, request: &Request) -> bool {
        self.actions.fit(|pattern| wildcard::fits(&pattern.to_lowercase(), &request.action.to_lowercase()))
            && self.resources.fit(|pattern| wildcard::fits_resource(pattern, &request.resource))
            && self.conditions.iter().all(|condition| condition.holds(&request.context))
    }
}

impl Patterns {
    fn fit(&self, fits: impl Fn(&str) -> bool) -> bool {
        self.patterns.iter().any(|pattern| fits(pattern)) != self.negated
    }
}

fn read_statement(number: usize, value: Value) -> Result<Statement, PolicyError> {
    let sid = match value.get("Sid") {
        Some(Value::String(sid)) => sid.clone(),
        _ => format!("#{number}"),
    };
    let read = if let Value::Object(elements) = value {
        read_elements(sid.clone(), elements)
    } else {
        Err("it is no JSON object".to_owned())
    };
    read.map_err(|what| PolicyError::Statement { sid, what })
}

fn read_elements(sid: String, mut elements: Map<String, Value>) -> Result<Statement, String> {
    // ASCII letters and digits (IAM User Guide, "IAM JSON policy elements: Sid").
    let is_sid = |sid: &str| !sid.is_empty() && sid.chars().all(|one| one.is_ascii_alphanumeric());
    if elements.remove("Sid").is_some_and(|given| !given.as_str().is_some_and(is_sid)) {
        return Err("its Sid is not made of letters and digits".to_owned());
    }
    let effect = match elements.remove("Effect").as_ref().and_then(Value::as_str) {
        Some("Allow") => Effect::Allow,
        Some("Deny") => Effect::Deny,
        Some(other) => return Err(format!("the Effect {other} is not known here")),
        None => return Err("it has no Effect".to_owned()),
    };
    let actions = read_patterns(&mut elements, "Action", |pattern| {
        pattern == "*" || pattern.split_once(':').is_some_and(|(service, _)| !service.is_empty())
    })?;
    let resources =
        read_patterns(&mut elements, "Resource", |pattern| pattern == "*" || pattern.starts_with("arn:"))?;
    let conditions = match elements.remove("Condition") {
        None => Vec::new(),
        Some(Value::Object(blocks)) => read_conditions(blocks)?,
        Some(_) => return Err("its Condition is no JSON object".to_owned()),
    };
    match elements.keys().next() {
        None => Ok(Statement { sid, effect, actions, resources, conditions }),
        Some(name) => Err(format!("the element {name} is not known here")),
    }
}

/// Reads `<name>` or `Not<name>`: exactly one of them, one pattern or a list of them.
fn read_patterns(
    elements: &mut Map<String, Value>,
    name: &str,
    is_pattern: impl Fn(&str) -> bool,
) -> Result<Patterns, String> {
    let (value, negated) = match (elements.remove(name), elements.remove(&format!("Not{name}"))) {
        (Some(value), None) => (value, false),
        (None, Some(value)) => (value, true),
        (Some(_), Some(_)) => return Err(format!("it has {name} and Not{name}")),
        (None, None) => return Err(format!("it has no {name}")),
    };
    let patterns = read_values(name, value)?;
    match patterns.iter().find(|pattern| !is_pattern(pattern)) {
        None => Ok(Patterns { patterns, negated }),
        Some(wrong) => Err(format!("its {name} {wrong:?} has not the form of one")),
    }
}

fn read_conditions(blocks: Map<String, Value>) -> Result<Vec<Condition>, String> {
    let mut conditions = Vec::new();
    for (operator, keys) in blocks {
        let Value::Object(keys) = keys else {
            return Err(format!("its {operator} is no JSON object"));
        };
        for (key, values) in keys {
            conditions.push(Condition::read(&operator, &key, read_values(&key, values)?)?);
        }
    }
    Ok(conditions)
}

/// One value or a list of them, as texts; IAM refuses an empty list.
fn read_values(name: &str, value: Value) -> Result<Vec<String>, String> {
    let list = if let Value::Array(list) = value { list } else { vec![value] };
    if list.is_empty() {
        return Err(format!("its {name} is empty"));
    }
    let texts = list.into_iter().map(|value| match value {
        Value::String(text) if text.contains(VARIABLE) => {
            Err(format!("policy variables are not known here: {text:?}"))
        }
        Value::String(text) => Ok(text),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(format!("its {name} is neither a text nor a list of texts"))
        }
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(statement: &str) -> String {
        let document = format!(r#"{{"Version": "2012-10-17", "Statement": {statement}}}"#);
        Policy::read(&document).unwrap_err().to_string()
    }

    #[test]
    fn one_statement_is_as_good_as_a_list_and_the_sids_are_those_that_allow() {
        let one = r#"{"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}"#;
        let list = format!(
            r#"[{{"Sid": "No", "Effect": "Deny", "NotAction": "ec2:*", "NotResource": ["*"]}}, {one}]"#
        );
        for (statement, sids) in [(one, "#1"), (&list, "#2")] {
            let document = format!(r#"{{"Version": "2012-10-17", "Statement": {statement}}}"#);
            assert_eq!(Policy::read(&document).unwrap().sids(), BTreeSet::from([sids.to_owned()]));
        }
    }

    #[test]
    fn what_is_wrong_with_a_statement_is_said_with_its_sid() {
        for (change, what) in [
            (r#""Effect": "Permit""#, "the Effect Permit is not known"),
            (r#""Action": "RunInstances""#, "its Action \"RunInstances\""),
            (r#""Action": []"#, "its Action is empty"),
            (r#""Action": {"a": "b"}"#, "its Action is neither"),
            (r#""Resource": "instance/*""#, "its Resource \"instance/*\""),
            (r#""Resource": []"#, "its Resource is empty"),
            (r#""Resource": "arn:aws:ec2:*:*:instance/${aws:username}""#, "policy variables"),
            (r#""NotResource": "*""#, "it has Resource and NotResource"),
            (r#""Principal": "*""#, "the element Principal is not known"),
            (r#""condition": {}"#, "the element condition is not known"),
            (r#""Condition": []"#, "its Condition is no JSON object"),
            (r#""Condition": {"Bool": "true"}"#, "its Bool is no JSON object"),
            (r#""Condition": {"StringEqual": {"ec2:Vpc": "a"}}"#, "the operator StringEqual is not known"),
            (r#""Condition": {"StringEquals": {"ec2:Color": "a"}}"#, "the condition key ec2:Color"),
            (r#""Condition": {"StringEquals": {"ec2:Vpc": []}}"#, "its ec2:Vpc is empty"),
            (r#""Condition": {"StringEquals": {"ec2:Vpc": "${a}"}}"#, "policy variables"),
        ] {
            let mut elements =
                vec![r#""Effect": "Allow""#, r#""Action": "ec2:*""#, r#""Resource": "*""#, change];
            let name = change.split(':').next().unwrap_or_default();
            elements.retain(|element| *element == change || !element.starts_with(name));
            let said = refused(&format!(r#"[{{"Sid": "Mine", {}}}]"#, elements.join(", ")));
            assert!(said.starts_with("the statement Mine is not accepted: "), "{change}: {said}");
            assert!(said.contains(what), "{change}: {said}");
        }
    }

    #[test]
    fn what_is_wrong_with_the_document_is_said() {
        let good = r#"{"Effect": "Allow", "Action": "*", "Resource": "*"}"#;
        let twice = format!(r#"[{{"Sid": "A", {}, {{"Sid": "A", {}]"#, &good[1..], &good[1..]);
        for (statement, what) in [
            ("[]", "it has no Statement"),
            ("[1]", "the statement #1 is not accepted: it is no JSON object"),
            (r#"[{"Sid": "a b", "Effect": "Allow", "Action": "*", "Resource": "*"}]"#, "its Sid"),
            (r#"[{"Effect": "Allow", "Effect": "Deny"}]"#, "the element Effect is there twice"),
            (&twice, "another statement has the same Sid"),
        ] {
            let said = refused(statement);
            assert!(said.contains(what), "{statement}: {said}");
        }
        for (document, what) in [
            (format!(r#"{{"Statement": {good}}}"#), "its Version"),
            (format!(r#"{{"Version": "2008-10-17", "Statement": {good}}}"#), "its Version"),
            (format!(r#"{{"Version": "2012-10-17", "Id": "a", "Statement": {good}}}"#), "the element Id"),
            ("[]".to_owned(), "it is no JSON object"),
            ("{".to_owned(), "EOF"),
        ] {
            let said = Policy::read(&document).unwrap_err().to_string();
            assert!(said.contains(what), "{document}: {said}");
        }
    }
}
