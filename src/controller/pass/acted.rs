//! What became of a plan, the writes that can fail, and what an answer without an id means for an attempt: shared by the act steps.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::object::HasStatus;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::call_blocked::{held_up, throttled};
use super::context::Context;

use crate::api::node::Refusal;
use crate::api::{ClientToken, Reason};
use crate::cloud::CloudError;
use crate::cloud::call::Call;
use crate::cloud::limits::Priority;
use crate::cluster::{self, status, status::PatchError};
use crate::controller::conditions::whole_second;
use crate::controller::creation::judge::Outcome;
use crate::controller::waiting::HeldUp;
use crate::error_chain::Chain;
use crate::time::later;

/// What became of the plan of an object that has something in EC2.
#[derive(Debug)]
pub struct Acted<K> {
    /// The object as of the last write to it.
    pub object: K,
    /// The object is gone: there is no status to write.
    pub finished: bool,
    /// What EC2 answered otherwise than hoped: it is waited for, and is no failure of the pass.
    pub held_up: Option<HeldUp>,
    /// The write that failed; what came before it stands.
    pub error: Option<ActError>,
}

impl<K> Acted<K> {
    /// Nothing was done yet.
    pub fn new(object: K) -> Self {
        Self { object, finished: false, held_up: None, error: None }
    }

    /// Whether the next action follows, after one with this result.
    pub fn goes_on(&mut self, result: Result<(), ActError>) -> bool {
        self.error = result.err();
        self.error.is_none() && self.held_up.is_none() && !self.finished
    }

    /// Whether the limits allow this call to EC2 now; otherwise that is what is waited for.
    pub fn may_call(&mut self, call: Call, priority: Priority, ctx: &Context) -> bool {
        self.held_up = ctx.limits.try_take(call, priority, ctx.clock.now()).err().map(|wait| throttled(wait.until));
        self.held_up.is_none()
    }

    /// EC2 did not accept this call about the resource of this id: that is what is waited for, and what keeps the next passes from asking
    /// at once.
    pub fn refused(&mut self, call: Call, id: &str, error: &CloudError, ctx: &Context) {
        self.held_up = Some(held_up(call, error, ctx));
        ctx.asks.note(call, id, ctx.clock.now(), self.held_up.clone());
    }
}

/// A write that failed.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// The API server.
    #[error("failed to write to the API server")]
    Kube(#[from] kube::Error),
    /// The intent or the id.
    #[error(transparent)]
    Status(#[from] PatchError),
    /// EC2.
    #[error(transparent)]
    Cloud(#[from] CloudError),
    /// The object changed since this pass read it, which was seen before anything was written.
    #[error("the object changed meanwhile")]
    Conflict,
}

impl ActError {
    /// Somebody else wrote first: this pass' view was old.
    pub fn is_conflict(&self) -> bool {
        match self {
            Self::Kube(error) | Self::Status(PatchError::Kube(error)) => cluster::is_conflict(error),
            Self::Conflict => true,
            Self::Status(PatchError::Json(_)) | Self::Cloud(_) => false,
        }
    }
}

/// Why the first condition that does not hold does not: what just failed, else what EC2 just answered, else what the plan waits for.
pub fn why(error: Option<&ActError>, held_up: Option<&HeldUp>, waiting: Option<(Reason, String)>) -> (Reason, String) {
    if let Some(error) = error {
        return (Reason::Progressing, format!("a step failed and is tried again: {}", Chain(error)));
    }
    if let Some(held_up) = held_up {
        return (held_up.reason, held_up.message.clone());
    }
    waiting.unwrap_or((Reason::AsExpected, String::new()))
}

/// What became of an attempt, in the status of its object.
pub struct AttemptMarks<'a> {
    /// EC2's definite refusal.
    pub refused: &'a mut Option<Refusal>,
    /// Since when it is in doubt.
    pub in_doubt_since: &'a mut Option<Time>,
}

/// Writes down what an answer without an id meant for the attempt of this token. `marks` finds the attempt in the
/// status.
pub async fn note_outcome<K>(
    outcome: Outcome,
    error: &CloudError,
    token: &ClientToken,
    marks: fn(&mut K::Status) -> Option<AttemptMarks<'_>>,
    api: &Api<K>,
    acted: &mut Acted<K>,
    ctx: &Context,
) -> Result<(), PatchError>
where
    K: Resource + HasStatus + Clone + DeserializeOwned + Debug,
    K::Status: Serialize + Clone + Default,
{
    let now = ctx.clock.now();
    match outcome {
        Outcome::Refused => {
            let code = error.code.clone().unwrap_or_default();
            let refusal = Refusal { code, message: error.message.clone(), at: Time(whole_second(now)) };
            let note = |status: &mut K::Status| {
                if let Some(marks) = marks(status) {
                    *marks.refused = Some(refusal);
                }
            };
            acted.object = status::record(api, &acted.object, note).await?;
            ctx.sends.forget(token);
        }
        Outcome::RefusedAfterDoubt => ctx.sends.refused_after_doubt(token),
        Outcome::NotMade { was_in_doubt } => {
            let until = acted.held_up.as_ref().and_then(|held_up| held_up.until).unwrap_or_else(|| later(now, ctx.timing.recheck));
            ctx.sends.not_made(token, was_in_doubt, until);
        }
        Outcome::InDoubt => {
            ctx.sends.in_doubt(token, ctx.timing.recheck, now);
            // Since the first doubt: nothing is written for a later one.
            let note = |status: &mut K::Status| {
                if let Some(marks) = marks(status) {
                    marks.in_doubt_since.get_or_insert(Time(whole_second(now)));
                }
            };
            acted.object = status::record(api, &acted.object, note).await?;
        }
    }
    Ok(())
}
