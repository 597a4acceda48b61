//! A client without a runtime, for those who act in the cluster beside the operator: a request is carried out
//! at once, and one that is refused is made again at the next look.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use serde_json::{Value, json};

use crate::handle::Answer;
use crate::request::Call;
use crate::server::Server;

/// One actor's requests.
#[derive(Clone, Copy)]
pub struct Hand<'a> {
    server: &'a Server,
    caller: &'static str,
}

impl<'a> Hand<'a> {
    /// The hand of the actor of this name.
    pub fn of(server: &'a Server, caller: &'static str) -> Self {
        Self { server, caller }
    }

    /// Creates an object; none if that is refused.
    pub fn create(&self, resource: &str, object: &Value) -> Option<Arc<Value>> {
        let path = self.server.path(resource, text(&object["metadata"]["namespace"]))?;
        self.request(Method::POST, &path, "application/json", object)
    }

    /// Merges a patch into an object, or (with `/status`) into its status; none if that is refused.
    pub fn merge(
        &self,
        resource: &str,
        object: &Value,
        subresource: &str,
        changes: &Value,
    ) -> Option<Arc<Value>> {
        let path = self.path_of(resource, object)?;
        self.request(Method::PATCH, &format!("{path}{subresource}"), "application/merge-patch+json", changes)
    }

    /// Assigns a pod to a Kubernetes node.
    pub fn bind(&self, pod: &Value, node: &str) -> Option<Arc<Value>> {
        let path = self.path_of("pods", pod)?;
        let binding = json!({"apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": pod["metadata"]["name"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node}});
        self.request(Method::POST, &format!("{path}/binding"), "application/json", &binding)
    }

    /// Deletes exactly this object, with these options beside its UID.
    pub fn delete(&self, resource: &str, object: &Value, options: &Value) -> Option<Arc<Value>> {
        let path = self.path_of(resource, object)?;
        let mut options = options.clone();
        options["preconditions"] = json!({"uid": object["metadata"]["uid"]});
        self.request(Method::DELETE, &path, "application/json", &options)
    }

    /// Takes Kubernetes' own finalizer off a namespace that is being deleted.
    pub fn finalize(&self, namespace: &Value) -> Option<Arc<Value>> {
        let path = self.path_of("namespaces", namespace)?;
        let mut emptied = namespace.clone();
        emptied["spec"]["finalizers"] = json!([]);
        self.request(Method::PUT, &format!("{path}/finalize"), "application/json", &emptied)
    }

    fn path_of(&self, resource: &str, object: &Value) -> Option<String> {
        let path = self.server.path(resource, text(&object["metadata"]["namespace"]))?;
        Some(format!("{path}/{}", text(&object["metadata"]["name"])))
    }

    fn request(&self, method: Method, path: &str, media: &str, body: &Value) -> Option<Arc<Value>> {
        let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, media);
        let (parts, ()) = request.body(()).ok()?.into_parts();
        let call = Call::read(self.caller, &parts, Bytes::from(body.to_string())).ok()?;
        match self.server.carry_out(&call) {
            Ok(Answer::Object(_, object)) => Some(object),
            Ok(Answer::List(_) | Answer::Watch(_)) => None,
            Err(refusal) => {
                tracing::debug!(caller = self.caller, path, status = %refusal.status, "refused");
                None
            }
        }
    }
}

/// A text, or nothing.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
