//! The IAM policy that is shipped for the operator, as `terraform/modules/iam` renders it.

use ec2sim::{Policy, World};

/// The access key id of the operator of a demo: its name in EC2's journal, and who has the policy.
pub const OPERATOR: &str = "freehold";

/// The template, with Terraform's variables in it.
const TEMPLATE: &str = include_str!("../../../../terraform/modules/iam/policy.json.tftpl");

/// The policy of the operator of this cluster in this account.
///
/// # Panics
///
/// If the shipped policy is not what IAM accepts, or the account has no profile or no key with an ARN.
pub fn shipped(world: &World, cluster_id: &str) -> Policy {
    Policy::read(&text(world, cluster_id)).expect("the shipped policy is one that IAM accepts")
}

/// Its text: for the roles of all the account's instance profiles and for all its keys.
pub fn text(world: &World, cluster_id: &str) -> String {
    let profiles = world.instance_profiles.iter().map(|name| world.instance_profile_arn(name));
    let roles: Vec<String> = profiles.filter_map(|profile| world.role_of_profile(&profile)).collect();
    let keys: Vec<&String> = world.kms_keys.iter().filter(|key| key.starts_with("arn:")).collect();
    rendered(&[
        ("partition", world.partition()),
        ("region", &world.region),
        ("account_id", &world.account),
        ("cluster_id", cluster_id),
        ("jsonencode(node_role_arns)", &serde_json::json!(roles).to_string()),
        ("jsonencode(kms_key_arns)", &serde_json::json!(keys).to_string()),
    ])
}

/// The text of the policy, with these values for the template's variables, as Terraform's `templatefile` puts
/// them in.
///
/// # Panics
///
/// If a variable of the template has no value.
pub fn rendered(values: &[(&str, &str)]) -> String {
    let put = |text: String, (name, value): &(&str, &str)| text.replace(&format!("${{{name}}}"), value);
    let text = values.iter().fold(TEMPLATE.to_owned(), put);
    assert!(!text.contains("${"), "a variable of the template has no value: {text}");
    text
}
