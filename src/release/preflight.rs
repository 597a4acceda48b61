//! What stands before a release, and what a person should know of it. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::found::Found;
use crate::api::ConditionType;
use crate::command::finding::Finding;

/// Every check.
pub fn check(found: &Found) -> Vec<Finding> {
    let spec = &found.database.spec;
    let object = || format!("Database {}", found.subject());
    let mut findings = if found.is_begun() { Vec::new() } else { before(found) };
    findings.extend(readiness(found, object()));
    let status = found.database.status.as_ref();
    if let Some(replacement) = status.and_then(|status| status.replacement.as_ref()) {
        let message = format!(
            "it moves from Node {} to Node {}: it is released once that is over",
            replacement.from, replacement.to
        );
        findings.push(Finding::warning(object(), message));
    }
    let is_requested = spec.release && found.database.metadata.deletion_timestamp.is_some();
    if is_requested || found.is_begun() {
        findings.push(Finding::note(object(), "its release was requested before and goes on"));
    }
    let message = "spec.deletionPolicy has no effect: the EBS volume stays in use";
    findings.push(Finding::note(object(), message));
    findings
}

/// What stands before a release that has not begun.
fn before(found: &Found) -> Vec<Finding> {
    let spec = &found.database.spec;
    let object = || format!("Database {}", found.subject());
    let mut findings = Vec::new();
    if !spec.release && !found.may_release {
        let message = "its release takes the verb release on databases.freehold.dev, which the user of this \
            kubeconfig does not have";
        findings.push(Finding::blocker(object(), message).way_out(
            "ask the platform team to release it, or to bind the chart's ClusterRole freehold-release to this \
             user in the namespace",
        ));
    }
    if !spec.running {
        let message = "it is paused: nothing runs that could go on without Freehold";
        findings.push(Finding::blocker(object(), message).way_out(
            "set spec.running to true and wait until it is Ready; or delete it with the deletionPolicy Retain, \
             which keeps the volume",
        ));
    }
    if spec.deletion_protection {
        let message = "spec.deletionProtection is true: its deletion is refused";
        findings.push(Finding::blocker(object(), message).way_out("set spec.deletionProtection to false"));
    }
    if found.database.metadata.deletion_timestamp.is_some() && !spec.release {
        let message = "it is being deleted, without spec.release: its machine is being terminated";
        findings.push(Finding::blocker(object(), message).way_out("wait until it is gone"));
    }
    findings
}

/// The operator releases what is complete.
fn readiness(found: &Found, object: String) -> Option<Finding> {
    let is_ready = |it: &&Condition| it.type_ == ConditionType::Ready.as_str();
    let ready = found.database.conditions().iter().find(is_ready);
    let is_leaving = found.database.metadata.deletion_timestamp.is_some();
    if is_leaving || !found.database.spec.running || ready.is_some_and(|ready| ready.status == "True") {
        return None;
    }
    let message = ready.map_or_else(
        || "the operator has not seen it yet".to_owned(),
        |ready| format!("it is not Ready ({}): {}", ready.reason, ready.message),
    );
    let message = format!("{message}. Machine, volume and pod must be complete before it is released");
    Some(Finding::warning(object, message))
}
