//! A walk over every field of every kind: set, emptied, out of range, changed and set back. Refused, or
//! reconciled, or shown by a condition; never a panic, never stuck; and set back, all is Ready again.

use std::fmt::Debug;

use freehold::api::{Database, Node, NodeClass, Volume};
use freehold::definitions;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, CustomResourceExt, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::kit::env::Env as _;
use crate::kit::objects::Told as _;
use crate::kit::test_env::{TestEnv, run};
use crate::kit::wait::{each, seen, until};

/// One edit: where in the spec, and what to put there; `null` takes it out.
#[derive(Clone, Debug)]
struct Edit {
    path: Vec<String>,
    value: Value,
}

impl Edit {
    /// As a JSON merge patch of the object.
    fn patch(&self, value: &Value) -> Value {
        let spec = self.path.iter().rev().fold(value.clone(), |inner, key| json!({ key: inner }));
        json!({ "spec": spec })
    }
}

/// The schema of a kind's spec, as it is served.
fn spec_of<K: CustomResourceExt>() -> JSONSchemaProps {
    let definition =
        definitions::all().into_iter().find(|definition| definition.name_any() == K::crd_name()).unwrap();
    let schema = definition.spec.versions[0].schema.clone().unwrap().open_api_v3_schema.unwrap();
    schema.properties.unwrap()["spec"].clone()
}

/// What is put into a field of this schema.
fn values(schema: &JSONSchemaProps) -> Vec<Value> {
    let long = "x".repeat(4000);
    let mut values = vec![Value::Null];
    values.extend(match schema.type_.as_deref() {
        Some("string") => vec![json!(""), json!("no such thing"), json!(long), json!(7)],
        Some("integer") => vec![json!(-1), json!(0), json!(i32::MAX), json!("1")],
        Some("boolean") => vec![json!("true"), json!(false)],
        Some("array") => vec![json!([]), json!([""]), json!(["a", "a"]), json!("a")],
        Some("object") => vec![json!({}), json!({"": ""}), json!({"no such key": "x"}), json!([])],
        other => panic!("a field of type {other:?}"),
    });
    values.extend(schema.enum_.iter().flatten().map(|value| value.0.clone()));
    values
}

/// Every edit of every field below this schema.
fn walk(schema: &JSONSchemaProps, path: &[String], edits: &mut Vec<Edit>) {
    for (name, field) in schema.properties.iter().flatten() {
        let path: Vec<String> = path.iter().cloned().chain([name.clone()]).collect();
        edits.extend(values(field).into_iter().map(|value| Edit { path: path.clone(), value }));
        walk(field, &path, edits);
    }
}

fn edits_of<K: CustomResourceExt>() -> Vec<Edit> {
    let mut edits = Vec::new();
    walk(&spec_of::<K>(), &[], &mut edits);
    assert!(edits.len() > 15, "{}", edits.len());
    edits
}

/// What the field holds now.
fn held(object: &Value, path: &[String]) -> Value {
    path.iter().fold(object["spec"].clone(), |inner, key| inner[key.as_str()].clone())
}

/// The database that a kind's fields are edited of, by its name.
struct Subject<'a> {
    env: &'a TestEnv,
    database: &'a str,
}

impl Subject<'_> {
    async fn database(&self) -> Database {
        self.env.api::<Database>().get(self.database).await.unwrap()
    }

    /// Makes all edits of the object that this gives, one after the other; how many the API server took.
    async fn walk<K>(&self, api: &Api<K>, object: impl AsyncFn() -> String) -> usize
    where
        K: CustomResourceExt + Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + Debug,
    {
        let mut taken = 0;
        for edit in edits_of::<K>() {
            taken += usize::from(self.made(api, &object().await, &edit).await);
        }
        taken
    }

    /// Makes the edit, waits until it is dealt with, and sets the field back. Returns whether the API server
    /// took it.
    async fn made<K>(&self, api: &Api<K>, name: &str, edit: &Edit) -> bool
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + Debug,
    {
        let before = serde_json::to_value(api.get(name).await.unwrap()).unwrap();
        let params = PatchParams::default();
        match api.patch(name, &params, &Patch::Merge(edit.patch(&edit.value))).await {
            Ok(_) => {}
            Err(kube::Error::Api(answer)) if (400..500).contains(&answer.code) && answer.code != 409 => {
                assert!(!answer.message.is_empty(), "{edit:?}");
                return false;
            }
            Err(error) => panic!("{edit:?}: {error}"),
        }
        self.dealt_with(edit).await;
        let back = edit.patch(&held(&before, &edit.path));
        match api.patch(name, &params, &Patch::Merge(back)).await {
            Ok(_) => {}
            // What cannot be taken back (a volume that has grown) stays.
            Err(kube::Error::Api(answer)) if answer.code == 422 => {}
            Err(error) => panic!("{edit:?} back: {error}"),
        }
        self.env.ready(self.database).await;
        true
    }

    /// The Database speaks of its newest generation: it is Ready, or a condition says why not.
    async fn dealt_with(&self, edit: &Edit) {
        until(&format!("{edit:?} being dealt with"), || async {
            let database = self.env.api::<Database>().get(self.database).await;
            let database = database.map_err(|error| error.to_string())?;
            let (status, reason, message) = database.condition("Ready");
            let observed = database.status.as_ref().and_then(|status| status.observed_generation);
            let is_said = !status.is_empty() && !reason.is_empty() && !message.is_empty();
            seen((observed == database.metadata.generation && is_said).then_some(()), || {
                format!("{observed:?} {status} {reason}")
            })
        })
        .await;
    }
}

