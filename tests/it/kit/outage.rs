//! Lets virtual time pass while the operator is down, so that everything is as if that time had passed.

use std::time::Duration;

use freehold::api::{Node, Volume};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::test_env::TestEnv;

/// The operator was away for this (virtual) time: EC2's clock is stepped, and the times in the statuses of
/// Nodes and Volumes move back by what that time is on the operator's scaled clock. The operator must be
/// down.
pub async fn pass(env: &TestEnv, away: Duration) {
    env.ec2().advance(away);
    let back = SignedDuration::try_from(away / env.scale).unwrap();
    for node in env.list::<Node>().await {
        let status = moved(serde_json::to_value(&node.status).unwrap(), back);
        env.api::<Node>()
            .patch_status(&node.name_any(), &PatchParams::default(), &Patch::Merge(json!({"status": status})))
            .await
            .unwrap();
    }
    for volume in env.list::<Volume>().await {
        let status = moved(serde_json::to_value(&volume.status).unwrap(), back);
        let patch = Patch::Merge(json!({"status": status}));
        env.api::<Volume>().patch_status(&volume.name_any(), &PatchParams::default(), &patch).await.unwrap();
    }
}

/// The same with every time in it moved back.
fn moved(value: Value, back: SignedDuration) -> Value {
    match value {
        Value::Object(fields) => fields.into_iter().map(|(key, value)| (key, moved(value, back))).collect(),
        Value::Array(items) => items.into_iter().map(|item| moved(item, back)).collect(),
        Value::String(text) => match text.parse::<Timestamp>() {
            Ok(time) => json!(Timestamp::from_second((time - back).as_second()).unwrap().to_string()),
            Err(_) => Value::String(text),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}
