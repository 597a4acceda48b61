//! What the act steps share: the writes that can fail, and what became of a plan.

use super::waiting::HeldUp;
use crate::cloud::CloudError;
use crate::cluster::{self, status::PatchError};

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
}

impl ActError {
    /// Somebody else wrote first: this pass' view was old.
    pub fn is_conflict(&self) -> bool {
        match self {
            Self::Kube(error) | Self::Status(PatchError::Kube(error)) => cluster::is_conflict(error),
            Self::Status(PatchError::Json(_)) | Self::Cloud(_) => false,
        }
    }
}
