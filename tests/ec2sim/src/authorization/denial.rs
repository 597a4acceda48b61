//! What EC2 answers to a call that is not allowed.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;

use super::arn::Arns;
use crate::{
    Refusal,
    iam::{IfDenied, Request},
};

/// The refusal of a call, for its first request that is not allowed; `by` is the statement that denies it, if
/// one does.
pub(super) fn refusal(arns: Arns<'_>, caller: &str, request: &Request, by: Option<&str>) -> Refusal {
    match &request.if_denied {
        IfDenied::CallRefused | IfDenied::FailsLater => {
            Refusal::new("UnauthorizedOperation", sentence(arns, caller, request, by))
        }
        // Source: kubernetes/kubernetes#62171 (without kms:CreateGrant) and kube-aws#393 (the sentence).
        IfDenied::NotAttached(volume) => Refusal::new(
            "CustomerKeyHasBeenRevoked",
            format!(
                "Volume {volume} cannot be attached. The encrypted volume was unable to access the KMS \
                 master key."
            ),
        ),
    }
}

/// Sources: aws/karpenter-provider-aws#7370 (an explicit deny), eksctl-io/eksctl#7451 (no allow),
/// terraform-aws-modules/terraform-aws-eks#3057 (`iam:PassRole` in RunInstances), and
/// hashicorp/terraform-provider-aws#4664 (a Describe has nothing encoded).
fn sentence(arns: Arns<'_>, caller: &str, request: &Request, by: Option<&str>) -> String {
    let Request { action, resource, .. } = request;
    let partition = arns.world.partition();
    let user = format!("arn:{partition}:iam::{}:user/{caller}", arns.world.account);
    let why = match by {
        Some(_) => "with an explicit deny in an identity-based policy".to_owned(),
        None => format!("because no identity-based policy allows the {action} action"),
    };
    let said = format!(
        "You are not authorized to perform this operation. User: {user} is not authorized to perform: \
         {action}"
    );
    if resource == "*" {
        return format!("{said} {why}");
    }
    let encoded = encoded(&user, request, by);
    format!("{said} on resource: {resource} {why}. Encoded authorization failure message: {encoded}")
}

/// What `sts:DecodeAuthorizationMessage` would show of the denial. EC2 encrypts it; here it is Base64, for
/// those who write a policy.
///
/// Source: STS API reference, `DecodeAuthorizationMessage`.
fn encoded(user: &str, request: &Request, by: Option<&str>) -> String {
    let details = json!({
        "allowed": false,
        "explicitDeny": by.is_some(),
        "matchedStatements": {"items": by.into_iter().collect::<Vec<_>>()},
        "context": {
            "principal": {"arn": user},
            "action": request.action,
            "resource": request.resource,
            "conditions": request.context.all(),
        },
    });
    URL_SAFE_NO_PAD.encode(details.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{World, iam::Context};

    fn said(resource: &str, by: Option<&str>, if_denied: IfDenied) -> Refusal {
        let context = Context::default().with("ec2:Region", "us-east-1");
        let request =
            Request { action: "ec2:DeleteVolume".into(), resource: resource.into(), context, if_denied };
        refusal(Arns { world: &World::default() }, "me", &request, by)
    }

    #[test]
    fn a_denial_is_worded_as_ec2_does() {
        let implicit = said("arn:a", None, IfDenied::CallRefused);
        assert_eq!((implicit.code.as_str(), implicit.status()), ("UnauthorizedOperation", 403));
        let (plain, encoded) =
            implicit.message.split_once(" Encoded authorization failure message: ").unwrap();
        assert_eq!(
            plain,
            "You are not authorized to perform this operation. User: arn:aws:iam::123456789012:user/me is \
             not authorized to perform: ec2:DeleteVolume on resource: arn:a because no identity-based policy \
             allows the ec2:DeleteVolume action."
        );
        let details: serde_json::Value =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(encoded).unwrap()).unwrap();
        assert_eq!(details["context"]["conditions"]["ec2:region"][0], "us-east-1");
        let explicit = said("*", Some("No"), IfDenied::CallRefused).message;
        assert!(explicit.ends_with(": ec2:DeleteVolume with an explicit deny in an identity-based policy"));
        let attach = said("arn:a", None, IfDenied::NotAttached("vol-1".into()));
        assert_eq!((attach.code.as_str(), attach.status()), ("CustomerKeyHasBeenRevoked", 400));
    }
}
