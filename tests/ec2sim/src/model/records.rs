//! What the model keeps beside the resources: used tokens, rates, and the changes that time brings.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::OutsideAction;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TokenRecord {
    pub(super) hash: String,
    pub(super) resources: Vec<String>,
    pub(super) at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Bucket {
    pub(super) level: f64,
    pub(super) at: Timestamp,
}

/// A change that time brings. The epoch is the resource's when it was scheduled: if it has grown, the change
/// was overtaken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Change {
    InstanceRuns {
        id: String,
        epoch: u64,
    },
    LaunchDies {
        id: String,
        epoch: u64,
        code: String,
    },
    StatusOk {
        id: String,
        epoch: u64,
    },
    InstanceStops {
        id: String,
        epoch: u64,
    },
    InstanceTerminates {
        id: String,
        epoch: u64,
    },
    InstanceForgotten {
        id: String,
    },
    VolumeAvailable {
        id: String,
        epoch: u64,
    },
    VolumeGone {
        id: String,
    },
    VolumeAttached {
        id: String,
        epoch: u64,
    },
    VolumeDetached {
        id: String,
        epoch: u64,
    },
    ModificationOptimizes {
        id: String,
        started_at: Timestamp,
    },
    ModificationCompletes {
        id: String,
        started_at: Timestamp,
    },
    SnapshotProgresses {
        id: String,
        percent: u8,
    },
    /// What was begun for this volume or snapshot ends badly.
    Fails {
        id: String,
    },
    Outside {
        action: OutsideAction,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Scheduled {
    pub(super) at: Timestamp,
    pub(super) change: Change,
}
