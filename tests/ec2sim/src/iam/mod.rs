//! IAM policies: their statements and conditions, and what they grant to a request.
//!
//! Identity-based policies only: no policies of resources or keys, no boundaries, no policies of an
//! organisation. A KMS key's own policy is taken to leave the decision to IAM, as the default one does (KMS
//! developer guide, "Default key policy").

mod condition;
mod context;
mod decision;
mod document;
pub(crate) mod keys;
mod policy;
mod request;

pub(crate) use context::Context;
pub(crate) use decision::Grant;
pub use policy::{Policy, PolicyError};
pub(crate) use request::{IfDenied, Request};