/// Edits every field of a kind, beside a database of its own: of a NodeClass, of one that only this database
/// uses. How many edits the API server took.
async fn edited(env: &TestEnv, kind: &str) -> usize {
    let mut changes = json!({});
    if kind == "nodeclasses" {
        let class = serde_json::from_value(env.site.node_class("schema-edited")).unwrap();
        let classes = Api::<NodeClass>::all(env.client.clone());
        classes.create(&PostParams::default(), &class).await.unwrap();
        changes = json!({"nodeClassName": "schema-edited"});
    }
    env.create(kind, &changes).await;
    let status = env.ready(kind).await.status.unwrap();
    let subject = Subject { env, database: kind };
    match kind {
        "databases" => subject.walk(&env.api::<Database>(), async || kind.to_owned()).await,
        "nodes" => {
            // It may be another one by now.
            let current = async || subject.database().await.status.unwrap().node_name.unwrap();
            subject.walk(&env.api::<Node>(), current).await
        }
        "volumes" => {
            let volume = status.volume_name.unwrap();
            subject.walk(&env.api::<Volume>(), async || volume.clone()).await
        }
        _ => {
            let classes = Api::<NodeClass>::all(env.client.clone());
            subject.walk(&classes, async || "schema-edited".to_owned()).await
        }
    }
}

#[test]
fn every_field_of_every_kind_can_be_edited_and_set_back() {
    let kinds = ["databases", "nodes", "volumes", "nodeclasses"];
    run(async {
        let env = TestEnv::start("schema").await;
        let cases = kinds.map(|kind| (kind.to_owned(), kind)).to_vec();
        let test_env = &env;
        each(cases, |_, kind| async move {
            let taken = edited(test_env, kind).await;
            assert!(taken > 3, "{kind}: {taken} edits were taken");
        })
        .await;
        env.close().await;
    });
}

/// The names of all fields below a schema; a field that takes anything is not in a schema that is closed.
fn names(schema: &JSONSchemaProps, all: &mut Vec<String>) {
    assert!(schema.x_kubernetes_preserve_unknown_fields.is_none(), "after {all:?} everything is let in");
    for (name, field) in schema.properties.iter().flatten() {
        all.push(name.clone());
        names(field, all);
    }
}

/// What would give a tenant power over pods, machines, other namespaces or addresses that the operator
/// fetches.
const POWERS: [&str; 28] = [
    "affinity",
    "args",
    "bootstrap",
    "command",
    "containers",
    "endpoint",
    "env",
    "envFrom",
    "hostNetwork",
    "hostPath",
    "imageID",
    "initContainers",
    "instanceProfile",
    "kmsKeyID",
    "namespace",
    "podTemplate",
    "role",
    "securityContext",
    "securityGroupIDs",
    "serviceAccountName",
    "sidecars",
    "snapshotID",
    "subnets",
    "tags",
    "template",
    "url",
    "userData",
    "volumeID",
];

#[test]
fn a_database_has_no_field_of_a_pod_a_machine_or_another_namespace() {
    let mut all = Vec::new();
    names(&spec_of::<Database>(), &mut all);
    assert!(all.len() > 20, "{all:?}");
    all.retain(|name| POWERS.contains(&name.as_str()));
    // In spec.adopt, spec.restore and spec.restoreInPlace. An id alone adopts nothing and restores nothing:
    // tags in EC2 must name this very Database (`legacy.rs`), and this namespace (`restoring.rs`).
    // The role in spec.applicationUser is one of the engine's.
    assert_eq!(all, ["volumeID", "role", "snapshotID", "snapshotID"], "a tenant must not decide that");
}
