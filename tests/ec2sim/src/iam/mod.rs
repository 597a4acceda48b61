//! IAM: what the policies of callers allow, and what each call must be allowed.
//!
//! ```text
//!   parameters, account ──► requests: actions on resources, with their context ──┐
//!                                                                                ├─► grant, or EC2's refusal
//!   JSON ──► policy: statements with patterns and conditions ────────────────────┘
//! ```
//!
//! Identity-based policies only: no policies of resources or keys, no boundaries, no policies of an
//! organisation. A KMS key's own policy is taken to leave the decision to IAM, as the default one does (KMS
//! developer guide, "Default key policy").

mod arn;
mod condition;
mod context;
mod decision;
mod denial;
mod document;
mod glob;
mod keys;
mod policy;
mod request;
mod requests;

pub(crate) use decision::Grant;
pub use policy::{Policy, PolicyError};

use crate::{Model, Refusal};

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
    let requests = requests::of_call(model, params);
    let arns = arn::Arns { world: model.world() };
    policy.grant(&requests).map_err(|(request, by)| denial::refusal(arns, caller, request, by.as_deref()))
}
