//! Policies over the wire: EC2's refusal, the statements that were used, and the program's setting.

use std::{fs, process::Stdio, time::Duration};

use ec2sim::{Options, Policy};
use tokio::process::Command;

use super::http::{RUN, Server, options};

/// Far more than it ever takes.
const PATIENCE: Duration = Duration::from_mins(1);

const READS: &str = r#"{"Version": "2012-10-17", "Statement": {"Sid": "Reads", "Effect": "Allow",
    "Action": "ec2:Describe*", "Resource": "*"}}"#;

#[tokio::test]
async fn a_denial_is_ec2s_refusal_and_the_used_statements_are_shown() {
    let policies = [("tester".to_owned(), Policy::read(READS).unwrap())].into();
    let server = Server::start(Options { policies, ..options() }).await;
    let used = "/_sim/used-statements?caller=tester";
    assert_eq!(server.control("GET", used, "").await.body, "[]");
    let listed = server.call(&[("Action", "DescribeInstances")]).await.unwrap();
    assert_eq!(listed.status, 200);
    assert_eq!(server.control("GET", used, "").await.body, r#"["Reads"]"#);
    let denied = server.call(&RUN).await.unwrap();
    assert_eq!((denied.status, denied.text("Code")), (403, Some("UnauthorizedOperation")));
    let message = denied.text("Message").unwrap();
    assert!(message.starts_with("You are not authorized to perform this operation. User: arn:aws:iam::"));
    assert!(message.contains(": ec2:RunInstances on resource: arn:aws:ec2:us-east-1::image/ami-"));
    assert!(message.contains("Encoded authorization failure message: "));
    let journal = server.control("GET", "/_sim/journal", "").await.json();
    assert_eq!(journal[1]["answer"], "UnauthorizedOperation");
    assert_eq!(journal[1]["fate"], "refused");
    server.stop().await;
}

#[tokio::test]
async fn the_program_refuses_a_policy_that_it_does_not_understand() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.json");
    fs::write(&path, READS.replace("Resource", "Resources")).unwrap();
    let setting = format!("me={}", path.display());
    let program = Command::new(env!("CARGO_BIN_EXE_ec2sim"))
        .args(["serve", "--policy", &setting])
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, program).await.unwrap().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("the statement Reads is not accepted: it has no Resource"), "{said}");
}
