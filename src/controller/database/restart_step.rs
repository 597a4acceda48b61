//! How far the restart of a pod is, as data. Pure.

use jiff::Timestamp;

use super::cause::{NoRoom, RestartCause};
use crate::controller::blocker::Blocker;

/// How far the restart of a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestartStep {
    /// The machine is to have the next image before anything changes.
    Pulling {
        /// The image.
        image: String,
    },
    /// The machine cannot pull the next image, and the pod stays.
    NotPulled {
        /// The image.
        image: String,
        /// What the kubelet says; none right after it was started anew.
        said: Option<String>,
    },
    /// The new template is being applied.
    ApplyingTemplate,
    /// The pod is stopping.
    Stopping,
    /// The pod is being deleted.
    Deleting(RestartCause),
    /// The pod must not be deleted yet.
    Blocked(Blocker),
    /// The machine is too small for the new pod, and the one that runs serves.
    NoRoom(NoRoom),
    /// ConfigMap or StatefulSet was changed outside Freehold, and both must stay as they were applied until
    /// then; without a time, they are not restored yet. A pod that is deleted earlier may come back altered.
    Unsettled(Option<Timestamp>),
}
