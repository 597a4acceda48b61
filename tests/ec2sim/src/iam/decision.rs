//! The decision on a call: all of its requests must be allowed, and none denied.
//!
//! Source: IAM User Guide, "How AWS enforcement code logic evaluates requests to allow or deny access" (an
//! explicit deny overrides an allow; what nothing allows is denied), and "Access management for AWS
//! resources": a call is authorised "only if every part of your request is allowed".

use std::collections::BTreeSet;

use super::{
    policy::{Effect, Policy},
    request::{IfDenied, Request},
};

/// What a policy says of some requests together.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision<'a> {
    /// Each is allowed; these statements allowed one or more of them.
    Allowed { by: BTreeSet<String> },

    /// This request, the first of them, is not: nothing allows it, or this statement denies it.
    Denied { request: &'a Request, by: Option<String> },
}

/// What a policy grants to a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The statements that allowed it.
    pub(crate) statements: BTreeSet<String>,

    /// Whether KMS will refuse the use of its key after EC2 has answered.
    pub(crate) key_refused: bool,
}

impl Policy {
    pub(super) fn decide<'a>(&self, requests: impl IntoIterator<Item = &'a Request>) -> Decision<'a> {
        let mut by = BTreeSet::new();
        for request in requests {
            let (allows, denies): (Vec<_>, Vec<_>) = self
                .statements
                .iter()
                .filter(|statement| statement.fits(request))
                .partition(|statement| statement.effect == Effect::Allow);
            if let Some(deny) = denies.first() {
                return Decision::Denied { request, by: Some(deny.sid.clone()) };
            }
            if allows.is_empty() {
                return Decision::Denied { request, by: None };
            }
            by.extend(allows.into_iter().map(|statement| statement.sid.clone()));
        }
        Decision::Allowed { by }
    }

    /// What the policy grants to a call that is made of these requests; the denial if it grants nothing.
    pub(crate) fn grant<'a>(&self, requests: &'a [Request]) -> Result<Grant, (&'a Request, Option<String>)> {
        let is_late = |request: &&Request| request.if_denied == IfDenied::FailsLater;
        let mut statements = match self.decide(requests.iter().filter(|request| !is_late(request))) {
            Decision::Allowed { by } => by,
            Decision::Denied { request, by } => return Err((request, by)),
        };
        let key_refused = match self.decide(requests.iter().filter(is_late)) {
            Decision::Allowed { by } => {
                statements.extend(by);
                false
            }
            Decision::Denied { .. } => true,
        };
        Ok(Grant { statements, key_refused })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iam::context::Context;

    fn request(action: &str, resource: &str) -> Request {
        let context = Context::default().with("ec2:Region", "us-east-1");
        let if_denied = IfDenied::CallRefused;
        Request { action: action.to_owned(), resource: resource.to_owned(), context, if_denied }
    }

    fn policy() -> Policy {
        Policy::read(
            r#"{"Version": "2012-10-17", "Statement": [
                {"Sid": "Volumes", "Effect": "Allow", "Action": ["ec2:*Volume"],
                 "Resource": "arn:a:volume/*"},
                {"Sid": "Reads", "Effect": "Allow", "Action": "EC2:describe*", "Resource": "*"},
                {"Sid": "Again", "Effect": "Allow", "Action": "ec2:DescribeVolumes", "Resource": "*"},
                {"Sid": "NotThis", "Effect": "Deny", "Action": "ec2:*", "Resource": "arn:a:volume/kept"},
                {"Sid": "Elsewhere", "Effect": "Deny", "NotAction": "ec2:Describe*", "Resource": "*",
                 "Condition": {"StringNotEquals": {"ec2:Region": "us-east-1"}}},
                {"Sid": "Rest", "Effect": "Allow", "NotAction": ["ec2:*"], "NotResource": "arn:a:role/*"}]}"#,
        )
        .unwrap()
    }

    #[test]
    fn an_explicit_deny_wins_and_what_nothing_allows_is_denied() {
        for (action, resource, expected) in [
            ("ec2:DeleteVolume", "arn:a:volume/1", Ok("Volumes")),
            ("ec2:DeleteVolume", "arn:a:volume/kept", Err(Some("NotThis"))),
            ("ec2:DeleteVolume", "arn:a:snapshot/1", Err(None)),
            ("ec2:DescribeVolumes", "*", Ok("Again Reads")),
            ("ec2:describeTags", "*", Ok("Reads")),
            ("ec2:RunInstances", "arn:a:instance/*", Err(None)),
            ("kms:Decrypt", "arn:a:key/1", Ok("Rest")),
            ("iam:PassRole", "arn:a:role/1", Err(None)),
        ] {
            let request = request(action, resource);
            let decision = match policy().decide([&request]) {
                Decision::Allowed { by } => Ok(by.into_iter().collect::<Vec<_>>().join(" ")),
                Decision::Denied { by, .. } => Err(by),
            };
            let expected = expected.map(str::to_owned).map_err(|by| by.map(str::to_owned));
            assert_eq!(decision, expected, "{action} on {resource}");
        }
    }

    #[test]
    fn each_request_of_a_call_must_be_allowed_and_the_first_that_is_not_is_named() {
        let requests = [
            request("ec2:CreateVolume", "arn:a:volume/*"),
            request("ec2:CreateVolume", "arn:a:snapshot/1"),
            request("ec2:CreateTags", "arn:a:volume/*"),
        ];
        assert_eq!(policy().decide(&requests), Decision::Denied { request: &requests[1], by: None });
        let mut later = requests.clone();
        later[1].if_denied = IfDenied::FailsLater;
        later[2].if_denied = IfDenied::FailsLater;
        let grant = Grant { statements: BTreeSet::from(["Volumes".to_owned()]), key_refused: true };
        assert_eq!(policy().grant(&later), Ok(grant));
        assert_eq!(policy().grant(&requests), Err((&requests[1], None)));
    }
}
