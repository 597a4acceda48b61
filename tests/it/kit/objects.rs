//! The objects that scenarios write, and what is read of those that the operator writes.

use ec2sim::JournalEntry;
use freehold::api::{Backup, BackupSchedule, Database, DatabaseUser, Node, NodeClass, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};

/// A Database as the API server is sent it: a QuestDB of 100 GiB on the test environment's NodeClass, with
/// `changes` merged into its spec.
pub fn database(namespace: &str, class: &str, name: &str, changes: &Value) -> Value {
    let mut spec = json!({
        "engine": {"type": "questdb", "version": "9.3.4"},
        "nodeClassName": class,
        "storage": {"size": "100Gi"},
    });
    merge(&mut spec, changes);
    json!({
        "apiVersion": "freehold.dev/v1alpha1", "kind": "Database",
        "metadata": {"namespace": namespace, "name": name}, "spec": spec,
    })
}

/// Of these calls the launches for the Databases of a namespace.
pub fn launches_for(namespace: &str, calls: Vec<JournalEntry>) -> Vec<JournalEntry> {
    let prefix = format!("{namespace}/");
    let is_of = |call: &JournalEntry| {
        let database = call.tags.get("freehold.dev/database");
        call.action == "RunInstances" && database.is_some_and(|name| name.starts_with(&prefix))
    };
    calls.into_iter().filter(is_of).collect()
}

/// RFC 7386.
pub fn merge(into: &mut Value, changes: &Value) {
    let Value::Object(changes) = changes else {
        into.clone_from(changes);
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, change) in changes {
        if change.is_null() {
            into.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut into[key.as_str()], change);
        }
    }
}

/// An object with conditions.
pub trait Told {
    /// Its conditions.
    fn conditions(&self) -> &[Condition];

    /// `status reason: message` of one, for comparison and for failures.
    fn condition(&self, kind: &str) -> (String, String, String) {
        self.conditions()
            .iter()
            .find(|condition| condition.type_ == kind)
            .map(|condition| (condition.status.clone(), condition.reason.clone(), condition.message.clone()))
            .unwrap_or_default()
    }
}

impl Told for Database {
    fn conditions(&self) -> &[Condition] {
        Self::conditions(self)
    }
}

impl Told for NodeClass {
    fn conditions(&self) -> &[Condition] {
        Self::conditions(self)
    }
}

impl Told for Node {
    fn conditions(&self) -> &[Condition] {
        Self::conditions(self)
    }
}

impl Told for Volume {
    fn conditions(&self) -> &[Condition] {
        Self::conditions(self)
    }
}

impl Told for BackupSchedule {
    fn conditions(&self) -> &[Condition] {
        Self::conditions(self)
    }
}

impl Told for DatabaseUser {
    fn conditions(&self) -> &[Condition] {
        Self::conditions(self)
    }
}

impl Told for Backup {
    fn conditions(&self) -> &[Condition] {
        Self::conditions(self)
    }
}
