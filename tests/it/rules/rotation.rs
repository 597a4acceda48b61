//! The rules of a Database's password, on the real API server.

use freehold::api::Database;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::answers::{judge, judge_created, update};
use super::{NAMESPACE, adopting, custom, database, with};
use crate::kit::test_env::{control_plane, run};

#[test]
fn a_password_generation_is_only_raised_and_only_where_freehold_can_rotate_the_password() {
    let asking = |generation: i64| json!({"spec": {"access": {"passwordGeneration": generation}}});
    let cannot = "spec.access.passwordGeneration must be absent";
    let cases: [(Value, &[&str]); 5] = [
        (asking(1), &[]),
        (asking(7), &[]),
        (asking(0), &["spec.access.passwordGeneration", "greater than or equal to 1"]),
        (with(custom(&json!({})), &asking(2)), &[cannot]),
        (with(adopting(&json!({})), &asking(2)), &[cannot]),
    ];
    run(async {
        let client = control_plane().await.client();
        let mut failures = Vec::new();
        judge_created::<Database>(&client, &database(), cases, &mut failures).await;
        let rotated = with(with(database(), &asking(2)), &json!({"metadata": {"name": "rules-rotated"}}));
        let databases = Api::<Database>::namespaced(client.clone(), NAMESPACE);
        let object = serde_json::from_value(rotated.clone()).unwrap();
        databases.create(&PostParams::default(), &object).await.unwrap();
        let changes: [(Value, &[&str]); 4] = [
            (asking(2), &[]),
            (asking(3), &[]),
            (asking(1), &["spec.access.passwordGeneration", "only raised"]),
            (json!({"spec": {"access": {"passwordGeneration": null}}}), &[]),
        ];
        for (changes, says) in changes {
            let answer = update::<Database>(&client, rotated.clone(), &changes).await;
            judge(&changes, answer.as_ref(), says, &mut failures);
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    });
}
