//! What each call must be allowed, and EC2's refusal if a policy does not allow it.
//!
//! ```text
//!   parameters, account ──► requests: actions on resources, with their context ──┐
//!                                                                                ├─► grant, or EC2's refusal
//!   JSON ──► policy: statements with patterns and conditions ────────────────────┘
//! ```
//!
//! Source: Service Authorization Reference, "Actions, resources, and condition keys for Amazon EC2": the
//! resource types of each action and the condition keys of each type; a `*` in the place of the id of what
//! does not exist yet, as EC2's own messages have it (aws/karpenter-provider-aws#7370). The tags of what
//! exists are the true ones, even while callers do not see them: no page says that authorisation lags.

mod arn;
mod call;
mod create;
mod denial;
mod encryption;
mod held;
mod launch;
mod tags;
mod volume;

use arn::Arns;
use call::Call;

use crate::{
    Model, Policy, Refusal, Truths,
    iam::{Grant, Request},
    params::Reader,
};

/// What `policy` grants to a call of `caller`, or EC2's refusal.
///
/// It comes before the model, so it decides even on an id that does not exist, whose tags are no tags: EC2
/// answers `UnauthorizedOperation` to `TerminateInstances` of an instance that is gone, if the policy has a
/// condition on a tag (runs-on/terraform-aws-runs-on#60). Whoever may do it to any instance is answered
/// `InvalidInstanceID.NotFound`. A dry run is no different: "if you have the required permissions, the error
/// response is `DryRunOperation`; otherwise, it is `UnauthorizedOperation`" (API reference, `DryRun`).
pub(crate) fn authorize(
    policy: &Policy,
    caller: &str,
    model: &Model,
    params: &[(String, String)],
) -> Result<Grant, Refusal> {
    let requests = of_call(model, params);
    let arns = Arns { world: model.world() };
    policy.grant(&requests).map_err(|(request, by)| denial::refusal(arns, caller, request, by.as_deref()))
}

/// The requests that a call is made of. A call that the model refuses for its form may have none.
fn of_call(model: &Model, params: &[(String, String)]) -> Vec<Request> {
    let Ok(given) = Reader::new(params, &Truths::all()) else {
        return Vec::new();
    };
    let arns = Arns { world: model.world() };
    let action = given.action().to_owned();
    let mut call = Call { model, arns, action: action.clone(), given };
    match action.as_str() {
        "RunInstances" => launch::requests(&mut call),
        "TerminateInstances" | "StopInstances" | "StartInstances" | "RebootInstances" => {
            let ids = call.given.list("InstanceId");
            ids.iter().filter_map(|id| call.on(id)).collect()
        }
        "GetConsoleOutput" => call.on_named(&["InstanceId"]),
        "CreateVolume" => create::volume(&mut call),
        "CreateSnapshot" => create::snapshot(&mut call),
        "ModifyVolume" | "DeleteVolume" => call.on_named(&["VolumeId"]),
        "DeleteSnapshot" => call.on_named(&["SnapshotId"]),
        "AttachVolume" => {
            let volume = call.given.text("VolumeId").unwrap_or_default();
            let instance = call.on_named(&["InstanceId"]);
            let grant = encryption::of_attachment(&call, &volume);
            instance.into_iter().chain(call.on(&volume)).chain(grant).collect()
        }
        "DetachVolume" => call.on_named(&["InstanceId", "VolumeId"]),
        "CreateTags" | "DeleteTags" => tags::on_existing(&mut call),
        // These have no resource-level permissions.
        action if action.starts_with("Describe") => vec![call.request("*".to_owned(), call.context())],
        // The model refuses what it does not know.
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
