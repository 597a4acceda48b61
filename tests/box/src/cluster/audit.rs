//! Reads the API server's audit log: who asked for what.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;

/// One answered request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// When the API server received it.
    pub received: Timestamp,
    /// The user: `freehold` is the operator, `freehold-box` the box itself, `admin` a person.
    pub user: String,
    /// The client program's name for itself.
    pub user_agent: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// The API group, empty for the core one.
    pub group: String,
    /// The plural resource, with `/subresource` if there is one.
    pub resource: String,
    /// The object's namespace, empty for cluster-scoped ones.
    pub namespace: String,
    /// The object's name, empty for lists.
    pub name: String,
    /// The HTTP status of the answer.
    pub code: u16,
    /// Whether it was refused because the user has no right to it.
    pub is_forbidden: bool,
}

impl Request {
    /// Whether it asked for a change, granted or not.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    request_received_timestamp: Timestamp,
    verb: String,
    user: User,
    #[serde(default)]
    user_agent: String,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ObjectRef {
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

/// All requests about objects so far, in the order of their answers. A last line that is still being written
/// is left out.
pub fn requests(log: &Path) -> io::Result<Vec<Request>> {
    requests_since(log, &mut 0)
}

/// The same from this place in the file on, which is moved to behind what was read.
pub fn requests_since(log: &Path, place: &mut u64) -> io::Result<Vec<Request>> {
    let mut file = File::open(log)?;
    file.seek(SeekFrom::Start(*place))?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let whole = text.rfind('\n').and_then(|end| text.get(..=end)).unwrap_or_default();
    *place += u64::try_from(whole.len()).unwrap_or_default();
    whole
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| Ok(serde_json::from_str::<Event>(line)?))
        .filter_map(request)
        .collect()
}

fn request(event: io::Result<Event>) -> Option<io::Result<Request>> {
    let event = match event {
        Ok(event) => event,
        Err(error) => return Some(Err(error)),
    };
    let object = event.object_ref?;
    let resource = if object.subresource.is_empty() {
        object.resource
    } else {
        format!("{}/{}", object.resource, object.subresource)
    };
    Some(Ok(Request {
        received: event.request_received_timestamp,
        user: event.user.username,
        user_agent: event.user_agent,
        verb: event.verb,
        group: object.api_group,
        resource,
        namespace: object.namespace,
        name: object.name,
        code: event.response_status.map_or(0, |status| status.code),
        is_forbidden: event
            .annotations
            .get("authorization.k8s.io/decision")
            .is_some_and(|decision| decision == "forbid"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_about_objects_are_read_and_half_lines_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.log");
        let event = r#"{"requestReceivedTimestamp":"2026-01-01T00:00:00.250000Z","verb":"patch","user":{"username":"freehold"},"userAgent":"freehold/1","objectRef":{"apiGroup":"freehold.dev","resource":"nodes","subresource":"status","name":"a"},"responseStatus":{"code":200},"annotations":{"authorization.k8s.io/decision":"allow"}}"#;
        let other = r#"{"requestReceivedTimestamp":"2026-01-01T00:00:01.000000Z","verb":"get","user":{"username":"x"}}"#;
        std::fs::write(&log, format!("{event}\n{other}\n{{\"verb\":\"ge")).unwrap();
        let expected = Request {
            received: "2026-01-01T00:00:00.25Z".parse().unwrap(),
            user: "freehold".to_owned(),
            user_agent: "freehold/1".to_owned(),
            verb: "patch".to_owned(),
            group: "freehold.dev".to_owned(),
            resource: "nodes/status".to_owned(),
            namespace: String::new(),
            name: "a".to_owned(),
            code: 200,
            is_forbidden: false,
        };
        assert_eq!(requests(&log).unwrap(), vec![expected.clone()]);
        let mut place = 0;
        assert_eq!(requests_since(&log, &mut place).unwrap().len(), 1);
        assert_eq!(requests_since(&log, &mut place).unwrap(), Vec::new());
        assert!(expected.is_write());
    }
}
