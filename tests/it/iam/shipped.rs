//! The policy that is shipped, for one account and cluster, and variants of it.

use freehold_box::account::policy;
use serde_json::Value;

/// The cluster whose operator the policy is for.
pub const CLUSTER: &str = "0b0b8b0e-2f3f-4a53-8f9c-6c2f8f2f1a10";

/// The key that the operator may use; another key of the account is not in its policy.
pub const KEY: &str = "arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000001";

/// The policy of an operator in `us-east-1`.
pub fn policy() -> String {
    rendered(&[])
}

/// The policy, with other values for some of its variables.
pub fn rendered(others: &[(&str, &str)]) -> String {
    let (roles, keys) = (r#"["arn:aws:iam::123456789012:role/nodes"]"#, format!("[{KEY:?}]"));
    let usual = [
        ("partition", "aws"),
        ("region", "us-east-1"),
        ("account_id", "123456789012"),
        ("cluster_id", CLUSTER),
        ("jsonencode(node_role_arns)", roles),
        ("jsonencode(kms_key_arns)", &keys),
    ];
    // What is put in first is there no more for the usual value.
    policy::rendered(&[others, &usual[..]].concat())
}

/// The policy without this action.
pub fn without_action(policy: &str, action: &str) -> String {
    let mut document: Value = serde_json::from_str(policy).unwrap();
    for statement in document["Statement"].as_array_mut().unwrap() {
        if let Some(actions) = statement["Action"].as_array_mut() {
            actions.retain(|it| it != action);
        }
    }
    document.to_string()
}

/// The policy without the statement of this Sid.
pub fn without_statement(policy: &str, sid: &str) -> String {
    let mut document: Value = serde_json::from_str(policy).unwrap();
    document["Statement"].as_array_mut().unwrap().retain(|statement| statement["Sid"] != sid);
    document.to_string()
}
