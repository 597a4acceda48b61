//! Reads a request: which kind, which object, and what is to be done with it.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, header};

use super::answer::Refusal;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read many.
    List,
    /// Follow many.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// Delete one object.
    Delete,
    /// Delete many.
    DeleteCollection,
}

impl Verb {
    /// Whether it may change something.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// A request as faults and the journal see it.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which client, by the name that [`crate::Server::client`] was given.
    pub caller: String,
    /// What is to be done.
    pub verb: Verb,
    /// The API group; empty for the core.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural of the kind.
    pub plural: String,
    /// The namespace; empty for none and for all.
    pub namespace: String,
    /// The name; empty for many.
    pub name: String,
    /// `status`, `binding` and so on; empty for the object itself.
    pub subresource: String,
    /// The parameters.
    pub query: BTreeMap<String, String>,
    /// The media type of the body, without parameters.
    pub content_type: String,
    /// Only metadata is wanted (`PartialObjectMetadata`).
    pub metadata_only: bool,
    /// The field manager: the parameter, or the first part of the user agent.
    pub manager: String,
    /// The body.
    pub body: Bytes,
}

impl Call {
    /// Reads the request; none for a path that no kind can have.
    pub fn read(caller: &str, parts: &Parts, body: Bytes) -> Result<Self, Refusal> {
        let path = parts.uri.path().split('/').filter(|it| !it.is_empty()).collect::<Vec<_>>();
        let (group, version, rest) = match path.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return Err(Refusal::no_such_path()),
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() && !is_of_namespace(rest) => {
                (*namespace, rest)
            }
            rest => ("", rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, "", ""),
            [plural, name] => (*plural, *name, ""),
            [plural, name, subresource] => (*plural, *name, *subresource),
            _ => return Err(Refusal::no_such_path()),
        };
        let query = parts.uri.query().unwrap_or_default();
        let query: BTreeMap<String, String> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let text = |name: header::HeaderName| {
            parts.headers.get(name).and_then(|it| it.to_str().ok()).unwrap_or_default().to_owned()
        };
        let agent = text(header::USER_AGENT);
        let agent = agent.split('/').next().filter(|it| !it.is_empty()).unwrap_or("unknown").to_owned();
        Ok(Self {
            caller: caller.to_owned(),
            verb: verb(&parts.method, !name.is_empty(), &query)?,
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
            content_type: text(header::CONTENT_TYPE).split(';').next().unwrap_or_default().to_owned(),
            metadata_only: text(header::ACCEPT).contains("as=PartialObjectMetadata"),
            manager: query.get("fieldManager").cloned().unwrap_or(agent),
            query,
            body,
        })
    }

    /// A parameter; empty if it is missing.
    pub fn parameter(&self, name: &str) -> &str {
        self.query.get(name).map(String::as_str).unwrap_or_default()
    }

    /// `plural.group`; of the core, `plural`.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Whether nothing is to be kept.
    pub fn is_dry_run(&self) -> bool {
        self.parameter("dryRun") == "All"
    }
}

/// `namespaces/x/status` and `namespaces/x/finalize` are of the namespace itself.
fn is_of_namespace(rest: &[&str]) -> bool {
    matches!(rest, ["status" | "finalize"])
}

fn verb(method: &Method, is_named: bool, query: &BTreeMap<String, String>) -> Result<Verb, Refusal> {
    let is_watch = query.get("watch").is_some_and(|it| it == "true" || it == "1");
    Ok(match (method.as_str(), is_named) {
        ("GET", true) => Verb::Get,
        ("GET", false) if is_watch => Verb::Watch,
        ("GET", false) => Verb::List,
        ("POST", _) => Verb::Create,
        ("PUT", true) => Verb::Update,
        ("PATCH", true) => Verb::Patch,
        ("DELETE", true) => Verb::Delete,
        ("DELETE", false) => Verb::DeleteCollection,
        _ => return Err(Refusal::no_such_method()),
    })
}
