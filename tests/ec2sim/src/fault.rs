//! A fault: which calls it hits, and what it does to them.

use serde::{Deserialize, Serialize};

use crate::{OutsideAction, Sight, call_facts::CallFacts};

/// A fault: the calls that it hits, and what it does to them.
///
/// As JSON: `{"id": "lost", "action": "RunInstances", "nth": 2, "effect": "apply-then-drop"}`. A call is hit
/// if everything that is given fits. Of the calls that fit, counted from when the fault was added, it hits
/// the `nth` and the following ones, `count` in all; without `count` it hits one call if `nth` is given, and
/// otherwise all of them. `probability` (with the simulator's seed) leaves some of those out, and they don't
/// count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Its name in the journal; made up if absent.
    #[serde(default)]
    pub id: String,

    /// The action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,

    /// The caller's access key id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,

    /// An id that the request names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,

    /// A tag that the request gives, or that a resource has which the request names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<TagMatch>,

    /// The first of the fitting calls that is hit, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u64>,

    /// How many calls are hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,

    /// Between 0 and 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,

    /// What happens.
    pub effect: Effect,
}

/// A tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TagMatch {
    /// The key.
    pub key: String,
    /// The value; absent is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// What a fault does. All seconds are virtual.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The connection is reset and nothing is done.
    DropBefore,
    /// The call is carried out and its answer lost.
    ApplyThenDrop,
    /// The connection is reset; the call is carried out later, if that is within the 15 minutes that a
    /// signature holds.
    ApplyLate {
        /// After this time.
        seconds: f64,
    },
    /// The call is carried out and answered late.
    Delay {
        /// By this time.
        seconds: f64,
    },
    /// The call is refused and nothing done.
    Error {
        /// EC2's code.
        code: String,
        /// What it says.
        #[serde(default)]
        message: String,
    },
    /// The call is refused with `RequestLimitExceeded`.
    Throttle,
    /// What the call makes can't be seen for a while.
    Invisible {
        /// In which way.
        sight: Sight,
        /// For this time.
        seconds: f64,
    },
    /// A list answers with an empty page, and goes on where it would have begun.
    EmptyPage,
    /// The call is carried out, and its answer ends in the middle.
    TruncatedXml,
    /// There is no capacity for an instance type in a zone; volumes are hit if no type is named.
    CapacityOut {
        /// Absent is any.
        #[serde(default)]
        instance_type: Option<String>,
        /// Absent is any.
        #[serde(default)]
        zone: Option<String>,
    },
    /// A create is refused as if a quota was used up, even if its token is known.
    Quota {
        /// Such as `VcpuLimitExceeded`.
        code: String,
    },
    /// A launch is accepted, and dies instead of running.
    LaunchDies {
        /// The state reason, such as `Server.InternalError`.
        code: String,
    },
    /// A volume is made, and vanishes while it is still creating.
    VolumeVanishes {
        /// After this time.
        seconds: f64,
    },
    /// `AttachVolume` never gets beyond `attaching`, `DetachVolume` never beyond `detaching` (until it is
    /// forced), `StopInstances` never beyond `stopping` (until it is forced).
    Hangs,
    /// `StopInstances` and `TerminateInstances` are accepted and take so much longer, forced or not.
    Lingers {
        /// Than they would.
        seconds: f64,
    },
    /// A read is answered as it would have been so long ago, as far back as `Options::past` reaches.
    Stale {
        /// How old the answer is.
        seconds: f64,
    },
    /// What the call began ends badly: a volume or a snapshot in `error`, a modification in `failed`.
    Fails,
    /// A zone is disrupted.
    ZoneDown {
        /// Its name.
        zone: String,
    },
    /// Something happens to a resource after the call.
    Then {
        /// After this time.
        #[serde(default)]
        seconds: f64,
        /// What; without an id, to each resource that the call made or changed.
        action: OutsideAction,
    },
}

impl Fault {
    /// A fault that hits every call.
    pub fn always(effect: Effect) -> Self {
        Self {
            id: String::new(),
            action: None,
            caller: None,
            resource: None,
            tag: None,
            nth: None,
            count: None,
            probability: None,
            effect,
        }
    }

    /// A fault that hits every call of an action.
    pub fn on(action: &str, effect: Effect) -> Self {
        Self { action: Some(action.to_owned()), ..Self::always(effect) }
    }

    /// The same, for the `nth` fitting call only (from 1).
    #[must_use]
    pub fn nth(self, nth: u64) -> Self {
        Self { nth: Some(nth), ..self }
    }

    /// The same, for this many calls.
    #[must_use]
    pub fn count(self, count: u64) -> Self {
        Self { count: Some(count), ..self }
    }

    pub(crate) fn fits(&self, call: &CallFacts) -> bool {
        let is_tag = |wanted: &TagMatch| {
            call.tags.iter().any(|(key, value)| {
                *key == wanted.key && wanted.value.as_ref().is_none_or(|only| only == value)
            })
        };
        self.action.as_ref().is_none_or(|action| *action == call.action)
            && self.caller.as_ref().is_none_or(|caller| *caller == call.caller)
            && self.resource.as_ref().is_none_or(|id| call.resources.contains(id))
            && self.tag.as_ref().is_none_or(is_tag)
    }
}
