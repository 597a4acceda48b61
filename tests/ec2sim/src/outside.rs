//! What can happen to a resource without a call, and how a resource can be invisible.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::view::Tags;

/// How a resource can be invisible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sight {
    /// To calls that name its id.
    Id,
    /// In lists without ids.
    Filter,
    /// Its tags.
    Tags,
    /// In all ways.
    All,
}

/// What can happen to a resource without a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outside {
    /// An instance is terminated.
    Terminate,
    /// An instance is stopped.
    Stop,
    /// A stopped instance is started.
    Start,
    /// An instance is rebooted.
    Reboot,
    /// An instance's status checks fail.
    Impair,
    /// An instance's status checks pass again.
    Recover,
    /// AWS announces something for an instance.
    Schedule {
        /// `instance-reboot`, `system-reboot`, `system-maintenance`, `instance-retirement` or
        /// `instance-stop`.
        code: String,
        /// When it comes.
        not_before: Timestamp,
    },
    /// An instance's console shows another line.
    Console(String),
    /// A volume is suddenly gone.
    Vanish,
    /// A volume breaks.
    Break,
    /// A volume or a snapshot is deleted.
    Delete,
    /// A volume is detached.
    Detach,
    /// Tags are set, then others removed.
    Tag {
        /// The tags to set.
        #[serde(default)]
        set: Tags,
        /// The keys to remove.
        #[serde(default)]
        remove: Vec<String>,
    },
    /// A resource can't be seen for a while.
    Hide {
        /// In which way.
        sight: Sight,
        /// For how long, in virtual seconds.
        seconds: f64,
    },
}

/// Something that happens to one resource without a call, as JSON `{"id": "i-…", "what": "terminate"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutsideAction {
    /// The resource; in a fault it may be empty, for each resource that the call made or changed.
    #[serde(default)]
    pub id: String,
    /// What happens to it.
    pub what: Outside,
}

impl Outside {
    /// The same, to the resource of this id.
    pub fn to(self, id: impl Into<String>) -> OutsideAction {
        OutsideAction { id: id.into(), what: self }
    }
}
