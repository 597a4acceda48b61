//! What the API server says of an object in a dry run, and whether that is what a case must come to.

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, Client, Resource};
use serde_json::Value;

use super::with;

/// Creates in a dry run: what the API server says, or nothing when it takes it.
pub(super) async fn create<K: Resource<DynamicType = ()>>(client: &Client, object: Value) -> Option<String> {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let params = PostParams { dry_run: true, ..PostParams::default() };
    match api::<K>(client, &object).create(&params, &object).await {
        Ok(_) => None,
        Err(kube::Error::Api(status)) => Some(status.message.clone()),
        Err(error) => panic!("the API server did not answer: {error}"),
    }
}

/// Changes the object that is there in a dry run.
pub(super) async fn update<K: Resource<DynamicType = ()>>(
    client: &Client,
    object: Value,
    changes: &Value,
) -> Option<String> {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let params = PatchParams { dry_run: true, ..PatchParams::default() };
    let name = object.metadata.name.clone().unwrap();
    match api::<K>(client, &object).patch(&name, &params, &Patch::Merge(changes)).await {
        Ok(_) => None,
        Err(kube::Error::Api(status)) => Some(status.message.clone()),
        Err(error) => panic!("the API server did not answer: {error}"),
    }
}

fn api<K: Resource<DynamicType = ()>>(client: &Client, object: &DynamicObject) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<K>(&());
    match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// What a case must come to: the parts of the message, or nothing when it passes.
pub(super) fn judge(case: &Value, answer: Option<&String>, says: &[&str], failures: &mut Vec<String>) {
    let is_right = match answer {
        None => says.is_empty(),
        Some(message) => !says.is_empty() && says.iter().all(|part| message.contains(part)),
    };
    if !is_right {
        failures.push(format!("{case}: expected {says:?}, got {answer:?}"));
    }
}

/// Creates this object with the changes of each case.
pub(super) async fn judge_created<'a, K: Resource<DynamicType = ()>>(
    client: &Client,
    object: &Value,
    cases: impl IntoIterator<Item = (Value, &'a [&'a str])>,
    failures: &mut Vec<String>,
) {
    for (changes, says) in cases {
        let answer = create::<K>(client, with(object.clone(), &changes)).await;
        judge(&changes, answer.as_ref(), says, failures);
    }
}
