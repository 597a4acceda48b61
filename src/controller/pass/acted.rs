//! What became of a plan, and the writes that can fail: shared by the act steps.

use std::fmt::Debug;

use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::call_blocked::call_blocked;
use super::context::Context;
use crate::api::{ConditionType, Reason};
use crate::cloud::CloudError;
use crate::cloud::call::Call;
use crate::cloud::limits::Wait;
use crate::cloud::turns::Priority;
use crate::cluster::{self, status::PatchError};
use crate::controller::call_blocked::CallBlocked;
use crate::controller::conditions::{self, Entry};
use crate::controller::messages;
use crate::engine::client::ClientError;
use crate::error_chain::Chain;
use crate::term::TermOver;

/// What became of a plan.
#[derive(Debug)]
pub struct Acted<K> {
    /// The object as of the last write to it.
    pub object: K,
    /// The object is gone: there is no status to write.
    pub finished: bool,
    /// What EC2 or a limit did not accept: it is waited for, and is no failure of the pass.
    pub call_blocked: Option<CallBlocked>,
    /// The write that failed; what came before it stands.
    pub error: Option<ActError>,
}

impl<K> Acted<K> {
    /// Nothing was done yet.
    pub fn new(object: K) -> Self {
        Self { object, finished: false, call_blocked: None, error: None }
    }

    /// Whether the next action follows, after one with this result. The loop over the actions stands in each
    /// kind: the future of an `async` closure is not `Send` for every lifetime, which the controllers need.
    pub fn goes_on(&mut self, result: Result<(), ActError>) -> bool {
        self.error = result.err().or_else(|| self.error.take());
        self.error.is_none() && self.call_blocked.is_none() && !self.finished
    }

    /// Whether this operator leads, and the limits allow this call to EC2 now; otherwise that is what is
    /// waited for.
    pub fn may_call(&mut self, call: Call, priority: Priority, ctx: &Context) -> bool
    where
        K: Resource,
    {
        if let Err(over) = ctx.term.check() {
            self.error = Some(over.into());
            return false;
        }
        self.call_blocked = ctx
            .try_take(call, &self.object, priority)
            .err()
            .map(|Wait { until }| CallBlocked::RateLimited { until });
        self.call_blocked.is_none()
    }

    /// Reads the object from the API server: a conflict when it has changed since this pass read it, so that
    /// nothing is destroyed that a person has just decided to keep.
    pub async fn check_as_read(&self, api: &Api<K>) -> Result<(), ActError>
    where
        K: Resource + Clone + DeserializeOwned + Debug,
    {
        let fresh = api.get(&self.object.name_any()).await?;
        let (fresh, read) = (fresh.meta(), self.object.meta());
        let is_as_read = fresh.resource_version == read.resource_version && fresh.uid == read.uid;
        if is_as_read { Ok(()) } else { Err(ActError::Conflict) }
    }

    /// EC2's answer to a call about the resource of this id that is made until EC2 shows its effect: when it
    /// was made is noted, and a refusal is what is waited for.
    pub fn answered(&mut self, call: Call, id: &str, answer: Result<(), CloudError>, ctx: &Context) {
        match answer {
            Ok(()) => ctx.issued.note(call, id, ctx.clock.now(), None),
            Err(error) => self.refused(call, id, &error, ctx),
        }
    }

    /// EC2 did not accept this call about the resource of this id: that is what is waited for, and what keeps
    /// the next passes from asking at once.
    pub fn refused(&mut self, call: Call, id: &str, error: &CloudError, ctx: &Context) {
        self.call_blocked = Some(call_blocked(call, error, ctx));
        ctx.issued.note(call, id, ctx.clock.now(), self.call_blocked.clone());
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
    /// This operator does not lead any more.
    #[error(transparent)]
    TermOver(#[from] TermOver),
    /// The engine of a database.
    #[error(transparent)]
    Engine(#[from] ClientError),
    /// The operating system gave no randomness for a password.
    #[error("failed to get randomness for a password from the operating system")]
    Randomness(#[source] getrandom::Error),
    /// The object changed since this pass read it, which was seen before anything was written.
    #[error("the object changed meanwhile")]
    Conflict,
}

impl ActError {
    /// The API server's answer, if that is what failed.
    pub fn kube(&self) -> Option<&kube::Error> {
        match self {
            Self::Kube(error) | Self::Status(PatchError::Kube(error)) => Some(error),
            Self::Status(PatchError::Json(_))
            | Self::TermOver(_)
            | Self::Engine(_)
            | Self::Randomness(_)
            | Self::Conflict => None,
        }
    }

    /// The view of this pass was old, or an object of the name appeared meanwhile: observe again.
    pub fn is_conflict(&self) -> bool {
        let is_conflict = |error| cluster::is_conflict(error) || cluster::is_already_exists(error);
        matches!(self, Self::Conflict) || self.kube().is_some_and(is_conflict)
    }
}

/// Why the first condition that does not hold does not: what just failed, else what EC2 just answered, else
/// what the plan waits for.
pub fn why(
    error: Option<&ActError>,
    call_blocked: Option<&CallBlocked>,
    waiting: Option<(Reason, String)>,
) -> (Reason, String) {
    if let Some(error) = error {
        return (Reason::Progressing, messages::step_failed(&Chain(error).to_string()));
    }
    if let Some(call_blocked) = call_blocked {
        return (call_blocked.reason(), call_blocked.message());
    }
    waiting.unwrap_or((Reason::AsExpected, String::new()))
}

/// Ready and Stalled, of a kind without other conditions: Ready with this message, unless something is waited
/// for, or a write failed.
pub fn ready_and_stalled(
    error: Option<&ActError>,
    waiting: Option<(Reason, String)>,
    is_stalled: bool,
    ready: &str,
) -> Vec<Entry> {
    let stalled = conditions::stalled(waiting.clone().filter(|_| is_stalled));
    let is_ready = waiting.is_none() && error.is_none();
    let (reason, message) = why(error, None, waiting);
    let ready = if is_ready {
        Entry::yes(ConditionType::Ready, Reason::AsExpected, ready)
    } else {
        Entry::no(ConditionType::Ready, reason, message)
    };
    vec![ready, stalled]
}
