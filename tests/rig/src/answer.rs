//! Refusals as the API server words them: a `Status` with code, reason and details.

use serde_json::{Value, json};

use super::kind::Kind;

/// A request that is not carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The HTTP status.
    pub code: u16,
    /// The body, a `Status`.
    pub status: Value,
    /// After how many seconds the client may come again.
    pub retry_after: Option<u32>,
}

/// One fault of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// For programs.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// The path of the field.
    pub field: String,
}

impl Cause {
    /// A field that must be there.
    pub fn required(field: &str, detail: &str) -> Self {
        let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
        Self::new("FieldValueRequired", field, format!("Required value{detail}"))
    }

    /// A value that is not allowed.
    pub fn invalid(field: &str, value: &Value, detail: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {value}: {detail}"))
    }

    /// A change that is not allowed.
    pub fn forbidden(field: &str, detail: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {detail}"))
    }

    /// The same with any reason and message.
    pub fn new(reason: &'static str, field: &str, message: String) -> Self {
        Self { reason, message, field: field.to_owned() }
    }
}

impl Refusal {
    fn new(code: u16, reason: &str, message: &str, details: Option<Value>) -> Self {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
            "reason": reason, "code": code,
        });
        if let Some(details) = details {
            status["details"] = details;
        }
        if reason.is_empty() {
            status.as_object_mut().map(|it| it.remove("reason"));
        }
        Self { code, status, retry_after: None }
    }

    /// Any refusal without details.
    pub fn plain(code: u16, reason: &str, message: &str) -> Self {
        Self::new(code, reason, message, None)
    }

    /// The request makes no sense.
    pub fn bad(message: &str) -> Self {
        Self::plain(400, "BadRequest", message)
    }

    /// There is no such path.
    pub fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource", Some(json!({})))
    }

    /// There is no such group: not even a `Status`.
    pub fn no_such_group() -> Self {
        Self { code: 404, status: json!("404 page not found"), retry_after: None }
    }

    /// This cannot be done there.
    pub fn no_such_method() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message, Some(json!({})))
    }

    /// There is no such object.
    pub fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.resource());
        Self::new(404, "NotFound", &message, Some(details(kind, &kind.plural, name)))
    }

    /// The name is taken.
    pub fn exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.resource());
        Self::new(409, "AlreadyExists", &message, Some(details(kind, &kind.plural, name)))
    }

    /// The object is not what the client takes it for.
    pub fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.resource());
        Self::new(409, "Conflict", &message, Some(details(kind, &kind.plural, name)))
    }

    /// The same of a deletion, whose message names the kind.
    pub fn precondition(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.qualified());
        Self::new(409, "Conflict", &message, Some(details(kind, &kind.kind, name)))
    }

    /// The object breaks rules.
    pub fn invalid(kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        let mut words: Vec<String> = Vec::new();
        for cause in causes {
            let word = format!("{}: {}", cause.field, cause.message);
            if !words.contains(&word) {
                words.push(word);
            }
        }
        let all =
            if let [only] = words.as_slice() { only.clone() } else { format!("[{}]", words.join(", ")) };
        let message = format!("{} \"{name}\" is invalid: {all}", kind.qualified());
        let mut details = details(kind, &kind.kind, name);
        details["causes"] = listed(causes);
        Self::new(422, "Invalid", &message, Some(details))
    }

    /// An update without a resourceVersion of a kind that wants one.
    pub fn unconditional(kind: &Kind, name: &str) -> Self {
        let cause = Cause::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
        let message =
            format!("{} \"{name}\" is invalid: {}: {}", kind.resource(), cause.field, cause.message);
        let mut details = details(kind, &kind.plural, name);
        details["causes"] = listed(&[cause]);
        Self::new(422, "Invalid", &message, Some(details))
    }

    /// The namespace is being deleted.
    pub fn terminating(kind: &Kind, name: &str, namespace: &str) -> Self {
        let resource = kind.resource();
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut details = details(kind, &kind.plural, name);
        let message = format!("namespace {namespace} is being terminated");
        details["causes"] = listed(&[Cause::new("NamespaceTerminating", "metadata.namespace", message)]);
        Self::new(403, "Forbidden", &format!("{resource} \"{name}\" is forbidden: {why}"), Some(details))
    }

    /// A patch that cannot be applied.
    pub fn rejected_patch() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(422, "Invalid", message, Some(json!({})))
    }

    /// Fields of other managers are in the way of an apply: each manager as the message names it, with the
    /// path.
    pub fn fields_in_use(conflicts: &[(String, String)]) -> Self {
        let of = |(manager, path): &(String, String)| {
            Cause::new("FieldManagerConflict", path, format!("conflict with {manager}"))
        };
        let causes: Vec<Cause> = conflicts.iter().map(of).collect();
        let message = match causes.as_slice() {
            [only] => format!("Apply failed with 1 conflict: {}: {}", only.message, only.field),
            all => format!("Apply failed with {} conflicts: {}", all.len(), grouped(conflicts)),
        };
        Self::new(409, "Conflict", &message, Some(json!({"causes": listed(&causes)})))
    }

    /// What was asked for is no longer kept.
    pub fn expired(message: &str) -> Self {
        Self::plain(410, "Expired", message)
    }

    /// The API server is not able to answer: 429, 500, 503 or 504.
    pub fn unavailable(code: u16, retry_after: Option<u32>) -> Self {
        let (reason, message) = match code {
            429 => (
                "TooManyRequests",
                "the server has received too many requests and has asked us to try again later",
            ),
            503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
            504 => ("Timeout", "the request timed out"),
            _ => ("InternalError", "an error on the server has prevented the request from succeeding"),
        };
        let details = retry_after.map(|seconds| json!({"retryAfterSeconds": seconds}));
        Self { retry_after, ..Self::new(code, reason, message, details) }
    }
}

/// Conflicts by manager, as the API server's message has several.
fn grouped(conflicts: &[(String, String)]) -> String {
    let mut lines = Vec::new();
    let mut last = "";
    for (manager, path) in conflicts {
        if manager != last {
            lines.push(format!("conflicts with {manager}:"));
            last = manager;
        }
        lines.push(format!("- {path}"));
    }
    lines.join("\n")
}

fn listed(causes: &[Cause]) -> Value {
    let one = |it: &Cause| json!({"reason": it.reason, "message": it.message, "field": it.field});
    causes.iter().map(one).collect()
}

fn details(kind: &Kind, named: &str, name: &str) -> Value {
    let mut details = json!({"kind": named});
    for (key, value) in [("name", name), ("group", kind.group.as_str())] {
        if !value.is_empty() {
            details[key] = json!(value);
        }
    }
    details
}
