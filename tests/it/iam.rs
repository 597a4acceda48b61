//! The operator's IAM policy, as `terraform/modules/iam` ships it: what it allows and what it does not, call
//! by call, in a golden file; and that nothing of it could be left out.

mod account;
mod calls;
mod scenarios;
mod shipped;

use std::{collections::BTreeSet, fs, path::Path};

use ec2sim::Policy;
use freehold::cloud::Call;
use pretty_assertions::assert_eq;
use serde_json::Value;
use strum::IntoEnumIterator as _;

use self::account::Account;
use self::calls::{CALLS, Row};

/// What becomes of each call, with the policy that is shipped and its variant that deletes no volume.
fn outcomes(policy: &str) -> Vec<String> {
    let whole = Policy::read(policy).unwrap();
    let no_delete = Policy::read(&shipped::without_statement(policy, "DeleteVolumes")).unwrap();
    let outcome = |row: &Row| {
        let policy = if row.deletes_nothing { &no_delete } else { &whole };
        let outcome = Account::new(row.region, policy).outcome(&(row.call)());
        format!("{} | {outcome}", row.name)
    };
    CALLS.iter().map(outcome).collect()
}

#[test]
fn what_the_policy_allows_and_what_it_does_not_is_in_the_golden_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/iam/operator.golden.txt");
    let text = outcomes(&shipped::policy()).join("\n") + "\n";
    if std::env::var_os("FREEHOLD_BLESS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(golden, text, "FREEHOLD_BLESS=1 writes tests/it/iam/operator.golden.txt anew");
}

#[test]
fn each_call_of_the_operator_is_tried_and_allowed() {
    let outcomes = outcomes(&shipped::policy());
    let allowed: BTreeSet<&str> = outcomes
        .iter()
        .filter(|line| line.contains(" | allowed by "))
        .filter_map(|line| line.split([' ', ',']).next())
        .collect();
    let missing: Vec<_> = Call::iter().map(Call::as_str).filter(|call| !allowed.contains(call)).collect();
    assert!(
        missing.is_empty(),
        "terraform/modules/iam/policy.json.tftpl allows them, and tests/it/iam/calls.rs has a row: {missing:?}"
    );
}

#[test]
fn each_statement_is_what_allows_some_call() {
    let policy = Policy::read(&shipped::policy()).unwrap();
    let mut used = BTreeSet::new();
    for row in CALLS {
        let account = Account::new(row.region, &policy);
        account.outcome(&(row.call)());
        used.extend(account.used());
    }
    assert_eq!(used, policy.sids());
}

/// What EC2 does in no other way, so that no call could show the difference: it passes roles to itself, and
/// calls KMS in its own name.
const EC2S_OWN: [&str; 3] = ["iam:PassedToService", "kms:GrantIsForAWSResource", "kms:ViaService"];

/// The calls that are denied.
fn denied(policy: &str) -> Vec<String> {
    outcomes(policy).into_iter().filter(|line| line.contains(" | denied: ")).collect()
}

#[test]
fn each_condition_is_what_denies_some_call() {
    let shipped = shipped::policy();
    let expected = denied(&shipped);
    let document: Value = serde_json::from_str(&shipped).unwrap();
    let mut without_effect = Vec::new();
    for (at, statement) in document["Statement"].as_array().unwrap().iter().enumerate() {
        let conditions = statement.get("Condition").and_then(Value::as_object).into_iter().flatten();
        for (operator, keys) in conditions {
            for key in keys.as_object().unwrap().keys().filter(|key| !EC2S_OWN.contains(&key.as_str())) {
                let mut weaker = document.clone();
                let condition = &mut weaker["Statement"][at]["Condition"][operator];
                condition.as_object_mut().unwrap().remove(key);
                if denied(&weaker.to_string()).len() == expected.len() {
                    without_effect.push(format!("{operator} {key} of {}", statement["Sid"]));
                }
            }
        }
    }
    assert_eq!(without_effect, Vec::<String>::new());
}

#[test]
fn a_list_of_arns_that_is_empty_is_refused_as_iam_does() {
    let without_keys = shipped::rendered(&[("jsonencode(kms_key_arns)", "[]")]);
    let refusal = Policy::read(&without_keys).unwrap_err().to_string();
    assert_eq!(refusal, "the statement EncryptWithKeys is not accepted: its Resource is empty");
    let both = ["EncryptWithKeys", "GrantKeysToInstances"];
    let rest = both.iter().fold(without_keys, |policy, sid| shipped::without_statement(&policy, sid));
    Policy::read(&rest).unwrap();
}
