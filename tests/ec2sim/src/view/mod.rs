//! What can be seen of the account's resources: the values that answers, the truth and the saved state share.

mod instances;
mod volumes;

use std::collections::BTreeMap;

pub use instances::{Health, InstanceState, InstanceView, MetadataOptions, ScheduledEvent, StateReason};
pub use volumes::{
    AttachmentState, AttachmentView, Initialization, InitializationProgress, ModificationState,
    ModificationView, Shape, SnapshotState, SnapshotView, VolumeState, VolumeStatusView, VolumeView,
};

/// Tags by key.
pub type Tags = BTreeMap<String, String>;
